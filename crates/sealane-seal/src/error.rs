use sealane_message::ErrorInfo;

/// Why a message was not sealed or not opened.
///
/// Nothing that fails leaves plaintext behind: a refused body is zeroed wherever a key was applied
/// to it or was about to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Peer's fault: the SFrame header breaks the grammar of `spec/seal.md`.
    #[error("the sealed header is malformed")]
    Header,
    /// Peer's fault: fewer bytes than header and tag need.
    #[error("the sealed bytes end too early")]
    Truncated,
    /// Peer's fault: the tag does not verify. Wrong key, or a byte was changed.
    #[error("the tag does not verify")]
    NotAuthentic,
    /// Peer's fault: the tag verifies and the sender's signature does not.
    #[error("the signature does not verify")]
    Signature,
    /// Peer's fault, or a duplicate on the way: this counter was accepted before.
    #[error("the message was accepted before")]
    Replayed,
    /// Too far behind the newest counter of its sender for the window to remember.
    #[error("the counter lies behind the replay window")]
    Stale,
    /// The message's epoch is older than what may still arrive live.
    #[error("the epoch was left behind")]
    EpochPast,
    /// No secret is held for the message's epoch, and none can be ratcheted to.
    #[error("no secret is held for the epoch")]
    EpochUnknown,
    /// The class is not one that this group uses, or contradicts the layout.
    #[error("the class does not fit the group or the layout")]
    Class,
    /// Caller's fault or a stranger: no verifying key is known for the slot.
    #[error("no verifying key is known for the slot")]
    UnknownSigner,
    /// A message of the opener's own slot came back.
    #[error("a message of the own slot came back")]
    Reflected,
    /// Caller's fault: no durably reserved counter is left.
    #[error("no reserved counter is left")]
    NotReserved,
    /// The epoch's counters are used up.
    #[error("the counters of the epoch are used up")]
    CountersUsedUp,
    /// The counter state was copied or restored; its counters may be in use elsewhere.
    #[error("the counter state may be in use elsewhere")]
    ClonedState,
    /// Caller's fault: the buffer lacks head room or tail room around the body.
    #[error("the buffer has no room for header or tag")]
    NoRoom,
    /// Caller's fault: a body or authenticated header beyond its limit.
    #[error("the body or its authenticated header is too large")]
    TooLarge,
    /// Caller's fault: class S without a signing key.
    #[error("no signing key is set")]
    NoSigningKey,
    /// An order or a call that moves the epoch back, nowhere, or too far.
    #[error("the epoch cannot move there")]
    EpochStep,
    /// More epoch secrets than are kept at once.
    #[error("too many epochs are held")]
    TooManyEpochs,
    /// Bytes of a persisted state, key, or control order that are not one.
    #[error("the state or order is malformed")]
    Malformed,
    /// A control order that is not signed by the slot that may give it.
    #[error("the order is not signed by its authority")]
    NotAuthorized,
    /// The cipher library refused, which a correct build never sees.
    #[error("the cipher library failed")]
    Cipher,
}

/// The meaning of every code of this crate.
pub const ERRORS: &[ErrorInfo] = &[
    HEADER,
    TRUNCATED,
    NOT_AUTHENTIC,
    SIGNATURE,
    REPLAYED,
    STALE,
    EPOCH_PAST,
    EPOCH_UNKNOWN,
    CLASS,
    UNKNOWN_SIGNER,
    REFLECTED,
    NOT_RESERVED,
    COUNTERS_USED_UP,
    CLONED_STATE,
    NO_ROOM,
    TOO_LARGE,
    NO_SIGNING_KEY,
    EPOCH_STEP,
    TOO_MANY_EPOCHS,
    MALFORMED,
    NOT_AUTHORIZED,
    CIPHER,
];

const HEADER: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-01",
    "SealHeaderMalformed",
    "the header of a sealed message is malformed",
    "Look at the bytes with `sealane inspect`; they were cut, changed, or are no sealed message.",
);
const TRUNCATED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-02",
    "SealTruncated",
    "a sealed message ends too early",
    "Ask for the message again; the link or a fragment lost its end.",
);
const NOT_AUTHENTIC: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-03",
    "NotAuthentic",
    "the tag of a sealed message does not verify",
    "Check that both sides hold the same group, suite and epoch; if so, it was changed on its way.",
);
const SIGNATURE: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-04",
    "SignatureInvalid",
    "the signature of a sealed message does not verify",
    "Check the sender's verifying key in the roster; a member may be posing as another.",
);
const REPLAYED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-05",
    "Replayed",
    "a message was accepted before",
    "Drop it; a duplicate on the way is normal, many are an attack.",
);
const STALE: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-06",
    "BehindWindow",
    "a message lies behind the replay window of its sender",
    "Read it from the stream instead; live reading takes 1,024 messages out of order.",
);
const EPOCH_PAST: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-07",
    "EpochPast",
    "a live message is of an epoch that was left behind",
    "Let the sender catch up with the group's epoch; older messages are read from the stream.",
);
const EPOCH_UNKNOWN: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-08",
    "EpochUnknown",
    "no secret is held for the epoch of a message",
    "Catch up with the group's epochs; a forward-secret group has erased those it has read.",
);
const CLASS: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-09",
    "ClassMismatch",
    "the class of a message does not fit its group or layout",
    "Use class P in a group of two and class C in any other.",
);
const UNKNOWN_SIGNER: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-10",
    "UnknownSigner",
    "no verifying key is known for the slot of a signed message",
    "Update the roster of the group.",
);
const REFLECTED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-11",
    "Reflected",
    "a message of the own slot came back",
    "Drop it; if it was not sent from here, take a new slot.",
);
const NOT_RESERVED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-12",
    "CounterNotReserved",
    "no durably reserved counter is left",
    "Reserve the next block of counters, store it, and confirm it.",
);
const COUNTERS_USED_UP: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-13",
    "CountersUsedUp",
    "the counters of the epoch are used up",
    "Advance the group to its next epoch.",
);
const CLONED_STATE: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-14",
    "ClonedState",
    "the counter state was copied or restored and may be in use elsewhere",
    "Take a new slot in the group; the old one may not be used again in this epoch.",
);
const NO_ROOM: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-15",
    "NoRoom",
    "the buffer has no room for the header or the tag",
    "Leave `MAX_HEADER_BYTES` before the body and `tail_bytes` of its class behind it.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-16",
    "SealTooLarge",
    "a body or its authenticated header is too large to be sealed",
    "Split the message.",
);
const NO_SIGNING_KEY: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-17",
    "NoSigningKey",
    "a class S message needs a signing key and none is set",
    "Give the sealer the member's signing key.",
);
const EPOCH_STEP: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-18",
    "EpochStep",
    "an epoch cannot move back, stay, or move more than 1,024 steps",
    "Check the control order; a member further behind needs the group's secret again.",
);
const TOO_MANY_EPOCHS: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-19",
    "TooManyEpochs",
    "more epoch secrets than are held at once",
    "Forget the epochs that no stream retains any more.",
);
const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-20",
    "SealStateMalformed",
    "a persisted state, a key or a control order is malformed",
    "Restore the file it came from; do not edit it.",
);
const NOT_AUTHORIZED: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-21",
    "NotAuthorized",
    "a control order is not signed by the slot that may give it",
    "Send control orders in class S from the group's authority.",
);
const CIPHER: ErrorInfo = ErrorInfo::new(
    "SL-SEAL-22",
    "CipherFailed",
    "the cipher library failed",
    "Report it; the message was not sealed.",
);

impl Error {
    /// The stable code, cause and hint.
    pub fn info(self) -> &'static ErrorInfo {
        match self {
            Error::Header => &HEADER,
            Error::Truncated => &TRUNCATED,
            Error::NotAuthentic => &NOT_AUTHENTIC,
            Error::Signature => &SIGNATURE,
            Error::Replayed => &REPLAYED,
            Error::Stale => &STALE,
            Error::EpochPast => &EPOCH_PAST,
            Error::EpochUnknown => &EPOCH_UNKNOWN,
            Error::Class => &CLASS,
            Error::UnknownSigner => &UNKNOWN_SIGNER,
            Error::Reflected => &REFLECTED,
            Error::NotReserved => &NOT_RESERVED,
            Error::CountersUsedUp => &COUNTERS_USED_UP,
            Error::ClonedState => &CLONED_STATE,
            Error::NoRoom => &NO_ROOM,
            Error::TooLarge => &TOO_LARGE,
            Error::NoSigningKey => &NO_SIGNING_KEY,
            Error::EpochStep => &EPOCH_STEP,
            Error::TooManyEpochs => &TOO_MANY_EPOCHS,
            Error::Malformed => &MALFORMED,
            Error::NotAuthorized => &NOT_AUTHORIZED,
            Error::Cipher => &CIPHER,
        }
    }
}
