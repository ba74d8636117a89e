//! What a message costs: measurements with their baselines beside them.
//!
//! Takes the product's own programs, runs them as separate processes on this machine, and gives
//! tables in which every row names its durability, its connections and its codec.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use sealane_bench::load::{self, Options, Programs};
//!
//! let programs = Programs::of(std::env::current_exe()?);
//! let report = load::run(&programs, &Options::default(), &mut |row| println!("{row}")).await?;
//! println!("{}", report.machine);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod baseline;
pub mod book;
pub mod cost;
pub mod guard;
pub mod load;
pub mod measure;
mod members;
pub mod page;
pub mod race;
mod text;
pub mod vault;
