//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/sim.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod sim;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[
        ("scenario", sim::scenario),
        ("trace", sim::trace),
        ("log", sim::log),
    ]);
}
