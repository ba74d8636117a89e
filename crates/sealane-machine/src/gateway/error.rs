use std::path::PathBuf;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why a gateway does not start.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum GatewayError {
        /// Another process has the queue.
        #[error("{}: another gateway uses this queue", file.display())]
        #[code("SL-GATEWAY-01", "QueueInUse", exit = Storage)]
        #[cause("another process uses the queue of a gateway")]
        #[hint("Stop the other gateway, or give each one a queue of its own.")]
        InUse {
            /// The file of the queue.
            file: PathBuf,
        },
        /// The file is something else, or damaged.
        #[error("{}: this is no queue of a gateway: {cause}", file.display())]
        #[code("SL-GATEWAY-02", "NotAQueue", exit = Storage)]
        #[cause("the file is no queue of a gateway, or it is damaged")]
        #[hint("Move the file away to keep it, and start again: the gateway makes a new queue.")]
        NotAQueue {
            /// The file of the queue.
            file: PathBuf,
            /// SQLite's own words.
            cause: String,
        },
        /// A newer program wrote it.
        #[error("{}: version {found} is newer than {known}", file.display())]
        #[code("SL-GATEWAY-03", "QueueTooNew", exit = Storage)]
        #[cause("a newer program wrote the queue of a gateway")]
        #[hint("Use the newer program, or move the file away.")]
        TooNew {
            /// The file of the queue.
            file: PathBuf,
            /// The version of the file.
            found: i64,
            /// The newest version that this program knows.
            known: i64,
        },
        /// It cannot be opened or written.
        #[error("{}: {cause}", file.display())]
        #[code("SL-GATEWAY-04", "QueueFailed", retry = Later, exit = Storage)]
        #[cause("the queue of a gateway cannot be read or written")]
        #[hint("Check that its folder is there, is writable, and has room.")]
        Failed {
            /// The file of the queue.
            file: PathBuf,
            /// SQLite's own words.
            cause: String,
        },
        /// The part `[gateway]` of the configuration is missing, or says what cannot be.
        #[error("{0}")]
        #[code("SL-GATEWAY-05", "GatewayConfigValue", exit = Usage)]
        #[cause("the table [gateway] of a configuration is missing, or has a value that cannot be \
                 used")]
        #[hint("Correct what the text names; spec/gateway.md says what each key may be.")]
        Config(String),
        /// A thread that the system does not start.
        #[error("the gateway's thread: {0}")]
        #[code("SL-GATEWAY-06", "GatewayThread")]
        #[cause("the system started no thread for a gateway")]
        #[hint("Check how many processes and threads this user may have.")]
        Thread(std::io::Error),
    }
}
