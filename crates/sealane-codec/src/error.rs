use sealane_message::ErrorInfo;

use crate::Codec;
use crate::Kind;

/// Why bytes are not a datum, or not one that every codec can carry. `at` is a byte offset into
/// the input.
///
/// All but [`CodecError::UnknownCodec`] are the fault of whoever wrote the bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes break the codec's grammar.
    #[error("malformed {} at byte {at}", codec.name())]
    Malformed {
        /// The codec whose grammar is broken.
        codec: Codec,
        /// Where.
        at: usize,
    },
    /// The input ends inside a datum, or a length claims more than there is.
    #[error("the input ends inside the datum that stands at byte {at}")]
    Truncated {
        /// Where the unfinished part begins.
        at: usize,
    },
    /// Bytes follow the datum.
    #[error("bytes follow the datum at byte {at}")]
    Trailing {
        /// Where the first of them stands.
        at: usize,
    },
    /// Arrays and maps nest deeper than [`sealane_message::limits::MAX_DEPTH`].
    #[error("nested too deep at byte {at}")]
    TooDeep {
        /// The container beyond the limit.
        at: usize,
    },
    /// More values than [`sealane_message::limits::MAX_VALUES`], or more bytes than can be
    /// addressed.
    #[error("too many values or bytes at byte {at}")]
    TooLarge {
        /// The first value beyond the limit.
        at: usize,
    },
    /// Text is not UTF-8, or an escape names half a surrogate pair.
    #[error("text that is not Unicode at byte {at}")]
    NotUnicode {
        /// The text.
        at: usize,
    },
    /// A map has the same key twice.
    #[error("a map ends at byte {at} that has the same key twice")]
    DuplicateKey {
        /// The end of that map.
        at: usize,
    },
    /// A map key is not text.
    #[error("a map key that is not text at byte {at}")]
    KeyNotText {
        /// The key.
        at: usize,
    },
    /// An integer below `i64::MIN` or above `u64::MAX`.
    #[error("an integer outside 64 bits at byte {at}")]
    IntegerRange {
        /// The integer.
        at: usize,
    },
    /// A float that is infinite or not a number.
    #[error("a float that is not finite at byte {at}")]
    NotFinite {
        /// The float.
        at: usize,
    },
    /// A tag, extension type, undefined or other simple value: no other codec could carry it.
    #[error("a tag, extension or simple value at byte {at}")]
    Extension {
        /// The item.
        at: usize,
    },
    /// A record whose structure this connection has not defined.
    #[error("a record of unknown structure at byte {at}")]
    UnknownRecord {
        /// The record.
        at: usize,
    },
    /// A record structure that is no list of text keys or exceeds a limit of the dictionary.
    #[error("a record structure that cannot be kept at byte {at}")]
    RecordStructure {
        /// The definition.
        at: usize,
    },
    /// The datum is of another kind than the reader asked for.
    #[error("expected {}", expected.name())]
    WrongKind {
        /// What was asked for.
        expected: Kind,
    },
    /// No codec of that name or type is known, or none was acceptable.
    #[error(transparent)]
    UnknownCodec(#[from] crate::negotiate::Unknown),
}

/// The meaning of every code of this crate.
pub const ERRORS: &[ErrorInfo] = &[
    MALFORMED,
    TRUNCATED,
    TRAILING,
    TOO_DEEP,
    TOO_LARGE,
    NOT_UNICODE,
    DUPLICATE_KEY,
    KEY_NOT_TEXT,
    INTEGER_RANGE,
    NOT_FINITE,
    EXTENSION,
    UNKNOWN_RECORD,
    RECORD_STRUCTURE,
    WRONG_KIND,
    UNKNOWN_CODEC,
];

impl CodecError {
    /// The stable code, the name on the wire, and what to do about it.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            CodecError::Malformed { .. } => &MALFORMED,
            CodecError::Truncated { .. } => &TRUNCATED,
            CodecError::Trailing { .. } => &TRAILING,
            CodecError::TooDeep { .. } => &TOO_DEEP,
            CodecError::TooLarge { .. } => &TOO_LARGE,
            CodecError::NotUnicode { .. } => &NOT_UNICODE,
            CodecError::DuplicateKey { .. } => &DUPLICATE_KEY,
            CodecError::KeyNotText { .. } => &KEY_NOT_TEXT,
            CodecError::IntegerRange { .. } => &INTEGER_RANGE,
            CodecError::NotFinite { .. } => &NOT_FINITE,
            CodecError::Extension { .. } => &EXTENSION,
            CodecError::UnknownRecord { .. } => &UNKNOWN_RECORD,
            CodecError::RecordStructure { .. } => &RECORD_STRUCTURE,
            CodecError::WrongKind { .. } => &WRONG_KIND,
            CodecError::UnknownCodec(_) => &UNKNOWN_CODEC,
        }
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

const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-01",
    "Malformed",
    "the bytes are not a datum of the codec that was agreed",
    "Check that the sender speaks the codec that the connection or Content-Type names.",
);
const TRUNCATED: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-02",
    "Truncated",
    "the bytes end inside a datum",
    "Send each datum whole; a length that claims more than follows is refused at once.",
);
const TRAILING: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-03",
    "TrailingBytes",
    "bytes follow the datum",
    "Send one datum per frame or body.",
);
const TOO_DEEP: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-04",
    "TooDeep",
    "arrays and maps nest deeper than MAX_DEPTH",
    "Flatten the message, or carry the deep part as bytes.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-05",
    "TooLarge",
    "the datum has more values than MAX_VALUES, or expands beyond MAX_REQUEST_BYTES",
    "Split the message, or carry the large part as bytes.",
);
const NOT_UNICODE: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-06",
    "NotUnicode",
    "text is not UTF-8 or names half a surrogate pair",
    "Send arbitrary bytes as bytes: bin in MessagePack, a byte string in CBOR, base64url in JSON.",
);
const DUPLICATE_KEY: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-07",
    "DuplicateKey",
    "a map has the same key twice",
    "Send each key once; readers of other languages would each keep another value.",
);
const KEY_NOT_TEXT: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-08",
    "KeyNotText",
    "a map key is not text",
    "Write integer keys as text, since JSON has no other keys.",
);
const INTEGER_RANGE: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-09",
    "IntegerRange",
    "an integer is below -2^63 or above 2^64 - 1",
    "Send it as text, bytes or a float.",
);
const NOT_FINITE: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-10",
    "NotFinite",
    "a float is infinite or not a number",
    "Send null, since JSON cannot carry it.",
);
const EXTENSION: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-11",
    "Extension",
    "a tag, extension type, undefined or simple value cannot be carried by every codec",
    "Send dates as text or numbers and other types as maps; in JavaScript no Date, Set, undefined.",
);
const UNKNOWN_RECORD: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-12",
    "UnknownRecord",
    "a record refers to a structure that this connection has not defined",
    "Use one encoder per connection and send its output in order; integers 64 to 127 take 2 bytes.",
);
const RECORD_STRUCTURE: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-13",
    "RecordStructure",
    "a record structure is not a list of text keys or exceeds MAX_RECORDS or MAX_RECORD_KEYS",
    "Lower msgpackr's maxSharedStructures to 32, or send wide maps as plain maps.",
);
const WRONG_KIND: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-14",
    "WrongKind",
    "a value is of another kind than the field needs",
    "See the field's type in the specification of the protocol.",
);
const UNKNOWN_CODEC: ErrorInfo = ErrorInfo::new(
    "SL-CODEC-15",
    "UnknownCodec",
    "no codec that both sides know was named",
    "Name one of json, msgpack, cbor, msgpack-records.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_names_are_unique() {
        for (index, row) in ERRORS.iter().enumerate() {
            assert_eq!(row.code, format!("SL-CODEC-{:02}", index + 1));
            assert!(ERRORS[..index].iter().all(|other| other.name != row.name));
        }
    }
}
