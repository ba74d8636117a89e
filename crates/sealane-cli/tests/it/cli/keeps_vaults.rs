//! `sealane vault`: every verb, its records, its failures and its exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::cli::{json, sealane, text};

const PASSPHRASE: &str = "a passphrase of the tests";

pub(super) struct Home(tempfile::TempDir);

impl Home {
    pub(super) fn new() -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path().join("docs/deep")).unwrap();
        fs::write(home.path().join("docs/letter.txt"), "dear reader").unwrap();
        fs::write(home.path().join("docs/deep/data.bin"), vec![5; 300_000]).unwrap();
        fs::write(home.path().join("docs/deep/skip.tmp"), "not this").unwrap();
        home
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn vault(&self, args: &[&str]) -> Command {
        let mut command = sealane(self.path());
        command.arg("vault").args(args).current_dir(self.path());
        command.env("SEALANE_VAULT", "store").env("SEALANE_PASSPHRASE", PASSPHRASE);
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> String {
        done(self.vault(args).output().unwrap())
    }

    pub(super) fn init(self) -> Home {
        self.run(&["init"]);
        self
    }
}

fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code, and what was said.
pub(super) fn failed(output: Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn files_go_in_and_come_back() {
    let home = Home::new().init();
    let put = json(&home.run(&["put", "docs", "--exclude", "*.tmp", "--note", "n", "--json"]));
    assert_eq!(put.field("snapshot"), Some(&1_u64.into()));
    assert_eq!(put.field("files"), Some(&2_u64.into()));
    let again = json(&home.run(&["put", "docs", "--exclude", "*.tmp", "--json"]));
    assert_eq!(again.field("newChunks"), Some(&0_u64.into()));
    let dry = json(&home.run(&["put", "docs", "--dry-run", "--json"]));
    assert_eq!(dry.field("newBytes"), Some(&8_u64.into()));
    assert_eq!(home.run(&["ls", "--json"]).lines().count(), 2);
    assert_eq!(home.run(&["ls", "latest", "docs/deep"]).lines().count(), 2);
    assert!(home.run(&["find", "*.txt"]).contains("docs/letter.txt"));
    home.run(&["get", "--to", "back"]);
    assert_eq!(fs::read(home.path().join("back/docs/letter.txt")).unwrap(), b"dear reader");
    assert!(!home.path().join("back/docs/deep/skip.tmp").exists());
    assert_eq!(home.run(&["get", "1", "docs/letter.txt", "--range", "5+3"]), "rea");
    home.run(&["get", "1", "docs/deep", "--to", "part"]);
    assert!(!home.path().join("part/docs/letter.txt").exists());
}

#[test]
fn a_vault_is_proven_pruned_and_recovered() {
    let home = Home::new();
    let made = home.run(&["init", "--json"]);
    let code = text(&json(made.lines().nth(1).unwrap()), "recoveryCode");
    fs::write(home.path().join("code"), code).unwrap();
    home.run(&["put", "docs"]);
    fs::write(home.path().join("docs/letter.txt"), "another").unwrap();
    home.run(&["put", "docs"]);
    assert!(home.run(&["status"]).contains("never"));
    let drill = json(&home.run(&["drill", "--all", "--json"]));
    assert_eq!(drill.field("proven"), Some(&true.into()));
    assert!(home.run(&["status"]).contains("all of snapshot 2, 3 files"));
    let verified = json(&home.run(&["verify", "--read-data", "--json"]));
    assert_eq!(verified.field("problems"), Some(&0_u64.into()));
    let pruned = json(&home.run(&["prune", "--keep-last", "1", "--now", "--json"]));
    assert_eq!(pruned.field("removed"), Some(&1_u64.into()));
    assert!(home.run(&["inspect", "snapshots/0000000003"]).contains("prune"));
    assert!(home.run(&["leaks"]).contains("packs"));
    // Nothing but the objects and the paper is left.
    fs::remove_dir_all(home.path().join(".local")).unwrap();
    fs::remove_dir_all(home.path().join("store/index")).unwrap();
    let recover = ["recover", "--recovery-file", "code", "--to", "back"];
    done(home.vault(&recover).env_remove("SEALANE_PASSPHRASE").output().unwrap());
    assert_eq!(fs::read(home.path().join("back/docs/letter.txt")).unwrap(), b"another");
}

#[test]
fn a_writers_key_adds_and_does_not_read() {
    let home = Home::new().init();
    home.run(&["key", "writer", "--out", "key", "--label", "field"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(home.path().join("key")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    home.run(&["put", "docs", "--key-file", "key", "--state", "host"]);
    let read = home.vault(&["ls", "--key-file", "key", "--state", "host"]).output().unwrap();
    let (code, said) = failed(read);
    assert!(code == 1 && said.contains("SL-VAULT-25"), "{code} {said}");
    assert!(home.run(&["key", "ls"]).contains("field"));
    // A writer's snapshot is taken for the owner's only by whoever says so.
    let (code, said) = failed(home.vault(&["get", "--to", "back"]).output().unwrap());
    assert!(code == 2 && said.contains("SL-VAULT-45") && said.contains("by writer"), "{said}");
    let slots = home.run(&["key", "ls", "--json"]);
    let slots: Vec<_> = slots.lines().map(json).collect();
    let slot = slots.iter().find(|slot| text(slot, "kind") == "writer").unwrap();
    home.run(&["get", "--signer", &text(slot, "slot"), "--to", "back"]);
    assert_eq!(fs::read(home.path().join("back/docs/letter.txt")).unwrap(), b"dear reader");
}

#[test]
fn failures_have_codes_and_hints() {
    let home = Home::new();
    let expect = |command: &mut Command, exit: i32, code: &str| {
        let (found, said) = failed(command.output().unwrap());
        assert!(found == exit && said.contains(code) && said.contains("hint:"), "{found} {said}");
    };
    expect(&mut home.vault(&["status"]), 2, "SL-VAULT-20");
    let home = home.init();
    expect(&mut home.vault(&["init"]), 2, "SL-VAULT-19");
    let wrong = |args: &[&str]| {
        let mut command = home.vault(args);
        command.env("SEALANE_PASSPHRASE", "wrong");
        command
    };
    expect(&mut wrong(&["ls"]), 1, "SL-VAULT-18");
    expect(&mut home.vault(&["get", "7", "--to", "x"]), 2, "SL-VAULT-26");
    expect(&mut home.vault(&["put", "nothing"]), 1, "SL-VAULT-10");
    expect(&mut home.vault(&["prune"]), 2, "SL-CLI-04");
    expect(home.vault(&["ls"]).env_remove("SEALANE_VAULT"), 2, "SL-CLI-04");
    // A socket is named, and is no loss: the rest is kept.
    std::os::unix::net::UnixListener::bind(home.path().join("docs/socket")).unwrap();
    let put = home.vault(&["put", "docs"]).output().unwrap();
    let said = String::from_utf8_lossy(&put.stderr);
    assert!(put.status.success() && said.contains("docs/socket"), "{said}");
    // A file that cannot be read is named, the rest is kept, and the exit code says it.
    expect(&mut home.vault(&["put", "docs", "/proc/self/mem"]), 1, "/proc/self/mem");
    home.run(&["get", "--to", "back"]);
    assert!(home.path().join("back/docs/letter.txt").exists());
}

#[test]
fn the_main_key_is_changed_and_old_secrets_open_nothing() {
    let home = Home::new();
    let made = home.run(&["init", "--json"]);
    let old = text(&json(made.lines().nth(1).unwrap()), "recoveryCode");
    let first = text(&json(made.lines().next().unwrap()), "anchor");
    home.run(&["put", "docs"]);
    home.run(&["key", "writer", "--out", "host.key", "--label", "host"]);
    let said = home.run(&["key", "rotate", "--json"]);
    let lines: Vec<_> = said.lines().map(json).collect();
    assert_eq!(lines[0].field("generation"), Some(&1_u64.into()));
    let (anchor, code) = (text(&lines[0], "anchor"), text(&lines[1], "recoveryCode"));
    assert_ne!(first, anchor);
    assert_eq!(text(&lines[1], "anchor"), anchor);
    // Both anchors are followed, and the new kit restores where nothing is remembered.
    fs::write(home.path().join("code"), &code).unwrap();
    for (target, expect) in [("one", &first), ("two", &anchor)] {
        let recover = ["recover", "--recovery-file", "code", "--expect", expect, "--to", target];
        home.run(&[&recover[..], &["--state", target]].concat());
        let back = home.path().join(target).join("docs/letter.txt");
        assert_eq!(fs::read(back).unwrap(), b"dear reader");
    }
    fs::write(home.path().join("code"), old).unwrap();
    let (status, said) =
        failed(home.vault(&["status", "--recovery-file", "code"]).output().unwrap());
    assert!(status != 0 && said.contains("SL-VAULT-18"), "{status}: {said}");
    let put = home.run(&["put", "docs", "--key-file", "host.key", "--state", "host", "--json"]);
    assert_eq!(json(&put).field("snapshot"), Some(&3_u64.into()));
    assert_eq!(
        json(&home.run(&["put", "docs", "--json"])).field("storedBytes"),
        Some(&0_u64.into())
    );
    let said = home.run(&["key", "rotate", "--no-recovery"]);
    assert!(said.contains("change 2") && said.contains("opens it no more"), "{said}");
    let (status, said) =
        failed(home.vault(&["key", "rotate", "--key-file", "host.key"]).output().unwrap());
    assert!(status != 0 && said.contains("SL-VAULT-"), "{status}: {said}");
}

/// A list that leaves something out says so: what is missing in it may be what was looked for.
#[test]
fn lists_and_searches_name_what_they_could_not_look_through() {
    let home = Home::new().init();
    home.run(&["put", "docs"]);
    home.run(&["put", "docs/deep"]);
    let said = |args: &[&str]| {
        let output = home.vault(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let pages = |home: &Home| -> Vec<std::path::PathBuf> {
        let folders = fs::read_dir(home.path().join("store/packs")).unwrap();
        let packs = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        packs.map(|pack| pack.unwrap().path()).collect()
    };
    // The chunks of every pack are changed, and their lists are not.
    for pack in pages(&home) {
        let mut bytes = fs::read(&pack).unwrap();
        let end = bytes.len() - 8;
        let trailer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
        bytes[24..end - trailer].iter_mut().for_each(|byte| *byte ^= 1);
        fs::write(pack, bytes).unwrap();
    }
    let (code, text) = said(&["find", "letter.txt"]);
    assert!(code == Some(1) && text.contains("SL-VAULT-46"), "{text}");
    assert!(text.contains("warning: `snapshot 1`") && text.contains("snapshot 2"), "{text}");
    let link = home.path().join("store/snapshots/0000000001");
    let mut bytes = fs::read(&link).unwrap();
    bytes[100] ^= 1;
    fs::write(link, bytes).unwrap();
    for verb in ["ls", "status"] {
        let (code, text) = said(&[verb]);
        assert!(code == Some(0) && text.contains("snapshots/0000000001"), "{verb}: {text}");
    }
}
