//! Everything that a user can meet has a page: limits, error codes, routes, metrics and flags.

use std::collections::{BTreeMap, BTreeSet};

use super::TidyFindings;
use super::layers::LAYERS;
use crate::docs;
use crate::limits;
use crate::rust::{RustSource, closing, is_word, words};
use crate::tree::SourceTree;

const ROUTES: &str = "spec/hub.md";
const METRICS: &str = "docs/reference/METRICS.md";
const FLAGS: &str = "docs/reference/CLI.md";
const BENCH_FLAGS: &str = "docs/BENCHMARKING.md";
const SIM_FLAGS: &str = "docs/SIMULATOR.md";

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    for (path, page) in docs::pages(tree) {
        let what = match page {
            Ok(page) if tree.get(&path) == Some(&page) => continue,
            Ok(_) => "not what the code and the records say".to_owned(),
            Err(error) => error,
        };
        findings.add(&path, 1, what, "run cargo xtask docs");
    }
    error_codes(tree, findings);
    limits(tree, findings);
    names(tree, "crates/sealane-node/src", ROUTES, "route", routes, findings);
    for crate_of in ["node", "stream", "link", "document", "machine"] {
        let source = &format!("crates/sealane-{crate_of}/src");
        names(tree, source, METRICS, "metric", metrics, findings);
    }
    names(tree, "crates/sealane-cli/src", FLAGS, "flag", flags, findings);
    names(tree, "crates/sealane-bench/src", BENCH_FLAGS, "flag", flags, findings);
    names(tree, "crates/sealane-sim/src", SIM_FLAGS, "flag", flags, findings);
}

/// A limit is enforced by some code, and named once.
fn limits(tree: &SourceTree, findings: &mut TidyFindings) {
    // A fault in a block is a finding of its page.
    let limits = limits::read(tree).unwrap_or_default();
    let codes: Vec<String> =
        tree.library_sources().map(|(_, rust)| rust.code_without_tests()).collect();
    for (index, limit) in limits.iter().enumerate() {
        let mut find = |what: &str, remedy| {
            let what = format!("the limit `{}` {what}", limit.name);
            findings.add(&limit.path, limit.line, what, remedy);
        };
        // Its row is one of them.
        let uses: usize = codes.iter().map(|code| words(code, &limit.name).count()).sum();
        if uses < 2 {
            find("is enforced by no code", "enforce it, or remove it");
        }
        if limits.iter().take(index).any(|other| other.name == limit.name) {
            find("stands in two crates", "name them apart, or take the one of the lower crate");
        }
    }
}

/// Codes are declared once, names once for each step, and no source names an undeclared code.
fn error_codes(tree: &SourceTree, findings: &mut TidyFindings) {
    let mut declared: BTreeMap<String, String> = BTreeMap::new();
    for row in docs::error_rows(tree) {
        let mut find = |what, remedy| {
            findings.add(&row.path, row.line, what, remedy);
        };
        let code = &row.code;
        if !is_error_code(code) {
            find(format!("the error code `{code}`"), "write it like SL-TOPIC-01");
        }
        if let Some((what, remedy)) = ill_worded(&row.cause, &row.hint) {
            find(format!("{what} of `{code}`"), remedy);
        }
        let at = format!("{}:{}", row.path, row.line);
        let step = code.rsplit_once('-').map_or("", |(step, _)| step);
        if let Some(first) = declared.insert(format!("{step} {}", row.name), at.clone()) {
            let what = format!("the error name `{}` of {step} is taken by {first}", row.name);
            find(what, "say it with other words, or in the same row");
        }
        if let Some(first) = declared.insert(code.clone(), at) {
            find(
                format!("the error code `{code}` is taken by {first}"),
                "take the next free number",
            );
        }
    }
    for (path, rust) in tree.library_sources() {
        for literal in rust.literals_without_tests().filter(|literal| is_error_code(&literal.text))
        {
            if !declared.contains_key(&literal.text) {
                let what = format!("the error code `{}` has no row", literal.text);
                let line = rust.line(literal.at);
                findings.add(path, line, what, "write it into an errors! table");
            }
        }
    }
}

/// A cause follows the words `error:` and a hint stands alone, in every crate alike.
fn ill_worded(cause: &str, hint: &str) -> Option<(&'static str, &'static str)> {
    if cause.ends_with('.') {
        return Some(("the cause", "end it without a full stop"));
    }
    let begins_small = hint.starts_with(|first: char| first.is_lowercase());
    let is_sentence = !begins_small && hint.ends_with('.');
    (!is_sentence).then_some(("the hint", "write a sentence, from its capital to its full stop"))
}

/// `SL-`, a step in capitals, and two digits.
fn is_error_code(text: &str) -> bool {
    let Some((step, number)) = text.strip_prefix("SL-").and_then(|rest| rest.rsplit_once('-'))
    else {
        return false;
    };
    let capitals = step.bytes().all(|byte| byte.is_ascii_uppercase());
    capitals && !step.is_empty() && number.len() == 2 && number.parse::<u8>().is_ok()
}

/// Each name that `find` sees in the sources stands on the page.
fn names(
    tree: &SourceTree,
    sources: &str,
    page: &str,
    kind: &str,
    find: fn(&RustSource) -> Vec<(usize, String)>,
    findings: &mut TidyFindings,
) {
    let text = tree.get(page).map(|text| text.replace("{*", "{"));
    let mut seen = BTreeSet::new();
    for (path, rust) in tree.rust_in(sources).filter(|(path, _)| !path.ends_with("/tests.rs")) {
        for (at, name) in find(rust) {
            let listed = text.as_ref().is_some_and(|text| stands_alone(text, &name));
            if listed || !seen.insert(name.clone()) {
                continue;
            }
            let remedy = match text {
                Some(_) => format!("describe it in {page}"),
                None => format!("write {page} and describe it there"),
            };
            let what = format!("the {kind} `{name}` has no description");
            findings.add(path, rust.line(at), what, remedy);
        }
    }
}

/// Whether `name` occurs in `text` other than as a part of a longer name.
fn stands_alone(text: &str, name: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte) || *byte == b'-');
    text.match_indices(name).any(|(at, _)| {
        let after = text.as_bytes().get(at + name.len());
        let longer_path = name.starts_with('/')
            && after == Some(&b'/')
            && text.as_bytes().get(at + name.len() + 1).is_some_and(|b| is_word(*b) || *b == b'{');
        let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
        !part(after) && !part(before) && !longer_path
    })
}

fn routes(rust: &RustSource) -> Vec<(usize, String)> {
    let paths = rust.literals_without_tests().filter_map(|literal| {
        let path = literal.text.split(['?', ' ']).next()?;
        let is_route = matches!(path, "/health" | "/metrics")
            || path.starts_with("/v1/") && !path.ends_with('/') && !path.contains("{}");
        is_route.then(|| (literal.at, path.replace("{*", "{")))
    });
    paths.collect()
}

fn metrics(rust: &RustSource) -> Vec<(usize, String)> {
    let mut metrics = vec![];
    for literal in rust.literals_without_tests() {
        for word in literal.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if word.starts_with("sealane_") && !is_crate(word) {
                metrics.push((literal.at, word.to_owned()));
            }
        }
    }
    metrics
}

/// Names of our crates stand in log filters.
fn is_crate(word: &str) -> bool {
    LAYERS.iter().any(|layer| layer.replace('-', "_") == word)
}

/// The long flags that `#[arg(long)]` on a field and `.long("…")` declare.
fn flags(rust: &RustSource) -> Vec<(usize, String)> {
    let code = rust.code_without_tests();
    let mut flags = vec![];
    for attribute in ["#[arg(", "#[clap("] {
        for (at, _) in code.match_indices(attribute) {
            let open = at + attribute.len() - 1;
            let end = closing(&code, open);
            let Some(long) = words(&code[open..end], "long").next() else { continue };
            let long = open + long;
            let named = code[long + 4..end].trim_start().starts_with('=');
            let name = if named { text_after(rust, long) } else { field_after(&code, end + 1) };
            flags.extend(name.map(|name| (at, format!("--{name}"))));
        }
    }
    for (at, _) in code.match_indices(".long(\"") {
        flags.extend(text_after(rust, at).map(|name| (at, format!("--{name}"))));
    }
    flags
}

fn text_after(rust: &RustSource, at: usize) -> Option<String> {
    rust.literals.iter().find(|literal| literal.at > at).map(|literal| literal.text.clone())
}

/// The field behind an attribute, as clap names its flag.
fn field_after(code: &str, mut at: usize) -> Option<String> {
    loop {
        let rest = code.get(at..)?;
        let skipped = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        if rest.starts_with('#') {
            at = closing(code, at + skipped + 1);
            continue;
        }
        let name = rest.split(':').next()?.split_whitespace().next_back()?;
        return Some(name.trim_start_matches("r#").replace('_', "-"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let pages = docs::pages(&SourceTree::new(tree.clone()));
        tree.extend(pages.into_iter().map(|(path, text)| (path, text.unwrap())));
        said(check, &SourceTree::new(tree))
    }

    #[test]
    fn stale_pages_are_found() {
        assert_eq!(found(&[]), Vec::<String>::new());
        let tree = SourceTree::sample(&[(docs::LIMITS, "# Limits\n")]);
        let findings = said(check, &tree);
        assert_eq!(findings.len(), 4, "{findings:?}");
        let stale = format!("{}:1: not what the code", docs::ERRORS);
        assert!(findings.concat().contains(&stale), "{findings:?}");
    }

    #[test]
    fn error_codes_are_unique_well_formed_and_declared() {
        let row = "errors! { enum E {\n#[code(\"SL-A-01\", \"A\")]\n#[cause(\"a\")]\n\
                   #[hint(\"A.\")]\nA } }\n";
        assert!(found(&[("crates/a/src/lib.rs", row)]).is_empty());
        let other = row.replace("\"A\"", "\"B\"");
        let twice = found(&[("crates/a/src/lib.rs", row), ("crates/b/src/lib.rs", &other)]);
        assert!(twice[0].contains("is taken by crates/a/src/lib.rs:2"), "{twice:?}");
        let other = row.replace("A-01", "A-02");
        let twice = found(&[("crates/a/src/lib.rs", row), ("crates/b/src/lib.rs", &other)]);
        assert!(twice[0].contains("the error name `A` of SL-A is taken"), "{twice:?}");
        let undeclared = found(&[("crates/a/src/lib.rs", "fn f() { g(\"SL-A-07\") }\n")]);
        assert!(undeclared[0].contains("`SL-A-07` has no row"), "{undeclared:?}");
        let odd = row.replace("SL-A-01", "E17");
        assert!(found(&[("crates/a/src/lib.rs", &odd)])[0].contains("write it like"));
        let small = row.replace("\"A.\"", "\"do it.\"");
        assert!(found(&[("crates/a/src/lib.rs", &small)])[0].contains("the hint of `SL-A-01`"));
        let stopped = row.replace("\"a\"", "\"a.\"");
        assert!(found(&[("crates/a/src/lib.rs", &stopped)])[0].contains("the cause of `SL-A-01`"));
    }

    #[test]
    fn routes_stand_in_the_spec() {
        let source = "fn r() { a(\"/v1/streams/{*topic}\"); b(\"/v1/streams\"); c(\"/health\"); }\n\
                      #[cfg(test)]\nmod tests { fn t() { g(\"/v1/none\") } }\n";
        let file = ("crates/sealane-node/src/lib.rs", source);
        let missing = found(&[file]);
        assert_eq!(missing.len(), 3, "{missing:?}");
        assert!(missing[0].contains("write spec/hub.md"), "{missing:?}");
        let partly = found(&[file, ("spec/hub.md", "`GET /v1/streams/{topic}` and /healthy\n")]);
        assert_eq!(partly.len(), 2, "{partly:?}");
        let page = "`/v1/streams`, `/v1/streams/{topic}`, `/health`\n";
        assert!(found(&[file, ("spec/hub.md", page)]).is_empty());
    }

    #[test]
    fn metrics_stand_on_their_page() {
        let source = "const A: &str = \"# TYPE sealane_hub_acks_total counter\";\n\
                      const B: &str = \"sealane_node=info\";\n";
        let file = ("crates/sealane-node/src/metrics.rs", source);
        let missing = found(&[file, (METRICS, "`sealane_hub_acks_total_more`\n")]);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(found(&[file, (METRICS, "`sealane_hub_acks_total`\n")]).is_empty());
    }

    #[test]
    fn flags_stand_on_their_page() {
        let source = r#"
struct A {
    /// Long help, with a comma.
    #[arg(long, default_value = "x")]
    #[doc(hidden)]
    pub(crate) max_rate: u8,
    #[arg(short, long = "for", value_parser = f)]
    duration: u8,
}
fn f() { Arg::new("q").long("quiet"); }
"#;
        let file = ("crates/sealane-cli/src/args.rs", source);
        let names: Vec<_> =
            flags(&RustSource::scan(source)).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["--max-rate", "--for", "--quiet"]);
        let missing = found(&[file, (FLAGS, "`--max-rate-of`, `--for`, `--quiet`\n")]);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].contains("args.rs:4: the flag `--max-rate`"), "{missing:?}");
    }
}
