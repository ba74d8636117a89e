use std::io;
use std::path::PathBuf;

use sealane_frame::FrameError;
use sealane_message::ErrorInfo;
use sealane_seal::Error as SealError;

use crate::Document;

/// Why a key, a group, or an order was refused. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder has no identity yet.
    #[error("{} holds no identity", .0.display())]
    NoIdentity(PathBuf),
    /// An identity is there already; it is never overwritten.
    #[error("{} holds an identity already", .0.display())]
    IdentityExists(PathBuf),
    /// A file or folder could not be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Others than the owner may read or write a file that holds secrets.
    #[error("{} can be read or written by others than its owner", .0.display())]
    Exposed(PathBuf),
    /// A file's checksum or form is wrong.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// Bytes that are no such document, or were cut or changed.
    #[error("this is no well-formed {0}")]
    Malformed(Document),
    /// A document of a later version of this software.
    #[error("the {document} has version {version}, and this program reads version 1")]
    NewerVersion {
        /// What it is.
        document: Document,
        /// Its version.
        version: u8,
    },
    /// A passphrase is needed and none was given.
    #[error("the keys are protected by a passphrase, and none was given")]
    PassphraseMissing,
    /// The passphrase is wrong, or the file that it protects was changed.
    #[error("the passphrase does not open the keys")]
    PassphraseWrong,
    /// Peer's fault: one of a document's signatures does not verify.
    #[error("a signature of the {0} does not verify")]
    Signature(Document),
    /// Peer's fault: what was encrypted to this identity does not open.
    #[error("the {0} does not open with this identity")]
    NotForUs(Document),
    /// The invitation's card was not made here, or was used up.
    #[error("the invitation answers a card that is not waiting in this folder")]
    UnknownCard,
    /// A folder that was copied or restored.
    #[error("{} was copied or restored: it may be in use elsewhere", .0.display())]
    Elsewhere(PathBuf),
    /// The file system does not tell when a file was made.
    #[error("the file system of {} does not tell when a file was made", .0.display())]
    NoWitness(PathBuf),
    /// No group of that name is in the folder.
    #[error("there is no group `{0}`")]
    UnknownGroup(String),
    /// Another group of that name is in the folder.
    #[error("there is a group `{0}` already")]
    GroupExists(String),
    /// No member has that name, slot or key.
    #[error("the group has no member `{0}`")]
    UnknownMember(String),
    /// A name that cannot be one.
    #[error("`{0}` cannot be a name")]
    Name(String),
    /// All slots of the group were given.
    #[error("all slots of the group were given")]
    RosterFull,
    /// Only the group's authority can do that.
    #[error("this identity is not the authority of the group")]
    NotAuthority,
    /// Peer's fault: an order that the authority did not give.
    #[error("slot {0} is not the authority's, and gave an order")]
    Unauthorized(u16),
    /// Orders before this one have not arrived.
    #[error("an earlier order of the authority is missing")]
    OrderMissing,
    /// The order names a certificate that has not arrived.
    #[error("the certificate that the order names has not arrived")]
    CertificateMissing,
    /// The authority has removed this member.
    #[error("this member was removed from the group")]
    Removed,
    /// Something of another group.
    #[error("the {0} belongs to another group")]
    OtherGroup(Document),
    /// The authority is not the one that was expected.
    #[error("the authority's fingerprint is {0}, which is not the expected one")]
    OtherAuthority(String),
    /// A text that is no public key.
    #[error("the text is no public key of Sealane")]
    KeyText,
    /// What was asked for contradicts itself or the group.
    #[error("{0}")]
    Refused(&'static str),
    /// The frame of an order.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The seal.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A library of cryptography failed, which a correct build never sees.
    #[error("the library of cryptography failed")]
    Cipher,
}

/// The meaning of every code of this crate.
pub const ERRORS: &[ErrorInfo] = &[
    NO_IDENTITY,
    IDENTITY_EXISTS,
    IO,
    EXPOSED,
    DAMAGED,
    MALFORMED,
    NEWER_VERSION,
    PASSPHRASE_MISSING,
    PASSPHRASE_WRONG,
    SIGNATURE,
    NOT_FOR_US,
    UNKNOWN_CARD,
    ELSEWHERE,
    NO_WITNESS,
    UNKNOWN_GROUP,
    GROUP_EXISTS,
    UNKNOWN_MEMBER,
    NAME,
    ROSTER_FULL,
    NOT_AUTHORITY,
    UNAUTHORIZED,
    ORDER_MISSING,
    CERTIFICATE_MISSING,
    REMOVED,
    OTHER_GROUP,
    OTHER_AUTHORITY,
    KEY_TEXT,
    REFUSED,
    CIPHER,
];

const NO_IDENTITY: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-01",
    "NoIdentity",
    "the key folder holds no identity",
    "Make one with `sealane key new`, or bring one back with `sealane key restore FILE`.",
);
const IDENTITY_EXISTS: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-02",
    "IdentityExists",
    "the key folder holds an identity already",
    "Name another folder with --keys; an identity is never overwritten.",
);
const IO: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-03",
    "KeyFile",
    "a file of the key folder cannot be read or written",
    "Check the path, its owner, and that the disk has room.",
);
const EXPOSED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-04",
    "ExposedFile",
    "others than the owner may read or write a secret file",
    "Run `chmod -R go-rwx` on the key folder; if others had access, make new keys.",
);
const DAMAGED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-05",
    "DamagedFile",
    "a file of the key folder is damaged",
    "Bring the identity back from a backup, and ask the authority for a new invitation.",
);
const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-06",
    "MalformedDocument",
    "a card, invitation, order or file is malformed",
    "It was cut or changed on its way, or is something else; ask for it again.",
);
const NEWER_VERSION: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-07",
    "NewerVersion",
    "a document is of a later version of Sealane",
    "Update this program.",
);
const PASSPHRASE_MISSING: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-08",
    "PassphraseMissing",
    "the keys need a passphrase",
    "Use a terminal, --passphrase-file FILE, or the variable SEALANE_PASSPHRASE.",
);
const PASSPHRASE_WRONG: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-09",
    "PassphraseWrong",
    "the passphrase does not open the keys",
    "Try again; without the passphrase the keys are lost, and only a new identity helps.",
);
const SIGNATURE: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-10",
    "DocumentSignature",
    "a signature of a document does not verify",
    "It was changed or forged, or made by another authority; ask for it over another way.",
);
const NOT_FOR_US: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-11",
    "NotForUs",
    "a document was encrypted to somebody else, or changed",
    "Give the sender this folder's card: `sealane key card`.",
);
const UNKNOWN_CARD: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-12",
    "UnknownCard",
    "an invitation answers no card that waits here",
    "Make a new card with `sealane key card` and have it invited; a card joins once.",
);
const ELSEWHERE: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-13",
    "CopiedFolder",
    "a key folder was copied or restored",
    "Take a new slot: `sealane key card`, invite, join; an authority runs `group renew`.",
);
const NO_WITNESS: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-14",
    "NoWitness",
    "the file system does not tell when a file was made",
    "Keep the key folder on ext4, XFS, Btrfs, APFS or tmpfs.",
);
const UNKNOWN_GROUP: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-15",
    "UnknownGroup",
    "there is no group of that name",
    "`sealane group ls` lists the groups of the key folder.",
);
const GROUP_EXISTS: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-16",
    "GroupExists",
    "there is a group of that name already",
    "Choose another name; `join` takes --as NAME.",
);
const UNKNOWN_MEMBER: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-17",
    "UnknownMember",
    "the group has no such member",
    "`sealane group show GROUP` lists names, slots and fingerprints.",
);
const NAME: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-18",
    "InvalidName",
    "a text cannot be a name",
    "Names have 1 to 64 bytes; those of groups a-z, 0-9, `-`, `_` and `.`, first a letter.",
);
const ROSTER_FULL: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-19",
    "RosterFull",
    "all slots of the group were given",
    "Make a new group: slots are not given again, and a pair has two.",
);
const NOT_AUTHORITY: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-20",
    "NotAuthority",
    "only the group's authority can do that",
    "Use the key folder in which the group was made.",
);
const UNAUTHORIZED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-21",
    "UnauthorizedOrder",
    "an order is not the authority's",
    "Drop it; a member tries to act as the authority.",
);
const ORDER_MISSING: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-22",
    "OrderMissing",
    "an earlier order of the authority is missing",
    "Read the group's orders from their beginning, or ask for a new invitation.",
);
const CERTIFICATE_MISSING: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-23",
    "CertificateMissing",
    "a certificate has not arrived",
    "Read the group's orders from their beginning; certificates come before admissions.",
);
const REMOVED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-24",
    "RemovedMember",
    "this member was removed from the group",
    "Ask the authority; a new card and invitation give a new slot.",
);
const OTHER_GROUP: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-25",
    "OtherGroup",
    "a document belongs to another group",
    "Name the group that it was made for.",
);
const OTHER_AUTHORITY: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-26",
    "OtherAuthority",
    "the authority is not the expected one",
    "Compare fingerprints over another way; do not join if they differ.",
);
const KEY_TEXT: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-27",
    "KeyText",
    "a text is no public key",
    "A public key is one line that begins with `sealane1`; copy it whole.",
);
const REFUSED: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-28",
    "GroupRefused",
    "what was asked for does not fit the group",
    "The message says why.",
);
const CIPHER: ErrorInfo = ErrorInfo::new(
    "SL-GROUP-29",
    "GroupCipher",
    "a library of cryptography failed",
    "Report it; nothing was changed.",
);

impl Error {
    /// The stable code, cause and hint.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            Error::NoIdentity(_) => &NO_IDENTITY,
            Error::IdentityExists(_) => &IDENTITY_EXISTS,
            Error::Io { .. } => &IO,
            Error::Exposed(_) => &EXPOSED,
            Error::Damaged(_) => &DAMAGED,
            Error::Malformed(_) => &MALFORMED,
            Error::NewerVersion { .. } => &NEWER_VERSION,
            Error::PassphraseMissing => &PASSPHRASE_MISSING,
            Error::PassphraseWrong => &PASSPHRASE_WRONG,
            Error::Signature(_) => &SIGNATURE,
            Error::NotForUs(_) => &NOT_FOR_US,
            Error::UnknownCard => &UNKNOWN_CARD,
            Error::Elsewhere(_) => &ELSEWHERE,
            Error::NoWitness(_) => &NO_WITNESS,
            Error::UnknownGroup(_) => &UNKNOWN_GROUP,
            Error::GroupExists(_) => &GROUP_EXISTS,
            Error::UnknownMember(_) => &UNKNOWN_MEMBER,
            Error::Name(_) => &NAME,
            Error::RosterFull => &ROSTER_FULL,
            Error::NotAuthority => &NOT_AUTHORITY,
            Error::Unauthorized(_) => &UNAUTHORIZED,
            Error::OrderMissing => &ORDER_MISSING,
            Error::CertificateMissing => &CERTIFICATE_MISSING,
            Error::Removed => &REMOVED,
            Error::OtherGroup(_) => &OTHER_GROUP,
            Error::OtherAuthority(_) => &OTHER_AUTHORITY,
            Error::KeyText => &KEY_TEXT,
            Error::Refused(_) => &REFUSED,
            Error::Frame(error) => error.info(),
            Error::Seal(error) => error.info(),
            Error::Cipher => &CIPHER,
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |cause| Error::Io { path, cause }
    }
}
