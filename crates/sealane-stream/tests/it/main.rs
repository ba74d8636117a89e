//! The promises of `sealane-stream`, each in a file of its own.

mod backs_up;
mod bounds_its_log;
mod corpus;
mod gives_generations;
mod goes_on;
mod keeps_others_out;
mod keeps_shares;
mod lists_few;
mod migrates;
mod names_its_store;
mod remembers_sessions;
mod waits_out_steps;
