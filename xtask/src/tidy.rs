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

use std::collections::BTreeSet;

use crate::process::XtaskResult;
use crate::tree::SourceTree;

/// The findings of the checks: places, each with what is wrong there, and what to do about it.
#[derive(Default)]
pub(crate) struct TidyFindings(BTreeSet<(String, usize, String, String)>);

impl TidyFindings {
    /// Adds a finding in a file.
    fn add(&mut self, path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.insert((path.to_owned(), line, what.into(), remedy.into()));
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let line = |(path, line, what, remedy): &_| format!("{path}:{line}: {what}; {remedy}");
        self.0.iter().map(line)
    }
}

/// How far up the crate of this file stands in the order of crates.
pub(crate) fn layer_of(path: &str) -> usize {
    let name = path.split('/').nth(1).unwrap_or_default();
    let layers = layers::LAYERS.iter();
    layers.take_while(|layer| **layer != name).count()
}

type TidyCheck = fn(&SourceTree, &mut TidyFindings);

const CHECKS: &[TidyCheck] = &[
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
    let mut findings = TidyFindings::default();
    CHECKS.iter().for_each(|check| check(&tree, &mut findings));
    findings.lines().for_each(|line| println!("{line}"));
    let count = findings.0.len();
    if count == 0 { Ok(()) } else { Err(format!("tidy: {count} findings")) }
}

/// The texts of a check's findings, for its tests.
#[cfg(test)]
fn said(check: TidyCheck, tree: &SourceTree) -> Vec<String> {
    let mut findings = TidyFindings::default();
    check(tree, &mut findings);
    findings.lines().collect()
}
