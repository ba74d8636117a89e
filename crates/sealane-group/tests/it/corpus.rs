//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/group.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod group;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    replay("card", group::card);
    replay("invitation", group::invitation);
    replay("order", group::order);
    replay("folder", group::folder);
}

fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut replayed = 0;
    for file in std::fs::read_dir(corpus).expect("fuzz/corpus is committed") {
        target(&std::fs::read(file.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0, "{name}");
}
