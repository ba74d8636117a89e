//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz target.

#[path = "../../../../fuzz/src/hub.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod hub;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[("hub", hub::hub)]);
}
