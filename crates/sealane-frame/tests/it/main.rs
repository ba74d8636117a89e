//! The promises of `sealane-frame`, each in a file of its own.

mod allocates_nothing;
mod announces_contexts;
mod byte_promises;
mod corpus;
mod joins_fragments;
mod never_panics;
mod refuses_downgrades;
mod refuses_every_flip;
mod relays_change_routing_only;
mod two_forms_one_frame;
mod vectors;

#[allow(unsafe_code)] // A counting allocator can only be written so.
#[path = "../../../sealane-codec/tests/it/shared/counting.rs"]
mod counting;

/// Modules that several of them use.
mod shared {
    pub(crate) mod compact_vectors;
    pub(crate) mod members;
    pub(crate) mod vectors;
}
