//! IP packets, as far as an end looks at them: from whom, and for whom.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sealane_frame::PeerTag;

use crate::RelayCard;
use crate::mesh_config::{IpPrefix, MeshConfig};
use sealane_seal::Slot;

/// The addresses of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketAddresses {
    /// The sender's address.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
}

impl PacketAddresses {
    /// Reads them off an IP packet.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let v4 = |at: usize| {
            let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(bytes)))
        };
        let v6 = |at: usize| {
            let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        };
        // RFC 791 §3.1, RFC 8200 §3.
        match packet.first()? >> 4 {
            4 if packet.len() >= 20 => Some(Self { source: v4(12)?, destination: v4(16)? }),
            6 if packet.len() >= 40 => Some(Self { source: v6(8)?, destination: v6(24)? }),
            _ => None,
        }
    }
}

/// Which member answers for which addresses.
#[derive(Debug)]
pub struct PrefixTable {
    /// The longest prefixes first, so that the first one that holds an address is the nearest.
    prefixes: Vec<(IpPrefix, Option<PeerTag>)>,
    awaited: Vec<u16>,
}

impl PrefixTable {
    /// The prefixes of a configuration, with the tags of the card of the group. Nothing is behind a
    /// slot that is no member: it may be one later, or was one before.
    pub fn new(mesh: &MeshConfig, card: &RelayCard) -> Self {
        let (mut prefixes, mut awaited) = (Vec::new(), Vec::new());
        for member in &mesh.members {
            let tag = Slot::new(member.slot).and_then(|slot| card.tag(slot));
            // A missing member is reported and not refused. Otherwise one removal would stop every
            // end that names it.
            awaited.extend(tag.is_none().then_some(member.slot));
            prefixes.extend(member.prefixes.iter().map(|prefix| (*prefix, tag)));
        }
        // The sort is stable and done once, so that the data path takes the first match.
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits));
        Self { prefixes, awaited }
    }

    /// The slots of the configuration that are no members.
    pub fn awaited(&self) -> &[u16] {
        &self.awaited
    }

    /// The member that answers for an address.
    pub fn member(&self, address: IpAddr) -> Option<PeerTag> {
        let (_, tag) = self.prefixes.iter().find(|(prefix, _)| prefix.holds(address))?;
        // The longest prefix decides even if its member is missing. A shorter prefix would send
        // packets to the wrong member.
        *tag
    }
}

#[cfg(test)]
mod tests {
    use sealane_frame::GroupTag;
    use sealane_seal::Epoch;

    use super::*;

    #[test]
    fn addresses_are_read_off_whole_headers_only() {
        let mut v4 = [0; 20];
        v4[0] = 0x45;
        v4[12..].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        let read = PacketAddresses::parse(&v4).unwrap();
        assert_eq!(read.source, IpAddr::from([10, 9, 0, 1]));
        assert_eq!(read.destination, IpAddr::from([10, 9, 0, 2]));
        let mut v6 = [0; 40];
        v6[0] = 0x60;
        (v6[23], v6[39]) = (1, 2);
        let read = PacketAddresses::parse(&v6).unwrap();
        assert_eq!(read.source, "::1".parse::<IpAddr>().unwrap());
        assert_eq!(read.destination, "::2".parse::<IpAddr>().unwrap());
        for short in [&v4[..19], &v6[..39], &[], &[0x50; 60], &[0; 60]] {
            assert_eq!(PacketAddresses::parse(short), None, "{short:?}");
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let tag = |n: u8| PeerTag::from_hash([n; 8]);
        let slots = [1, 2].map(|n| (Slot::new(n).unwrap(), tag(n as u8 + 7)));
        let card = RelayCard::new(GroupTag::default(), Epoch(0), slots);
        let text = "addresses = []\n[[member]]\nslot = 1\nprefixes = [\"0.0.0.0/0\"]\n\
             [[member]]\nslot = 2\nprefixes = [\"10.9.0.0/16\"]\n";
        let mesh: MeshConfig = toml::from_str(text).unwrap();
        let behind = PrefixTable::new(&mesh, &card);
        assert_eq!(behind.member(IpAddr::from([10, 9, 3, 4])), Some(tag(9)));
        assert_eq!(behind.member(IpAddr::from([10, 8, 3, 4])), Some(tag(8)));
        assert_eq!(behind.member("fd00::1".parse().unwrap()), None);
        // The addresses of a slot that is no member are nobody's, not those of a shorter prefix.
        let other: MeshConfig = toml::from_str(&text.replace("slot = 2", "slot = 3")).unwrap();
        let behind = PrefixTable::new(&other, &card);
        assert_eq!(
            (behind.awaited(), behind.member(IpAddr::from([10, 9, 3, 4]))),
            (&[3][..], None)
        );
        assert_eq!(behind.member(IpAddr::from([10, 8, 3, 4])), Some(tag(8)));
    }
}
