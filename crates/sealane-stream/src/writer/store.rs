//! The transaction of a plan.

use super::manage;
use super::plan::Plan;
use super::progress::Progress;
use super::staged::Staged;
use crate::store::{Fault, Next, Writes};

/// Writes everything of `plan` but what its upkeep finds by itself, and what `memory` streams were
/// answered for.
pub(super) fn store(
    plan: &mut Plan,
    writes: &mut Writes,
    unsaved: &[Staged],
    progress: &Progress,
    next: &Next,
) -> Result<(), Fault> {
    (plan.keys_stored, plan.sessions_stored) = (0, 0);
    if !plan.made.is_empty() {
        writes.raise("stream", u64::from(next.stream))?;
    }
    for stream in plan.made.values() {
        writes.stream(stream, stream.settings(), None)?;
    }
    for (stream, settings) in plan.settings.values() {
        writes.stream(stream, *settings, None)?;
    }
    let is_leaving = |staged: &&Staged| plan.removing.contains_key(&staged.stream.topic);
    if !plan.is_stripped {
        for staged in unsaved.iter().filter(|staged| !is_leaving(staged)) {
            staged.store(writes, plan.now_ms)?;
            plan.keys_stored += staged.keys.len() as u64;
            plan.sessions_stored += staged.new_sessions();
        }
    }
    for staged in plan.gains.values_mut() {
        staged.seal_blocks();
        staged.store(writes, plan.now_ms)?;
        plan.keys_stored += staged.keys.len() as u64;
        plan.sessions_stored += staged.new_sessions();
    }
    for delayed in &plan.delayed {
        for record in &delayed.records {
            writes.delay(delayed.stream.number, delayed.due_ms, record)?;
        }
        if let Some((key, row)) = &delayed.key {
            writes.keep_key(delayed.stream.number, key, row, plan.now_ms)?;
            plan.keys_stored += 1;
        }
    }
    for number in &plan.released {
        writes.drop_delayed(*number)?;
    }
    for stream in plan.removing.values() {
        writes.remove(stream.number)?;
    }
    if !plan.removing.is_empty() {
        writes.raise("generation", plan.generation_floor().max(next.generation))?;
    }
    for (stream, range) in &plan.damage {
        if !stream.removed.load(std::sync::atomic::Ordering::Relaxed)
            && !plan.removing.contains_key(&stream.topic)
        {
            writes.damage(stream.number, *range, plan.now_ms)?;
        }
    }
    manage::store(plan, writes)?;
    progress.store(plan, writes)
}
