//! Whether a neighbour is there: when it was heard, and the probes that ask it.

use std::collections::VecDeque;

use crate::limits::MAX_LATE_PROBES;
use crate::{MeshSpan, MeshTime};

/// Whether a neighbour is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeighbourPresence {
    /// Its last hello came in time.
    Heard,
    /// It is asked.
    Asked {
        /// How many probes were sent.
        probes: u8,
        /// Since when.
        since: MeshTime,
        /// When the next one is, or it is given up.
        next: MeshTime,
    },
    /// It does not answer: nothing goes by it.
    Silent,
}

/// A probe that was not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SentProbe {
    number: u32,
    at: MeshTime,
}

/// A neighbour's presence, and the probes that ask for it.
#[derive(Debug)]
pub(crate) struct NeighbourWatch {
    pub(crate) presence: NeighbourPresence,
    /// When anything authentic of it was heard last.
    pub(crate) heard: MeshTime,
    /// Until when its next hello comes.
    pub(crate) due: MeshTime,
    probes: VecDeque<SentProbe>,
}

impl NeighbourWatch {
    pub(super) fn new(now: MeshTime, interval: MeshSpan) -> Self {
        Self {
            presence: NeighbourPresence::Heard,
            heard: now,
            due: now + interval,
            probes: VecDeque::new(),
        }
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.presence == NeighbourPresence::Silent
    }

    /// The neighbour was heard, whatever was thought of it. A message of it was on its way for
    /// `lag`, and the next hello is as much earlier than it was told.
    pub(super) fn is_there(&mut self, now: MeshTime, lag: MeshSpan, interval: MeshSpan) {
        (self.heard, self.presence) = (now, NeighbourPresence::Heard);
        self.due = self.due.max(MeshTime(now.0 - lag.0.min(now.0)) + interval);
    }

    /// Remembers a probe.
    pub(crate) fn probed(&mut self, number: u32, at: MeshTime) {
        if self.probes.len() == MAX_LATE_PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back(SentProbe { number, at });
    }

    /// When a probe with that number was sent, once: a second answer to it proves nothing.
    pub(crate) fn answered(&mut self, number: u32) -> Option<MeshTime> {
        let at = self.probes.iter().position(|probe| probe.number == number)?;
        self.probes.remove(at).map(|probe| probe.at)
    }
}
