//! Packets that an interface is given at once: segments of one connection that follow each other
//! are joined, and the kernel takes them as one packet.

use crate::limits::{MAX_PACKET_BYTES, MAX_UDP_SEGMENTS};
use crate::offload::{
    IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, MARK_BYTES, NEEDS_CHECKSUM, OffloadTransport, PUSH,
    PacketIp, checksum, copy_into, pseudo_header, put_u16, u16_at, u32_at,
};

/// A packet that grows by those that follow it. It allocates when it is made and never again.
#[derive(Debug)]
pub struct SegmentBundle {
    /// The kernel's mark, and the packet.
    bytes: Box<[u8]>,
    packet_bytes: usize,
    /// The segment that may still follow; none if nothing may.
    joint: Option<BundleJoint>,
    /// Segments of UDP are joined too.
    joins_udp: bool,
}

/// The form that the next segment has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BundleJoint {
    segment: BundleSegment,
    /// The number of the next byte of TCP.
    sequence: u32,
    count: usize,
    is_whole: bool,
}

/// A packet that may be joined with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BundleSegment {
    ip: PacketIp,
    transport: OffloadTransport,
    headers: usize,
    payload_bytes: usize,
    /// The sender's application was done with it.
    is_pushed: bool,
}

/// TCP's flags.
const ACK: u8 = 0x10;
/// Do not fragment; the rest of the field tells fragments.
const DO_NOT_FRAGMENT: u16 = 0x4000;

impl SegmentBundle {
    /// An empty one.
    pub fn new(joins_udp: bool) -> Self {
        let bytes = vec![0; MARK_BYTES + MAX_PACKET_BYTES].into_boxed_slice();
        Self { bytes, packet_bytes: 0, joint: None, joins_udp }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.packet_bytes == 0
    }

    /// Takes a packet at its end; gives whether it was one that goes along with those before it.
    pub fn push(&mut self, packet: &[u8]) -> bool {
        if packet.len() > MAX_PACKET_BYTES {
            return false;
        }
        // The first packet is taken whatever it is: one that cannot be joined goes by itself.
        if self.is_empty() {
            // A packet that cannot be joined is still taken. It only goes alone.
            let segment = BundleSegment::parse(packet).filter(|one| self.is_joined(one));
            copy_into(&mut self.bytes, MARK_BYTES, packet);
            self.packet_bytes = packet.len();
            self.joint = segment.map(|segment| BundleJoint {
                segment,
                sequence: segment.next_sequence(packet),
                count: 1,
                is_whole: segment.is_pushed,
            });
            return true;
        }
        self.append(packet).is_some()
    }

    fn is_joined(&self, segment: &BundleSegment) -> bool {
        segment.transport == OffloadTransport::Tcp || self.joins_udp
    }

    /// Joins a packet with those before it, if it is their next segment.
    fn append(&mut self, packet: &[u8]) -> Option<()> {
        // A shorter or pushed segment ends the run: the kernel makes each segment but the last
        // equally long.
        let joint = self.joint.filter(|joint| !joint.is_whole)?;
        let segment = BundleSegment::parse(packet)?;
        let first = joint.segment;
        // The kernel writes the headers of all segments from those of the first. A packet with
        // other headers would not come out as it came.
        let is_alike = (segment.ip, segment.transport, segment.headers)
            == (first.ip, first.transport, first.headers);
        let is_next = match first.transport {
            OffloadTransport::Tcp => segment.sequence(packet) == Some(joint.sequence),
            // UDP has no numbers. Order of arrival is all that there is, and the kernel bounds the
            // count.
            OffloadTransport::Udp => joint.count < MAX_UDP_SEGMENTS,
        };
        let fits = segment.payload_bytes <= first.payload_bytes
            && self.packet_bytes + segment.payload_bytes <= MAX_PACKET_BYTES;
        if !(is_alike && is_next && fits && self.has_same_headers(&joint, packet)) {
            return None;
        }
        let payload = packet.get(segment.headers..)?;
        copy_into(&mut self.bytes, MARK_BYTES + self.packet_bytes, payload);
        self.packet_bytes += payload.len();
        // The reader is woken by the last segment's flag, which stands in the headers of all.
        if segment.is_pushed
            && let Some(flags) = self.packet_mut().get_mut(segment.ip.header_bytes() + 13)
        {
            // The joined packet is pushed if its last segment was, so that the application is woken
            // as before.
            *flags |= PUSH;
        }
        self.joint = Some(BundleJoint {
            sequence: segment.next_sequence(packet),
            count: joint.count + 1,
            // A shorter segment can only be the last: the kernel cuts all others to one length.
            is_whole: segment.is_pushed || segment.payload_bytes < first.payload_bytes,
            ..joint
        });
        Some(())
    }

    /// Whether the headers differ in nothing but what the kernel makes anew for each segment.
    fn has_same_headers(&self, joint: &BundleJoint, packet: &[u8]) -> bool {
        let first = self.packet();
        let same = |from: usize, to: usize| first.get(from..to) == packet.get(from..to);
        let same_ip = match joint.segment.ip {
            PacketIp::V4 { .. } => {
                // A packet that may not be split needs no id (RFC 6864). The kernel counts the ids
                // of all others up, so that only such ids come out as they were.
                let has_free_id = u16_at(first, 6).is_some_and(|word| word & DO_NOT_FRAGMENT != 0);
                let id = u16_at(first, 4).map(|id| id.wrapping_add(joint.count as u16));
                let follows = has_free_id || id == u16_at(packet, 4);
                same(0, 2) && same(6, 10) && same(12, 20) && follows
            }
            PacketIp::V6 => same(0, 4) && same(6, 40),
        };
        let at = joint.segment.ip.header_bytes();
        let flags = |bytes: &[u8]| bytes.get(at + 13).map(|flags| flags & !PUSH);
        same_ip
            && same(at, at + 4)
            && match joint.segment.transport {
                OffloadTransport::Tcp => {
                    same(at + 8, at + 13)
                        && flags(first) == flags(packet)
                        && same(at + 14, at + 16)
                        && same(at + 18, joint.segment.headers)
                }
                OffloadTransport::Udp => true,
            }
    }

    fn packet(&self) -> &[u8] {
        self.bytes.get(MARK_BYTES..MARK_BYTES + self.packet_bytes).unwrap_or_default()
    }

    fn packet_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(MARK_BYTES..MARK_BYTES + self.packet_bytes).unwrap_or_default()
    }

    /// The packet with the kernel's mark before it. The bundle is empty from then on.
    pub fn take(&mut self) -> &[u8] {
        let mut mark = [0; MARK_BYTES];
        // One packet alone goes with a mark of zeros, and keeps the checksum that its sender made.
        if let Some(BundleJoint { segment, count: 2.., .. }) = self.joint.take() {
            let BundleSegment { ip, transport, headers, payload_bytes, .. } = segment;
            let at = ip.header_bytes();
            self.fit(&segment);
            let kind = transport.mark(ip);
            let numbers = [headers, payload_bytes, at, transport.checksum_at()];
            let (flags, rest) = mark.split_at_mut(2);
            flags.copy_from_slice(&[NEEDS_CHECKSUM, kind]);
            for (target, number) in rest.chunks_exact_mut(2).zip(numbers) {
                target.copy_from_slice(&(number as u16).to_ne_bytes());
            }
        }
        copy_into(&mut self.bytes, 0, &mark);
        let bytes = MARK_BYTES + std::mem::take(&mut self.packet_bytes);
        self.bytes.get(..bytes).unwrap_or_default()
    }

    /// Makes the headers of the first segment those of all: lengths, and the part of the checksum
    /// that the kernel goes on from.
    fn fit(&mut self, segment: &BundleSegment) {
        let (at, length) = (segment.ip.header_bytes(), self.packet_bytes);
        let packet = self.packet_mut();
        match segment.ip {
            PacketIp::V4 { .. } => {
                put_u16(packet, 2, length as u16);
                put_u16(packet, 10, 0);
                let sum = !checksum(packet.get(..IPV4_HEADER_BYTES).unwrap_or_default(), 0);
                put_u16(packet, 10, sum);
            }
            PacketIp::V6 => put_u16(packet, 4, (length - IPV6_HEADER_BYTES) as u16),
        }
        if segment.transport == OffloadTransport::Udp {
            put_u16(packet, at + 4, (length - at) as u16);
        }
        let before = pseudo_header(segment.ip, segment.transport, packet, length - at);
        // The kernel sums the payload itself. It expects the pseudo header's sum in the field.
        put_u16(packet, at + segment.transport.checksum_at(), checksum(&[], before));
    }
}

impl BundleSegment {
    /// Reads a packet that carries data of TCP or UDP and nothing special, and whose checksums are
    /// right: those of joined packets are not looked at again.
    fn parse(packet: &[u8]) -> Option<BundleSegment> {
        let ip = PacketIp::of(packet)?;
        let at = ip.header_bytes();
        let (is_plain, number) = match ip {
            PacketIp::V4 { header_bytes } => {
                let is_whole = u16_at(packet, 6)? & !DO_NOT_FRAGMENT == 0
                    && usize::from(u16_at(packet, 2)?) == packet.len();
                let sums = || packet.get(..at).is_some_and(|header| checksum(header, 0) == 0xffff);
                (header_bytes == IPV4_HEADER_BYTES && is_whole && sums(), *packet.get(9)?)
            }
            PacketIp::V6 => (usize::from(u16_at(packet, 4)?) + at == packet.len(), *packet.get(6)?),
        };
        let transport = OffloadTransport::of_number(number).filter(|_| is_plain)?;
        let length = packet.len().checked_sub(at)?;
        let (header_bytes, is_right, is_pushed) = match transport {
            OffloadTransport::Tcp => {
                let (bytes, flags) = (*packet.get(at + 12)?, *packet.get(at + 13)?);
                // Any other flag is an event of the connection, which joining would move or hide.
                let is_data = flags & !PUSH == ACK && bytes & 0x0f == 0;
                (usize::from(bytes >> 4) * 4, is_data, flags & PUSH != 0)
            }
            OffloadTransport::Udp => {
                let is_whole = usize::from(u16_at(packet, at + 4)?) == length;
                // A datagram without a checksum would get one by joining, and so would look
                // checked.
                (8, is_whole && u16_at(packet, at + 6)? != 0, false)
            }
        };
        let headers = at + header_bytes;
        let payload_bytes = packet.len().checked_sub(headers).filter(|bytes| *bytes > 0)?;
        if header_bytes < transport.header_bytes() || !is_right {
            return None;
        }
        // Offload tells the kernel that the checksums are right. A packet whose checksum is wrong
        // would be made a right one here.
        let before = pseudo_header(ip, transport, packet, length);
        // The kernel trusts the mark and looks no more. A damaged segment must not hide among good
        // ones.
        let sums = checksum(packet.get(at..)?, before) == 0xffff;
        sums.then_some(BundleSegment { ip, transport, headers, payload_bytes, is_pushed })
    }

    fn sequence(&self, packet: &[u8]) -> Option<u32> {
        u32_at(packet, self.ip.header_bytes() + 4)
    }

    fn next_sequence(&self, packet: &[u8]) -> u32 {
        self.sequence(packet).unwrap_or(0).wrapping_add(self.payload_bytes as u32)
    }
}
