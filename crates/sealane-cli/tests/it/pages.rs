//! The commands that pages show are typed as they stand there, on a machine that has nothing else
//! to do.

mod examples;
mod guides;
mod markdown;
mod packaging;
mod python;
mod readme;
mod stage;
mod tables;
