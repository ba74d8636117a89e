//! Which fuzz targets come first, and how many seconds each gets of those for all.

use std::collections::BTreeSet;

use super::FuzzTarget;
use crate::process;
use crate::tree::SourceTree;

/// A target whose code has changed gets so many times the seconds of another.
const CHANGED_SHARES: u64 = 3;

/// The targets with their seconds: `seconds` in all, those first whose code has changed.
pub(super) fn shares(
    tree: &SourceTree,
    targets: Vec<FuzzTarget>,
    seconds: u64,
) -> Vec<(String, u64)> {
    let changed = changed_files();
    let is_changed = |target: &FuzzTarget| {
        let code = code_of(tree, target);
        changed.iter().any(|file| code.iter().any(|begin| file.starts_with(begin)))
    };
    divided(targets.into_iter().map(|target| (is_changed(&target), target.name)), seconds)
}

/// Those first of which it is said that they have changed.
fn divided(targets: impl Iterator<Item = (bool, String)>, seconds: u64) -> Vec<(String, u64)> {
    let (first, then): (Vec<_>, Vec<_>) = targets.partition(|(is_changed, _)| *is_changed);
    let shares = first.len() as u64 * CHANGED_SHARES + then.len() as u64;
    let one = seconds / shares.max(1);
    let share = |(is_changed, name)| {
        let times = if is_changed { CHANGED_SHARES } else { 1 };
        (name, (one * times).max(1))
    };
    first.into_iter().chain(then).map(share).collect()
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
fn code_of(tree: &SourceTree, target: &FuzzTarget) -> Vec<String> {
    let begin = format!("fuzz/src/{}", target.module);
    let of_law = |path: &str| {
        path.strip_prefix(&begin).is_some_and(|rest| rest.starts_with('.') || rest.starts_with('/'))
    };
    let mut code = BTreeSet::from([begin.clone()]);
    for (path, _) in tree.rust().filter(|(path, _)| of_law(path)) {
        let named = tree.get(path).unwrap_or_default().split("use sealane_").skip(1);
        let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric()).collect();
        code.extend(named.map(word).map(|name: String| format!("crates/sealane-{name}/src/")));
    }
    code.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_comes_first_and_gets_more() {
        let targets = |text: &'static str, changed: &'static str| {
            text.split(' ').map(move |name| (changed == name, name.to_owned()))
        };
        let shares = divided(targets("codec frame seal", "seal"), 240);
        let expected = [("seal", 144), ("codec", 48), ("frame", 48)];
        assert_eq!(shares, expected.map(|(name, seconds)| (name.to_owned(), seconds)));
        let all = divided(targets("a b c d", ""), 240);
        assert!(all.iter().all(|(_, seconds)| *seconds == 60), "{all:?}");
        assert_eq!(divided(targets("a b", ""), 1)[0].1, 1, "each runs");
    }

    #[test]
    fn a_target_calls_its_laws_and_the_crates_that_they_name() {
        let tree = SourceTree::sample(&[
            ("fuzz/examples/order.rs", "fuzz_target!(|b: &[u8]| sealane_fuzz::hub::order(b));\n"),
            ("fuzz/src/hub.rs", "use sealane_codec::Codec;\nmod steps;\n"),
            ("fuzz/src/hub/steps.rs", "use sealane_stream::Hub;\n"),
            ("fuzz/src/hubris.rs", "use sealane_vault::Vault;\n"),
        ]);
        let [target] = &super::super::targets(&tree)[..] else { panic!("one target") };
        let expected = ["crates/sealane-codec/src/", "crates/sealane-stream/src/", "fuzz/src/hub"];
        assert_eq!(
            (&*target.name, code_of(&tree, target)),
            ("order", expected.map(Into::into).into())
        );
    }

    #[test]
    fn every_target_calls_a_crate_and_has_a_law() {
        let tree = SourceTree::load().unwrap();
        let targets = super::super::targets(&tree);
        assert!(targets.len() >= 29, "{} targets", targets.len());
        for target in targets {
            let code = code_of(&tree, &target);
            assert!(code.iter().any(|path| path.starts_with("crates/")), "{}", target.name);
        }
    }
}
