use crate::CodecError;

sealane_message::errors! {
    /// The meaning of every code of events.
    pub const ERRORS;

    /// Why bytes are not an event, or an event cannot be written. `at` is a byte offset.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum EventError {
        /// The bytes are no CBOR, or more than one datum.
        #[error("the event is malformed: {0}")]
        #[code("SL-EVENT-01", "EventMalformed")]
        #[cause("the bytes of an event are not the one form that it has")]
        #[hint("Send the event as its encoder wrote it; spec/event.md has its form and each \
                field.")]
        Malformed(#[from] CodecError),
        /// A longer head or float than needed, an open length, or keys out of order.
        #[error("the event is not in its deterministic form at byte {at}")]
        #[same_as(Malformed)]
        NotDeterministic {
            /// Where.
            at: usize,
        },
        /// A field that the action or content needs.
        #[error("the event has no {name}")]
        #[same_as(Malformed)]
        Missing {
            /// The field.
            name: &'static str,
        },
        /// A field of a wrong type, length or range.
        #[error("the event's {name} is not what it has to be")]
        #[same_as(Malformed)]
        Field {
            /// The field.
            name: &'static str,
        },
        /// More elements than allowed.
        #[error("the event has more than {limit} {name}")]
        #[code("SL-EVENT-05", "EventTooMany")]
        #[cause("an event has more elements in a list than a limit allows")]
        #[hint("Send several events.")]
        TooMany {
            /// The list.
            name: &'static str,
            /// How many it may have.
            limit: usize,
        },
        /// The caller asked to write an action that this version does not know.
        #[error("an action that is not known cannot be written")]
        #[code("SL-EVENT-07", "EventActionUnknown")]
        #[cause("an action that this version does not know cannot be written")]
        #[hint("Pass the event on as the bytes that it came in.")]
        ActionUnknown,
    }
}
