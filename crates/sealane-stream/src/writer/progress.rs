//! What consumers do, stored as changes: a row for each commit holds those of all consumers, and a
//! consumer's own row is written again when its changes have outgrown it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::manage::Steering;
use super::plan::Plan;
use crate::ConsumerSettings;
use crate::consumer::{DeadCounts, Steered, write_counts, write_piece};
use crate::registry::Registry;
use crate::store::{ConsumerWrite, Fault, Next, Writes};
use crate::stream::{ConsumerEntry, Stream};

/// Rows that may stand. Beyond it the consumers of the oldest are written whole.
const ROWS_MAX: u64 = 4096;
/// Rows that are removed together, so that not every commit touches the oldest.
const ROWS_DROPPED: u64 = 64;
/// Changes of one consumer that may stand beside its row, however small that is.
const CHANGES_BYTES_MIN: u64 = 4096;

type StreamConsumer = (Arc<Stream>, Arc<ConsumerEntry>);

pub(super) struct Progress {
    /// The next row.
    next: u64,
    /// The first row that stands.
    first: u64,
    /// Consumers with changes in rows, by the first such row.
    oldest: BTreeMap<u64, Vec<StreamConsumer>>,
}

/// What is stored of one consumer.
pub(super) struct ConsumerPlan {
    pub(super) stream: Arc<Stream>,
    pub(super) entry: Arc<ConsumerEntry>,
    number: u64,
    settings: ConsumerSettings,
    paused_ms: u64,
    dead_lettered: u64,
    dead_dropped: u64,
    written: Written,
}

enum Written {
    /// All of it.
    Whole(Vec<u8>),
    /// What changed since it was stored last.
    Changes(Vec<u8>),
}

impl ConsumerPlan {
    /// What was planned did not come to be stored: the next time it is all of the consumer.
    pub(super) fn is_unstored(&self, registry: &Registry) {
        self.entry.state.lock().is_unstored();
        registry.mark_dirty(&self.stream, &self.entry);
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.written {
            Written::Whole(state) => state.len() as u64 + 4096,
            Written::Changes(piece) => piece.len() as u64 + 16,
        }
    }
}

impl Progress {
    pub(super) fn new(registry: &Registry, next: &Next) -> Self {
        let mut oldest: BTreeMap<u64, Vec<StreamConsumer>> = BTreeMap::new();
        for stream in registry.streams() {
            let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
            for entry in consumers {
                let first = entry.kept.lock().first;
                if first > 0 {
                    oldest.entry(first).or_default().push((stream.clone(), entry));
                }
            }
        }
        Self { next: next.progress, first: next.progress_first, oldest }
    }

    /// Plans what is stored of the consumers that changed, and of those whose changes are the
    /// oldest, where there are too many rows.
    pub(super) fn plan(
        &self,
        plan: &mut Plan,
        next: &mut Next,
        dirty: Vec<StreamConsumer>,
        buried: Vec<(Arc<ConsumerEntry>, Vec<u64>)>,
    ) {
        plan.has_flushed |= !dirty.is_empty();
        let too_old = self.next.saturating_sub(ROWS_MAX);
        let forced: Vec<StreamConsumer> =
            self.oldest.range(..too_old).next().map_or_else(Vec::new, |(_, all)| all.clone());
        let forced_by: HashSet<_> = forced.iter().map(|(_, s)| Arc::as_ptr(s)).collect();
        let buried: HashMap<_, _> =
            buried.iter().map(|(entry, offsets)| (Arc::as_ptr(entry), offsets)).collect();
        let mut seen: HashSet<_> = plan.managed.consumers().map(Arc::as_ptr).collect();
        for steering in &plan.managed.steered {
            plan.consumers.push(steered(steering, next));
        }
        for (stream, entry) in dirty.into_iter().chain(forced) {
            let is_gone = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            if is_gone(&stream.removed)
                || is_gone(&entry.removed)
                || !seen.insert(Arc::as_ptr(&entry))
            {
                continue;
            }
            if plan.removing.contains_key(&stream.topic) {
                plan.set_aside.push((stream, entry));
                continue;
            }
            let whole = forced_by.contains(&Arc::as_ptr(&entry));
            let offsets = buried.get(&Arc::as_ptr(&entry)).map_or(&[][..], |offsets| offsets);
            let of = plan.buried.iter().find(|buried| Arc::ptr_eq(&buried.entry, &entry));
            let more = of.map_or_else(DeadCounts::default, |buried| DeadCounts {
                lettered: buried.lettered,
                dropped: buried.dropped,
            });
            plan.consumers.push(describe(stream, entry, next, whole, offsets, more));
        }
    }

    /// The commit stands.
    pub(super) fn settle(&mut self, plan: &Plan) {
        let row = self.next;
        let mut is_used = false;
        for consumer in &plan.consumers {
            let mut kept = consumer.entry.kept.lock();
            kept.number = consumer.number;
            match &consumer.written {
                Written::Whole(_) => {
                    self.forget(kept.first, &consumer.entry);
                    (kept.first, kept.bytes) = (0, 0);
                }
                Written::Changes(piece) => {
                    is_used = true;
                    kept.bytes += piece.len() as u64;
                    if kept.first == 0 {
                        kept.first = row;
                        let member = (consumer.stream.clone(), consumer.entry.clone());
                        self.oldest.entry(row).or_default().push(member);
                    }
                }
            }
        }
        for stream in plan.removing.values() {
            let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
            for entry in consumers {
                let first = std::mem::take(&mut entry.kept.lock().first);
                self.forget(first, &entry);
            }
        }
        for (_, entry) in &plan.managed.lost {
            let first = std::mem::take(&mut entry.kept.lock().first);
            self.forget(first, entry);
        }
        self.next += u64::from(is_used);
        self.first = self.first.max(plan.progress_dropped);
    }

    fn forget(&mut self, first: u64, entry: &Arc<ConsumerEntry>) {
        if let Some(all) = self.oldest.get_mut(&first) {
            all.retain(|(_, other)| !Arc::ptr_eq(other, entry));
            if all.is_empty() {
                self.oldest.remove(&first);
            }
        }
    }

    /// The rows below this one are in consumers' own rows.
    fn droppable(&self) -> Option<u64> {
        let below = self.oldest.keys().next().copied().unwrap_or(self.next);
        (below - self.first.min(below) >= ROWS_DROPPED).then_some(below)
    }

    /// Stores what is planned of consumers.
    pub(super) fn store(&self, plan: &mut Plan, writes: &Writes) -> Result<(), Fault> {
        let mut row = Vec::new();
        for consumer in &plan.consumers {
            match &consumer.written {
                Written::Changes(piece) => write_piece(consumer.number, piece, &mut row),
                Written::Whole(state) => writes.consumer(&ConsumerWrite {
                    number: consumer.number,
                    stream: consumer.stream.number,
                    name: &consumer.entry.name,
                    owner: &consumer.entry.owner,
                    settings: consumer.settings,
                    paused_ms: consumer.paused_ms,
                    dead_lettered: consumer.dead_lettered,
                    dead_dropped: consumer.dead_dropped,
                    // None of its changes is in the next row, whoever else's are.
                    since: self.next - 1,
                    state,
                })?,
            }
        }
        if !row.is_empty() {
            writes.progress(self.next, &row)?;
        }
        plan.progress_dropped = 0;
        if let Some(below) = self.droppable() {
            writes.drop_progress(below)?;
            plan.progress_dropped = below;
        }
        Ok(())
    }
}

/// What is stored of a consumer, in the shorter form.
fn describe(
    stream: Arc<Stream>,
    entry: Arc<ConsumerEntry>,
    next: &mut Next,
    whole: bool,
    buried: &[u64],
    more: DeadCounts,
) -> ConsumerPlan {
    // What changes from here on is stored by another commit.
    entry.dirty.store(false, Ordering::SeqCst);
    let kept = {
        let mut kept = entry.kept.lock();
        let before = *kept;
        kept.is_changed = false;
        before
    };
    let number = number(kept.number, next);
    let dead_lettered = entry.dead_lettered.load(Ordering::Relaxed) + more.lettered;
    let dead_dropped = entry.dead_dropped.load(Ordering::Relaxed) + more.dropped;
    let mut consumer = entry.state.lock();
    let changes = consumer.changes(buried);
    let size = 64 + 4 * consumer.in_flight() as u64;
    let is_small = |piece: &Vec<u8>| kept.bytes + piece.len() as u64 <= size.max(CHANGES_BYTES_MIN);
    let can_change = kept.number > 0 && !kept.is_changed && !whole;
    let written = match changes.filter(|piece| can_change && is_small(piece)) {
        Some(changes) => {
            let mut piece = Vec::with_capacity(changes.len() + 4);
            write_counts(DeadCounts { lettered: dead_lettered, dropped: dead_dropped }, &mut piece);
            piece.extend_from_slice(&changes);
            Written::Changes(piece)
        }
        None => Written::Whole(consumer.snapshot(buried)),
    };
    let (settings, paused_ms) = (consumer.settings, consumer.paused_ms);
    drop(consumer);
    ConsumerPlan {
        stream,
        entry,
        number,
        settings,
        paused_ms,
        dead_lettered,
        dead_dropped,
        written,
    }
}

/// What is stored of a consumer that is steered: all of what it is going to be.
fn steered(steering: &Steering, next: &mut Next) -> ConsumerPlan {
    let Steering { stream, entry, steer } = steering;
    let number = number(entry.kept.lock().number, next);
    let consumer = entry.state.lock();
    let settings = consumer.settings;
    let Steered { paused_ms, state } = consumer.steered(steer);
    drop(consumer);
    ConsumerPlan {
        stream: stream.clone(),
        entry: entry.clone(),
        number,
        settings,
        paused_ms,
        dead_lettered: entry.dead_lettered.load(Ordering::Relaxed),
        dead_dropped: entry.dead_dropped.load(Ordering::Relaxed),
        written: Written::Whole(state),
    }
}

/// The number of a consumer's row; one that has none yet is given the next.
fn number(known: u64, next: &mut Next) -> u64 {
    if known > 0 {
        return known;
    }
    let number = next.consumer;
    next.consumer += 1;
    number
}
