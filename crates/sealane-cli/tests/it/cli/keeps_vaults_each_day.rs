//! `sealane vault` as people use it each day: forgetting by number, comparing, dumping, verifying a
//! part, and the words that they know from other programs.

use std::fs;

use super::keeps_vaults::{Home, failed};
use crate::cli::{json, text};

/// A vault with three letters.
fn three_days() -> Home {
    let home = Home::new().init();
    home.run(&["put", "docs"]);
    for day in ["second", "third"] {
        fs::write(home.path().join("docs/letter.txt"), day).unwrap();
        home.run(&["backup", "docs"]);
    }
    home
}

/// The numbers that `ls` lists.
fn numbers(home: &Home) -> Vec<String> {
    let listed = home.run(&["snapshots", "--json"]);
    let number = |line: &str| json(line).field("snapshot").map(|number| format!("{number:?}"));
    listed.lines().filter_map(number).collect()
}

#[test]
fn snapshots_are_forgotten_by_number_or_by_rules() {
    let home = three_days();
    let said = home.run(&["forget", "2", "--dry-run"]);
    assert!(said.contains("would keep 2 snapshots, remove 1"), "{said}");
    assert_eq!(numbers(&home).len(), 3);
    let said = home.run(&["forget", "2", "--now", "--yes"]);
    assert!(said.contains("kept 2 snapshots, removed 1"), "{said}");
    let (code, said) = failed(home.vault(&["forget", "2"]).output().unwrap());
    assert!(code != 0 && said.contains("SL-VAULT-26"), "{said}");
    for wrong in [&["forget"][..], &["forget", "1", "--keep-last", "1"]] {
        let (code, _) = failed(home.vault(wrong).output().unwrap());
        assert_eq!(code, 2);
    }
    // As restic has it.
    home.run(&["forget", "--keep-last", "1", "--prune"]);
    assert_eq!(numbers(&home).len(), 1);
    home.run(&["check"]);
}

#[test]
fn two_snapshots_are_compared() {
    let home = three_days();
    fs::write(home.path().join("docs/new"), "new").unwrap();
    home.run(&["put", "docs", "--exclude", "*.tmp"]);
    let lines = home.run(&["diff", "1", "4", "docs/letter.txt", "docs/new", "docs/deep/skip.tmp"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[..3], ["- docs/deep/skip.tmp", "M docs/letter.txt", "+ docs/new"]);
    assert!(lines[3].starts_with("1 path added (8 B), 1 removed (19 B), 1 changed"), "{lines:?}");
    let (code, said) = failed(home.vault(&["diff", "1", "4", "docs/none"]).output().unwrap());
    assert!(code != 0 && said.contains("SL-VAULT-27"), "{said}");
    let elsewhere = ["diff", "1", "latest", "--host", "elsewhere"];
    let (code, said) = failed(home.vault(&elsewhere).output().unwrap());
    assert!(code != 0 && said.contains("elsewhere"), "{said}");
    let records = home.run(&["diff", "3", "latest", "--json"]);
    let records: Vec<_> = records.lines().map(json).collect();
    let paths = records.iter().filter_map(|one| one.field("path")?.as_text());
    assert!(paths.clone().any(|path| path == "docs/new"), "{records:?}");
    let removed = records.iter().find(|one| one.field("sizeBefore") == Some(&8_u64.into()));
    assert_eq!(text(removed.unwrap(), "change"), "removed");
}

#[test]
fn a_file_is_dumped_as_it_is_and_a_folder_as_an_archive() {
    let home = three_days();
    assert_eq!(home.run(&["dump", "1", "docs/letter.txt"]), "dear reader");
    assert_eq!(home.run(&["dump", "latest", "docs/letter.txt"]), "third");
    let archive = home.vault(&["dump", "latest", "docs"]).output().unwrap();
    assert!(archive.status.success());
    assert_eq!(archive.stdout.len() % 512, 0);
    assert!(archive.stdout.windows(16).any(|name| name == b"docs/letter.txt\0"));
    let (code, said) = failed(home.vault(&["dump", "1", "docs/none"]).output().unwrap());
    assert!(code != 0 && said.contains("SL-VAULT-27"), "{said}");
    let range = ["get", "1", "docs/letter.txt", "--range"];
    assert_eq!(home.run(&[&range[..], &["5+99"]].concat()), "reader");
    let (code, said) = failed(home.vault(&[&range[..], &["11+1"]].concat()).output().unwrap());
    assert!(code == 2 && said.contains("SL-VAULT-56") && said.contains("11 bytes"), "{said}");
}

#[test]
fn a_part_of_the_packs_is_verified() {
    let home = three_days();
    let read = |args: &[&str]| {
        let read = json(&home.run(args)).field("readBytes").cloned();
        format!("{read:?}")
    };
    let all = read(&["verify", "--read-data", "--json"]);
    assert_eq!(read(&["verify", "--subset", "1/1", "--json"]), all);
    // The packs have random names, so that all of a small vault may lie in one of the parts.
    let parts = ["1/2", "2/2"].map(|part| read(&["check", "--read-data-subset", part, "--json"]));
    assert!(parts.iter().any(|part| *part != all), "{parts:?} of {all}");
    let (code, said) = failed(home.vault(&["verify", "--subset", "3/2"]).output().unwrap());
    assert!(code == 2 && said.contains("1/7"), "{said}");
}

#[test]
fn a_recovery_of_every_file_is_a_success_beside_junk() {
    let home = three_days();
    for number in 0..200 {
        fs::write(home.path().join(format!("store/snapshots/junk-{number}")), "junk").unwrap();
    }
    let output = home.vault(&["recover", "--to", "back"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("200 objects alike, the first three: `snapshots/junk-0`"), "{said}");
    assert!(said.lines().count() < 10, "{said}");
    assert_eq!(fs::read(home.path().join("back/docs/letter.txt")).unwrap(), b"third");
}
