//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz target.

#[path = "../../../../fuzz/src/seal.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod seal;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/seal");
    let mut replayed = 0;
    for file in std::fs::read_dir(corpus).expect("fuzz/corpus is committed") {
        seal::seal(&std::fs::read(file.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0);
}
