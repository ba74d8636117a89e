//! A captured packet to the payload of its UDP datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sealane_link::{ETHER_TYPE, LinkAddress};

use super::account::{CaptureSource, CapturedPacket, InspectOrigin};
use super::input::origin;
use super::pcap::PcapRecord;

/// Why a packet carries no unit.
type PacketReason = &'static str;

/// The unit that a packet carries, and where it comes from.
///
/// # Errors
/// Why it carries none.
pub(super) fn read(record: &PcapRecord) -> Result<(InspectOrigin, Vec<u8>), PacketReason> {
    let CarriedUnit { source, destination, unit, whole_bytes } =
        match behind_link(record.link_type, &record.bytes)? {
            LinkPayload::Ip(packet) => datagram(packet)?,
            LinkPayload::Unit { source, destination, unit } => {
                CarriedUnit { source, destination, unit, whole_bytes: unit.len() }
            }
        };
    let mut origin = origin(CaptureSource::Packet(CapturedPacket {
        number: record.number,
        offset: record.offset,
        time_ms: record.time_ms,
        source,
        destination,
    }));
    origin.whole_bytes = (unit.len() < whole_bytes).then_some(whole_bytes);
    Ok((origin, unit.to_vec()))
}

/// The content behind the header of a link.
enum LinkPayload<'a> {
    Ip(&'a [u8]),
    /// A unit of raw Ethernet (`spec/link.md`).
    Unit {
        source: LinkAddress,
        destination: LinkAddress,
        unit: &'a [u8],
    },
}

/// A unit, and how long it was before the capture cut it.
struct CarriedUnit<'a> {
    source: LinkAddress,
    destination: LinkAddress,
    unit: &'a [u8],
    whole_bytes: usize,
}

fn datagram(packet: &[u8]) -> Result<CarriedUnit<'_>, PacketReason> {
    let (addresses, datagram) = match packet.first().ok_or(SHORT)? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return Err(OTHER),
    };
    let (head, rest) = datagram.split_first_chunk::<8>().ok_or(SHORT)?;
    let [source_0, source_1, target_0, target_1, len_0, len_1, ..] = *head;
    let announced = usize::from(u16::from_be_bytes([len_0, len_1]));
    // A length of 0 stands for the longest datagrams, and for those not yet split by the card.
    let whole_bytes = match announced {
        0 => rest.len(),
        _ => announced.checked_sub(head.len()).ok_or("UDP in disorder")?,
    };
    let port = |high, low| u16::from_be_bytes([high, low]);
    Ok(CarriedUnit {
        source: LinkAddress::Udp(SocketAddr::new(addresses.0, port(source_0, source_1))),
        destination: LinkAddress::Udp(SocketAddr::new(addresses.1, port(target_0, target_1))),
        unit: rest.get(..whole_bytes).unwrap_or(rest),
        whole_bytes,
    })
}

const SHORT: PacketReason = "cut off before its data";
const OTHER: PacketReason = "neither IP nor a unit of Ethernet";

/// The numbers of the registry of link types.
fn behind_link(link_type: u32, bytes: &[u8]) -> Result<LinkPayload<'_>, PacketReason> {
    let packet = match link_type {
        // Loopback of BSD and others: a family of four bytes in the order of the machine.
        0 | 108 => bytes.get(4..).ok_or(SHORT),
        1 => return ethernet(bytes),
        // Raw IP, under its number and two that BSD systems wrote.
        12 | 14 | 101 | 228 | 229 => Ok(bytes),
        113 => cooked(bytes, 14, 16),
        276 => cooked(bytes, 0, 20),
        _ => Err("of a link type that is not read"),
    };
    packet.map(LinkPayload::Ip)
}

/// Linux's header for packets of any interface, in its two versions.
fn cooked(bytes: &[u8], type_at: usize, head: usize) -> Result<&[u8], PacketReason> {
    let kind = bytes.get(type_at..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
    by_type(*kind, bytes.get(head..).ok_or(SHORT)?)
}

fn ethernet(bytes: &[u8]) -> Result<LinkPayload<'_>, PacketReason> {
    let (head, rest) = bytes.split_first_chunk::<14>().ok_or(SHORT)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *head;
    if u16::from_be_bytes([high, low]) == ETHER_TYPE {
        let destination = LinkAddress::Ethernet([a, b, c, d, e, f]);
        let source = LinkAddress::Ethernet([g, h, i, j, k, l]);
        return Ok(LinkPayload::Unit { source, destination, unit: rest });
    }
    by_type([high, low], rest).map(LinkPayload::Ip)
}

/// The content that an Ethernet type announces, behind tags of virtual networks.
fn by_type(mut kind: [u8; 2], mut rest: &[u8]) -> Result<&[u8], PacketReason> {
    loop {
        match u16::from_be_bytes(kind) {
            0x0800 | 0x86dd => return Ok(rest),
            0x8100 | 0x88a8 | 0x9100 => {
                let ([_, _, high, low], behind) = rest.split_first_chunk().ok_or(SHORT)?;
                (kind, rest) = ([*high, *low], behind);
            }
            _ => return Err(OTHER),
        }
    }
}

type AddressedPayload<'a> = ((IpAddr, IpAddr), &'a [u8]);

fn ipv4(packet: &[u8]) -> Result<AddressedPayload<'_>, PacketReason> {
    let (head, _) = packet.split_first_chunk::<20>().ok_or(SHORT)?;
    let [first, _, _, _, _, _, fragment_0, fragment_1, _, protocol, _, _, addresses @ ..] = *head;
    let head_bytes = usize::from(first & 0x0f) * 4;
    let rest = packet.get(head_bytes.max(head.len())..).ok_or(SHORT)?;
    if u16::from_be_bytes([fragment_0, fragment_1]) & 0x3fff != 0 {
        return Err(FRAGMENT);
    }
    if protocol != UDP {
        return Err(NOT_UDP);
    }
    let [a, b, c, d, e, f, g, h] = addresses;
    let addresses = (Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into());
    Ok((addresses, rest))
}

fn ipv6(packet: &[u8]) -> Result<AddressedPayload<'_>, PacketReason> {
    let (head, mut rest) = packet.split_first_chunk::<40>().ok_or(SHORT)?;
    let (fixed, addresses) = head.split_first_chunk::<8>().ok_or(SHORT)?;
    let (source, addresses) = addresses.split_first_chunk::<16>().ok_or(SHORT)?;
    let target = addresses.first_chunk::<16>().ok_or(SHORT)?;
    let [.., mut protocol, _] = *fixed;
    loop {
        let unit_bytes = match protocol {
            UDP => break,
            // Options by hop, routing, options of the destination.
            0 | 43 | 60 => 8,
            // Authentication counts words of four bytes, and one less.
            51 => 4,
            44 => return Err(FRAGMENT),
            _ => return Err(NOT_UDP),
        };
        let [next, len, ..] = rest else { return Err(SHORT) };
        let first = if protocol == 51 { 2 } else { 1 };
        protocol = *next;
        rest = rest.get((usize::from(*len) + first) * unit_bytes..).ok_or(SHORT)?;
    }
    let addresses = (Ipv6Addr::from(*source).into(), Ipv6Addr::from(*target).into());
    Ok((addresses, rest))
}

const UDP: u8 = 17;
const NOT_UDP: PacketReason = "not UDP";
const FRAGMENT: PacketReason = "a fragment of IP";
