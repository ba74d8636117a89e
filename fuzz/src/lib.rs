//! The laws that hold for every input, one function per fuzz target.
//!
//! The ordinary tests replay the committed corpus through the same functions.

pub mod agent;
pub mod codec;
pub mod document;
pub mod frame;
pub mod group;
pub mod hub;
pub mod link;
pub mod mesh;
pub mod policy;
pub mod seal;
pub mod sim;
pub mod vault;

/// A law: it holds for every input, and panics where it does not.
pub type FuzzLaw = fn(&[u8]);

/// The targets: the name of each, which is that of its folder in `corpus/`, and its law.
pub const TARGETS: &[(&str, FuzzLaw)] = &[
    ("json", codec::json),
    ("msgpack", codec::msgpack),
    ("cbor", codec::cbor),
    ("records", codec::records),
    ("transcode", codec::transcode),
    ("hub", hub::hub),
    ("seal", seal::seal),
    ("frame", frame::frame),
    ("compact", frame::compact),
    ("fragments", frame::fragments),
    ("policy", policy::policy),
    ("card", group::card),
    ("invitation", group::invitation),
    ("order", group::order),
    ("folder", group::folder),
    ("vault", vault::vault),
    ("n2s", vault::n2s),
    ("units", frame::units),
    ("relay_card", link::relay_card),
    ("document", codec::document),
    ("exchange", document::exchange),
    ("agent", agent::agent),
    ("links", link::config),
    ("scenario", sim::scenario),
    ("trace", sim::trace),
    ("log", sim::log),
    ("hello", mesh::hello),
    ("route_message", mesh::route_message),
    ("orders", mesh::orders),
];
