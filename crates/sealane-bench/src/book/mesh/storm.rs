//! Twenty members acknowledge a call for help at once: what each machine computes.

use std::hint::black_box;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use sealane_codec::document::encode;
use sealane_document::ShelfKeeper;
use sealane_mesh::{MeshProvision, MeshSpan};
use sealane_message::DataType;
use sealane_message::document::{Document, Emergency, EmergencyCall, EmergencyKind};
use sealane_sim::BleRate;

use super::super::{BookRow, BookTable};
use crate::failure::{BenchFailure, Result};
use crate::field::{BenchField, FieldMeshMachine, FieldMeshSetup, FieldRadio};
use crate::measure::{BenchFigure, FigureSpread, MeasurePlan, cpu_ns, medians, percentile, timed};

const MEMBERS: usize = 20;
/// Machines of a row: nobody is further than three hops from anybody.
const IN_A_ROW: usize = 5;
const LOSS: f64 = 0.1;
const SETTLES: MeshSpan = MeshSpan::seconds(8);
/// The wait after the call, and after the last acknowledgement.
const LULL: MeshSpan = MeshSpan::seconds(5);
/// In this time all are to have all, and so long the CPU is counted.
const WITHIN: MeshSpan = MeshSpan::seconds(2);
const PATIENCE: MeshSpan = MeshSpan::seconds(60);
/// A machine may take this long, where a signature is verified in no more than that.
const DEMANDED_NS: f64 = 2e6;
const VERIFIED_NS: f64 = 60e3;
/// How often the clock is looked at to know what that takes.
const CLOCK_LOOKS: usize = 1000;
/// Elsewhere, as long as so many verifications.
const VERIFICATIONS: f64 = 25.0;

/// The result of one storm.
struct StormOutcome {
    /// Nanoseconds of each machine, in the time that all have to have all.
    spent_ns: Vec<f64>,
    /// In as much time before anybody acknowledged.
    idle_ns: Vec<f64>,
    /// Until all had all.
    took: MeshSpan,
}

pub(super) fn table(plan: &MeasurePlan) -> Result<BookTable> {
    let is_look = plan.rounds < MeasurePlan::full().rounds;
    let storms = if is_look { 1 } else { plan.rounds / 4 };
    let [mut typical, mut slowest, mut idle, mut took, mut verified] = [const { vec![] }; 5];
    for seed in 0..storms {
        // Beside each storm, so that a disturbance of the machine hits both.
        verified.push(verification(&MeasurePlan { rounds: 3, ..*plan })?);
        let mut storm = storm(seed as u8)?;
        idle.push(FigureSpread::of(&mut storm.idle_ns).median);
        typical.push(FigureSpread::of(&mut storm.spent_ns).median);
        slowest.push(percentile(&mut storm.spent_ns, 1.0));
        took.push(storm.took.0 as f64 * 1e3);
    }
    let [typical, slowest, idle, took, verified] =
        [typical, slowest, idle, took, verified].map(|mut all| FigureSpread::of(&mut all).median);
    let demanded = match verified <= VERIFIED_NS {
        true => DEMANDED_NS,
        false => VERIFICATIONS * verified,
    };
    let verdict = if slowest <= demanded { "met" } else { "MISSED" };
    let others = MEMBERS - 1;
    let beside = format!("{others} signatures verified, each once");
    let rows = vec![
        BookRow::new("one Ed25519 signature, verified").sealane(BenchFigure::ns(verified)),
        BookRow::new(format!("{others} of them alone"))
            .sealane(BenchFigure::ns(verified * others as f64)),
        BookRow::new("a machine, half of them").sealane(BenchFigure::ns(typical)).note(beside),
        BookRow::new("the machine that takes most")
            .sealane(BenchFigure::ns(slowest))
            .note(format!("demanded <= {}: {verdict}", BenchFigure::ns(demanded))),
        BookRow::new("of it without any acknowledgement")
            .sealane(BenchFigure::ns(idle))
            .note("hellos of the same two seconds, as they were before"),
        BookRow::new("until all have all").sealane(BenchFigure::ns(took)).note("in virtual time"),
    ];
    let note = format!(
        "{MEMBERS} members, none further than three hops from any other, Bluetooth LE at 2 Mbit/s \
         with an interval of 30 ms, {} % of the packets lost. The CPU of a machine, mesh and \
         documents, in the two seconds in which all have to have all: its own signed, hop seals \
         made and checked, parts joined, frames handed on, what comes opened and kept, repeats \
         passed over, hellos. What the clock takes is not in it. Medians of {storms} storms.",
        LOSS * 100.0
    );
    Ok(BookTable::new("Twenty acknowledgements at once", note, rows))
}

fn verification(plan: &MeasurePlan) -> Result<f64> {
    let broken = || BenchFailure::broken("a signature");
    let pair = Ed25519KeyPair::from_seed_unchecked(&[4; 32]).map_err(|_| broken())?;
    let message = [7; 100];
    let signature = pair.sign(&message);
    let key = ParsedPublicKey::new(&ED25519, pair.public_key().as_ref()).map_err(|_| broken())?;
    key.verify_sig(&message, signature.as_ref()).map_err(|_| broken())?;
    let verify = || _ = black_box(key.verify_sig(black_box(&message), signature.as_ref()).is_ok());
    let [ns] = medians(plan, [timed(verify)]);
    Ok(ns)
}

fn storm(seed: u8) -> Result<StormOutcome> {
    try_storm(seed)?.ok_or_else(|| BenchFailure::broken("twenty acknowledgements at once"))
}

fn try_storm(seed: u8) -> Result<Option<StormOutcome>> {
    let provision = MeshProvision::new([seed; 32], MEMBERS as u16)?;
    let radio = FieldRadio::ble(BleRate::TwoM, LOSS);
    let post = FieldMeshSetup { provision: &provision, members: MEMBERS as u16, radio };
    let start = |slot| FieldMeshMachine::start(post, slot, ShelfKeeper::Member);
    let machines = (0..MEMBERS as u16).map(start).collect::<Result<_, _>>()?;
    let rows: Vec<usize> = (0..MEMBERS).map(|machine| machine / IN_A_ROW).collect();
    let mut field = BenchField::new(radio, &rows, machines);
    field.run(SETTLES)?;
    let Some([call, answer]) = bodies() else { return Ok(None) };
    write(&mut field, 0, DataType::EMERGENCY, &call)?;
    let all_have = |field: &BenchField<FieldMeshMachine>, count| {
        field.machines.iter().all(|it| it.kept() == count)
    };
    if !field.run_until(field.now + PATIENCE, |field| all_have(field, 1))? {
        return Ok(None);
    }
    field.run(LULL)?;
    spent(&mut field);
    field.run(WITHIN)?;
    let idle_ns = spent(&mut field);
    let opened = |field: &BenchField<FieldMeshMachine>| -> Vec<u64> {
        field.machines.iter().map(|it| it.member.agent.counters().opened).collect()
    };
    let (began, before) = (field.now, opened(&field));
    for machine in 0..MEMBERS {
        write(&mut field, machine, DataType::ACKNOWLEDGEMENT, &answer)?;
    }
    if !field.run_until(began + PATIENCE, |field| all_have(field, 1 + MEMBERS))? {
        return Ok(None);
    }
    let took = field.now.since(began);
    let end = field.now.max(began + WITHIN);
    field.run_until(end, |_| false)?;
    let spent_ns = spent(&mut field);
    field.run(LULL)?;
    let others = MEMBERS as u64 - 1;
    let is_once =
        opened(&field).iter().zip(&before).all(|(after, before)| after - before == others);
    Ok(is_once.then_some(StormOutcome { spent_ns, idle_ns, took }))
}

/// Nanoseconds of each machine since this was asked last, without those of the clock.
fn spent(field: &mut BenchField<FieldMeshMachine>) -> Vec<f64> {
    let mut looks: Vec<f64> = (0..CLOCK_LOOKS).map(|_| -cpu_ns() + cpu_ns()).collect();
    let look = FigureSpread::of(&mut looks).median;
    let of = |machine: &mut FieldMeshMachine| {
        let looks = std::mem::take(&mut machine.looks) as f64 * look;
        std::mem::take(&mut machine.spent_ns) - looks
    };
    field.machines.iter_mut().map(of).collect()
}

fn write(
    field: &mut BenchField<FieldMeshMachine>,
    machine: usize,
    data_type: DataType,
    body: &[u8],
) -> Result<()> {
    let now = field.now;
    if let Some(one) = field.machines.get_mut(machine) {
        one.write(now, data_type, body)?;
    }
    field.settle(machine);
    Ok(())
}

/// A call of slot 0 and an answer to it, each behind the time of urgent messages.
fn bodies() -> Option<[Vec<u8>; 2]> {
    let call = Emergency { number: 1, kind: EmergencyKind::Medical, position: None, text: None };
    let answer = EmergencyCall { slot: 0, number: 1 };
    let body = |document: Document<'_>| {
        let mut body = 1_790_000_000_000_u64.to_le_bytes().to_vec();
        encode(&document, &mut body).ok().map(|()| body)
    };
    Some([body(Document::Emergency(call))?, body(Document::Acknowledgement(answer))?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_has_each_machine_verify_each_signature_once() {
        // It gives nothing where one was verified twice, or not at all.
        let storm = storm(1).unwrap();
        assert_eq!(storm.spent_ns.len(), MEMBERS);
        assert!(storm.took <= MeshSpan::seconds(2), "{:?}", storm.took);
    }
}
