//! `cargo xtask babel`: routes over the simulator's radio, found by `babeld` of Debian in network
//! namespaces, and beside it by the machine of the mesh on the same places with the same loss.

mod live;
mod log;
mod ours;

use std::path::{Path, PathBuf};

use crate::process::{self, Outcome, SHIP};
use live::Live;

/// How long routes may take to be found, and how long control is counted then, in seconds.
const MOST_S: u64 = 60;
const WINDOW_S: u64 = 30;
/// Probes of a failing relay: how often, how many, and when the relay is killed.
const PROBE_MS: u64 = 50;
const PROBES: u64 = 600;
const KILL_AFTER_S: u64 = 5;
/// How often a relay is killed.
const KILLS: u64 = 3;

/// Machines at places, and what the radio between them loses.
struct Topology {
    name: &'static str,
    machines: usize,
    loss: &'static str,
    /// Tables of machines but for what they run, each closed by it.
    nodes: &'static [&'static str],
}

const CHAIN: Topology = Topology {
    name: "chain of 8",
    machines: 8,
    loss: "0.1",
    nodes: &["name = \"n\"\ncount = 8\nline = [200, 0]"],
};
const CELLS: [Topology; 2] = [
    Topology {
        name: "cell of 22",
        machines: 22,
        loss: "0.1",
        nodes: &["name = \"n\"\ncount = 22\nring_m = 50"],
    },
    Topology {
        name: "cell of 50",
        machines: 50,
        loss: "0.1",
        nodes: &["name = \"n\"\ncount = 50\nring_m = 50"],
    },
];
/// Two ways of two hops.
const DIAMOND: Topology = Topology {
    name: "two ways",
    machines: 4,
    loss: "0",
    nodes: &[
        "name = \"from\"",
        "name = \"via\"\ncount = 2\nat = [200, -60]\nline = [0, 120]",
        "name = \"to\"\nat = [400, 0]",
    ],
};

/// How `babeld` is started.
struct Settings {
    name: &'static str,
    /// A line of its configuration, or nothing.
    line: &'static str,
}

const SETTINGS: [Settings; 3] = [
    Settings { name: "babeld, as it comes", line: "" },
    Settings { name: "babeld, type wireless", line: "default type wireless" },
    Settings {
        name: "babeld, wireless, hello 1 s",
        line: "default type wireless hello-interval 1",
    },
];

/// What was measured of routes that are found, and of what keeps them.
struct Figures {
    /// When all had routes to all, in seconds; nothing if not in time.
    routes_s: Option<f64>,
    /// Of routing, what each machine sent in a second, and its part of the channel's time.
    bytes: f64,
    air: f64,
}

/// A folder of this proof, and the programs.
struct Work {
    folder: PathBuf,
    sim: PathBuf,
}

/// `cargo xtask babel [FOLDER]`: FOLDER has the simulator, built already.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let programs = match arguments {
        [] => built()?,
        [folder] => PathBuf::from(folder),
        [_, other, ..] => return Err(format!("babel has no argument `{other}`")),
    };
    crate::needs::babel()?;
    let work = Work { folder: process::target().join("babel"), sim: programs.join("sealane-sim") };
    let failed = |error: std::io::Error| format!("{}: {error}", work.folder.display());
    let _ = std::fs::remove_dir_all(&work.folder);
    std::fs::create_dir_all(&work.folder).map_err(failed)?;
    let version = process::program("babeld").arg("-V").output().map_err(failed)?;
    println!("{}", String::from_utf8_lossy(&version.stderr).lines().next().unwrap_or_default());
    println!("radio: 802.11p at 6 Mbit/s, range 250 m, no fading; what it loses stands beside\n");
    println!(
        "{:<22} {:<29} {:>13} {:>15} {:>13}",
        "places, loss", "who", "all routes, s", "B/s per machine", "air of all, %"
    );
    for topology in [&CHAIN].into_iter().chain(&CELLS) {
        for settings in &SETTINGS {
            let figures = Live::start(&work, topology, settings)?.figures(topology)?;
            tell(topology, settings.name, &figures);
        }
        tell(topology, ours::NAME, &ours::figures(&work, topology)?);
    }
    println!("\nthe relay in use is killed: probes of {PROBES} lost, one each {PROBE_MS} ms");
    for settings in &SETTINGS {
        let lost = Live::start(&work, &DIAMOND, settings)?.lost()?;
        println!("{:<52} {}", settings.name, words(&lost));
    }
    println!("{:<52} {}", ours::NAME, words(&ours::lost(&work)?));
    Ok(())
}

fn tell(topology: &Topology, who: &str, figures: &Figures) {
    let Figures { routes_s, bytes, air } = figures;
    let routes = routes_s.map_or(format!("> {MOST_S}"), |s| format!("{s:.1}"));
    let places = format!("{}, {} lost", topology.name, topology.loss);
    println!("{places:<22} {who:<29} {routes:>13} {bytes:>15.1} {:>13.3}", air * 100.0);
}

fn words(lost: &[Option<u64>]) -> String {
    let one = |lost: &Option<u64>| lost.map_or("no route".to_owned(), |lost| lost.to_string());
    lost.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn built() -> Outcome<PathBuf> {
    let mut build = process::cargo();
    process::run(build.args(["build", "--profile", SHIP, "--package", "sealane-sim"]))?;
    Ok(process::target().join(SHIP))
}

impl Topology {
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

fn keep(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
