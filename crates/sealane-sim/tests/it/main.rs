//! Scenarios through the public interface, and the real binary.

mod commands;
mod corpus;
mod draws;
mod large;
mod laws;
mod live;
mod mesh;
mod radios;
mod repeats;
mod scenarios;
mod story;

use std::path::{Path, PathBuf};

use sealane_sim::{Scenario, SimRun, SimSpan, SimSummary, SimWatch};

/// The folder with the scenarios that are shipped.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn named(name: &str) -> Scenario {
    let text = std::fs::read_to_string(folder().join(name).with_extension("toml")).unwrap();
    Scenario::parse(&text).unwrap()
}

/// The figures of so many seconds of a scenario.
fn run(scenario: Scenario, seed: u64, seconds: u64) -> SimSummary {
    let scenario = scenario.lasting(SimSpan::from_s(seconds));
    SimRun::new(scenario, seed, &[], SimWatch::new()).unwrap().finish().unwrap().summary
}

/// A scenario of two kinds of tables that differ, and the usual rest.
fn sketch(seconds: u64, tables: &str) -> Scenario {
    Scenario::parse(&format!("version = 1\nduration_s = {seconds}\n{tables}")).unwrap()
}
