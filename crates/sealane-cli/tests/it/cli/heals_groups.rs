//! The work of an authority for a group whose keys may have been copied, and the orders that
//! members obey.

use sealane::Value;

use super::home::{Home, members, number};
use crate::cli::{json, sealane, text};

fn failure(code: i32, name: &str) -> (i32, String) {
    (code, name.to_owned())
}

#[test]
fn a_copy_of_a_folder_does_not_follow_a_healed_group() {
    let home = Home::fleet(&[], &["base", "car", "bus"]);
    home.copy("car", "thief");
    let orders = home.path("orders").display().to_string();
    let card = home.file("fresh", "car", &["key", "card"]);
    let heal = ["group", "heal", "fleet", &card, "--orders", &orders];
    let healed = home.output("base", &heal);
    // The car has missed that the bus came: a heal is obeyed in its turn, behind that.
    assert_eq!(home.fails("car", &["group", "apply", "fleet", &orders]).1, "SL-GROUP-22");
    let orders = home.file("all", "base", &["group", "orders", "fleet"]);
    let said = String::from_utf8(healed.stderr).unwrap();
    assert!(said.contains("Without a fresh card: bus\n") && said.contains("--drop-silent"));
    assert_eq!(healed.stdout, b"fleet: epoch 1, 3 members\n");
    let told = home.says("car", &["group", "apply", "fleet", &orders]);
    assert!(told.ends_with("\nepoch 1, with a fresh secret\n"), "{told}");
    home.run("bus", &["group", "apply", "fleet", &orders]);
    let lines = home.says("thief", &["group", "apply", "fleet", &orders, "--json"]);
    let copied = json(lines.lines().last().unwrap());
    assert_eq!((text(&copied, "change"), number(&copied, "epoch")), ("removed".into(), 0));
    assert_eq!(home.fails("thief", &["group", "apply", "fleet", &orders]).1, "SL-GROUP-24");
    for who in ["car", "bus"] {
        assert_eq!(number(&home.show(who, &["group", "show", "fleet"]), "epoch"), 1, "{who}");
    }
    assert_eq!(home.fails("base", &heal), failure(1, "SL-GROUP-12"), "a card heals once");
}

#[test]
fn who_brings_no_card_is_named_and_can_be_removed() {
    let home = Home::fleet(&[], &["base", "car", "bus"]);
    let orders = home.path("orders").display().to_string();
    let card = home.file("fresh", "car", &["key", "card"]);
    let healed = home.show("base", &["group", "heal", "fleet", &card]);
    assert_eq!(healed.field("silent"), Some(&Value::Array(vec!["bus".into()])));
    let card = home.file("fresh", "car", &["key", "card"]);
    let drop = ["group", "heal", "fleet", &card, "--drop-silent", "--orders", &orders];
    let healed = home.output("base", &drop);
    let said = String::from_utf8(healed.stderr).unwrap();
    assert!(said.contains("Removed, for want of a fresh card: bus\n"), "{said}");
    assert_eq!(members(&home.show("base", &["group", "show", "fleet"])), 2);
    let all = home.file("all", "base", &["group", "orders", "fleet"]);
    home.run("car", &["group", "apply", "fleet", &all]);
    let told = home.says("bus", &["group", "apply", "fleet", &all]);
    assert!(told.ends_with("\nthis member was removed from the group\n"), "{told}");
    let shown = home.says("bus", &["group", "show", "fleet"]);
    assert!(shown.contains("slot        2, removed\n"), "{shown}");
}

#[test]
fn a_card_that_heals_nothing_is_refused_and_changes_nothing() {
    let home = Home::fleet(&[], &["base", "car"]);
    home.run("stranger", &["key", "new", "stranger"]);
    let [one, two] = ["one", "two"].map(|name| home.file(name, "car", &["key", "card"]));
    let other = home.file("other", "stranger", &["key", "card"]);
    let own = home.file("own", "base", &["key", "card"]);
    let heal =
        |who: &str, cards: &[&str]| home.fails(who, &[&["group", "heal", "fleet"], cards].concat());
    assert_eq!(heal("base", &[&one, &two]), failure(1, "SL-GROUP-28"));
    assert_eq!(heal("base", &[&other]), failure(2, "SL-GROUP-17"));
    assert_eq!(heal("base", &[&own]), failure(2, "SL-GROUP-17"));
    assert_eq!(heal("car", &[&one]), failure(1, "SL-GROUP-20"));
    assert_eq!(number(&home.show("base", &["group", "show", "fleet"]), "epoch"), 0);
    home.run("base", &["group", "heal", "fleet", &two]);
}

#[test]
fn orders_with_a_gap_are_not_obeyed_and_close_the_sender() {
    let home = Home::fleet(&[], &["base", "car"]);
    for _ in 0..2 {
        home.run("base", &["group", "rotate", "fleet"]);
    }
    let all = home.file("all", "base", &["group", "orders", "fleet"]);
    let gap = home.file("gap", "base", &["group", "orders", "fleet", "--from", "3"]);
    let apply = ["group", "apply", "fleet", &gap];
    assert_eq!(home.fails("car", &apply), failure(1, "SL-GROUP-22"));
    let shown = home.show("car", &["group", "show", "fleet"]);
    assert_eq!((number(&shown, "orders"), number(&shown, "epoch")), (2, 0));
    assert_eq!(shown.field("behind"), Some(&true.into()));
    let shown = home.says("car", &["group", "show", "fleet"]);
    assert!(shown.contains("orders      2: order 2 of the authority is missing; 4 were given"));
    let told = home.says("car", &["group", "apply", "fleet", &all]);
    assert_eq!(told, "epoch 1, with a fresh secret\nepoch 2, with a fresh secret\n");
    let shown = home.show("car", &["group", "show", "fleet"]);
    assert_eq!((number(&shown, "orders"), shown.field("behind")), (4, Some(&false.into())));
}

#[test]
fn a_charter_says_how_old_heartbeats_may_be() {
    let home = Home::fleet(&["--heartbeat-age", "90m", "--strict"], &["base", "car"]);
    for who in ["base", "car"] {
        let shown = home.show(who, &["group", "show", "fleet"]);
        assert_eq!(number(&shown, "heartbeatAgeMs"), 5_400_000);
        let flags = ["strict", "stale", "copied"].map(|name| shown.field(name).unwrap().clone());
        assert_eq!(flags, [true.into(), false.into(), false.into()]);
    }
    let shown = home.says("car", &["group", "show", "fleet"]);
    let line = "heartbeats  one in 1h 30m at least, or only what is urgent is sealed\n";
    assert!(shown.contains(line), "{shown}");
    home.run("base", &["group", "new", "calm"]);
    assert!(!home.says("base", &["group", "show", "calm"]).contains("heartbeats"));
    let mut lax = sealane(home.folder());
    lax.args(["group", "new", "lax", "--strict"]).env("SEALANE_KEYS", home.path("base"));
    let lax = lax.output().unwrap();
    assert_eq!(lax.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lax.stderr).contains("--heartbeat-age"));
}

#[test]
fn epochs_are_forgotten_but_for_the_newest() {
    let home = Home::fleet(&[], &["base"]);
    for _ in 0..3 {
        home.run("base", &["group", "rotate", "fleet"]);
    }
    let shown = home.says("base", &["group", "forget", "fleet", "--before", "2"]);
    assert!(shown.contains("epochs held 2 to 3\n"), "{shown}");
    let shown = home.says("base", &["group", "forget", "fleet", "--before", "99"]);
    assert!(shown.contains("epochs held 3\n"), "{shown}");
    let kept = home.says("base", &["group", "show", "fleet"]);
    assert_eq!(kept, shown);
}

#[test]
fn a_copied_folder_says_so() {
    let home = Home::fleet(&[], &["base", "car"]);
    home.copy("car", "copy");
    let shown = home.says("copy", &["group", "show", "fleet"]);
    assert!(shown.contains("copied      yes: it was copied or restored"), "{shown}");
    assert!(!home.says("car", &["group", "show", "fleet"]).contains("copied"));
    let shown = home.show("copy", &["group", "show", "fleet"]);
    assert_eq!(shown.field("copied"), Some(&true.into()));
}
