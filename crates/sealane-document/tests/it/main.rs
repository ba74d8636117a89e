//! The promises of `sealane-document`, each in a file of its own.

mod byte_promises;
mod converges;
mod corpus;
mod exchanges;
mod field;
mod keeps_beside;
mod keeps_calls_over;
mod keeps_on_disk;
mod keeps_the_newest;
mod paces;
mod vectors;
mod withstands_attacks;
mod withstands_attacks_over_the_mesh;

use shared::{team, victim};

/// Modules that several of them use.
mod shared {
    pub(crate) mod entries;
    pub(crate) mod team;
    pub(crate) mod vectors;
    pub(crate) mod victim;
}
