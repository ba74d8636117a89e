//! The Ethernet side of an interface of frames (TAP). Only IP packets travel: whoever asks here for
//! an address that is behind another member is told the address of this end, and broadcasts stay.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::limits::{MAX_TAP_ANSWERS_PER_SECOND, MAX_TAP_HOSTS};
use crate::offload::{copy_into, u16_at};
use crate::packet::PacketAddresses;
use crate::quota::UnitQuota;

/// Addresses of target and source, and what is inside.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// The address that stands for all machines beyond: locally administered, of one machine.
pub(crate) const BEYOND: MacAddress = [0x02, 0x5e, 0xa1, 0xa9, 0xe0, 0x01];
const EVERYBODY: MacAddress = [0xff; 6];
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
/// RFC 826: Ethernet and IPv4, with addresses of 6 and 4 bytes.
const ARP_START: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ASKS: u8 = 1;
const ANSWERS: u8 = 2;
/// RFC 4861 §4.3, §4.4.
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const ICMPV6: u8 = 58;
/// An answer to a question, which takes the place of what was known.
const SOLICITED_OVERRIDE: u8 = 0x60;

/// The address of a network card.
type MacAddress = [u8; 6];

/// The known machines on this side.
#[derive(Debug)]
pub(crate) struct TapSide {
    /// The interface's own address, and those of IP that it has.
    own: MacAddress,
    addresses: Vec<IpAddr>,
    hosts: HashMap<IpAddr, MacAddress>,
    /// Answers and questions that may still be sent.
    quota: UnitQuota,
    frame: Vec<u8>,
}

/// The kind of a frame of this side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TapFrame<'t> {
    /// A packet that may travel: all behind the header.
    Packet,
    /// A question, with the frame that answers it.
    Asked(&'t [u8]),
    /// Nothing that travels.
    Nothing,
}

/// How a packet comes to a machine of this side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TapDelivery<'t> {
    /// As this frame.
    Frame(&'t [u8]),
    /// Nobody knows where the machine is: this frame asks for it.
    Unknown(&'t [u8]),
    /// Not at all.
    Nothing,
}

/// A message of neighbour discovery.
#[derive(Debug)]
struct NeighbourSolicitation {
    kind: u8,
    source: [u8; 16],
    destination: [u8; 16],
    /// The address that it is about.
    target: [u8; 16],
}

impl TapSide {
    pub(crate) fn new(own: MacAddress, addresses: Vec<IpAddr>, now_us: u64) -> Self {
        let quota = UnitQuota::new(MAX_TAP_ANSWERS_PER_SECOND, now_us);
        let frame = Vec::with_capacity(ETHERNET_BYTES + usize::from(u16::MAX));
        Self { own, addresses, hosts: HashMap::new(), quota, frame }
    }

    /// Looks at a frame of this side. `is_beyond` says which addresses are behind other members.
    pub(crate) fn see(
        &mut self,
        frame: &[u8],
        now_us: u64,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> TapFrame<'_> {
        let seen = self.try_see(frame, now_us, is_beyond);
        match seen {
            Some(true) => TapFrame::Asked(&self.frame),
            Some(false) => TapFrame::Packet,
            None => TapFrame::Nothing,
        }
    }

    /// Whether a frame is a question, with its answer in the buffer, or a packet.
    fn try_see(
        &mut self,
        frame: &[u8],
        now_us: u64,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> Option<bool> {
        let (to, rest) = frame.split_first_chunk::<6>()?;
        let (from, rest) = rest.split_first_chunk::<6>()?;
        let (kind, inside) = rest.split_first_chunk::<2>()?;
        // A frame with the address of everybody beyond came from this end, and a bridge played it
        // back.
        let is_host = from.first()? & 1 == 0 && *from != BEYOND;
        match u16::from_be_bytes(*kind) {
            _ if !is_host => None,
            ARP => self.arp(*from, inside, now_us, is_beyond),
            IPV6 if solicited(inside).is_some() => {
                self.solicitation(*from, inside, now_us, is_beyond)
            }
            IPV6 if advertised(inside).is_some() => {
                // A machine's own advertisement, unasked or asked for by this end.
                self.learn(advertised(inside)?, *from, &is_beyond);
                None
            }
            // Only frames for the stand-in address travel. Broadcasts stay on this side, or each
            // end would spread the other's.
            IPV4 | IPV6 if *to == BEYOND => {
                let source = PacketAddresses::parse(inside)?.source;
                self.learn(source, *from, &is_beyond);
                Some(false)
            }
            _ => None,
        }
    }

    /// RFC 826: asked for an address beyond, this end answers; who asks or answers is known then.
    fn arp(
        &mut self,
        from: MacAddress,
        inside: &[u8],
        now_us: u64,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> Option<bool> {
        let rest = inside.strip_prefix(&ARP_START)?;
        let [0, operation, rest @ ..] = rest else { return None };
        let (sender, rest) = rest.split_first_chunk::<6>()?;
        let (source, rest) = rest.split_first_chunk::<4>()?;
        let target = rest.get(6..)?.first_chunk::<4>()?;
        // The two addresses differ where somebody answers for another machine. That is not learned.
        if *sender != from {
            return None;
        }
        self.learn(IpAddr::from(*source), from, &is_beyond);
        // A machine that asks for its own address looks whether it is taken, and must not hear that
        // it is.
        let is_question = *operation == ASKS && source != target;
        if !(is_question && is_beyond(IpAddr::from(*target)) && self.may_speak(now_us)) {
            return None;
        }
        self.write_arp(ANSWERS, *target, from, *source);
        Some(true)
    }

    /// RFC 4861 §7.2.3: the same for IPv6. A machine that looks whether its own address is taken
    /// has none yet, and is not answered.
    fn solicitation(
        &mut self,
        from: MacAddress,
        inside: &[u8],
        now_us: u64,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> Option<bool> {
        let target = solicited(inside)?;
        let source = inside.get(8..24)?.first_chunk::<16>()?;
        // RFC 4861 §7.2.4: an answer to the unspecified source would go to all nodes and end the
        // machine's address.
        if *source == [0; 16] {
            return None;
        }
        self.learn(IpAddr::from(*source), from, &is_beyond);
        if !(is_beyond(IpAddr::from(target)) && self.may_speak(now_us)) {
            return None;
        }
        let kind = ADVERTISEMENT;
        let said = NeighbourSolicitation { kind, source: target, destination: *source, target };
        self.write_discovery(from, &said);
        Some(true)
    }

    /// The frame in which a packet comes to its machine on this side.
    pub(crate) fn dress(&mut self, packet: &[u8], now_us: u64) -> TapDelivery<'_> {
        let Some(PacketAddresses { source, destination }) = PacketAddresses::parse(packet) else {
            return TapDelivery::Nothing;
        };
        // The interface's own addresses need no table entry, and no machine can claim them by
        // speaking first.
        let own = self.addresses.contains(&destination).then_some(self.own);
        if let Some(to) = own.or_else(|| self.hosts.get(&destination).copied()) {
            let kind = if destination.is_ipv4() { IPV4 } else { IPV6 };
            self.begin(to, kind);
            self.frame.extend_from_slice(packet);
            return TapDelivery::Frame(&self.frame);
        }
        // Questions count in one quota with answers: packets to addresses that nobody has would
        // else flood this side.
        if destination.is_multicast() || !self.may_speak(now_us) {
            return TapDelivery::Nothing;
        }
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                self.write_arp(ASKS, source.octets(), EVERYBODY, target.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let (source, target) = (source.octets(), target.octets());
                // The group of those whose addresses end alike (RFC 4291 §2.7.1).
                let [.., a, b, c] = target;
                let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c];
                let to = [0x33, 0x33, 0xff, a, b, c];
                let kind = SOLICITATION;
                let said = NeighbourSolicitation { kind, source, destination: group, target };
                self.write_discovery(to, &said);
            }
            _ => return TapDelivery::Nothing,
        }
        TapDelivery::Unknown(&self.frame)
    }

    /// Remembers where a machine of this side is, if there is room. Nobody here is beyond.
    fn learn(&mut self, address: IpAddr, at: MacAddress, is_beyond: &impl Fn(IpAddr) -> bool) {
        // An address beyond stays beyond, whatever a machine here says: it would else take the
        // packets of another member.
        if address.is_unspecified() || address.is_multicast() || is_beyond(address) {
            return;
        }
        // A full table refuses newcomers instead of evicting. A machine that invents addresses
        // cannot push out the true ones.
        if self.hosts.len() < MAX_TAP_HOSTS || self.hosts.contains_key(&address) {
            self.hosts.insert(address, at);
        }
    }

    fn may_speak(&mut self, now_us: u64) -> bool {
        self.quota.take(1, now_us) == 1
    }

    /// Begins a frame from beyond.
    fn begin(&mut self, to: MacAddress, kind: u16) {
        self.frame.clear();
        self.frame.extend_from_slice(&to);
        self.frame.extend_from_slice(&BEYOND);
        self.frame.extend_from_slice(&kind.to_be_bytes());
    }

    /// Says or asks where an address is.
    fn write_arp(&mut self, operation: u8, own: [u8; 4], to: MacAddress, target: [u8; 4]) {
        self.begin(to, ARP);
        // RFC 826: a question leaves the target's hardware address open, since that is what it asks
        // for.
        let known = if operation == ANSWERS { to } else { [0; 6] };
        let parts: [&[u8]; 6] = [&ARP_START, &[0, operation], &BEYOND, &own, &known, &target];
        parts.into_iter().for_each(|part| self.frame.extend_from_slice(part));
    }

    /// Says or asks the same by ICMPv6.
    fn write_discovery(&mut self, to: MacAddress, said: &NeighbourSolicitation) {
        self.begin(to, IPV6);
        let NeighbourSolicitation { kind, source, destination, target } = said;
        // An option with the own address: of whoever is asked for, or of who asks.
        let (flags, option) = match *kind {
            ADVERTISEMENT => (SOLICITED_OVERRIDE, 2),
            _ => (0, 1),
        };
        let length = [0, 24 + 8];
        let header: [&[u8]; 5] = [&[0x60, 0, 0, 0], &length, &[ICMPV6, 255], source, destination];
        let inside: [&[u8]; 5] =
            [&[*kind, 0, 0, 0], &[flags, 0, 0, 0], target, &[option, 1], &BEYOND];
        header.into_iter().chain(inside).for_each(|part| self.frame.extend_from_slice(part));
        let sum = icmpv6_sum(self.frame.get(ETHERNET_BYTES..).unwrap_or_default());
        copy_into(&mut self.frame, ETHERNET_BYTES + 42, &(!sum).to_be_bytes());
    }
}

/// The sum over an ICMPv6 packet: all ones where its checksum is right.
fn icmpv6_sum(packet: &[u8]) -> u16 {
    let inside = packet.get(40..).unwrap_or_default();
    let before = inside.len() as u64 + u64::from(ICMPV6);
    let addresses = packet.get(8..40).unwrap_or_default();
    tun_rs::checksum(inside, tun_rs::checksum_no_fold(addresses, before))
}

/// The address that a message of neighbour discovery is about.
fn discovered(packet: &[u8], kind: u8) -> Option<[u8; 16]> {
    let is_whole = usize::from(u16_at(packet, 4)?) + 40 == packet.len();
    // RFC 4861 §7.1.1: a hop limit of 255 proves that no router passed the message on.
    let is_it = packet.get(6..8)? == [ICMPV6, 255] && packet.get(40..42)? == [kind, 0];
    let target = packet.get(48..)?.first_chunk::<16>()?;
    (is_whole && is_it && icmpv6_sum(packet) == 0xffff).then_some(*target)
}

fn solicited(packet: &[u8]) -> Option<[u8; 16]> {
    discovered(packet, SOLICITATION)
}

fn advertised(packet: &[u8]) -> Option<IpAddr> {
    discovered(packet, ADVERTISEMENT).map(IpAddr::from)
}

#[cfg(test)]
mod tests;
