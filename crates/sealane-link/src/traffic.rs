//! The traffic to and from one neighbour.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::UnitVolume;
use crate::width::WireWidth;

/// Counts of one neighbour, and how wide its wire is. They go on when another configuration names
/// the same neighbour.
#[derive(Debug, Default)]
pub(crate) struct NeighbourTraffic {
    received_units: AtomicU64,
    received_bytes: AtomicU64,
    dropped: AtomicU64,
    sent_units: AtomicU64,
    sent_bytes: AtomicU64,
    unsent: AtomicU64,
    /// Milliseconds since the relay's start, and one more: 0 is never.
    heard_ms: AtomicU64,
    /// The bytes that its wire takes at once.
    pub(crate) width: WireWidth,
}

/// The counts of a neighbour so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NeighbourTally {
    /// Units of all kinds that came from it.
    pub received: UnitVolume,
    /// Units of those that did not go on, for whatever reason.
    pub dropped: u64,
    /// Units that its link has taken for it.
    pub sent: UnitVolume,
    /// Units for it that its link did not take.
    pub unsent: u64,
}

impl NeighbourTraffic {
    /// Counts a batch that came, of which some did not go on.
    #[inline]
    pub(crate) fn came(&self, units: usize, bytes: usize, dropped: u64, now_ms: u64) {
        self.received_units.fetch_add(units as u64, Ordering::Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        self.heard_ms.store(now_ms.saturating_add(1), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn went(&self, units: usize, bytes: usize) {
        self.sent_units.fetch_add(units as u64, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stayed(&self, units: usize) {
        self.unsent.fetch_add(units as u64, Ordering::Relaxed);
    }

    pub(crate) fn tally(&self) -> NeighbourTally {
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let volume = |units, bytes| UnitVolume { units: number(units), bytes: number(bytes) };
        NeighbourTally {
            received: volume(&self.received_units, &self.received_bytes),
            dropped: number(&self.dropped),
            sent: volume(&self.sent_units, &self.sent_bytes),
            unsent: number(&self.unsent),
        }
    }

    /// When something came last, in milliseconds since the relay's start.
    pub(crate) fn heard_ms(&self) -> Option<u64> {
        self.heard_ms.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// The counts of one neighbour equal themselves alone, whatever they have come to.
impl PartialEq for NeighbourTraffic {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for NeighbourTraffic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_that_never_spoke_was_never_heard() {
        let traffic = NeighbourTraffic::default();
        assert_eq!((traffic.heard_ms(), traffic.tally()), (None, NeighbourTally::default()));
        traffic.came(3, 300, 1, 0);
        traffic.came(1, 7, 0, 5);
        traffic.went(2, 50);
        traffic.stayed(4);
        let tally = NeighbourTally {
            received: UnitVolume { units: 4, bytes: 307 },
            dropped: 1,
            sent: UnitVolume { units: 2, bytes: 50 },
            unsent: 4,
        };
        assert_eq!((traffic.heard_ms(), traffic.tally()), (Some(5), tally));
        assert!(traffic == traffic && traffic != NeighbourTraffic::default());
    }
}
