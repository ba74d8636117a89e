//! Licences, bans and sources of the dependencies, by the settings of `deny.toml`.
//!
//! The settings are those of cargo-deny, which reads them where it is installed. Elsewhere what may
//! not get in by mistake is looked for here: a licence, a banned crate, a foreign source.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::process::{self, XtaskResult};

const SETTINGS: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// `cargo xtask deny`.
pub(crate) fn run(_: &[String]) -> XtaskResult {
    if process::output(process::cargo().args(["deny", "--version"])).is_ok() {
        let checks = ["deny", "check", "licenses", "bans", "sources"];
        return process::run(process::cargo().args(checks));
    }
    let settings = table(SETTINGS)?;
    let mut faults = refused(&settings, &crates(&settings)?);
    faults.extend(foreign(&settings, &table(LOCK)?));
    faults.iter().for_each(|fault| println!("{SETTINGS}: {fault}"));
    if faults.is_empty() { Ok(()) } else { Err(format!("deny: {} findings", faults.len())) }
}

fn table(path: &str) -> XtaskResult<Table> {
    let text = std::fs::read_to_string(process::root().join(path));
    let text = text.map_err(|error| format!("{path}: {error}"))?;
    text.parse().map_err(|error| format!("{path}: {error}"))
}

/// Lines of `name v1.2.3|licence` of all that a build, test or bench on a target would use.
fn crates(settings: &Table) -> XtaskResult<BTreeSet<String>> {
    let mut command = process::cargo();
    command.args(["tree", "--workspace", "--all-features", "--edges", "normal,build,dev"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]);
    for target in list(settings, "graph", "targets").filter_map(Value::as_str) {
        command.args(["--target", target]);
    }
    Ok(process::output(&mut command)?.lines().map(str::to_owned).collect())
}

/// Crates of the build that are banned, or whose licence is not allowed.
fn refused(settings: &Table, crates: &BTreeSet<String>) -> Vec<String> {
    let allowed: Vec<&str> =
        list(settings, "licenses", "allow").filter_map(Value::as_str).collect();
    let banned = list(settings, "bans", "deny").filter_map(|ban| ban.get("crate")?.as_str());
    let banned: Vec<&str> = banned.collect();
    let lines = crates.iter().filter_map(|line| line.rsplit_once('|'));
    let fault = |(package, licence): (&str, &str)| {
        let name = package.split(' ').next().unwrap_or_default();
        if banned.contains(&name) {
            return Some(format!("{package} is banned"));
        }
        let of_it = |row: &&Value| row.get("crate").and_then(Value::as_str) == Some(name);
        let more = list(settings, "licenses", "exceptions").filter(of_it);
        let more = more.filter_map(|row| row.get("allow")?.as_array()).flatten();
        let allowed = [&allowed[..], &more.filter_map(Value::as_str).collect::<Vec<_>>()].concat();
        let fault = || format!("{package} has the licence `{licence}`");
        (!is_allowed(licence, &allowed)).then(fault)
    };
    lines.filter_map(fault).collect()
}

/// Each part between `AND` has to offer a licence that is allowed. Without regard to brackets that
/// refuses at times what could be allowed, and never allows what is to be refused.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|licence| allowed.contains(&licence.trim())))
}

/// Packages of a lock file that are from elsewhere than the registries.
fn foreign(settings: &Table, lock: &Table) -> Vec<String> {
    let registries = list(settings, "sources", "allow-registry").filter_map(Value::as_str);
    let sources: Vec<String> = registries.map(|url| format!("registry+{url}")).collect();
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    let fault = |package: &Value| {
        let text = |key| package.get(key).and_then(Value::as_str);
        let source = text("source").filter(|source| !sources.iter().any(|one| one == source))?;
        Some(format!("{} comes from {source}", text("name")?))
    };
    packages.filter_map(fault).collect()
}

fn list<'a>(settings: &'a Table, section: &str, key: &str) -> impl Iterator<Item = &'a Value> {
    let list = settings.get(section).and_then(|section| section.get(key)?.as_array());
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_weighed_and_never_too_lightly() {
        let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for expression in [
            "MIT",
            "GPL-3.0/MIT",
            "(GPL-3.0 OR MIT) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(expression, &allowed), "{expression}");
        }
        for expression in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(GPL-3.0 AND MIT)"] {
            assert!(!is_allowed(expression, &allowed), "{expression}");
        }
    }

    #[test]
    fn foreign_licences_sources_and_banned_crates_are_found() {
        let settings = table(SETTINGS).unwrap();
        let crates = ["a v1.0.0|MIT", "b v2.0.0 (proc-macro)|GPL-3.0", "ring v0.17.0|MIT"];
        let found = refused(&settings, &crates.map(str::to_owned).into());
        let expected =
            ["b v2.0.0 (proc-macro) has the licence `GPL-3.0`", "ring v0.17.0 is banned"];
        assert_eq!(found, expected);
        let fuzzer = |name: &str| [format!("{name} v0.4.13|(MIT OR Apache-2.0) AND NCSA")].into();
        assert!(refused(&settings, &fuzzer("libfuzzer-sys")).is_empty(), "it is an exception");
        assert_eq!(refused(&settings, &fuzzer("other")).len(), 1);
        let lock = "[[package]]\nname = \"own\"\n\
                    [[package]]\nname = \"c\"\nsource = \"git+https://git.example/c\"\n";
        let found = foreign(&settings, &lock.parse().unwrap());
        assert_eq!(found, ["c comes from git+https://git.example/c"]);
    }
}
