//! The promises of the mesh, through its public API.

mod byte_promises;
mod carries;
mod corpus;
mod finds_routes;
mod gives_orders;
mod keeps_orders_of_others;
mod net;
mod never_panics;
mod refuses_strangers;
mod survives_silence;
mod traces;
mod vectors;
mod withstands_false_orders;
mod withstands_members;
