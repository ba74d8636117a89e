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
//! A [`Relay`] knows its own tag, its neighbours' addresses, the routes of its [`Config`], and what
//! a [`RelayCard`] tells of each group: tags, no key and no name. It checks what can be checked
//! without keys, and drops the rest, each frame for a [`Reason`] that is counted. A member that
//! [joins](Relay::join) relays too; it takes the frames that are for it, sends its own by a
//! [`Port`], and has an interface, [`Tun`]. `spec/link.md` is the specification.
//!
//! ```no_run
//! use sealane_link::{Config, Relay, RelayCard};
//!
//! let config = Config::parse(&std::fs::read_to_string("relay.toml")?)?;
//! let card = RelayCard::parse(&std::fs::read_to_string("fleet.card")?)?;
//! let relay = Relay::start(&config, &[card])?;
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

pub use address::Address;
pub use bundle::Bundle;
pub use burst::Burst;
pub use capture::CaptureTally;
pub use card::RelayCard;
pub use config::{
    Config, IpHeader, LinkConfig, NeighbourConfig, RouteConfig, SEALED_PACKET_BYTES, Target, Who,
    Wire, read_tables,
};
pub use counters::{Reason, Tally, Volume};
pub use error::{ERRORS, LinkError};
pub use ethernet::{ETHER_TYPE, ETHERNET_HEADER_BYTES};
pub use inbox::{Arrived, Inbox};
pub use judge::{Judge, Verdict};
pub use link::{Link, Ready, Sent};
pub use memory::{MemoryLink, MemoryNet};
pub use mesh_config::{InterfaceKind, MemberConfig, MeshConfig, Prefix};
pub use metrics::METRICS_KIND;
pub use note::Note;
pub use packet::{Behind, PacketAddresses};
pub use port::Port;
pub use relay::{Arrival, Beside, End, Relay, Take};
pub use reload::{Change, Difference, Reload, Reloads};
pub use routing::{
    Full, Listener, LocalInput, RouteStatus, Router, RoutingNeighbour, RoutingSecrets,
    RoutingStatus, RoutingWay, Spent, Traced, drops as mesh_drops, part_name,
};
pub use routing_config::{
    Discovery, LinkMedium, RoutingConfig, RoutingRole, USUAL_MULTICAST_V4, USUAL_MULTICAST_V6,
};
pub use status::{GroupStatus, NeighbourStatus, Status, Watch};
pub use table::Route;
pub use traffic::NeighbourTally;
pub use tun::Tun;
