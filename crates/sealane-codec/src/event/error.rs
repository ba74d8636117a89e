use sealane_message::ErrorInfo;

use crate::CodecError;

/// Why bytes are not an event, or an event cannot be written. `at` is a byte offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The bytes are no CBOR, or more than one datum.
    #[error("the event is malformed: {0}")]
    Malformed(#[from] CodecError),
    /// A longer head or float than needed, an open length, or keys out of order.
    #[error("the event is not in its deterministic form at byte {at}")]
    NotDeterministic {
        /// Where.
        at: usize,
    },
    /// A field that the action or content needs.
    #[error("the event has no {name}")]
    Missing {
        /// The field.
        name: &'static str,
    },
    /// A field of a wrong type, length or range.
    #[error("the event's {name} is not what it has to be")]
    Field {
        /// The field.
        name: &'static str,
    },
    /// More elements than allowed.
    #[error("the event has more than {limit} {name}")]
    TooMany {
        /// The list.
        name: &'static str,
        /// How many it may have.
        limit: usize,
    },
    /// Content of a kind that this version does not know.
    #[error("the event has content of the unknown kind {kind}")]
    ContentUnknown {
        /// Its number.
        kind: u64,
    },
    /// The caller asked to write an action that this version does not know.
    #[error("an action that is not known cannot be written")]
    ActionUnknown,
}

impl EventError {
    /// What the error means and what to do.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            EventError::Malformed(_) => &MALFORMED,
            EventError::NotDeterministic { .. } => &NOT_DETERMINISTIC,
            EventError::Missing { .. } => &MISSING,
            EventError::Field { .. } => &FIELD,
            EventError::TooMany { .. } => &TOO_MANY,
            EventError::ContentUnknown { .. } => &CONTENT_UNKNOWN,
            EventError::ActionUnknown => &ACTION_UNKNOWN,
        }
    }
}

/// All of them, for the documentation.
pub const ERRORS: &[ErrorInfo] =
    &[MALFORMED, NOT_DETERMINISTIC, MISSING, FIELD, TOO_MANY, CONTENT_UNKNOWN, ACTION_UNKNOWN];

const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-01",
    "EventMalformed",
    "the bytes of an event are no CBOR, or go on behind it",
    "Send the event as its encoder wrote it.",
);
const NOT_DETERMINISTIC: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-02",
    "EventNotDeterministic",
    "an event is not in the deterministic form of CBOR",
    "Write shortest heads and floats, definite lengths, and keys in ascending order.",
);
const MISSING: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-03",
    "EventFieldMissing",
    "an event has no field that its action or content needs",
    "See spec/event.md for the fields of each action.",
);
const FIELD: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-04",
    "EventField",
    "a field of an event has a wrong type, length or range",
    "See spec/event.md for the type and the bounds of each field.",
);
const TOO_MANY: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-05",
    "EventTooMany",
    "an event has more elements in a list than a limit allows",
    "Send several events.",
);
const CONTENT_UNKNOWN: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-06",
    "EventContentUnknown",
    "an event has content of a kind that this version does not know",
    "Show that there is a message that a newer version can read.",
);
const ACTION_UNKNOWN: ErrorInfo = ErrorInfo::new(
    "SL-EVENT-07",
    "EventActionUnknown",
    "an action that this version does not know cannot be written",
    "Pass the event on as the bytes that it came in.",
);
