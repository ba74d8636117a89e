//! The paths that a put leaves out: patterns as git reads them, each from where it stands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::PutOptions;
use crate::Error;

/// The exclusions of a put. Of several lists, the last with a pattern for a path decides.
pub(super) struct PutExcludes {
    lists: Vec<ExcludeList>,
    malformed: Vec<String>,
}

/// A list of patterns, seen from one of the roots of a put.
struct ExcludeList {
    root: PathBuf,
    /// From the root down to the folder at which the patterns begin, if it lies in the root.
    down: PathBuf,
    /// From that folder down to the root, if the root lies in it.
    up: PathBuf,
    all: Gitignore,
    each: Vec<ExcludePattern>,
}

/// One pattern, for who asks whether it has matched anything.
struct ExcludePattern {
    shown: String,
    alone: Gitignore,
    has_matched: AtomicBool,
}

/// Lines of one file, or of the command line.
struct ExcludeLines {
    from: Option<PathBuf>,
    lines: Vec<String>,
}

impl PutExcludes {
    /// The patterns of `options` for a put of `roots`, which are absolute.
    ///
    /// Those of the command line begin at each root, those of a file where the file stands. If
    /// that is neither in a root nor above it, they begin at the root, too.
    pub(super) fn new(options: &PutOptions, roots: &[PathBuf]) -> Result<PutExcludes, Error> {
        let mut sources = Vec::new();
        for file in &options.exclude_from {
            let bytes = std::fs::read(file).map_err(|cause| Error::file(file, cause))?;
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let lines = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
            sources.push(ExcludeLines { from: Some(file.clone()), lines });
        }
        sources.push(ExcludeLines { from: None, lines: options.exclude.clone() });
        let mut excludes = PutExcludes { lists: Vec::new(), malformed: Vec::new() };
        for source in &sources {
            for root in roots {
                let list = excludes.list(source, root)?;
                excludes.lists.push(list);
            }
        }
        excludes.malformed.dedup();
        Ok(excludes)
    }

    fn list(&mut self, source: &ExcludeLines, root: &Path) -> Result<ExcludeList, Error> {
        let (down, up) =
            source.from.as_ref().and_then(|file| between(root, file)).unwrap_or_default();
        // Joined, an empty way down would leave a slash at the end.
        let anchor: PathBuf = root.components().chain(down.components()).collect();
        let mut all = GitignoreBuilder::new("");
        let mut each = Vec::new();
        for (at, line) in source.lines.iter().enumerate() {
            let shown = match &source.from {
                Some(file) => format!("{}:{}: {line}", file.display(), at + 1),
                None => line.clone(),
            };
            let anchored = from_anchor(line, &anchor, &up);
            let mut alone = GitignoreBuilder::new("");
            let built = alone.add_line(None, &anchored).and_then(|alone| alone.build());
            match (built, &source.from) {
                (Ok(alone), _) if alone.is_empty() => continue,
                (Ok(alone), _) => {
                    let has_matched = AtomicBool::new(false);
                    each.push(ExcludePattern { shown, alone, has_matched });
                }
                // To git such a line of a file matches nothing.
                (Err(error), Some(_)) => {
                    self.malformed.push(format!("{shown} ({error})"));
                    continue;
                }
                (Err(error), None) => return Err(Error::Pattern(error.to_string())),
            }
            all.add_line(None, &anchored).map_err(|error| Error::Pattern(error.to_string()))?;
        }
        let all = all.build().map_err(|error| Error::Pattern(error.to_string()))?;
        Ok(ExcludeList { root: root.to_owned(), down, up, all, each })
    }

    pub(super) fn has(&self, path: &Path, folder: bool) -> bool {
        let decided = self.lists.iter().rev().find_map(|list| {
            match list.all.matched(list.seen(path)?, folder) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            }
        });
        if decided.is_some() {
            self.lists.iter().for_each(|list| list.note(path, folder));
        }
        decided.unwrap_or(false)
    }

    /// Patterns that have matched nothing, and lines that are none.
    pub(super) fn unmatched(&self) -> Vec<String> {
        let all = self.lists.iter().flat_map(|list| &list.each);
        let (used, idle): (Vec<_>, Vec<_>) =
            all.partition(|pattern| pattern.has_matched.load(Ordering::Relaxed));
        let used: BTreeSet<&str> = used.iter().map(|pattern| pattern.shown.as_str()).collect();
        let mut named = BTreeSet::new();
        let idle = idle.iter().map(|pattern| pattern.shown.as_str());
        let idle = idle.filter(|shown| !used.contains(shown) && named.insert(shown.to_owned()));
        idle.map(str::to_owned).chain(self.malformed.iter().cloned()).collect()
    }
}

impl ExcludeList {
    /// A path as its patterns see it; none if it is not below them.
    fn seen(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.root).ok()?.strip_prefix(&self.down).ok()?;
        Some(self.up.join(below)).filter(|seen| !seen.as_os_str().is_empty())
    }

    /// Notes every pattern that matches, also one that another overrules.
    fn note(&self, path: &Path, folder: bool) {
        let Some(seen) = self.seen(path) else { return };
        for pattern in self.each.iter().filter(|one| !one.has_matched.load(Ordering::Relaxed)) {
            if !pattern.alone.matched(&seen, folder).is_none() {
                pattern.has_matched.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The way from a root down to the folder of a file, or from that folder down to the root; none if
/// neither lies in the other.
fn between(root: &Path, file: &Path) -> Option<(PathBuf, PathBuf)> {
    let folder = std::path::absolute(file).ok()?.parent()?.to_owned();
    let way = |root: &Path, folder: &Path| match folder.strip_prefix(root) {
        Ok(down) => Some((down.to_owned(), PathBuf::new())),
        Err(_) => Some((PathBuf::new(), root.strip_prefix(folder).ok()?.to_owned())),
    };
    let links_followed = || way(&root.canonicalize().ok()?, &folder.canonicalize().ok()?);
    way(root, &folder).or_else(links_followed)
}

/// A pattern that names a whole path of this machine, as one that begins at its anchor.
fn from_anchor(line: &str, anchor: &Path, up: &Path) -> String {
    let folder = anchor.ancestors().nth(up.components().count()).unwrap_or(anchor);
    let (not, pattern) = line.strip_prefix('!').map_or(("", line), |pattern| ("!", pattern));
    let below = pattern.strip_prefix(&*folder.to_string_lossy());
    match below.filter(|below| below.starts_with('/') && below.len() > 1) {
        Some(below) => format!("{not}{below}"),
        None => line.to_owned(),
    }
}
