//! `cargo xtask metrics [--alone] [NAME=FOLDER ...]`: sizes and habits of the code of this
//! workspace, beside those of other source trees.
//!
//! Tests, comments and blank lines are left out. What is counted is text, not syntax trees, so that
//! the figures are for comparing, and not exact where macros write code.

mod count;

use std::collections::BTreeMap;
use std::path::Path;

use crate::process::{self, XtaskResult, git, today};
use crate::rust::RustSource;
use crate::tidy::{names, rooms};
use crate::tree::SourceTree;
use count::SourceCounts;

/// How a row of the table is made.
type MetricsCell = fn(&SourceCounts) -> String;

const ROWS: &[(&str, MetricsCell)] = &[
    ("code lines", |of| of.lines().to_string()),
    ("functions", |of| of.functions.len().to_string()),
    ("files", |of| of.files.len().to_string()),
    ("lines of a function: median / p90", |of| {
        format!("{} / {}", part(&of.functions, 50), part(&of.functions, 90))
    }),
    ("lines of a function: p99 / max", |of| {
        format!("{} / {}", part(&of.functions, 99), part(&of.functions, 100))
    }),
    ("functions over 60 lines", |of| {
        of.functions.iter().filter(|lines| **lines > 60).count().to_string()
    }),
    ("lines of a file: median / p90", |of| {
        format!("{} / {}", part(&of.files, 50), part(&of.files, 90))
    }),
    ("lines of a file: p99 / max", |of| {
        format!("{} / {}", part(&of.files, 99), part(&of.files, 100))
    }),
    ("nested braces of a function: p90 / max", |of| {
        format!("{} / {}", part(&of.depths, 90), part(&of.depths, 100))
    }),
    ("unwrap, expect", |of| of.rate(of.unwraps)),
    ("panic, unreachable, assert", |of| of.rate(of.panics)),
    ("debug_assert", |of| of.rate(of.debug_asserts)),
    ("casts to numbers by `as`", |of| of.rate(of.casts)),
    ("unsafe", |of| of.rate(of.unsafes)),
    ("clone", |of| of.rate(of.clones)),
    ("pub", |of| of.rate(of.publics)),
    ("comments within functions", |of| of.rate(of.reasons)),
    ("documentation", |of| of.rate(of.docs)),
    ("types", |of| of.rate(of.types)),
    ("types of which the name is one word", |of| {
        format!("{} ({} %)", of.short_names, of.short_names * 100 / of.types.max(1))
    }),
    ("functions with more than 5 parameters", |of| of.rate(of.long_lists)),
    ("functions with a tuple as parameter", |of| of.rate(of.tuples)),
];

/// The crates of others that stand beside ours, with their versions. Of zenoh all crates count that
/// it is made of, as ours do.
const PEERS: &[(&str, &str)] =
    &[("quinn-proto", "=0.11.15"), ("rustls", "=0.23.46"), ("zenoh", "=1.10.0")];

/// `cargo xtask metrics [--alone] [NAME=FOLDER ...]`: beside the [`PEERS`] from the registry, which
/// `--alone` leaves out, and beside other folders.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let tree = SourceTree::load()?;
    let of = |prefix: &str| -> BTreeMap<String, RustSource> {
        let ours = tree.files().filter(|(path, _)| {
            path.starts_with(prefix) && path.contains("/src/") && path.ends_with(".rs")
        });
        ours.map(|(path, text)| (path.to_owned(), RustSource::scan(text))).collect()
    };
    let mut columns = vec![
        ("sealane".to_owned(), SourceCounts::of(&of("crates/"))),
        ("xtask".to_owned(), SourceCounts::of(&of("xtask/"))),
    ];
    let (alone, folders): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| *argument == "--alone");
    for argument in folders {
        let (name, folder) = argument
            .split_once('=')
            .ok_or_else(|| format!("`{argument}` is not NAME=FOLDER, a folder of Rust sources"))?;
        let mut sources = BTreeMap::new();
        read(Path::new(folder), &mut sources)?;
        if sources.is_empty() {
            return Err(format!("{folder} holds no Rust sources"));
        }
        columns.push((name.to_owned(), SourceCounts::of(&sources)));
    }
    if alone.is_empty() {
        columns.extend(peers()?);
    }
    print!("{}{}\n{}", head()?, table(&columns), habits(&tree));
    Ok(())
}

/// The counts of [`PEERS`], whose sources cargo fetches for a package that asks for them.
fn peers() -> XtaskResult<Vec<(String, SourceCounts)>> {
    let folder = process::root().join("target/metrics");
    let mut manifest = "[package]\nname = \"peers\"\nversion = \"0.0.0\"\n\
                        edition = \"2024\"\n[workspace]\n[dependencies]\n"
        .to_owned();
    for (name, version) in PEERS {
        manifest += &format!("{name} = {{ version = \"{version}\", default-features = false }}\n");
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder.join("src")).map_err(failed)?;
    std::fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    std::fs::write(folder.join("src/lib.rs"), "").map_err(failed)?;
    let vendored = folder.join("vendor");
    let mut vendor = process::cargo();
    vendor.args(["vendor", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    process::output(vendor.arg(&vendored))?;
    let count = |(name, _): &(&str, &str)| {
        let mut sources = BTreeMap::new();
        for entry in std::fs::read_dir(&vendored).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let package = path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
            if package == *name || *name == "zenoh" && package.starts_with("zenoh-") {
                read(&path.join("src"), &mut sources)?;
            }
        }
        Ok(((*name).to_owned(), SourceCounts::of(&sources)))
    };
    PEERS.iter().map(count).collect()
}

/// Figures that the issue of the house bounds, of this repository alone.
fn habits(tree: &SourceTree) -> String {
    let lines: usize = tree
        .files()
        .filter(|(path, _)| path.ends_with(".rs"))
        .map(|(_, t)| t.lines().count())
        .sum();
    let vague: usize = tree.rust().map(|(_, rust)| names::vague_lines(rust).len()).sum();
    let rows = [
        ("lines of Rust in the repository", lines),
        ("type names that stand more than once", names::repeated_names(tree).len()),
        ("comments that begin with who, what or whose", vague),
        ("errors of shipped crates that are a `String`", rooms::errors_as_strings(tree)),
        ("lines of the daemons in the command line", rooms::daemon_lines(tree)),
    ];
    rows.iter().map(|(name, count)| format!("{name:45} {count:>8}\n")).collect()
}

fn head() -> XtaskResult<String> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!results"])?;
    let more = if changed.is_empty() { "" } else { " and uncommitted changes" };
    Ok(format!(
        "metrics: sizes and habits of the code, without tests, comments and blank lines\n\
         date: {}\ncommit: {}{more}\nsealane: crates/*/src\n\
         in brackets: for each 1,000 lines of code\n\n",
        today()?,
        commit.trim(),
    ))
}

/// The Rust sources below a folder: of a crate, those below its `src`.
fn read(folder: &Path, sources: &mut BTreeMap<String, RustSource>) -> XtaskResult {
    let inner = folder.join("src");
    let folder = if sources.is_empty() && inner.is_dir() { &inner } else { folder };
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            read(&path, sources)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            sources.insert(path.to_string_lossy().into_owned(), RustSource::scan(&text));
        }
    }
    Ok(())
}

/// The value that so many percent of all do not exceed.
fn part(all: &[usize], percent: usize) -> usize {
    let mut all = all.to_vec();
    all.sort_unstable();
    let index = (all.len() * percent).div_ceil(100).saturating_sub(1);
    all.get(index).copied().unwrap_or_default()
}

fn table(columns: &[(String, SourceCounts)]) -> String {
    let width = ROWS.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut table = format!("{:width$}", "");
    let cell = |text: &str, name: &str| format!("  {text:>0$}", name.len().max(14));
    columns.iter().for_each(|(name, _)| table += &cell(name, name));
    for (title, row) in ROWS {
        table += &format!("\n{title:width$}");
        columns.iter().for_each(|(name, counts)| table += &cell(&row(counts), name));
    }
    table + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_values_that_are_there() {
        let all: Vec<usize> = (1..=10).rev().collect();
        assert_eq!([50, 90, 99, 100].map(|percent| part(&all, percent)), [5, 9, 10, 10]);
        assert_eq!(part(&[], 50), 0);
    }

    #[test]
    fn trees_stand_beside_each_other_with_rates() {
        let source = |text: &str| BTreeMap::from([("a.rs".to_owned(), RustSource::scan(text))]);
        let one = SourceCounts::of(&source("fn a() {\n    b().unwrap();\n}\n\n// fn no()\n"));
        let table =
            table(&[("ours".to_owned(), one), ("theirs".to_owned(), SourceCounts::default())]);
        let row = |title: &str| -> Vec<String> {
            let line = table.lines().find(|line| line.starts_with(title)).unwrap();
            line[title.len()..].split("  ").map(str::trim).map(str::to_owned).collect()
        };
        assert!(row("code lines").contains(&"3".to_owned()), "{table}");
        assert!(row("unwrap, expect").contains(&"1 (333.33)".to_owned()), "{table}");
        assert!(table.lines().next().unwrap().ends_with("theirs"), "{table}");
    }

    #[test]
    fn a_folder_is_named() {
        assert!(run(&["quinn".to_owned()]).unwrap_err().contains("NAME=FOLDER"));
    }
}
