//! The checks beyond the compiler's: sizes, layers, dead files, and names without a page.
//!
//! A check takes the tree and gives findings. Each check has a test with a sample that it must
//! catch.

mod dead;
mod documented;
mod grows;
mod layers;
mod links;
mod machines;
pub(crate) mod names;
mod proofs;
pub(crate) mod rooms;
mod sizes;

use std::fmt;

use crate::process::XtaskResult;
use crate::tree::SourceTree;

/// One thing that is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl TidyFinding {
    /// A finding in a file.
    pub(crate) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}

/// How far up the crate of this file stands in the order of crates.
pub(crate) fn layer_of(path: &str) -> usize {
    let name = path.split('/').nth(1).unwrap_or_default();
    let layers = layers::LAYERS.iter();
    layers.take_while(|layer| **layer != name).count()
}

const CHECKS: &[fn(&SourceTree) -> Vec<TidyFinding>] = &[
    sizes::check,
    layers::check,
    links::check,
    dead::check,
    machines::check,
    names::check,
    documented::check,
    grows::check,
    proofs::check,
    rooms::check,
];

/// `cargo xtask tidy`.
pub(crate) fn run(_: &[String]) -> XtaskResult {
    let tree = SourceTree::load()?;
    let mut findings: Vec<_> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("tidy: {} findings", findings.len())) }
}

/// The texts of the findings, for the tests of the checks.
#[cfg(test)]
fn said(findings: &[TidyFinding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_fault_and_remedy() {
        let finding = TidyFinding::new("crates/a/src/lib.rs", 7, "a tab", "use spaces");
        assert_eq!(finding.to_string(), "crates/a/src/lib.rs:7: a tab; use spaces");
    }
}
