//! The machine of the mesh, in virtual time.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::log::{number, of_kind, read, sent};
use super::{
    BabelFigures, BabelTopology, BabelWorkspace, DIAMOND, KILL_AFTER_S, KILLS, PROBE_MS, PROBES,
    STEADY_PROBES, WINDOW_S, keep,
};
use crate::process::{self, XtaskResult};

pub(super) const NAME: &str = "sealane-mesh, simulated";
const RUNS: &str = "kind = \"mesh\"";
/// A relay is killed after both ways are known.
const SETTLED_S: u64 = 30;

/// Runs a scenario, and gives its log.
fn run(work: &BabelWorkspace, text: &str, seed: u64) -> XtaskResult<String> {
    let [scenario, log]: [PathBuf; 2] =
        ["ours.toml", "ours.jsonl"].map(|name| work.folder.join(name));
    keep(&scenario, text)?;
    let out = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let mut sim = process::program(&work.sim);
    sim.args(["run", "--json", "--seed", &seed.to_string()]).arg(&scenario);
    let status = sim.stdout(out).status().map_err(|error| format!("sealane-sim: {error}"))?;
    if !status.success() {
        return Err(format!("sealane-sim: {status}"));
    }
    read(&log)
}

pub(super) fn figures(
    work: &BabelWorkspace,
    topology: &BabelTopology,
) -> XtaskResult<BabelFigures> {
    let from_s = topology.most_s + WINDOW_S;
    let until_s = from_s + STEADY_PROBES * PROBE_MS / 1000;
    let names = topology.names();
    let (from, to) = names.first().zip(names.last()).ok_or("no machines")?;
    let flow = flow([from, to], from_s, until_s);
    let log = run(work, &topology.scenario(until_s + 5, RUNS, &flow), 1)?;
    let wanted = topology.machines * (topology.machines - 1);
    let mut known = BTreeSet::new();
    let mut routes_us = None;
    for line in of_kind(&log, "mesh") {
        let pair = [number(line, "node"), number(line, "of")];
        if line.contains("\"what\":\"route\"") {
            known.insert(pair);
        } else if line.contains("\"what\":\"route-lost\"") {
            known.remove(&pair);
        }
        if known.len() == wanted {
            routes_us = number(line, "at");
            break;
        }
    }
    let sent = sent(&log, topology.most_s * 1_000_000);
    Ok(BabelFigures {
        routes_s: routes_us.map(|us| us as f64 / 1e6),
        bytes: sent.bytes_per_second / topology.machines as f64,
        air: sent.air,
        lost: Some(undelivered(&log)),
    })
}

/// Probes from one machine to another.
fn flow([from, to]: [&str; 2], from_s: u64, until_s: u64) -> String {
    format!(
        "[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nevery_ms = {PROBE_MS}\nbytes = 64\n\
         from_s = {from_s}\nuntil_s = {until_s}\n"
    )
}

fn undelivered(log: &str) -> u64 {
    let (offered, delivered) = (of_kind(log, "offer").count(), of_kind(log, "deliver").count());
    offered.saturating_sub(delivered) as u64
}

/// How many probes are lost when the relay in use goes, of both the one that was the worse to lose:
/// the other one is not in use.
pub(super) fn lost(work: &BabelWorkspace) -> XtaskResult<Vec<Option<u64>>> {
    let kill_s = SETTLED_S + KILL_AFTER_S;
    let until_s = SETTLED_S + PROBES * PROBE_MS / 1000;
    let each = (1..=KILLS).map(|seed| {
        let mut worst = 0;
        for via in ["via-1", "via-2"] {
            let more = flow(["from", "to"], SETTLED_S, until_s)
                + &format!("[[event]]\nat_s = {kill_s}\ndo = \"leave\"\nwho = [\"{via}\"]\n");
            let log = run(work, &DIAMOND.scenario(until_s + 5, RUNS, &more), seed)?;
            worst = worst.max(undelivered(&log));
        }
        Ok(Some(worst))
    });
    each.collect()
}
