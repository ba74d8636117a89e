//! The promises of `sealane-link`, each in a file of its own, over real sockets.

mod corpus;
mod drops_by_name;
mod finds_neighbours;
mod floods_once;
mod over_ethernet;
mod relays_in_memory;
mod relays_in_place;
mod stage;
mod swaps_tables;
mod tells_status;
mod withstands;
