//! Steps 6 and 7 of a message's way: *from the mesh into the hub*, and back.
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
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use sealane_gateway::{Gateway, GatewaySettings, HubAccess};
//! use sealane_message::DataType;
//!
//! # fn frame() -> Vec<u8> { Vec::new() }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = HubAccess { address: "127.0.0.1:9087".to_owned(), token: None, ca: None };
//! let settings = GatewaySettings {
//!     hub,
//!     queue: "gateway.queue".into(),
//!     queue_bytes: 64 << 20,
//!     up: vec![DataType::LOCATION],
//!     down: vec![DataType::COMMAND],
//! };
//! let gateway = Gateway::start(&settings, Arc::new(|frame| println!("{} bytes", frame.len())))?;
//! gateway.intake().take(&frame());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod down;
mod error;
mod frame;
mod gateway;
mod hub;
mod intake;
mod known;
pub mod limits;
mod order;
mod orders;
mod queue;
mod status;
mod stream;
mod upload;
mod wait;

pub use down::{DownStatus, PutDown};
pub use error::{ERRORS, GatewayError};
pub use gateway::{Gateway, GatewaySettings};
pub use hub::HubAccess;
pub use intake::{HeardStatus, Intake};
pub use order::{Order, Turn};
pub use orders::{OrdersStatus, PutOrders};
pub use queue::{Followed, Loss, Lost, QueueStatus};
pub use status::GatewayStatus;
pub use stream::{MeshStream, Urgency};
pub use upload::{HeldStream, HubState, HubStatus};
