//! The inputs that fuzzing has found interesting.

use std::path::Path;

/// Replays the committed inputs of each fuzz target through its check. A target without any is a
/// failure, since nothing would be shown.
pub fn replay_corpus(targets: &[(&str, fn(&[u8]))]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, check) in targets {
        let files = std::fs::read_dir(corpus.join(target)).expect("fuzz/corpus is committed");
        let mut replayed = 0;
        for file in files {
            check(&std::fs::read(file.expect("an entry").path()).expect("a file"));
            replayed += 1;
        }
        assert!(replayed > 0, "no input for {target}");
    }
}
