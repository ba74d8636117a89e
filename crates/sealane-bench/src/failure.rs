use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use sealane_message::{ErrorInfo, Exit};

use crate::output::{harmless, record};
use crate::programs::NoSealane;

/// The exit codes, those of `sealane`.
pub(crate) mod exit {
    pub(crate) const FAILURE: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
}

sealane_message::errors! {
    /// The error codes of the bench.
    pub const ERRORS;

    /// Why there are no figures.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum BenchFailure {
        /// A process, a peer or a step did not do its work.
        #[error("{0}")]
        #[code("SL-BENCH-01", "Measurement")]
        #[cause("a process of the bench failed, or a step did not do its work")]
        #[hint("Run it again with `--only` for the row that failed; many connections need `ulimit \
                -n`.")]
        Measurement(String),
        /// There is nothing to measure.
        #[error("there is no message to measure: {0}")]
        #[code("SL-BENCH-02", "NoMessages")]
        #[cause("the files hold no message that could be measured")]
        #[hint("Give JSON lines, a sequence of MessagePack or CBOR, or frames; `--as` says which.")]
        NoMessages(String),
        /// A file that cannot be read or written.
        #[error("{}: {cause}", file.display())]
        #[code("SL-BENCH-03", "BenchFile", exit = Usage)]
        #[cause("a file of the bench cannot be read or written")]
        #[hint("Check the path and its permissions.")]
        File {
            /// The file.
            file: PathBuf,
            /// The cause.
            cause: io::Error,
        },
        /// Standard output could not be written.
        #[error("standard output: {0}")]
        #[code("SL-BENCH-04", "BenchOutput")]
        #[cause("the figures could not be written to standard output")]
        #[hint("Check where the output goes, and whether there is room.")]
        Output(io::Error),
        /// The program to measure is not there.
        #[error(transparent)]
        #[code("SL-BENCH-05", "NoSealane")]
        #[cause("the program that is measured is not beside the bench, or is of another commit")]
        #[hint("Build it of the same commit and profile: `cargo build --release -p sealane-cli`.")]
        NoSealane(#[from] NoSealane),
    }
}

/// A result of the bench.
pub(crate) type Result<T, E = BenchFailure> = std::result::Result<T, E>;

impl BenchFailure {
    /// Of an error whose words say all that is to be known.
    pub(crate) fn of(error: impl Display) -> Self {
        BenchFailure::Measurement(error.to_string())
    }

    /// An action that the system refused.
    pub(crate) fn io(what: impl Display) -> impl FnOnce(io::Error) -> Self {
        move |cause| BenchFailure::said(what, cause)
    }

    /// A program, or a part of one, that said something else than it was asked for.
    pub(crate) fn said(what: impl Display, said: impl Display) -> Self {
        BenchFailure::Measurement(format!("{what}: {said}"))
    }

    /// A step that did nothing has no figure.
    pub(crate) fn broken(what: &str) -> Self {
        BenchFailure::Measurement(format!("{what} did not work: nothing was measured"))
    }

    pub(crate) fn file(file: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| BenchFailure::File { file: file.to_owned(), cause }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.info().exit {
            Exit::Usage => exit::USAGE,
            _ => exit::FAILURE,
        }
    }

    /// Whether the reader of our output has gone, which is its good right.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, BenchFailure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says it on standard error, once.
    pub(crate) fn print(&self, json: bool) {
        let ErrorInfo { code, hint, .. } = self.info();
        if json {
            let error =
                serde_json::json!({"code": code, "message": self.to_string(), "hint": hint});
            eprint!("{}", record(&serde_json::json!({"error": error})));
        } else {
            // Names of files, and what a hub said, are others' words.
            let said = format!("{self} [{code}]\n  hint: {hint}");
            eprintln!("sealane-bench: error: {}", harmless(&said));
        }
    }
}

/// Of these, all that is to be known stands in their message.
macro_rules! measurements {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for BenchFailure {
            fn from(error: $error) -> Self {
                BenchFailure::of(error)
            }
        })*
    };
}

measurements!(
    crate::cost::WayRefusal,
    io::Error,
    sealane_codec::CodecError,
    rusqlite::Error,
    sealane::Error,
    sealane_document::StoreError,
    sealane_frame::FrameError,
    sealane_link::LinkError,
    sealane_mesh::MeshError,
    sealane_seal::Error,
    sealane_seal::policy::PolicyRefusal,
    sealane_sim::SimError,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_named_wrongly_is_wrong_usage() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let unread = BenchFailure::file(Path::new("a.json"))(cause());
        assert_eq!((unread.exit_code(), unread.info().code), (exit::USAGE, "SL-BENCH-03"));
        let nothing = BenchFailure::NoMessages("a.json:1".into());
        assert_eq!((nothing.exit_code(), nothing.info().code), (exit::FAILURE, "SL-BENCH-02"));
        let failed = BenchFailure::io("a node")(cause());
        assert_eq!((failed.exit_code(), failed.info().code), (exit::FAILURE, "SL-BENCH-01"));
    }
}
