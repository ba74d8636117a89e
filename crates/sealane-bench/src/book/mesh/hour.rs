//! An hour of a mesh on the simulator: the air time of all that is sent, routing included.

use sealane_sim::{BleRate, Profile, Run, Scenario, SimError, Span, Summary, Watch};

use super::super::{Error, Row, Table};
use crate::measure::{Figure, Plan};

/// Twenty machines, as in the report's deployments, each with a document for the first one.
const MACHINES: u64 = 20;
const DOCUMENT_BYTES: u64 = 632;
const EVERY_S: u64 = 30;
/// What the report's encryption adds.
const RECIPE_BYTES: u64 = 30;
/// Seconds of a run: an hour, or what a look has time for.
const HOUR_S: u64 = 3600;
const LOOK_S: u64 = 120;

pub(super) fn table(plan: &Plan) -> Result<Table, Error> {
    let is_look = plan.rounds < Plan::full().rounds;
    let seconds = if is_look { LOOK_S } else { HOUR_S };
    let broken = |_: SimError| Error::Broken("the simulator");
    let run = |every_s| simulated(seconds, every_s).map_err(broken);
    let (busy, idle) = (run(Some(EVERY_S))?, run(None)?);
    let hour = |air: Span| Figure::ns(air.0 as f64 * 1e3 * (HOUR_S as f64 / seconds as f64));
    let documents = busy.messages;
    let plain = Span(documents * air_time(DOCUMENT_BYTES).0);
    let sealed = Span(documents * air_time(DOCUMENT_BYTES + RECIPE_BYTES).0);
    let data = Span(busy.air().0.saturating_sub(idle.air().0));
    let delivered = format!("{} of {} came", busy.delivered, busy.expected);
    let rows = vec![
        Row::new("documents, not encrypted").baseline(hour(plain)),
        Row::new("documents, encrypted")
            .baseline(hour(sealed))
            .sealane(hour(data))
            .note(format!("{delivered}; frame, hop seal and headers of parts included")),
        Row::new("hellos, routes, announcements")
            .sealane(hour(idle.air()))
            .note("the report has no routing of its own on the radio"),
    ];
    let note = format!(
        "{MACHINES} machines around the first one, connections of Bluetooth LE at 1 Mbit/s with an \
         MTU of 247, a document of {DOCUMENT_BYTES} bytes each {EVERY_S} s from each. Baseline: \
         the units of as many documents by the link's formula. Sealane: `sealane-sim` runs the \
         mesh as it is shipped for {seconds} s; shown for an hour."
    );
    Ok(Table { title: "A simulated hour of air time".into(), note, rows })
}

/// The air time of so many bytes, cut without headers.
fn air_time(bytes: u64) -> Span {
    let profile =
        Profile::BleConnection { rate: BleRate::OneM, mtu: 247, interval: Span::from_ms(30) };
    let unit = profile.unit_bytes() as u64;
    let (whole, rest) = (bytes / unit, bytes % unit);
    let last = if rest > 0 { profile.air_time(rest as usize).0 } else { 0 };
    Span(whole * profile.air_time(unit as usize).0 + last)
}

fn simulated(seconds: u64, every_s: Option<u64>) -> Result<Summary, SimError> {
    let flow = every_s.map(|every_s| {
        format!(
            "[[flow]]\nfrom = \"one\"\nto = \"gate\"\nevery_ms = {}\n\
             bytes = {DOCUMENT_BYTES}\nfrom_s = 10\n",
            every_s * 1000
        )
    });
    let others = MACHINES - 1;
    let text = format!(
        "version = 1\nduration_s = {seconds}\n\
         [[medium]]\nname = \"near\"\nprofile = \"ble\"\nlinks = \"star\"\nfading = 0\n\
         [[node]]\nname = \"gate\"\nkind = \"mesh\"\nrole = \"gateway\"\nmedia = [\"near\"]\n\
         [[node]]\nname = \"one\"\ncount = {others}\nkind = \"mesh\"\nmedia = [\"near\"]\n\
         ring_m = 10\n{}",
        flow.unwrap_or_default()
    );
    let scenario = Scenario::parse(&text)?;
    Ok(Run::new(scenario, 1, &[], Watch::new())?.finish()?.summary)
}
