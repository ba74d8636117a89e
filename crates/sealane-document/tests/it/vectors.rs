//! The vectors in the repository are what this code makes.

#[path = "../../examples/exchange_vectors.rs"]
#[allow(dead_code, reason = "the example writes the file")]
mod exchange_vectors;

#[test]
fn the_vectors_of_the_exchange_are_what_the_code_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/document/exchange.json");
    let kept = std::fs::read_to_string(path).unwrap();
    let command = "cargo run -p sealane-document --example exchange_vectors";
    assert!(kept == exchange_vectors::text(), "{command}");
}
