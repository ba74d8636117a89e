//! `cargo xtask babel`: routes over the simulator's radio, found by `babeld` of Debian and by
//! Sealane's relays in network namespaces, on the same places with the same loss; and beside them
//! by the machine of the mesh in virtual time.

mod live;
pub(crate) mod log;
mod ours;
mod routers;

use std::path::{Path, PathBuf};

use crate::process::{self, SHIP, XtaskResult};
use live::BabelLiveRun;
use routers::{BabelRouter, SETTINGS, SealaneRouter};

/// How long control is counted, in seconds.
const WINDOW_S: u64 = 15;
/// Probes of a failing relay: how often, how many, and when the relay is killed.
const PROBE_MS: u64 = 50;
const PROBES: u64 = 600;
const KILL_AFTER_S: u64 = 5;
/// Probes from the first machine to the last while nothing fails.
const STEADY_PROBES: u64 = 200;
/// How often a relay is killed.
const KILLS: u64 = 2;
/// How long programs talk.
const IPERF_S: u64 = 20;

/// Machines at places, and what the radio between them loses.
struct BabelTopology {
    name: &'static str,
    machines: usize,
    loss: &'static str,
    /// How long routes may take to be found, in seconds. Then control is counted.
    most_s: u64,
    /// Tables of machines but for what they run, each closed by it.
    nodes: &'static [&'static str],
}

const CHAIN: BabelTopology = BabelTopology {
    name: "chain of 8",
    machines: 8,
    loss: "0.1",
    most_s: 45,
    nodes: &["name = \"n\"\ncount = 8\nline = [200, 0]"],
};
const CELLS: [BabelTopology; 3] = [
    BabelTopology {
        name: "cell of 22",
        machines: 22,
        loss: "0.1",
        most_s: 30,
        nodes: &["name = \"n\"\ncount = 22\nring_m = 50"],
    },
    BabelTopology {
        name: "cell of 50",
        machines: 50,
        loss: "0.1",
        most_s: 30,
        nodes: &["name = \"n\"\ncount = 50\nring_m = 50"],
    },
    BabelTopology {
        name: "cell of 100",
        machines: 100,
        loss: "0.1",
        most_s: 60,
        nodes: &["name = \"n\"\ncount = 100\nring_m = 50"],
    },
];
/// Four processes in a row, over which programs talk.
const ROW: BabelTopology = BabelTopology {
    name: "row of 4",
    machines: 4,
    loss: "0",
    most_s: 60,
    nodes: &["name = \"n\"\ncount = 4\nline = [200, 0]"],
};
/// Two ways of two hops.
const DIAMOND: BabelTopology = BabelTopology {
    name: "two ways",
    machines: 4,
    loss: "0",
    most_s: 60,
    nodes: &[
        "name = \"from\"",
        "name = \"via\"\ncount = 2\nat = [200, -60]\nline = [0, 120]",
        "name = \"to\"\nat = [400, 0]",
    ],
};

/// Measurements of how routes are found, and of the traffic that keeps them.
struct BabelFigures {
    /// When all had routes to all, in seconds; nothing if not in time.
    routes_s: Option<f64>,
    /// Of routing, what each machine sent in a second, and its part of the channel's time.
    bytes: f64,
    air: f64,
    /// Probes of [`STEADY_PROBES`] that did not come; nothing if there was no route for them.
    lost: Option<u64>,
}

/// A folder of this proof, and the programs.
struct BabelWorkspace {
    folder: PathBuf,
    programs: PathBuf,
    sim: PathBuf,
}

/// `cargo xtask babel [FOLDER]`: FOLDER has `sealane` and `sealane-sim`, built already.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let programs = match arguments {
        [] => built()?,
        [folder] => std::fs::canonicalize(folder).map_err(|error| format!("{folder}: {error}"))?,
        [_, other, ..] => return Err(format!("babel has no argument `{other}`")),
    };
    crate::needs::babel()?;
    let (folder, sim) = (process::target().join("babel"), programs.join("sealane-sim"));
    let work = BabelWorkspace { folder, programs, sim };
    let failed = |error: std::io::Error| format!("{}: {error}", work.folder.display());
    let _ = std::fs::remove_dir_all(&work.folder);
    std::fs::create_dir_all(&work.folder).map_err(failed)?;
    let version = process::program("babeld").arg("-V").output().map_err(failed)?;
    println!("{}", String::from_utf8_lossy(&version.stderr).lines().next().unwrap_or_default());
    println!("radio: 802.11p at 6 Mbit/s, range 250 m, no fading; what it loses stands beside");
    println!("two of Sealane's processes are ends of another group, and announce themselves\n");
    let lost = format!("lost of {STEADY_PROBES}");
    println!(
        "{:<22} {:<29} {:>13} {:>15} {:>13} {:>11}",
        "places, loss", "who", "all routes, s", "B/s per machine", "air of all, %", lost
    );
    let most = most_machines()?;
    let cells = CELLS.iter().filter(|cell| cell.machines <= most);
    for topology in [&CHAIN].into_iter().chain(cells) {
        let sealane = SealaneRouter::new(&work.programs, &work.folder, topology)?;
        for router in routers(&sealane) {
            let figures = BabelLiveRun::start(&work, topology, &router)?.figures(topology)?;
            tell(topology, router.name(), &figures);
        }
        tell(topology, ours::NAME, &ours::figures(&work, topology)?);
    }
    println!("\nthe relay in use is killed: probes of {PROBES} lost, one each {PROBE_MS} ms");
    let sealane = SealaneRouter::new(&work.programs, &work.folder, &DIAMOND)?;
    for router in routers(&sealane) {
        let lost = BabelLiveRun::start(&work, &DIAMOND, &router)?.lost()?;
        println!("{:<52} {}", router.name(), words(&lost));
    }
    println!("{:<52} {}", ours::NAME, words(&ours::lost(&work)?));
    println!("\nfour processes of sealane in a row, iperf3 for {IPERF_S} s from end to end");
    let sealane = SealaneRouter::new(&work.programs, &work.folder, &ROW)?;
    BabelLiveRun::start(&work, &ROW, &BabelRouter::Sealane(&sealane))?.talk()
}

/// The machines of the largest cell: large ones take long.
fn most_machines() -> XtaskResult<usize> {
    let Ok(most) = std::env::var("SEALANE_MACHINES") else { return Ok(usize::MAX) };
    most.parse().map_err(|_| format!("SEALANE_MACHINES: `{most}` is no number"))
}

fn routers(sealane: &SealaneRouter) -> impl Iterator<Item = BabelRouter<'_>> {
    SETTINGS.iter().map(BabelRouter::Babeld).chain([BabelRouter::Sealane(sealane)])
}

fn tell(topology: &BabelTopology, who: &str, figures: &BabelFigures) {
    let BabelFigures { routes_s, bytes, air, lost } = figures;
    let routes = routes_s.map_or(format!("> {}", topology.most_s), |s| format!("{s:.1}"));
    let places = format!("{}, {} lost", topology.name, topology.loss);
    let (air, lost) = (air * 100.0, words(&[*lost]));
    println!("{places:<22} {who:<29} {routes:>13} {bytes:>15.1} {air:>13.3} {lost:>11}");
}

fn words(lost: &[Option<u64>]) -> String {
    let one = |lost: &Option<u64>| lost.map_or("no route".to_owned(), |lost| lost.to_string());
    lost.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn built() -> XtaskResult<PathBuf> {
    let mut build = process::cargo();
    build.args(["build", "--profile", SHIP, "--package", "sealane-sim"]);
    process::run(build.args(["--package", "sealane-cli"]))?;
    Ok(process::target().join(SHIP))
}

impl BabelTopology {
    /// The machines' names, in their order.
    fn names(&self) -> Vec<String> {
        match self.nodes {
            [_] => (1..=self.machines).map(|n| format!("n-{n}")).collect(),
            _ => ["from", "via-1", "via-2", "to"].map(str::to_owned).into(),
        }
    }

    /// The scenario in which all machines run the same.
    fn scenario(&self, seconds: u64, runs: &str, more: &str) -> String {
        let mut text = format!(
            "version = 1\nname = \"babel\"\nduration_s = {seconds}\n\
             [[medium]]\nname = \"road\"\nprofile = \"11p\"\nrange_m = 250\nfading = 0\n\
             loss = {}\n",
            self.loss
        );
        for node in self.nodes {
            text += &format!("[[node]]\n{node}\nmedia = [\"road\"]\n{runs}\n");
        }
        text + more
    }
}

fn keep(path: &Path, text: impl AsRef<[u8]>) -> XtaskResult {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
