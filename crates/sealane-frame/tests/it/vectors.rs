//! The committed vectors are what the code makes.

use crate::shared::vectors;

#[test]
fn the_committed_vectors_are_up_to_date() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/frame");
    for (name, text) in vectors::files() {
        let committed = std::fs::read_to_string(format!("{folder}/{name}")).unwrap_or_default();
        let command = "cargo run -p sealane-frame --example frame_vectors";
        assert!(committed == text, "{name} is not what `{command}` writes");
    }
}

#[test]
fn half_of_at_least_thirty_are_failures() {
    let (mut all, mut failures) = (0, 0);
    for (_, text) in vectors::files() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        all += cases.len();
        failures += cases.iter().filter(|case| !case["error"].is_null()).count();
    }
    assert!(all >= 30 && failures * 2 >= all, "{failures} of {all}");
}
