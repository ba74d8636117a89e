sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why what a neighbour says it holds cannot be read.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ExchangeError {
        /// The bytes end within a field, or go on behind the last one.
        #[error("the message ends within a field, or goes on behind it")]
        #[code("SL-EXCHANGE-01", "ExchangeMalformed")]
        #[cause("what a neighbour says it holds is malformed")]
        #[hint("Update the older of the two machines.")]
        Length,
        /// Origins, types or stamps out of order, or a number beyond its bound.
        #[error("what the neighbour says it holds is out of order or beyond a bound")]
        #[same_as(Length)]
        Order,
        /// A sort of message that this version does not have.
        #[error("a message of an unknown sort")]
        #[same_as(Length)]
        Unknown,
    }

    /// Why documents cannot be kept.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum StoreError {
        /// Another process has the store open.
        #[error("another process has the documents open")]
        #[code("SL-STORE-01", "DocumentsLocked", retry = Later, exit = Storage)]
        #[cause("another process has the store of documents open")]
        #[hint("Stop the other process, or name another file.")]
        Busy,
        /// The disk has no room. What was kept before is still there.
        #[error("the disk of the documents is full")]
        #[same_as(Failed)]
        DiskFull,
        /// The file is no store of documents, or is damaged.
        #[error("the file of the documents is damaged, or is something else: {0}")]
        #[code("SL-STORE-03", "DocumentsDamaged", exit = Storage)]
        #[cause("the store of documents is damaged, or is something else")]
        #[hint("Move the file away: neighbours give the documents again.")]
        Damaged(String),
        /// A later version wrote it.
        #[error("the file of the documents is of version {0}, which is later than this program")]
        #[code("SL-STORE-04", "DocumentsVersion", exit = Storage)]
        #[cause("a later version of the program wrote the store of documents")]
        #[hint("Update this machine.")]
        Version(i64),
        /// The disk or the database failed.
        #[error("the documents could not be kept: {0}")]
        #[code("SL-STORE-05", "DocumentsFailed", retry = Later, exit = Storage)]
        #[cause("the disk or the database under the store of documents failed, or is full")]
        #[hint("Make room on the disk, or look after it. What was kept is still there.")]
        Failed(String),
        /// The bytes that came are no frame.
        #[error("what came is no frame: {0}")]
        #[code("SL-STORE-06", "NoDocumentFrame")]
        #[cause("what was to be kept as a document is no frame")]
        #[hint("Update the older of the two machines.")]
        NoFrame(#[from] sealane_frame::FrameError),
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Busy,
            Some(Code::DiskFull) => StoreError::DiskFull,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
                StoreError::Damaged(error.to_string())
            }
            _ => StoreError::Failed(error.to_string()),
        }
    }
}
