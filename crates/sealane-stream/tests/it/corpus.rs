//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz target.

#[path = "../../../../fuzz/src/hub.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod hub;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/hub");
    let mut replayed = 0;
    for file in std::fs::read_dir(corpus).expect("fuzz/corpus is committed") {
        hub::hub(&std::fs::read(file.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0);
}
