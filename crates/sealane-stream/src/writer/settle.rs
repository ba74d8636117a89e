//! What a commit means once it stands, or was given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command::Command;
use super::plan::Plan;
use crate::registry::Registry;
use crate::store::{Fault, Settings, Trimmed};
use crate::stream::Stream;

/// The commit stands: makes everything readable, then answers. Returns what the next commit
/// begins with.
pub(super) fn settle(mut plan: Plan, registry: &Registry) -> Vec<Command> {
    // Whoever is told of a stream finds in it what it was made with.
    for (stream, settings) in plan.settings.values() {
        apply(stream, *settings, registry);
    }
    for stream in plan.made.values() {
        registry.insert(stream);
    }
    for staged in std::mem::take(&mut plan.gains).into_values() {
        staged.note_stored(registry);
        registry.publish(&staged.stream, staged.blocks);
    }
    for stream in plan.removing.values() {
        registry.remove(stream);
    }
    for (stream, trimmed) in &plan.trimmed {
        trim(stream, *trimmed, registry);
    }
    plan.managed.settle(registry);
    for buried in &plan.buried {
        buried.entry.state.lock().bury(&buried.offsets);
        buried.entry.dead_lettered.fetch_add(buried.lettered, Ordering::Relaxed);
        registry.metrics.dead_lettered.fetch_add(buried.lettered, Ordering::Relaxed);
        let counts = registry.series.of_consumer(&buried.entry);
        counts.dead_lettered.fetch_add(buried.lettered, Ordering::Relaxed);
        buried.entry.dead_dropped.fetch_add(buried.dropped, Ordering::Relaxed);
        registry.metrics.dead_dropped.fetch_add(buried.dropped, Ordering::Relaxed);
        buried.entry.wake();
    }
    plan.answer(None);
    plan.deferred
}

/// The commit was given up: everything is as it was before, and everybody is told.
pub(super) fn fail(mut plan: Plan, registry: &Registry, fault: &Fault) {
    for stream in plan.removing.values().chain(plan.trimmed.iter().map(|(stream, _)| stream)) {
        let mut state = stream.state.lock();
        state.leaving = state.first;
    }
    plan.managed.fail();
    for consumer in &plan.consumers {
        consumer.is_unstored(registry);
    }
    registry.give_back(std::mem::take(&mut plan.set_aside));
    plan.answer(Some(fault));
    for command in plan.deferred {
        command.fail(fault);
    }
}

fn apply(stream: &Arc<Stream>, settings: Settings, registry: &Registry) {
    let mut state = stream.state.lock();
    (state.level, state.retention) = (settings.level, settings.retention);
    registry.bounded.fetch_or(!settings.retention.keeps_all(), Ordering::Relaxed);
}

pub(super) fn trim(stream: &Stream, trimmed: Trimmed, registry: &Registry) {
    let (consumers, first) = {
        let mut state = stream.state.lock();
        let first = state.first.max(trimmed.last + 1);
        registry.metrics.retired.fetch_add(first - state.first, Ordering::Relaxed);
        state.first = first;
        state.bytes = state.bytes.saturating_sub(trimmed.bytes);
        let ended = state.generations.partition_point(|(at, _)| *at <= first);
        state.generations.drain(..ended.saturating_sub(1));
        state.damaged.retain(|(_, last)| *last >= first);
        (state.consumers.values().cloned().collect::<Vec<_>>(), first)
    };
    for entry in consumers {
        let forgotten = entry.state.lock().forget(0..first);
        registry.metrics.expired.fetch_add(forgotten, Ordering::Relaxed);
        // Who had as much in flight as it may have has room again.
        entry.wake();
    }
}
