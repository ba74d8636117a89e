//! The changes of a plan: what the store is to do, as plain data.
//!
//! All that a commit stores is collected here once. A second attempt stores the same, or the part
//! of it that removes, and nothing is planned or encoded again for it.

use super::plan::CommitPlan;
use super::staged::StagedStream;
use crate::commit::{StoreChange, StoreCommit};
use crate::store::StoreNext;

impl CommitPlan {
    /// Everything that this plan stores, and what `memory` streams were answered for before.
    pub(super) fn commit(&mut self, unsaved: &mut [StagedStream], next: &StoreNext) -> StoreCommit {
        let mut commit = StoreCommit::default();
        let (now_ms, stamp_ms) = (self.now_ms, self.stamp_ms);
        self.streams.add_to(&mut commit, next);
        // They stand first: what the stream gains now is behind them.
        for staged in unsaved {
            if !self.streams.removes(&staged.stream.topic) {
                staged.add_to(&mut commit, now_ms, stamp_ms, true);
            }
        }
        let made: Vec<u32> = self.streams.made().map(|stream| stream.number).collect();
        for (number, staged) in &mut self.gains {
            // A stream that this commit makes is not there for readers before that stands.
            let may_stay = staged.may_be_early() && !made.contains(number);
            staged.add_to(&mut commit, now_ms, stamp_ms, may_stay);
        }
        for delayed in &mut self.delayed {
            let (stream, due_ms) = (delayed.stream.number, delayed.due_ms);
            let (owner, records) = (delayed.owner.clone(), std::mem::take(&mut delayed.records));
            commit.push(StoreChange::DelayMessages { stream, due_ms, owner, records });
            if let Some((key, row)) = delayed.key.take() {
                commit.push(StoreChange::KeepKey { stream, key, row, time_ms: stamp_ms });
            }
        }
        for (stream, (first, last)) in self.damage.drain(..) {
            let is_gone = stream.removed.load(std::sync::atomic::Ordering::Relaxed);
            if !is_gone && !self.streams.removes(&stream.topic) {
                let (stream, found_ms) = (stream.number, now_ms);
                commit.push(StoreChange::NoteDamage { stream, first, last, found_ms });
            }
        }
        self.managed.add_to(&mut commit);
        if let Some(deed) = &self.rule {
            commit.push(deed.change());
        }
        self.progress.add_to(&mut commit);
        // Expiry is counted when all that came by this commit is there.
        self.upkeep.add_to(&mut commit);
        commit
    }
}
