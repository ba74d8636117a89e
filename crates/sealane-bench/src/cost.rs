//! The cost of each step of a message's way, on the user's own messages.
//!
//! ```text
//!  encode ─► compress ─► seal ─► carry ─► relay ─► keep ─► open ─► decompress ─► decode
//!    ^           ^         ^       ^        ^       ^       ^          ^           ^
//!    every variant of every step alone; two dozen ways through all of them
//! ```
//!
//! Takes a [`MessageSample`] of messages and gives a [`CostReport`]. Every figure is of a call that
//! the product makes. A way is first run once with an eye on the result of each step. Only if all
//! results are right does it have figures.

mod advice;
mod hub;
mod input;
mod link;
mod radio;
mod record;
mod report;
mod run;
mod sequence;
mod step;
mod table;
pub(crate) mod text;
mod trip;
mod way;

pub(crate) use input::MessageSample;
pub(crate) use record::record;
pub(crate) use report::{CostReport, FigureSource, WayRow};
pub(crate) use run::{CostOptions, run};
pub(crate) use step::{CostStep, StepCalls};
pub(crate) use trip::{WayRefusal, WayTrip};
pub(crate) use way::{CostLink, CostWay, suite_name};
