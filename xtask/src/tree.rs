//! The text files of the repository, as the checks see them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::process::{self, XtaskResult};
use crate::rust::{RustSource, test_modules};

/// Every text file that is committed or about to be.
pub(crate) struct SourceTree {
    files: BTreeMap<String, String>,
    rust: BTreeMap<String, RustSource>,
}

/// A crate of the workspace.
pub(crate) struct WorkspacePackage<'a> {
    /// Its name in the manifest.
    pub(crate) name: String,
    /// Its folder, `crates/sealane-codec`.
    pub(crate) dir: &'a str,
    /// Its manifest.
    pub(crate) manifest: toml::Table,
}

impl SourceTree {
    /// Reads the files that git knows or would add.
    pub(crate) fn load() -> XtaskResult<Self> {
        let root = process::root();
        let mut list = process::program("git");
        list.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
        let paths = process::output(&mut list)?;
        let read = |path: &str| std::fs::read_to_string(root.join(Path::new(path))).ok();
        Ok(Self::new(
            paths
                .split_terminator('\0')
                .filter_map(|path| read(path).map(|text| (path.to_owned(), text))),
        ))
    }

    /// A tree of the given files.
    pub(crate) fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let files: BTreeMap<_, _> = files.into_iter().collect();
        let rust = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.clone(), RustSource::scan(text)))
            .collect();
        Self { files, rust }
    }

    /// A tree written down in a test.
    #[cfg(test)]
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        Self::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())))
    }

    /// One file's text.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &RustSource)> {
        self.rust.iter().map(|(path, rust)| (path.as_str(), rust))
    }

    /// The Rust files below a folder.
    pub(crate) fn rust_in(&self, dir: &str) -> impl Iterator<Item = (&str, &RustSource)> {
        let prefix = format!("{dir}/");
        self.rust().filter(move |(path, _)| path.starts_with(&prefix))
    }

    /// The Rust files of all crates that are not tests: `crates/*/src`.
    pub(crate) fn library_sources(&self) -> impl Iterator<Item = (&str, &RustSource)> {
        self.rust().filter(|(path, _)| {
            path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("/tests.rs")
        })
    }

    /// The Rust files that are compiled only for tests.
    pub(crate) fn test_files(&self) -> BTreeSet<&str> {
        let modules: Vec<_> =
            self.rust().flat_map(|(path, rust)| test_modules(path, &rust.code)).collect();
        let is_test = |path: &&str| modules.iter().any(|module| path.starts_with(module));
        self.rust().map(|(path, _)| path).filter(is_test).collect()
    }

    /// The crates below `crates/`, and xtask.
    pub(crate) fn packages(&self) -> Vec<WorkspacePackage<'_>> {
        self.files()
            .filter_map(|(path, text)| {
                let dir = path.strip_suffix("/Cargo.toml")?;
                let ours = dir == "xtask" || dir.strip_prefix("crates/").is_some_and(is_one_name);
                let manifest: toml::Table = if ours { text.parse().ok()? } else { return None };
                let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
                Some(WorkspacePackage { name, dir, manifest })
            })
            .collect()
    }
}

impl WorkspacePackage<'_> {
    /// A table of the manifest, for example `features`; empty when absent.
    pub(crate) fn table(&self, name: &str) -> toml::Table {
        self.manifest.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default()
    }

    /// The names under one kind of dependencies, those of single platforms included.
    pub(crate) fn dependencies(&self, kind: &str) -> Vec<String> {
        let platforms = self.table("target");
        let of_platforms = platforms.values().filter_map(|platform| platform.get(kind)?.as_table());
        self.manifest
            .get(kind)
            .and_then(toml::Value::as_table)
            .into_iter()
            .chain(of_platforms)
            .flat_map(|table| table.keys().cloned())
            .collect()
    }
}

fn is_one_name(path: &str) -> bool {
    !path.contains('/')
}
