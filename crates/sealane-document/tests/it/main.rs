//! The promises of `sealane-document`, each in a file of its own.

mod converges;
mod corpus;
mod exchanges;
mod keeps_the_newest;

/// What several of them use.
mod shared {
    pub(crate) mod entries;
}
