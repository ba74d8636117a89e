//! Verbs that open a data folder act on the node in use, or refuse by name. They do not take the
//! default folder while a flag, a variable or a context names another hub.

use std::path::{Path, PathBuf};
use std::process::Output;

use sealane::Value;

use crate::cli::{NodeProcess, json, sealane, text};

/// The default data folder of a user.
fn default_folder(home: &Path) -> PathBuf {
    home.join(".local/share/sealane")
}

/// A user who has tried a node in the default folder, and uses another hub by a context.
fn used() -> (NodeProcess, tempfile::TempDir) {
    let (production, home) = (NodeProcess::start(), tempfile::tempdir().unwrap());
    production.run(&["pub", "fleet/7", "hello"]);
    let folder = default_folder(home.path());
    let (mut child, _) = NodeProcess::spawn_on(home.path(), &folder, "127.0.0.1:0");
    child.kill();
    let add = ["context", "add", "prod", "--server", &production.address, "--use"];
    assert!(run(home.path(), &add).status.success());
    (production, home)
}

fn run(home: &Path, args: &[&str]) -> Output {
    sealane(home).args(args).output().unwrap()
}

fn refused(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("[SL-CLI-30]") && said.contains("--data"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_verb_refuses_a_folder_that_is_not_the_hubs_in_use() {
    let (production, home) = used();
    let copy = home.path().join("copy").display().to_string();
    let new = ["token", "new", "app", "--publish", "**"];
    for args in [
        &["backup", &copy][..],
        &["restore", &copy],
        &["token", "ls"],
        &new,
        &["explain", "access", "app", "fleet/7"],
        &["backup", &copy, "--server", &production.address],
    ] {
        refused(&run(home.path(), args));
    }
    let by_variable = sealane(home.path())
        .env("SEALANE_SERVER", &production.address)
        .args(["backup", &copy])
        .output()
        .unwrap();
    refused(&by_variable);
    // A hub that does not answer cannot be told to be the folder's.
    refused(&run(home.path(), &["backup", &copy, "--server", "127.0.0.1:1"]));
    assert!(!Path::new(&copy).exists(), "nothing was made");
    assert!(!default_folder(home.path()).join("tokens.toml").exists());
}

#[test]
fn a_verb_acts_on_the_folder_that_is_named_or_is_the_hubs() {
    let (production, home) = used();
    let (data, copy) = (production.home().join("data"), home.path().join("copy"));
    let (data, copy) = (data.display().to_string(), copy.display().to_string());
    let said = run(home.path(), &["--json", "backup", &copy, "--data", &data]);
    let said = json(&String::from_utf8(said.stdout).unwrap());
    assert_eq!(said.field("messages").and_then(Value::as_u64), Some(1));
    // The folder and the hub may both be named, if they are one node.
    let both = ["token", "ls", "--data", &data, "--server", &production.address];
    assert!(run(home.path(), &both).status.success());
    let other = default_folder(home.path()).display().to_string();
    refused(&run(home.path(), &["token", "ls", "--data", &other, "-s", &production.address]));
    // Without a context the folder and the hub of one user belong together.
    assert!(run(home.path(), &["context", "use", "--none"]).status.success());
    assert!(run(home.path(), &["token", "ls"]).status.success());
    // So do a hub that is named and the folder on which it runs.
    let folder = default_folder(home.path());
    let (mut child, address) = NodeProcess::spawn_on(home.path(), &folder, "127.0.0.1:0");
    let listed = run(home.path(), &["token", "ls", "--server", &address]);
    child.kill();
    assert!(listed.status.success(), "{listed:?}");
}

/// A variable that names one node's folder and one that names another's hub are two nodes, and so
/// is a folder on which no node has run.
#[test]
fn only_a_flag_goes_unasked() {
    let (production, home) = used();
    let (folder, address) = (default_folder(home.path()), production.address.clone());
    let empty = home.path().join("empty");
    let by_variable = |data: &Path, args: &[&str]| {
        let mut verb = sealane(home.path());
        verb.env("SEALANE_SERVER", &address).env("SEALANE_DATA", data);
        verb.args(args).output().unwrap()
    };
    assert!(run(home.path(), &["context", "use", "--none"]).status.success());
    refused(&by_variable(&folder, &["token", "ls"]));
    refused(&by_variable(&empty, &["token", "ls"]));
    // The variable outranks the context, and is asked all the same.
    assert!(run(home.path(), &["context", "use", "prod"]).status.success());
    let listed = sealane(home.path()).env("SEALANE_DATA", &folder).args(["token", "ls"]).output();
    refused(&listed.unwrap());
    let folder = folder.display().to_string();
    assert!(run(home.path(), &["token", "ls", "--data", &folder]).status.success());
    // A store may be made anew beside the hub that runs.
    let copy = home.path().join("copy").display().to_string();
    let data = production.home().join("data").display().to_string();
    assert!(run(home.path(), &["backup", &copy, "--data", &data]).status.success());
    assert!(by_variable(&empty, &["restore", &copy]).status.success());
}

#[test]
fn the_doctor_is_bad_when_hub_and_folder_are_two_nodes() {
    let (production, home) = used();
    let verdict = |args: &[&str]| {
        let output = run(home.path(), &[&["--json", "doctor"], args].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        let found = said.lines().map(json).find(|found| text(found, "check") == "node");
        let found = found.map(|found| (text(&found, "verdict"), text(&found, "said")));
        (output.status.success(), found)
    };
    let (is_well, found) = verdict(&[]);
    assert!(!is_well);
    let (verdict_of, said) = found.unwrap();
    assert_eq!(verdict_of, "bad");
    assert!(said.contains(&production.address) && said.contains("two nodes"), "{said}");
    let data = production.home().join("data").display().to_string();
    let (_, found) = verdict(&["--data", &data]);
    let (verdict_of, said) = found.unwrap();
    assert_eq!(verdict_of, "ok", "{said}");
    // Both say the same id.
    let status = json(&production.run(&["--json", "status"]));
    assert!(said.contains(&text(&status, "store")), "{said}");
    let (is_well, found) = verdict(&["--remote"]);
    assert!(is_well && found.is_none());
}
