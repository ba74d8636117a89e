//! What fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../fuzz/src/group.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod group;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let targets: [(&str, fn(&[u8])); 4] = [
        ("card", group::card),
        ("invitation", group::invitation),
        ("order", group::order),
        ("folder", group::folder),
    ];
    for (name, target) in targets {
        let mut replayed = 0;
        for file in std::fs::read_dir(corpus.join(name)).expect("fuzz/corpus is committed") {
            target(&std::fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "{name}");
    }
}
