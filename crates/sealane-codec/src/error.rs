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
        #[cause("the bytes are not one whole datum of the codec that was agreed")]
        #[hint("Check that the sender speaks the codec that the connection or Content-Type \
                names, and sends each datum whole and alone.")]
        Malformed {
            /// The codec whose grammar is broken.
            codec: Codec,
            /// Where.
            at: usize,
        },
        /// The input ends inside a datum, or a length claims more than there is.
        #[error("the input ends inside the datum that stands at byte {at}")]
        #[same_as(Malformed)]
        Truncated {
            /// Where the unfinished part begins.
            at: usize,
        },
        /// Bytes follow the datum.
        #[error("bytes follow the datum at byte {at}")]
        #[same_as(Malformed)]
        Trailing {
            /// Where the first of them stands.
            at: usize,
        },
        /// Arrays and maps nest deeper than [`crate::limits::MAX_DEPTH`].
        #[error("nested too deep at byte {at}")]
        #[same_as(TooLarge)]
        TooDeep {
            /// The container beyond the limit.
            at: usize,
        },
        /// More values than [`crate::limits::MAX_VALUES`], or more bytes than can be
        /// addressed.
        #[error("too many values or bytes at byte {at}")]
        #[code("SL-CODEC-05", "DatumTooLarge")]
        #[cause("the datum nests deeper than MAX_DEPTH, has more values than MAX_VALUES, or \
                 expands beyond MAX_EXPANDED_BYTES")]
        #[hint("Split or flatten the message, or carry the large or deep part as bytes.")]
        TooLarge {
            /// The first value beyond the limit.
            at: usize,
        },
        /// Text is not UTF-8, or an escape names half a surrogate pair.
        #[error("text that is not Unicode at byte {at}")]
        #[same_as(Extension)]
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
        #[same_as(Extension)]
        KeyNotText {
            /// The key.
            at: usize,
        },
        /// An integer below `i64::MIN` or above `u64::MAX`.
        #[error("an integer outside 64 bits at byte {at}")]
        #[same_as(Extension)]
        IntegerRange {
            /// The integer.
            at: usize,
        },
        /// A float that is infinite or not a number.
        #[error("a float that is not finite at byte {at}")]
        #[same_as(Extension)]
        NotFinite {
            /// The float.
            at: usize,
        },
        /// A tag, extension type, undefined or other simple value: no other codec could carry it.
        #[error("a tag, extension or simple value at byte {at}")]
        #[code("SL-CODEC-11", "OutsideModel")]
        #[cause("a value is outside the data model that all codecs share")]
        #[hint("Keys and dates are text, bytes are bytes (bin, a byte string, base64url in JSON), \
                integers have 64 bits, floats are finite; there are no tags and no undefined.")]
        Extension {
            /// The item.
            at: usize,
        },
        /// A record whose structure this connection has not defined.
        #[error("a record of unknown structure at byte {at}")]
        #[code("SL-CODEC-12", "RecordDictionary")]
        #[cause("a record refers to a structure that this connection has not defined, or defines \
                 one that cannot be kept")]
        #[hint("Use one encoder per connection and send its output in order. Lower msgpackr's \
                maxSharedStructures to 32; integers 64 to 127 take 2 bytes.")]
        UnknownRecord {
            /// The record.
            at: usize,
        },
        /// A record structure that is no list of text keys or exceeds a limit of the dictionary.
        #[error("a record structure that cannot be kept at byte {at}")]
        #[same_as(UnknownRecord)]
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
        #[code("SL-CODEC-15", "NoCommonCodec")]
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
