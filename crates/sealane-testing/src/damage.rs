//! Copies of a database that a bad disk has changed.

use std::fs;
use std::path::Path;

/// Runs `check` on copies of an SQLite file beside it: some cut short, some with one byte changed,
/// spread over the file. The files that SQLite leaves beside a copy are removed after each.
pub fn check_damaged_copies(file: &Path, mut check: impl FnMut(&Path)) {
    let whole = fs::read(file).expect("the file is there");
    let copy = file.with_file_name("damaged");
    let places = |count: usize| (0..whole.len()).step_by(whole.len() / count);
    let cut = places(24).map(|end| whole[..end].to_vec());
    let flipped = places(96).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        bytes
    });
    for bytes in cut.chain(flipped) {
        fs::write(&copy, bytes).expect("a copy");
        check(&copy);
        for left in ["damaged-wal", "damaged-shm"] {
            let _ = fs::remove_file(file.with_file_name(left));
        }
    }
}
