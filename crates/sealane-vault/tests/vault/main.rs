//! What a vault promises, one file per promise.

mod determinism;
mod hides_everything;
mod notices_tampering;
mod python_restores;
mod recovers_from_objects;
mod round_trip;
mod shared;
mod stays_in_its_target;
mod writers_and_prunes;
