//! The promises of `sealane-group`, each in a file of its own.

mod a_copy_does_not_follow_a_heal;
mod a_notice_goes_ahead_of_a_removal;
mod a_removed_member_reads_nothing_new;
mod allocates_nothing;
mod an_authority_begins_anew;
mod corpus;
mod forgets_the_past;
mod hears_live_senders_once;
mod heartbeats_tell_what_is_missing;
mod keeps_keys_private;
mod members_hold_for_their_terms;
mod members_share_secrets;
mod never_repeats_a_nonce;
mod obeys_in_order;
mod refuses_changes;
mod refuses_other_versions;
mod unsigned_evidence_does_nothing;
mod waits_for_its_part;

/// Modules that several of them use.
mod shared;
