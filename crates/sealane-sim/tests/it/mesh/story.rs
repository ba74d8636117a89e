//! A run as its log tells it.

use sealane_sim::{Run, Scenario, Watch};
use serde::Deserialize;

/// A line of a log; what a kind of line does not have is nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) at: u64,
    pub(super) kind: String,
    pub(super) node: usize,
    pub(super) what: String,
    pub(super) of: Option<usize>,
    pub(super) via: Option<usize>,
    pub(super) message: u64,
    pub(super) took: u64,
    pub(super) air: u64,
    pub(super) bytes: u64,
    pub(super) x: f64,
    pub(super) y: f64,
    /// Of the last line.
    pub(super) loops: u64,
    pub(super) events: u64,
}

impl Line {
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// What a machine of the mesh has found out.
    pub(super) fn tells(&self, what: &str) -> bool {
        self.kind == "mesh" && self.what == what
    }
}

/// Runs a scenario, and gives what its log says.
pub(super) fn story(text: &str, seed: u64) -> Vec<Line> {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut log = vec![];
    let watch = Watch::new().with_log(&mut log);
    Run::new(scenario, seed, &[], watch).unwrap().finish().unwrap();
    let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.skip(1).map(|line| serde_json::from_slice(line).unwrap()).collect()
}
