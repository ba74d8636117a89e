//! The promises of `sealane-codec`, each in a file of its own.

mod allocations;
mod bombs;
mod cbor_x;
mod corpus;
mod documents;
mod events;
mod five_messages;
mod json_suite;
mod laws;
mod msgpack_suite;
mod msgpackr;
mod negotiation;
mod refusals;
mod rfc8949;

/// Code that several of them use.
mod shared {
    #[allow(unsafe_code)] // A counting allocator can only be written so.
    pub(crate) mod counting;
    pub(crate) mod document_vectors;
    pub(crate) mod five;
    pub(crate) mod node;
    pub(crate) mod order;
    pub(crate) mod values;
}
