//! The promises of `sealane-group`, each in a file of its own.

mod a_removed_member_reads_nothing_new;
mod allocates_nothing;
mod an_authority_begins_anew;
mod corpus;
mod forgets_the_past;
mod keeps_keys_private;
mod members_share_secrets;
mod never_repeats_a_counter;
mod refuses_changes;

/// What several of them use.
mod shared;
