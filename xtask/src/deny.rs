//! Licences, bans and sources of the dependencies, by the settings of `deny.toml`.
//!
//! The settings are those of cargo-deny, and it runs too where it is installed. What is done here
//! is the part that needs no further program: the same tables, read from `cargo tree` and the lock
//! files.

mod licence;

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::process::{self, Outcome};
use crate::tree::Tree;

const SETTINGS: &str = "deny.toml";

/// One crate of the dependency tree.
struct Entry {
    name: String,
    version: String,
    licence: String,
}

/// `cargo xtask deny`.
pub(crate) fn run(_: &[String]) -> Outcome {
    let tree = Tree::load()?;
    let settings: Table = tree
        .get(SETTINGS)
        .ok_or_else(|| format!("{SETTINGS} is missing"))?
        .parse()
        .map_err(|error| format!("{SETTINGS}: {error}"))?;
    let entries = entries(&settings)?;
    let mut faults = licences(&settings, &entries);
    faults.extend(bans(&settings, &entries));
    faults.extend(repeats(&settings, &entries));
    faults.extend(sources(&settings, &tree));
    faults.extend(wildcards(&tree));
    for fault in &faults {
        println!("{SETTINGS}: {fault}");
    }
    if !faults.is_empty() {
        return Err(format!("deny: {} findings", faults.len()));
    }
    println!("{} crates: licences, bans and sources are in order", entries.len());
    if process::output(process::cargo().args(["deny", "--version"])).is_ok() {
        process::run(process::cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    }
    Ok(())
}

/// All crates that a build, a test or a bench on one of the targets would use.
fn entries(settings: &Table) -> Outcome<Vec<Entry>> {
    let mut command = process::cargo();
    command.args(["tree", "--workspace", "--all-features", "--edges", "normal,build,dev"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]);
    for target in texts(settings, "graph", "targets") {
        command.args(["--target", target]);
    }
    let lines: BTreeSet<String> =
        process::output(&mut command)?.lines().map(str::to_owned).collect();
    Ok(lines.iter().filter_map(|line| entry(line)).collect())
}

/// Reads `name v1.2.3 (proc-macro)|MIT`.
fn entry(line: &str) -> Option<Entry> {
    let (package, licence) = line.rsplit_once('|')?;
    let mut words = package.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let own = |text: &str| text.trim().to_owned();
    Some(Entry { name: own(name), version: own(version), licence: own(licence) })
}

fn licences(settings: &Table, entries: &[Entry]) -> Vec<String> {
    let allowed: Vec<&str> = texts(settings, "licenses", "allow").collect();
    let refused = entries.iter().filter(|entry| !licence::allowed(&entry.licence, &allowed));
    let fault = |Entry { name, version, licence }: &Entry| {
        let licence = if licence.is_empty() { "none" } else { licence };
        format!("{name} {version} has the licence `{licence}`; use another crate, or allow it")
    };
    refused.map(fault).collect()
}

fn bans(settings: &Table, entries: &[Entry]) -> Vec<String> {
    let banned = rows(settings, "bans", "deny");
    let mut faults = vec![];
    for Entry { name, version, .. } in entries {
        if let Some((_, reason)) = banned.iter().find(|(spec, _)| matches(spec, name, version)) {
            faults.push(format!("{name} {version} is banned: {reason}"));
        }
    }
    faults
}

/// More than one version of a crate, those on the skip list not counted.
fn repeats(settings: &Table, entries: &[Entry]) -> Vec<String> {
    let skipped = rows(settings, "bans", "skip");
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Entry { name, version, .. } in entries {
        if !skipped.iter().any(|(spec, _)| matches(spec, name, version)) {
            versions.entry(name).or_default().insert(version);
        }
    }
    let repeated = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    let fault = |(name, versions): (&str, BTreeSet<&str>)| {
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        format!("{name} is built in the versions {versions}; agree on one, or skip the older")
    };
    repeated.map(fault).collect()
}

/// Every package of every lock file comes from an allowed registry.
fn sources(settings: &Table, tree: &Tree) -> Vec<String> {
    let allowed: Vec<String> = texts(settings, "sources", "allow-registry")
        .map(|registry| format!("source = \"registry+{registry}\""))
        .collect();
    let locks = tree.files().filter(|(path, _)| path.ends_with("Cargo.lock"));
    let lines = locks.flat_map(|(path, text)| {
        text.lines().enumerate().map(move |(index, line)| (path, index + 1, line))
    });
    lines
        .filter(|(_, _, line)| line.starts_with("source = "))
        .filter(|(_, _, line)| !allowed.iter().any(|allowed| allowed == line))
        .map(|(path, number, line)| format!("{path}:{number}: {line} is not an allowed source"))
        .collect()
}

fn wildcards(tree: &Tree) -> Vec<String> {
    let mut faults = vec![];
    let manifests = tree.files().filter(|(path, _)| path.ends_with("Cargo.toml"));
    for (path, text) in manifests {
        for (index, line) in text.lines().enumerate() {
            if line.contains("= \"*\"") {
                faults.push(format!("{path}:{}: any version will do; name one", index + 1));
            }
        }
    }
    faults
}

/// The strings of one list of the settings.
fn texts<'a>(settings: &'a Table, section: &str, key: &str) -> impl Iterator<Item = &'a str> {
    let list = settings.get(section).and_then(|section| section.get(key)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// The crates of one list of the settings, each with its reason.
fn rows(settings: &Table, section: &str, key: &str) -> Vec<(String, String)> {
    let list = settings.get(section).and_then(|section| section.get(key)?.as_array());
    let row = |value: &Value| {
        let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = value.as_str().map(str::to_owned).or_else(|| text("crate"))?;
        Some((name, text("reason").unwrap_or_else(|| "no reason is given".to_owned())))
    };
    list.into_iter().flatten().filter_map(row).collect()
}

/// Whether `name` or `name@1.2` stands for this version of this crate.
fn matches(spec: &str, name: &str, version: &str) -> bool {
    let (wanted, requirement) = spec.split_once('@').unwrap_or((spec, ""));
    let requirement = requirement.trim_start_matches('=');
    let rest = version.strip_prefix(requirement);
    wanted == name
        && (requirement.is_empty() || rest.is_some_and(|r| r.is_empty() || r.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"
        [licenses]
        allow = ["MIT"]
        [bans]
        deny = [{ crate = "bincode", reason = "unmaintained" }]
        skip = [{ crate = "syn@1.0" }]
        [sources]
        allow-registry = ["https://registry.example/index"]
    "#;

    fn sample(lines: &[&str]) -> (Table, Vec<Entry>) {
        let entries = lines.iter().filter_map(|line| entry(line)).collect();
        (SAMPLE.parse().unwrap(), entries)
    }

    #[test]
    fn a_licence_off_the_list_is_found() {
        let (settings, entries) =
            sample(&["a v1.0.0|MIT", "b v2.0.0 (proc-macro)|GPL-3.0", "c v1.0.0|"]);
        let faults = licences(&settings, &entries);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("b 2.0.0 has the licence `GPL-3.0`"), "{faults:?}");
    }

    #[test]
    fn a_banned_crate_is_found_with_its_reason() {
        let (settings, entries) = sample(&["bincode v1.3.3|MIT", "bincode-next v1.0.0|MIT"]);
        assert_eq!(bans(&settings, &entries), ["bincode 1.3.3 is banned: unmaintained"]);
    }

    #[test]
    fn two_versions_are_found_unless_one_is_skipped() {
        let (settings, entries) = sample(&["syn v1.0.109|MIT", "syn v2.0.1|MIT"]);
        assert_eq!(repeats(&settings, &entries), Vec::<String>::new());
        let (settings, entries) = sample(&["syn v1.10.0|MIT", "syn v2.0.1|MIT"]);
        assert!(repeats(&settings, &entries)[0].contains("1.10.0, 2.0.1"));
    }

    #[test]
    fn foreign_sources_and_wildcards_are_found() {
        let (settings, _) = sample(&[]);
        let lock = "source = \"registry+https://registry.example/index\"\nsource = \"git+x\"\n";
        let tree = Tree::sample(&[("Cargo.lock", lock), ("fuzz/Cargo.toml", "x = \"*\"\n")]);
        assert_eq!(sources(&settings, &tree).len(), 1);
        assert_eq!(wildcards(&tree).len(), 1);
    }

    #[test]
    fn the_settings_of_the_project_ban_and_allow_something() {
        let settings: Table = include_str!("../../deny.toml").parse().unwrap();
        assert!(rows(&settings, "bans", "deny").iter().any(|(name, _)| name == "bincode"));
        assert!(texts(&settings, "licenses", "allow").any(|licence| licence == "Apache-2.0"));
        assert_eq!(texts(&settings, "sources", "allow-registry").count(), 1);
    }
}
