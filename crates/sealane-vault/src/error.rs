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
    /// The local manifest, which can be made again from the store.
    #[error("the manifest failed: {0}")]
    Manifest(#[from] rusqlite::Error),
    /// Neither a state folder was named nor has the user a home.
    #[error("there is no state folder")]
    NoState,
    /// A pattern of what is to be left out.
    #[error("a pattern is malformed: {0}")]
    Pattern(String),
    /// A path that is given twice by name, or the root folder.
    #[error("`{}` has no name of its own in a snapshot", .0.display())]
    Root(std::path::PathBuf),
    /// Another thread failed, and says why.
    #[error("another part of the work failed")]
    Stopped,
    /// Characters or checksum of a recovery code are wrong.
    #[error("the recovery code is mistyped")]
    RecoveryCode,
    /// Wrong passphrase, code or identity.
    #[error("no key slot of the vault opens with that secret")]
    WrongKey,
    /// A vault is not made over another.
    #[error("there is a vault already")]
    Exists,
    /// The store has no config.
    #[error("there is no vault in `{0}`")]
    NoVault(String),
    /// The store serves an older state than was seen.
    #[error("the store was rolled back: snapshot {seen} was seen here, its newest is {found}")]
    RolledBack {
        /// The newest snapshot that was seen here.
        seen: u64,
        /// The newest that the store has.
        found: u64,
    },
    /// The store serves another history.
    #[error("the store was forked: snapshot {0} is another than was seen here")]
    Forked(u64),
    /// A snapshot is missing or does not fit those around it.
    #[error("the chain of snapshots is broken at {0}")]
    Chain(u64),
    /// A prune came between.
    #[error("a prune condemned data that this put relied on")]
    Pruned,
    /// A writer's key adds and does nothing else.
    #[error("a writer's key cannot {0}")]
    NotOwner(&'static str),
    /// No snapshot has that number.
    #[error("there is no snapshot `{0}`")]
    NoSnapshot(String),
    /// No entry has that path.
    #[error("the snapshot has no `{0}`")]
    NoEntry(String),
    /// A restore never writes outside of its target.
    #[error("`{0}` would leave the target folder")]
    Escapes(String),
    /// A restore does not overwrite what it did not write.
    #[error("`{0}` is there already and differs")]
    TargetExists(String),
    /// Too many lost races for the next snapshot.
    #[error("other writers were always faster")]
    Raced,
    /// Nobody can be asked for a passphrase.
    #[error("no passphrase was given")]
    NoPassphrase,
    /// The last slot that opens a vault is not removed.
    #[error("it is the last slot that opens the vault")]
    LastSlot,
    /// The system gave no thread.
    #[error("a thread could not be started")]
    Thread,
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

    /// A failure with a file of this machine.
    pub(crate) fn file(path: &std::path::Path, cause: io::Error) -> Error {
        Error::File { path: path.display().to_string(), cause }
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
            Error::Manifest(_) => &MANIFEST,
            Error::NoState => &NO_STATE,
            Error::Pattern(_) => &PATTERN,
            Error::Root(_) => &ROOT,
            Error::Stopped => &STOPPED,
            Error::RecoveryCode => &RECOVERY_CODE,
            Error::WrongKey => &WRONG_KEY,
            Error::Exists => &EXISTS,
            Error::NoVault(_) => &NO_VAULT,
            Error::RolledBack { .. } => &ROLLED_BACK,
            Error::Forked(_) => &FORKED,
            Error::Chain(_) => &CHAIN,
            Error::Pruned => &PRUNED,
            Error::NotOwner(_) => &NOT_OWNER,
            Error::NoSnapshot(_) => &NO_SNAPSHOT,
            Error::NoEntry(_) => &NO_ENTRY,
            Error::Escapes(_) => &ESCAPES,
            Error::TargetExists(_) => &TARGET_EXISTS,
            Error::Raced => &RACED,
            Error::NoPassphrase => &NO_PASSPHRASE,
            Error::LastSlot => &LAST_SLOT,
            Error::Thread => &THREAD,
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
    MANIFEST,
    NO_STATE,
    PATTERN,
    ROOT,
    STOPPED,
    RECOVERY_CODE,
    WRONG_KEY,
    EXISTS,
    NO_VAULT,
    ROLLED_BACK,
    FORKED,
    CHAIN,
    PRUNED,
    NOT_OWNER,
    NO_SNAPSHOT,
    NO_ENTRY,
    ESCAPES,
    TARGET_EXISTS,
    RACED,
    LAST_SLOT,
    NO_PASSPHRASE,
    THREAD,
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
const MANIFEST: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-12",
    "VaultManifest",
    "the local manifest of a vault failed",
    "Remove manifest.db in the vault's state folder; it is made again from the store.",
);
const NO_STATE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-13",
    "VaultNoState",
    "there is no folder for a vault's local state",
    "Set HOME or XDG_STATE_HOME, or name a folder with --state.",
);
const PATTERN: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-14",
    "VaultPattern",
    "a pattern of what is to be left out is malformed",
    "Write patterns as a .gitignore has them.",
);
const ROOT: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-15",
    "VaultRoot",
    "two paths of a put end in the same name, or one has no name",
    "Put their common folder, or put them one by one.",
);
const STOPPED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-16",
    "VaultStopped",
    "a part of the work was stopped since another failed",
    "Look at the other error; run it again.",
);
const RECOVERY_CODE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-17",
    "RecoveryCode",
    "a recovery code is mistyped",
    "Compare it with the paper: nine groups of four; O is read as 0, and I and L as 1.",
);
const WRONG_KEY: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-18",
    "WrongKey",
    "no key slot of a vault opens with what was given",
    "Check the passphrase, code or key file, and that it is this vault's.",
);
const EXISTS: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-19",
    "VaultExists",
    "there is a vault already in that place",
    "Open it, or choose another place.",
);
const NO_VAULT: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-20",
    "NoVault",
    "there is no vault in that place",
    "Check the path or address; `sealane vault init` makes one.",
);
const ROLLED_BACK: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-21",
    "RolledBack",
    "the store of a vault serves an older state than was seen here",
    "Do not trust it: bring the missing snapshots back from a copy, or find out who removed them.",
);
const FORKED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-22",
    "Forked",
    "the store of a vault serves another history than was seen here",
    "Do not trust it: compare with a copy, and find out who else writes with this vault's keys.",
);
const CHAIN: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-23",
    "ChainBroken",
    "the chain of a vault's snapshots is broken",
    "A snapshot is missing or was exchanged: bring it back from a copy.",
);
const PRUNED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-24",
    "PruneRaced",
    "a prune condemned data that a put relied on",
    "Run the put again: it keeps that data anew.",
);
const NOT_OWNER: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-25",
    "WriterCannot",
    "a writer's key adds to a vault and can do nothing else",
    "Use a passphrase, recovery code or identity of the vault.",
);
const NO_SNAPSHOT: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-26",
    "NoSnapshot",
    "a vault has no such snapshot",
    "`sealane vault ls` lists them.",
);
const NO_ENTRY: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-27",
    "NoEntry",
    "a snapshot has no such path",
    "`sealane vault ls SNAPSHOT` lists its paths.",
);
const ESCAPES: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-28",
    "Escapes",
    "a path of a snapshot would leave the target folder",
    "A symbolic link in the target or a hostile snapshot: restore into an empty folder.",
);
const TARGET_EXISTS: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-29",
    "TargetExists",
    "a restore found another file in its place",
    "Restore into another folder, or say --overwrite.",
);
const RACED: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-30",
    "SnapshotRaced",
    "other writers took every next number of a snapshot",
    "Run it again; what was kept need not be kept again.",
);
const THREAD: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-31",
    "VaultThread",
    "a thread could not be started",
    "Use fewer --threads; the system's limit is reached.",
);
const LAST_SLOT: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-32",
    "LastSlot",
    "a slot is the last that opens its vault",
    "Add another passphrase or recovery code first.",
);
const NO_PASSPHRASE: ErrorInfo = ErrorInfo::new(
    "SL-VAULT-33",
    "NoPassphrase",
    "no passphrase of a vault was given and nobody can be asked",
    "Use --passphrase-file, SEALANE_PASSPHRASE, or a terminal.",
);
