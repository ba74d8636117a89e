//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/group.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod group;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[
        ("card", group::card),
        ("invitation", group::invitation),
        ("order", group::order),
        ("folder", group::folder),
    ]);
}
