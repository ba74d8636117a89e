//! Counts that may not grow: bytes and allocations of fixed messages, the same on every machine.
//!
//! `cargo xtask bench-guard` compares them with `results/bench-guard.txt`.

use sealane_codec::{Codec, decode};
use sealane_message::Value;
use sealane_seal::Suite;

use crate::baseline::map16::FIVE;
use crate::book::rich::{self, RichBodyKind, RichEnds};
use crate::cost::{CostWay, StepCalls, WayTrip};
use crate::failure::{BenchFailure, Result};
use crate::measure::allocations;

/// A count, by the name of its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GuardCount {
    pub(crate) name: String,
    pub(crate) value: u64,
}

/// All counts: five messages over every way in memory, and rich messages there and back.
pub(crate) fn counts() -> Result<Vec<GuardCount>> {
    let read = |(_, json): (&str, &str)| decode(Codec::Json, json.as_bytes());
    let five: Vec<Value> = FIVE.into_iter().map(read).collect::<std::result::Result<_, _>>()?;
    let mut counts = vec![];
    for way in CostWay::in_memory() {
        counts.extend(of_way(way, &five)?);
    }
    for (kib, kind) in [
        (8, RichBodyKind::Ascii),
        (256, RichBodyKind::Ascii),
        (256, RichBodyKind::Cjk),
        (256, RichBodyKind::Binary),
    ] {
        for is_owned in [true, false] {
            counts.extend(of_event(kib, kind, is_owned)?);
        }
    }
    Ok(counts)
}

/// Works through one way so often, for who counts instructions.
pub(crate) fn repeat(way: usize, rounds: usize) -> Result<()> {
    let small = FIVE.get(1).and_then(|(_, json)| decode(Codec::Json, json.as_bytes()).ok());
    let sample: Vec<Value> = small.into_iter().collect();
    let way = *CostWay::in_memory().get(way).ok_or_else(|| BenchFailure::broken("the way"))?;
    let mut trip = WayTrip::new(StepCalls::PRODUCT, way, &sample)?;
    (0..rounds).for_each(|_| trip.all());
    Ok(())
}

fn of_way(way: CostWay, sample: &[Value]) -> Result<Vec<GuardCount>> {
    let mut trip = WayTrip::new(StepCalls::PRODUCT, way, sample)?;
    let bytes = trip.verify()?;
    trip.all();
    let (calls, allocated) = allocations(|| trip.all());
    let count = |what: &str, value| GuardCount { name: format!("five, {way}, {what}"), value };
    Ok(vec![
        count("body bytes", bytes.body),
        count("compressed bytes", bytes.pressed),
        count("wire bytes", bytes.wire),
        count("bytes at rest", bytes.rest),
        count("allocations", calls),
        count("allocated bytes", allocated),
    ])
}

fn of_event(kib: usize, kind: RichBodyKind, is_owned: bool) -> Result<Vec<GuardCount>> {
    let event = rich::event(kib, kind);
    let mut ends = RichEnds::new(Suite::Aes256Gcm)?;
    let broken = || BenchFailure::broken("the event");
    let wire = ends.round_trip(&event, is_owned).ok_or_else(broken)?;
    let (calls, allocated) = allocations(|| _ = ends.round_trip(&event, is_owned));
    let held = if is_owned { "owned" } else { "borrowed" };
    let name = format!("event, {kib} KiB {}, {held}", kind.name());
    let count = |what: &str, value| GuardCount { name: format!("{name}, {what}"), value };
    Ok(vec![
        count("wire bytes", wire as u64),
        count("allocations", calls),
        count("allocated bytes", allocated),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_same_every_time_and_have_names_of_their_own() {
        let (one, two) = (counts().unwrap(), counts().unwrap());
        assert_eq!(one, two);
        let names: std::collections::BTreeSet<&str> = one.iter().map(|c| &*c.name).collect();
        assert_eq!(names.len(), one.len());
        assert!(one.iter().any(|count| count.name.contains("borrowed, allocations")));
    }
}
