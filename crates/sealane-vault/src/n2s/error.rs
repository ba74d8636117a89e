sealane_message::errors! {
    /// The meaning of every code of this module.
    pub const ERRORS;

    /// Why a blob was not written or not read.
    ///
    /// A blob that fails gives nothing: no byte of it is handed on before its hash was compared.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// Not JSON of any known form, even after the one repair that is tried.
        #[error("the blob is malformed")]
        #[code("SL-BLOB-01", "BlobMalformed")]
        #[cause("an n2s blob is malformed")]
        #[hint("Look at the file; it was cut, changed, or is no blob.")]
        Malformed,
        /// The blob, or the file in it, is larger than what is held in memory.
        #[error("the blob is too large")]
        #[code("SL-BLOB-02", "BlobTooLarge")]
        #[cause("an n2s blob holds more than fits its format's limits")]
        #[hint("Migrate this one file by hand; the format needs all of a file in memory.")]
        TooLarge,
        /// An age file, as the first two forms of the format were.
        #[error("the blob is an age file")]
        #[code("SL-BLOB-03", "BlobIsAge")]
        #[cause("an n2s blob is an age file of the format's first months")]
        #[hint("Decrypt it with `age --decrypt` and put what comes out into the vault.")]
        Age,
        /// Bare gzip without a wrapper, as a faulty writer left them.
        #[error("the blob is bare gzip")]
        #[code("SL-BLOB-04", "BlobIsGzip")]
        #[cause("an n2s blob is bare gzip without path, time or a usable name")]
        #[hint("Unpack it with gzip; it says nothing of where it came from.")]
        Gzip,
        /// The content is sealed and no passphrase was given.
        #[error("the blob needs a passphrase")]
        #[code("SL-BLOB-05", "BlobNeedsPassphrase")]
        #[cause("an n2s blob is sealed and no passphrase was given")]
        #[hint("Give the passphrase of the n2s store.")]
        NoPassphrase,
        /// Wrong passphrase, or a byte of id, path, hash or content was changed.
        #[error("the blob does not open")]
        #[code("SL-BLOB-06", "BlobNotAuthentic")]
        #[cause("an n2s blob does not open with this passphrase")]
        #[hint("Check the passphrase with another blob; if that opens, this one was changed.")]
        NotAuthentic,
        /// The file's name is not the id that path and hash make.
        #[error("the blob has the name of another")]
        #[code("SL-BLOB-07", "BlobWrongName")]
        #[cause("an n2s blob has a name that its path and hash do not make")]
        #[hint("Look for the blob that was renamed or edited; its metadata is not authenticated.")]
        WrongName,
        /// The content is not what its hash or size says.
        #[error("the content is not what its hash says")]
        #[code("SL-BLOB-08", "BlobWrongContent")]
        #[cause("the content of an n2s blob is not what its hash or size says")]
        #[hint("Fetch the blob again from another copy of the store.")]
        WrongContent,
        /// The content is no LZ4 frame.
        #[error("the content is not compressed as it says")]
        #[code("SL-BLOB-09", "BlobCompression")]
        #[cause("the content of an n2s blob is not a whole LZ4 frame")]
        #[hint("Fetch the blob again from another copy of the store.")]
        Compression,
        /// The path would leave the folder that it is restored into.
        #[error("the path leaves its folder")]
        #[code("SL-BLOB-10", "BlobPath")]
        #[cause("the path of an n2s blob leaves the folder that it is restored into")]
        #[hint("Restore this one file by hand, to a place of your choice.")]
        Path,
        /// The time is not a number of seconds that a file may have.
        #[error("the time is out of range")]
        #[code("SL-BLOB-11", "BlobTime")]
        #[cause("the time of an n2s blob is out of range")]
        #[hint("Restore this one file by hand; its time was changed or never real.")]
        Time,
        /// The blob's file cannot be read.
        #[error("the file cannot be read")]
        #[code("SL-BLOB-13", "BlobUnreadable")]
        #[cause("the file of an n2s blob cannot be read")]
        #[hint("Check its permissions and its disk, and import again.")]
        Unreadable,
        /// The cipher library refused, which a correct build never sees.
        #[error("the cipher library failed")]
        #[code("SL-BLOB-12", "BlobCipherFailed")]
        #[cause("the cipher library failed")]
        #[hint("Report it; nothing was written or read.")]
        Cipher,
    }
}
