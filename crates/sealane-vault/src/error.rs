use std::io;

use sealane_message::ErrorInfo;

/// Why something was not kept, not read, or not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store cannot be reached or failed.
    #[error("the store failed at `{key}`: {cause}")]
    Store {
        /// The object's key.
        key: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The store has no room left. Nothing that was reported as kept is lost.
    #[error("the store is full (at `{key}`)")]
    StoreFull {
        /// The object's key.
        key: String,
    },
    /// An object that is referred to is not in the store.
    #[error("the object `{0}` is missing")]
    Missing(String),
    /// An object is larger than its kind may be.
    #[error("`{what}` is larger than it may be")]
    TooLarge {
        /// The object or the part of it.
        what: String,
    },
    /// An object ends before its own lengths say.
    #[error("`{0}` ends too early")]
    Truncated(String),
    /// Bytes that do not follow `spec/vault.md`.
    #[error("{what} is malformed")]
    Malformed {
        /// What was read.
        what: &'static str,
    },
    /// An object of a later version of the format.
    #[error("`{0}` is of a later version of the format")]
    Version(String),
    /// A seal that does not open: wrong key, or a byte was changed.
    #[error("{what} does not open under this vault's keys")]
    NotAuthentic {
        /// What was to be opened.
        what: String,
    },
    /// A signature that does not verify.
    #[error("the signature of `{0}` does not verify")]
    Signature(String),
    /// A file or folder of this machine.
    #[error("`{path}`: {cause}")]
    File {
        /// Its path.
        path: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The cipher, compression or randomness library refused.
    #[error("the {0} library failed")]
    Library(&'static str),
}

impl Error {
    /// A failure of the store at `key`, with a full one told apart.
    pub(crate) fn store(key: &str, cause: io::Error) -> Error {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&cause.kind()) {
            return Error::StoreFull { key: key.to_owned() };
        }
        Error::Store { key: key.to_owned(), cause }
    }

    /// A failure to read `key`, with a missing and a short object told apart.
    pub(crate) fn read(key: &str, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::NotFound => Error::Missing(key.to_owned()),
            io::ErrorKind::UnexpectedEof => Error::Truncated(key.to_owned()),
            _ => Error::store(key, cause),
        }
    }

    /// The stable code, cause and hint.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            Error::Store { .. } => &STORE,
            Error::StoreFull { .. } => &STORE_FULL,
            Error::Missing(_) => &MISSING,
            Error::TooLarge { .. } => &TOO_LARGE,
            Error::Truncated(_) => &TRUNCATED,
            Error::Malformed { .. } => &MALFORMED,
            Error::Version(_) => &VERSION,
            Error::NotAuthentic { .. } => &NOT_AUTHENTIC,
            Error::Signature(_) => &SIGNATURE,
            Error::File { .. } => &FILE,
            Error::Library(_) => &LIBRARY,
        }
    }
}

/// The meaning of every code of this crate.
pub const ERRORS: &[ErrorInfo] = &[
    STORE,
    STORE_FULL,
    MISSING,
    TOO_LARGE,
    TRUNCATED,
    MALFORMED,
    VERSION,
    NOT_AUTHENTIC,
    SIGNATURE,
    FILE,
    LIBRARY,
];

const STORE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-01",
    "StoreFailed",
    "the store of a vault cannot be reached or failed",
    "Check the path or address, the permissions and the credentials, and run it again.",
);
const STORE_FULL: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-02",
    "StoreFull",
    "the store of a vault has no room left",
    "Make room and run it again: what was reported as kept is kept, the rest goes on from there.",
);
const MISSING: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-03",
    "ObjectMissing",
    "an object of a vault is missing",
    "Run `sealane vault verify` to see what needs it, and bring the object back from a copy.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-04",
    "ObjectTooLarge",
    "an object of a vault is larger than its kind may be",
    "It was changed or is no object of a vault; bring it back from a copy.",
);
const TRUNCATED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-05",
    "ObjectTruncated",
    "an object of a vault ends too early",
    "It was cut; bring it back from a copy.",
);
const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-06",
    "ObjectMalformed",
    "bytes of a vault do not follow its format",
    "They were changed or come from a defective writer; bring the object back from a copy.",
);
const VERSION: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-07",
    "VaultVersion",
    "an object of a vault is of a later version of the format",
    "Use a newer `sealane`.",
);
const NOT_AUTHENTIC: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-08",
    "VaultNotAuthentic",
    "a sealed part of a vault does not open under its keys",
    "It was changed, or belongs to another vault; bring the object back from a copy.",
);
const SIGNATURE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-09",
    "VaultSignature",
    "a signature within a vault does not verify",
    "The object was changed or forged; do not trust the store, and compare with a copy.",
);
const FILE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-10",
    "VaultFile",
    "a file or folder of this machine cannot be read or written",
    "Check the path and its permissions.",
);
const LIBRARY: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-11",
    "VaultLibrary",
    "a library that the vault uses failed",
    "Report it; nothing was kept that is not whole.",
);
