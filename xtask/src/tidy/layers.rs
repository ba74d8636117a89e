//! The order of the crates, what the pure ones may not touch, and features nobody asks for.

use super::TidyFindings;
use crate::rust::{closing, words};
use crate::tree::{SourceTree, WorkspacePackage};

/// The crates in the order of a message's way. A crate depends only on those above it.
pub(super) const LAYERS: &[&str] = &[
    "sealane-message",
    "sealane-codec",
    "sealane-seal",
    "sealane-frame",
    "sealane-protocol",
    "sealane-mesh",
    "sealane-link",
    "sealane-group",
    "sealane-stream",
    "sealane-document",
    "sealane-vault",
    "sealane-sim",
    "sealane",
    "sealane-machine",
    "sealane-node",
    "sealane-cli",
    "sealane-bench",
    "sealane-testing",
];

/// The dependencies that one crate may have and no other. An allocator that counts rules the whole
/// program that it is linked into. That program must not be a shipped one.
const ALONE: &[(&str, &str)] = &[("allocation-counter", "sealane-bench")];

/// The first crates are pure: time, randomness and input are arguments.
const PURE_LAYERS: usize = 6;

/// The paths that a pure crate does not name. A path stands for everything below it.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "getrandom",
    "rand",
    "socket2",
    "tokio",
];

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    let packages = tree.packages();
    for package in &packages {
        order(tree, package, findings);
        alone(tree, package, findings);
        unused_features(tree, package, findings);
        if layer(&package.name).is_some_and(|layer| layer <= PURE_LAYERS) {
            purity(tree, package, findings);
        }
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name).map(|index| index + 1)
}

/// Only what is shipped is held to the order; tests may look down from above.
fn order(tree: &SourceTree, package: &WorkspacePackage<'_>, findings: &mut TidyFindings) {
    if package.dir == "xtask" {
        return;
    }
    let path = format!("{}/Cargo.toml", package.dir);
    let Some(own) = layer(&package.name) else {
        let what = format!("`{}` has no place in the order of the crates", package.name);
        findings.add(&path, 1, what, "give it one in xtask/src/tidy/layers.rs");
        return;
    };
    for kind in ["dependencies", "build-dependencies"] {
        for name in package.dependencies(kind) {
            let Some(other) = layer(&name).filter(|other| *other >= own) else { continue };
            findings.add(
                &path,
                line_of(tree, &path, &name),
                format!("`{}` ({own}) depends on `{name}` ({other})", package.name),
                "a crate depends only on lower numbers: move what both need below both",
            );
        }
    }
}

/// Tests are held to it too: their allocator would hide what the program's does.
fn alone(tree: &SourceTree, package: &WorkspacePackage<'_>, findings: &mut TidyFindings) {
    let path = format!("{}/Cargo.toml", package.dir);
    // A dependency of the tests alone is not shipped.
    for kind in ["dependencies", "build-dependencies"] {
        let names = package.dependencies(kind);
        for (name, user) in ALONE.iter().filter(|(name, _)| names.iter().any(|n| n == name)) {
            if package.name != *user {
                let what = format!("`{}` depends on `{name}`", package.name);
                let remedy = format!("measure in `{user}`, which is not shipped");
                findings.add(&path, line_of(tree, &path, name), what, remedy);
            }
        }
    }
}

fn purity(tree: &SourceTree, package: &WorkspacePackage<'_>, findings: &mut TidyFindings) {
    let sources = format!("{}/src", package.dir);
    for (path, rust) in tree.rust_in(&sources).filter(|(path, _)| !path.ends_with("/tests.rs")) {
        for (at, name) in paths(&rust.code_without_tests()) {
            if IMPURE.iter().any(|impure| is_below(&name, impure)) {
                let what = format!("`{name}` in a crate without I/O, clock and randomness");
                findings.add(path, rust.line(at), what, "take it as an argument");
            }
        }
    }
}

fn is_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Every path that code names: `use` trees unfolded, and all that contains `::`.
fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = vec![];
    for at in words(code, "use") {
        let end = code[at..].find(';').map_or(code.len(), |end| at + end);
        let tree: String = code[at + 3..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut leaves = vec![];
        unfold("", &tree, &mut leaves);
        found.extend(leaves.into_iter().map(|leaf| (at, leaf)));
    }
    for word in code.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        let at = word.as_ptr() as usize - code.as_ptr() as usize;
        let name = word.trim_end_matches(|c: char| !(c.is_alphanumeric() || c == '_'));
        if name.contains("::") {
            found.push((at, name.trim_start_matches(':').to_owned()));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Unfolds `std::{fs::File, net}` to `std::fs::File` and `std::net`.
fn unfold(prefix: &str, tree: &str, leaves: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree).trim_start_matches(':');
        let whole = format!("{prefix}{name}");
        leaves.push(whole.trim_end_matches("::self").trim_end_matches("::*").to_owned());
        return;
    };
    let prefix = format!("{prefix}{}", tree[..open].trim().trim_start_matches("::"));
    let end = closing(tree, open);
    let inside = &tree[open + 1..end.saturating_sub(1).max(open + 1)];
    let (mut start, mut depth) = (0, 0_usize);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                unfold(&prefix, &inside[start..at], leaves);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        unfold(&prefix, &inside[start..], leaves);
    }
}

/// A feature is used when it switches on something else or a source asks for it.
fn unused_features(tree: &SourceTree, package: &WorkspacePackage<'_>, findings: &mut TidyFindings) {
    let path = format!("{}/Cargo.toml", package.dir);
    for (feature, implied) in package.table("features") {
        let implies = implied.as_array().is_some_and(|implied| !implied.is_empty());
        let asked = tree
            .rust_in(package.dir)
            .any(|(_, rust)| rust.literals.iter().any(|literal| literal.text == feature));
        if feature != "default" && !implies && !asked {
            findings.add(
                &path,
                line_of(tree, &path, &feature),
                format!("nothing asks for the feature `{feature}`"),
                "remove it",
            );
        }
    }
}

fn line_of(tree: &SourceTree, path: &str, key: &str) -> usize {
    let text = tree.get(path).unwrap_or_default();
    let starts = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.', '=']))
    };
    text.lines().position(starts).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn found(name: &str, manifest: &str, source: &str) -> Vec<String> {
        let dir = format!("crates/{name}");
        let manifest = format!("[package]\nname = \"{name}\"\n{manifest}");
        said(
            check,
            &SourceTree::sample(&[
                (&format!("{dir}/Cargo.toml"), &manifest),
                (&format!("{dir}/src/lib.rs"), source),
            ]),
        )
    }

    #[test]
    fn a_crate_does_not_depend_on_a_later_one() {
        let manifest = "[dependencies]\nsealane-stream.workspace = true\n";
        let findings = found("sealane-codec", manifest, "use sealane_stream::Stream;\n");
        assert!(
            findings[0].contains("Cargo.toml:4: `sealane-codec` (2) depends on"),
            "{findings:?}"
        );
        assert!(found("sealane-node", manifest, "use sealane_stream::Stream;\n").is_empty());
        let tests = "[dev-dependencies]\nsealane-stream.workspace = true\n";
        assert!(found("sealane-codec", tests, "use sealane_stream::Stream;\n").is_empty());
    }

    #[test]
    fn no_product_depends_on_the_instrument_or_its_allocator() {
        let bench = "[dependencies]\nsealane-bench.workspace = true\n";
        let is_product = |name: &&&str| ![&"sealane-bench", &"sealane-testing"].contains(name);
        for product in LAYERS.iter().filter(is_product) {
            let findings = found(product, bench, "use sealane_bench::book;\n");
            assert!(findings.iter().any(|said| said.contains("depends on `sealane-bench`")));
        }
        let source = "use allocation_counter::measure;\n";
        let with = |kind: &str, name: &str| {
            found(name, &format!("[{kind}]\nallocation-counter.workspace = true\n"), source)
        };
        for kind in ["dependencies", "build-dependencies"] {
            let findings = with(kind, "sealane-cli");
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains(":4: `sealane-cli` depends on `allocation-counter`"));
            assert!(with(kind, "sealane-bench").is_empty());
        }
        assert!(with("dev-dependencies", "sealane-link").is_empty(), "tests are not shipped");
    }

    #[test]
    fn a_crate_has_a_place_in_the_order() {
        assert!(found("sealane-radio", "", "")[0].contains("no place in the order"));
    }

    #[test]
    fn a_pure_crate_names_no_input_clock_or_randomness() {
        for source in [
            "use std::fs;\n",
            "use std::{io, net::TcpStream};\n",
            "use std::{time::{Duration, Instant}};\n",
            "fn now() { std::time::SystemTime::now(); }\n",
            "use rand::random;\n",
            "async fn f() { tokio::spawn(g()); }\n",
        ] {
            assert_eq!(found("sealane-frame", "", source).len(), 1, "{source}");
            assert_eq!(found("sealane-stream", "", source).len(), 0, "{source}");
        }
    }

    #[test]
    fn a_pure_crate_may_speak_of_them_and_its_tests_may_use_them() {
        for source in [
            "use std::time::Duration;\nuse std::fmt;\n",
            "// std::fs is not used\nconst A: &str = \"std::fs\";\n",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
            "mod operand;\nuse operand::random;\n",
        ] {
            assert_eq!(found("sealane-frame", "", source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn features_that_nothing_asks_for_are_found() {
        let manifest = "[features]\nnats = []\n";
        assert!(found("sealane-node", manifest, "")[0].contains("the feature `nats`"));
        assert!(
            found("sealane-node", manifest, "#[cfg(feature = \"nats\")]\nfn f() {}\n").is_empty()
        );
    }
}
