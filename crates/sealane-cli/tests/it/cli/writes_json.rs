//! With `--json`, verbs write what `docs/reference/JSON.md` says: the same fields, in camelCase.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use sealane::Value;

use super::fleet::{file, fleet, said};
use crate::cli::{NodeProcess, json, sealane};

const PAGE: &str = include_str!("../../../../../docs/reference/JSON.md");

/// The output of one verb, by the page.
#[derive(Debug, Default)]
struct Schema {
    /// The paths of fields, and whether each may be left out.
    fields: BTreeMap<String, bool>,
}

impl Schema {
    fn holds(&self, path: &str) -> bool {
        let inner = format!("{path}.");
        self.fields.contains_key(path) || self.fields.keys().any(|known| known.starts_with(&inner))
    }
}

/// The verbs of the page.
fn schemas() -> BTreeMap<String, Schema> {
    let mut all: BTreeMap<String, Schema> = BTreeMap::new();
    let mut name = String::new();
    for line in PAGE.lines() {
        if let Some(rest) = line.strip_prefix("### `") {
            name = rest.trim_end_matches('`').to_owned();
            assert!(all.insert(name.clone(), Schema::default()).is_none(), "{name} stands twice");
        } else if let Some((field, _)) = line.strip_prefix("| `").and_then(|l| l.split_once('`')) {
            let path = field.replace('?', "").replace("[]", "");
            all.get_mut(&name).unwrap().fields.insert(path, field.contains('?'));
        }
    }
    all
}

/// The paths of all fields of a value. What users wrote themselves is not looked into.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Map(fields) if path != "envelope" => {
            for (name, value) in fields {
                let camel = name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(|c| c.is_ascii_alphanumeric());
                assert!(camel, "{name} is not camelCase");
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                paths(value, &path, found);
            }
        }
        Value::Array(all) if all.iter().any(|one| matches!(one, Value::Map(_))) => {
            all.iter().for_each(|one| paths(one, path, found));
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// The page, by verb.
pub(super) struct StatusPage(BTreeMap<String, Schema>);

impl StatusPage {
    pub(super) fn read() -> StatusPage {
        StatusPage(schemas())
    }

    /// Compares each line that a verb wrote.
    pub(super) fn compare(&self, name: &str, written: &str) {
        let schema = self.0.get(name).unwrap_or_else(|| panic!("{name} is not on the page"));
        assert!(!written.trim().is_empty(), "{name} writes nothing");
        for line in written.lines() {
            let value = json(line);
            assert_eq!(value.field("v"), Some(&1_u64.into()), "{name}: {line}");
            let mut found = BTreeSet::new();
            paths(&value, "", &mut found);
            found.remove("v");
            for path in &found {
                assert!(schema.holds(path), "{name} writes {path}, which the page does not name");
            }
            for (path, may_lack) in &schema.fields {
                // A map or list may be null or empty as a whole.
                let is_there = found.iter().any(|one| {
                    one == path || path.strip_prefix(one).is_some_and(|rest| rest.starts_with('.'))
                });
                assert!(is_there || *may_lack, "{name} lacks {path}: {line}");
            }
        }
    }
}

/// The output of a command that succeeds.
fn written(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(home: &Path, args: &[&str]) -> String {
    let mut command = sealane(home);
    command.arg("--json").args(args).current_dir(home);
    command.env("SEALANE_PASSPHRASE", "a passphrase of the tests");
    written(command.env("SEALANE_VAULT", "store").env("SEALANE_KEYS", home.join("keys")))
}

#[test]
fn verbs_without_a_hub_write_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let page = StatusPage::read();
    let token = ["token", "new", "reader", "--read", "a/**", "--expires", "1d", "--data", "data"];
    for (name, args) in [
        ("explain CODE", &["explain", "SL-TOPIC-01"][..]),
        ("config show", &["config", "show"]),
        ("version", &["version"]),
        ("cert self-signed", &["cert", "self-signed", "localhost", "--to", "tls"]),
        ("context add NAME", &["context", "add", "a", "--server", "a:1", "--ca", "tls/cert.pem"]),
        ("context add NAME", &["context", "use", "a"]),
        ("context ls", &["context", "ls"]),
        ("context add NAME", &["context", "use", "--none"]),
        ("context add NAME", &["context", "rm", "a"]),
        ("policy explain TYPE", &["policy", "explain", "location"]),
        ("policy check", &["policy", "check"]),
        ("token new NAME", &token),
        ("token ls", &["token", "ls", "--data", "data"]),
        ("token revoke NAME", &["token", "revoke", "reader", "--data", "data"]),
        ("key show", &["key", "new", "base"]),
        ("key show", &["key", "show"]),
        ("group show GROUP", &["group", "new", "fleet"]),
        ("group show GROUP", &["group", "show", "fleet"]),
        ("group rotate GROUP", &["group", "rotate", "fleet"]),
        ("group show GROUP", &["group", "forget", "fleet", "--before", "1"]),
        ("group leave GROUP", &["group", "leave", "fleet", "--yes"]),
    ] {
        page.compare(name, &run(home, args));
    }
}

#[test]
fn groups_at_a_hub_write_what_the_page_says() {
    let (node, page) = (fleet(&["car"]), StatusPage::read());
    let card = file(&node, "car", "fresh", &["key", "card"]);
    for (name, args) in [
        ("pub TOPIC BODY", &["pub", "s", "hello", "--group", "fleet", "--type", "emergency"][..]),
        ("sub PATTERN", &["sub", "s", "--group", "fleet", "--from", "first", "-n", "1"]),
        ("sub PATTERN", &["sub", "s", "--from", "first", "-n", "1"]),
        ("stream leaks TOPIC", &["stream", "leaks", "s"]),
        ("group rotate GROUP", &["group", "heal", "fleet", &card]),
        ("group publish GROUP", &["group", "publish", "fleet"]),
        ("group publish GROUP", &["group", "resend", "fleet"]),
        ("group publish GROUP", &["group", "beat", "fleet"]),
    ] {
        page.compare(name, &said(&node, "base", &[&["--json"], args].concat()));
    }
    let orders = file(&node, "base", "orders", &["group", "orders", "fleet"]);
    let apply = ["--json", "group", "apply", "fleet", &orders];
    page.compare("group apply GROUP FILE", &said(&node, "car", &apply));
    let phrases = ["one", "two"].map(|phrase| {
        let path = node.home().join(phrase);
        fs::write(&path, phrase).unwrap();
        path.display().to_string()
    });
    run(&node.home(), &["key", "new", "locked", "--passphrase-file", &phrases[0]]);
    let change = ["key", "passphrase", "--passphrase-file", &phrases[0], "--new", &phrases[1]];
    page.compare("key passphrase", &run(&node.home(), &change));
}

#[test]
fn vaults_write_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    fs::create_dir(home.join("docs")).unwrap();
    fs::write(home.join("docs/letter"), "dear reader").unwrap();
    let page = StatusPage::read();
    let made = run(home, &["vault", "init"]);
    let (vault, recovery) = made.split_once('\n').unwrap();
    page.compare("vault init", vault);
    page.compare("vault key recovery", recovery);
    for (name, args) in [
        ("vault status", &["status"][..]),
        ("vault put PATH", &["put", "docs", "--compression", "lz4"]),
        ("vault put PATH", &["put", "docs", "--compression-level", "1"]),
        ("vault put PATH", &["put", "docs", "--codec", "zstd", "--level", "2", "--dry-run"]),
        ("vault ls", &["ls"]),
        ("vault ls SNAPSHOT", &["ls", "latest"]),
        ("vault ls SNAPSHOT", &["find", "letter"]),
        ("vault get SNAPSHOT", &["get", "latest", "--to", "back"]),
        ("vault verify", &["verify"]),
        ("vault drill", &["drill"]),
        ("vault status", &["status"]),
        ("vault diff", &["diff", "1", "2"]),
        ("vault verify", &["verify", "--subset", "1/2"]),
        ("vault prune", &["forget", "1", "--dry-run"]),
        ("vault prune", &["prune", "--keep-last", "1"]),
        ("vault key ls", &["key", "ls"]),
        ("vault inspect", &["inspect"]),
        ("vault leaks", &["leaks"]),
    ] {
        page.compare(name, &run(home, &[&["vault"], args].concat()));
    }
}

#[test]
fn verbs_at_a_hub_write_what_the_page_says() {
    let node = NodeProcess::start();
    let copy = node.home().join("copy").display().to_string();
    let data = node.home().join("data").display().to_string();
    let page = StatusPage::read();
    for (name, args) in [
        ("pub TOPIC BODY", &["pub", "a", "hello"][..]),
        ("pub TOPIC BODY --delay TIME", &["pub", "a", "later", "--delay", "1h"]),
        ("sub PATTERN", &["sub", "a", "--from", "first", "-n", "1"]),
        ("sub PATTERN", &["sub", "a", "--consumer", "c", "-n", "1"]),
        ("consumer info TOPIC NAME", &["consumer", "ls", "a"]),
        ("consumer info TOPIC NAME", &["consumer", "ls"]),
        ("consumer info TOPIC NAME", &["consumer", "info", "a", "c"]),
        ("consumer info TOPIC NAME", &["consumer", "pause", "a", "c"]),
        ("consumer info TOPIC NAME", &["consumer", "resume", "a", "c"]),
        ("consumer info TOPIC NAME", &["consumer", "reset", "a", "c", "--to", "first"]),
        ("sub PATTERN", &["sub", "a", "--consumer", "c", "-n", "1", "--no-ack"]),
        ("consumer info TOPIC NAME", &["consumer", "info", "a", "c"]),
        ("consumer info TOPIC NAME", &["consumer", "redeliver", "a", "c"]),
        ("consumer info TOPIC NAME", &["consumer", "skip", "a", "c", "--offset", "0"]),
        ("stream info TOPIC", &["stream", "info", "a"]),
        ("consumer rm TOPIC NAME", &["consumer", "rm", "a", "c"]),
        ("pub TOPIC BODY --delay TIME", &["pub", "a", r#"{"id":"m"}"#, "--delay", "1h"]),
        ("delayed ls TOPIC", &["delayed", "ls", "a"]),
        ("delayed cancel TOPIC ID", &["delayed", "cancel", "a", "m"]),
        ("sub PATTERN", &["sub", "a", "--last", "1", "--until-end"]),
        ("stream purge TOPIC", &["stream", "purge", "a", "--before", "0"]),
        ("stream info TOPIC", &["stream", "ls"]),
        ("stream info TOPIC", &["ls"]),
        ("stream rules", &["stream", "set", "a/**", "--max-age", "7d"]),
        ("stream rules", &["stream", "rules"]),
        ("stream unset PATTERN", &["stream", "unset", "a/**"]),
        ("stream info TOPIC", &["stream", "unset", "a"]),
        ("status", &["status"]),
        ("stream leaks TOPIC", &["stream", "leaks", "a"]),
        ("top", &["top", "--count", "2", "--every", "100ms"]),
        ("backup DIR", &["backup", &copy, "--data", &data]),
        ("stream rm TOPIC", &["stream", "rm", "a", "--yes"]),
    ] {
        page.compare(name, &node.run(&[&["--json"], args].concat()));
    }
    let refused = node.command(&["--json", "stream", "info", "a"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    let error = said.lines().find(|line| line.starts_with('{')).unwrap();
    page.compare("error", error);
}
