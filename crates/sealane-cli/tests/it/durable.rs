//! The parts of the loads of a node that is killed, cut off or hammered.

pub(crate) mod cast;
pub(crate) mod consumer;
pub(crate) mod delays;
pub(crate) mod disk;
pub(crate) mod http;
pub(crate) mod json;
pub(crate) mod ledger;
pub(crate) mod letters;
pub(crate) mod levels;
pub(crate) mod load;
pub(crate) mod node;
pub(crate) mod random;
pub(crate) mod removals;
pub(crate) mod resuming;
pub(crate) mod rules;
pub(crate) mod survival;
pub(crate) mod websocket;
pub(crate) mod writer;
