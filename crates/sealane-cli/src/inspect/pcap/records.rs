//! The classic format: a header, then records.

use std::io::BufRead;

use super::{PcapByteOrder, PcapBytes, PcapRecord, bounded};
use crate::inspect::capture::CaptureError;

/// The facts about its records from the header of a capture.
pub(super) struct PcapRecords {
    order: PcapByteOrder,
    /// Parts of a second in a millisecond.
    per_ms: u64,
    link_type: u32,
}

impl PcapRecords {
    /// Order and resolution that the first bytes name.
    pub(super) fn order(mark: [u8; 4]) -> Option<(PcapByteOrder, u64)> {
        const MICROSECONDS: u32 = 0xa1b2_c3d4;
        const NANOSECONDS: u32 = 0xa1b2_3c4d;
        [PcapByteOrder::Little, PcapByteOrder::Big].into_iter().find_map(|order| {
            match order.u32(mark) {
                MICROSECONDS => Some((order, 1_000)),
                NANOSECONDS => Some((order, 1_000_000)),
                _ => None,
            }
        })
    }

    pub(super) fn open<R: BufRead>(
        mark: [u8; 4],
        bytes: &mut PcapBytes<R>,
    ) -> Result<Self, CaptureError> {
        let what = "neither pcap nor pcapng begins so";
        let order = PcapRecords::order(mark).ok_or(CaptureError::Damaged { offset: 0, what });
        let (order, per_ms) = order?;
        let [.., a, b, c, d] = bytes.array::<20>("the header of the capture")?;
        // The upper bits say whether a checksum ends each packet; UDP has its own length.
        let link_type = order.u32([a, b, c, d]) & 0x0fff_ffff;
        Ok(Self { order, per_ms, link_type })
    }

    pub(super) fn next<R: BufRead>(
        &self,
        bytes: &mut PcapBytes<R>,
        number: u64,
    ) -> Result<Option<PcapRecord>, CaptureError> {
        const HEAD: &str = "the header of a packet";
        if bytes.is_at_end()? {
            return Ok(None);
        }
        let offset = bytes.offset;
        let seconds = u64::from(bytes.u32(self.order, HEAD)?);
        let parts = u64::from(bytes.u32(self.order, HEAD)?);
        let captured = bytes.u32(self.order, HEAD)?;
        let _whole = bytes.u32(self.order, HEAD)?;
        let packet = bytes.vec(bounded(captured, offset)?, "a packet")?;
        let time_ms = Some(seconds * 1000 + parts / self.per_ms);
        Ok(Some(PcapRecord { number, offset, time_ms, link_type: self.link_type, bytes: packet }))
    }
}
