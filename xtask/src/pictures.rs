//! `cargo xtask pictures`: the console, the bench's pages, the simulator's maps and what the
//! command line shows, as people see them, in `results/pictures`.

mod screens;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::needs;
use crate::process::{self, XtaskResult};

/// Where the pictures are kept.
const FOLDER: &str = "results/pictures";
/// The messages whose cost is shown.
const SAMPLE: &str = "crates/sealane-bench/samples/fleet.jsonl";

/// The scenarios whose maps are shown, and for how long each is run.
const MAPS: [PictureMap; 2] =
    [PictureMap { name: "mixed", seconds: "120" }, PictureMap { name: "city", seconds: "20" }];

struct PictureMap {
    name: &'static str,
    seconds: &'static str,
}

/// `cargo xtask pictures [FOLDER]`: FOLDER has all three programs, built already.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
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
    let node = PictureNode::start(&programs, &work)?;
    let mut script = process::program("node");
    script.arg("tests/js/pictures.mjs").arg(&node.address).args([&cost, &book]).arg(&pictures);
    process::run(&mut script)?;
    maps(&programs, &work, &pictures)?;
    live(&programs, &work, &pictures)?;
    let sample = std::fs::copy(process::root().join(SAMPLE), work.join("fleet.jsonl"));
    sample.map_err(failed)?;
    screens::keep(&programs, &work, &node.address, &pictures)
}

/// The programs, built now.
fn built() -> XtaskResult<PathBuf> {
    process::run(process::cargo().args(["build", "--release"]))?;
    Ok(process::target().join("release"))
}

fn bench(programs: &Path, arguments: &[&str], page: &Path) -> XtaskResult {
    let mut bench = process::program(programs.join("sealane-bench"));
    process::run(bench.args(arguments).arg(page).stdout(Stdio::null()))
}

/// Runs scenarios, and keeps what their maps look like.
fn maps(programs: &Path, work: &Path, pictures: &Path) -> XtaskResult {
    let mut script = process::program("node");
    script.arg("tests/js/maps.mjs").arg(pictures);
    for PictureMap { name, seconds } in &MAPS {
        let page = work.join(name).with_extension("html");
        let scenario = format!("scenarios/{name}.toml");
        let mut sim = process::program(programs.join("sealane-sim"));
        sim.args(["run", &scenario, "--seconds", seconds, "--html"]).arg(&page);
        process::run(sim.stdout(Stdio::null()))?;
        script.arg(page);
    }
    process::run(&mut script)
}

/// Works with the page of a live run, and keeps what it looks like. That needs root.
fn live(programs: &Path, work: &Path, pictures: &Path) -> XtaskResult {
    let failed = |error: std::io::Error| format!("sealane-sim live: {error}");
    let scenario = work.join("row.toml");
    std::fs::copy(process::root().join("scenarios/row.toml"), &scenario).map_err(failed)?;
    let mut sim = process::program(programs.join("sealane-sim"));
    sim.args(["live", "--page", "127.0.0.1:0", "--prefix", "pictures", "--seconds", "120"]);
    let mut child = sim.arg(&scenario).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let said = child.stderr.take().into_iter().flat_map(|said| BufReader::new(said).lines());
    let mut pages = said.filter_map(|line| Some(line.ok()?.split_once("page: ")?.1.to_owned()));
    let shown = pages.next().ok_or("sealane-sim live does not start".to_owned());
    let shown = shown.and_then(|page| {
        let mut script = process::program("node");
        process::run(script.args(["tests/js/live.mjs", &page, "4"]).arg(pictures))
    });
    let _ = child.kill();
    child.wait().map_err(failed)?;
    shown
}

/// A node that ends with this.
struct PictureNode {
    child: Child,
    address: String,
}

impl PictureNode {
    fn start(programs: &Path, work: &Path) -> XtaskResult<Self> {
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

impl Drop for PictureNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
