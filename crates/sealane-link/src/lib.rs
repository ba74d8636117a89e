//! Steps 5 and 6 of a message's way: *frame to wire*, and from wire to wire through relays.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                      ^^^^^    ^^^^^
//!   receive: 1 buffer of equal datagrams
//!   ┌─────────┬─────────┬─────────┬────┐      each: whose? whole? known? where to?
//!   │ frame   │ frame   │ frame   │ .. │      17 bytes of it are written anew
//!   └─────────┴─────────┴─────────┴────┘
//!   send: the same buffer, for each run of frames to one neighbour
//! ```
//!
//! A [`LinkRelay`] knows its own tag, its neighbours' addresses, the routes of its [`Config`], and
//! what a [`RelayCard`] tells of each group: tags, no key and no name. It checks what can be
//! checked without keys, and drops the rest, each frame for a [`DropReason`] that is counted. A
//! member that [joins](LinkRelay::join) relays too; it takes the frames that are for it, sends its
//! own by a [`RelayPort`], and has an interface, [`TunInterface`]. `spec/link.md` is the
//! specification.
//!
//! ```no_run
//! use sealane_link::{Config, LinkRelay, RelayCard};
//!
//! let config = Config::parse(&std::fs::read_to_string("relay.toml")?)?;
//! let card = RelayCard::parse(&std::fs::read_to_string("fleet.card")?)?;
//! let relay = LinkRelay::start(&config, &[card])?;
//! println!("{} frames went on", relay.tally().forwarded.units);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod address;
mod bundle;
mod burst;
mod capture;
mod card;
mod config;
mod counters;
mod desk;
mod error;
mod ethernet;
mod everybody;
mod floods;
mod inbox;
mod judge;
pub mod limits;
mod link;
mod memory;
mod mesh_config;
mod metrics;
mod note;
mod offload;
mod outlet;
mod packet;
mod partial;
mod port;
mod quota;
mod relay;
mod reload;
mod routing;
mod routing_config;
mod status;
mod table;
mod tag;
mod tap;
mod traffic;
mod tun;
mod udp;
mod width;
mod worker;

pub use address::LinkAddress;
pub use bundle::SegmentBundle;
pub use burst::PacketBurst;
pub use capture::CaptureTally;
pub use card::RelayCard;
pub use config::{
    Config, IpHeader, LinkConfig, LinkWire, NeighbourConfig, RouteAddress, RouteConfig,
    RouteTarget, SEALED_PACKET_BYTES, read_tables,
};
pub use counters::{DropReason, FrameTally, UnitVolume};
pub use error::{ERRORS, LinkError};
pub use ethernet::{ETHER_TYPE, ETHERNET_HEADER_BYTES};
pub use inbox::{ArrivedBatch, LinkInbox};
pub use judge::{RelayJudge, RelayVerdict};
pub use link::{LinkReady, RelayLink, SentBytes};
pub use memory::{MemoryLink, MemoryNet};
pub use mesh_config::{InterfaceKind, IpPrefix, MemberConfig, MeshConfig};
pub use metrics::METRICS_KIND;
pub use note::LinkNote;
pub use packet::{PacketAddresses, PrefixTable};
pub use port::RelayPort;
pub use relay::{LinkRelay, RelayArrival, RelayBeside, RelayEnd, TakeArrival};
pub use reload::{ChangeCount, ConfigChange, ConfigReload, ReloadTally};
pub use routing::{
    AirTimeSpent, IntakeFull, RouteStatus, RoutingHandle, RoutingListener, RoutingNeighbour,
    RoutingSecrets, RoutingStatus, RoutingWay, TracedRoute, drops as mesh_drops, part_name,
};
pub use routing_config::{
    LinkDiscovery, LinkMedium, RoutingConfig, RoutingRole, USUAL_MULTICAST_V4, USUAL_MULTICAST_V6,
};
pub use status::{GroupStatus, RelayNeighbourStatus, RelayStatus, RelayWatch};
pub use table::ConfiguredRoute;
pub use traffic::NeighbourTally;
pub use tun::TunInterface;
