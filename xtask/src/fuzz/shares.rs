//! Which fuzz targets come first, and how many seconds each gets of those for all.

use crate::process;
use crate::tree::SourceTree;

/// A target whose code has changed gets so many times the seconds of another.
const CHANGED_SHARES: u64 = 3;

/// The targets with their seconds: `seconds` in all, those first whose code has changed.
pub(super) fn shares(tree: &SourceTree, targets: Vec<String>, seconds: u64) -> Vec<(String, u64)> {
    divided(targets, &changed_files(), seconds, |target| code_of(tree, target))
}

fn divided(
    targets: Vec<String>,
    changed: &[String],
    seconds: u64,
    code_of: impl Fn(&str) -> Vec<String>,
) -> Vec<(String, u64)> {
    let is_changed = |target: &String| {
        let code = code_of(target);
        changed.iter().any(|file| code.iter().any(|begin| file.starts_with(begin)))
    };
    let (first, then): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_changed);
    let shares = first.len() as u64 * CHANGED_SHARES + then.len() as u64;
    let one = seconds / shares.max(1);
    let first = first.into_iter().map(|target| (target, (one * CHANGED_SHARES).max(1)));
    first.chain(then.into_iter().map(|target| (target, one.max(1)))).collect()
}

/// Files that differ from where this branch left `main`, or on `main` from the commit before. In a
/// clone without history nothing has changed.
fn changed_files() -> Vec<String> {
    let git = |arguments: &[&str]| {
        process::output(process::program("git").args(arguments)).map(|text| text.trim().to_owned())
    };
    let head = git(&["rev-parse", "HEAD"]).unwrap_or_default();
    let bases = ["origin/main", "main"].into_iter();
    let left = bases.filter_map(|main| git(&["merge-base", "HEAD", main]).ok());
    let base = left.into_iter().find(|base| *base != head).unwrap_or_else(|| "HEAD~1".to_owned());
    let files = git(&["diff", "--name-only", &base]).unwrap_or_default();
    files.lines().map(str::to_owned).collect()
}

/// How the paths begin of what a target calls: its own laws, and the crates that they name.
fn code_of(tree: &SourceTree, target: &str) -> Vec<String> {
    let program = tree.get(&format!("fuzz/src/bin/{target}.rs")).unwrap_or_default();
    let after = |text: &str, begin: &str| -> Vec<String> {
        let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
        text.split(begin).skip(1).map(|rest| rest.chars().take_while(is_word).collect()).collect()
    };
    let mut code = vec![];
    for module in after(program, "sealane_fuzz::") {
        for (begin, file) in tree.rust().map(|(path, _)| path).filter_map(|path| {
            let rest = path.strip_prefix(&format!("fuzz/src/{module}"))?;
            rest.starts_with(['.', '/']).then(|| (format!("fuzz/src/{module}"), path))
        }) {
            let crates = after(tree.get(file).unwrap_or_default(), "use sealane_");
            code.extend(crates.iter().map(|name| format!("crates/sealane-{name}/src/")));
            code.push(begin);
        }
    }
    code.sort();
    code.dedup();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_has_changed_comes_first_and_gets_more() {
        let code_of = |target: &str| vec![format!("crates/sealane-{target}/src/")];
        let changed = words("README.md crates/sealane-seal/src/lib.rs crates/sealane-codec/x");
        let shares = divided(words("codec frame seal"), &changed, 240, code_of);
        let expected = [("seal", 144), ("codec", 48), ("frame", 48)];
        assert_eq!(shares, expected.map(|(name, seconds)| (name.to_owned(), seconds)));
        let all = divided(words("a b c d"), &[], 240, code_of);
        assert!(all.iter().all(|(_, seconds)| *seconds == 60), "{all:?}");
        assert_eq!(divided(words("a b"), &[], 1, code_of)[0].1, 1, "each runs");
    }

    #[test]
    fn a_target_calls_its_laws_and_the_crates_that_they_name() {
        let tree = SourceTree::sample(&[
            ("fuzz/src/bin/order.rs", "fuzz_target!(|b: &[u8]| sealane_fuzz::hub::order(b));\n"),
            ("fuzz/src/hub.rs", "use sealane_codec::Codec;\nmod steps;\n"),
            ("fuzz/src/hub/steps.rs", "use sealane_stream::Hub;\n"),
            ("fuzz/src/hubris.rs", "use sealane_vault::Vault;\n"),
        ]);
        let expected = ["crates/sealane-codec/src/", "crates/sealane-stream/src/", "fuzz/src/hub"];
        assert_eq!(code_of(&tree, "order"), expected);
    }

    #[test]
    fn every_target_calls_a_crate() {
        let tree = SourceTree::load().unwrap();
        for target in super::super::targets().unwrap().unwrap() {
            let code = code_of(&tree, &target);
            assert!(code.iter().any(|path| path.starts_with("crates/")), "{target}: {code:?}");
        }
    }
}
