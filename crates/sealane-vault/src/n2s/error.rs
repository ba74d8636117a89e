use sealane_message::ErrorInfo;

/// Why a blob was not written or not read.
///
/// A blob that fails gives nothing: no byte of it is handed on before its hash was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not JSON of any known form, even after the one repair that is tried.
    #[error("the blob is malformed")]
    Malformed,
    /// The blob, or the file in it, is larger than what is held in memory.
    #[error("the blob is too large")]
    TooLarge,
    /// An age file, as the first two forms of the format were.
    #[error("the blob is an age file")]
    Age,
    /// Bare gzip without a wrapper, as a faulty writer left them.
    #[error("the blob is bare gzip")]
    Gzip,
    /// The content is sealed and no passphrase was given.
    #[error("the blob needs a passphrase")]
    NoPassphrase,
    /// Wrong passphrase, or a byte of id, path, hash or content was changed.
    #[error("the blob does not open")]
    NotAuthentic,
    /// The file's name is not the id that path and hash make.
    #[error("the blob has the name of another")]
    WrongName,
    /// The content is not what its hash or size says.
    #[error("the content is not what its hash says")]
    WrongContent,
    /// The content is no LZ4 frame.
    #[error("the content is not compressed as it says")]
    Compression,
    /// The path would leave the folder that it is restored into.
    #[error("the path leaves its folder")]
    Path,
    /// The time is not a number of seconds that a file may have.
    #[error("the time is out of range")]
    Time,
    /// The blob's file cannot be read.
    #[error("the file cannot be read")]
    Unreadable,
    /// The cipher library refused, which a correct build never sees.
    #[error("the cipher library failed")]
    Cipher,
}

/// The meaning of every code of this module.
pub const ERRORS: &[ErrorInfo] = &[
    MALFORMED,
    TOO_LARGE,
    AGE,
    GZIP,
    NO_PASSPHRASE,
    NOT_AUTHENTIC,
    WRONG_NAME,
    WRONG_CONTENT,
    COMPRESSION,
    PATH,
    TIME,
    CIPHER,
    UNREADABLE,
];

const MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-01",
    "BlobMalformed",
    "an n2s blob is malformed",
    "Look at the file; it was cut, changed, or is no blob.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-02",
    "BlobTooLarge",
    "an n2s blob holds more than fits its format's limits",
    "Migrate this one file by hand; the format needs all of a file in memory.",
);
const AGE: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-03",
    "BlobIsAge",
    "an n2s blob is an age file of the format's first months",
    "Decrypt it with `age --decrypt` and put what comes out into the vault.",
);
const GZIP: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-04",
    "BlobIsGzip",
    "an n2s blob is bare gzip without path, time or a usable name",
    "Unpack it with gzip; it says nothing of where it came from.",
);
const NO_PASSPHRASE: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-05",
    "BlobNeedsPassphrase",
    "an n2s blob is sealed and no passphrase was given",
    "Give the passphrase of the n2s store.",
);
const NOT_AUTHENTIC: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-06",
    "BlobNotAuthentic",
    "an n2s blob does not open with this passphrase",
    "Check the passphrase with another blob; if that opens, this one was changed.",
);
const WRONG_NAME: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-07",
    "BlobWrongName",
    "an n2s blob has a name that its path and hash do not make",
    "Look for the blob that was renamed or edited; its metadata is not authenticated.",
);
const WRONG_CONTENT: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-08",
    "BlobWrongContent",
    "the content of an n2s blob is not what its hash or size says",
    "Fetch the blob again from another copy of the store.",
);
const COMPRESSION: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-09",
    "BlobCompression",
    "the content of an n2s blob is not a whole LZ4 frame",
    "Fetch the blob again from another copy of the store.",
);
const PATH: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-10",
    "BlobPath",
    "the path of an n2s blob leaves the folder that it is restored into",
    "Restore this one file by hand, to a place of your choice.",
);
const TIME: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-11",
    "BlobTime",
    "the time of an n2s blob is out of range",
    "Restore this one file by hand; its time was changed or never real.",
);
const CIPHER: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-12",
    "BlobCipherFailed",
    "the cipher library failed",
    "Report it; nothing was written or read.",
);

const UNREADABLE: ErrorInfo = ErrorInfo::new(
    "SL-BLOB-13",
    "BlobUnreadable",
    "the file of an n2s blob cannot be read",
    "Check its permissions and its disk, and import again.",
);

impl Error {
    /// The stable code, cause and hint.
    pub fn info(self) -> &'static ErrorInfo {
        match self {
            Error::Malformed => &MALFORMED,
            Error::TooLarge => &TOO_LARGE,
            Error::Age => &AGE,
            Error::Gzip => &GZIP,
            Error::NoPassphrase => &NO_PASSPHRASE,
            Error::NotAuthentic => &NOT_AUTHENTIC,
            Error::WrongName => &WRONG_NAME,
            Error::WrongContent => &WRONG_CONTENT,
            Error::Compression => &COMPRESSION,
            Error::Path => &PATH,
            Error::Time => &TIME,
            Error::Cipher => &CIPHER,
            Error::Unreadable => &UNREADABLE,
        }
    }
}
