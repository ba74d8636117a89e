//! The hub's promises (spec/hub.md), each in a file of its own, over real sockets.

mod dead_letters;
mod delivers_exactly;
mod enqueues_once;
mod http;
mod redelivers;
mod running;
mod socket;
mod strict_order;
