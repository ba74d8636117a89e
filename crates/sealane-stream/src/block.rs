//! Blocks: the messages of one stream that were committed together (spec/store.md §3).
//!
//! A block is what the log stores in one row, what live readers share in memory, and what is
//! encoded at most once per codec however many read it.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::{BufMut, Bytes, BytesMut};
use sealane_codec::{Codec, Transcoder, Writer};
use sealane_message::Topic;
use sealane_protocol::{DeliverHead, Position, write_deliver, write_message, write_sealed};

use crate::envelope::{Content, Envelope};

/// Fixed bytes of a record before its id: length, checksum, time, codec, id length.
pub(crate) const RECORD_HEAD_BYTES: usize = 4 + 4 + 8 + 1 + 1;

/// One message at rest.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) offset: u64,
    pub(crate) time_ms: u64,
    pub(crate) content: Content,
    pub(crate) id: Bytes,
    pub(crate) body: Bytes,
}

impl Record {
    pub(crate) fn new(offset: u64, time_ms: u64, envelope: Envelope) -> Self {
        let Envelope { content, id, body } = envelope;
        Self { offset, time_ms, content, id, body }
    }

    /// The id, which was text when it came.
    pub(crate) fn id_text(&self) -> &str {
        std::str::from_utf8(&self.id).unwrap_or_default()
    }
}

/// The messages of one commit of one stream, by ascending offset.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) topic: Topic,
    pub(crate) generation: u64,
    /// The first offset that this block covers; its record may be damaged.
    pub(crate) first: u64,
    /// The last offset that this block covers.
    pub(crate) last: u64,
    pub(crate) records: Vec<Record>,
    frames: [OnceLock<Frames>; 3],
}

/// The deliver frames of a block's records in one codec, for their first attempt, end to end, each
/// behind the head that it has on a WebSocket.
#[derive(Debug)]
struct Frames {
    bytes: Bytes,
    spans: Vec<Span>,
}

/// Where a frame is, without its head.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
    envelope_bytes: u32,
}

impl Block {
    pub(crate) fn new(topic: Topic, generation: u64, first: u64, records: Vec<Record>) -> Self {
        let last = first + (records.len() as u64).saturating_sub(1);
        Self { topic, generation, first, last, records, frames: Default::default() }
    }

    /// Bytes of memory that the block holds before it is put into frames. Frames are about as
    /// large in each codec that is read.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bodies: usize = self.records.iter().map(|r| r.body.len() + r.id.len()).sum();
        bodies + self.records.len() * size_of::<Record>() + size_of::<Block>()
    }

    /// Bytes of the block at rest.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let each = |r: &Record| (RECORD_HEAD_BYTES + r.id.len() + r.body.len()) as u64;
        self.records.iter().map(each).sum()
    }

    /// The index of the first record at or after `offset`.
    pub(crate) fn index_of(&self, offset: u64) -> usize {
        let guess = usize::try_from(offset.saturating_sub(self.first)).unwrap_or(usize::MAX);
        match self.records.get(guess) {
            Some(record) if record.offset == offset => guess,
            _ => self.records.partition_point(|record| record.offset < offset),
        }
    }

    /// The deliver frame of a record for its first attempt, shared by all who read it.
    pub(crate) fn frame(&self, index: usize, codec: Codec) -> Bytes {
        let frames = self.frames(codec);
        frames.spans.get(index).map_or_else(Bytes::new, |span| {
            frames.bytes.slice(span.start as usize..span.end as usize)
        })
    }

    /// The deliver frames of records that follow each other, as messages of a WebSocket; shared by
    /// all who read them.
    pub(crate) fn messages(&self, indexes: Range<usize>, codec: Codec) -> Bytes {
        let Frames { bytes, spans } = self.frames(codec);
        let before = indexes.start.checked_sub(1).and_then(|before| spans.get(before));
        let start = before.map_or(0, |span| span.end);
        let last = indexes.end.checked_sub(1).filter(|_| !indexes.is_empty());
        last.and_then(|last| spans.get(last))
            .map_or_else(Bytes::new, |last| bytes.slice(start as usize..last.end as usize))
    }

    /// The envelope of a record in `codec`, shared by all who read it.
    pub(crate) fn envelope(&self, index: usize, codec: Codec) -> Bytes {
        match self.records.get(index) {
            Some(record) if record.content == Content::Open(codec) => record.body.clone(),
            Some(_) => self.frames(codec).envelope(index, codec),
            None => Bytes::new(),
        }
    }

    /// The deliver frame of a record for a later attempt.
    pub(crate) fn frame_again(&self, index: usize, codec: Codec, attempt: u32) -> Bytes {
        let Some(record) = self.records.get(index) else { return Bytes::new() };
        let envelope = self.envelope(index, codec);
        let mut frame = Vec::with_capacity(envelope.len() + self.topic.as_str().len() + 120);
        write_deliver(codec.at_rest(), &envelope, &self.head(record, attempt), &mut frame);
        frame.into()
    }

    fn head(&self, record: &Record, attempt: u32) -> DeliverHead<'_> {
        DeliverHead {
            stream: &self.topic,
            position: Position { generation: self.generation, offset: record.offset },
            attempt,
            stored_ms: record.time_ms,
        }
    }

    fn frames(&self, codec: Codec) -> &Frames {
        let slot = match codec {
            Codec::Json => &self.frames[0],
            Codec::MsgPack | Codec::MsgPackRecords => &self.frames[1],
            Codec::Cbor => &self.frames[2],
        };
        slot.get_or_init(|| Frames::write(self, codec.at_rest()))
    }
}

impl Frames {
    fn write(block: &Block, codec: Codec) -> Frames {
        ENCODED.with(|count| count.set(count.get() + block.records.len() as u64));
        let size = |record: &Record| match record.content {
            // A frame stands without its id, and JSON's base64 takes four bytes for three.
            Content::Open(_) => record.body.len(),
            Content::Sealed if codec == Codec::Json => record.id.len() + record.body.len() / 3 * 4,
            Content::Sealed => record.id.len() + record.body.len(),
        };
        let bodies: usize = block.records.iter().map(size).sum();
        let each = block.topic.as_str().len() + 130;
        let mut bytes = Vec::with_capacity(bodies + block.records.len() * each);
        let mut spans = Vec::with_capacity(block.records.len());
        let mut scratch = Transcoder::new();
        let mut translated = Vec::new();
        for record in &block.records {
            translated.clear();
            let envelope = match record.content {
                Content::Open(own) if own == codec => record.body.as_ref(),
                Content::Open(own) => {
                    translate(&mut scratch, own, record, codec, &mut translated);
                    translated.as_slice()
                }
                Content::Sealed => {
                    write_sealed(codec, Some(record.id_text()), &record.body, &mut translated);
                    translated.as_slice()
                }
            };
            let mut frame_bytes = 0;
            write_message(codec, &mut bytes, |bytes| {
                let before = bytes.len();
                write_deliver(codec, envelope, &block.head(record, 1), bytes);
                frame_bytes = (bytes.len() - before) as u32;
            });
            let (end, envelope_bytes) = (bytes.len() as u32, envelope.len() as u32);
            spans.push(Span { start: end - frame_bytes, end, envelope_bytes });
        }
        Frames { bytes: bytes.into(), spans }
    }

    fn envelope(&self, index: usize, codec: Codec) -> Bytes {
        let Some(span) = self.spans.get(index) else { return Bytes::new() };
        // `{"deliver":` in JSON, a one-byte map head and an eight-byte key in the others.
        let head = if codec == Codec::Json { 11 } else { 9 };
        let start = span.start as usize + head;
        self.bytes.slice(start..start + span.envelope_bytes as usize)
    }
}

thread_local! {
    static ENCODED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Messages that this thread has put into frames since it was last asked, for the metrics.
pub fn take_encoded() -> u64 {
    ENCODED.with(|count| count.replace(0))
}

/// What was validated when it was enqueued translates; were it ever not to, readers of the other
/// codec see `null` and the log says why, rather than the stream ending for them.
fn translate(
    scratch: &mut Transcoder,
    own: Codec,
    record: &Record,
    codec: Codec,
    out: &mut Vec<u8>,
) {
    if let Err(error) = scratch.transcode(own, &record.body, codec, out) {
        tracing::error!(offset = record.offset, %error, "a stored message cannot be translated");
        out.clear();
        Writer::new(codec, out).null();
    }
}

/// Appends the stored form of `record`, a message of the stream `stream`.
pub(crate) fn write_record(stream: u32, record: &Record, out: &mut BytesMut) {
    let rest = RECORD_HEAD_BYTES - 4 + record.id.len() + record.body.len();
    out.put_u32_le(rest as u32);
    let at = out.len();
    out.put_u32_le(0);
    out.put_u64_le(record.time_ms);
    out.put_u8(record.content.id());
    out.put_u8(record.id.len() as u8);
    out.put_slice(&record.id);
    out.put_slice(&record.body);
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
pub(crate) struct Offsets {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// Reads a block's stored form. Records that are damaged are left out, and only they, as long as
/// their lengths still lead to the next one.
pub(crate) fn read_block(
    topic: Topic,
    stream: u32,
    generation: u64,
    Offsets { first, count }: Offsets,
    data: Vec<u8>,
) -> Block {
    let data = Bytes::from(data);
    let mut records = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(data.len() / 18));
    let mut at = 0;
    for offset in first..first + count {
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
    Block { topic, generation, first, last, records, frames: Default::default() }
}

fn read_record(stream: u32, offset: u64, rest: Bytes) -> Option<Record> {
    let sum = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?);
    if checksum(stream, offset, rest.get(4..)?) != sum {
        return None;
    }
    let time_ms = u64::from_le_bytes(rest.get(4..12)?.try_into().ok()?);
    let content = Content::from_id(*rest.get(12)?)?;
    let body_at = 14 + usize::from(*rest.get(13)?);
    rest.get(body_at..)?;
    Some(Record {
        offset,
        time_ms,
        content,
        id: rest.slice(14..body_at),
        body: rest.slice(body_at..),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: u64, body: &'static [u8]) -> Record {
        let id = Bytes::from(format!("m{offset}"));
        let content = Content::Open(Codec::Json);
        Record { offset, time_ms: 7, content, id, body: Bytes::from_static(body) }
    }

    fn stored(records: &[Record]) -> Vec<u8> {
        let mut out = BytesMut::new();
        records.iter().for_each(|r| write_record(3, r, &mut out));
        out.to_vec()
    }

    fn read(data: Vec<u8>) -> Vec<u64> {
        let block = read_block("a".parse().unwrap(), 3, 1, Offsets { first: 10, count: 3 }, data);
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
        let block =
            read_block("a".parse().unwrap(), 3, 1, Offsets { first: 11, count: 3 }, data.clone());
        assert!(block.records.is_empty());
        let block = read_block("a".parse().unwrap(), 4, 1, Offsets { first: 10, count: 3 }, data);
        assert!(block.records.is_empty());
    }

    #[test]
    fn a_block_is_encoded_once_per_codec() {
        take_encoded();
        let block = Block::new("a/b".parse().unwrap(), 5, 0, vec![record(0, br#"{"id":"m0"}"#)]);
        for _ in 0..100 {
            let json = block.frame(0, Codec::Json);
            let expected = concat!(
                r#"{"deliver":{"id":"m0"},"stream":"a/b","offset":0,"generation":5,"#,
                r#""attempt":1,"storedMs":7}"#
            );
            assert_eq!(json, expected);
            block.frame(0, Codec::MsgPack);
            block.frame(0, Codec::Cbor);
        }
        assert_eq!(take_encoded(), 3);
        for codec in Codec::AT_REST {
            let value = sealane_codec::decode(codec, &block.envelope(0, codec)).unwrap();
            assert_eq!(value.field("id").unwrap().as_text(), Some("m0"));
        }
    }

    #[test]
    fn messages_that_follow_each_other_are_one_piece_of_what_all_are_sent() {
        let long = format!(r#"{{"id":"m1","text":"{}"}}"#, "x".repeat(70_000));
        let bodies = [br#"{"id":"m0"}"#.to_vec(), long.into_bytes(), br#"{"id":"m2"}"#.to_vec()];
        let content = Content::Open(Codec::Json);
        let records = bodies.into_iter().zip(0..).map(|(body, offset)| {
            let id = Bytes::from(format!("m{offset}"));
            Record { offset, time_ms: 7, content, id, body: body.into() }
        });
        let block = Block::new("a".parse().unwrap(), 1, 0, records.collect());
        for codec in Codec::AT_REST {
            let mut each = vec![Vec::new()];
            for index in 0..3 {
                let mut message = Vec::new();
                let frame = block.frame(index, codec);
                write_message(codec, &mut message, |out| out.extend_from_slice(&frame));
                assert_eq!(block.messages(index..index + 1, codec), message, "{index}");
                each.push(message);
            }
            assert_eq!(block.messages(0..3, codec), each.concat());
            assert_eq!(block.messages(1..3, codec), each[2..].concat());
            assert_eq!(block.messages(0..3, codec).as_ptr(), block.messages(0..1, codec).as_ptr());
            // What is not there is nothing, and no reason to fail.
            assert!(
                block.messages(1..1, codec).is_empty() && block.messages(2..9, codec).is_empty()
            );
        }
    }
}
