//! `cargo xtask pictures`: the console, the bench's pages and what the command line shows, as
//! people see them, in `results/pictures`.

mod screens;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::needs;
use crate::process::{self, Outcome};

/// Where the pictures are kept.
const FOLDER: &str = "results/pictures";
/// The messages whose cost is shown.
const SAMPLE: &str = "crates/sealane-bench/samples/fleet.jsonl";

/// `cargo xtask pictures [FOLDER]`: FOLDER has both programs, built already.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let programs = match arguments {
        [] => built()?,
        [folder] => PathBuf::from(folder),
        [_, other, ..] => return Err(format!("pictures has no argument `{other}`")),
    };
    needs::node_packages("tests/js")?;
    let pictures = process::root().join(FOLDER);
    let work = process::target().join("pictures");
    let failed = |error: std::io::Error| format!("{}: {error}", work.display());
    // A node that has nothing but what the pictures are to show.
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).map_err(failed)?;
    std::fs::create_dir_all(&pictures).map_err(failed)?;
    let (cost, book) = (work.join("cost.html"), work.join("book.html"));
    bench(&programs, &["cost", "--quick", SAMPLE, "--html"], &cost)?;
    let reports = ["report", "--quick", "triple-json", "gateway-codec", "--html"];
    bench(&programs, &reports, &book)?;
    let node = Node::start(&programs, &work)?;
    let mut script = process::program("node");
    script.arg("tests/js/pictures.mjs").arg(&node.address).args([&cost, &book]).arg(&pictures);
    process::run(&mut script)?;
    let sample = std::fs::copy(process::root().join(SAMPLE), work.join("fleet.jsonl"));
    sample.map_err(failed)?;
    screens::keep(&programs, &work, &node.address, &pictures)
}

/// Both programs, built now.
fn built() -> Outcome<PathBuf> {
    process::run(process::cargo().args(["build", "--release"]))?;
    Ok(process::target().join("release"))
}

fn bench(programs: &Path, arguments: &[&str], page: &Path) -> Outcome {
    let mut bench = process::program(programs.join("sealane-bench"));
    process::run(bench.args(arguments).arg(page).stdout(Stdio::null()))
}

/// A node that ends with this.
struct Node {
    child: Child,
    address: String,
}

impl Node {
    fn start(programs: &Path, work: &Path) -> Outcome<Self> {
        let failed = |error: std::io::Error| format!("sealane up: {error}");
        let mut up = process::program(programs.join("sealane"));
        up.args(["up", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(work.join("data"));
        let mut child = up.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let address = line.split_once("\"address\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let address = address.map(|(address, _)| address.to_owned());
        let node = |address| Self { child, address };
        address.map(node).ok_or_else(|| format!("the node does not start: {line}"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
