//! The daemon of a machine of the field: relay, gateway or member, steps 5 to 7 of a message's way.
//!
//! ```text
//!  programs ─► interface ─► member ┐                       ┌ queue ─► hub
//!  programs ─► socket ─► documents ┼─► relay ─► links ─────┤
//!  browsers ◄─ page of the team    ┘   mesh                └ other machines
//! ```
//!
//! A [`Machine`] is a relay, and beside it a gateway, or a member with its interface, its documents
//! and their page. It takes a [`MachineConfig`] and [`MachineKeys`], and gives a [`MachineHandle`]
//! that tells its status, has it read its files again, and ends it. A Rust program is a member of a
//! mesh by these lines; the command line has no more:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use sealane_machine::{Machine, MachineConfig, MachineKeys, DaemonRole, MemberKeys};
//!
//! let config = MachineConfig::read("car.toml".as_ref())?;
//! let folder = sealane::KeyFolder::open("keys".as_ref(), None)?;
//! let mesh = Some(folder.group("roads")?.into());
//! let role = DaemonRole::Member(MemberKeys { folder, group: "fleet".to_owned() });
//! let machine = Machine::start(config, MachineKeys { role, mesh }).await?;
//! println!("{} frames went on", machine.stop().await?.tally.forwarded.units);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod config;
mod documents;
mod error;
mod gateway;
mod json;
pub mod limits;
mod machine;
mod member;
mod orders;
mod page;
mod routing;
mod status;
mod status_page;

pub use config::MachineConfig;
pub use documents::DocumentsConfig;
pub use error::{AskRefusal, ERRORS, MachineError};
pub use gateway::{
    CarriedType, DownStatus, ERRORS as GATEWAY_ERRORS, FollowedStore, FrameOrder, FrameTurn,
    Gateway, GatewayConfig, GatewayError, GatewayIntake, GatewaySettings, GatewayStatus,
    GatewayUrgency, HeardStatus, HeldStream, HubAccess, HubFault, HubState, HubStatus, MeshStream,
    OrdersStatus, PutDown, PutOrders, QueueLoss, QueueLossReason, QueueStatus,
};
pub use machine::{DaemonRole, Machine, MachineEnd, MachineHandle, MachineKeys, WaitingFrames};
pub use member::MemberKeys;
pub use status::{EndStatus, MachineStatus};

/// The result of this crate's functions. If a function says nothing else, it fails with a
/// [`MachineError`].
type Result<T, E = MachineError> = std::result::Result<T, E>;
