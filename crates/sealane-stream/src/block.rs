//! Blocks: the messages of one stream that were committed together (spec/store.md §3).
//!
//! A block is what the log stores in one row, what live readers share in memory, and what is
//! encoded at most once per codec however many read it.

mod frames;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use sealane_message::Topic;

use crate::envelope::{EnvelopeContent, StreamEnvelope};
use frames::FrameSlots;
pub use frames::{DeliverLayout, take_encoded};

/// Fixed bytes of a record before its id: length, checksum, time, codec, id length.
pub(crate) const RECORD_HEAD_BYTES: usize = 4 + 4 + 8 + 1 + 1;

/// One message at rest.
#[derive(Debug, Clone)]
pub(crate) struct BlockRecord {
    pub(crate) offset: u64,
    pub(crate) time_ms: u64,
    pub(crate) content: EnvelopeContent,
    pub(crate) id: Bytes,
    pub(crate) body: Bytes,
}

impl BlockRecord {
    pub(crate) fn new(offset: u64, time_ms: u64, envelope: StreamEnvelope) -> Self {
        let StreamEnvelope { content, id, body } = envelope;
        Self { offset, time_ms, content, id, body }
    }

    /// The id, which was text when it came.
    pub(crate) fn id_text(&self) -> &str {
        std::str::from_utf8(&self.id).unwrap_or_default()
    }
}

/// The messages of one commit of one stream, by ascending offset.
#[derive(Debug)]
pub(crate) struct StreamBlock {
    pub(crate) topic: Topic,
    pub(crate) generation: u64,
    /// The first offset that this block covers; its record may be damaged.
    pub(crate) first: u64,
    /// The last offset that this block covers.
    pub(crate) last: u64,
    /// Shared with the commit that stores them, so that neither copies.
    pub(crate) records: Arc<[BlockRecord]>,
    frames: FrameSlots,
}

impl StreamBlock {
    pub(crate) fn new(
        topic: Topic,
        generation: u64,
        first: u64,
        records: Arc<[BlockRecord]>,
    ) -> Self {
        let last = first + (records.len() as u64).saturating_sub(1);
        Self { topic, generation, first, last, records, frames: FrameSlots::default() }
    }

    /// Bytes of memory that the block holds before it is put into frames. Frames are about as
    /// large in each codec that is read.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bodies: usize = self.records.iter().map(|r| r.body.len() + r.id.len()).sum();
        bodies + self.records.len() * size_of::<BlockRecord>() + size_of::<StreamBlock>()
    }

    /// Bytes of the block at rest.
    pub(crate) fn stored_bytes(&self) -> u64 {
        stored_bytes(&self.records)
    }

    /// The index of the first record at or after `offset`.
    pub(crate) fn index_of(&self, offset: u64) -> usize {
        // Offsets have no holes unless records are damaged, so that a search is the exception.
        let guess = usize::try_from(offset.saturating_sub(self.first)).unwrap_or(usize::MAX);
        match self.records.get(guess) {
            Some(record) if record.offset == offset => guess,
            _ => self.records.partition_point(|record| record.offset < offset),
        }
    }
}

/// Bytes of messages at rest.
pub(crate) fn stored_bytes(records: &[BlockRecord]) -> u64 {
    let each = |r: &BlockRecord| (RECORD_HEAD_BYTES + r.id.len() + r.body.len()) as u64;
    records.iter().map(each).sum()
}

/// Appends the stored form of `record`, a message of the stream `stream`.
pub(crate) fn write_record(stream: u32, record: &BlockRecord, out: &mut BytesMut) {
    let rest = RECORD_HEAD_BYTES - 4 + record.id.len() + record.body.len();
    out.put_u32_le(rest as u32);
    let at = out.len();
    out.put_u32_le(0);
    out.put_u64_le(record.time_ms);
    out.put_u8(record.content.id());
    out.put_u8(record.id.len() as u8);
    out.put_slice(&record.id);
    out.put_slice(&record.body);
    // The sum covers what stands behind it, which is known only now. The bytes are summed where
    // they stand, since a second buffer would cost a copy of each message.
    let sum = out.get(at + 4..).map_or(0, |covered| checksum(stream, record.offset, covered));
    if let Some(target) = out.get_mut(at..at + 4) {
        target.copy_from_slice(&sum.to_le_bytes());
    }
}

/// CRC-32 over the record's place and its bytes, so that a record that was written to or read
/// from the wrong place is damage too.
fn checksum(stream: u32, offset: u64, covered: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&stream.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(covered);
    hasher.finalize()
}

/// The offsets of a stored block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockOffsets {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// Reads a block's stored form. Records that are damaged are left out, and only they, as long as
/// their lengths still lead to the next one.
pub(crate) fn read_block(
    topic: Topic,
    stream: u32,
    generation: u64,
    BlockOffsets { first, count }: BlockOffsets,
    data: Vec<u8>,
) -> StreamBlock {
    let data = Bytes::from(data);
    // The count stands in the row and may be damaged. Memory is taken for what the bytes can hold.
    let mut records = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(data.len() / 18));
    let mut at = 0;
    for offset in first..first + count {
        // A broken length leads nowhere: where the next record begins is not known, and a guess
        // could take the inside of a body for a record.
        let Some(head) = data.get(at..at + 4).and_then(|b| b.try_into().ok()) else { break };
        let end = (at + 4).saturating_add(u32::from_le_bytes(head) as usize);
        if end > data.len() {
            break;
        }
        if let Some(record) = read_record(stream, offset, data.slice(at + 4..end)) {
            records.push(record);
        }
        at = end;
    }
    let last = first + count.saturating_sub(1);
    let records = records.into();
    StreamBlock { topic, generation, first, last, records, frames: FrameSlots::default() }
}

fn read_record(stream: u32, offset: u64, rest: Bytes) -> Option<BlockRecord> {
    let sum = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?);
    if checksum(stream, offset, rest.get(4..)?) != sum {
        return None;
    }
    let time_ms = u64::from_le_bytes(rest.get(4..12)?.try_into().ok()?);
    let content = EnvelopeContent::from_id(*rest.get(12)?)?;
    let body_at = 14 + usize::from(*rest.get(13)?);
    rest.get(body_at..)?;
    Some(BlockRecord {
        offset,
        time_ms,
        content,
        id: rest.slice(14..body_at),
        body: rest.slice(body_at..),
    })
}

#[cfg(test)]
mod tests {
    use sealane_codec::Codec;

    use super::*;

    fn record(offset: u64, body: &'static [u8]) -> BlockRecord {
        let id = Bytes::from(format!("m{offset}"));
        let content = EnvelopeContent::Open(Codec::Json);
        BlockRecord { offset, time_ms: 7, content, id, body: Bytes::from_static(body) }
    }

    fn stored(records: &[BlockRecord]) -> Vec<u8> {
        let mut out = BytesMut::new();
        records.iter().for_each(|r| write_record(3, r, &mut out));
        out.to_vec()
    }

    fn read(data: Vec<u8>) -> Vec<u64> {
        let block =
            read_block("a".parse().unwrap(), 3, 1, BlockOffsets { first: 10, count: 3 }, data);
        assert_eq!((block.first, block.last), (10, 12));
        block.records.iter().map(|r| r.offset).collect()
    }

    #[test]
    fn every_damaged_byte_is_found_and_costs_one_record_or_those_behind_a_broken_length() {
        let records: Vec<_> = (10..13).map(|offset| record(offset, br#"{"id":"m"}"#)).collect();
        let good = stored(&records);
        assert_eq!(read(good.clone()), [10, 11, 12]);
        let size = good.len() / 3;
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let left = read(bad);
                let hit = 10 + (at / size) as u64;
                assert!(!left.contains(&hit), "byte {at} bit {bit}");
                if at % size >= 4 {
                    assert_eq!(left.len(), 2, "byte {at} bit {bit}");
                }
            }
        }
        for cut in 0..good.len() {
            assert_eq!(read(good[..cut].to_vec()).len(), cut / size);
        }
    }

    #[test]
    fn a_record_in_the_wrong_place_is_damage() {
        let records: Vec<_> = (10..13).map(|offset| record(offset, b"{}")).collect();
        let data = stored(&records);
        let block = read_block(
            "a".parse().unwrap(),
            3,
            1,
            BlockOffsets { first: 11, count: 3 },
            data.clone(),
        );
        assert!(block.records.is_empty());
        let block =
            read_block("a".parse().unwrap(), 4, 1, BlockOffsets { first: 10, count: 3 }, data);
        assert!(block.records.is_empty());
    }
}
