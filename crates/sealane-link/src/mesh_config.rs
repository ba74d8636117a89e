//! The part of a configuration that gives a machine an interface.

use std::net::IpAddr;
use std::str::FromStr;

use sealane_message::InputError;
use sealane_seal::Slot;
use serde::{Deserialize, Deserializer};

use crate::LinkError;
use crate::limits::{MAX_INTERFACE_NAME_BYTES, MAX_PREFIXES};

/// An end's interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeshConfig {
    /// The interface's name.
    #[serde(default = "usual_interface")]
    pub interface: String,
    /// Its addresses; at most one of IPv4.
    pub addresses: Vec<IpPrefix>,
    /// The largest packet; as the links allow where it is not said.
    pub mtu: Option<u16>,
    /// The kind of traffic that goes through it.
    #[serde(default)]
    pub kind: InterfaceKind,
    /// Whether the kernel gives and takes many segments as one packet.
    #[serde(default = "usual_offload")]
    pub offload: bool,
    /// Which addresses are behind which member.
    #[serde(default, rename = "member")]
    pub members: Vec<MemberConfig>,
}

/// The kind of traffic that goes through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterfaceKind {
    /// IP packets.
    #[default]
    Tun,
    /// Ethernet frames, of which the IP packets travel.
    Tap,
}

/// The prefixes behind a member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberConfig {
    /// The member.
    pub slot: u16,
    /// The addresses that it answers for: packets to them go to it, and of what comes from it only
    /// packets from them are taken.
    pub prefixes: Vec<IpPrefix>,
}

/// An IP address and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPrefix {
    /// The address, as it was written.
    pub address: IpAddr,
    /// The bits.
    pub bits: u8,
}

impl MeshConfig {
    /// Whether it describes the same interface, whoever is behind it.
    pub fn has_interface_of(&self, other: &MeshConfig) -> bool {
        // Members and prefixes may change at SIGHUP, the interface may not: programs hold its
        // addresses.
        let told = |mesh: &MeshConfig| {
            let MeshConfig { interface, addresses, mtu, kind, offload, .. } = mesh.clone();
            (interface, addresses, mtu, kind, offload)
        };
        told(self) == told(other)
    }

    /// The checks that need no other part of the configuration.
    pub(crate) fn check(&self) -> Result<(), LinkError> {
        let value = |what: String| Err(LinkError::ConfigValue(format!("mesh: {what}")));
        let count: usize = self.members.iter().map(|member| member.prefixes.len()).sum();
        if count > MAX_PREFIXES {
            return value(format!("{count} prefixes are more than {MAX_PREFIXES}"));
        }
        if self.interface.is_empty() || self.interface.len() > MAX_INTERFACE_NAME_BYTES {
            return value(format!("interface `{}`: 1 to 15 bytes", self.interface));
        }
        if self.addresses.iter().filter(|prefix| prefix.address.is_ipv4()).count() > 1 {
            return value("addresses: more than one is of IPv4".to_owned());
        }
        for (index, member) in self.members.iter().enumerate() {
            if Slot::new(member.slot).is_none() {
                return value(format!("slot {}", member.slot));
            }
            let before = self.members.iter().take(index).flat_map(|member| &member.prefixes);
            for prefix in &member.prefixes {
                // With one prefix behind two members, the order of the file would decide who may
                // speak for it.
                if before.clone().any(|other| other.is_same(prefix)) {
                    return value(format!("{prefix} is behind two members"));
                }
            }
        }
        Ok(())
    }
}

impl IpPrefix {
    /// Whether an address lies within it.
    pub fn holds(&self, address: IpAddr) -> bool {
        use IpAddr::{V4, V6};
        let (own, other, whole) = match (self.address, address) {
            (V4(own), V4(other)) => (u128::from(own.to_bits()), u128::from(other.to_bits()), 32),
            (V6(own), V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        // A shift by all bits leaves nothing to compare.
        (own ^ other).checked_shr(whole - u32::from(self.bits)).unwrap_or(0) == 0
    }

    fn is_same(&self, other: &IpPrefix) -> bool {
        self.bits == other.bits && self.holds(other.address)
    }
}

impl std::fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for IpPrefix {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let none = || {
            InputError::from(format!(
                "`{text}` is no address with its bits, for example 10.9.0.1/24"
            ))
        };
        let (address, bits) = text.split_once('/').ok_or_else(none)?;
        let address: IpAddr = address.parse().map_err(|_| none())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(none)?;
        Ok(Self { address, bits })
    }
}

impl<'de> Deserialize<'de> for IpPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn usual_interface() -> String {
    "sealane0".to_owned()
}

fn usual_offload() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(text: &str) -> Result<MeshConfig, String> {
        let mesh: MeshConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        mesh.check().map_err(|error| error.to_string()).map(|()| mesh)
    }

    const TEXT: &str = "addresses = [\"10.9.0.1/24\", \"fd00::1/64\"]\n\
         [[member]]\nslot = 1\nprefixes = [\"10.9.0.2/32\", \"10.1.0.0/16\"]\n\
         [[member]]\nslot = 2\nprefixes = [\"10.9.0.3/32\"]\n";

    #[test]
    fn each_wrong_value_is_named() {
        assert_eq!(mesh(TEXT).unwrap().interface, "sealane0");
        for (from, to, what) in [
            ("10.9.0.1/24", "10.9.0.1/33", "10.9.0.1/33"),
            ("10.9.0.2/32", "10.9.0.2", "for example"),
            ("fd00::1/64", "10.8.0.1/24", "more than one"),
            ("10.9.0.3/32", "10.9.0.2/32", "10.9.0.2/32 is behind two"),
            ("10.9.0.3/32", "10.1.7.7/16", "10.1.7.7/16 is behind two"),
            ("slot = 2", "slot = 1024", "slot 1024"),
            ("slot = 2", "slots = 2", "slots"),
            ("addresses", "kind = \"top\"\naddresses", "tap"),
            ("addresses", "interface = \"a-name-of-16-byte\"\naddresses", "1 to 15"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = mesh(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(what), "{what}: {error}");
        }
    }

    #[test]
    fn a_prefix_holds_what_begins_like_it() {
        let holds = |prefix: &str, address: &str| {
            prefix.parse::<IpPrefix>().unwrap().holds(address.parse().unwrap())
        };
        assert!(holds("10.9.0.0/24", "10.9.0.255") && !holds("10.9.0.0/24", "10.9.1.0"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("10.9.0.1/32", "10.9.0.1") && !holds("10.9.0.1/32", "10.9.0.0"));
        assert!(holds("::/0", "fd00::1") && holds("fd00::/64", "fd00::ffff:1"));
        assert!(!holds("fd00::/64", "fd00:0:0:1::1"));
    }
}
