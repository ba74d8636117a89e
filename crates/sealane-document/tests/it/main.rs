//! The promises of `sealane-document`, each in a file of its own.

mod converges;
mod corpus;
mod exchanges;
mod keeps_beside;
mod keeps_on_disk;
mod keeps_the_newest;

use shared::team;

/// What several of them use.
mod shared {
    pub(crate) mod entries;
    pub(crate) mod team;
}
