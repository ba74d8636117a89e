//! Captures of packets: pcap and pcapng, as tcpdump and tshark write them.
//!
//! The formats are those of the drafts `draft-ietf-opsawg-pcap` and `draft-ietf-opsawg-pcapng`.
//! Every length is checked before it is used, and memory is taken as bytes come.

use std::io::{BufRead, Read};

use super::capture::CaptureError;
use crate::limits::MAX_INSPECT_RECORD_BYTES;

mod blocks;
mod records;

use blocks::PcapBlocks;
use records::PcapRecords;

/// A packet as it was captured.
#[derive(Debug)]
pub(super) struct PcapRecord {
    /// From 1.
    pub(super) number: u64,
    /// Where its record begins.
    pub(super) offset: u64,
    pub(super) time_ms: Option<u64>,
    /// The kind of the packet's first header: a number of the registry of link types.
    pub(super) link_type: u32,
    pub(super) bytes: Vec<u8>,
}

/// A capture of packets, read one by one.
pub(super) struct PcapCapture<R> {
    bytes: PcapBytes<R>,
    format: PcapFormat,
    packets: u64,
}

enum PcapFormat {
    Pcap(PcapRecords),
    PcapNg(PcapBlocks),
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PcapByteOrder {
    Little,
    Big,
}

impl<R: BufRead> PcapCapture<R> {
    /// Whether these are the first bytes of a capture.
    pub(super) fn is_begun_by(start: &[u8]) -> bool {
        let start = start.first_chunk::<4>();
        start.is_some_and(|mark| *mark == blocks::MARK || PcapRecords::order(*mark).is_some())
    }

    /// Reads what stands before the first packet.
    pub(super) fn open(source: R) -> Result<Self, CaptureError> {
        let mut bytes = PcapBytes { source, offset: 0 };
        let mark = bytes.array("the header of the capture")?;
        let format = if mark == blocks::MARK {
            PcapFormat::PcapNg(PcapBlocks::open(&mut bytes)?)
        } else {
            PcapFormat::Pcap(PcapRecords::open(mark, &mut bytes)?)
        };
        Ok(Self { bytes, format, packets: 0 })
    }

    /// The next packet, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<PcapRecord>, CaptureError> {
        let number = self.packets + 1;
        let next = match &mut self.format {
            PcapFormat::Pcap(records) => records.next(&mut self.bytes, number),
            PcapFormat::PcapNg(blocks) => blocks.next(&mut self.bytes, number),
        };
        if let Ok(Some(_)) = next {
            self.packets = number;
        }
        next
    }
}

/// A source that knows how far it was read.
struct PcapBytes<R> {
    source: R,
    offset: u64,
}

impl<R: BufRead> PcapBytes<R> {
    fn is_at_end(&mut self) -> Result<bool, CaptureError> {
        Ok(self.source.fill_buf()?.is_empty())
    }

    fn array<const N: usize>(&mut self, within: &'static str) -> Result<[u8; N], CaptureError> {
        let ends = |offset| CaptureError::Ends { offset, within };
        let bytes = self.vec(N, within)?;
        bytes.try_into().map_err(|_| ends(self.offset))
    }

    fn vec(&mut self, len: usize, within: &'static str) -> Result<Vec<u8>, CaptureError> {
        let mut bytes = Vec::new();
        let read = self.source.by_ref().take(len as u64).read_to_end(&mut bytes)?;
        self.offset += read as u64;
        if read < len {
            return Err(CaptureError::Ends { offset: self.offset, within });
        }
        Ok(bytes)
    }

    fn u32(&mut self, order: PcapByteOrder, within: &'static str) -> Result<u32, CaptureError> {
        Ok(order.u32(self.array(within)?))
    }
}

impl PcapByteOrder {
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            PcapByteOrder::Little => u16::from_le_bytes(bytes),
            PcapByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            PcapByteOrder::Little => u32::from_le_bytes(bytes),
            PcapByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// A length that no capture has.
fn bounded(len: u32, offset: u64) -> Result<usize, CaptureError> {
    let what = "a length of more than 16 MiB";
    let len = usize::try_from(len).ok().filter(|len| *len <= MAX_INSPECT_RECORD_BYTES);
    len.ok_or(CaptureError::Damaged { offset, what })
}
