//! The packets that an interface gives at once: one packet, or a run of segments that share their
//! headers. Each segment is written as the packet that it stands for, where its frame is made.

use crate::limits::MAX_PACKET_BYTES;
use crate::offload::{
    IPV6_HEADER_BYTES, MARK_BYTES, NEEDS_CHECKSUM, OffloadTransport, PUSH, PacketIp, checksum,
    copy_into, pseudo_header, put_u16, u16_at, u32_at,
};
use crate::tap::ETHERNET_BYTES;

/// A packet, or segments of one, as the kernel gave them. It allocates when it is made and never
/// again.
#[derive(Debug)]
pub struct PacketBurst {
    /// The kernel's mark, and the packet.
    bytes: Box<[u8]>,
    /// Where the packet begins.
    start: usize,
    packet_bytes: usize,
    shape: BurstShape,
}

/// How a burst is cut into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BurstShape {
    /// No packet, or none that can be read.
    Nothing,
    /// One packet; where its checksum starts and stands, if it has to be filled in.
    One(Option<UnsummedChecksum>),
    /// Segments of a packet.
    Run(SegmentRun),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnsummedChecksum {
    start: usize,
    field: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SegmentRun {
    ip: PacketIp,
    transport: OffloadTransport,
    /// Where the header of TCP or UDP begins.
    transport_at: usize,
    /// The bytes of all headers.
    headers: usize,
    /// The payload of each segment but the last.
    segment_bytes: usize,
}

/// TCP's flags (RFC 9293 §3.1, RFC 3168 §6.1).
const FIN: u8 = 0x01;
const WINDOW_REDUCED: u8 = 0x80;

impl PacketBurst {
    /// An empty one.
    pub fn new() -> Self {
        let bytes = vec![0; MARK_BYTES + ETHERNET_BYTES + MAX_PACKET_BYTES].into_boxed_slice();
        Self { bytes, start: MARK_BYTES, packet_bytes: 0, shape: BurstShape::Nothing }
    }

    /// Where a packet with the kernel's mark is read to.
    pub(crate) fn room_with_mark(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Where a packet is read to that comes without a mark.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(MARK_BYTES..).unwrap_or_default()
    }

    /// Says how much was read, the mark included.
    pub(crate) fn filled_with_mark(&mut self, bytes: usize) {
        self.start = MARK_BYTES;
        // A read can give fewer bytes than a mark when the interface goes down.
        self.packet_bytes = bytes.saturating_sub(MARK_BYTES).min(MAX_PACKET_BYTES);
        self.shape = self.parse().unwrap_or(BurstShape::Nothing);
    }

    /// Says how much was read without a mark, and how much of it is a header before the packet.
    pub(crate) fn filled(&mut self, bytes: usize, header_bytes: usize) {
        self.start = MARK_BYTES + header_bytes;
        self.packet_bytes = bytes.saturating_sub(header_bytes).min(MAX_PACKET_BYTES);
        self.shape =
            if self.packet_bytes > 0 { BurstShape::One(None) } else { BurstShape::Nothing };
    }

    /// The packet with the headers of all.
    pub fn packet(&self) -> &[u8] {
        self.bytes.get(self.start..self.start + self.packet_bytes).unwrap_or_default()
    }

    /// How many packets it stands for; none if it is not to be read.
    pub fn count(&self) -> usize {
        match self.shape {
            BurstShape::Nothing => 0,
            BurstShape::One(_) => 1,
            BurstShape::Run(run) => {
                let payload = self.packet_bytes.saturating_sub(run.headers);
                payload.div_ceil(run.segment_bytes.max(1)).max(1)
            }
        }
    }

    /// The bytes of one of its packets.
    pub fn bytes_of(&self, index: usize) -> usize {
        match self.shape {
            BurstShape::Nothing => 0,
            BurstShape::One(_) => self.packet_bytes,
            BurstShape::Run(run) => run.headers + self.payload(&run, index).len(),
        }
    }

    /// Writes one of its packets to a place of just its length.
    pub fn write(&self, index: usize, out: &mut [u8]) {
        match self.shape {
            BurstShape::Nothing => {}
            BurstShape::One(unsummed) => {
                copy_into(out, 0, self.packet());
                // The field already holds the sum of the pseudo header: the kernel leaves the rest
                // to the card, and this is the card.
                if let Some(UnsummedChecksum { start, field }) = unsummed {
                    let sum = !checksum(out.get(start..).unwrap_or_default(), 0);
                    put_u16(out, field, if sum == 0 { 0xffff } else { sum });
                }
            }
            BurstShape::Run(run) => {
                let payload = self.payload(&run, index);
                copy_into(out, 0, self.packet().get(..run.headers).unwrap_or_default());
                copy_into(out, run.headers, payload);
                run.fit(index, index + 1 == self.count(), out);
            }
        }
    }

    fn payload(&self, run: &SegmentRun, index: usize) -> &[u8] {
        let payload = self.packet().get(run.headers..).unwrap_or_default();
        let start = (index * run.segment_bytes).min(payload.len());
        let end = (start + run.segment_bytes).min(payload.len());
        payload.get(start..end).unwrap_or_default()
    }

    fn parse(&self) -> Option<BurstShape> {
        let mark = self.bytes.first_chunk::<MARK_BYTES>()?;
        let number = |at: usize| {
            let bytes = mark.get(at..at + 2)?.try_into().ok()?;
            Some(usize::from(u16::from_ne_bytes(bytes)))
        };
        let [flags, kind, ..] = *mark;
        let (segment_bytes, start, offset) = (number(4)?, number(6)?, number(8)?);
        let packet = self.packet();
        // The mark is the kernel's, and is checked all the same: a number beyond the packet must
        // not become an index.
        let Some(transport) = OffloadTransport::of_mark(kind) else {
            let field = start + offset;
            let needs = flags & NEEDS_CHECKSUM != 0;
            // The offsets come from outside this process. They are checked once here, so that
            // `write` need not.
            let is_within = !packet.is_empty() && (!needs || field + 2 <= packet.len());
            let unsummed = needs.then_some(UnsummedChecksum { start, field });
            return (kind == 0 && is_within).then_some(BurstShape::One(unsummed));
        };
        let ip = PacketIp::of(packet)?;
        let header_bytes = match transport {
            // The kernel's own header length is a hint (VIRTIO 1.2 §5.1.6). TCP says its length
            // itself.
            OffloadTransport::Tcp => usize::from(packet.get(start + 12)? >> 4) * 4,
            OffloadTransport::Udp => 8,
        };
        let headers = start + header_bytes;
        let is_right = start >= ip.header_bytes()
            && header_bytes >= transport.header_bytes()
            && headers <= packet.len()
            && segment_bytes > 0;
        let run = SegmentRun { ip, transport, transport_at: start, headers, segment_bytes };
        is_right.then_some(BurstShape::Run(run))
    }
}

impl SegmentRun {
    /// Makes the headers of all those of one segment: lengths, numbers, flags and checksums.
    fn fit(&self, index: usize, is_last: bool, out: &mut [u8]) {
        let at = self.transport_at;
        match self.ip {
            PacketIp::V4 { header_bytes } => {
                put_u16(out, 2, out.len() as u16);
                // Segments that are split on their way are put together by this id (RFC 791).
                let id = u16_at(out, 4).unwrap_or(0).wrapping_add(index as u16);
                put_u16(out, 4, id);
                // The checksum is made over a header whose own field is zero (RFC 791 §3.1).
                put_u16(out, 10, 0);
                let sum = !checksum(out.get(..header_bytes).unwrap_or_default(), 0);
                put_u16(out, 10, sum);
            }
            PacketIp::V6 => {
                put_u16(out, 4, out.len().saturating_sub(IPV6_HEADER_BYTES) as u16);
            }
        }
        let length = out.len().saturating_sub(at);
        match self.transport {
            OffloadTransport::Tcp => {
                let step = (index * self.segment_bytes) as u32;
                let sequence = u32_at(out, at + 4).unwrap_or(0).wrapping_add(step);
                copy_into(out, at + 4, &sequence.to_be_bytes());
                if let Some(flags) = out.get_mut(at + 13) {
                    // Only the last segment ends the stream, and a reduced window is told once.
                    *flags &= if is_last { 0xff } else { !(FIN | PUSH) };
                    // RFC 3168 §6.1.2: the sender tells once that it has reduced its window.
                    *flags &= if index == 0 { 0xff } else { !WINDOW_REDUCED };
                }
            }
            OffloadTransport::Udp => put_u16(out, at + 4, length as u16),
        }
        let field = at + self.transport.checksum_at();
        put_u16(out, field, 0);
        let before = pseudo_header(self.ip, self.transport, out, length);
        let sum = !checksum(out.get(at..).unwrap_or_default(), before);
        // Of UDP, zeros say that there is none (RFC 768).
        let is_none = sum == 0 && self.transport == OffloadTransport::Udp;
        put_u16(out, field, if is_none { 0xffff } else { sum });
    }
}

impl Default for PacketBurst {
    fn default() -> Self {
        Self::new()
    }
}
