//! The newer format: blocks in sections, each with its interfaces.

use std::io::BufRead;

use super::{PcapByteOrder, PcapBytes, PcapRecord, bounded};
use crate::inspect::capture::CaptureError;

/// The type of a block that begins a section; it reads the same in both orders.
pub(super) const MARK: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The section that is being read.
pub(super) struct PcapBlocks {
    order: PcapByteOrder,
    interfaces: Vec<PcapInterface>,
}

struct PcapInterface {
    link_type: u32,
    /// Bytes of a packet that are kept, 0 for all.
    kept_bytes: usize,
    /// Parts of a second; none if there are too many to count.
    per_second: Option<u128>,
    /// Seconds to add to every time.
    offset_s: i64,
}

impl PcapBlocks {
    /// Reads the block that begins the capture, behind its type.
    pub(super) fn open<R: BufRead>(bytes: &mut PcapBytes<R>) -> Result<Self, CaptureError> {
        let mut blocks = Self { order: PcapByteOrder::Little, interfaces: Vec::new() };
        blocks.section(bytes)?;
        Ok(blocks)
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        bytes: &mut PcapBytes<R>,
        number: u64,
    ) -> Result<Option<PcapRecord>, CaptureError> {
        while !bytes.is_at_end()? {
            let offset = bytes.offset;
            let kind: [u8; 4] = bytes.array(HEAD)?;
            if kind == MARK {
                self.section(bytes)?;
                continue;
            }
            let len = bytes.u32(self.order, HEAD)?;
            let body = self.body(bytes, len, offset, BLOCK_BYTES_MIN)?;
            let damaged = |what| CaptureError::Damaged { offset, what };
            let packet = match self.order.u32(kind) {
                1 => {
                    self.interfaces.push(self.interface(&body).ok_or(damaged(SHORT))?);
                    continue;
                }
                2 => self.old_packet(&body),
                3 => self.simple_packet(&body),
                6 => self.packet(&body),
                _ => continue,
            };
            let (interface, time, packet) = packet.ok_or(damaged(SHORT))?;
            let interface = self.interfaces.get(interface);
            let interface = interface.ok_or(damaged("a packet of an unknown interface"))?;
            let (link_type, bytes) = (interface.link_type, packet.to_vec());
            let time_ms = time.and_then(|time| interface.time_ms(time));
            return Ok(Some(PcapRecord { number, offset, time_ms, link_type, bytes }));
        }
        Ok(None)
    }

    /// Reads the block that begins a section, behind its type.
    fn section<R: BufRead>(&mut self, bytes: &mut PcapBytes<R>) -> Result<(), CaptureError> {
        let offset = bytes.offset.saturating_sub(4);
        let len: [u8; 4] = bytes.array(HEAD)?;
        self.order = match bytes.array(HEAD)? {
            [0x4d, 0x3c, 0x2b, 0x1a] => PcapByteOrder::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => PcapByteOrder::Big,
            _ => {
                let what = "a section of neither byte order";
                return Err(CaptureError::Damaged { offset, what });
            }
        };
        self.interfaces.clear();
        self.body(bytes, self.order.u32(len), offset, BLOCK_BYTES_MIN + 4)?;
        Ok(())
    }

    /// The rest of a block of which `behind` bytes are no body that is still to be read.
    fn body<R: BufRead>(
        &self,
        bytes: &mut PcapBytes<R>,
        len: u32,
        offset: u64,
        behind: usize,
    ) -> Result<Vec<u8>, CaptureError> {
        let damaged = |what| CaptureError::Damaged { offset, what };
        let rest = bounded(len, offset)?.checked_sub(behind).filter(|_| len.is_multiple_of(4));
        let body = bytes.vec(rest.ok_or(damaged("a block of an impossible length"))?, "a block")?;
        if bytes.u32(self.order, "a block")? != len {
            return Err(damaged("a block whose two lengths differ"));
        }
        Ok(body)
    }

    fn interface(&self, body: &[u8]) -> Option<PcapInterface> {
        let (link_type, rest) = body.split_first_chunk()?;
        let (_, rest) = rest.split_first_chunk::<2>()?;
        let (kept_bytes, mut options) = rest.split_first_chunk()?;
        let mut interface = PcapInterface {
            link_type: self.order.u16(*link_type).into(),
            kept_bytes: usize::try_from(self.order.u32(*kept_bytes)).ok()?,
            per_second: Some(1_000_000),
            offset_s: 0,
        };
        while let Some((code, value, rest)) = self.option(options) {
            match (code, value) {
                (9, [power]) => interface.per_second = parts_per_second(*power),
                (14, value) => {
                    let seconds: [u8; 8] = value.try_into().ok()?;
                    interface.offset_s = match self.order {
                        PcapByteOrder::Little => i64::from_le_bytes(seconds),
                        PcapByteOrder::Big => i64::from_be_bytes(seconds),
                    };
                }
                _ => {}
            }
            options = rest;
        }
        Some(interface)
    }

    /// Code and value of the first option, and what is behind it.
    fn option<'a>(&self, options: &'a [u8]) -> Option<(u16, &'a [u8], &'a [u8])> {
        let (code, rest) = options.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (code, len) = (self.order.u16(*code), usize::from(self.order.u16(*len)));
        let (value, rest) = rest.split_at_checked(len)?;
        (code != 0).then_some((code, value, rest.get(padding(len)..).unwrap_or_default()))
    }

    fn packet<'a>(&self, body: &'a [u8]) -> Option<PcapPacket<'a>> {
        let (interface, rest) = body.split_first_chunk()?;
        let interface = usize::try_from(self.order.u32(*interface)).ok()?;
        self.timed(interface, rest)
    }

    /// A block that is written no more: its interface has two bytes, and two count losses.
    fn old_packet<'a>(&self, body: &'a [u8]) -> Option<PcapPacket<'a>> {
        let (interface, rest) = body.split_first_chunk()?;
        let (_, rest) = rest.split_first_chunk::<2>()?;
        self.timed(self.order.u16(*interface).into(), rest)
    }

    fn timed<'a>(&self, interface: usize, rest: &'a [u8]) -> Option<PcapPacket<'a>> {
        let (high, rest) = rest.split_first_chunk()?;
        let (low, rest) = rest.split_first_chunk()?;
        let (captured, rest) = rest.split_first_chunk()?;
        let (_whole, rest) = rest.split_first_chunk::<4>()?;
        let [high, low] = [high, low].map(|part| u64::from(self.order.u32(*part)));
        let captured = usize::try_from(self.order.u32(*captured)).ok()?;
        Some((interface, Some(high << 32 | low), rest.get(..captured)?))
    }

    fn simple_packet<'a>(&self, body: &'a [u8]) -> Option<PcapPacket<'a>> {
        let (whole, rest) = body.split_first_chunk()?;
        let whole = usize::try_from(self.order.u32(*whole)).ok()?;
        let kept = self.interfaces.first().map_or(0, |interface| interface.kept_bytes);
        let captured = if kept == 0 { whole } else { whole.min(kept) };
        Some((0, None, rest.get(..captured)?))
    }
}

/// Interface, time in its parts of a second, bytes.
type PcapPacket<'a> = (usize, Option<u64>, &'a [u8]);

impl PcapInterface {
    fn time_ms(&self, time: u64) -> Option<u64> {
        let ms = u128::from(time).checked_mul(1000)?.checked_div(self.per_second?)?;
        i64::try_from(ms).ok()?.checked_add(self.offset_s.checked_mul(1000)?)?.try_into().ok()
    }
}

/// A negative power of ten, or with the highest bit set, of two.
fn parts_per_second(power: u8) -> Option<u128> {
    let base: u128 = if power & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(u32::from(power & 0x7f))
}

/// The bytes that fill a length up to whole words.
fn padding(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

const HEAD: &str = "the header of a block";
const SHORT: &str = "a block too short for what it says";
/// Type, and the length twice.
const BLOCK_BYTES_MIN: usize = 12;
