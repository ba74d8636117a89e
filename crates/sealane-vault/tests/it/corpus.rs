//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/vault.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod vault;

#[test]
fn the_corpus_of_objects_still_passes() {
    sealane_testing::replay_corpus(&[("vault", vault::vault)]);
}

#[test]
fn the_corpus_of_blobs_still_passes() {
    sealane_testing::replay_corpus(&[("n2s", vault::n2s)]);
}
