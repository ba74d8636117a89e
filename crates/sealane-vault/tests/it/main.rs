//! What a vault promises, one file per promise.

mod corpus;
mod deep_paths;
mod determinism;
mod hides_everything;
mod hostile_s3;
mod keeps_by_group;
mod keeps_in_s3;
mod notices_tampering;
mod python_restores;
mod reads_n2s;
mod recovers_from_objects;
mod refuses_bad_buckets;
mod round_trip;
mod s3;
mod shared;
mod stays_in_its_target;
mod vectors;
mod writers_and_prunes;
