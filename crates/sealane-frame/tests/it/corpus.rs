//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/frame.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod frame;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[
        ("frame", frame::frame),
        ("compact", frame::compact),
        ("fragments", frame::fragments),
        ("units", frame::units),
    ]);
}
