//! Documents carried over one hop and over seven, by machines of the mesh on Bluetooth LE.

use sealane_mesh::{MeshProvision, MeshSpan};
use sealane_message::DataType;
use sealane_sim::BleRate;

use super::super::{BookRow, BookTable};
use super::sync::{HOPS, LINE, keeper, vitals};
use crate::baseline::mesh::{PublishedDocument, RELAY_BYTES, SAMPLES};
use crate::failure::{BenchFailure, Result};
use crate::field::{BenchField, FieldMeshMachine, FieldMeshSetup, FieldRadio};
use crate::measure::BenchFigure;
use crate::team::LOG;

/// How long machines look for each other before anybody writes.
const SETTLES: MeshSpan = MeshSpan::seconds(10);
/// After so long it would be lost.
const PATIENCE: MeshSpan = MeshSpan::seconds(60);
/// How long neighbours go on comparing what they hold once it is there.
const AFTER: MeshSpan = MeshSpan::seconds(5);
/// Half of the interval in which the two ends of a connection meet.
const MEAN_WAIT_NS: f64 = 15e6;

/// The cost of carrying one document.
struct CarryOutcome {
    bytes: u64,
    air: MeshSpan,
    took: MeshSpan,
}

pub(super) fn tables() -> Result<Vec<BookTable>> {
    let note = "The documents of above, from their origin to a reader over relays without keys, in \
                virtual time: connections of Bluetooth LE at 1 Mbit/s with an MTU of 247, an \
                interval of 30 ms, nothing lost. Baseline: the report's sealed document in its \
                relay's envelope, by the link's formula. Sealane: the machines that are shipped; \
                what they compare afterwards counts, hellos and routes do not.";
    let table = |title: &str, note: &str| BookTable::new(title, note, vec![]);
    let mut bytes = table("Carried over 1 and 7 hops: bytes on the air", note);
    let mut air = table("Carried over 1 and 7 hops: air time of all hops", "");
    let waits = "Baseline: the air time, and for each hop half of the interval in which the two \
                 ends of a connection meet.";
    let mut took = table("Carried over 1 and 7 hops: until it is there", waits);
    for sample in SAMPLES {
        for hops in [1, HOPS] {
            let carried = carry(&sample, hops)?;
            let name = format!("{}, {} B, {hops} hops", sample.name, sample.bytes);
            let row = || BookRow::new(name.replace(" 1 hops", " 1 hop"));
            let ns = |span: MeshSpan| BenchFigure::ns(span.0 as f64 * 1e3);
            let sealed = sample.bytes + super::RECIPE_BYTES + RELAY_BYTES;
            let one = FieldRadio::ble(BleRate::OneM, 0.0).air_time(sealed);
            let all = MeshSpan(one.0 * hops as u64);
            let waited = BenchFigure::ns(ns(all).value + MEAN_WAIT_NS * hops as f64);
            let ours = usize::try_from(carried.bytes).unwrap_or(usize::MAX);
            bytes.rows.push(
                row().baseline(BenchFigure::bytes(sealed * hops)).sealane(BenchFigure::bytes(ours)),
            );
            air.rows.push(row().baseline(ns(all)).sealane(ns(carried.air)));
            took.rows.push(row().baseline(waited).sealane(ns(carried.took)));
        }
    }
    Ok(vec![bytes, air, took])
}

fn carry(sample: &PublishedDocument, hops: usize) -> Result<CarryOutcome> {
    let lines = sample.chats.min(sample.chats_sent as u64);
    let body = vitals()?;
    try_carry(&body, lines, hops)?.ok_or_else(|| BenchFailure::broken("carrying a document"))
}

fn try_carry(vitals: &[u8], lines: u64, hops: usize) -> Result<Option<CarryOutcome>> {
    let members = hops as u16 + 1;
    let provision = MeshProvision::new([3; 32], members)?;
    let radio = FieldRadio::ble(BleRate::OneM, 0.0);
    let post = FieldMeshSetup { provision: &provision, members, radio };
    let start = |slot: usize| FieldMeshMachine::start(post, slot as u16, keeper(slot, hops));
    let machines = (0..=hops).map(start).collect::<Result<_, _>>()?;
    let rows: Vec<usize> = (0..=hops).collect();
    let mut field = BenchField::new(radio, &rows, machines);
    field.run(SETTLES)?;
    let (began, before) = (field.now, field.sent(|tally| tally.data));
    if let Some(origin) = field.machines.first_mut() {
        origin.write(began, DataType::VITALS, vitals)?;
        for _ in 0..lines {
            origin.write(began, LOG, &LINE)?;
        }
    }
    field.settle(0);
    let all = lines as usize + 1;
    let is_there = |field: &BenchField<FieldMeshMachine>| {
        field.machines.last().is_some_and(|it| it.kept() == all)
    };
    if !field.run_until(began + PATIENCE, is_there)? {
        return Ok(None);
    }
    let took = field.now.since(began);
    field.run(AFTER)?;
    let after = field.sent(|tally| tally.data);
    let air = MeshSpan(after.air.0 - before.air.0);
    Ok(Some(CarryOutcome { bytes: after.bytes - before.bytes, air, took }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hop_takes_its_share_and_what_is_carried_comes() {
        let [one, more] = [1, 2].map(|hops| carry(&SAMPLES[1], hops).unwrap());
        assert!(one.bytes > 100 && more.bytes > one.bytes * 3 / 2, "{} {}", one.bytes, more.bytes);
        assert!(one.took < more.took && one.air < more.air);
    }
}
