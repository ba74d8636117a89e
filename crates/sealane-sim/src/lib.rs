//! Many machines in virtual time over modelled radio: the code that is shipped, one seed, one run.
//!
//! Takes a scenario (`spec/scenario.md`) and a seed, and gives a log that is the same byte for byte
//! whenever the two are, and figures. The programs of the machines have no clock, no randomness and
//! no I/O of their own.
//!
//! ```text
//!  scenario ─► agenda: (time, sequence) ─► programs ─► units ─► medium ─► programs
//!              one heap                    of nodes    one slot  who hears  of others
//!                                                      each      it
//! ```
//!
//! ```
//! use sealane_sim::{SimRun, Scenario, SimWatch};
//!
//! let scenario = Scenario::parse(
//!     "version = 1\nduration_s = 10\n\
//!      [[medium]]\nname = \"road\"\nprofile = \"11p\"\n\
//!      [[node]]\nname = \"car\"\ncount = 3\nkind = \"beacon\"\nmedia = [\"road\"]\n",
//! )?;
//! let outcome = SimRun::new(scenario, 1, &[], SimWatch::new())?.finish()?;
//! assert_eq!(outcome.summary.units(), 30);
//! # Ok::<(), sealane_sim::SimError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod args;
mod cli;
mod engine;
mod error;
pub mod lab;
pub mod limits;
mod live;
mod medium;
mod motion;
mod node;
mod place;
mod random;
mod replay;
mod scenario;
mod summary;
mod time;
mod watch;

pub use cli::main;
pub use engine::{SimOutcome, SimRun};
pub use error::{ERRORS, SimError};
pub use medium::{
    BleRate, LoraProfile, NakagamiFading, RadioPower, SimMediumProfile, ble_advertising_air_time,
    dot11p_air_time,
};
pub use motion::{NamedTrace, VehicleTrace};
pub use place::SimPlace;
pub use random::SimRandom;
pub use replay::LogReplay;
pub use scenario::Scenario;
pub use summary::{SimFrameCounts, SimSummary};
pub use time::{SimSpan, SimTime};
pub use watch::{RunPage, SimWatch};
