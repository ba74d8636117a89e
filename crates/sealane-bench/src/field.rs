//! Machines that are joined by connections of Bluetooth Low Energy, in virtual time: what they send
//! each other, and what that takes of the air. Air times are those of the simulator's media.
//!
//! ```text
//!  machine ─► what waits for each neighbour ─► the next meeting of the two ─► machine
//! ```
//!
//! The two ends of a connection meet once in each interval, and as many units cross then as there
//! is time for. What is for everybody goes over each connection. A packet that is lost is sent
//! again at the next meeting, as the radio does it.

mod ours;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::{Add, Sub};
use std::sync::Arc;

use sealane_mesh::{MeshSpan, MeshTime, SendUrgency, UnitReceiver};
use sealane_sim::{BleRate, SimMediumProfile, SimRandom};

use crate::failure::Result;

pub(crate) use ours::{FieldMeshMachine, FieldMeshSetup};

/// A program that sends and hears units.
pub(crate) trait FieldMachine {
    /// Takes a unit of a neighbour.
    fn heard(&mut self, now: MeshTime, from: usize, unit: &[u8]) -> Result<()>;
    /// Time has passed.
    fn tick(&mut self, now: MeshTime) -> Result<()>;
    /// The next of what it wants sent.
    fn next_unit(&mut self) -> Option<FieldUnit>;
    /// When it wants to be told that time has passed.
    fn next_wake(&self) -> Option<MeshTime>;
}

/// Something to send.
#[derive(Debug, Clone)]
pub(crate) struct FieldUnit {
    pub(crate) to: UnitReceiver,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) urgency: SendUrgency,
}

/// The properties of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldRadio {
    pub(crate) profile: SimMediumProfile,
    interval: MeshSpan,
    /// The chance of each packet to be lost.
    loss: f64,
}

/// How often the two ends of a connection meet.
const INTERVAL: MeshSpan = MeshSpan::millis(30);
/// The MTU of ATT.
const MTU: usize = 247;

impl FieldRadio {
    pub(crate) fn ble(rate: BleRate, loss: f64) -> Self {
        let interval = sealane_sim::SimSpan(INTERVAL.0);
        let profile = SimMediumProfile::BleConnection { rate, mtu: MTU, interval };
        Self { profile, interval: INTERVAL, loss }
    }

    /// How long so many bytes occupy the air, cut into units without headers.
    pub(crate) fn air_time(&self, bytes: usize) -> MeshSpan {
        let unit = self.profile.unit_bytes();
        let (whole, rest) = (bytes / unit, bytes % unit);
        let last = if rest > 0 { self.profile.exchange_time(rest).0 } else { 0 };
        MeshSpan(whole as u64 * self.profile.exchange_time(unit).0 + last)
    }
}

/// The traffic of one kind.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TrafficShare {
    pub(crate) units: u64,
    pub(crate) bytes: u64,
    pub(crate) air: MeshSpan,
}

impl Add for TrafficShare {
    type Output = TrafficShare;

    fn add(self, other: TrafficShare) -> TrafficShare {
        TrafficShare {
            units: self.units + other.units,
            bytes: self.bytes + other.bytes,
            air: self.air + other.air,
        }
    }
}

impl Sub for TrafficShare {
    type Output = TrafficShare;

    /// The traffic since `earlier`.
    fn sub(self, earlier: TrafficShare) -> TrafficShare {
        TrafficShare {
            units: self.units - earlier.units,
            bytes: self.bytes - earlier.bytes,
            air: MeshSpan(self.air.0 - earlier.air.0),
        }
    }
}

/// The traffic that a machine has sent, and how often it was awake.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FieldTally {
    /// Hellos, routes, probes and announcements.
    pub(crate) control: TrafficShare,
    /// All else.
    pub(crate) data: TrafficShare,
    /// Intervals in which it sent, heard or computed something.
    pub(crate) wakes: u64,
    last_wake: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FieldEvent {
    Arrive { from: usize, to: usize, unit: Arc<[u8]> },
    Meet { from: usize, to: usize },
    Wake { machine: usize },
}

/// The units that wait for one neighbour.
#[derive(Debug, Default)]
struct FieldQueue {
    waiting: VecDeque<FieldUnit>,
    /// Whether the next meeting is planned.
    is_planned: bool,
}

/// All machines.
pub(crate) struct BenchField<M> {
    pub(crate) now: MeshTime,
    pub(crate) machines: Vec<M>,
    pub(crate) tallies: Vec<FieldTally>,
    radio: FieldRadio,
    near: Vec<Vec<usize>>,
    lines: BTreeMap<(usize, usize), FieldQueue>,
    /// Until when each machine's radio sends.
    busy: Vec<MeshTime>,
    wakes: Vec<Option<MeshTime>>,
    events: BinaryHeap<Reverse<(MeshTime, u64, FieldEvent)>>,
    count: u64,
    random: SimRandom,
}

/// How often it is looked whether something is so.
const LOOK: MeshSpan = MeshSpan::millis(10);

impl<M: FieldMachine> BenchField<M> {
    /// Machines in rows, each of which has connections with its own row and the next ones.
    pub(crate) fn new(radio: FieldRadio, rows: &[usize], machines: Vec<M>) -> Self {
        let is_near = |one: usize, other: usize| match (rows.get(one), rows.get(other)) {
            (Some(own), Some(next)) => one != other && own.abs_diff(*next) <= 1,
            _ => false,
        };
        let all = machines.len();
        let near = (0..all).map(|one| (0..all).filter(|other| is_near(one, *other)).collect());
        let mut field = Self {
            now: MeshTime(0),
            tallies: vec![FieldTally::default(); all],
            radio,
            near: near.collect(),
            lines: BTreeMap::new(),
            busy: vec![MeshTime(0); all],
            wakes: vec![None; all],
            events: BinaryHeap::new(),
            count: 0,
            random: SimRandom::new(1, "bench", 0),
            machines,
        };
        (0..all).for_each(|machine| field.settle(machine));
        field
    }

    /// Goes on until that time, or until something is so, and says whether it is.
    pub(crate) fn run_until(
        &mut self,
        until: MeshTime,
        mut is_so: impl FnMut(&Self) -> bool,
    ) -> Result<bool> {
        let mut look = self.now + LOOK;
        while let Some(Reverse((at, ..))) = self.events.peek() {
            let next = *at;
            if look < next && look < until {
                self.now = self.now.max(look);
                look = self.now + LOOK;
                if is_so(self) {
                    return Ok(true);
                }
                continue;
            }
            if next > until {
                break;
            }
            self.now = next;
            if let Some(Reverse((.., event))) = self.events.pop() {
                self.happen(event)?;
            }
        }
        self.now = until;
        Ok(is_so(self))
    }

    pub(crate) fn run(&mut self, span: MeshSpan) -> Result<()> {
        self.run_until(self.now + span, |_| false).map(drop)
    }

    /// Sends what a machine wants sent, and plans its next wake. To be called after a machine was
    /// told something from outside.
    pub(crate) fn settle(&mut self, machine: usize) {
        while let Some(unit) = self.machines.get_mut(machine).and_then(M::next_unit) {
            let to = match unit.to {
                UnitReceiver::Everybody => self.near.get(machine).cloned().unwrap_or_default(),
                UnitReceiver::Neighbour(address) => vec![address.0 as usize],
            };
            to.into_iter().for_each(|to| self.wait(machine, to, unit.clone()));
        }
        let wake = self.machines.get(machine).and_then(M::next_wake);
        let Some((at, planned)) = wake.zip(self.wakes.get_mut(machine)) else { return };
        if planned.is_none_or(|known| at < known) {
            *planned = Some(at);
            self.push(at.max(self.now), FieldEvent::Wake { machine });
        }
    }

    /// All that was sent, of all machines.
    pub(crate) fn sent(&self, of: impl Fn(&FieldTally) -> TrafficShare) -> TrafficShare {
        self.tallies.iter().map(of).fold(TrafficShare::default(), Add::add)
    }

    fn push(&mut self, at: MeshTime, event: FieldEvent) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn wait(&mut self, from: usize, to: usize, unit: FieldUnit) {
        let line = self.lines.entry((from, to)).or_default();
        // Behind those that are as urgent.
        let place = line.waiting.partition_point(|other| other.urgency <= unit.urgency);
        line.waiting.insert(place, unit);
        if !line.is_planned {
            line.is_planned = true;
            self.push(self.next_meeting(from, to), FieldEvent::Meet { from, to });
        }
    }

    /// When the two ends of a connection meet next.
    fn next_meeting(&self, from: usize, to: usize) -> MeshTime {
        let interval = self.radio.interval.0;
        let (one, other) = (from.min(to) as u64, from.max(to) as u64);
        let phase = (one * 7_919 + other * 104_729) % interval;
        let since = (self.now.0 + interval - phase) % interval;
        MeshTime(self.now.0 + interval - since)
    }

    fn happen(&mut self, event: FieldEvent) -> Result<()> {
        match event {
            FieldEvent::Arrive { from, to, unit } => {
                self.wake(to);
                if let Some(machine) = self.machines.get_mut(to) {
                    machine.heard(self.now, from, &unit)?;
                }
                self.settle(to);
            }
            FieldEvent::Meet { from, to } => self.meet(from, to),
            FieldEvent::Wake { machine } => {
                if self.wakes.get(machine).copied().flatten().is_none_or(|at| at > self.now) {
                    return Ok(());
                }
                if let Some(planned) = self.wakes.get_mut(machine) {
                    *planned = None;
                }
                self.wake(machine);
                if let Some(program) = self.machines.get_mut(machine) {
                    program.tick(self.now)?;
                }
                self.settle(machine);
            }
        }
        Ok(())
    }

    /// As many units cross as there is time for.
    fn meet(&mut self, from: usize, to: usize) {
        let over = self.now + self.radio.interval;
        let mut start = self.busy.get(from).map_or(self.now, |busy| self.now.max(*busy));
        while let Some(unit) = self.first_waiting(from, to) {
            let took = MeshSpan(self.radio.profile.exchange_time(unit.bytes.len()).0);
            let end = start + took;
            if end > over {
                break;
            }
            start = end;
            self.count_sent(from, &unit, took);
            if self.random.happens(self.radio.loss) {
                break;
            }
            if let Some(line) = self.lines.get_mut(&(from, to)) {
                line.waiting.pop_front();
            }
            self.push(end, FieldEvent::Arrive { from, to, unit: unit.bytes });
        }
        if let Some(busy) = self.busy.get_mut(from) {
            *busy = start;
        }
        let is_more = self.first_waiting(from, to).is_some();
        if let Some(line) = self.lines.get_mut(&(from, to)) {
            line.is_planned = is_more;
        }
        if is_more {
            self.push(over, FieldEvent::Meet { from, to });
        }
    }

    fn first_waiting(&self, from: usize, to: usize) -> Option<FieldUnit> {
        self.lines.get(&(from, to))?.waiting.front().cloned()
    }

    fn count_sent(&mut self, machine: usize, unit: &FieldUnit, took: MeshSpan) {
        self.wake(machine);
        let Some(tally) = self.tallies.get_mut(machine) else { return };
        let share = match unit.urgency {
            SendUrgency::Control => &mut tally.control,
            _ => &mut tally.data,
        };
        share.units += 1;
        share.bytes += unit.bytes.len() as u64;
        share.air = share.air + took;
    }

    /// A machine has something to do; within one interval it wakes once.
    fn wake(&mut self, machine: usize) {
        let interval = self.now.0 / self.radio.interval.0;
        let Some(tally) = self.tallies.get_mut(machine) else { return };
        if tally.last_wake != Some(interval) {
            tally.last_wake = Some(interval);
            tally.wakes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use sealane_mesh::MeshAddress;

    use super::*;

    /// Says one thing to somebody, and remembers what it hears.
    #[derive(Default)]
    struct Parrot {
        says: VecDeque<FieldUnit>,
        heard: Vec<(usize, usize, u64)>,
    }

    impl FieldMachine for Parrot {
        fn heard(&mut self, now: MeshTime, from: usize, unit: &[u8]) -> Result<()> {
            self.heard.push((from, unit.len(), now.0));
            Ok(())
        }

        fn tick(&mut self, _now: MeshTime) -> Result<()> {
            Ok(())
        }

        fn next_unit(&mut self) -> Option<FieldUnit> {
            self.says.pop_front()
        }

        fn next_wake(&self) -> Option<MeshTime> {
            None
        }
    }

    fn unit(to: UnitReceiver, bytes: usize, urgency: SendUrgency) -> FieldUnit {
        FieldUnit { to, bytes: Arc::from(vec![7; bytes]), urgency }
    }

    fn field(says: Vec<FieldUnit>, loss: f64) -> BenchField<Parrot> {
        let mut machines: Vec<Parrot> = (0..4).map(|_| Parrot::default()).collect();
        machines[1].says = says.into();
        BenchField::new(FieldRadio::ble(BleRate::OneM, loss), &[0, 1, 2, 3], machines)
    }

    #[test]
    fn what_is_for_everybody_crosses_each_connection_and_is_counted_there() {
        let mut field = field(vec![unit(UnitReceiver::Everybody, 244, SendUrgency::Control)], 0.0);
        field.run(MeshSpan::seconds(1)).unwrap();
        let heard = |at: usize| field.machines[at].heard.len();
        assert_eq!([0, 1, 2, 3].map(heard), [1, 0, 1, 0]);
        let sent = field.sent(|tally| tally.control);
        // The longest packet takes 2,088 us, with the other end's and two gaps 2,468.
        assert_eq!((sent.units, sent.bytes, sent.air), (2, 488, MeshSpan(2 * 2468)));
        assert_eq!(field.tallies.iter().map(|tally| tally.wakes).collect::<Vec<_>>()[3], 0);
    }

    #[test]
    fn units_cross_when_the_two_meet_the_urgent_first_and_back_to_back() {
        let to = UnitReceiver::Neighbour(MeshAddress(2));
        let says = vec![unit(to, 100, SendUrgency::Normal), unit(to, 50, SendUrgency::Urgent)];
        let mut field = field(says, 0.0);
        field.run(MeshSpan::seconds(1)).unwrap();
        let [(1, 50, first), (1, 100, second)] = field.machines[2].heard[..] else {
            panic!("{:?}", field.machines[2].heard)
        };
        assert!(first <= INTERVAL.0 + 2468, "within an interval: {first}");
        assert_eq!(second - first, field.radio.profile.exchange_time(100).0);
    }

    #[test]
    fn what_is_lost_is_sent_again_at_the_next_meeting_until_it_comes() {
        let to = UnitReceiver::Neighbour(MeshAddress(2));
        let says = (0..50).map(|_| unit(to, 20, SendUrgency::Normal)).collect();
        let mut field = field(says, 0.5);
        field.run(MeshSpan::seconds(60)).unwrap();
        assert_eq!(field.machines[2].heard.len(), 50);
        let sent = field.sent(|tally| tally.data).units;
        assert!((70..150).contains(&sent), "{sent}");
    }
}
