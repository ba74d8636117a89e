use sealane_message::ErrorInfo;

/// Why bytes are not a frame, or a frame cannot be sent on, split, joined or put in another form.
///
/// [`FrameError::NoRoom`], [`FrameError::BodyTooLong`], [`FrameError::Unsplittable`] and
/// [`FrameError::NoCompactForm`] are the caller's fault; the others are the peer's, or damage on
/// the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Fewer bytes than the header announces.
    #[error("the frame ends before its header does")]
    TooShort,
    /// A version that this program does not speak.
    #[error("a frame of an unknown version")]
    UnknownVersion,
    /// A kind that this version does not have.
    #[error("a frame of an unknown kind")]
    UnknownKind,
    /// A spare byte, a spare flag or a compression without meaning is not zero.
    #[error("bits of the header that must be zero are not")]
    ReservedBits,
    /// The header's body length is not what the frame holds.
    #[error("the frame's length is not what its header says")]
    LengthMismatch,
    /// The body is longer than [`crate::limits::MAX_FRAME_BODY_BYTES`].
    #[error("the body is too long")]
    BodyTooLong,
    /// The SFrame header is not in its shortest form or has a key id that no sender has.
    #[error("the SFrame header is malformed")]
    BadSealHeader,
    /// Class or sequence of the header differ from key id and counter of the SFrame header.
    #[error("class or sequence of the two headers differ")]
    HeadersDisagree,
    /// Another hop was to take this frame.
    #[error("the frame's next hop is somebody else")]
    NotForUs,
    /// The frame has made all its hops.
    #[error("the frame may not travel further")]
    HopLimitSpent,
    /// The full header holds what the compact form does not carry.
    #[error("the frame has no compact form on this link")]
    NoCompactForm,
    /// The connection has not defined this dictionary byte.
    #[error("a dictionary byte that was not defined")]
    UnknownEntry,
    /// The dictionary byte stands for something else already.
    #[error("a dictionary byte was defined twice")]
    EntryConflict,
    /// No member of the group has this slot, as far as the link knows.
    #[error("a slot of which the member is not known")]
    UnknownSource,
    /// The frame fits whole, or would need too many fragments.
    #[error("the frame cannot be split so")]
    Unsplittable,
    /// A fragment whose place is outside of its frame.
    #[error("a fragment that does not fit its frame")]
    BadFragment,
    /// Fragments of two frames under one id.
    #[error("a fragment of another frame of the same id")]
    MixedFragments,
    /// The same part came twice with different bytes.
    #[error("a fragment that differs from its first copy")]
    FragmentConflict,
    /// More peers send fragments than [`crate::limits::MAX_PARTIAL_PEERS`].
    #[error("too many peers send fragments")]
    TooManyPeers,
    /// A batch whose lengths do not fill it, or that holds a batch.
    #[error("a malformed batch")]
    BadBatch,
    /// The buffer or ring has no room for the frame.
    #[error("no room for the frame")]
    NoRoom,
    /// The seal was refused, or could not be made.
    #[error(transparent)]
    Seal(#[from] sealane_seal::Error),
}

/// The meaning of every code of this crate.
pub const ERRORS: &[ErrorInfo] = &[
    TOO_SHORT,
    UNKNOWN_VERSION,
    UNKNOWN_KIND,
    RESERVED_BITS,
    LENGTH_MISMATCH,
    BODY_TOO_LONG,
    BAD_SEAL_HEADER,
    HEADERS_DISAGREE,
    NOT_FOR_US,
    HOP_LIMIT_SPENT,
    NO_COMPACT_FORM,
    UNKNOWN_ENTRY,
    ENTRY_CONFLICT,
    UNKNOWN_SOURCE,
    UNSPLITTABLE,
    BAD_FRAGMENT,
    MIXED_FRAGMENTS,
    FRAGMENT_CONFLICT,
    TOO_MANY_PEERS,
    BAD_BATCH,
    NO_ROOM,
];

impl FrameError {
    /// The stable code, the name on the wire, and what to do about it. A refused seal keeps its
    /// own.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            FrameError::TooShort => &TOO_SHORT,
            FrameError::UnknownVersion => &UNKNOWN_VERSION,
            FrameError::UnknownKind => &UNKNOWN_KIND,
            FrameError::ReservedBits => &RESERVED_BITS,
            FrameError::LengthMismatch => &LENGTH_MISMATCH,
            FrameError::BodyTooLong => &BODY_TOO_LONG,
            FrameError::BadSealHeader => &BAD_SEAL_HEADER,
            FrameError::HeadersDisagree => &HEADERS_DISAGREE,
            FrameError::NotForUs => &NOT_FOR_US,
            FrameError::HopLimitSpent => &HOP_LIMIT_SPENT,
            FrameError::NoCompactForm => &NO_COMPACT_FORM,
            FrameError::UnknownEntry => &UNKNOWN_ENTRY,
            FrameError::EntryConflict => &ENTRY_CONFLICT,
            FrameError::UnknownSource => &UNKNOWN_SOURCE,
            FrameError::Unsplittable => &UNSPLITTABLE,
            FrameError::BadFragment => &BAD_FRAGMENT,
            FrameError::MixedFragments => &MIXED_FRAGMENTS,
            FrameError::FragmentConflict => &FRAGMENT_CONFLICT,
            FrameError::TooManyPeers => &TOO_MANY_PEERS,
            FrameError::BadBatch => &BAD_BATCH,
            FrameError::NoRoom => &NO_ROOM,
            FrameError::Seal(error) => error.info(),
        }
    }
}

const TOO_SHORT: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-01",
    "FrameTooShort",
    "the bytes end before the frame does",
    "Hand over each frame whole; split what a link cannot carry at once into fragments.",
);
const UNKNOWN_VERSION: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-02",
    "UnknownFrameVersion",
    "the frame's version is not one that this program speaks",
    "Update this node, or check that the bytes are a frame in the form of this link.",
);
const UNKNOWN_KIND: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-03",
    "UnknownFrameKind",
    "the frame's kind is not one of this version",
    "Check that the bytes are a frame in the form of this link.",
);
const RESERVED_BITS: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-04",
    "ReservedBits",
    "bits of the header that must be zero are not",
    "Check the sender; these bits are kept for later versions.",
);
const LENGTH_MISMATCH: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-05",
    "FrameLengthMismatch",
    "the frame is longer or shorter than its header says",
    "Look for a link that cuts or pads frames.",
);
const BODY_TOO_LONG: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-06",
    "BodyTooLong",
    "the body is longer than MAX_FRAME_BODY_BYTES",
    "Carry large bodies as several messages, or by reference to an object.",
);
const BAD_SEAL_HEADER: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-07",
    "BadSealHeader",
    "the SFrame header is not in its shortest form or its key id is out of range",
    "Check that the sender writes RFC 9605 headers with the key ids of this system.",
);
const HEADERS_DISAGREE: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-08",
    "HeadersDisagree",
    "class or sequence of the frame differ from key id and counter of its seal",
    "The frame was altered on its way, or its sender is faulty.",
);
const NOT_FOR_US: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-09",
    "NotForUs",
    "the frame's next hop is another node",
    "Nothing to do: a shared medium lets a node hear the frames of others.",
);
const HOP_LIMIT_SPENT: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-10",
    "HopLimitSpent",
    "the frame has made as many hops as it may",
    "Look for a loop, or raise the sender's hop limit up to MAX_HOP_LIMIT.",
);
const NO_COMPACT_FORM: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-11",
    "NoCompactForm",
    "the frame holds what the compact form of this link does not carry",
    "Withhold the time, define the dictionary byte and the member's slot, or use the full form.",
);
const UNKNOWN_ENTRY: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-12",
    "UnknownEntry",
    "the frame uses a dictionary byte that this connection has not defined",
    "Define dictionary bytes before they are used; a new connection begins with none.",
);
const ENTRY_CONFLICT: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-13",
    "EntryConflict",
    "a dictionary byte was defined again with another meaning",
    "Take a free byte, or open a new connection.",
);
const UNKNOWN_SOURCE: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-14",
    "UnknownSource",
    "the member of a slot is not known on this link",
    "Take over the group's current roster.",
);
const UNSPLITTABLE: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-15",
    "Unsplittable",
    "the frame fits whole or would need more than MAX_FRAGMENTS fragments",
    "Send what fits as it is, and large frames over links that carry more at once.",
);
const BAD_FRAGMENT: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-16",
    "BadFragment",
    "a fragment's place lies outside of its frame",
    "Check that all fragments but the last have one length.",
);
const MIXED_FRAGMENTS: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-17",
    "MixedFragments",
    "fragments of two frames came under one id",
    "Let each sender count its ids up; the frame that was begun first is kept.",
);
const FRAGMENT_CONFLICT: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-18",
    "FragmentConflict",
    "a fragment came again with other bytes",
    "Somebody sends in the name of this peer, or its fragments are damaged; the first is kept.",
);
const TOO_MANY_PEERS: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-19",
    "TooManyPeers",
    "more peers send fragments at once than MAX_PARTIAL_PEERS",
    "Wait: frames that stay incomplete are given up after MAX_PARTIAL_AGE_MS.",
);
const BAD_BATCH: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-20",
    "BadBatch",
    "the lengths of a batch do not fill it or it holds what may not be batched",
    "Put frames and fragments of 1 to MAX_BATCHED_BYTES bytes into a batch, and no batch.",
);
const NO_ROOM: ErrorInfo = ErrorInfo::new(
    "SL-FRAME-21",
    "NoRoom",
    "the buffer or ring has no room for the frame",
    "Release frames that were sent, or make the slots larger.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_names_are_unique() {
        for (index, row) in ERRORS.iter().enumerate() {
            assert_eq!(row.code, format!("SL-FRAME-{:02}", index + 1));
            assert!(ERRORS[..index].iter().all(|other| other.name != row.name));
        }
    }
}
