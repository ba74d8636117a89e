//! What a vault promises, one file per promise.

mod believes_a_writer_up_to;
mod changes_the_main_key;
mod corpus;
mod deep_paths;
mod determinism;
mod heals_damage;
mod hides_everything;
mod hostile_s3;
mod keeps_by_group;
mod keeps_in_s3;
mod notices_tampering;
mod pins_a_location;
mod python_restores;
mod reaches_buckets;
mod reads_n2s;
mod recovers_from_objects;
mod refuses_bad_buckets;
mod removes_by_the_owner_alone;
mod round_trip;
mod s3;
mod shared;
mod skips_what_is_foreign;
mod stays_in_its_target;
mod trusts_no_writers_chunks;
mod vectors;
mod writers_and_prunes;
