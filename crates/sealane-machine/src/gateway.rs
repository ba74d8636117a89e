//! From the mesh into the hub, and back: step 6 and 7 of a message's way.
//!
//! ```text
//!            threads of the links       a thread             tasks
//!  mesh ───► Intake ──────────────────► queue ─────────────► uploader ───► hub
//!            relay's bytes as sent,     SQLite, bounded,     once each,
//!            known frames passed over   fsynced              in order per origin
//!
//!  mesh ◄── put, at a bounded pace ◄─── readers of `mesh/TAG/TYPE` ◄─────── hub
//!  mesh ◄── orders that are signed ◄─── readers of `groups/TAG` ◄────────── hub
//! ```
//!
//! A [`Gateway`] takes sealed frames from a mesh and appends them, still sealed, to the streams
//! `mesh/<group tag>/<data type>` of its hub. It holds no key. What the hub cannot take now waits
//! on disk, within a bound; what was dropped is counted by name. `spec/gateway.md` is the
//! specification.

mod beside;
mod config;
mod down;
mod error;
mod follower;
mod frame;
mod hub;
mod intake;
mod known;
mod order;
mod orders;
mod queue;
mod running;
mod status;
mod stream;
mod upload;
mod wait;

pub(crate) use beside::{GatewayBeside, RunningGateway};
pub use config::{CarriedType, GatewayConfig};
pub use down::{DownStatus, PutDown};
pub use error::{ERRORS, GatewayError};
pub use hub::{HubAccess, HubFault};
pub use intake::{GatewayIntake, HeardStatus};
pub use order::{FrameOrder, FrameTurn};
pub use orders::{OrdersStatus, PutOrders};
pub use queue::{FollowedStore, QueueLoss, QueueLossReason, QueueStatus};
pub use running::{Gateway, GatewaySettings};
pub use status::GatewayStatus;
pub use stream::{GatewayUrgency, MeshStream};
pub use upload::{HeldStream, HubState, HubStatus};
