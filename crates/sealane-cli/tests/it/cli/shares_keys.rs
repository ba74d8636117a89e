//! Keys and groups through the program: two folders, a card, an invitation, orders.

use std::fs;

use super::home::{Home, members, number};
use crate::cli::{json, sealane, text};

#[test]
fn a_card_and_an_invitation_join_two_folders_and_a_revocation_parts_them() {
    let home = Home::new();
    let base = home.show("base", &["key", "new", "base"]);
    assert_eq!(text(&base, "name"), "base");
    home.run("car", &["key", "new", "car"]);
    let made = home.show("base", &["group", "new", "fleet"]);
    let card = home.file("card", "car", &["key", "card"]);
    let invitation = home.file("invitation", "base", &["group", "invite", "fleet", &card]);
    let pin = text(&made, "authority");
    let joined = home.show("car", &["group", "join", &invitation, "--authority", &pin]);
    assert_eq!((number(&joined, "slot"), text(&joined, "role")), (1, "member".to_owned()));
    assert_eq!(text(&joined, "tag"), text(&made, "tag"));
    assert_eq!(members(&joined), 2);

    home.run("bus", &["key", "new", "bus"]);
    let card = home.file("card", "bus", &["key", "card"]);
    let orders = home.path("orders").display().to_string();
    let invite = ["group", "invite", "fleet", &card, "--orders", &orders];
    let invitation = home.file("invitation", "base", &invite);
    home.run("bus", &["group", "join", &invitation, "--as", "my-fleet"]);
    home.run("car", &["group", "apply", "fleet", &orders]);
    assert_eq!(members(&home.show("car", &["group", "show", "fleet"])), 3);

    let revoke = ["group", "revoke", "fleet", "bus", "--orders", &orders];
    let told = home.show("base", &revoke);
    assert_eq!((number(&told, "epoch"), number(&told, "members")), (1, 2));
    home.run("car", &["group", "apply", "fleet", &orders]);
    let removed = home.show("bus", &["group", "apply", "my-fleet", &orders]);
    assert_eq!(text(&removed, "change"), "removed");
    assert_eq!(text(&home.show("bus", &["group", "ls"]), "role"), "removed");
    assert_eq!(home.fails("bus", &["group", "apply", "my-fleet", &orders]).1, "SL-GROUP-24");
    let car = home.show("car", &["group", "show", "fleet"]);
    assert_eq!((number(&car, "epoch"), members(&car)), (1, 2));

    home.run("base", &["group", "rotate", "fleet"]);
    home.run("base", &["group", "rotate", "fleet", "--advance"]);
    let all = home.file("all", "base", &["group", "orders", "fleet"]);
    let words = String::from_utf8(home.run("car", &["group", "apply", "fleet", &all])).unwrap();
    assert_eq!(words, "epoch 2, with a fresh secret\nepoch 3\n");
    let shown = String::from_utf8(home.run("car", &["group", "show", "fleet"])).unwrap();
    assert!(shown.contains("epochs held 0 to 3\n"), "{shown}");
    assert!(shown.contains("\nMEMBER  SLOT  SINCE  REMOVED"), "{shown}");
    home.run("bus", &["group", "leave", "my-fleet"]);
    assert!(home.run("bus", &["group", "ls", "--json"]).is_empty());
}

#[test]
fn failures_have_names_hints_and_exit_codes() {
    let home = Home::new();
    let failure = |code: i32, name: &str| (code, name.to_owned());
    assert_eq!(home.fails("car", &["key", "show"]), failure(2, "SL-GROUP-01"));
    home.run("car", &["key", "new"]);
    assert_eq!(home.fails("car", &["key", "new"]), failure(2, "SL-GROUP-02"));
    assert_eq!(home.fails("car", &["group", "show", "fleet"]), failure(2, "SL-GROUP-15"));
    assert_eq!(home.fails("car", &["group", "new", "Fleet"]), failure(2, "SL-GROUP-18"));
    let none = home.path("none").display().to_string();
    assert_eq!(home.fails("car", &["group", "join", &none]), failure(2, "SL-CLI-03"));
    fs::write(&none, "nothing").unwrap();
    assert_eq!(home.fails("car", &["group", "join", &none]), failure(1, "SL-GROUP-06"));

    home.run("base", &["key", "new", "base"]);
    home.run("base", &["group", "new", "fleet"]);
    let card = home.file("card", "car", &["key", "card"]);
    let invitation = home.file("invitation", "base", &["group", "invite", "fleet", &card]);
    let wrong = "0000-0000-0000-0000-0000-0000-0000-0000";
    let join = ["group", "join", &invitation, "--authority", wrong];
    assert_eq!(home.fails("car", &join), failure(1, "SL-GROUP-26"));
    home.run("car", &["group", "join", &invitation]);
    assert_eq!(home.fails("car", &["group", "join", &invitation]), failure(1, "SL-GROUP-12"));
    assert_eq!(home.fails("car", &["group", "rotate", "fleet"]), failure(1, "SL-GROUP-20"));
    let revoke = ["group", "revoke", "fleet", "nobody"];
    assert_eq!(home.fails("base", &revoke), failure(2, "SL-GROUP-17"));
    let error = home.output("base", &[&revoke[..], &["--json"]].concat());
    let error = json(&String::from_utf8(error.stderr).unwrap());
    assert_eq!(text(error.field("error").unwrap(), "code"), "SL-GROUP-17");
    assert!(home.run("car", &["explain", "SL-GROUP-12"]).starts_with(b"SL-GROUP-12 UnknownCard"));
}

#[test]
fn a_copied_authority_is_told_to_renew() {
    let home = Home::new();
    home.run("base", &["key", "new", "base"]);
    home.run("base", &["group", "new", "fleet"]);
    home.copy("base", "copy");
    let refused = home.fails("copy", &["group", "rotate", "fleet"]);
    assert_eq!(refused, (1, "SL-GROUP-13".to_owned()));
    let renewed = home.show("copy", &["group", "renew", "fleet"]);
    assert_eq!(number(&renewed, "epoch"), 64);
    home.run("copy", &["group", "rotate", "fleet"]);
}

#[test]
fn a_backup_needs_its_passphrase_and_nothing_is_asked_on_the_command_line() {
    let home = Home::new();
    let file = home.path("passphrase").display().to_string();
    fs::write(&file, "correct horse\n").unwrap();
    let with = |args: &[&'static str]| -> Vec<String> {
        args.iter().copied().chain(["--passphrase-file", &file]).map(str::to_owned).collect()
    };
    let run = |who: &str, args: &[&'static str]| {
        let args = with(args);
        home.run(who, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    run("car", &["key", "new", "car"]);
    assert_eq!(home.fails("car", &["key", "show"]), (2, "SL-GROUP-08".to_owned()));
    fs::write(home.path("backup"), run("car", &["key", "backup"])).unwrap();
    let backup = home.path("backup").display().to_string();
    assert_eq!(home.fails("new", &["key", "restore", &backup]).1, "SL-GROUP-08");
    let mut restore = sealane(home.folder());
    restore.args(["key", "restore", &backup, "--json"]).env("SEALANE_KEYS", home.path("new"));
    let wrong = restore.env("SEALANE_PASSPHRASE", "wrong").output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("SL-GROUP-09"));
    let output = restore.env("SEALANE_PASSPHRASE", "correct horse").output().unwrap();
    let restored = json(&String::from_utf8(output.stdout).unwrap());
    let shown = String::from_utf8(run("car", &["key", "show", "--json"])).unwrap();
    assert_eq!(text(&restored, "fingerprint"), text(&json(&shown), "fingerprint"));
    assert!(text(&restored, "publicKey").starts_with("sealane1"));
}
