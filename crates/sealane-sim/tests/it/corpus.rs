//! The inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/sim.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod sim;

use std::path::Path;

#[test]
fn the_corpus_still_passes() {
    type Check = fn(&[u8]);
    let targets: [(&str, Check); 3] =
        [("scenario", sim::scenario), ("trace", sim::trace), ("log", sim::log)];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, check) in targets {
        let files = std::fs::read_dir(corpus.join(target)).expect("fuzz/corpus is committed");
        let mut replayed = 0;
        for file in files {
            check(&std::fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "{target}");
    }
}
