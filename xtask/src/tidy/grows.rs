//! The lists of `docs/ARCHITECTURE.md` that say which files to touch for something new, beside the
//! patches that prove them.

use std::collections::BTreeSet;

use super::TidyFindings;
use crate::tree::SourceTree;

const PAGE: &str = "docs/ARCHITECTURE.md";
const PATCHES: &str = "tests/grow/";

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    let lists = lists(tree.get(PAGE).unwrap_or_default());
    let is_patch = |path: &&str| path.starts_with(PATCHES) && path.ends_with(".patch");
    let patches: Vec<_> = tree.files().filter(|(path, _)| is_patch(path)).collect();
    for (path, text) in &patches {
        let touched = touched(text);
        let Some(list) = lists.iter().find(|list| list.patch == *path) else {
            let what = format!("{PAGE} has no list for it");
            findings.add(path, 1, what, "write one that names this patch");
            continue;
        };
        for file in list.files.symmetric_difference(&touched) {
            let (which, remedy) = match list.files.contains(file) {
                true => ("listed but not touched", "touch it in the patch, or strike it"),
                false => ("touched but not listed", "list it, or leave it alone"),
            };
            findings.add(PAGE, list.line, format!("`{file}` is {which} by {path}"), remedy);
        }
    }
    for list in lists.iter().filter(|list| !patches.iter().any(|(path, _)| *path == list.patch)) {
        let what = format!("there is no {}", list.patch);
        findings.add(PAGE, list.line, what, "write the patch that proves the list");
    }
}

/// The files of one thing that can be added.
struct GrowthList {
    line: usize,
    patch: String,
    files: BTreeSet<String>,
}

/// A line that names a patch begins a list, whose items begin with a file each.
fn lists(page: &str) -> Vec<GrowthList> {
    let mut lists: Vec<GrowthList> = vec![];
    for (index, line) in page.lines().enumerate() {
        let mut codes = line.split('`').skip(1).step_by(2);
        if let Some(patch) = codes.clone().find(|code| code.starts_with(PATCHES)) {
            let (patch, files) = (patch.to_owned(), BTreeSet::new());
            lists.push(GrowthList { line: index + 1, patch, files });
        } else if line.starts_with("- `")
            && let (Some(list), Some(file)) = (lists.last_mut(), codes.next())
        {
            list.files.insert(file.to_owned());
        } else if line.starts_with('#') && !lists.is_empty() {
            break;
        }
    }
    lists
}

/// The files that a patch changes or makes.
fn touched(patch: &str) -> BTreeSet<String> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn lists_and_patches_that_differ_are_found() {
        let page = "# A\n\n**An error** (`tests/grow/error.patch`):\n\n- `a.rs`: one\n\
                    - `b.rs`: two\n\n**A limit** (`tests/grow/limit.patch`):\n\n- `a.rs`: one\n\n\
                    ## B\n\n- `c`: no\n";
        let findings = said(
            check,
            &SourceTree::sample(&[
                (PAGE, page),
                ("tests/grow/error.patch", "--- a/a.rs\n+++ b/a.rs\n--- /dev/null\n+++ b/c.rs\n"),
                ("tests/grow/more.patch", "+++ b/a.rs\n"),
            ]),
        );
        assert_eq!(findings.len(), 4, "{findings:?}");
        assert!(findings[0].contains(":3: `b.rs` is listed but not touched"), "{findings:?}");
        assert!(findings[1].contains(":3: `c.rs` is touched but not listed"), "{findings:?}");
        assert!(findings[3].contains("more.patch:1: docs/ARCHITECTURE.md has no"), "{findings:?}");
        assert!(findings[2].contains(":8: there is no tests/grow/limit.patch"), "{findings:?}");
    }
}
