//! The operator's actions on a consumer, and the operator's view of it.
//!
//! A commit steers a consumer. The new state is stored first, as [`ConsumerProgress::steered`]
//! says. Once the commit stands, [`ConsumerProgress::steer`] applies it. The changes that members
//! make between the two are not lost: the commit after stores the whole consumer.

use std::ops::{Range, RangeInclusive};

use sealane_protocol::PendingMessage;

use super::{ConsumerProgress, PendingEntry, PendingKept, PendingState, again};

/// An action on a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsumerSteer {
    /// It gives out nothing more, since this time.
    Pause { since_ms: u64 },
    /// It gives out messages again.
    Resume,
    /// It goes on at this offset, and what it had given out is not its own any more.
    Reset(u64),
    /// These messages are done, but for what is behind the next one that it gives out.
    Skip(RangeInclusive<u64>),
    /// All messages that are not done come again at once.
    Redeliver,
}

/// A consumer as the store is to have it.
pub(crate) struct ConsumerSteered {
    pub(crate) paused_ms: u64,
    /// As [`ConsumerProgress::snapshot`] writes it.
    pub(crate) state: Vec<u8>,
}

impl ConsumerProgress {
    /// Whether nothing is given out.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused_ms > 0
    }

    /// The state that is stored before the consumer is steered.
    pub(crate) fn steered(&self, steer: &ConsumerSteer) -> ConsumerSteered {
        let paused_ms = match steer {
            ConsumerSteer::Pause { since_ms } => self.pause(*since_ms),
            ConsumerSteer::Resume => 0,
            ConsumerSteer::Reset(_) | ConsumerSteer::Skip(_) | ConsumerSteer::Redeliver => {
                self.paused_ms
            }
        };
        // Cursor and messages are computed without a change. The commit may still fail.
        let cursor = self.cursor_after(steer);
        let keep = |entry: &PendingEntry| {
            let kept = entry.kept(&[])?;
            match steer {
                ConsumerSteer::Pause { .. } | ConsumerSteer::Resume => Some(kept),
                ConsumerSteer::Reset(_) => None,
                ConsumerSteer::Skip(offsets) => (!offsets.contains(&entry.offset)).then_some(kept),
                ConsumerSteer::Redeliver => Some(PendingKept { due_ms: 0, ..kept }),
            }
        };
        ConsumerSteered { paused_ms, state: self.write_state(cursor, keep) }
    }

    /// Steers the consumer, of which the store has by now what [`ConsumerProgress::steered`] said.
    pub(crate) fn steer(&mut self, steer: &ConsumerSteer, now_ms: u64) {
        match steer {
            ConsumerSteer::Pause { since_ms } => self.paused_ms = self.pause(*since_ms),
            ConsumerSteer::Resume => self.paused_ms = 0,
            ConsumerSteer::Reset(offset) => {
                let anew = ConsumerProgress::new(*offset, self.settings);
                // A reset goes to another place. It neither ends a pause nor takes back what was
                // counted.
                let (paused_ms, redelivered) = (self.paused_ms, self.redelivered);
                let share = self.live.take_share();
                *self = ConsumerProgress { paused_ms, redelivered, ..anew };
                share.into_iter().for_each(|share| self.belong_to(share));
            }
            ConsumerSteer::Skip(offsets) => {
                self.cursor = self.cursor_after(steer);
                // An end of the last offset that there could be is beyond every stream.
                self.finish(*offsets.start()..offsets.end().saturating_add(1));
            }
            ConsumerSteer::Redeliver => self.redeliver(now_ms),
        }
        // Members went on between: the next commit stores all of it.
        self.is_unstored();
        debug_assert!(self.holds_together());
    }

    /// A consumer that is paused once more is paused since the first time.
    fn pause(&self, since_ms: u64) -> u64 {
        // 0 means that it runs. A second pause keeps the time of the first.
        if self.is_paused() { self.paused_ms } else { since_ms.max(1) }
    }

    fn cursor_after(&self, steer: &ConsumerSteer) -> u64 {
        match steer {
            ConsumerSteer::Reset(offset) => *offset,
            ConsumerSteer::Skip(offsets) if offsets.contains(&self.cursor) => offsets.end() + 1,
            _ => self.cursor,
        }
    }

    fn redeliver(&mut self, now_ms: u64) {
        let max = self.settings.max_attempts;
        for index in 0..self.pending.len() {
            let Some(entry) = self.pending.get(index) else { break };
            let state = match entry.state {
                PendingState::InFlight { .. } => again(entry, max, now_ms, now_ms),
                PendingState::Delayed { .. } => PendingState::Ready,
                // A dead message waits for its letter. Redelivered, it could be given out and
                // buried at once.
                PendingState::Ready | PendingState::Dead | PendingState::Done => continue,
            };
            self.set(index, state);
        }
    }

    /// Messages that a member has now.
    pub(crate) fn held(&self) -> usize {
        self.live.count() - self.ready.len() - self.delayed.len() - self.dead.len()
    }

    /// The oldest message of `visible` that is not done: the first that was given out and is not
    /// finished, else the first that nobody was given.
    pub(crate) fn oldest(&self, visible: &Range<u64>) -> Option<u64> {
        // Done entries leave the front at once, so that the first look finds it.
        let mut pending = self.pending.iter().filter(|entry| entry.state != PendingState::Done);
        let given = pending.next().map(|entry| entry.offset);
        let next = self.cursor().max(visible.start);
        given.or_else(|| (next < visible.end).then_some(next))
    }

    /// Up to `max` messages that are not done, by offset.
    pub(crate) fn pending(&self, max: usize) -> Vec<PendingMessage> {
        let shown = self.pending.iter().filter_map(PendingEntry::shown).take(max);
        let of_day = |shown: PendingMessage| PendingMessage {
            since_ms: self.day_of(shown.since_ms),
            due_ms: self.day_of(shown.due_ms),
            ..shown
        };
        shown.map(of_day).collect()
    }
}

impl PendingEntry {
    fn shown(&self) -> Option<PendingMessage> {
        let (connection, since_ms, due_ms) = match self.state {
            PendingState::Done => return None,
            PendingState::InFlight { member, since_ms, deadline_ms } => {
                (Some(member), since_ms, deadline_ms)
            }
            PendingState::Delayed { due_ms } => (None, 0, due_ms),
            PendingState::Ready | PendingState::Dead => (None, 0, 0),
        };
        let (offset, attempt) = (self.offset, self.attempt);
        Some(PendingMessage { offset, attempt, connection, since_ms, due_ms })
    }
}
