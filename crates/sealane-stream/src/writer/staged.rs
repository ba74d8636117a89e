//! The gains of one stream by a commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Level;
use crate::block::{BlockRecord, StreamBlock};
use crate::commit::{StoreChange, StoreCommit};
use crate::envelope::StreamEnvelope;
use crate::registry::StreamRegistry;
use crate::store::{KeyRow, StoredSession};
use crate::stream::StreamEntry;

/// Records of one block, at most; a block is what one reader takes into memory at once.
const BLOCK_RECORDS: usize = 1024;
/// Bytes of one block's bodies, unless a single message is larger.
const BLOCK_BYTES: usize = 256 << 10;

pub(super) const HOUR_MS: u64 = 3_600_000;

pub(super) struct StagedStream {
    pub(super) stream: Arc<StreamEntry>,
    pub(super) generation: u64,
    /// The offset of the next message.
    pub(super) next: u64,
    /// The level that the messages are answered at.
    pub(super) level: Level,
    last_ms: u64,
    records: Vec<BlockRecord>,
    pub(super) blocks: Vec<Arc<StreamBlock>>,
    /// Idempotency keys that came with the messages.
    pub(super) keys: HashMap<Vec<u8>, KeyRow>,
    /// The messages that publishing sessions have had stored when the commit stands, by their keys.
    pub(super) sessions: HashMap<Arc<[u8]>, StoredSession>,
    /// Whether nobody is told before the commit stands: the hub itself gives some of the messages,
    /// which are taken from elsewhere by this very commit, or a session has messages held back.
    pub(super) waits: bool,
}

impl StagedStream {
    pub(super) fn new(stream: Arc<StreamEntry>) -> Self {
        let state = stream.state.lock();
        // The extent is copied, since readers go on with the stream's own until the commit stands.
        let (generation, next, last_ms) = (state.generation(), state.next, state.last_ms);
        let level = state.settings.level;
        drop(state);
        Self {
            stream,
            generation,
            next,
            level,
            last_ms,
            records: Vec::new(),
            blocks: Vec::new(),
            keys: HashMap::new(),
            sessions: HashMap::new(),
            waits: false,
        }
    }

    /// Gives the messages their offsets; returns the first.
    pub(super) fn push(&mut self, envelopes: Vec<StreamEnvelope>, now_ms: u64) -> u64 {
        let first = self.next;
        // Times never decrease along a stream, whatever the system's clock does.
        self.last_ms = self.last_ms.max(now_ms);
        self.records.reserve(envelopes.len());
        for envelope in envelopes {
            let (offset, time_ms) = (self.next, self.last_ms);
            self.records.push(BlockRecord::new(offset, time_ms, envelope));
            self.next += 1;
        }
        first
    }

    /// Whether its messages are readable before the commit stands: the stream is of level `memory`,
    /// and nothing of it is taken from elsewhere by the same commit.
    pub(super) fn may_be_early(&self) -> bool {
        self.level == Level::Memory && !self.waits
    }

    fn seal_blocks(&mut self) {
        let all: usize = self.records.iter().map(|record| record.body.len()).sum();
        if self.records.len() <= BLOCK_RECORDS && all <= BLOCK_BYTES {
            let records = std::mem::take(&mut self.records);
            return self.seal_block(records);
        }
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in std::mem::take(&mut self.records) {
            // A reader takes a whole block into memory, so that a batch of 16 MiB must not be one.
            let full = records.len() >= BLOCK_RECORDS || bytes + record.body.len() > BLOCK_BYTES;
            if full && !records.is_empty() {
                self.seal_block(std::mem::take(&mut records));
                bytes = 0;
            }
            bytes += record.body.len();
            records.push(record);
        }
        self.seal_block(records);
    }

    fn seal_block(&mut self, records: Vec<BlockRecord>) {
        if let Some(first) = records.first().map(|record| record.offset) {
            let topic = self.stream.topic.clone();
            self.blocks.push(Arc::new(StreamBlock::new(
                topic,
                self.generation,
                first,
                records.into(),
            )));
        }
    }

    /// Adds what it stores to a commit. If this may stay beyond the commit (`may_stay`), its keys
    /// stay with it: a failed commit leaves messages that were answered, and the same request may
    /// come again before they are stored.
    pub(super) fn add_to(
        &mut self,
        commit: &mut StoreCommit,
        now_ms: u64,
        stamp_ms: u64,
        may_stay: bool,
    ) {
        self.seal_blocks();
        let (stream, generation) = (self.stream.number, self.generation);
        for block in &self.blocks {
            let records = block.records.clone();
            // The stream's time runs ahead of a clock that was set back. The messages age by the
            // clock as it is now.
            let is_ahead = records.last().is_some_and(|last| last.time_ms > now_ms);
            let stored_ms = if is_ahead { now_ms } else { 0 };
            commit.push(StoreChange::AddBlock { stream, generation, records, stored_ms });
        }
        let keys = if may_stay { self.keys.clone() } else { std::mem::take(&mut self.keys) };
        for (key, row) in keys {
            commit.push(StoreChange::KeepKey { stream, key, row, time_ms: stamp_ms });
        }
        // One row for all messages of a session, however many there are: a row for each would be
        // the larger part of a commit.
        for (session, stored) in &self.sessions {
            let (session, row) = (session.clone(), stored.row(stamp_ms / HOUR_MS));
            commit.push(StoreChange::KeepSession { stream, session, row });
        }
    }

    /// The commit that holds it stands.
    pub(super) fn note_stored(&self, registry: &StreamRegistry) {
        let messages = self.blocks.iter().map(|block| block.records.len() as u64).sum();
        registry.metrics.stored.fetch_add(messages, Ordering::Relaxed);
        registry.series.of(&self.stream).stored.fetch_add(messages, Ordering::Relaxed);
        if self.stream.sealed.is_some() {
            registry.metrics.stored_sealed.fetch_add(messages, Ordering::Relaxed);
        }
        // Blocks ascend, so that the last one says how far the store reaches.
        if let Some(last) = self.blocks.last() {
            let bytes = self.blocks.iter().map(|block| block.stored_bytes()).sum();
            self.stream.note_stored(last.last, bytes);
        }
    }
}
