//! Data one behind the other: where each ends, without holding more than one.

use std::io::{self, Read};

use crate::limits::MAX_BENCH_MESSAGE_BYTES;
use sealane_codec::Codec;
use sealane_codec::limits::MAX_DEPTH;
use sealane_frame::{FrameView, HEADER_BYTES, Header};
use sealane_seal::Class;

/// The items of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) enum SequenceItem {
    Datum(Codec),
    Frame,
}

/// How far one item goes in the bytes that are there.
#[derive(Debug, PartialEq)]
enum ItemEnd {
    At(usize),
    /// Not known before there are more bytes.
    More,
    /// This is none, and where the next one begins nobody knows.
    Broken(&'static str),
}

/// The items of a stream of bytes.
pub(super) struct SequenceItems<R> {
    input: R,
    item: SequenceItem,
    buffer: Vec<u8>,
    /// The bytes of the item that was given last.
    given: usize,
    ended: bool,
}

impl<R: Read> SequenceItems<R> {
    pub(super) fn new(input: R, item: SequenceItem) -> Self {
        Self { input, item, buffer: vec![], given: 0, ended: false }
    }

    /// The bytes of the next item, or why there are no further ones.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<&[u8], &'static str>>> {
        self.buffer.drain(..self.given);
        self.given = 0;
        loop {
            let end = match self.buffer.is_empty() {
                true => ItemEnd::More,
                false => end(self.item, &self.buffer),
            };
            match end {
                ItemEnd::At(length) => {
                    self.given = length;
                    return Ok(Some(Ok(&self.buffer[..length])));
                }
                ItemEnd::Broken(why) => return Ok(Some(Err(why))),
                ItemEnd::More if self.buffer.len() > 2 * MAX_BENCH_MESSAGE_BYTES => {
                    return Ok(Some(Err("is longer than a frame's body")));
                }
                ItemEnd::More if self.ended && self.buffer.is_empty() => return Ok(None),
                ItemEnd::More if self.ended => return Ok(Some(Err("ends in the middle"))),
                ItemEnd::More => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        // Twice as much each time, so that a long item is not looked at for each of its parts.
        let wanted = self.buffer.len().max(16 << 10) as u64;
        let read = self.input.by_ref().take(wanted).read_to_end(&mut self.buffer)?;
        self.ended = (read as u64) < wanted;
        Ok(())
    }
}

fn end(item: SequenceItem, bytes: &[u8]) -> ItemEnd {
    match item {
        SequenceItem::Datum(Codec::Cbor) => datum(bytes, cbor),
        SequenceItem::Datum(_) => datum(bytes, msgpack),
        SequenceItem::Frame => frame(bytes).map_or_else(
            || match bytes.len() {
                0..HEADER_BYTES => ItemEnd::More,
                length if length < frame_bytes_min(bytes) => ItemEnd::More,
                _ => ItemEnd::Broken("is no frame in the full form"),
            },
            ItemEnd::At,
        ),
    }
}

/// The least that a frame with this header has, as far as the header is there.
fn frame_bytes_min(bytes: &[u8]) -> usize {
    let rest = |header: &Header| {
        // The tail of class A counts the longest SFrame header, which is shorter in most frames.
        let is_clear = header.class() == Class::Authenticated;
        let class = if is_clear { Class::Group } else { header.class() };
        header.body_bytes() + class.tail_bytes()
    };
    HEADER_BYTES + FrameView::peek(bytes).map_or(0, rest) + 1
}

/// The length of the frame that these bytes begin with. Its SFrame header takes 1 to 9 bytes.
pub(super) fn frame(bytes: &[u8]) -> Option<usize> {
    let least = frame_bytes_min(bytes);
    (least..least + 9)
        .find(|length| bytes.get(..*length).is_some_and(|frame| FrameView::parse(frame).is_ok()))
}

/// The announcement of a head.
enum SequenceHead {
    /// So many bytes of its own.
    Bytes(u64),
    /// So many further items within it.
    Items(u64),
    /// Items within it up to a break.
    Open,
    Break,
}

/// The bytes of a head, and what it announces.
type HeadResult = Result<(usize, SequenceHead), ItemEnd>;

/// Walks the heads of one datum. What is between them is for the decoder to judge.
fn datum(bytes: &[u8], head: fn(&[u8]) -> HeadResult) -> ItemEnd {
    // Items that are left on each level; none: up to a break.
    let mut levels = vec![Some(1_u64)];
    let mut at = 0;
    while let Some(left) = levels.last_mut() {
        match left {
            Some(0) => {
                levels.pop();
                continue;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let (head_bytes, found) = match head(bytes.get(at..).unwrap_or_default()) {
            Ok(found) => found,
            Err(end) => return end,
        };
        at += head_bytes;
        match found {
            SequenceHead::Bytes(length) if length > MAX_BENCH_MESSAGE_BYTES as u64 => {
                return ItemEnd::Broken("is longer than a frame's body");
            }
            SequenceHead::Bytes(length) => at += length as usize,
            SequenceHead::Items(count) => levels.push(Some(count)),
            SequenceHead::Open => levels.push(None),
            SequenceHead::Break if levels.last() == Some(&None) => drop(levels.pop()),
            SequenceHead::Break => return ItemEnd::Broken("has a break where none can be"),
        }
        if levels.len() > MAX_DEPTH + 2 {
            return ItemEnd::Broken("is nested too deeply");
        }
        if at > bytes.len() {
            return ItemEnd::More;
        }
    }
    ItemEnd::At(at)
}

/// RFC 8949, section 3.
fn cbor(bytes: &[u8]) -> HeadResult {
    let first = *bytes.first().ok_or(ItemEnd::More)?;
    let (major, info) = (first >> 5, first & 31);
    let (size, argument) = match info {
        0..=23 => (1, u64::from(info)),
        24..=27 => number(bytes, 1 << (info - 24))?,
        31 => (1, 0),
        _ => return Err(ItemEnd::Broken("begins with a byte that CBOR has not assigned")),
    };
    let head = match (major, info) {
        (7, 31) => SequenceHead::Break,
        (2..=5, 31) => SequenceHead::Open,
        (2 | 3, _) => SequenceHead::Bytes(argument),
        (4, _) => SequenceHead::Items(argument),
        (5, _) => SequenceHead::Items(argument.saturating_mul(2)),
        (6, _) => SequenceHead::Items(1),
        _ => SequenceHead::Bytes(0),
    };
    Ok((size, head))
}

/// The specification of MessagePack, section *Formats*.
fn msgpack(bytes: &[u8]) -> HeadResult {
    let first = *bytes.first().ok_or(ItemEnd::More)?;
    let counted = |width| number(bytes, width);
    Ok(match first {
        0x80..=0x8f => (1, SequenceHead::Items(u64::from(first & 15) * 2)),
        0x90..=0x9f => (1, SequenceHead::Items(u64::from(first & 15))),
        0xa0..=0xbf => (1, SequenceHead::Bytes(u64::from(first & 31))),
        0xc1 => return Err(ItemEnd::Broken("begins with a byte that MessagePack never uses")),
        0xc4..=0xc6 => {
            counted(1 << (first - 0xc4)).map(|(size, n)| (size, SequenceHead::Bytes(n)))?
        }
        0xc7..=0xc9 => {
            counted(1 << (first - 0xc7)).map(|(size, n)| (size, SequenceHead::Bytes(n + 1)))?
        }
        0xca | 0xce | 0xd2 => (1, SequenceHead::Bytes(4)),
        0xcb | 0xcf | 0xd3 => (1, SequenceHead::Bytes(8)),
        0xcc | 0xd0 => (1, SequenceHead::Bytes(1)),
        0xcd | 0xd1 => (1, SequenceHead::Bytes(2)),
        0xd4..=0xd8 => (1, SequenceHead::Bytes((1 << (first - 0xd4)) + 1)),
        0xd9..=0xdb => {
            counted(1 << (first - 0xd9)).map(|(size, n)| (size, SequenceHead::Bytes(n)))?
        }
        0xdc | 0xdd => {
            counted(2 << (first - 0xdc)).map(|(size, n)| (size, SequenceHead::Items(n)))?
        }
        0xde | 0xdf => {
            counted(2 << (first - 0xde)).map(|(size, n)| (size, SequenceHead::Items(n * 2)))?
        }
        _ => (1, SequenceHead::Bytes(0)),
    })
}

/// A head of 1 + `width` bytes, and the number in it.
fn number(bytes: &[u8], width: usize) -> Result<(usize, u64), ItemEnd> {
    let digits = bytes.get(1..1 + width).ok_or(ItemEnd::More)?;
    Ok((1 + width, digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
}

#[cfg(test)]
mod tests {
    use sealane_codec::encode;
    use sealane_message::Value;

    use super::*;

    fn values() -> Vec<Value> {
        let texts = [0, 1, 31, 32, 255, 256, 70_000].map(|n| Value::Text("x".repeat(n)));
        let bytes = [0, 1, 255, 256, 70_000].map(|n| Value::Bytes(vec![7; n]));
        let numbers = [0_i64, 23, 24, -1, -33, 255, 256, 65_536, i64::MIN, i64::MAX];
        let mut all: Vec<Value> = texts.into_iter().chain(bytes).collect();
        all.extend(numbers.map(Value::from));
        all.extend([Value::Null, Value::Bool(true), Value::F64(0.1), Value::F64(1.5)]);
        all.push(Value::Array(vec![Value::Array(all.clone()), Value::Null]));
        let fields = (0..40_i64).map(|n| (format!("key {n}"), Value::Array(vec![Value::from(n)])));
        all.push(Value::Map(fields.collect::<Vec<(String, Value)>>()));
        all
    }

    #[test]
    fn every_datum_ends_where_it_ends() {
        for codec in [Codec::Cbor, Codec::MsgPack] {
            let mut all = vec![];
            let mut lengths = vec![];
            for value in values() {
                let before = all.len();
                encode(codec, &value, &mut all);
                lengths.push(all.len() - before);
            }
            let mut items = SequenceItems::new(&*all, SequenceItem::Datum(codec));
            for length in lengths {
                let item = items.next().unwrap().unwrap().unwrap();
                assert_eq!(item.len(), length, "{codec:?}");
            }
            assert!(items.next().unwrap().is_none());
        }
    }

    #[test]
    fn open_lists_of_cbor_end_at_their_break() {
        let bytes = [0x9f, 0x01, 0xbf, 0x61, b'a', 0x02, 0xff, 0xff, 0x05];
        assert_eq!(datum(&bytes, cbor), ItemEnd::At(8));
        assert_eq!(datum(&[0xff], cbor), ItemEnd::Broken("has a break where none can be"));
    }

    #[test]
    fn what_ends_in_the_middle_is_said() {
        let mut items = SequenceItems::new(&[0x82_u8, 0x01][..], SequenceItem::Datum(Codec::Cbor));
        assert_eq!(items.next().unwrap(), Some(Err("ends in the middle")));
        let mut items = SequenceItems::new(&[0xc1_u8][..], SequenceItem::Datum(Codec::MsgPack));
        assert!(items.next().unwrap().unwrap().is_err());
    }
}
