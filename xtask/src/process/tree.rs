//! Ending a program together with all that it has started.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

/// Ends `child` and what descends from it. All are looked for before the first ends: who has lost
/// its parent cannot be found any more. Where there is no `/proc`, only `child` ends.
pub(crate) fn end(child: &mut Child) {
    let mut found = vec![child.id()];
    let children = children();
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(children.get(parent).into_iter().flatten());
        next += 1;
    }
    let mut kill = Command::new("kill");
    kill.arg("-KILL").args(found.iter().map(u32::to_string)).stderr(Stdio::null());
    // A process that has gone in between is no fault, and `child` is killed once more.
    drop(kill.status());
    drop(child.kill());
    drop(child.wait());
}

/// The processes of the system, by their parent.
fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children = BTreeMap::<_, Vec<_>>::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(id);
        }
    }
    children
}

/// `ID (NAME) STATE PARENT …`, and a name may hold whatever it likes.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) b) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (a"), None);
        assert_eq!(parent(""), None);
    }
}
