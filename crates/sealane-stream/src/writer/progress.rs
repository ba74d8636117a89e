//! The changes of consumers, stored as a row for each commit that holds those of all consumers. If
//! its changes have outgrown a consumer's own row, that row is written again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::letters::BuriedMessages;
use super::manage::ConsumerSteering;
use super::plan::CommitPlan;
use crate::ConsumerSettings;
use crate::commit::{ConsumerRecord, StoreChange, StoreCommit};
use crate::consumer::{ConsumerSteered, DeadCounts, write_counts, write_piece};
use crate::limits::{MAX_PROGRESS_ROWS, MIN_CHANGES_BYTES};
use crate::registry::StreamRegistry;
use crate::store::StoreNext;
use crate::stream::{ConsumerEntry, StreamEntry};

/// Rows that are removed together, so that not every commit touches the oldest.
const ROWS_DROPPED: u64 = 64;

type StreamConsumer = (Arc<StreamEntry>, Arc<ConsumerEntry>);

pub(super) struct WriterProgress {
    /// The next row.
    next: u64,
    /// The first row that stands.
    first: u64,
    /// Consumers with changes in rows, by the first such row.
    oldest: BTreeMap<u64, Vec<StreamConsumer>>,
}

/// The changes of consumers that a commit stores, and its effect on their dead messages.
#[derive(Default)]
pub(super) struct ProgressPlan {
    /// Consumers of which something is stored.
    pub(super) stored: Vec<ConsumerPlan>,
    /// Those that are written whole.
    records: Vec<ConsumerRecord>,
    /// The changes of the others, as one row.
    pieces: Vec<u8>,
    /// The number of that row.
    row: u64,
    /// The rows below this one go; 0: none.
    dropped: u64,
    pub(super) buried: Vec<BuriedMessages>,
    /// Consumers that changed and go with their streams, if the commit stands.
    pub(super) set_aside: Vec<StreamConsumer>,
}

/// A consumer of which something is stored.
pub(super) struct ConsumerPlan {
    pub(super) stream: Arc<StreamEntry>,
    entry: Arc<ConsumerEntry>,
    number: u64,
    written: ProgressWritten,
}

enum ProgressWritten {
    /// All of it.
    Whole,
    /// The changes since it was stored last, in so many bytes.
    Changes(u64),
}

impl ConsumerPlan {
    /// If this plan was not stored, the next one stores all of the consumer. The consumer has
    /// forgotten by now which changes these were.
    pub(super) fn is_unstored(&self, registry: &StreamRegistry) {
        self.entry.state.lock().is_unstored();
        registry.mark_dirty(&self.stream, &self.entry);
    }
}

impl ProgressPlan {
    pub(super) fn add_to(&mut self, commit: &mut StoreCommit) {
        let records = std::mem::take(&mut self.records);
        commit.changes.extend(records.into_iter().map(Box::new).map(StoreChange::KeepConsumer));
        let data = std::mem::take(&mut self.pieces);
        if !data.is_empty() {
            commit.push(StoreChange::AddProgress { row: self.row, data });
        }
        if self.dropped > 0 {
            commit.push(StoreChange::DropProgress { below: self.dropped });
        }
    }

    /// Nothing of consumers is stored but what goes.
    pub(super) fn strip(&mut self, registry: &StreamRegistry) {
        self.buried.clear();
        self.stored.drain(..).for_each(|consumer| consumer.is_unstored(registry));
    }

    /// Plans to store all of a consumer.
    fn keep(&mut self, consumer: &ConsumerPlan, kept: KeptWhole) {
        let KeptWhole { settings, paused_ms, dead, state } = kept;
        self.records.push(ConsumerRecord {
            number: consumer.number,
            stream: consumer.stream.number,
            name: consumer.entry.name.clone(),
            owner: consumer.entry.owner.clone(),
            settings,
            paused_ms,
            dead_lettered: dead.lettered,
            dead_dropped: dead.dropped,
            // None of its changes is in the next row, whoever else's are.
            since: self.row - 1,
            state,
        });
    }
}

/// A consumer as its own row is to say it.
struct KeptWhole {
    settings: ConsumerSettings,
    paused_ms: u64,
    dead: DeadCounts,
    state: Vec<u8>,
}

impl WriterProgress {
    pub(super) fn new(registry: &StreamRegistry, next: &StoreNext) -> Self {
        let mut oldest: BTreeMap<u64, Vec<StreamConsumer>> = BTreeMap::new();
        for stream in registry.streams() {
            let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
            for entry in consumers {
                let first = entry.kept.lock().first;
                // Consumers whose row holds everything keep no row of progress alive.
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
        plan: &mut CommitPlan,
        next: &mut StoreNext,
        dirty: Vec<StreamConsumer>,
    ) {
        plan.has_flushed |= !dirty.is_empty();
        plan.progress.row = self.next;
        plan.progress.dropped = self.droppable().unwrap_or_default();
        let too_old = self.next.saturating_sub(MAX_PROGRESS_ROWS);
        // A consumer that does nothing would hold all rows behind its oldest change for ever.
        let forced: Vec<StreamConsumer> =
            self.oldest.range(..too_old).next().map_or_else(Vec::new, |(_, all)| all.clone());
        let forced_by: HashSet<_> = forced.iter().map(|(_, s)| Arc::as_ptr(s)).collect();
        // Two pieces of one consumer in one row would count its bytes twice.
        let mut seen: HashSet<_> = plan.managed.consumers().map(Arc::as_ptr).collect();
        for steering in &plan.managed.steered {
            steered(&mut plan.progress, steering, next);
        }
        for (stream, entry) in dirty.into_iter().chain(forced) {
            let is_gone = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            if is_gone(&stream.removed)
                || is_gone(&entry.removed)
                || !seen.insert(Arc::as_ptr(&entry))
            {
                continue;
            }
            if plan.streams.removes(&stream.topic) {
                plan.progress.set_aside.push((stream, entry));
                continue;
            }
            let whole = forced_by.contains(&Arc::as_ptr(&entry));
            describe(&mut plan.progress, stream, entry, next, whole);
        }
    }

    /// The commit stands.
    pub(super) fn settle(&mut self, plan: &CommitPlan) {
        let row = self.next;
        let mut is_used = false;
        debug_assert!(plan.progress.stored.is_empty() || row == plan.progress.row);
        for consumer in &plan.progress.stored {
            let mut kept = consumer.entry.kept.lock();
            kept.number = consumer.number;
            match &consumer.written {
                ProgressWritten::Whole => {
                    // A whole row holds all changes before it, so that the rows of progress may go.
                    self.forget(kept.first, &consumer.entry);
                    (kept.first, kept.bytes) = (0, 0);
                }
                ProgressWritten::Changes(bytes) => {
                    is_used = true;
                    kept.bytes += bytes;
                    if kept.first == 0 {
                        kept.first = row;
                        let member = (consumer.stream.clone(), consumer.entry.clone());
                        self.oldest.entry(row).or_default().push(member);
                    }
                }
            }
        }
        for stream in plan.streams.removing() {
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
        // A commit without changes of consumers writes no row, and its number stays free.
        self.next += u64::from(is_used);
        self.first = self.first.max(plan.progress.dropped);
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
        // The oldest page is touched once for many rows: in each commit it would be the larger
        // part.
        (below - self.first.min(below) >= ROWS_DROPPED).then_some(below)
    }
}

/// Plans what is stored of a consumer, in the shorter form.
fn describe(
    plan: &mut ProgressPlan,
    stream: Arc<StreamEntry>,
    entry: Arc<ConsumerEntry>,
    next: &mut StoreNext,
    whole: bool,
) {
    // Another commit stores the changes from here on.
    entry.dirty.store(false, Ordering::SeqCst);
    let kept = {
        let mut kept = entry.kept.lock();
        let before = *kept;
        kept.is_changed = false;
        before
    };
    let number = number(kept.number, next);
    let of_it = plan.buried.iter().find(|buried| Arc::ptr_eq(&buried.entry, &entry));
    let buried = of_it.map_or(&[][..], |buried| &buried.offsets);
    let (lettered, dropped) = of_it.map_or((0, 0), |buried| (buried.lettered, buried.dropped));
    let dead = DeadCounts {
        lettered: entry.dead_lettered.load(Ordering::Relaxed) + lettered,
        dropped: entry.dead_dropped.load(Ordering::Relaxed) + dropped,
    };
    let mut consumer = entry.state.lock();
    // There are none after a failed commit. The consumer has forgotten them, and only its whole
    // state has them.
    let changes = consumer.changes(buried);
    let size = 64 + 4 * consumer.in_flight() as u64;
    // Once the changes are larger than the state, the state itself is cheaper and ends the row's
    // history.
    let is_small = |piece: &Vec<u8>| kept.bytes + piece.len() as u64 <= size.max(MIN_CHANGES_BYTES);
    // A piece names its consumer's row: without one, or with other settings, all of it is written.
    let can_change = kept.number > 0 && !kept.is_changed && !whole;
    if let Some(changes) = changes.filter(|piece| can_change && is_small(piece)) {
        drop(consumer);
        let mut piece = Vec::with_capacity(changes.len() + 4);
        write_counts(dead, &mut piece);
        piece.extend_from_slice(&changes);
        write_piece(number, &piece, &mut plan.pieces);
        let written = ProgressWritten::Changes(piece.len() as u64);
        plan.stored.push(ConsumerPlan { stream, entry, number, written });
        return;
    }
    let (settings, paused_ms) = (consumer.settings, consumer.paused_ms);
    let state = consumer.snapshot(buried);
    drop(consumer);
    let consumer = ConsumerPlan { stream, entry, number, written: ProgressWritten::Whole };
    plan.keep(&consumer, KeptWhole { settings, paused_ms, dead, state });
    plan.stored.push(consumer);
}

/// Plans what is stored of a consumer that is steered: all of what it is going to be.
fn steered(plan: &mut ProgressPlan, steering: &ConsumerSteering, next: &mut StoreNext) {
    let ConsumerSteering { stream, entry, steer } = steering;
    let number = number(entry.kept.lock().number, next);
    let dead = DeadCounts {
        lettered: entry.dead_lettered.load(Ordering::Relaxed),
        dropped: entry.dead_dropped.load(Ordering::Relaxed),
    };
    // Nothing is changed here: the steering takes effect in `settle`, if the commit stands.
    let consumer = entry.state.lock();
    let settings = consumer.settings;
    let ConsumerSteered { paused_ms, state } = consumer.steered(steer);
    drop(consumer);
    let (stream, entry, written) = (stream.clone(), entry.clone(), ProgressWritten::Whole);
    let consumer = ConsumerPlan { stream, entry, number, written };
    plan.keep(&consumer, KeptWhole { settings, paused_ms, dead, state });
    plan.stored.push(consumer);
}

/// The number of a consumer's row; one that has none yet is given the next.
fn number(known: u64, next: &mut StoreNext) -> u64 {
    if known > 0 {
        return known;
    }
    let number = next.consumer;
    next.consumer += 1;
    number
}
