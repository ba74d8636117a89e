//! The blocks of a stream that are in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::block::StreamBlock;
use crate::limits::{MAX_TAIL_BYTES, MAX_TAILS_BYTES};

/// Blocks shared by readers who catch up, for each stream.
const RECENT_BLOCKS: usize = 4;

/// Bytes of all tails together, bounded by `MAX_TAILS_BYTES`.
static TAILS_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The blocks of a stream that are in memory.
#[derive(Default)]
pub(super) struct StreamTail {
    /// The most recent blocks, without holes up to the end of the stream.
    blocks: VecDeque<Arc<StreamBlock>>,
    bytes: usize,
    /// A few older blocks that readers who catch up share.
    recent: VecDeque<Arc<StreamBlock>>,
}

impl StreamTail {
    /// The block that `offset` is in, as far as it is in memory.
    pub(super) fn find(&self, offset: u64) -> Option<&Arc<StreamBlock>> {
        // The tail has no holes, so that its first offset decides. Older blocks are few, and read
        // by chance.
        if self.blocks.front().is_some_and(|block| block.first <= offset) {
            let index = self.blocks.partition_point(|block| block.last < offset);
            if let Some(block) = self.blocks.get(index) {
                return Some(block);
            }
        }
        self.recent.iter().find(|block| (block.first..=block.last).contains(&offset))
    }

    /// The first block from `from` on whose last message is not older than `time_ms`.
    pub(super) fn find_time(&self, from: u64, time_ms: u64) -> Option<&Arc<StreamBlock>> {
        self.blocks.iter().find(|block| {
            let last = block.records.last().map_or(0, |record| record.time_ms);
            block.first >= from && last >= time_ms
        })
    }

    /// When the message of `offset` was stored, where it is among the most recent.
    pub(super) fn time_of(&self, offset: u64) -> Option<u64> {
        let index = self.blocks.partition_point(|block| block.last < offset);
        let block = self.blocks.get(index).filter(|block| block.first <= offset)?;
        block.records.get(block.index_of(offset)).map(|record| record.time_ms)
    }

    /// Lets other readers who catch up share `block`.
    pub(super) fn share(&mut self, block: Arc<StreamBlock>) {
        if self.recent.len() >= RECENT_BLOCKS {
            self.recent.pop_front();
        }
        self.recent.push_back(block);
    }

    pub(super) fn push(&mut self, block: Arc<StreamBlock>, stored_next: u64) {
        let bytes = tail_bytes(&block);
        self.bytes += bytes;
        TAILS_BYTES.fetch_add(bytes, Ordering::Relaxed);
        self.blocks.push_back(block);
        self.shorten(stored_next);
    }

    /// Lets blocks go that are too many. What is not in the store yet stays: a reader of it would
    /// have to wait for the store.
    pub(super) fn shorten(&mut self, stored_next: u64) {
        // The newest block stays, however large: live readers are about to look for it.
        while self.blocks.len() > 1
            && self.blocks.front().is_some_and(|block| block.last < stored_next)
            && (self.bytes > MAX_TAIL_BYTES
                || TAILS_BYTES.load(Ordering::Relaxed) > MAX_TAILS_BYTES)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            let bytes = tail_bytes(&block);
            self.bytes = self.bytes.saturating_sub(bytes);
            TAILS_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The size for which a block of the tail counts: itself and its frames in one codec.
fn tail_bytes(block: &StreamBlock) -> usize {
    // Frames of further codecs are not counted: few streams are read in more than one.
    block.memory_bytes() * 2
}

impl Drop for StreamTail {
    fn drop(&mut self) {
        while !self.blocks.is_empty() {
            self.drop_oldest();
        }
    }
}
