//! Step 6 of a message's way: *frames find their way among machines that move*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                               ^^^^^
//!            ┌──────────── Mesh ────────────┐
//!  time,     │ neighbours ─► routes ─► table│ ─► units to send, at the machine's own pace
//!  units  ─► │ hop seals     floods  budget │ ─► frames for this machine
//!            └──────────────────────────────┘ ─► the table of a faster data path
//! ```
//!
//! A [`Mesh`] is one machine of a mesh. It takes what happens to it ([`MeshInput`]) with the time,
//! and gives what it wants done ([`MeshOutput`]). It finds neighbours by hellos, measures loss both
//! ways and round trips (RFC 9616), keeps routes free of loops (RFC 8966), leaves a next hop that
//! is silent or swallows frames, and sends on what is for everybody without drowning its channel.
//! `spec/mesh.md` is the specification.
//!
//! It keeps the orders of groups and gives them to neighbours that lack them, so that a removal
//! reaches machines that no hub reaches.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`: a simulator runs the same code as a
//! daemon.
//!
//! ```
//! use sealane_mesh::*;
//!
//! let provision = MeshProvision::new([7; 32], 2)?; // a group of simulations and tests
//! let keys = provision.keys(0, [1; 8], 1_000)?;
//! let mut mesh = Mesh::new(Config::default(), keys, MeshTime(0))?;
//! let up = MeshInput::Up { interface: InterfaceId(0), medium: MeshMedium::dot11p() };
//! mesh.take(MeshTime(0), up);
//! let said = std::iter::from_fn(|| mesh.next_output());
//! assert!(said.into_iter().any(|output| matches!(output, MeshOutput::Send { .. })));
//! assert!(mesh.next_wake().is_some());
//! # Ok::<(), MeshError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod budget;
mod bytes;
mod candidates;
mod config;
mod error;
mod exchange;
mod floods;
mod hello;
mod hop;
mod interface;
mod keys;
pub mod limits;
mod links;
mod mesh;
mod messages;
mod neighbour;
mod notice;
mod orders;
mod parts;
mod random;
mod reports;
mod routes;
mod slots;
mod strangers;
mod table;
mod time;
mod voice;
mod ways;

pub use budget::SendUrgency;
pub use config::{Config, InterfaceId, MachineRole, MeshAddress, MeshMedium};
pub use error::{ERRORS, MeshError};
pub use exchange::{
    CarriedSources, MeshCounters, MeshEvent, MeshInput, MeshNeighbourStatus, MeshOutput, RouteLeg,
    UnitReceiver, WayStatus,
};
pub use hello::{
    DIGEST_BYTES, DISTANCE_BYTES, ECHO_BYTES, HELLO_BYTES_MIN, HelloEcho, HelloMessage,
    HelloNeighbour, INFINITE, INTERVAL_STEP, LISTED_BYTES, RouteDistance,
};
pub use hop::{HOP_SEAL_BYTES, HopReader, HopSender, HopWriter};
pub use keys::MeshProvision;
pub use mesh::Mesh;
pub use messages::{
    AdvertisedRoute, GatewayReport, MessageType, MissingParts, NeighbourProbe, RouteMessage,
    RouteRequest, RouteTrace, TraceHop, TraceWay,
};
pub use notice::{NoticeContent, REMOVAL_NOTICE_BYTES, is_heartbeat};
pub use orders::{HeldOf, OrderPieces, OrdersHeld, PIECE_BYTES, PiecesAsked, RemovalMessage};
pub use routes::margin;
pub use sealane_frame::machine::{DocumentAudience, KeptGroup, Keys, Member, Rekeyed};
pub use table::{MeshRoute, NextHop, RouteTable};
pub use time::{MeshSpan, MeshTime};
