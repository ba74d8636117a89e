//! The committed vectors are what this crate makes, and say what they must.

use crate::shared::cases;
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

#[test]
fn they_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/seal");
    for (name, text) in cases::files() {
        let committed = std::fs::read_to_string(folder.join(name)).expect(name);
        assert!(committed == text, "{name}: cargo run -p sealane-seal --example seal_vectors");
    }
}

/// At least 40 cases, half of them refused, and every code that a peer can cause.
#[test]
fn half_of_them_are_refused() {
    let (mut good, mut bad, mut codes) = (0, 0, BTreeSet::new());
    for (_, text) in cases::files() {
        let Value::Array(cases) = serde_json::from_str(&text).unwrap() else { panic!("no list") };
        for case in cases {
            let steps = case["steps"].as_array().cloned().unwrap_or_else(|| vec![case.clone()]);
            let refused = steps.iter().filter_map(|step| step["error"].as_str());
            let refused: Vec<_> = refused.map(str::to_owned).collect();
            if refused.is_empty() {
                good += 1
            } else {
                bad += 1
            }
            codes.extend(refused);
        }
    }
    assert!(good + bad >= 40 && bad >= good, "{good} and {bad}");
    let expected = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20];
    let expected: BTreeSet<_> = expected.map(|code| format!("SL-SEAL-{code:02}")).into();
    assert_eq!(codes, expected);
}
