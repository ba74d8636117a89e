//! A bucket whose server writes over objects, forgets them, or answers late: it is refused by name,
//! or nothing is lost.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::hostile_s3::{HostileS3, Way};
use crate::s3::{Answer, Proxy, Server};
use crate::shared::{CHEAP, PASSPHRASE};
use sealane_vault::{
    Error, GetOptions, OpenOptions, PruneOptions, PutOptions, PutReport, RetentionRules, S3Store,
    SlotSecret, Vault, VaultMetadata, VaultStore,
};

/// How long the client waits for a server that is late.
const PATIENCE: Duration = Duration::from_millis(600);

fn store(port: u16, home: &Path) -> VaultStore {
    let environment = Server::environment(port, home);
    let bucket = S3Store::with_patience("s3://bucket/some/vault", environment, PATIENCE);
    VaultStore::S3(Box::new(bucket.unwrap()))
}

fn options(home: &Path, machine: &str) -> OpenOptions {
    OpenOptions { state: Some(home.join(machine)), ..OpenOptions::default() }
}

fn init(port: u16, home: &Path) -> Result<Vault, Error> {
    Vault::init(
        store(port, home),
        PASSPHRASE,
        CHEAP,
        VaultMetadata::Sealed,
        &options(home, "state"),
    )
}

fn open_as(port: u16, home: &Path, machine: &str) -> Result<Vault, Error> {
    Vault::open(store(port, home), &SlotSecret::Passphrase(PASSPHRASE), &options(home, machine))
}

fn open(port: u16, home: &Path) -> Vault {
    open_as(port, home, "state").unwrap()
}

fn put(vault: &Vault, content: &str) -> Result<PutReport, Error> {
    vault.put_reader("letter", &mut content.as_bytes(), &PutOptions::default())
}

/// The vault is whole and its newest snapshot holds `content`.
fn assert_holds(vault: &Vault, home: &Path, content: &str) {
    assert!(vault.verify(true).unwrap().problems.is_empty());
    let target = home.join("restored");
    let _ = std::fs::remove_dir_all(&target);
    let snapshot = vault.snapshot(None).unwrap();
    assert_eq!(vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap().failed, []);
    assert_eq!(std::fs::read_to_string(target.join("letter")).unwrap(), content);
}

fn name<T>(outcome: Result<T, Error>) -> &'static str {
    outcome.map(|_| ()).unwrap_err().info().name
}

#[test]
#[ignore = "lab: needs Python packages"]
fn a_real_server_that_ignores_the_condition_is_refused() {
    let server = Server::start();
    let proxy = Proxy::start(server.port);
    let home = tempfile::tempdir().unwrap();
    proxy.rule(|_| Answer::Unconditional);
    assert_eq!(name(init(proxy.port, home.path())), "StoreOverwrites");
    assert_eq!(store(server.port, home.path()).list("").unwrap(), []);
    // A vault that was made there before is not written to any more.
    init(server.port, home.path()).unwrap();
    put(&open(server.port, home.path()), "first").unwrap();
    let before = store(server.port, home.path()).list("").unwrap();
    let vault = open(proxy.port, home.path());
    assert_eq!(name(put(&vault, "second")), "StoreOverwrites");
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let prune = PruneOptions { keep, ..PruneOptions::default() };
    assert_eq!(name(vault.prune(&prune)), "StoreOverwrites");
    assert_eq!(store(server.port, home.path()).list("").unwrap(), before);
    assert_holds(&vault, home.path(), "first");
}

#[test]
#[ignore = "lab: needs Python packages"]
fn a_real_server_is_asked_once_and_nothing_is_left_there() {
    let server = Server::start();
    let proxy = Proxy::start(server.port);
    let home = tempfile::tempdir().unwrap();
    init(proxy.port, home.path()).unwrap();
    let vault = open(proxy.port, home.path());
    proxy.rule(|_| Answer::Pass);
    put(&vault, "first").unwrap();
    put(&vault, "second").unwrap();
    let seen = proxy.seen();
    let asked = seen.iter().filter(|what| what.starts_with("PUT") && what.contains("/probe/"));
    assert_eq!(asked.count(), 2, "{seen:?}");
    assert_eq!(store(server.port, home.path()).list("probe/").unwrap(), []);
    assert_holds(&vault, home.path(), "second");
}

#[test]
fn four_at_once_lose_nothing_at_a_server_that_ignores_the_condition() {
    let server = HostileS3::start();
    let home = tempfile::tempdir().unwrap();
    init(server.port, home.path()).unwrap();
    server.rule(|_| Way::Overwrites);
    let said = std::thread::scope(|scope| {
        let puts: Vec<_> = (0..4)
            .map(|host| {
                let (port, home) = (server.port, home.path());
                scope.spawn(move || {
                    let vault = open_as(port, home, &format!("host{host}")).unwrap();
                    name(put(&vault, &format!("of host {host}")))
                })
            })
            .collect();
        puts.into_iter().map(|put| put.join().unwrap()).collect::<Vec<_>>()
    });
    // One may remove what another asks with, which that one finds forgotten.
    let refusals = ["StoreOverwrites", "StoreForgot"];
    assert!(said.iter().all(|name| refusals.contains(name)), "{said:?}");
    assert_eq!(server.keys("snapshots/"), [""; 0]);
    server.rule(|_| Way::Honest);
    let vault = open(server.port, home.path());
    put(&vault, "kept").unwrap();
    assert_holds(&vault, home.path(), "kept");
}

#[test]
fn a_link_that_another_replaced_does_not_count() {
    let server = HostileS3::start();
    let home = tempfile::tempdir().unwrap();
    let vault = init(server.port, home.path()).unwrap();
    put(&vault, "first").unwrap();
    // It keeps to the condition where it is asked, and not where it matters.
    for (way, expected) in [(Way::Replaces, "StoreOverwrites"), (Way::Forgets, "StoreForgot")] {
        let before = vault.head_text().unwrap();
        server.rule(move |key| if key.contains("/snapshots/") { way } else { Way::Honest });
        let failed = put(&vault, "second").unwrap_err();
        assert_eq!(failed.info().name, expected, "{failed}");
        server.rule(|_| Way::Honest);
        let key = "some/vault/snapshots/0000000002".to_owned();
        store(server.port, home.path()).delete("snapshots/0000000002").unwrap();
        assert!(!server.keys("snapshots/").contains(&key));
        assert_eq!(vault.head_text().unwrap(), before, "{way:?} was remembered");
    }
    put(&vault, "second").unwrap();
    assert_holds(&vault, home.path(), "second");
}

#[test]
fn an_object_that_was_forgotten_after_a_yes_is_named() {
    let server = HostileS3::start();
    let home = tempfile::tempdir().unwrap();
    for part in ["/probe/", "/keys/", "/config"] {
        server.rule(move |key| if key.contains(part) { Way::Forgets } else { Way::Honest });
        let failed = init(server.port, home.path()).unwrap_err();
        assert_eq!(failed.info().name, "StoreForgot");
        assert!(failed.to_string().contains(part.trim_matches('/')), "{part}: {failed}");
    }
    server.rule(|_| Way::Honest);
    let vault = init(server.port, home.path()).unwrap();
    put(&vault, "first").unwrap();
    server.rule(|key| if key.contains("/packs/") { Way::Forgets } else { Way::Honest });
    let failed = put(&vault, "second").unwrap_err();
    assert_eq!(failed.info().name, "StoreForgot");
    assert!(failed.to_string().contains("packs/"), "{failed}");
    assert_eq!(server.keys("snapshots/").len(), 1);
    assert_holds(&vault, home.path(), "first");
    server.rule(|key| if key.contains("/keys/") { Way::Forgets } else { Way::Honest });
    // A recovery code is printed only if its slot is there.
    assert_eq!(name(vault.add_recovery("paper")), "StoreForgot");
    // The store may forget an index, because every pack says the same.
    server.rule(|key| if key.contains("/index/") { Way::Forgets } else { Way::Honest });
    put(&vault, "second").unwrap();
    let fresh = open_as(server.port, home.path(), "another machine").unwrap();
    assert_holds(&fresh, home.path(), "second");
}

#[test]
fn an_answer_beyond_the_clients_patience_loses_nothing() {
    let server = HostileS3::start();
    let home = tempfile::tempdir().unwrap();
    let vault = init(server.port, home.path()).unwrap();
    put(&vault, "first").unwrap();
    let late = 3 * PATIENCE;
    let ways = [Way::AnswersLate(late), Way::KeepsLate(late)];
    for (round, way) in ways.into_iter().enumerate() {
        let before = vault.snapshots().unwrap().len();
        server.rule(move |key| if key.contains("/snapshots/") { way } else { Way::Honest });
        let begun = Instant::now();
        let failed = put(&vault, "late").unwrap_err();
        assert_eq!(failed.info().name, "StoreFailed", "{failed}");
        assert!(failed.to_string().contains("snapshots/"), "{failed}");
        assert!(begun.elapsed() >= PATIENCE);
        server.rule(|_| Way::Honest);
        // The next takes its number, or the one behind what arrived after all.
        let content = format!("in time {round}");
        put(&open(server.port, home.path()), &content).unwrap();
        std::thread::sleep(late);
        let vault = open(server.port, home.path());
        assert_holds(&vault, home.path(), &content);
        let added = vault.snapshots().unwrap().len() - before;
        assert_eq!(added, if round == 0 { 2 } else { 1 }, "{way:?}");
    }
}

#[test]
fn credentials_that_only_add_leave_one_object_behind() {
    let server = HostileS3::start();
    let home = tempfile::tempdir().unwrap();
    init(server.port, home.path()).unwrap();
    assert_eq!(server.keys("probe/"), [""; 0]);
    server.only_append();
    for content in ["first", "second", "third"] {
        put(&open(server.port, home.path()), content).unwrap();
    }
    assert_eq!(server.keys("probe/").len(), 1);
    assert_holds(&open(server.port, home.path()), home.path(), "third");
}
