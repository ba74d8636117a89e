//! How often a member's own documents are sealed and leave: what the policy's pace allows.
//!
//! A document that waits is not sealed yet. Of a type of which the newest frame is kept, the newest
//! document takes the place of the one that waits; those of a log leave one after the other. Urgent
//! types never wait. The class is not decided here: battery and rate do not reach it.

use std::collections::{BTreeMap, VecDeque};

use sealane_message::DataType;
use sealane_seal::policy::{Battery, Conditions, Policy, PolicyLink, Rate, SendPace, Sending};

use crate::limits::kept;

/// A document whose turn has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDocument {
    /// The data type.
    pub data_type: DataType,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// The counts since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacerCounters {
    /// Documents that were written.
    pub written: u64,
    /// Documents whose turn came.
    pub left: u64,
    /// Documents that did not leave, since a newer one took their place.
    pub overtaken: u64,
    /// Documents of logs that did not leave, since more waited than are kept.
    pub dropped: u64,
    /// Documents of those that left which could not be sealed or stored, when nobody waited for
    /// them any more.
    pub failed: u64,
}

/// Paces the documents of one member.
#[derive(Debug)]
pub struct DocumentPacer {
    policy: Policy,
    battery: Option<Battery>,
    lanes: BTreeMap<DataType, PacerLane>,
    counters: PacerCounters,
}

/// The documents of one type.
#[derive(Debug, Default)]
struct PacerLane {
    /// When the last ones were written, in milliseconds.
    written: VecDeque<u64>,
    /// When the last one left.
    left: Option<u64>,
    waiting: VecDeque<Vec<u8>>,
    /// When the first one that waits may leave.
    due: u64,
}

/// A rate is measured over so many documents, or a second: two at once are not often yet.
const MEASURED: usize = 64;
const SECOND_MS: u64 = 1_000;
/// Where nothing was written for so long, the rate is measured anew.
const QUIET_MS: u64 = 10_000;
const MILLIHERTZ_MS: u64 = 1_000_000;

impl DocumentPacer {
    /// Paces by this policy, on mains power.
    pub fn new(policy: Policy) -> Self {
        Self { policy, battery: None, lanes: BTreeMap::new(), counters: PacerCounters::default() }
    }

    /// How full the battery is, if there is one.
    pub fn set_battery(&mut self, battery: Option<Battery>) {
        self.battery = battery;
    }

    /// The counts.
    pub fn counters(&self) -> PacerCounters {
        self.counters
    }

    /// Counts a document whose turn had come, and that could not be sealed or stored.
    pub fn count_failed(&mut self) {
        self.counters.failed += 1;
    }

    /// How messages between neighbours are sent now.
    pub fn sending(&self) -> Sending {
        self.sending_of(DataType::UNKNOWN, Rate::default())
    }

    /// The pace at which documents of a type leave now.
    pub fn pace(&self, data_type: DataType) -> SendPace {
        self.policy.decide(data_type, &self.conditions(data_type)).pace
    }

    /// The conditions that a decision about a document of a type depends on now.
    pub fn conditions(&self, data_type: DataType) -> Conditions {
        self.at(self.lanes.get(&data_type).map(PacerLane::rate).unwrap_or_default())
    }

    /// Takes a document. It is due at once, or waits.
    pub fn write(&mut self, now_ms: u64, data_type: DataType, body: Vec<u8>) {
        let lane = self.lanes.entry(data_type).or_default();
        lane.note(now_ms);
        let rate = lane.rate();
        let sending = self.sending_of(data_type, rate);
        let Some(lane) = self.lanes.get_mut(&data_type) else { return };
        self.counters.written += 1;
        if lane.waiting.is_empty() {
            lane.due = lane.next_due(now_ms + u64::from(sending.batch_ms), &sending);
        } else if kept(data_type) <= 1 && !data_type.is_urgent() {
            lane.waiting.clear();
            self.counters.overtaken += 1;
        }
        lane.waiting.push_back(body);
        if lane.waiting.len() > kept(data_type).max(1) && !data_type.is_urgent() {
            lane.waiting.pop_front();
            self.counters.dropped += 1;
        }
    }

    /// The next document whose turn has come; to be called until there is none.
    pub fn next(&mut self, now_ms: u64) -> Option<DueDocument> {
        let due = self.lanes.iter().find(|(_, lane)| lane.is_due(now_ms));
        let data_type = due.map(|(data_type, _)| *data_type)?;
        self.next_of(now_ms, data_type)
    }

    /// The next document of a type, if its turn has come.
    pub fn next_of(&mut self, now_ms: u64, data_type: DataType) -> Option<DueDocument> {
        let rate = self.lanes.get(&data_type).filter(|lane| lane.is_due(now_ms))?.rate();
        let sending = self.sending_of(data_type, rate);
        let lane = self.lanes.get_mut(&data_type)?;
        let body = lane.waiting.pop_front()?;
        lane.left = Some(now_ms);
        lane.due = lane.next_due(now_ms, &sending);
        self.counters.left += 1;
        Some(DueDocument { data_type, body })
    }

    /// When [`DocumentPacer::next`] is to be called again.
    pub fn wake_ms(&self) -> Option<u64> {
        let waiting = self.lanes.values().filter(|lane| !lane.waiting.is_empty());
        waiting.map(|lane| lane.due).min()
    }

    /// For how long the document of a type waits that was written last: all before it leave first.
    /// 0 if none waits.
    pub fn wait_ms(&self, now_ms: u64, data_type: DataType) -> u64 {
        let Some(lane) = self.lanes.get(&data_type) else { return 0 };
        let Some(before) = lane.waiting.len().checked_sub(1) else { return 0 };
        let gap = gap_ms(&self.sending_of(data_type, lane.rate())).unwrap_or(0);
        let last = lane.due.saturating_add(gap.saturating_mul(before as u64));
        last.saturating_sub(now_ms).max(1)
    }

    /// All documents that wait, whether or not their turn has come: nothing follows.
    pub fn drain(&mut self) -> Vec<DueDocument> {
        let mut all = vec![];
        for (data_type, lane) in &mut self.lanes {
            let due = |body| DueDocument { data_type: *data_type, body };
            all.extend(std::mem::take(&mut lane.waiting).into_iter().map(due));
        }
        self.counters.left += all.len() as u64;
        all
    }

    /// The document that was written last and has not left yet.
    pub fn waiting(&self, data_type: DataType) -> Option<&[u8]> {
        self.lanes.get(&data_type)?.waiting.back().map(Vec::as_slice)
    }

    fn at(&self, rate: Rate) -> Conditions {
        let battery = self.battery;
        Conditions { link: PolicyLink::Mesh, battery, rate, ..Conditions::default() }
    }

    fn sending_of(&self, data_type: DataType, rate: Rate) -> Sending {
        self.policy.decide(data_type, &self.at(rate)).sending
    }
}

/// The shortest time between two documents of a type, if there is a bound.
fn gap_ms(sending: &Sending) -> Option<u64> {
    sending.rate_max.map(|rate| MILLIHERTZ_MS / u64::from(rate.millihertz().max(1)))
}

impl PacerLane {
    fn note(&mut self, now_ms: u64) {
        if self.written.back().is_some_and(|last| now_ms.saturating_sub(*last) > QUIET_MS) {
            self.written.clear();
        }
        self.written.push_back(now_ms);
        if self.written.len() > MEASURED {
            self.written.pop_front();
        }
    }

    /// How often such documents are written.
    fn rate(&self) -> Rate {
        let (Some(first), Some(last)) = (self.written.front(), self.written.back()) else {
            return Rate::default();
        };
        let gaps = self.written.len() as u64 - 1;
        let least = if self.written.len() < MEASURED { SECOND_MS } else { 1 };
        let millihertz = (gaps * MILLIHERTZ_MS) / last.saturating_sub(*first).max(least);
        Rate::from_millihertz(u32::try_from(millihertz).unwrap_or(u32::MAX))
    }

    /// Not before that time, and not more often than may be.
    fn next_due(&self, at_ms: u64, sending: &Sending) -> u64 {
        let free = self.left.zip(gap_ms(sending)).map(|(left, gap)| left + gap);
        at_ms.max(free.unwrap_or(0))
    }

    fn is_due(&self, now_ms: u64) -> bool {
        !self.waiting.is_empty() && self.due <= now_ms
    }
}
