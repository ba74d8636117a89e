//! The promises of `sealane-seal`, each in a file of its own.

mod a_failed_seal_is_no_plaintext;
mod allocates_nothing;
mod belongs_where_it_was_bound;
mod corpus;
mod costs_a_bounded_number_of_trials;
mod holds_its_epochs;
mod keeps_to_terms;
mod laws;
mod never_repeats_a_counter;
mod plays_no_recorded_session;
mod policy_keeps_its_floors;
mod policy_refuses_bad_files;
mod refuses_changes;
mod refuses_replays;
mod speaks_sframe;
mod stores_ceilings_ahead;
mod vectors;

/// Laws of every policy file, which its fuzz target asserts too.
#[path = "../../../../fuzz/src/policy.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod policy_laws;

/// Modules that several of them use.
mod shared {
    pub(crate) mod cases;
    pub(crate) mod live;
    pub(crate) mod node;
    pub(crate) mod peer;
    pub(crate) mod world;
}
