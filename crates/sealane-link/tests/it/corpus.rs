//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/link.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod link;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[("relay_card", link::relay_card), ("links", link::config)]);
}
