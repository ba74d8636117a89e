//! What pages say is typed is typed, as it stands there, on a machine that has nothing else to do.

mod examples;
mod expectations;
mod markdown;
mod packaging;
mod python;
mod readme;
mod stage;
mod tables;
