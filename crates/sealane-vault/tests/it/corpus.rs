//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/vault.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod vault;

use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for file in std::fs::read_dir(corpus).expect("fuzz/corpus is committed") {
        check(&std::fs::read(file.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[test]
fn the_corpus_of_objects_still_passes() {
    replay("vault", vault::vault);
}

#[test]
fn the_corpus_of_blobs_still_passes() {
    replay("n2s", vault::n2s);
}
