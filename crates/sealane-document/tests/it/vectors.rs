//! The vectors in the repository are what this code makes.

use crate::shared::vectors;

#[test]
fn the_vectors_of_the_exchange_are_what_the_code_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/document/exchange.json");
    let made = vectors::text();
    if std::env::var_os("SEALANE_WRITE_VECTORS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == made, "SEALANE_WRITE_VECTORS=1 cargo test -p sealane-document vectors");
}
