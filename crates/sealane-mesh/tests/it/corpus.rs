//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/mesh.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod mesh;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[
        ("hello", mesh::hello),
        ("route_message", mesh::route_message),
        ("orders", mesh::orders),
    ]);
}
