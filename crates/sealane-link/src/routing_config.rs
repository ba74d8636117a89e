//! The part of a configuration that has a machine find its neighbours and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sealane_frame::FRAGMENT_HEADER_BYTES;
use sealane_mesh::limits::MIN_FULL_MTU_BYTES;
use sealane_mesh::{HOP_SEAL_BYTES, MachineRole, MeshMedium};
use sealane_message::InputError;
use serde::Deserialize;

use crate::LinkError;
use crate::config::{IPV6_PACKET_BYTES, LinkConfig, LinkWire, SEALED_PACKET_BYTES};

/// The machine of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingConfig {
    /// The key folder of this machine, as seen from the folder of the file; an end has one already.
    pub keys: Option<String>,
    /// The name of the mesh's group in that folder.
    pub group: String,
    /// The machine's role for the others.
    #[serde(default)]
    pub role: RoutingRole,
    /// It sleeps between its hellos, so that neighbours keep its frames until then.
    #[serde(default)]
    pub sleeps: bool,
}

/// The role of a machine for the others of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoutingRole {
    /// A way out, which tells others what came to it.
    Gateway,
    /// Others find routes to it.
    #[default]
    Member,
    /// Nobody finds a route to it.
    Quiet,
}

/// How neighbours are found on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkDiscovery {
    /// The kind of link, as the mesh sees it.
    pub medium: LinkMedium,
    /// Where all machines of a link over UDP are reached.
    pub multicast: Option<SocketAddr>,
}

/// The kind of a link, as the mesh sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum LinkMedium {
    /// A wire: whole frames, as fast as they come.
    #[default]
    #[serde(rename = "wire")]
    Wire,
    /// IEEE 802.11p at 6 Mbit/s.
    #[serde(rename = "11p")]
    Dot11p,
    /// LoRa at spreading factor 7, one percent of the time.
    #[serde(rename = "lora-sf7")]
    LoraSf7,
    /// A connection of Bluetooth LE with an MTU of 23.
    #[serde(rename = "ble-23")]
    Ble23,
    /// The same with an MTU of 185.
    #[serde(rename = "ble-185")]
    Ble185,
    /// The same with an MTU of 247.
    #[serde(rename = "ble-247")]
    Ble247,
}

/// The group of machines that find each other over IPv4 where the configuration names no other:
/// the scope is that of an organisation (RFC 2365).
pub const USUAL_MULTICAST_V4: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 192, 83, 76), 9192);
/// The same over IPv6, on one link (RFC 4291 §2.7).
pub const USUAL_MULTICAST_V6: (Ipv6Addr, u16) =
    (Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x534c), 9192);
/// The bytes of a connection of Bluetooth LE that its own protocols take of an MTU.
const ATT_BYTES: usize = 3;
/// Parts of a frame that a neighbour can ask for again.
const REPAIRED_PARTS: usize = u64::BITS as usize;
/// The bytes before a unit of a radio over Ethernet: its length, since cards put zeros behind it.
pub(crate) const LENGTH_BYTES: usize = 2;

impl RoutingConfig {
    /// The checks that need no keys.
    pub(crate) fn check(&self) -> Result<(), LinkError> {
        match self.group.is_empty() {
            true => Err(LinkError::ConfigValue("routing.group is empty".to_owned())),
            false => Ok(()),
        }
    }

    pub(crate) fn role(&self) -> MachineRole {
        match self.role {
            RoutingRole::Gateway => MachineRole::Gateway,
            RoutingRole::Member => MachineRole::Member,
            RoutingRole::Quiet => MachineRole::Quiet,
        }
    }
}

impl LinkMedium {
    /// The medium's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            LinkMedium::Wire => "wire",
            LinkMedium::Dot11p => "11p",
            LinkMedium::LoraSf7 => "lora-sf7",
            LinkMedium::Ble23 => "ble-23",
            LinkMedium::Ble185 => "ble-185",
            LinkMedium::Ble247 => "ble-247",
        }
    }

    /// The medium as the mesh has to know it, where the link below carries so many bytes at once.
    fn medium(self, unit_bytes: usize) -> MeshMedium {
        match self {
            LinkMedium::Wire => MeshMedium::wire(unit_bytes),
            LinkMedium::Dot11p => {
                MeshMedium { mtu: MeshMedium::dot11p().mtu.min(unit_bytes), ..MeshMedium::dot11p() }
            }
            LinkMedium::LoraSf7 => MeshMedium::lora_sf7(),
            // The attribute protocol takes three bytes of each MTU (Bluetooth Core, Vol. 3, Part
            // F).
            LinkMedium::Ble23 => MeshMedium::ble(23 - ATT_BYTES),
            LinkMedium::Ble185 => MeshMedium::ble(185 - ATT_BYTES),
            LinkMedium::Ble247 => MeshMedium::ble(247 - ATT_BYTES),
        }
    }
}

impl LinkConfig {
    /// The bytes that stand before each unit of a radio.
    pub(crate) fn length_bytes(&self) -> usize {
        let is_padded = matches!(self.wire, LinkWire::Ethernet(_));
        if self.is_radio() && is_padded { LENGTH_BYTES } else { 0 }
    }

    /// How long the packets of an end may be there. A radio splits them; whoever misses parts can
    /// ask for the first 64 of a frame again (`spec/mesh.md`, *Parts*), so that more are no use.
    pub(crate) fn packet_room(&self) -> PacketRoom {
        let radio = self.mesh_medium().filter(|_| self.is_radio());
        let Some(MeshMedium { mtu, .. }) = radio else {
            let usual = self.unit_bytes().saturating_sub(SEALED_PACKET_BYTES);
            return PacketRoom { usual, most: usize::from(u16::MAX) };
        };
        let around = SEALED_PACKET_BYTES + HOP_SEAL_BYTES;
        let parts = REPAIRED_PARTS * mtu.saturating_sub(FRAGMENT_HEADER_BYTES);
        let most = parts.saturating_sub(around).min(usize::from(u16::MAX));
        let at_once = mtu.saturating_sub(around);
        // RFC 8200 §5: a link below 1,280 bytes has to split packets below IP. So a radio splits
        // them.
        PacketRoom { usual: at_once.max(IPV6_PACKET_BYTES).min(most), most }
    }

    /// The medium as the mesh has to know it, if neighbours are found on the link.
    pub fn mesh_medium(&self) -> Option<MeshMedium> {
        let discovery = self.discovery?;
        Some(discovery.medium.medium(self.unit_bytes().saturating_sub(self.length_bytes())))
    }
}

/// How long the packets of an end may be on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketRoom {
    /// The length that suits the link where nothing else is said.
    pub(crate) usual: usize,
    /// The most that it carries at all.
    pub(crate) most: usize,
}

/// The keys of a link that say how neighbours are found, as they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiscoveryText {
    pub(crate) discover: Option<bool>,
    pub(crate) multicast: Option<SocketAddr>,
    pub(crate) medium: LinkMedium,
}

impl DiscoveryText {
    /// How neighbours are found on a link, or what cannot be.
    pub(crate) fn of(self, link: &LinkConfig) -> Result<Option<LinkDiscovery>, InputError> {
        let is_radio = self.medium != LinkMedium::Wire;
        // Neighbours of a radio are only found. A radio without discovery would reach nobody.
        if is_radio && self.discover == Some(false) {
            return Err(
                format!("medium = `{}` goes with discover = true", self.medium.name()).into()
            );
        }
        if !is_radio && self.discover != Some(true) {
            return match self.multicast {
                Some(_) => Err("multicast goes with discover = true".into()),
                None => Ok(None),
            };
        }
        let multicast = self.multicast(&link.wire)?;
        let discovery = LinkDiscovery { medium: self.medium, multicast };
        let with = LinkConfig { discovery: Some(discovery), ..link.clone() };
        // The length is counted with discovery in place, since only a radio over Ethernet has a
        // length before each unit.
        let carried = with.unit_bytes().saturating_sub(with.length_bytes());
        let least = match self.medium {
            LinkMedium::Wire => MIN_FULL_MTU_BYTES,
            LinkMedium::Dot11p => MIN_FULL_MTU_BYTES,
            other => other.medium(carried).mtu,
        };
        if carried < least {
            let name = self.medium.name();
            return Err(format!("mtu = {} is too little for medium = `{name}`", link.mtu).into());
        }
        Ok(Some(discovery))
    }

    fn multicast(self, wire: &LinkWire) -> Result<Option<SocketAddr>, InputError> {
        let LinkWire::Udp(own) = wire else {
            return match self.multicast {
                Some(_) => Err("multicast is for links over udp".into()),
                None => Ok(None),
            };
        };
        // A group is joined on one interface, and an unspecified address names none.
        if own.ip().is_unspecified() {
            return Err(format!(
                "udp = `{own}`: to discover it needs the address of one interface"
            )
            .into());
        }
        let usual = match own.ip() {
            IpAddr::V4(_) => SocketAddr::from(USUAL_MULTICAST_V4),
            IpAddr::V6(_) => SocketAddr::from(USUAL_MULTICAST_V6),
        };
        let group = self.multicast.unwrap_or(usual);
        // The link's own socket sends to the group. It cannot send to the other family.
        if !group.ip().is_multicast() || group.is_ipv4() != own.is_ipv4() || group.port() == 0 {
            return Err(
                format!("multicast = `{group}` is no multicast address of this link").into()
            );
        }
        Ok(Some(group))
    }
}
