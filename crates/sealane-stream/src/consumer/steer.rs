//! The operator's actions on a consumer, and the operator's view of it.
//!
//! A commit steers a consumer. The new state is stored first, as [`Consumer::steered`] says. Once
//! the commit stands, [`Consumer::steer`] applies it. The changes that members make between the two
//! are not lost: the commit after stores the whole consumer.

use std::ops::RangeInclusive;

use sealane_protocol::PendingMessage;

use super::{Consumer, Kept, Pending, PendingState, again};

/// An action on a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Steer {
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
pub(crate) struct Steered {
    pub(crate) paused_ms: u64,
    /// As [`Consumer::snapshot`] writes it.
    pub(crate) state: Vec<u8>,
}

impl Consumer {
    /// Whether nothing is given out.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused_ms > 0
    }

    /// The state that is stored before the consumer is steered.
    pub(crate) fn steered(&self, steer: &Steer) -> Steered {
        let paused_ms = match steer {
            Steer::Pause { since_ms } => self.pause(*since_ms),
            Steer::Resume => 0,
            Steer::Reset(_) | Steer::Skip(_) | Steer::Redeliver => self.paused_ms,
        };
        // Cursor and messages are computed without a change. The commit may still fail.
        let cursor = self.cursor_after(steer);
        let keep = |entry: &Pending| {
            let kept = entry.kept(&[])?;
            match steer {
                Steer::Pause { .. } | Steer::Resume => Some(kept),
                Steer::Reset(_) => None,
                Steer::Skip(offsets) => (!offsets.contains(&entry.offset)).then_some(kept),
                Steer::Redeliver => Some(Kept { due_ms: 0, ..kept }),
            }
        };
        Steered { paused_ms, state: self.write_state(cursor, keep) }
    }

    /// Steers the consumer, of which the store has by now what [`Consumer::steered`] said.
    pub(crate) fn steer(&mut self, steer: &Steer, now_ms: u64) {
        match steer {
            Steer::Pause { since_ms } => self.paused_ms = self.pause(*since_ms),
            Steer::Resume => self.paused_ms = 0,
            Steer::Reset(offset) => {
                let anew = Consumer::new(*offset, self.settings);
                // A reset goes to another place. It neither ends a pause nor takes back what was
                // counted.
                let (paused_ms, redelivered) = (self.paused_ms, self.redelivered);
                *self = Consumer { paused_ms, redelivered, ..anew };
            }
            Steer::Skip(offsets) => {
                self.cursor = self.cursor_after(steer);
                // An end of the last offset that there could be is beyond every stream.
                self.finish(*offsets.start()..offsets.end().saturating_add(1));
            }
            Steer::Redeliver => self.redeliver(now_ms),
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

    fn cursor_after(&self, steer: &Steer) -> u64 {
        match steer {
            Steer::Reset(offset) => *offset,
            Steer::Skip(offsets) if offsets.contains(&self.cursor) => offsets.end() + 1,
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
        self.live - self.ready.len() - self.delayed.len() - self.dead.len()
    }

    /// Up to `max` messages that are not done, by offset.
    pub(crate) fn pending(&self, max: usize) -> Vec<PendingMessage> {
        self.pending.iter().filter_map(Pending::shown).take(max).collect()
    }
}

impl Pending {
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
