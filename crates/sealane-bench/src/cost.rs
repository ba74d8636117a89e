//! The cost of each step of a message's way, on the user's own messages.
//!
//! ```text
//!  encode ─► compress ─► seal ─► carry ─► relay ─► keep ─► open ─► decompress ─► decode
//!    ^           ^         ^       ^        ^       ^       ^          ^           ^
//!    every variant of every step alone; two dozen ways through all of them
//! ```
//!
//! Takes a [`Sample`] of messages and gives a [`Report`]. Every figure is of a call that the
//! product makes. A way is first run once with an eye on the result of each step. Only if all
//! results are right does it have figures.

mod advice;
mod hub;
mod input;
mod link;
mod radio;
pub(crate) mod record;
mod report;
mod run;
mod sequence;
mod step;
mod table;
pub(crate) mod text;
mod trip;
mod way;

use std::io;
use std::path::Path;

pub use input::{Holding, Sample};
pub use link::LinkRow;
pub use radio::{RadioLink, RadioRow};
pub use record::record;
pub use report::{Input, Report, Row, Source};
pub use run::{Options, run};
pub use step::Step;
pub(crate) use step::Steps;
pub use table::StepRow;
pub(crate) use trip::Trip;
pub use trip::{Bytes, Refused};
pub use way::{Link, Way, compression_name, suite_name};

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: String,
        /// Why not.
        cause: io::Error,
    },
    /// There was no message in the input.
    #[error("there is no message to measure: {first}")]
    NoMessages {
        /// The first thing that was no message.
        first: String,
    },
    /// A step did not do its work.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The hub, or a client of it, failed.
    #[error(transparent)]
    Load(#[from] crate::load::Error),
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.display().to_string();
        move |cause| Error::Io { path, cause }
    }
}
