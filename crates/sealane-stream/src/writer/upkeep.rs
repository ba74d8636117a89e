//! What the writer does by the clock: delayed messages, retention, old idempotency keys.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sealane_message::limits::{MAX_IDEMPOTENCY_AGE_MS, MAX_IDEMPOTENCY_KEYS};

use super::stage::Stage;
use crate::block::read_block;
use crate::envelope::Envelope;
use crate::registry::Registry;
use crate::store::Writes;
use crate::stream::Stream;
use crate::{Error, now_ms};

/// How often retention looks at the streams that have bounds.
const RETAIN_EVERY: Duration = Duration::from_millis(250);
/// Blocks of one stream that one commit removes, so that no commit takes long.
const TRIM_BLOCKS: usize = 256;
/// Keys that one commit forgets.
const DROP_KEYS: u64 = 4096;
/// Delayed messages that one commit releases.
const RELEASE: usize = 4096;
/// How long after a failed commit delayed messages are tried again.
const RELEASE_AGAIN_MS: u64 = 250;

pub(super) struct Upkeep {
    /// When consumers were stored last.
    pub(super) flushed: Option<Instant>,
    /// When the next delayed message is due.
    pub(super) next_due_ms: Option<u64>,
    /// Delayed messages.
    pub(super) delayed: u64,
    /// Idempotency keys.
    pub(super) keys: u64,
    retained: Instant,
    /// What this commit takes off streams, in bytes; put back if the commit is given up.
    trimmed: Vec<(Arc<Stream>, u64)>,
}

impl Upkeep {
    pub(super) fn new(writes: &Writes) -> Result<Self, Error> {
        let (next_due_ms, delayed) = writes.next_delayed()?;
        let keys = writes.count_keys()?;
        Ok(Self {
            flushed: None,
            next_due_ms,
            delayed,
            keys,
            retained: Instant::now(),
            trimmed: Vec::new(),
        })
    }

    /// Whether a delayed message is due.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.next_due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// Whether it is time to look at retention, and there is something to look at.
    pub(super) fn wants_retention(&self, registry: &Registry) -> bool {
        (self.keys > 0 || registry.bounded.load(Ordering::Relaxed))
            && self.retained.elapsed() >= RETAIN_EVERY
    }

    /// Stages the delayed messages that are due.
    pub(super) fn release(
        &mut self,
        writes: &mut Writes,
        stage: &mut Stage,
        registry: &Registry,
    ) -> Result<(), Error> {
        for row in writes.due(stage.now_ms, RELEASE)? {
            writes.drop_delayed(row.number)?;
            self.delayed = self.delayed.saturating_sub(1);
            let Some(stream) = registry.by_number(row.stream) else { continue };
            let block = read_block(stream.topic.clone(), row.stream, 0, (0, 1), row.data);
            let Some(record) = block.records.into_iter().next() else {
                tracing::error!(stream = %stream.topic, "a delayed message is damaged");
                registry.metrics.damaged.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let envelope = Envelope { content: record.content, id: record.id, body: record.body };
            stage.push(&stream, vec![envelope], None)?;
        }
        self.next_due_ms = writes.next_delayed()?.0;
        Ok(())
    }

    /// The commit that released messages was given up: they are still delayed, and tried again
    /// soon.
    pub(super) fn delay_again(&mut self, writes: &Writes) {
        let soon = now_ms() + RELEASE_AGAIN_MS;
        match writes.next_delayed() {
            Ok((due_ms, delayed)) => {
                self.next_due_ms = due_ms.map(|due_ms| due_ms.max(soon));
                self.delayed = delayed;
            }
            Err(_) => self.next_due_ms = Some(soon),
        }
    }

    /// The commit stands.
    pub(super) fn settle(&mut self) {
        self.trimmed.clear();
    }

    /// The commit was given up: what it should have removed is still there, and goes next time.
    pub(super) fn fail(&mut self) {
        for (stream, bytes) in self.trimmed.drain(..) {
            stream.state.lock().bytes += bytes;
        }
    }

    /// Removes what streams need not keep any more, and old idempotency keys.
    pub(super) fn retain(
        &mut self,
        writes: &mut Writes,
        registry: &Registry,
        now_ms: u64,
    ) -> Result<(), Error> {
        self.retained = Instant::now();
        for stream in registry.streams() {
            if !stream.state.lock().retention.keeps_all() && stream.stored.load(Ordering::Relaxed) {
                let bytes = retain_stream(writes, &stream, now_ms, registry)?;
                self.trimmed.push((stream, bytes));
            }
        }
        if self.keys > 0 {
            let before_ms = now_ms.saturating_sub(MAX_IDEMPOTENCY_AGE_MS);
            let dropped = writes.drop_keys(before_ms, DROP_KEYS)?;
            self.keys = self.keys.saturating_sub(dropped);
        }
        let excess = self.keys.saturating_sub(MAX_IDEMPOTENCY_KEYS as u64);
        if excess > 0 {
            let dropped = writes.drop_keys(u64::MAX, excess.min(DROP_KEYS))?;
            self.keys = self.keys.saturating_sub(dropped);
        }
        Ok(())
    }
}

/// Removes what one stream need not keep; returns the bytes that this takes off.
fn retain_stream(
    writes: &mut Writes,
    stream: &Stream,
    now_ms: u64,
    registry: &Registry,
) -> Result<u64, Error> {
    let (retention, next, mut left) = {
        let state = stream.state.lock();
        (state.retention, state.next, state.bytes)
    };
    let too_old = now_ms.saturating_sub(retention.max_age_ms);
    let too_many = next.saturating_sub(retention.max_count);
    let removed = writes.trim(stream.number, TRIM_BLOCKS, |last, last_ms, bytes| {
        let by_age = retention.max_age_ms > 0 && last_ms < too_old;
        let by_count = retention.max_count > 0 && last < too_many;
        let by_bytes = retention.max_bytes > 0 && left.saturating_sub(bytes) >= retention.max_bytes;
        // What is not readable yet stays: it is being stored by this very commit.
        let expired = last < next && (by_age || by_count || by_bytes);
        left -= if expired { bytes.min(left) } else { 0 };
        expired
    })?;
    let Some((last, bytes)) = removed else { return Ok(0) };
    let (consumers, first) = {
        let mut state = stream.state.lock();
        registry.metrics.retired.fetch_add(last + 1 - state.first.min(last + 1), Ordering::Relaxed);
        state.first = state.first.max(last + 1);
        state.bytes = state.bytes.saturating_sub(bytes);
        let kept = state.first;
        let ended = state.generations.partition_point(|(first, _)| *first <= kept);
        state.generations.drain(..ended.saturating_sub(1));
        state.damaged.retain(|(_, last)| *last >= kept);
        (state.consumers.values().cloned().collect::<Vec<_>>(), kept)
    };
    for shared in consumers {
        let forgotten = shared.state.lock().forget(0..first);
        registry.metrics.expired.fetch_add(forgotten, Ordering::Relaxed);
    }
    let generations = stream.state.lock().generations.first().map_or(0, |(first, _)| *first);
    writes.drop_generations(stream.number, generations)?;
    writes.stream(stream)?;
    Ok(bytes)
}
