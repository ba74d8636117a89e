//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/agent.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod agent;
#[path = "../../../../fuzz/src/document.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod document;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[("exchange", document::exchange), ("agent", agent::agent)]);
}
