//! The common part of both directions of an interface with offloads: the kernel's mark before each
//! packet, and the fields of IP, TCP and UDP that segments differ in.

use std::ops::Range;

/// The bytes of the kernel's mark (`virtio_net_hdr`, VIRTIO 1.2 §5.1.6).
pub(crate) const MARK_BYTES: usize = 10;
/// The mark's flag that the checksum is still to be made (`virtio_net_hdr`, VIRTIO 1.2 §5.1.6).
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// TCP's flag that the sender's application was done (RFC 9293 §3.1).
pub(crate) const PUSH: u8 = 0x08;
/// RFC 8200 §3.
pub(crate) const IPV6_HEADER_BYTES: usize = 40;
/// RFC 791 §3.1.
pub(crate) const IPV4_HEADER_BYTES: usize = 20;

/// A packet's IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketIp {
    V4 { header_bytes: usize },
    V6,
}

/// The transport that is cut into segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffloadTransport {
    Tcp,
    Udp,
}

impl PacketIp {
    /// The IP of a packet, as its header says.
    pub(crate) fn of(packet: &[u8]) -> Option<PacketIp> {
        let first = packet.first()?;
        match first >> 4 {
            4 => {
                let header_bytes = usize::from(first & 0x0f) * 4;
                let is_right = (IPV4_HEADER_BYTES..=packet.len()).contains(&header_bytes);
                is_right.then_some(PacketIp::V4 { header_bytes })
            }
            6 if packet.len() >= IPV6_HEADER_BYTES => Some(PacketIp::V6),
            _ => None,
        }
    }

    /// The bytes of its header, extensions of IPv6 not counted.
    pub(crate) fn header_bytes(self) -> usize {
        match self {
            PacketIp::V4 { header_bytes } => header_bytes,
            PacketIp::V6 => IPV6_HEADER_BYTES,
        }
    }

    /// Where both of its addresses stand.
    fn addresses(self) -> Range<usize> {
        match self {
            PacketIp::V4 { .. } => 12..20,
            PacketIp::V6 => 8..40,
        }
    }
}

impl OffloadTransport {
    /// The transport that the kernel's mark names: `VIRTIO_NET_HDR_GSO_*`, with or without `_ECN`.
    pub(crate) fn of_mark(kind: u8) -> Option<OffloadTransport> {
        match kind & !0x80 {
            1 | 4 => Some(OffloadTransport::Tcp),
            5 => Some(OffloadTransport::Udp),
            _ => None,
        }
    }

    /// The kind of the kernel's mark.
    pub(crate) fn mark(self, ip: PacketIp) -> u8 {
        match (self, ip) {
            (OffloadTransport::Tcp, PacketIp::V4 { .. }) => 1,
            (OffloadTransport::Tcp, PacketIp::V6) => 4,
            (OffloadTransport::Udp, _) => 5,
        }
    }

    /// Its number in IP.
    pub(crate) fn number(self) -> u8 {
        match self {
            OffloadTransport::Tcp => 6,
            OffloadTransport::Udp => 17,
        }
    }

    /// The transport of that number in IP.
    pub(crate) fn of_number(number: u8) -> Option<OffloadTransport> {
        [OffloadTransport::Tcp, OffloadTransport::Udp]
            .into_iter()
            .find(|one| one.number() == number)
    }

    /// The least bytes of its header.
    pub(crate) fn header_bytes(self) -> usize {
        match self {
            OffloadTransport::Tcp => 20,
            OffloadTransport::Udp => 8,
        }
    }

    /// Where its checksum stands.
    pub(crate) fn checksum_at(self) -> usize {
        match self {
            OffloadTransport::Tcp => 16,
            OffloadTransport::Udp => 6,
        }
    }
}

/// The Internet checksum before it is inverted (RFC 1071).
pub(crate) fn checksum(bytes: &[u8], before: u64) -> u16 {
    tun_rs::checksum(bytes, before)
}

/// The part of the IP header that the checksum of TCP or UDP covers (RFC 9293 §3.1, RFC 8200 §8.1).
pub(crate) fn pseudo_header(
    ip: PacketIp,
    transport: OffloadTransport,
    packet: &[u8],
    length: usize,
) -> u64 {
    let addresses = packet.get(ip.addresses()).unwrap_or_default();
    let rest = length as u64 + u64::from(transport.number());
    tun_rs::checksum_no_fold(addresses, rest)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    copy_into(bytes, at, &value.to_be_bytes());
}

/// Copies a part to its place, if it fits there.
pub(crate) fn copy_into(bytes: &mut [u8], at: usize, part: &[u8]) {
    if let Some(target) = bytes.get_mut(at..at + part.len()) {
        target.copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
