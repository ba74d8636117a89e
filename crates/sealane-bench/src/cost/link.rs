//! The cost of a frame on each link: the bytes around it, the number of its units, and CPU. CPU is
//! measured on the links that this machine lets a program try.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sealane_frame::FRAGMENT_HEADER_BYTES;
use sealane_link::{
    ETHERNET_HEADER_BYTES, IpHeader, LinkAddress, LinkConfig, LinkError, LinkInbox, LinkReady,
    LinkWire, RelayLink, SEALED_PACKET_BYTES,
};

/// The cost of a message on one link, on average.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinkRow {
    pub(crate) name: &'static str,
    /// Bytes around each unit that the link adds.
    pub(crate) headers: usize,
    /// The bytes that the wire below carries at once.
    pub(crate) mtu: usize,
    /// The longest body that goes in one unit, sealed.
    pub(crate) body_at_once: usize,
    pub(crate) units: f64,
    /// Bytes of a message on the wire, with all that is around it.
    pub(crate) wire: f64,
}

/// The lengths of a message: encoded, and sealed in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkLengths {
    pub(super) body: usize,
    pub(super) frame: usize,
}

/// The bytes that most wires carry at once.
const MTU: u16 = 1500;
/// The most bytes that a loopback interface carries at once.
const LOOPBACK_MTU: u16 = u16::MAX;
/// How long a frame on a loopback may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A link, and whether messages go through it as datagrams of a program, by an interface.
struct CostLinkKind {
    name: &'static str,
    wire: LinkWire,
    has_interface: bool,
}

fn kinds() -> [CostLinkKind; 6] {
    let udp = |host| LinkWire::Udp(SocketAddr::from((host, 0)));
    let v4 = || udp(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    let v6 = || udp(std::net::IpAddr::from(Ipv6Addr::LOCALHOST));
    let ethernet = || LinkWire::Ethernet("lo".to_owned());
    let kind = |name, wire, has_interface| CostLinkKind { name, wire, has_interface };
    [
        kind("UDP over IPv4", v4(), false),
        kind("UDP over IPv6", v6(), false),
        kind("Ethernet", ethernet(), false),
        kind("TUN, UDP over IPv4", v4(), true),
        kind("TUN, UDP over IPv6", v6(), true),
        kind("TUN, Ethernet", ethernet(), true),
    ]
}

/// The cost of messages of these lengths on each link.
pub(super) fn rows(messages: &[LinkLengths]) -> Vec<LinkRow> {
    let row = |CostLinkKind { name, wire, has_interface }: CostLinkKind| {
        let headers = match wire {
            LinkWire::Ethernet(_) => ETHERNET_HEADER_BYTES,
            _ => wire.header_bytes(),
        };
        let unit_bytes = config(wire, MTU).unit_bytes();
        // The headers around a program's datagram before it is sealed.
        let inside = if has_interface { IpHeader::V4.with_udp_bytes() } else { 0 };
        let body_at_once = unit_bytes.saturating_sub(SEALED_PACKET_BYTES + inside);
        let (mut units, mut wire) = (0, 0);
        for LinkLengths { body, frame } in messages {
            let around = frame.saturating_sub(*body);
            let count = match has_interface {
                // A program cuts what does not fit.
                true => body.div_ceil(body_at_once.max(1)).max(1),
                false => parts(*frame, unit_bytes),
            };
            units += count;
            wire += count * headers;
            wire += match has_interface {
                true => body + count * (around + inside),
                false if count > 1 => frame + count * FRAGMENT_HEADER_BYTES,
                false => *frame,
            };
        }
        let mean = |sum: usize| sum as f64 / messages.len().max(1) as f64;
        let (units, wire) = (mean(units), mean(wire));
        LinkRow { name, headers, mtu: usize::from(MTU), body_at_once, units, wire }
    };
    kinds().map(row).into()
}

/// In how many units a frame goes.
fn parts(frame_bytes: usize, unit_bytes: usize) -> usize {
    if frame_bytes <= unit_bytes {
        return 1;
    }
    frame_bytes.div_ceil(unit_bytes.saturating_sub(FRAGMENT_HEADER_BYTES).max(1))
}

fn config(wire: LinkWire, mtu: u16) -> LinkConfig {
    LinkConfig::new("bench", wire, mtu)
}

/// A link from this thread to itself, over the loopback interface.
#[derive(Debug)]
pub(super) struct LoopbackLink {
    pub(super) name: &'static str,
    link: RelayLink,
    to: LinkAddress,
    inbox: LinkInbox,
}

impl LoopbackLink {
    /// Those that this user may open: raw Ethernet needs a right of its own.
    pub(super) fn all() -> Vec<LoopbackLink> {
        let names = ["UDP on loopback, full frame", "Ethernet on loopback, full frame"];
        let [v4, _, ethernet, ..] = kinds();
        let wires = [v4.wire, ethernet.wire];
        let open = |(name, wire)| LoopbackLink::open(name, wire).ok();
        names.into_iter().zip(wires).filter_map(open).collect()
    }

    fn open(name: &'static str, wire: LinkWire) -> Result<Self, LinkError> {
        let link = RelayLink::open(&config(wire, LOOPBACK_MTU), None)?;
        let to = link.address();
        Ok(Self { name, link, to, inbox: LinkInbox::new() })
    }

    /// Sends a frame and receives it; gives whether it came.
    pub(super) fn carry(&mut self, frame: &[u8]) -> bool {
        let sent = self.link.send(self.to, frame, frame.len());
        if sent.bytes != frame.len() {
            return false;
        }
        loop {
            let came = match self.link.receive(&mut self.inbox) {
                Ok(count) => self.inbox.batches(count).any(|(_, unit)| unit == frame),
                Err(_) => false,
            };
            if came || !self.link.wait(LinkReady::ToReceive, PATIENCE).unwrap_or(false) {
                return came;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, lengths: &[LinkLengths]) -> LinkRow {
        rows(lengths).into_iter().find(|row| row.name == name).unwrap()
    }

    /// `spec/link.md`: 28 or 48 bytes over UDP, 14 over Ethernet, and 89 around a packet.
    #[test]
    fn links_add_what_the_specification_says() {
        let one = [LinkLengths { body: 100, frame: 189 }];
        let [v4, v6, ethernet, tun, _, _] = &rows(&one)[..] else { panic!("six") };
        assert_eq!([v4.headers, v6.headers, ethernet.headers], [28, 48, 14]);
        assert_eq!([v4.body_at_once, v6.body_at_once, ethernet.body_at_once], [1383, 1363, 1411]);
        assert_eq!(tun.body_at_once, 1383 - 28);
        assert_eq!([v4.wire, v6.wire, ethernet.wire], [217.0, 237.0, 203.0]);
        assert_eq!((tun.units, tun.wire), (1.0, 245.0));
    }

    #[test]
    fn a_long_message_goes_in_several_units() {
        let long = [LinkLengths { body: 4000, frame: 4089 }, LinkLengths { body: 1, frame: 90 }];
        let v4 = row("UDP over IPv4", &long);
        assert_eq!(v4.units, (3.0 + 1.0) / 2.0);
        assert_eq!(v4.wire, (4089 + 3 * (28 + 8) + 90 + 28) as f64 / 2.0);
        let tun = row("TUN, UDP over IPv4", &long);
        assert_eq!(tun.units, (3.0 + 1.0) / 2.0);
        assert_eq!(tun.wire, (4000 + 3 * (89 + 28 + 28) + 90 + 56) as f64 / 2.0);
    }

    #[test]
    fn a_loopback_carries_a_frame_or_says_that_it_does_not() {
        let mut udp = LoopbackLink::all().remove(0);
        for length in [1, 200, 60_000] {
            assert!(udp.carry(&vec![7; length]), "{length}");
        }
        assert!(!udp.carry(&vec![7; 70_000]));
    }
}
