//! Cards, invitations and passphrases, as people hand them on and keep them.

use std::fs;
use std::process::Stdio;

use super::home::Home;
use crate::cli::{on_terminal, sealane, text};

/// A text as a mail hands it on: with other line ends, and words around it.
fn mailed(text: &str) -> String {
    format!("Hello,\r\nhere it is:\r\n\r\n{}\r\nBye\r\n", text.replace('\n', "\r\n"))
}

#[test]
fn a_card_and_an_invitation_are_pasted_as_text() {
    let home = Home::fleet(&[], &["base"]);
    let car = home.show("car", &["key", "new", "car"]);
    let card = home.says("car", &["key", "card", "--text"]);
    assert!(card.starts_with("-----BEGIN SEALANE CARD-----\n"), "{card}");
    assert!(card.ends_with("-----END SEALANE CARD-----\n"), "{card}");
    assert!(card.lines().all(|line| line.len() <= 64));
    let invite = ["group", "invite", "fleet", "-", "--text"];
    let cut = home.feed("base", &invite, &card[..card.len() - 40]);
    assert!(String::from_utf8_lossy(&cut.stderr).contains("[SL-GROUP-06]"));
    let invited = home.feed("base", &invite, &mailed(&card));
    let said = String::from_utf8(invited.stderr).unwrap();
    assert!(said.starts_with("car has slot 1.\nTheir fingerprint, "), "{said}");
    assert!(said.contains(&text(&car, "fingerprint")), "{said}");
    let invitation = String::from_utf8(invited.stdout).unwrap();
    assert!(invitation.starts_with("-----BEGIN SEALANE INVITATION-----\n"), "{invitation}");
    let mixed_up = home.feed("car", &["group", "join", "-"], &card);
    assert!(String::from_utf8_lossy(&mixed_up.stderr).contains("[SL-GROUP-06]"));
    let joined = home.feed("car", &["group", "join", "-"], &mailed(&invitation));
    assert!(joined.status.success(), "{}", String::from_utf8_lossy(&joined.stderr));
    assert_eq!(text(&home.show("car", &["group", "show", "fleet"]), "role"), "member");
}

#[test]
#[ignore = "lab: needs script"]
fn a_terminal_shows_text_and_a_file_takes_bytes() {
    let home = Home::fleet(&[], &["base"]);
    assert!(home.run("base", &["key", "card"]).starts_with(b"SLCD"));
    let mut terminal = on_terminal("key card");
    terminal.env("SEALANE_KEYS", home.path("base")).stdin(Stdio::null());
    let shown = String::from_utf8(terminal.output().unwrap().stdout).unwrap();
    assert!(shown.starts_with("-----BEGIN SEALANE CARD-----"), "{shown}");
    // A user that pastes into a terminal is told how to end the input.
    let mut pasting = on_terminal("group invite fleet -");
    pasting.env("SEALANE_KEYS", home.path("base")).stdin(Stdio::null());
    let shown = String::from_utf8(pasting.output().unwrap().stdout).unwrap();
    assert!(shown.contains("Paste the card, then press Ctrl-D"), "{shown}");
}

#[test]
fn names_that_look_alike_are_refused_and_a_card_may_have_another() {
    let home = Home::fleet(&[], &["base", "car"]);
    for (who, name) in [("one", "Car"), ("two", "c\u{430}r"), ("three", "BASE")] {
        home.run(who, &["key", "new", name]);
        let card = home.file("card", who, &["key", "card"]);
        let refused = home.fails("base", &["group", "invite", "fleet", &card]);
        assert_eq!(refused, (1, "SL-GROUP-33".to_owned()), "{name}");
    }
    let refused = home.fails("one", &["key", "card", "--name", ""]);
    assert_eq!(refused, (2, "SL-GROUP-18".to_owned()));
    let card = home.file("card", "one", &["key", "card", "--name", "bus"]);
    home.run("base", &["group", "invite", "fleet", &card]);
    let shown = home.says("base", &["group", "show", "fleet"]);
    assert!(shown.contains("\nbus  "), "{shown}");
    assert_eq!(text(&home.show("one", &["key", "show"]), "name"), "Car");
}

#[test]
fn a_public_key_is_shown_where_it_is_asked_for() {
    let home = Home::new();
    home.run("car", &["key", "new", "car"]);
    let short = home.says("car", &["key", "show"]);
    assert!(!short.contains("sealane1") && short.contains("fingerprint "), "{short}");
    assert!(short.lines().count() == 3, "{short}");
    let whole = home.says("car", &["key", "show", "--public"]);
    let key = text(&home.show("car", &["key", "show"]), "publicKey");
    assert_eq!(whole, format!("{short}public key  {key}\n"));
}

#[test]
fn a_passphrase_is_changed_by_who_knows_it() {
    let home = Home::new();
    let file = |name: &str, phrase: &str| {
        fs::write(home.path(name), format!("{phrase}\n")).unwrap();
        home.path(name).display().to_string()
    };
    let [old, new, empty] = [file("old", "horse"), file("new", "battery"), file("empty", "")];
    let made = ["key", "new", "car", "--passphrase-file", &old];
    home.run("car", &made);
    let change = |know: &str, new: &str| {
        home.fails("car", &["key", "passphrase", "--passphrase-file", know, "--new", new])
    };
    assert_eq!(change(&new, &new), (1, "SL-GROUP-09".to_owned()));
    assert_eq!(change(&old, &empty), (2, "SL-CLI-04".to_owned()));
    let unknown = home.fails("car", &["key", "passphrase", "--new", &new]);
    assert_eq!(unknown, (2, "SL-GROUP-08".to_owned()));
    // The passphrase that opens the folder is not taken for the new one.
    let mut silent = sealane(home.folder());
    silent.args(["key", "passphrase"]).env("SEALANE_KEYS", home.path("car"));
    let silent = silent.env("SEALANE_PASSPHRASE", "horse").output().unwrap();
    let said = String::from_utf8(silent.stderr).unwrap();
    assert_eq!(silent.status.code(), Some(2));
    assert!(said.contains("--new FILE"), "{said}");

    let change = ["key", "passphrase", "--passphrase-file", &old, "--new", &new];
    let changed = home.says("car", &change);
    assert_eq!(changed, "The passphrase is changed.\n");
    let show = |phrase: &str| ["key", "show", "--passphrase-file", phrase].map(str::to_owned);
    let [with_old, with_new] = [show(&old), show(&new)];
    let with_old: Vec<&str> = with_old.iter().map(String::as_str).collect();
    let with_new: Vec<&str> = with_new.iter().map(String::as_str).collect();
    assert_eq!(home.fails("car", &with_old), (1, "SL-GROUP-09".to_owned()));
    assert_eq!(text(&home.show("car", &with_new), "name"), "car");

    home.run("open", &["key", "new", "open"]);
    let refused = home.fails("open", &["key", "passphrase", "--new", &new]);
    assert_eq!(refused, (1, "SL-GROUP-28".to_owned()));
}

/// Where a document's version stands, behind its four letters.
const VERSION_AT: usize = 4;

#[test]
fn what_version_1_made_is_refused_with_what_to_do() {
    let home = Home::fleet(&[], &["base", "car"]);
    let card = home.file("card", "car", &["key", "card"]);
    let orders = home.file("orders", "base", &["group", "orders", "fleet"]);
    let backup = home.file("backup", "base", &["key", "backup"]);
    let invite = ["group", "invite", "fleet", &card];
    let invitation = home.file("invitation", "base", &invite);
    let date = |path: &str, version: u8| {
        let mut bytes = fs::read(path).unwrap();
        bytes[VERSION_AT] = version;
        fs::write(path, bytes).unwrap();
    };
    for (who, path, args) in [
        ("base", &card, &invite[..]),
        ("car", &orders, &["group", "apply", "fleet", &orders]),
        ("car", &invitation, &["group", "join", &invitation]),
        ("new", &backup, &["key", "restore", &backup]),
    ] {
        date(path, 1);
        assert_eq!(home.fails(who, args), (1, "SL-GROUP-30".to_owned()), "{args:?}");
        date(path, 3);
        assert_eq!(home.fails(who, args), (1, "SL-GROUP-07".to_owned()), "{args:?}");
    }
}

#[test]
fn a_group_of_version_1_is_left_and_founded_again() {
    let home = Home::fleet(&[], &["base"]);
    home.run("base", &["group", "new", "other"]);
    let file = home.path("base").join("groups/fleet/group");
    let mut bytes = fs::read(&file).unwrap();
    bytes[VERSION_AT] = 1;
    fs::write(&file, bytes).unwrap();
    let refused = home.fails("base", &["group", "show", "fleet"]);
    assert_eq!(refused, (1, "SL-GROUP-30".to_owned()));
    let listed = home.output("base", &["group", "ls"]);
    let said = String::from_utf8(listed.stderr).unwrap();
    assert_eq!(listed.status.code(), Some(1));
    assert!(String::from_utf8(listed.stdout).unwrap().contains("\nother  "));
    assert!(said.contains("fleet cannot be read: the group file has version 1"), "{said}");
    assert!(said.contains("sealane group leave GROUP"), "{said}");
    assert_eq!(home.fails("base", &["group", "new", "fleet"]).1, "SL-GROUP-16");
    home.run("base", &["group", "leave", "fleet"]);
    home.run("base", &["group", "new", "fleet"]);
    assert_eq!(home.fails("base", &["group", "leave", "none"]).1, "SL-GROUP-15");
}
