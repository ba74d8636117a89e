//! An hour of twenty machines over seven hops: what all of it takes of the air, beside full gossip.

use sealane_codec::document::encode;
use sealane_document::ShelfKeeper;
use sealane_mesh::{MeshProvision, MeshSpan, MeshTime};
use sealane_message::DataType;
use sealane_message::document::{Count, Document, Location, Position};
use sealane_sim::BleRate;

use super::super::{BookRow, BookTable};
use super::sync::vitals;
use crate::baseline::mesh::gossip::GossipNode;
use crate::failure::{BenchFailure, Result};
use crate::field::{
    BenchField, FieldMachine, FieldMeshMachine, FieldMeshSetup, FieldRadio, TrafficShare,
};
use crate::measure::{BenchFigure, FigureUnit, MeasurePlan, percentile};

/// Eight rows: seven hops from the first machine to the last.
const ROWS: [usize; 20] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7];
/// Seconds of a run: an hour, or what a look has time for.
const HOUR_S: u64 = 3600;
const LOOK_S: u64 = 60;
/// How long machines look for each other before anybody writes.
const SETTLES_S: u64 = 10;
/// How often the report's nodes tell all that they hold: as its program does while somebody is
/// connected, and as the report says that it is usual.
const GOSSIPS: [GossipPace; 2] = [
    GossipPace { name: "gossip each 5 s", every: MeshSpan::seconds(5), demanded_percent: None },
    GossipPace {
        name: "gossip each 0.5 s",
        every: MeshSpan::millis(500),
        demanded_percent: Some(DEMANDED_PERCENT),
    },
];
/// Of the bytes of full gossip that has lines with all in as much time.
const DEMANDED_PERCENT: f64 = 25.0;
/// How often a machine says where it is, counts, and says how it is.
const LOCATION_S: u64 = 30;
const COUNTER_S: u64 = 60;
const VITALS_S: u64 = 300;
/// How often one of them says a line, each in turn.
const LINE_S: u64 = 30;

/// A pace of full gossip.
struct GossipPace {
    name: &'static str,
    every: MeshSpan,
    /// The most that may be taken of its bytes. This is demanded beside gossip that is as fast.
    /// Gossip every 5 s is tens of times slower.
    demanded_percent: Option<f64>,
}

impl GossipPace {
    fn note(&self, own: BenchFigure, baseline: BenchFigure) -> String {
        let percent = own.value / baseline.value.max(1.0) * 100.0;
        let part = format!("{percent:.0} % of the bytes");
        match self.demanded_percent {
            None => format!("{part}; this gossip is slower by far"),
            Some(most) => {
                let is_met = if percent <= most { "met" } else { "MISSED" };
                format!("{part}, demanded <= {most} %: {is_met}")
            }
        }
    }
}

/// A message of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HourMessageKind {
    Location,
    Count,
    Vitals,
    /// A line, by its number.
    Line(u64),
}

/// A machine that takes part in the hour.
trait HourMachine: FieldMachine {
    fn say(&mut self, now: MeshTime, says: HourMessageKind) -> Result<()>;
    /// Whether it holds that line of another machine.
    fn has_line(&self, number: u64) -> bool;
}

/// The machine whose turn it is to say a line.
fn speaker(number: u64) -> usize {
    (number % ROWS.len() as u64) as usize
}

impl HourMachine for FieldMeshMachine {
    fn say(&mut self, now: MeshTime, says: HourMessageKind) -> Result<()> {
        let time_ms = 1_790_000_000_000 + now.as_millis();
        let mut body = vec![];
        let document = match says {
            HourMessageKind::Location => Position::from_degrees(52.5, 13.4).map(|position| {
                let (altitude_dm, accuracy_dm) = (Some(340), Some(50));
                Document::Location(Location { time_ms, position, altitude_dm, accuracy_dm })
            }),
            HourMessageKind::Count => {
                Some(Document::Counter(vec![Count { id: 1, total: now.as_millis() }]))
            }
            HourMessageKind::Vitals => {
                body = vitals()?;
                None
            }
            HourMessageKind::Line(number) => {
                body = format!("{number:>8}ridge line is clear, we are moving on").into_bytes();
                None
            }
        };
        let data_type = match says {
            HourMessageKind::Location => DataType::LOCATION,
            HourMessageKind::Count => DataType::COUNTER,
            HourMessageKind::Vitals => DataType::VITALS,
            HourMessageKind::Line(_) => DataType::CHAT,
        };
        if let Some(document) = document {
            encode(&document, &mut body).map_err(|_| BenchFailure::broken("a document"))?;
        }
        self.write(now, data_type, &body).map(drop)
    }

    /// Lines of one machine come in their order only by chance, so that they are counted: the
    /// n-th line of a machine is there once it has that many.
    fn has_line(&self, number: u64) -> bool {
        let said = number / ROWS.len() as u64 + 1;
        self.lines_of(speaker(number) as u16) as u64 >= said
    }
}

impl HourMachine for GossipNode {
    fn say(&mut self, now: MeshTime, says: HourMessageKind) -> Result<()> {
        match says {
            HourMessageKind::Location | HourMessageKind::Vitals => {
                self.document.say(now.as_millis())
            }
            HourMessageKind::Count => self.document.count(),
            HourMessageKind::Line(number) => self.document.chat(number),
        }
        Ok(())
    }

    fn has_line(&self, number: u64) -> bool {
        self.document.has_chat(number, speaker(number) as u32)
    }
}

/// The result of an hour.
struct HourOutcome {
    control: TrafficShare,
    data: TrafficShare,
    /// Of one machine, on average.
    wakes: f64,
    /// Nanoseconds from a line to the last machine that got it.
    spread_ns: Vec<f64>,
    said: usize,
    /// The factor from the time that was run to an hour.
    scale: f64,
}

impl HourOutcome {
    fn air(&self, share: TrafficShare) -> BenchFigure {
        BenchFigure::ns(share.air.0 as f64 * 1e3 * self.scale)
    }

    fn bytes(&self, share: TrafficShare) -> BenchFigure {
        BenchFigure::of(share.bytes as f64 * self.scale, FigureUnit::Bytes)
    }

    fn all(&self) -> TrafficShare {
        self.control + self.data
    }
}

pub(super) fn tables(plan: &MeasurePlan) -> Result<Vec<BookTable>> {
    let is_look = plan.rounds < MeasurePlan::full().rounds;
    let seconds = if is_look { LOOK_S } else { HOUR_S };
    let mut ours = live(members()?, seconds)?;
    let [mut air, mut bytes, mut wakes, mut spread] = titles(seconds);
    let wakes_of = |hour: &HourOutcome| BenchFigure::of(hour.wakes * hour.scale, FigureUnit::Count);
    for pace in GOSSIPS {
        let name = pace.name;
        let mut gossip = live(gossips(pace.every)?, seconds)?;
        for (what, part) in [("documents", ours.data), ("all of it", ours.all())] {
            let row = || BookRow::new(format!("{what}, beside {name}"));
            let (baseline, own) = (gossip.bytes(gossip.data), ours.bytes(part));
            bytes.rows.push(row().baseline(baseline).sealane(own).note(pace.note(own, baseline)));
            air.rows.push(row().baseline(gossip.air(gossip.data)).sealane(ours.air(part)));
        }
        let row = BookRow::new(format!("a machine, beside {name}"));
        wakes.rows.push(row.baseline(wakes_of(&gossip)).sealane(wakes_of(&ours)));
        for (line, part) in [("half of the lines", 0.5), ("the slowest line", 1.0)] {
            let row = BookRow::new(format!("{line}, beside {name}"));
            let [own, baseline] = [&mut ours, &mut gossip]
                .map(|of| BenchFigure::ns(percentile(&mut of.spread_ns, part)));
            let came = format!("{} of {} came to all", ours.spread_ns.len(), ours.said);
            spread.rows.push(row.baseline(baseline).sealane(own).note(came));
        }
    }
    let control = || BookRow::new("of it hellos, routes, announcements").note(CONTROL);
    air.rows.push(control().sealane(ours.air(ours.control)));
    bytes.rows.push(control().sealane(ours.bytes(ours.control)));
    Ok(vec![air, bytes, wakes, spread])
}

const CONTROL: &str = "the report has no routes, and its document is the sign of life";

/// The tables of air time, bytes, wake-ups and spread, without rows.
fn titles(seconds: u64) -> [BookTable; 4] {
    let note = format!(
        "{} machines in {} rows, connections of Bluetooth LE at 1 Mbit/s with an MTU of 247 and an \
         interval of 30 ms to all of their own row and the next ones, nothing lost. Each says \
         where it is every {LOCATION_S} s, counts every {COUNTER_S} s, says how it is every \
         {VITALS_S} s, and in turn a line every {LINE_S} s. Baseline: full gossip, in which each \
         node tells its whole document, encrypted, to each that it is connected with; the report \
         calls 0.1 to 0.5 s usual, its program takes 5 s. Sealane: the machines that are shipped. \
         {seconds} s of virtual time of each, shown for an hour.",
        ROWS.len(),
        ROWS.last().map_or(0, |row| row + 1),
    );
    let wakes = "Intervals of 30 ms in which a machine sends, hears or computes something.";
    [
        ("air time", note.as_str()),
        ("bytes on the air", ""),
        ("wake-ups", wakes),
        ("until all have a line", ""),
    ]
    .map(|(what, note)| BookTable::new(format!("An hour of twenty machines: {what}"), note, vec![]))
}

fn radio() -> FieldRadio {
    FieldRadio::ble(BleRate::OneM, 0.0)
}

fn members() -> Result<Vec<FieldMeshMachine>> {
    let members = ROWS.len() as u16;
    let provision = MeshProvision::new([5; 32], members)?;
    let post = FieldMeshSetup { provision: &provision, members, radio: radio() };
    (0..members).map(|slot| FieldMeshMachine::start(post, slot, ShelfKeeper::Member)).collect()
}

fn gossips(every: MeshSpan) -> Result<Vec<GossipNode>> {
    let unit = radio().profile.unit_bytes();
    let phase = |node: usize| MeshTime(every.0 * node as u64 / ROWS.len() as u64);
    (0..ROWS.len()).map(|node| GossipNode::new(node, unit, phase(node), every)).collect()
}

/// An hour, after the machines have found each other.
fn live<M: HourMachine>(machines: Vec<M>, seconds: u64) -> Result<HourOutcome> {
    let mut field = BenchField::new(radio(), &ROWS, machines);
    field.run(MeshSpan::seconds(SETTLES_S))?;
    let before = field.tallies.clone();
    let (mut lines, mut spread_ns): (Vec<(u64, MeshTime)>, Vec<f64>) = (vec![], vec![]);
    let began = field.now;
    let mut said = 0;
    for second in 0..seconds {
        if second % LINE_S == 0 {
            lines.push((said, field.now));
            say(&mut field, speaker(said), HourMessageKind::Line(said))?;
            said += 1;
        }
        for machine in 0..ROWS.len() {
            for says in due(machine, second) {
                say(&mut field, machine, says)?;
            }
        }
        let until = began + MeshSpan::seconds(second + 1);
        while field.run_until(until, |field| lines.iter().any(|line| is_there(field, line.0)))? {
            let now = field.now;
            lines.retain(|(number, told)| {
                let is_here = is_there(&field, *number);
                if is_here {
                    spread_ns.push(now.since(*told).0 as f64 * 1e3);
                }
                !is_here
            });
        }
    }
    let mut hour = HourOutcome {
        control: TrafficShare::default(),
        data: TrafficShare::default(),
        wakes: 0.0,
        spread_ns,
        said: said as usize,
        scale: HOUR_S as f64 / seconds as f64,
    };
    for (after, before) in field.tallies.iter().zip(&before) {
        hour.control = hour.control + (after.control - before.control);
        hour.data = hour.data + (after.data - before.data);
        hour.wakes += (after.wakes - before.wakes) as f64 / ROWS.len() as f64;
    }
    Ok(hour)
}

fn is_there<M: HourMachine>(field: &BenchField<M>, number: u64) -> bool {
    field.machines.iter().all(|machine| machine.has_line(number))
}

/// The messages that a machine sends in a second; each machine has a second of its own.
fn due(machine: usize, second: u64) -> Vec<HourMessageKind> {
    let turn = second + machine as u64;
    let every = [
        (LOCATION_S, HourMessageKind::Location),
        (COUNTER_S, HourMessageKind::Count),
        (VITALS_S, HourMessageKind::Vitals),
    ];
    every.into_iter().filter(|(every, _)| turn.is_multiple_of(*every)).map(|(_, it)| it).collect()
}

fn say<M: HourMachine>(
    field: &mut BenchField<M>,
    machine: usize,
    says: HourMessageKind,
) -> Result<()> {
    let now = field.now;
    if let Some(one) = field.machines.get_mut(machine) {
        one.say(now, says)?;
    }
    field.settle(machine);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_to_all_machines_of_both_kinds() {
        let ours = live(members().unwrap(), 40).unwrap();
        assert_eq!((ours.said, ours.spread_ns.len()), (2, 2));
        assert!(ours.data.bytes > 0 && ours.control.bytes > 0 && ours.wakes > 1.0);
        let gossip = live(gossips(GOSSIPS[0].every).unwrap(), 65).unwrap();
        assert!(gossip.spread_ns.len() >= 2, "within 35 s each");
        assert_eq!(gossip.control.bytes, 0);
    }
}
