//! How machines know that frames arrive: a gateway counts them, and tells.

use std::collections::BTreeMap;

use sealane_seal::Slot;

use crate::limits::{MAX_CARRIED_COUNTS, MAX_IDLE_REPORTS, MAX_REPORTED};
use crate::messages::GatewayReport;
use crate::neighbour::LinkId;

/// The frames that came to this machine, and those that it has sent or carried to gateways.
#[derive(Debug, Default)]
pub(crate) struct GatewayReports {
    sequence: u32,
    came: BTreeMap<Slot, FramesCame>,
    carried: BTreeMap<GatewayPair, FramesCarried>,
    heard: BTreeMap<Slot, LastReport>,
}

/// The source of frames, and their gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GatewayPair {
    pub(crate) gateway: Slot,
    pub(crate) of: Slot,
}

/// Frames of one machine that came to this gateway.
#[derive(Debug, Default, Clone, Copy)]
struct FramesCame {
    total: u16,
    told: u16,
    /// In which report they were new last.
    new_in: u32,
}

/// Frames of one machine to one gateway, since a report last said that they come.
#[derive(Debug, Clone, Copy)]
struct FramesCarried {
    via: LinkId,
    count: u32,
    /// How many of them were sent before the last report: they have had their time.
    settled: u32,
    came: u32,
    /// Reports in a row by which they have vanished.
    vanished: u8,
    /// The gateway's total when it told of the machine last.
    total: Option<u16>,
    /// Reports in a row without a frame since.
    idle: u8,
}

/// The fate of frames behind a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameFate {
    Arrive,
    Vanish,
}

/// The last report of a gateway.
#[derive(Debug, Clone, Copy)]
struct LastReport {
    start: u64,
    sequence: u32,
}

/// The evidence that it takes to say that frames have vanished behind a next hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VanishProof {
    /// Reports in a row.
    pub(crate) reports: u8,
    /// Frames that have to be on their way, lest it be chance that none comes; half of them have
    /// to have had the time between two reports.
    pub(crate) frames: u32,
}

/// Nearly all: at most one of so many came.
const NEARLY_ALL: u32 = 8;
/// In so many reports a machine stands whose frames have come: one that is lost takes nothing.
const REPEATED: u32 = 4;

impl GatewayReports {
    /// Frames of a machine have come to this gateway.
    pub(crate) fn came(&mut self, of: Slot, frames: u16) {
        let came = self.came.entry(of).or_default();
        came.total = came.total.wrapping_add(frames);
    }

    /// Frames of `pair` go by that neighbour. Where there is no room for one more pair, nothing is
    /// counted.
    pub(crate) fn carried(&mut self, pair: GatewayPair, via: LinkId, frames: u32) {
        let has_room = self.carried.len() < MAX_CARRIED_COUNTS || self.carried.contains_key(&pair);
        if !has_room {
            return;
        }
        let carried = self.carried.entry(pair).or_insert(FramesCarried {
            via,
            count: 0,
            settled: 0,
            came: 0,
            vanished: 0,
            total: None,
            idle: 0,
        });
        if carried.via != via {
            carried.via = via;
            carried.begin();
        }
        carried.idle = 0;
        carried.count = carried.count.saturating_add(frames);
    }

    /// Whether frames that were sent or carried to a gateway are counted: else what it reports is
    /// nothing to this machine, and need not be opened.
    pub(crate) fn awaits(&self, gateway: Slot) -> bool {
        self.of(gateway).next().is_some()
    }

    fn of(&self, gateway: Slot) -> impl Iterator<Item = (&GatewayPair, &FramesCarried)> {
        let first = GatewayPair { gateway, of: Slot::new(0).unwrap_or(gateway) };
        self.carried.range(first..).take_while(move |(pair, _)| pair.gateway == gateway)
    }

    /// The next report: those first of whom the most is new.
    pub(crate) fn next(&mut self, start: u64) -> GatewayReport {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let new = |came: &FramesCame| came.total.wrapping_sub(came.told);
        for came in self.came.values_mut().filter(|came| new(came) > 0) {
            came.new_in = sequence;
        }
        let is_told = |came: &FramesCame| sequence.wrapping_sub(came.new_in) < REPEATED;
        let mut told: Vec<_> =
            self.came.iter_mut().filter(|(_, came)| came.new_in > 0 && is_told(came)).collect();
        told.sort_by_key(|(slot, came)| (u16::MAX - new(came), **slot));
        let is_complete = told.len() <= MAX_REPORTED;
        let counts = told.into_iter().take(MAX_REPORTED).map(|(slot, came)| {
            came.told = came.total;
            (*slot, came.total)
        });
        GatewayReport { is_complete, start, sequence, counts: counts.collect() }
    }

    /// Whether nothing has come for some reports, so that the next one may wait.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_old = |came: &FramesCame| self.sequence.wrapping_sub(came.new_in) >= 2 * REPEATED;
        self.came.values().all(|came| came.total == came.told && is_old(came))
    }

    /// Takes a gateway's report, and gives what has become of frames to it behind which neighbour;
    /// frames have vanished that have by the proof that it takes with that neighbour.
    pub(crate) fn hear(
        &mut self,
        gateway: Slot,
        report: &GatewayReport,
        needed: impl Fn(LinkId) -> VanishProof,
    ) -> Vec<(LinkId, FrameFate)> {
        let last = self.heard.get(&gateway).copied();
        let (start, sequence) = (report.start, report.sequence);
        if last.is_some_and(|last| (start, sequence) <= (last.start, last.sequence)) {
            return vec![];
        }
        self.heard.insert(gateway, LastReport { start, sequence });
        let last = last.filter(|last| last.start == start);
        let gap = last.map_or(u32::MAX, |last| sequence - last.sequence);
        let silence = report.is_complete && gap <= REPEATED;
        let mut fates = vec![];
        for (pair, carried) in self.carried.iter_mut().filter(|(pair, _)| pair.gateway == gateway) {
            let listed = report.counts.iter().find(|(slot, _)| *slot == pair.of);
            let listed = listed.map(|(_, total)| *total);
            let before = carried.total.filter(|_| last.is_some());
            carried.total = listed.or(before);
            let came = match (listed, before) {
                (Some(now), Some(before)) => Some(now.wrapping_sub(before)),
                (None, _) if silence => Some(0),
                _ => None,
            };
            if let Some(fate) = carried.hear(came, needed(carried.via)) {
                fates.push((carried.via, fate));
            }
        }
        self.carried.retain(|_, carried| carried.idle < MAX_IDLE_REPORTS);
        let counted = &self.carried;
        self.heard.retain(|gateway, _| counted.keys().any(|pair| pair.gateway == *gateway));
        fates.sort_unstable();
        fates.dedup();
        fates
    }

    /// Forgets those who are no members any more.
    pub(crate) fn sweep(&mut self, is_member: impl Fn(Slot) -> bool) {
        self.came.retain(|slot, _| is_member(*slot));
        self.carried.retain(|pair, _| is_member(pair.gateway) && is_member(pair.of));
        self.heard.retain(|slot, _| is_member(*slot));
    }
}

impl FramesCarried {
    /// Counts anew.
    fn begin(&mut self) {
        (self.count, self.settled, self.came, self.vanished) = (0, 0, 0, 0);
    }

    /// Takes how many came since the last report, if that is known.
    fn hear(&mut self, came: Option<u16>, needed: VanishProof) -> Option<FrameFate> {
        self.idle = self.idle.saturating_add(1);
        let Some(came) = came else {
            self.begin();
            return None;
        };
        self.came = self.came.saturating_add(came.into());
        if self.came.saturating_mul(NEARLY_ALL) > self.count {
            self.begin();
            return Some(FrameFate::Arrive);
        }
        let are_enough = self.count >= needed.frames && self.settled >= needed.frames / 2;
        let have_vanished = self.came.saturating_mul(NEARLY_ALL) <= self.settled;
        self.settled = self.count;
        self.vanished = if are_enough && have_vanished { self.vanished + 1 } else { 0 };
        if self.vanished < needed.reports {
            return None;
        }
        self.begin();
        Some(FrameFate::Vanish)
    }
}

#[cfg(test)]
mod tests;
