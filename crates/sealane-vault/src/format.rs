//! The objects of `spec/vault.md`: what stands in them, byte by byte.

pub(crate) mod chunk;
pub(crate) mod config;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod pack;
pub(crate) mod page;
pub(crate) mod roster;
pub(crate) mod rotation;
pub(crate) mod snapshot;
