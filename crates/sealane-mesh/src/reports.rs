//! How machines know that their frames arrive: a gateway counts them, and tells.

use std::collections::BTreeMap;

use sealane_seal::Slot;

use crate::limits::MAX_REPORTED;
use crate::messages::Report;
use crate::neighbour::LinkId;

/// What came to this machine, and what it sent to gateways.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    sequence: u32,
    came: BTreeMap<Slot, Came>,
    sent: BTreeMap<Slot, Sent>,
}

/// Frames of one machine.
#[derive(Debug, Default, Clone, Copy)]
struct Came {
    total: u16,
    told: u16,
}

/// Frames to one gateway.
#[derive(Debug, Clone, Copy)]
struct Sent {
    via: LinkId,
    /// Since the last report, by that neighbour.
    count: u32,
    /// The last report.
    report: Option<Last>,
    /// Reports in a row that missed nearly all.
    missed: u8,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    start: u64,
    sequence: u32,
    came: Option<u16>,
}

/// Frames of which a report has to miss nearly all, lest it be chance.
const FRAMES_MIN: u32 = 8;
/// Nearly all: at most one of so many came.
const NEARLY_ALL: u32 = 8;
/// Reports in a row that have to say so.
const MISSED: u8 = 2;

impl Reports {
    /// Frames of a machine have come to this gateway.
    pub(crate) fn came(&mut self, of: Slot, frames: u16) {
        let came = self.came.entry(of).or_default();
        came.total = came.total.wrapping_add(frames);
    }

    /// A frame of this machine goes to a gateway.
    pub(crate) fn sent(&mut self, gateway: Slot, via: LinkId) {
        let fresh = Sent { via, count: 0, report: None, missed: 0 };
        let sent = self.sent.entry(gateway).or_insert(fresh);
        if sent.via != via {
            (sent.via, sent.count, sent.missed) = (via, 0, 0);
        }
        sent.count = sent.count.saturating_add(1);
    }

    /// The next report: those first of whom the most is new.
    pub(crate) fn next(&mut self, start: u64) -> Report {
        let new = |came: &Came| came.total.wrapping_sub(came.told);
        let mut fresh: Vec<_> = self.came.iter_mut().filter(|(_, came)| new(came) > 0).collect();
        fresh.sort_by_key(|(slot, came)| (u16::MAX - new(came), **slot));
        let is_complete = fresh.len() <= MAX_REPORTED;
        let told = fresh.into_iter().take(MAX_REPORTED).map(|(slot, came)| {
            came.told = came.total;
            (*slot, came.total)
        });
        let counts = told.collect();
        self.sequence = self.sequence.wrapping_add(1);
        Report { is_complete, start, sequence: self.sequence, counts }
    }

    /// Takes a gateway's report, and gives the neighbour behind which this machine's frames
    /// vanish.
    pub(crate) fn hear(&mut self, gateway: Slot, own: Slot, report: &Report) -> Option<LinkId> {
        let sent = self.sent.get_mut(&gateway)?;
        let last = sent.report;
        let is_later =
            last.is_none_or(|last| (report.start, report.sequence) > (last.start, last.sequence));
        if !is_later {
            return None;
        }
        let listed = report.counts.iter().find(|(slot, _)| *slot == own).map(|(_, came)| *came);
        let before = last.filter(|last| last.start == report.start).and_then(|last| last.came);
        let came = match (listed, before) {
            (Some(now), Some(before)) => Some(now.wrapping_sub(before)),
            (None, _) if report.is_complete => Some(0),
            _ => None,
        };
        let count = std::mem::take(&mut sent.count);
        sent.report =
            Some(Last { start: report.start, sequence: report.sequence, came: listed.or(before) });
        // Without an earlier report nobody knows since when the frames are counted.
        let came = came.filter(|_| last.is_some())?;
        if count < FRAMES_MIN {
            sent.count = count;
            return None;
        }
        let has_vanished = u32::from(came) * NEARLY_ALL <= count;
        sent.missed = if has_vanished { sent.missed + 1 } else { 0 };
        if sent.missed < MISSED {
            return None;
        }
        sent.missed = 0;
        Some(sent.via)
    }

    /// Forgets those who are no members any more.
    pub(crate) fn sweep(&mut self, is_member: impl Fn(Slot) -> bool) {
        self.came.retain(|slot, _| is_member(*slot));
        self.sent.retain(|slot, _| is_member(*slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterfaceId;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn via(number: u16) -> LinkId {
        LinkId { interface: InterfaceId(0), slot: slot(number) }
    }

    #[test]
    fn a_next_hop_behind_which_all_vanishes_is_found_with_the_third_report() {
        let (mut gateway, mut sender) = (Reports::default(), Reports::default());
        let mut blamed = vec![];
        for round in 0..6 {
            for _ in 0..20 {
                sender.sent(slot(0), via(1));
                if round < 3 {
                    gateway.came(slot(7), 1);
                }
            }
            gateway.came(slot(8), 1);
            let report = gateway.next(5);
            assert!(report.is_complete);
            blamed.push(sender.hear(slot(0), slot(7), &report).is_some());
            assert_eq!(sender.hear(slot(0), slot(7), &report), None, "once");
        }
        assert_eq!(blamed, [false, false, false, false, true, false]);
    }

    #[test]
    fn loss_too_few_frames_and_incomplete_reports_blame_nobody() {
        let (mut gateway, mut sender) = (Reports::default(), Reports::default());
        for round in 0..20 {
            for frame in 0..24 {
                sender.sent(slot(0), via(1));
                if frame % 6 == 0 {
                    gateway.came(slot(7), 1);
                }
            }
            let report = gateway.next(5);
            assert_eq!(sender.hear(slot(0), slot(7), &report), None, "{round}");
        }
        let silent =
            |sequence, is_complete| Report { is_complete, start: 5, sequence, counts: vec![] };
        for sequence in 100..120 {
            (0..20).for_each(|_| sender.sent(slot(0), via(1)));
            assert_eq!(sender.hear(slot(0), slot(7), &silent(sequence, false)), None);
        }
        sender.sent(slot(0), via(2));
        for sequence in 120..127 {
            sender.sent(slot(0), via(2));
            assert_eq!(sender.hear(slot(0), slot(7), &silent(sequence, true)), None, "too few");
        }
    }

    #[test]
    fn a_report_counts_those_first_who_sent_most() {
        let mut gateway = Reports::default();
        for number in 0..40_u16 {
            (0..=number).for_each(|_| gateway.came(slot(number), 1));
        }
        let first = gateway.next(1);
        assert_eq!((first.is_complete, first.counts.len()), (false, MAX_REPORTED));
        assert_eq!(first.counts[0], (slot(39), 40));
        let second = gateway.next(1);
        assert_eq!((second.is_complete, second.counts.len()), (true, 8));
        assert_eq!(gateway.next(1).counts, []);
    }
}
