use crate::Codec;
use crate::DatumKind;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why bytes are not a datum, or not one that every codec can carry. `at` is a byte offset into
    /// the input.
    ///
    /// All but [`CodecError::UnknownCodec`] are the fault of whoever wrote the bytes.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CodecError {
        /// The bytes break the codec's grammar.
        #[error("malformed {} at byte {at}", codec.name())]
        #[code("SL-CODEC-01", "Malformed")]
        #[cause("the bytes are not a datum of the codec that was agreed")]
        #[hint("Check that the sender speaks the codec that the connection or Content-Type names.")]
        Malformed {
            /// The codec whose grammar is broken.
            codec: Codec,
            /// Where.
            at: usize,
        },
        /// The input ends inside a datum, or a length claims more than there is.
        #[error("the input ends inside the datum that stands at byte {at}")]
        #[code("SL-CODEC-02", "Truncated")]
        #[cause("the bytes end inside a datum")]
        #[hint("Send each datum whole; a length that claims more than follows is refused at once.")]
        Truncated {
            /// Where the unfinished part begins.
            at: usize,
        },
        /// Bytes follow the datum.
        #[error("bytes follow the datum at byte {at}")]
        #[code("SL-CODEC-03", "TrailingBytes")]
        #[cause("bytes follow the datum")]
        #[hint("Send one datum per frame or body.")]
        Trailing {
            /// Where the first of them stands.
            at: usize,
        },
        /// Arrays and maps nest deeper than [`crate::limits::MAX_DEPTH`].
        #[error("nested too deep at byte {at}")]
        #[code("SL-CODEC-04", "TooDeep")]
        #[cause("arrays and maps nest deeper than MAX_DEPTH")]
        #[hint("Flatten the message, or carry the deep part as bytes.")]
        TooDeep {
            /// The container beyond the limit.
            at: usize,
        },
        /// More values than [`crate::limits::MAX_VALUES`], or more bytes than can be
        /// addressed.
        #[error("too many values or bytes at byte {at}")]
        #[code("SL-CODEC-05", "TooLarge")]
        #[cause("the datum has more values than MAX_VALUES, or expands beyond MAX_EXPANDED_BYTES")]
        #[hint("Split the message, or carry the large part as bytes.")]
        TooLarge {
            /// The first value beyond the limit.
            at: usize,
        },
        /// Text is not UTF-8, or an escape names half a surrogate pair.
        #[error("text that is not Unicode at byte {at}")]
        #[code("SL-CODEC-06", "NotUnicode")]
        #[cause("text is not UTF-8 or names half a surrogate pair")]
        #[hint("Send arbitrary bytes as bytes: bin in MessagePack, a byte string in CBOR, \
                base64url in JSON.")]
        NotUnicode {
            /// The text.
            at: usize,
        },
        /// A map has the same key twice.
        #[error("a map ends at byte {at} that has the same key twice")]
        #[code("SL-CODEC-07", "DuplicateKey")]
        #[cause("a map has the same key twice")]
        #[hint("Send each key once; readers of other languages would each keep another value.")]
        DuplicateKey {
            /// The end of that map.
            at: usize,
        },
        /// A map key is not text.
        #[error("a map key that is not text at byte {at}")]
        #[code("SL-CODEC-08", "KeyNotText")]
        #[cause("a map key is not text")]
        #[hint("Write integer keys as text, since JSON has no other keys.")]
        KeyNotText {
            /// The key.
            at: usize,
        },
        /// An integer below `i64::MIN` or above `u64::MAX`.
        #[error("an integer outside 64 bits at byte {at}")]
        #[code("SL-CODEC-09", "IntegerRange")]
        #[cause("an integer is below -2^63 or above 2^64 - 1")]
        #[hint("Send it as text, bytes or a float.")]
        IntegerRange {
            /// The integer.
            at: usize,
        },
        /// A float that is infinite or not a number.
        #[error("a float that is not finite at byte {at}")]
        #[code("SL-CODEC-10", "NotFinite")]
        #[cause("a float is infinite or not a number")]
        #[hint("Send null, since JSON cannot carry it.")]
        NotFinite {
            /// The float.
            at: usize,
        },
        /// A tag, extension type, undefined or other simple value: no other codec could carry it.
        #[error("a tag, extension or simple value at byte {at}")]
        #[code("SL-CODEC-11", "Extension")]
        #[cause("a tag, extension type, undefined or simple value cannot be carried by every \
                 codec")]
        #[hint("Send dates as text or numbers and other types as maps; in JavaScript no Date, Set, \
                undefined.")]
        Extension {
            /// The item.
            at: usize,
        },
        /// A record whose structure this connection has not defined.
        #[error("a record of unknown structure at byte {at}")]
        #[code("SL-CODEC-12", "UnknownRecord")]
        #[cause("a record refers to a structure that this connection has not defined")]
        #[hint("Use one encoder per connection and send its output in order; integers 64 to 127 \
                take 2 bytes.")]
        UnknownRecord {
            /// The record.
            at: usize,
        },
        /// A record structure that is no list of text keys or exceeds a limit of the dictionary.
        #[error("a record structure that cannot be kept at byte {at}")]
        #[code("SL-CODEC-13", "RecordStructure")]
        #[cause("a record structure is not a list of text keys or exceeds MAX_RECORDS or \
                 MAX_RECORD_KEYS")]
        #[hint("Lower msgpackr's maxSharedStructures to 32, or send wide maps as plain maps.")]
        RecordStructure {
            /// The definition.
            at: usize,
        },
        /// The datum is of another kind than the reader asked for.
        #[error("expected {}", expected.name())]
        #[code("SL-CODEC-14", "WrongKind")]
        #[cause("a value is of another kind than the field needs")]
        #[hint("See the field's type in the specification of the protocol.")]
        WrongKind {
            /// The kind that was asked for.
            expected: DatumKind,
        },
        /// No codec of that name or type is known, or none was acceptable.
        #[error(transparent)]
        #[code("SL-CODEC-15", "UnknownCodec")]
        #[cause("no codec that both sides know was named")]
        #[hint("Name one of json, msgpack, cbor, msgpack-records.")]
        UnknownCodec(#[from] crate::negotiate::Unknown),
    }
}

impl CodecError {
    /// The same cause at another place, for those that the tape finds.
    pub(crate) fn found_at(self, at: usize) -> Self {
        match self {
            CodecError::TooDeep { .. } => CodecError::TooDeep { at },
            CodecError::TooLarge { .. } => CodecError::TooLarge { at },
            CodecError::DuplicateKey { .. } => CodecError::DuplicateKey { at },
            cause => cause,
        }
    }
}
