//! The deliver frames of a block: written at most once per codec, however many readers and
//! transports there are.

use std::any::TypeId;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use sealane_codec::{Codec, DatumWriter, Transcoder};
use sealane_protocol::{DeliverHead, StreamPosition, write_deliver, write_sealed};

use super::{BlockRecord, StreamBlock};
use crate::envelope::EnvelopeContent;

/// How a transport sets one message apart from the next on its wire: by a head before each.
///
/// A run of messages then is one slice of the block for every reader. Measured in one run
/// (docs/decisions/0014-a-commit-is-data.md), a connection that put the heads in front by itself
/// cost a tenth of fan-out or more: with a copy, and more still with vectored writes.
pub trait DeliverLayout: 'static {
    /// Appends what `write` appends, behind the head that the transport gives it.
    fn write(codec: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>));
}

/// Frames end to end, for whoever reads them one by one.
struct BareLayout;

impl DeliverLayout for BareLayout {
    fn write(_: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        write(out);
    }
}

/// The frames of a block in each codec.
#[derive(Debug, Default)]
pub(super) struct FrameSlots([CodecFrames; 3]);

/// The frames of a block in one codec.
#[derive(Debug, Default)]
struct CodecFrames {
    /// In the layout of the first transport that asked. Single frames are slices of it, too.
    first: OnceLock<BlockFrames>,
    /// In the layout of another transport: copied, not encoded again.
    other: OnceLock<Box<BlockFrames>>,
}

/// The deliver frames of a block's records in one codec, for their first attempt, end to end in the
/// layout of a transport.
#[derive(Debug)]
struct BlockFrames {
    layout: TypeId,
    bytes: Bytes,
    spans: Box<[FrameSpan]>,
}

/// Where a frame is, without its head. With it the frame begins where the one before ends.
#[derive(Debug, Clone, Copy)]
struct FrameSpan {
    start: u32,
    end: u32,
    envelope_bytes: u32,
}

impl FrameSpan {
    fn frame(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl StreamBlock {
    /// The deliver frame of a record for its first attempt, shared by all who read it.
    pub(crate) fn frame(&self, index: usize, codec: Codec) -> Bytes {
        let frames = self.frames(codec);
        frames.spans.get(index).map_or_else(Bytes::new, |span| frames.bytes.slice(span.frame()))
    }

    /// The deliver frames of records that follow each other, as messages of a transport; shared by
    /// all who read them on it.
    pub(crate) fn messages<L: DeliverLayout>(&self, indexes: Range<usize>, codec: Codec) -> Bytes {
        let CodecFrames { first, other } = self.slot(codec);
        let first = first.get_or_init(|| BlockFrames::write::<L>(self, codec.at_rest()));
        if first.layout == TypeId::of::<L>() {
            return first.run(indexes);
        }
        let other = other.get_or_init(|| Box::new(first.copy::<L>(codec.at_rest())));
        if other.layout == TypeId::of::<L>() {
            return other.run(indexes);
        }
        // A third transport is served, and pays for it. It needs a slot of its own.
        first.copy::<L>(codec.at_rest()).run(indexes)
    }

    /// The envelope of a record in `codec`, shared by all who read it.
    pub(crate) fn envelope(&self, index: usize, codec: Codec) -> Bytes {
        match self.records.get(index) {
            Some(record) if record.content == EnvelopeContent::Open(codec) => record.body.clone(),
            Some(_) => self.frames(codec).envelope(index, codec),
            None => Bytes::new(),
        }
    }

    /// The deliver frame of a record for a later attempt.
    pub(crate) fn frame_again(&self, index: usize, codec: Codec, attempt: u32) -> Bytes {
        let Some(record) = self.records.get(index) else { return Bytes::new() };
        let envelope = self.envelope(index, codec);
        // The attempt stands in the frame, so that a later one is of this reader alone and not
        // kept.
        let mut frame = Vec::with_capacity(envelope.len() + self.topic.as_str().len() + 120);
        write_deliver(codec.at_rest(), &envelope, &self.head(record, attempt), &mut frame);
        frame.into()
    }

    fn head(&self, record: &BlockRecord, attempt: u32) -> DeliverHead<'_> {
        DeliverHead {
            stream: &self.topic,
            position: StreamPosition { generation: self.generation, offset: record.offset },
            attempt,
            stored_ms: record.time_ms,
        }
    }

    fn slot(&self, codec: Codec) -> &CodecFrames {
        match codec {
            Codec::Json => &self.frames.0[0],
            Codec::MsgPack | Codec::MsgPackRecords => &self.frames.0[1],
            Codec::Cbor => &self.frames.0[2],
        }
    }

    /// The frames in whatever layout they have.
    fn frames(&self, codec: Codec) -> &BlockFrames {
        let slot = self.slot(codec);
        slot.first.get_or_init(|| BlockFrames::write::<BareLayout>(self, codec.at_rest()))
    }
}

impl BlockFrames {
    fn write<L: DeliverLayout>(block: &StreamBlock, codec: Codec) -> BlockFrames {
        ENCODED.with(|count| count.set(count.get() + block.records.len() as u64));
        let size = |record: &BlockRecord| match record.content {
            // A frame stands without its id, and JSON's base64 takes four bytes for three.
            EnvelopeContent::Open(_) => record.body.len(),
            EnvelopeContent::Sealed if codec == Codec::Json => {
                record.id.len() + record.body.len() / 3 * 4
            }
            EnvelopeContent::Sealed => record.id.len() + record.body.len(),
        };
        // One allocation for the whole block, instead of a copy of it each time that it grows.
        let bodies: usize = block.records.iter().map(size).sum();
        let each = block.topic.as_str().len() + 130;
        let mut run = DeliverRun::new(bodies + block.records.len() * each, block.records.len());
        // One scratch for all records: its buffers have grown after the first.
        let mut scratch = Transcoder::new();
        let mut translated = Vec::new();
        for record in block.records.iter() {
            translated.clear();
            let envelope = match record.content {
                EnvelopeContent::Open(own) if own == codec => record.body.as_ref(),
                EnvelopeContent::Open(own) => {
                    translate(&mut scratch, own, record, codec, &mut translated);
                    translated.as_slice()
                }
                EnvelopeContent::Sealed => {
                    write_sealed(codec, Some(record.id_text()), &record.body, &mut translated);
                    translated.as_slice()
                }
            };
            run.add::<L>(codec, envelope.len() as u32, |bytes| {
                write_deliver(codec, envelope, &block.head(record, 1), bytes);
            });
        }
        run.end::<L>()
    }

    /// The same frames in another layout.
    fn copy<L: DeliverLayout>(&self, codec: Codec) -> BlockFrames {
        let mut run = DeliverRun::new(self.bytes.len() + self.spans.len() * 10, self.spans.len());
        for span in &self.spans {
            let frame = self.bytes.get(span.frame()).unwrap_or_default();
            run.add::<L>(codec, span.envelope_bytes, |bytes| bytes.extend_from_slice(frame));
        }
        run.end::<L>()
    }

    /// Messages that follow each other, in one piece.
    fn run(&self, indexes: Range<usize>) -> Bytes {
        let before = indexes.start.checked_sub(1).and_then(|before| self.spans.get(before));
        let start = before.map_or(0, |span| span.end as usize);
        let last = indexes.end.checked_sub(1).filter(|_| !indexes.is_empty());
        let last = last.and_then(|last| self.spans.get(last));
        last.map_or_else(Bytes::new, |last| self.bytes.slice(start..last.end as usize))
    }

    fn envelope(&self, index: usize, codec: Codec) -> Bytes {
        let Some(span) = self.spans.get(index) else { return Bytes::new() };
        // `{"deliver":` in JSON, a one-byte map head and an eight-byte key in the others.
        let head = if codec == Codec::Json { 11 } else { 9 };
        let start = span.start as usize + head;
        self.bytes.slice(start..start + span.envelope_bytes as usize)
    }
}

/// Frames that are put behind each other.
struct DeliverRun {
    bytes: Vec<u8>,
    spans: Vec<FrameSpan>,
}

impl DeliverRun {
    fn new(bytes: usize, frames: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), spans: Vec::with_capacity(frames) }
    }

    fn add<L: DeliverLayout>(
        &mut self,
        codec: Codec,
        envelope_bytes: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        // A layout may move the frame once it knows the length for the head. So the place of the
        // frame is counted back from its end.
        let mut frame_bytes = 0;
        L::write(codec, &mut self.bytes, |bytes| {
            let before = bytes.len();
            write(bytes);
            frame_bytes = (bytes.len() - before) as u32;
        });
        let end = self.bytes.len() as u32;
        debug_assert!(frame_bytes <= end, "a layout has taken bytes away");
        self.spans.push(FrameSpan { start: end - frame_bytes, end, envelope_bytes });
    }

    fn end<L: DeliverLayout>(self) -> BlockFrames {
        let (bytes, spans) = (self.bytes.into(), self.spans.into());
        BlockFrames { layout: TypeId::of::<L>(), bytes, spans }
    }
}

thread_local! {
    static ENCODED: Cell<u64> = const { Cell::new(0) };
}

/// Messages that this thread has put into frames since it was last asked, for the metrics.
pub fn take_encoded() -> u64 {
    ENCODED.with(|count| count.replace(0))
}

/// Translates a stored message. The hub validated it when it was enqueued, so this succeeds. If it
/// ever failed, readers of the other codec would see `null` and the log would say why. Their stream
/// would not end.
fn translate(
    scratch: &mut Transcoder,
    own: Codec,
    record: &BlockRecord,
    codec: Codec,
    out: &mut Vec<u8>,
) {
    if let Err(error) = scratch.transcode(own, &record.body, codec, out) {
        tracing::error!(offset = record.offset, %error, "a stored message cannot be translated");
        out.clear();
        DatumWriter::new(codec, out).null();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length before each frame, of as many bytes as it takes.
    struct LengthHeads;

    impl DeliverLayout for LengthHeads {
        fn write(_: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
            let mut frame = Vec::new();
            write(&mut frame);
            out.extend_from_slice(frame.len().to_string().as_bytes());
            out.extend_from_slice(&frame);
        }
    }

    /// A mark before each frame.
    struct MarkHeads;

    impl DeliverLayout for MarkHeads {
        fn write(_: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
            out.push(b'#');
            write(out);
        }
    }

    fn block(bodies: &[&str]) -> StreamBlock {
        let records = bodies.iter().zip(0..).map(|(body, offset)| BlockRecord {
            offset,
            time_ms: 7,
            content: EnvelopeContent::Open(Codec::Json),
            id: Bytes::from(format!("m{offset}")),
            body: Bytes::copy_from_slice(body.as_bytes()),
        });
        StreamBlock::new("a/b".parse().unwrap(), 5, 0, records.collect())
    }

    #[test]
    fn a_block_is_encoded_once_per_codec() {
        take_encoded();
        let block = block(&[r#"{"id":"m0"}"#]);
        for _ in 0..100 {
            let json = block.frame(0, Codec::Json);
            let expected = concat!(
                r#"{"deliver":{"id":"m0"},"stream":"a/b","offset":0,"generation":5,"#,
                r#""attempt":1,"storedMs":7}"#
            );
            assert_eq!(json, expected);
            block.frame(0, Codec::MsgPack);
            block.frame(0, Codec::Cbor);
            block.messages::<LengthHeads>(0..1, Codec::Cbor);
            block.messages::<MarkHeads>(0..1, Codec::Cbor);
        }
        assert_eq!(take_encoded(), 3, "each transport has a copy of what is encoded");
        for codec in Codec::AT_REST {
            let value = sealane_codec::decode(codec, &block.envelope(0, codec)).unwrap();
            assert_eq!(value.field("id").unwrap().as_text(), Some("m0"));
        }
    }

    fn messages_follow<L: DeliverLayout>(block: &StreamBlock, codec: Codec) {
        let mut each = vec![Vec::new()];
        for index in 0..3 {
            let (mut message, frame) = (Vec::new(), block.frame(index, codec));
            L::write(codec, &mut message, |out| out.extend_from_slice(&frame));
            assert_eq!(block.messages::<L>(index..index + 1, codec), message, "{index}");
            each.push(message);
        }
        assert_eq!(block.messages::<L>(0..3, codec), each.concat());
        assert_eq!(block.messages::<L>(1..3, codec), each[2..].concat());
        let is_empty = |indexes| block.messages::<L>(indexes, codec).is_empty();
        assert!(is_empty(1..1) && is_empty(2..9), "what is not there is nothing, and no failure");
    }

    #[test]
    fn messages_that_follow_each_other_are_one_piece_of_what_all_are_sent() {
        let long = format!(r#"{{"id":"m1","text":"{}"}}"#, "x".repeat(70_000));
        for codec in Codec::AT_REST {
            let block = block(&[r#"{"id":"m0"}"#, &long, r#"{"id":"m2"}"#]);
            messages_follow::<LengthHeads>(&block, codec);
            messages_follow::<MarkHeads>(&block, codec);
            messages_follow::<BareLayout>(&block, codec);
            let place = |indexes| block.messages::<LengthHeads>(indexes, codec).as_ptr();
            assert_eq!(place(0..3), place(0..1), "shared by all who read it");
            let place = |indexes| block.messages::<MarkHeads>(indexes, codec).as_ptr();
            assert_eq!(place(0..3), place(0..1), "also by readers on the second transport");
        }
    }
}
