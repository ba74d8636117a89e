//! The effect of a commit once it stands, or was given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command::WriterCommand;
use super::letters::BuriedMessages;
use super::plan::CommitPlan;
use crate::registry::StreamRegistry;
use crate::store::{AppliedCounts, StoreFault, StreamSettings, TrimmedBlocks};
use crate::stream::StreamEntry;

/// The commit stands: makes everything readable, then answers. Returns what the next commit
/// begins with.
pub(super) fn settle(
    mut plan: CommitPlan,
    counts: &AppliedCounts,
    registry: &StreamRegistry,
) -> Vec<WriterCommand> {
    // A client that is told of a stream finds in it the settings that it was made with.
    for (stream, settings) in plan.streams.settings() {
        apply(stream, *settings, registry);
    }
    for stream in plan.streams.made() {
        registry.insert(stream);
    }
    // The streams were inserted above, since a message must not be told of before its stream can be
    // found.
    for staged in std::mem::take(&mut plan.gains).into_values() {
        staged.note_stored(registry);
        registry.publish(&staged.stream, staged.blocks);
    }
    // No stream of the same topic is among those made above: a command for it was deferred.
    for stream in plan.streams.removing() {
        registry.remove(stream);
    }
    for (stream, trimmed) in plan.upkeep.trimmed() {
        trim(stream, *trimmed, registry);
    }
    plan.managed.settle(counts, registry);
    if let Some(deed) = plan.rule.take() {
        deed.settle(registry);
    }
    plan.progress.buried.iter().for_each(|buried| buried.settle(registry));
    plan.replies.send();
    plan.replies.take_deferred()
}

/// The commit was given up: everything is as it was before, and everybody is told.
pub(super) fn fail(mut plan: CommitPlan, registry: &StreamRegistry, fault: &StoreFault) {
    let trimmed = plan.upkeep.trimmed().iter().map(|(stream, _)| stream);
    for stream in plan.streams.removing().chain(trimmed) {
        let mut state = stream.state.lock();
        state.leaving = state.first;
    }
    plan.managed.fail();
    for consumer in &plan.progress.stored {
        // The changes were taken out of the consumer by the plan. Only its whole state still has
        // them.
        consumer.is_unstored(registry);
    }
    registry.give_back(std::mem::take(&mut plan.progress.set_aside));
    plan.replies.fail(fault);
}

impl BuriedMessages {
    /// The dead letters are stored: their messages are done.
    fn settle(&self, registry: &StreamRegistry) {
        self.entry.state.lock().bury(&self.offsets);
        self.entry.dead_lettered.fetch_add(self.lettered, Ordering::Relaxed);
        registry.metrics.dead_lettered.fetch_add(self.lettered, Ordering::Relaxed);
        let counts = registry.series.of_consumer(&self.entry);
        counts.dead_lettered.fetch_add(self.lettered, Ordering::Relaxed);
        self.entry.dead_dropped.fetch_add(self.dropped, Ordering::Relaxed);
        registry.metrics.dead_dropped.fetch_add(self.dropped, Ordering::Relaxed);
        self.entry.wake();
    }
}

fn apply(stream: &Arc<StreamEntry>, settings: StreamSettings, registry: &StreamRegistry) {
    stream.state.lock().settings = settings;
    registry.govern(stream);
}

pub(super) fn trim(stream: &StreamEntry, trimmed: TrimmedBlocks, registry: &StreamRegistry) {
    let (consumers, first) = {
        let mut state = stream.state.lock();
        let first = state.first.max(trimmed.last + 1);
        registry.metrics.retired.fetch_add(first - state.first, Ordering::Relaxed);
        state.first = first;
        state.bytes = state.bytes.saturating_sub(trimmed.bytes);
        // The generation that the first offset is in stays: a reader may come back with it.
        let ended = state.generations.partition_point(|(at, _)| *at <= first);
        state.generations.drain(..ended.saturating_sub(1));
        state.damaged.retain(|(_, last)| *last >= first);
        (state.consumers.values().cloned().collect::<Vec<_>>(), first)
    };
    for entry in consumers {
        let forgotten = entry.state.lock().forget(0..first);
        registry.metrics.expired.fetch_add(forgotten, Ordering::Relaxed);
        // A consumer that was at its limit of messages in flight has room again.
        entry.wake();
    }
}
