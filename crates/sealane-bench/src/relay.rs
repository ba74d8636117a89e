//! Four machines in a row, in network namespaces of this machine: a car and a server that are
//! members of a group, and two relays between them that hold no key. What people run over a
//! network runs over them; how fast, beside the same row without seals and checks, and beside the
//! kernel's own forwarding; and what a kill costs.

mod bare;
mod frames;
mod kills;
mod net;
mod numbers;
mod process;
mod programs;
mod recorder;
mod row;
mod show;
mod speed;
mod works;

use crate::programs::BenchPrograms;

pub use show::{RelayFinding, RelayFindingSink};

/// The parts that are shown, and at what length.
#[derive(Debug, Clone)]
pub struct RelayBenchOptions {
    /// The product, and this program.
    pub programs: BenchPrograms,
    /// Seconds of each run of `iperf3`.
    pub each_s: u64,
    /// Rounds of which the median is shown.
    pub rounds: usize,
    /// How often a machine is killed.
    pub kills: usize,
    /// Seconds of the steady stream of which nothing may be lost.
    pub steady_s: u64,
    /// Whether `iperf3` loads the row while machines are killed.
    pub iperf: bool,
    /// Only parts whose name contains this: works, speed, frames or kills.
    pub only: Option<String>,
}

/// Why nothing was shown.
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
    /// Something that is needed is not there.
    #[error("this needs {0}")]
    Missing(String),
    /// A program did not do its work.
    #[error("{what}: {said}")]
    Said {
        /// The program, or what it is about.
        what: String,
        /// The fault.
        said: String,
    },
    /// A requirement did not hold.
    #[error("{}", .0.join("; "))]
    Broken(Vec<String>),
    /// A frame could not be made.
    #[error("making frames: {0}")]
    Frame(String),
}

impl Error {
    fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |cause| Error::Io { what, cause }
    }
}

/// A part by its name.
struct RelayBenchPart {
    name: &'static str,
    title: &'static str,
    run: fn(&RelayBenchOptions, &mut RelayFindingSink<'_>) -> Result<(), Error>,
}

const PARTS: [RelayBenchPart; 4] = [
    RelayBenchPart { name: "works", title: "What people run over a network", run: works::run },
    RelayBenchPart { name: "speed", title: "How fast the row is", run: speed::run },
    RelayBenchPart { name: "frames", title: "What a relay takes for a frame", run: frames::run },
    RelayBenchPart { name: "kills", title: "Kills under load", run: kills::run },
];

/// Runs all parts that `options` asks for. `each` is given what comes of them as it comes.
///
/// # Errors
/// [`Error`] where a part cannot run, or something did not hold that has to. A figure that misses
/// what is demanded of it is shown as one.
pub fn run(options: &RelayBenchOptions, each: &mut dyn FnMut(&RelayFinding)) -> Result<(), Error> {
    let mut show = RelayFindingSink::new(each);
    let wanted =
        |part: &&RelayBenchPart| options.only.as_ref().is_none_or(|only| part.name.contains(only));
    for part in PARTS.iter().filter(wanted) {
        show.part(part.name, part.title);
        (part.run)(options, &mut show)?;
    }
    show.finish()
}
