//! What fuzzing has found interesting, replayed through the checks of the fuzz target.

#[path = "../../../../fuzz/src/document.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod document;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/exchange");
    let files = std::fs::read_dir(corpus).expect("fuzz/corpus is committed");
    let replayed =
        files.map(|file| document::exchange(&std::fs::read(file.unwrap().path()).unwrap()));
    assert!(replayed.count() > 0);
}
