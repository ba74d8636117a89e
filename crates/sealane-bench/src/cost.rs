//! The cost of each step of a message's way, on the user's own messages.
//!
//! ```text
//!  encode ─► compress ─► seal ─► carry ─► relay ─► keep ─► open ─► decompress ─► decode
//!    ^           ^         ^       ^        ^       ^       ^          ^           ^
//!    every variant of every step alone; two dozen ways through all of them
//! ```
//!
//! Takes a [`MessageSample`] of messages and gives a [`CostReport`]. Every figure is of a call that
//! the product makes. A way is first run once with an eye on the result of each step. Only if all
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

pub use input::{CostFileFormat, MessageSample};
pub use link::LinkRow;
pub use radio::{RadioLink, RadioRow};
pub use record::record;
pub use report::{CostInput, CostReport, FigureSource, WayRow};
pub use run::{CostOptions, run};
pub use step::CostStep;
pub(crate) use step::StepCalls;
pub use table::StepRow;
pub(crate) use trip::WayTrip;
pub use trip::{WayBytes, WayRefusal};
pub use way::{CostLink, CostWay, compression_name, suite_name};

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
    Refused(#[from] WayRefusal),
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
