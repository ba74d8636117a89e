//! A captured packet to the payload of its UDP datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::account::{Captured, Origin, Packet};
use super::input::origin;
use super::pcap::Record;

/// Why a packet carries no unit.
type Reason = &'static str;

/// The unit that a packet carries, and where it comes from.
///
/// # Errors
/// Why it carries none.
pub(super) fn read(record: &Record) -> Result<(Origin, Vec<u8>), Reason> {
    let packet = behind_link(record.link_type, &record.bytes)?;
    let (addresses, datagram) = match packet.first().ok_or(SHORT)? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return Err(OTHER),
    };
    let (head, rest) = datagram.split_first_chunk::<8>().ok_or(SHORT)?;
    let [source_0, source_1, target_0, target_1, len_0, len_1, ..] = *head;
    let announced = usize::from(u16::from_be_bytes([len_0, len_1]));
    // A length of 0 stands for the longest datagrams, and for those not yet split by the card.
    let whole = match announced {
        0 => rest.len(),
        _ => announced.checked_sub(head.len()).ok_or("UDP in disorder")?,
    };
    let port = |high, low| u16::from_be_bytes([high, low]);
    let mut origin = origin(Captured::Packet(Packet {
        number: record.number,
        offset: record.offset,
        time_ms: record.time_ms,
        source: SocketAddr::new(addresses.0, port(source_0, source_1)),
        destination: SocketAddr::new(addresses.1, port(target_0, target_1)),
    }));
    origin.whole_bytes = (rest.len() < whole).then_some(whole);
    Ok((origin, rest.get(..whole).unwrap_or(rest).to_vec()))
}

const SHORT: Reason = "cut off before its data";
const OTHER: Reason = "not IP";

/// The numbers of the registry of link types.
fn behind_link(link_type: u32, bytes: &[u8]) -> Result<&[u8], Reason> {
    match link_type {
        // Loopback of BSD and others: a family of four bytes in the order of the machine.
        0 | 108 => bytes.get(4..).ok_or(SHORT),
        1 => ethernet(bytes),
        // Raw IP, under its number and two that BSD systems wrote.
        12 | 14 | 101 | 228 | 229 => Ok(bytes),
        113 => cooked(bytes, 14, 16),
        276 => cooked(bytes, 0, 20),
        _ => Err("of a link type that is not read"),
    }
}

/// Linux's header for packets of any interface, in its two versions.
fn cooked(bytes: &[u8], type_at: usize, head: usize) -> Result<&[u8], Reason> {
    let kind = bytes.get(type_at..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
    by_type(*kind, bytes.get(head..).ok_or(SHORT)?)
}

fn ethernet(bytes: &[u8]) -> Result<&[u8], Reason> {
    let (head, rest) = bytes.split_first_chunk::<14>().ok_or(SHORT)?;
    let [.., high, low] = *head;
    by_type([high, low], rest)
}

/// What an Ethernet type announces, behind tags of virtual networks.
fn by_type(mut kind: [u8; 2], mut rest: &[u8]) -> Result<&[u8], Reason> {
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

type Addressed<'a> = ((IpAddr, IpAddr), &'a [u8]);

fn ipv4(packet: &[u8]) -> Result<Addressed<'_>, Reason> {
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

fn ipv6(packet: &[u8]) -> Result<Addressed<'_>, Reason> {
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
const NOT_UDP: Reason = "not UDP";
const FRAGMENT: Reason = "a fragment of IP";
