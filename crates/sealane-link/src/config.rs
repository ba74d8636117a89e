//! The configuration of a relay: `spec/link.md`, section *Configuration*.

use std::fmt;
use std::net::SocketAddr;

use sealane_frame::HEAD_ROOM_BYTES;
use sealane_message::InputError;
use sealane_seal::Slot;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use crate::LinkError;
use crate::address::LinkAddress;
use crate::limits::{
    MAX_LINK_CONFIG_BYTES, MAX_NEIGHBOURS, MAX_RELAY_LINKS, MAX_ROUTES, MAX_UNIT_BYTES,
    MIN_UNIT_BYTES, NEIGHBOUR_FRAMES_PER_SECOND,
};
use crate::memory::MemoryNet;
use crate::mesh_config::MeshConfig;
use crate::routing_config::{DiscoveryText, LinkDiscovery, LinkMedium, RoutingConfig};
use crate::tag;

/// A configuration that is right in itself. Tags and slots are looked up on the cards later.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    version: u8,
    /// The own address: needed by a relay, since a member has its own.
    pub tag: Option<RouteAddress>,
    /// Files of relay cards, as they are written in the configuration.
    #[serde(default)]
    pub cards: Vec<String>,
    /// The links.
    #[serde(default, rename = "link")]
    pub links: Vec<LinkConfig>,
    /// The machines at the other end of them.
    #[serde(default, rename = "neighbour")]
    pub neighbours: Vec<NeighbourConfig>,
    /// Which neighbour takes what is for whom.
    #[serde(default, rename = "route")]
    pub routes: Vec<RouteConfig>,
    /// The machine that finds neighbours and routes; without it, those of this file are all.
    pub routing: Option<RoutingConfig>,
    /// Where this machine tells how it is: an address of its own that no other machine reaches.
    pub status: Option<SocketAddr>,
    /// The interface of an end; relays have none.
    pub mesh: Option<MeshConfig>,
    #[expect(dead_code, reason = "a table of the machine beside the links, which reads it itself")]
    documents: Option<IgnoredAny>,
    #[expect(dead_code, reason = "a table of the machine beside the links, which reads it itself")]
    gateway: Option<IgnoredAny>,
    /// Where links in memory lead: set by a program, and by no file.
    #[serde(skip)]
    pub memory: Option<MemoryNet>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "LinkText")]
pub struct LinkConfig {
    /// The link's name here.
    pub name: String,
    /// The kind of wire.
    pub wire: LinkWire,
    /// The bytes that the wire below carries at once, headers of IP and UDP included.
    pub mtu: u16,
    /// How neighbours are found there, if they are.
    pub discovery: Option<LinkDiscovery>,
}

/// The kind of wire below a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkWire {
    /// Datagrams: the own address.
    Udp(SocketAddr),
    /// A network card: the name of the interface.
    Ethernet(String),
    /// A port of this process.
    Memory(u32),
}

/// A link as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    name: String,
    udp: Option<SocketAddr>,
    ethernet: Option<String>,
    memory: Option<u32>,
    #[serde(default = "usual_mtu")]
    mtu: u16,
    discover: Option<bool>,
    multicast: Option<SocketAddr>,
    #[serde(default)]
    medium: LinkMedium,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourConfig {
    /// The neighbour's name here; routes name it.
    pub name: String,
    /// Its address in frames.
    pub tag: RouteAddress,
    /// The link that it is on.
    pub link: String,
    /// Its address there.
    pub address: LinkAddress,
    /// How many frames are taken of it in a second.
    #[serde(default = "usual_quota")]
    pub frames_per_second: u32,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The target of the route.
    pub to: RouteTarget,
    /// The neighbour that takes it.
    pub via: String,
}

/// Reads tables of a configuration, as far as `T` knows them: [`Config`] knows those of links and
/// refuses strange ones, and a program beside them reads its own.
///
/// # Errors
///
/// [`LinkError::ConfigSyntax`], which names the line.
pub fn read_tables<T: DeserializeOwned>(text: &str) -> Result<T, LinkError> {
    // The parser's work grows with the text, so that the bound comes first.
    if text.len() > MAX_LINK_CONFIG_BYTES {
        let what = format!("the configuration is longer than {MAX_LINK_CONFIG_BYTES} bytes");
        return Err(LinkError::ConfigSyntax(what));
    }
    toml::from_str(text).map_err(|error| LinkError::ConfigSyntax(tag::said(text, &error)))
}

/// An address in frames, by itself or by a slot of the one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAddress {
    /// 16 hexadecimal digits.
    Tag(sealane_frame::PeerTag),
    /// `slot 3`.
    Slot(Slot),
}

/// The target of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteTarget {
    /// One member.
    One(RouteAddress),
    /// All members that no other route names: `*`.
    Rest,
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigSyntax`], [`LinkError::ConfigValue`].
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let config: Self = read_tables(text)?;
        config.check()?;
        Ok(config)
    }

    /// The largest packet of an end: as its configuration says, or what suits its narrowest link.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`] if there is no link, or one that does not carry such packets.
    pub fn packet_bytes(&self) -> Result<u16, LinkError> {
        let value = |what: String| LinkError::ConfigValue(what);
        // A packet may leave by any link, and routes change while the interface's length does not.
        let usual = self.links.iter().map(|link| link.packet_room().usual).min();
        let usual = usual.ok_or_else(|| value("[[link]] is missing".to_owned()))?;
        let asked = self.mesh.as_ref().and_then(|mesh| mesh.mtu);
        let bytes = asked.unwrap_or(u16::try_from(usual).unwrap_or(u16::MAX));
        // A longer packet would have more parts than a neighbour can ask for again, and would be
        // lost for good.
        let narrow = self.links.iter().find(|link| link.packet_room().most < usize::from(bytes));
        if let Some(link) = narrow {
            let (name, most) = (&link.name, link.packet_room().most);
            return Err(value(format!(
                "mesh.mtu = {bytes}: link `{name}` carries packets of at most {most} bytes"
            )));
        }
        let addresses = self.mesh.iter().flat_map(|mesh| &mesh.addresses);
        let mut ipv6 = addresses.filter(|prefix| prefix.address.is_ipv6());
        match ipv6.next().filter(|_| usize::from(bytes) < IPV6_PACKET_BYTES) {
            Some(prefix) => Err(value(format!(
                "mesh.addresses: {prefix} needs an mtu of {IPV6_PACKET_BYTES}, and it is {bytes}"
            ))),
            None => Ok(bytes),
        }
    }

    /// The checks that need no cards.
    fn check(&self) -> Result<(), LinkError> {
        let value = |what: String| Err(LinkError::ConfigValue(what));
        if self.version != VERSION {
            return value(format!("version = {} is not {VERSION}", self.version));
        }
        let counts = [
            ("link", self.links.len(), MAX_RELAY_LINKS),
            ("neighbour", self.neighbours.len(), MAX_NEIGHBOURS),
            ("route", self.routes.len(), MAX_ROUTES),
        ];
        if let Some((what, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            return value(format!("{count} of [[{what}]] are more than {most}"));
        }
        // The status has no access control of its own. Loopback is its only bound.
        if let Some(status) = self.status.filter(|status| !status.ip().is_loopback()) {
            return value(format!("status = `{status}`: other machines reach it; take 127.0.0.1"));
        }
        self.mesh.as_ref().map_or(Ok(()), MeshConfig::check)?;
        self.routing.as_ref().map_or(Ok(()), RoutingConfig::check)?;
        for (index, link) in self.links.iter().enumerate() {
            if self.links.iter().take(index).any(|other| other.name == link.name) {
                return value(format!("two links are called `{}`", link.name));
            }
            if self.links.iter().take(index).any(|other| other.wire == link.wire) {
                return value(format!("link `{}`: another one has {}", link.name, link.wire));
            }
            if link.discovery.is_some() && self.routing.is_none() {
                return value(format!(
                    "link `{}`: it discovers, but [routing] is missing",
                    link.name
                ));
            }
            if !(MIN_UNIT_BYTES..=MAX_UNIT_BYTES).contains(&link.unit_bytes()) {
                return value(format!("link `{}`: mtu = {}", link.name, link.mtu));
            }
        }
        self.neighbours
            .iter()
            .enumerate()
            .try_for_each(|(index, one)| self.neighbour(index, one))?;
        // A file whose interface does not fit its links is refused where it is read, not when the
        // interface is made.
        if self.mesh.is_some() && !self.links.is_empty() {
            self.packet_bytes()?;
        }
        Ok(())
    }

    fn neighbour(&self, index: usize, one: &NeighbourConfig) -> Result<(), LinkError> {
        let value = |what: String| Err(LinkError::ConfigValue(what));
        let Some(link) = self.links.iter().find(|link| link.name == one.link) else {
            return value(format!("neighbour `{}`: no link is called `{}`", one.name, one.link));
        };
        if !link.wire.reaches(one.address) {
            let (name, link) = (&one.name, &link.name);
            return value(format!(
                "neighbour `{name}`: link `{link}` has addresses of another kind"
            ));
        }
        // Units of a radio travel within hop seals, and only neighbours that were found have one.
        if link.is_radio() {
            let (name, link) = (&one.name, &link.name);
            return value(format!(
                "neighbour `{name}`: link `{link}` is a radio, where neighbours are found"
            ));
        }
        if one.frames_per_second == 0 {
            return value(format!("neighbour `{}`: frames_per_second = 0", one.name));
        }
        for other in self.neighbours.iter().take(index) {
            if other.name == one.name {
                return value(format!("two neighbours are called `{}`", one.name));
            }
            // The sender's address is all by which a link knows a neighbour, so that it has to be
            // unique there.
            if (&other.link, other.address) == (&one.link, one.address) {
                return value(format!("`{}` and `{}` have one address", other.name, one.name));
            }
        }
        Ok(())
    }
}

impl LinkConfig {
    /// A link on which no neighbours are found.
    pub fn new(name: &str, wire: LinkWire, mtu: u16) -> Self {
        Self { name: name.to_owned(), wire, mtu, discovery: None }
    }

    /// Whether every unit there passes the machine that routes.
    pub fn is_radio(&self) -> bool {
        self.discovery.is_some_and(|discovery| discovery.medium != LinkMedium::Wire)
    }

    /// The bytes that the link carries at once: those of the wire, less the headers of IP and UDP.
    pub fn unit_bytes(&self) -> usize {
        usize::from(self.mtu).saturating_sub(self.wire.header_bytes())
    }
}

/// The IP below a UDP link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpHeader {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

impl IpHeader {
    /// The bytes of its header, without options, and of that of UDP (RFC 768).
    pub const fn with_udp_bytes(self) -> usize {
        match self {
            IpHeader::V4 => 20 + 8,
            IpHeader::V6 => 40 + 8,
        }
    }
}

impl LinkWire {
    /// The headers around a unit that count for the MTU of the wire below.
    pub const fn header_bytes(&self) -> usize {
        match self {
            LinkWire::Udp(SocketAddr::V4(_)) => IpHeader::V4.with_udp_bytes(),
            LinkWire::Udp(SocketAddr::V6(_)) => IpHeader::V6.with_udp_bytes(),
            LinkWire::Ethernet(_) | LinkWire::Memory(_) => 0,
        }
    }

    /// The wire's name in the configuration.
    pub fn kind(&self) -> &'static str {
        match self {
            LinkWire::Udp(_) => "udp",
            LinkWire::Ethernet(_) => "ethernet",
            LinkWire::Memory(_) => "memory",
        }
    }

    /// Whether an address is one of this kind.
    fn reaches(&self, address: LinkAddress) -> bool {
        match (self, address) {
            (LinkWire::Udp(own), LinkAddress::Udp(other)) => own.is_ipv4() == other.is_ipv4(),
            (LinkWire::Ethernet(_), LinkAddress::Ethernet(_))
            | (LinkWire::Memory(_), LinkAddress::Memory(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Display for LinkWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkWire::Udp(address) => write!(f, "{address}"),
            LinkWire::Ethernet(interface) => f.write_str(interface),
            LinkWire::Memory(port) => write!(f, "memory {port}"),
        }
    }
}

impl TryFrom<LinkText> for LinkConfig {
    type Error = InputError;

    fn try_from(text: LinkText) -> Result<Self, InputError> {
        let LinkText { name, udp, ethernet, memory, mtu, discover, multicast, medium } = text;
        let wire = match (udp, ethernet, memory) {
            (Some(address), None, None) => LinkWire::Udp(address),
            (None, Some(interface), None) => LinkWire::Ethernet(interface),
            (None, None, Some(port)) => LinkWire::Memory(port),
            _ => return Err(format!("link `{name}`: it has either `udp` or `ethernet`").into()),
        };
        let mut link = LinkConfig { name, wire, mtu, discovery: None };
        let asked = DiscoveryText { discover, multicast, medium };
        link.discovery = asked.of(&link).map_err(|what| format!("link `{}`: {what}", link.name))?;
        Ok(link)
    }
}

impl std::str::FromStr for RouteAddress {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let slot = text.strip_prefix("slot ").and_then(|number| number.parse().ok());
        let slot = slot.and_then(Slot::new).map(RouteAddress::Slot);
        let none = || {
            let cause = format!("`{text}` is no tag of 16 hexadecimal digits, and no `slot 3`");
            InputError::from(cause)
        };
        slot.or_else(|| tag::from_hex(text).map(RouteAddress::Tag)).ok_or_else(none)
    }
}

impl std::str::FromStr for RouteTarget {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        if text == "*" { Ok(RouteTarget::Rest) } else { text.parse().map(RouteTarget::One) }
    }
}

impl std::fmt::Display for RouteAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RouteAddress::Tag(tag) => write!(f, "{tag}"),
            RouteAddress::Slot(slot) => write!(f, "slot {}", slot.number()),
        }
    }
}

impl std::fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RouteTarget::One(who) => write!(f, "{who}"),
            RouteTarget::Rest => f.write_str("*"),
        }
    }
}

/// Types that are texts of their own in a configuration.
macro_rules! of_text {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

of_text!(RouteAddress, RouteTarget);

fn usual_mtu() -> u16 {
    1500
}

fn usual_quota() -> u32 {
    NEIGHBOUR_FRAMES_PER_SECOND
}

/// The bytes around a packet that is sealed: the longest headers, and the tag.
pub const SEALED_PACKET_BYTES: usize = HEAD_ROOM_BYTES + sealane_seal::limits::TAG_BYTES;
/// The least MTU of IPv6 (RFC 8200 §5).
pub(crate) const IPV6_PACKET_BYTES: usize = 1280;
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
version = 1
tag = "a100000000000001"
cards = ["fleet.card"]

[[link]]
name = "road"
udp = "10.0.1.1:9190"

[[neighbour]]
name = "car"
tag = "slot 1"
link = "road"
address = "10.0.1.2:9190"

[[neighbour]]
name = "gateway"
tag = "a100000000000002"
link = "road"
address = "10.0.1.3:9190"
frames_per_second = 10

[[link]]
name = "wire"
ethernet = "eth1"

[[neighbour]]
name = "next"
tag = "a100000000000003"
link = "wire"
address = "02:00:00:00:00:01"

[[route]]
to = "slot 1"
via = "car"

[[route]]
to = "*"
via = "gateway"
"#;

    #[test]
    fn a_configuration_is_read() {
        let config = Config::parse(TEXT).unwrap();
        assert_eq!(config.links[0].unit_bytes(), 1472);
        assert_eq!(config.links[1].unit_bytes(), 1500);
        assert_eq!(config.links[1].wire, LinkWire::Ethernet("eth1".to_owned()));
        assert_eq!(config.neighbours[2].address, LinkAddress::Ethernet([2, 0, 0, 0, 0, 1]));
        assert_eq!(config.neighbours[1].frames_per_second, 10);
        assert_eq!(config.routes[1].to, RouteTarget::Rest);
        assert_eq!(config.packet_bytes().unwrap(), 1472 - 89);
        assert_eq!(config.tag, Some("a100000000000001".parse().unwrap()));
    }

    /// An end with one link of that medium, and this mtu of its interface.
    fn packet_bytes(medium: &str, mesh: &str) -> Result<u16, String> {
        let text = format!(
            "version = 1\n[routing]\ngroup = \"g\"\n[[link]]\nname = \"air\"\n\
             ethernet = \"e\"\nmedium = \"{medium}\"\n[mesh]\n{mesh}\n"
        );
        let read = Config::parse(&text).and_then(|config| config.packet_bytes());
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn packets_are_as_long_as_the_narrowest_link_carries_them() {
        let ipv4 = "addresses = [\"10.9.0.1/24\"]";
        for (medium, bytes) in [
            // At once, within a hop seal, behind the length that Ethernet needs.
            ("11p", 1500 - 2 - 10 - 89),
            // In parts, as a packet of IPv6 needs it.
            ("lora-sf7", 1280),
            ("ble-185", 1280),
            // In all the parts that can be asked for again.
            ("ble-23", 64 * (20 - 8) - 10 - 89),
        ] {
            assert_eq!(packet_bytes(medium, ipv4), Ok(bytes), "{medium}");
        }
        let with = |mtu: usize| format!("{ipv4}\nmtu = {mtu}");
        assert_eq!(packet_bytes("ble-23", &with(669)), Ok(669));
        let error = packet_bytes("ble-23", &with(670)).unwrap_err();
        assert!(error.contains("`air` carries packets of at most 669 bytes"), "{error}");
        assert_eq!(packet_bytes("ble-185", &with(9000)), Ok(9000));
        let ipv6 = "addresses = [\"fd00::1/64\"]";
        assert_eq!(packet_bytes("ble-185", ipv6), Ok(1280));
        let error = packet_bytes("ble-23", ipv6).unwrap_err();
        assert!(error.contains("fd00::1/64 needs an mtu of 1280, and it is 669"), "{error}");
    }

    #[test]
    fn each_wrong_value_is_named() {
        for (from, to, what) in [
            ("version = 1", "version = 1\nstatus = \"10.0.1.1:9191\"", "other machines reach it"),
            ("version = 1", "version = 2", "version = 2"),
            ("tag = \"a1", "tog = \"a1", "tog"),
            ("a100000000000001", "00000000000001", "no tag"),
            ("udp = \"10.0.1.1:9190\"", "udp = \"[fd00::1]:1\"", "another kind"),
            ("udp = \"10.0.1.1:9190\"", "udp = \"10.0.1.1:9190\"\nmtu = 100", "mtu = 100"),
            ("link = \"road\"", "link = \"rail\"", "`rail`"),
            ("ethernet = \"eth1\"", "", "either"),
            ("ethernet = \"eth1\"", "ethernet = \"eth1\"\nudp = \"10.0.0.1:1\"", "either"),
            ("02:00:00:00:00:01", "10.0.1.4:9190", "another kind"),
            ("02:00:00:00:00:01", "03:00:00:00:00:01", "no address"),
            ("name = \"gateway\"", "name = \"car\"", "two neighbours"),
            ("10.0.1.3", "10.0.1.2", "one address"),
            ("frames_per_second = 10", "frames_per_second = 0", "= 0"),
            ("frames_per_second = 10", "frames_per_seconds = 9", "frames_per_seconds"),
            ("slot 1", "slot 1024", "slot 1024"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = Config::parse(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{what}: {error}");
        }
        let discover = "udp = \"10.0.1.1:9190\"\ndiscover = true";
        let routing = "version = 1\n[routing]\ngroup = \"roads\"\n[[link]]\nname = \"l\"\n";
        for (link, what) in [
            ("udp = \"10.0.1.1:9190\"\nmedium = \"11q\"", "11q"),
            ("udp = \"0.0.0.0:9190\"\ndiscover = true", "one interface"),
            ("udp = \"10.0.1.1:9190\"\nmulticast = \"239.1.1.1:1\"", "discover = true"),
            (&format!("{discover}\nmulticast = \"10.1.1.1:1\""), "no multicast address"),
            (&format!("{discover}\nmulticast = \"[ff12::1]:1\""), "no multicast address"),
            (&format!("{discover}\nmtu = 200"), "too little"),
            ("ethernet = \"e\"\nmedium = \"lora-sf7\"\nmtu = 223", "too little"),
            ("ethernet = \"e\"\ndiscover = false\nmedium = \"11p\"", "goes with"),
        ] {
            let error = Config::parse(&format!("{routing}{link}\n")).unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
        let without = format!("version = 1\n[[link]]\nname = \"l\"\n{discover}\n");
        assert!(Config::parse(&without).unwrap_err().to_string().contains("[routing] is missing"));
        assert!(Config::parse(&format!("{routing}{discover}\n")).is_ok());
        let radio = format!("{routing}ethernet = \"e\"\nmedium = \"lora-sf7\"\nmtu = 224\n");
        let config = Config::parse(&radio).unwrap();
        assert_eq!(config.links[0].mesh_medium().unwrap().mtu, 222);
        let neighbour = "[[neighbour]]\nname = \"n\"\ntag = \"slot 1\"\nlink = \"l\"\n\
             address = \"02:00:00:00:00:01\"\n";
        let error = Config::parse(&format!("{radio}{neighbour}")).unwrap_err().to_string();
        assert!(error.contains("neighbours are found"), "{error}");
        let link = "[[link]]\nname = \"l\"\nudp = \"10.0.0.1:1\"\n";
        let many = format!("version = 1\ntag = \"slot 1\"\n{}", link.repeat(MAX_RELAY_LINKS + 1));
        assert!(Config::parse(&many).unwrap_err().to_string().contains("17 of [[link]]"));
        let twice = format!("version = 1\ntag = \"slot 1\"\n{}", link.repeat(2));
        assert!(Config::parse(&twice).unwrap_err().to_string().contains("two links"));
        assert!(Config::parse(&"#".repeat(MAX_LINK_CONFIG_BYTES + 1)).is_err());
    }
}
