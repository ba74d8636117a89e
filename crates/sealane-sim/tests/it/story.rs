//! A run as its log tells it.

use std::collections::BTreeMap;

use sealane_sim::{Scenario, SimRun, SimWatch};
use serde::Deserialize;

/// A line of a log; what a kind of line does not have is nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) kind: String,
    pub(crate) node: usize,
    pub(crate) what: String,
    pub(crate) of: Option<usize>,
    pub(crate) via: Option<usize>,
    pub(crate) to: Option<usize>,
    pub(crate) message: u64,
    pub(crate) took: u64,
    pub(crate) air: u64,
    pub(crate) bytes: u64,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Of the last line.
    pub(crate) again: u64,
    pub(crate) loops: u64,
    pub(crate) events: u64,
}

impl Line {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Whether this line is that finding of a machine of the mesh.
    pub(crate) fn tells(&self, what: &str) -> bool {
        self.kind == "mesh" && self.what == what
    }
}

/// Runs a scenario, and gives what its log says.
pub(crate) fn story(text: &str, seed: u64) -> Vec<Line> {
    told(Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")), seed)
}

/// The same of a scenario that is read already.
pub(crate) fn told(scenario: Scenario, seed: u64) -> Vec<Line> {
    let mut log = vec![];
    let watch = SimWatch::new().with_log(&mut log);
    SimRun::new(scenario, seed, &[], watch).unwrap().finish().unwrap();
    let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.skip(1).map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// How many hops the way from one machine to another has at the end, by the routes of all.
pub(crate) fn hops(lines: &[Line], from: usize, to: usize) -> Option<usize> {
    let mut next = BTreeMap::new();
    for line in lines.iter().filter(|line| line.is("mesh") && line.of == Some(to)) {
        match line.what.as_str() {
            "route" => next.insert(line.node, line.via?),
            "route-lost" => next.remove(&line.node),
            _ => None,
        };
    }
    let mut at = from;
    for count in 0..=next.len() {
        if at == to {
            return Some(count);
        }
        at = *next.get(&at)?;
    }
    None
}
