//! The promises of `sealane`, each in a file of its own: the real binary, in temporary folders and
//! on free ports.

mod bounds_the_node;
mod cli;
mod crosses_a_blind_hub;
mod durable;
mod outlives_a_filled_disk;
mod pages;
mod survives_full_disk;
mod survives_kill;
mod survives_power_cut;
mod vault;
mod vault_outlives_kill;
mod vault_survives_its_store;
mod withstands;

/// Those that measure a node, or load the machine, go one after the other.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
