use std::io;
use std::path::{Path, PathBuf};

use sealane_codec::document::DocumentError;
use sealane_codec::event::EventError;
use sealane_document::StoreError;
use sealane_link::LinkError;
use sealane_message::ErrorInfo;
use sealane_seal::policy::{PolicyError, PolicyRefusal};

use crate::GatewayError;

sealane_message::errors! {
    /// The meaning of every code of this crate, beside those of its gateway.
    pub const ERRORS;

    /// Why a machine does not start, or does not follow a configuration that is read again.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum MachineError {
        /// A file that cannot be read or written.
        #[error("{}: {cause}", file.display())]
        #[code("SL-MACHINE-01", "MachineFile", exit = Usage)]
        #[cause("a file that the configuration of a machine names cannot be read or written")]
        #[hint("Check the path and its permissions; the message says what is wrong with the file.")]
        File {
            /// The file.
            file: PathBuf,
            /// The system's error.
            cause: io::Error,
        },
        /// The system gives no thread, no random bytes, or the machine's task has ended.
        #[error("the machine cannot go on: {0}")]
        #[code("SL-MACHINE-02", "MachineSystem")]
        #[cause("the system gave a machine no thread or no random bytes")]
        #[hint("Raise the system's limits on threads and memory: they are reached.")]
        NoResource(io::Error),
        /// The page of the team cannot be served as it was asked for.
        #[error("--view{0}")]
        #[code("SL-MACHINE-03", "ViewRefused", exit = Usage)]
        #[cause("the page of the team cannot be served at that address, or there are no documents")]
        #[hint("Give it an address of this machine, such as 127.0.0.1:9088, and the configuration \
                [documents].")]
        View(&'static str),
        /// The configuration, one of its cards, or its links.
        #[error("{}: {cause}", file.display())]
        #[inner(cause)]
        Link {
            /// The file.
            file: PathBuf,
            /// Why it cannot be used.
            cause: Box<LinkError>,
        },
        /// The policy of its documents.
        #[error("{}: {cause}", file.display())]
        #[inner(cause)]
        Policy {
            /// The file.
            file: PathBuf,
            /// The fault, and its line.
            cause: Box<PolicyError>,
        },
        /// Its keys.
        #[error(transparent)]
        #[inner(0)]
        Group(#[from] sealane_group::Error),
        /// The way to its hub.
        #[error(transparent)]
        #[inner(0)]
        Gateway(#[from] GatewayError),
        /// The file that its documents are kept in.
        #[error(transparent)]
        #[inner(0)]
        Store(#[from] StoreError),
    }

    /// Why a program is refused what it asks of documents.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum AskRefusal {
        /// The request cannot be met, as the text says.
        #[error("{0}")]
        #[chosen_by(of_library)]
        Value(String),
        /// The thread that holds the documents has as much to do as it takes.
        #[error("there is too much to do: ask again")]
        #[code("SL-MACHINE-04", "DocumentsBusy", retry = Later)]
        #[cause("the process that holds the documents of the team has as much to do as it takes")]
        #[hint("Ask again later. Programs that only watch leave a place when they end.")]
        Busy,
        /// As many programs watch as may.
        #[error("as many watch already as may")]
        #[same_as(Busy)]
        Watched,
        /// The thread that holds the documents ends.
        #[error("it has ended")]
        #[same_as(Busy)]
        Ended,
        /// The keys of the group, or a counter that its folder refuses.
        #[error(transparent)]
        #[inner(0)]
        Group(#[from] sealane_group::Error),
        /// The policy seals no document of that type in this group.
        #[error(transparent)]
        #[inner(0)]
        Class(#[from] PolicyRefusal),
        /// The file that documents are kept in.
        #[error(transparent)]
        #[inner(0)]
        Store(#[from] StoreError),
        /// A document that cannot be written in its form.
        #[error(transparent)]
        #[inner(0)]
        Document(#[from] DocumentError),
        /// A line of chat that cannot be written in its form.
        #[error(transparent)]
        #[inner(0)]
        Event(#[from] EventError),
    }
}

impl MachineError {
    /// A file that the system does not let the machine read or write.
    pub(crate) fn file(file: &Path, cause: io::Error) -> MachineError {
        MachineError::File { file: file.to_owned(), cause }
    }

    /// A fault of a configuration, a card or the links that they name.
    pub(crate) fn link(file: &Path, cause: LinkError) -> MachineError {
        MachineError::Link { file: file.to_owned(), cause: Box::new(cause) }
    }
}

impl AskRefusal {
    /// The row of the library for a refusal that only its text tells apart.
    fn of_library(&self) -> &'static ErrorInfo {
        sealane::DocumentsError::refused_info()
    }
}

impl From<String> for AskRefusal {
    fn from(text: String) -> AskRefusal {
        AskRefusal::Value(text)
    }
}

impl From<&str> for AskRefusal {
    fn from(text: &str) -> AskRefusal {
        AskRefusal::Value(text.to_owned())
    }
}
