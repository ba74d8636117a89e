//! Source files that no `mod` reaches, and the file name `mod.rs`.

use std::collections::BTreeSet;

use super::TidyFindings;
use crate::rust::{RustSource, words};
use crate::tree::{SourceTree, WorkspacePackage};

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    for package in tree.packages() {
        let sources = format!("{}/src", package.dir);
        let alive = alive(tree, &package);
        for (path, _) in tree.rust_in(&sources) {
            if path.ends_with("/mod.rs") {
                let remedy = "name the file after the module, beside its folder";
                findings.add(path, 1, "a file named mod.rs", remedy);
            } else if !alive.contains(path) {
                let remedy = "declare it with `mod`, or remove it";
                findings.add(path, 1, "no `mod` reaches this file", remedy);
            }
        }
    }
}

fn alive(tree: &SourceTree, package: &WorkspacePackage<'_>) -> BTreeSet<String> {
    let mut alive = BTreeSet::new();
    let mut open = roots(tree, package);
    while let Some(path) = open.pop() {
        let Some((_, rust)) = tree.rust().find(|(other, _)| *other == path) else { continue };
        if alive.insert(path.clone()) {
            open.extend(children(&path, is_root(&path), rust));
        }
    }
    alive
}

fn roots(tree: &SourceTree, package: &WorkspacePackage<'_>) -> Vec<String> {
    let dir = package.dir;
    let mut roots = vec![format!("{dir}/src/lib.rs"), format!("{dir}/src/main.rs")];
    let programs = format!("{dir}/src/bin/");
    roots.extend(tree.rust().map(|(path, _)| path.to_owned()).filter(|path| {
        path.strip_prefix(&programs)
            .is_some_and(|rest| !rest.contains('/') || rest.ends_with("/main.rs"))
    }));
    let programs = package.manifest.get("bin").and_then(toml::Value::as_array);
    let programs = programs.into_iter().flatten().chain(package.manifest.get("lib"));
    let named = programs.filter_map(|target| target.get("path")?.as_str());
    roots.extend(named.map(|path| format!("{dir}/{path}")));
    roots
}

fn is_root(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "lib.rs" | "main.rs" | "mod.rs") || path.contains("/src/bin/")
}

/// The files that a file declares or includes.
fn children(path: &str, is_root: bool, rust: &RustSource) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = if is_root { folder } else { path.trim_end_matches(".rs") };
    let mut children = vec![];
    for at in words(&rust.code, "mod") {
        let rest = rust.code[at + 3..].trim_start();
        let length = rest.bytes().take_while(|byte| crate::rust::is_word(*byte)).count();
        if rest[length..].trim_start().starts_with(';') {
            children.push(format!("{own}/{}.rs", &rest[..length]));
            children.push(format!("{own}/{}/mod.rs", &rest[..length]));
        }
    }
    // `#[path = "x.rs"]` and `include!("x.rs")`.
    let named = rust.literals.iter().filter(|literal| literal.text.ends_with(".rs"));
    children.extend(named.map(|literal| format!("{folder}/{}", literal.text)));
    children
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let manifest = ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");
        said(check, &SourceTree::sample(&[&[manifest], files].concat()))
    }

    #[test]
    fn a_file_without_a_declaration_is_found() {
        let findings = found(&[
            ("crates/a/src/lib.rs", "mod used;\n// mod lost;\n"),
            ("crates/a/src/used.rs", "pub(crate) mod inner;\n"),
            ("crates/a/src/used/inner.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/lost/inner.rs", ""),
        ]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("crates/a/src/lost.rs:1: no `mod`"), "{findings:?}");
    }

    #[test]
    fn programs_paths_and_includes_are_alive() {
        let findings = found(&[
            ("crates/a/src/main.rs", "#[path = \"elsewhere.rs\"]\nmod b;\ninclude!(\"c.rs\");\n"),
            ("crates/a/src/elsewhere.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/works.rs", ""),
        ]);
        assert_eq!(findings, Vec::<String>::new());
    }

    #[test]
    fn mod_rs_is_found() {
        let findings = found(&[("crates/a/src/lib.rs", "mod b;\n"), ("crates/a/src/b/mod.rs", "")]);
        assert!(findings[0].contains("a file named mod.rs"), "{findings:?}");
    }
}
