//! `sealane vault` where a snapshot cannot be read, a copy lags, a writer was removed, or a place
//! is empty: what is refused, what is said, and which flag goes on.

use std::fs;
use std::process::Command;

use super::keeps_vaults::{Home, failed};
use crate::cli::{json, text};

/// The exit code and what was said, with the name of the error in it.
fn refused(command: &mut Command, code: &str) -> String {
    let (status, said) = failed(command.output().unwrap());
    assert!(status != 0 && said.contains(code) && said.contains("hint:"), "{status} {said}");
    said
}

/// The standard error of a run that succeeds.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// A vault with yesterday's and today's letter.
fn two_days() -> Home {
    let home = Home::new().init();
    home.run(&["put", "docs"]);
    fs::write(home.path().join("docs/letter.txt"), "today").unwrap();
    home.run(&["put", "docs"]);
    home
}

#[test]
fn an_unreadable_newest_snapshot_fails_every_night_and_loses_nothing() {
    let home = two_days();
    let newest = home.path().join("store/snapshots/0000000002");
    let whole = fs::read(&newest).unwrap();
    fs::write(&newest, &whole[..whole.len() / 2]).unwrap();
    let said = refused(&mut home.vault(&["get", "--to", "back"]), "SL-VAULT-52");
    assert!(said.contains("snapshot 1 would be taken"), "{said}");
    assert!(!home.path().join("back").exists());
    refused(&mut home.vault(&["drill"]), "SL-VAULT-52");
    refused(&mut home.vault(&["ls", "latest"]), "SL-VAULT-52");
    home.run(&["get", "--allow-older", "--to", "back"]);
    assert_eq!(fs::read(home.path().join("back/docs/letter.txt")).unwrap(), b"dear reader");
    home.run(&["drill", "--allow-older"]);
    let prune = ["prune", "--keep-last", "3", "--now", "--yes"];
    for more in [&[][..], &["--dry-run"]] {
        let said = refused(&mut home.vault(&[&prune[..], more].concat()), "SL-VAULT-51");
        assert!(said.contains("snapshot 2 ("), "{said}");
    }
    fs::write(&newest, &whole).unwrap();
    home.run(&prune);
    home.run(&["get", "--to", "whole"]);
    assert_eq!(fs::read(home.path().join("whole/docs/letter.txt")).unwrap(), b"today");
    fs::write(&newest, b"").unwrap();
    let said = home.run(&[&prune[..], &["--give-up", "2"]].concat());
    assert!(said.contains("gives up snapshot 2, and what only it needs: "), "{said}");
    home.run(&["verify", "--read-data"]);
    home.run(&["get", "--to", "older"]);
}

#[test]
fn a_copy_that_lags_is_read_by_its_head() {
    let home = Home::new().init();
    home.run(&["put", "docs"]);
    let head = text(&json(&home.run(&["status", "--json"])), "head");
    let copied = Command::new("cp").args(["-r", "store", "copy"]).current_dir(home.path()).status();
    assert!(copied.unwrap().success());
    home.run(&["put", "docs"]);
    let copy = |args: &[&str]| home.vault(&[args, &["--vault", "copy"]].concat());
    let said = refused(&mut copy(&["get", "--to", "back"]), "SL-VAULT-21");
    assert!(said.contains(&head) && said.contains("--accept-rollback"), "{said}");
    let said = self::said(&mut copy(&["get", "--to", "back", "--accept-rollback", &head]));
    assert!(said.contains("a copy lags"), "{said}");
    assert!(home.path().join("back/docs/letter.txt").exists());
    // From then on it is a copy: read with a warning, and not written to.
    assert!(self::said(&mut copy(&["verify"])).contains("a copy lags"));
    refused(&mut copy(&["put", "docs"]), "SL-VAULT-21");
    home.run(&["put", "docs"]);
}

#[test]
fn a_removed_writer_is_told_and_alarms_nobody() {
    let home = Home::new().init();
    home.run(&["key", "writer", "--out", "key"]);
    let put = ["put", "docs", "--key-file", "key", "--state", "host"];
    home.run(&put);
    let slots = home.run(&["key", "ls", "--json"]);
    let mut slots = slots.lines().map(json);
    let slot = text(&slots.find(|slot| text(slot, "kind") == "writer").unwrap(), "slot");
    home.run(&["key", "rm", &slot]);
    let said = refused(&mut home.vault(&put), "SL-VAULT-53");
    assert!(said.contains(&slot), "{said}");
    home.run(&["verify"]);
    assert_eq!(json(&home.run(&["status", "--json"])).field("unbelieved"), Some(&0_u64.into()));
}

#[test]
fn an_empty_place_is_asked_about_and_a_first_use_is_named() {
    let home = Home::new();
    let anchor = text(&json(&home.run(&["init", "--no-recovery", "--json"])), "anchor");
    let first = said(&mut home.vault(&["status", "--state", "other"]));
    assert!(first.contains("first use of ") && first.contains(&anchor), "{first}");
    assert_eq!(said(&mut home.vault(&["status", "--state", "other"])), "");
    fs::rename(home.path().join("store"), home.path().join("held")).unwrap();
    for verb in [&["status"][..], &["put", "docs"], &["init"], &["recover", "--to", "x"]] {
        let said = refused(&mut home.vault(verb), "SL-VAULT-55");
        assert!(said.contains("mounted") && said.contains(&anchor), "{said}");
    }
    home.run(&["init", "--replace", "--no-recovery"]);
}

#[test]
fn a_pattern_that_matches_nothing_is_said() {
    let home = Home::new().init();
    let mut put = home.vault(&["put", "docs", "--exclude", "/deep", "--exclude", "docs/deep"]);
    let said = said(&mut put);
    assert!(said.contains("the pattern `docs/deep` matched nothing"), "{said}");
    assert!(!said.contains("`/deep`"), "{said}");
    assert_eq!(home.run(&["ls", "1"]).lines().count(), 2);
}
