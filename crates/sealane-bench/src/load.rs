//! The hub under load: separate processes, real loopback sockets, one row per question.
//!
//! The node runs as one process and every client as another. Rates *per core* divide by the CPU
//! time that the node's process spent, so that they do not depend on what else the machine does,
//! nor on how fast the clients are.

mod append;
pub(crate) mod client;
mod deliver;
pub(crate) mod node;
pub(crate) mod publisher;
mod report;
mod sealed;
pub(crate) mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use append::again_and_again;
pub use append::raw_appends;
pub use report::{BenchHost, LoadReport, LoadRow};
pub use worker::work;

use crate::programs::BenchPrograms;

/// The loads to measure, and for how long.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// How long each row runs.
    pub each: Duration,
    /// Bytes of an envelope, encoded as JSON.
    pub envelope_bytes: usize,
    /// Connections that read.
    pub readers: usize,
    /// Idle connections that are opened to see what they cost.
    pub idle: usize,
    /// Readers of one message, over three codecs.
    pub fan_out: usize,
    /// Only rows whose name contains this.
    pub only: Option<String>,
    /// Where the node keeps its data; the disk that is measured. A temporary folder by default.
    pub data: Option<PathBuf>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            each: Duration::from_secs(5),
            envelope_bytes: 100,
            readers: 16,
            idle: 2000,
            fan_out: 9000,
            only: None,
            data: None,
        }
    }
}

/// Why a load could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A process or file failed.
    #[error("{what}: {cause}")]
    Io {
        /// The action that failed.
        what: &'static str,
        /// Why it failed.
        cause: std::io::Error,
    },
    /// A client of the hub failed.
    #[error(transparent)]
    Client(#[from] sealane::Error),
    /// A process said what nobody understands, or ended early.
    #[error("a {0} process failed")]
    Process(&'static str),
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |cause| Error::Io { what, cause }
    }
}

/// Measures everything that `options` asks for; each row is shown as it comes.
///
/// # Errors
/// [`Error`] where a process fails; a slow result is no error.
pub async fn run(
    programs: &BenchPrograms,
    options: &LoadOptions,
    show: &mut dyn FnMut(&LoadRow),
) -> Result<LoadReport, Error> {
    let mut report = LoadReport::new();
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    let mut add = |rows: Vec<LoadRow>| {
        rows.iter().for_each(&mut *show);
        report.rows.extend(rows);
    };
    if wanted("append") {
        append::run(programs, options, &mut add).await?;
    }
    for shape in deliver::SHAPES.iter().filter(|shape| wanted(shape.name)) {
        add(vec![deliver::run(programs, options, shape).await?]);
    }
    if wanted("sealed") {
        sealed::run(programs, options, &mut add).await?;
    }
    if wanted("latency") {
        add(vec![deliver::latency(programs, options).await?]);
    }
    if wanted("replay") {
        add(deliver::replay(programs, options).await?);
    }
    if wanted("fan-out") {
        add(vec![deliver::fan_out(programs, options).await?]);
    }
    if wanted("idle") {
        add(vec![deliver::idle(programs, options).await?]);
    }
    Ok(report)
}
