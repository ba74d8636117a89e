//! A page that another page, a manifest or a unit names is there.

use std::collections::BTreeSet;

use super::TidyFindings;
use crate::tree::SourceTree;

/// Texts that name pages. Records keep the names that pages had in their time.
const TEXTS: &[&str] = &[".md", ".toml", ".yml", ".yaml", ".service", ".timer", ".sh", ".py"];
const RECORDS: &str = "results/";
/// The folders of the pages.
const FOLDERS: [&str; 2] = ["docs/", "spec/"];
const PAGE: &str = ".md";

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    let paths: BTreeSet<&str> = tree.files().map(|(path, _)| path).collect();
    let is_text = |path: &str| TEXTS.iter().any(|end| path.ends_with(end));
    let texts = tree.files().filter(|(path, _)| is_text(path) && !path.starts_with(RECORDS));
    for (path, text) in texts {
        for (index, line) in text.lines().enumerate() {
            let missing =
                links(path, line).chain(mentions(line)).find(|page| !paths.contains(page.as_str()));
            if let Some(page) = missing {
                let what = format!("there is no {page}");
                findings.add(path, index + 1, what, "name the page that is there");
            }
        }
    }
}

/// The pages that a line of Markdown links to, from the root.
fn links<'t>(path: &'t str, line: &'t str) -> impl Iterator<Item = String> + 't {
    let is_markdown = path.ends_with(PAGE);
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let pages = targets
        .filter(move |target| is_markdown && target.ends_with(PAGE) && !target.contains("://"));
    pages.map(|target| from_root(path, target))
}

/// The pages that a line names by their path from the root.
fn mentions(line: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
    line.split(move |c| !is_part(c)).filter_map(|word| {
        let page = word.trim_end_matches('.');
        let is_page = FOLDERS.iter().any(|folder| page.starts_with(folder));
        (is_page && page.ends_with(PAGE) && !page.contains('*')).then(|| page.to_owned())
    })
}

/// Where a link of a page leads.
fn from_root(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn pages_that_are_not_there_are_found() {
        let page = "[a](B.md#c) [d](../spec/e.md) https://x.example/y.md\n\
                    [f](gone.md)\n`docs/*.md` says docs/B.md.\nread docs/gone.md.\n";
        let findings = said(
            check,
            &SourceTree::sample(&[
                ("docs/A.md", page),
                ("docs/B.md", ""),
                ("spec/e.md", ""),
                ("packaging/a.service", "# spec/gone.md\n"),
                ("results/a.md", "docs/gone.md\n"),
                ("crates/a/src/lib.rs", "//! docs/gone.md\n"),
            ]),
        );
        let places: Vec<_> = findings.iter().filter_map(|one| one.split(": ").next()).collect();
        assert_eq!(places, ["docs/A.md:2", "docs/A.md:4", "packaging/a.service:1"]);
    }
}
