//! A bucket far away: what was read once is not read again, several requests are under way at a
//! time, and an outage is waited out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hostile_s3::HostileS3;
use crate::s3::Server;
use crate::shared::{PASSPHRASE, Place};
use sealane_vault::{
    OpenOptions, PruneOptions, PutOptions, RetentionRules, S3Store, SlotSecret, StoreRetry, Vault,
    VaultStore,
};

/// Snapshots of the vault whose requests are counted.
const SNAPSHOTS: usize = 400;

fn store(server: &HostileS3, home: &Path) -> S3Store {
    let environment = Server::environment(server.port, home);
    S3Store::with_environment("s3://bucket/some/vault", environment).unwrap()
}

/// Opens it for one command, as the command line does.
fn open(server: &HostileS3, place: &Place, state: &str) -> Vault {
    let options =
        OpenOptions { state: Some(place.path(state)), one_command: true, ..OpenOptions::default() };
    let store = VaultStore::S3(Box::new(store(server, place.folder.path())));
    Vault::open(store, &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap()
}

/// A bucket with snapshots of one small file, which were made in a folder: that is cheaper.
fn bucket(place: &Place, snapshots: usize) -> (HostileS3, PathBuf) {
    let source = place.source(|source| fs::write(source.join("file"), b"small").unwrap());
    let vault = place.init();
    let options = PutOptions { threads: 1, ..PutOptions::default() };
    for _ in 0..snapshots {
        vault.put_paths(std::slice::from_ref(&source), &options).unwrap();
    }
    let objects = vault.store().list("").unwrap();
    let object = |key: &String| {
        let bytes = fs::read(place.path("vault").join(key)).unwrap();
        (format!("some/vault/{key}"), bytes)
    };
    let server = HostileS3::start();
    server.set(objects.iter().map(|object_| object(&object_.key)).collect());
    (server, source)
}

fn kinds(seen: &[String]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for request in seen {
        let kind = request.replace("some/vault/", "").chars().take(60).collect::<String>();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

#[test]
fn requests_do_not_grow_with_the_snapshots() {
    let place = Place::new();
    let (server, source) = bucket(&place, SNAPSHOTS);

    // A fresh machine makes one listing of the links and reads each once, several at a time.
    server.hold_links(16);
    let vault = open(&server, &place, "fresh");
    assert_eq!(vault.snapshots().unwrap().len(), SNAPSHOTS);
    let seen = server.seen();
    assert_eq!(server.most_at_once(), 16);
    let lists = seen.iter().filter(|what| {
        what.contains("list-type") && (what.contains("start-after") || what.contains("snapshots"))
    });
    assert_eq!(lists.count(), 1, "{:?}", kinds(&seen));
    let links: Vec<&String> =
        seen.iter().filter(|what| what.starts_with("GET some/vault/snapshots/")).collect();
    let each: BTreeSet<&&String> = links.iter().collect();
    assert_eq!((links.len(), each.len()), (SNAPSHOTS, SNAPSHOTS), "{:?}", kinds(&seen));

    let within = |verb: &str, most: usize| {
        let seen = server.seen();
        assert!(seen.len() <= most, "{verb}: {} requests: {:#?}", seen.len(), kinds(&seen));
    };
    let vault = open(&server, &place, "fresh");
    assert_eq!(vault.snapshots().unwrap().len(), SNAPSHOTS);
    within("ls", 12);
    for content in ["other", "and another"] {
        fs::write(source.join("file"), content).unwrap();
        let vault = open(&server, &place, "fresh");
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        within("put", 16);
    }
    let keep = RetentionRules { last: 10, ..RetentionRules::default() };
    let prune = PruneOptions { keep, dry_run: true, ..PruneOptions::default() };
    let report = open(&server, &place, "fresh").prune(&prune).unwrap();
    assert_eq!((report.kept, report.removed), (10, SNAPSHOTS as u64 - 8));
    within("prune --dry-run", 30);
}

#[test]
fn a_copy_on_this_machine_is_never_trusted() {
    let place = Place::new();
    let (server, _) = bucket(&place, 5);
    open(&server, &place, "far");
    let cache = fs::read_dir(place.path("far")).unwrap().flatten();
    let cache = cache.map(|vault| vault.path().join("objects")).find(|path| path.is_dir()).unwrap();
    let files = |cache: &Path| -> Vec<PathBuf> {
        let places = fs::read_dir(cache).unwrap().flatten();
        places
            .flat_map(|place| fs::read_dir(place.path()).unwrap())
            .flatten()
            .map(|f| f.path())
            .collect()
    };
    assert!(files(&cache).len() > 5);
    let numbers = |vault: &Vault| -> Vec<u64> {
        vault.snapshots().unwrap().iter().map(|snapshot| snapshot.number).collect()
    };
    for damage in [&b""[..], b"something else"] {
        for file in files(&cache) {
            fs::write(file, damage).unwrap();
            assert_eq!(numbers(&open(&server, &place, "far")), [1, 2, 3, 4, 5]);
        }
    }
    // A link that the bucket damages and says nothing of is found by whoever verifies.
    let key = "some/vault/snapshots/0000000002";
    let mut rotten = server.objects()[key].clone();
    *rotten.last_mut().unwrap() ^= 1;
    server.rot(key, rotten);
    let vault = open(&server, &place, "far");
    assert_eq!(numbers(&vault), [1, 2, 3, 4, 5]);
    let problems = vault.verify(false).unwrap().problems;
    assert!(problems.iter().any(|found| found.path.contains("0000000002")), "{problems:?}");
    // Once the bucket has it whole again, so have its readers.
    assert_eq!(numbers(&open(&server, &place, "far")), [1, 3, 4, 5]);
    server.rot(key, server.objects()[key].clone());
    assert_eq!(numbers(&open(&server, &place, "far")), [1, 2, 3, 4, 5]);
    // One that it replaces counts at once.
    let mut objects = server.objects();
    let other = objects["some/vault/snapshots/0000000003"].clone();
    objects.insert("some/vault/snapshots/0000000004".to_owned(), other);
    server.set(objects);
    assert_eq!(
        open(&server, &place, "far").snapshot(Some(4)).unwrap_err().info().name,
        "ObjectMalformed"
    );
}

/// A handle that is not for one command alone sees what others put while it is open.
#[test]
fn a_handle_that_stays_sees_what_others_put() {
    let place = Place::new();
    let (server, source) = bucket(&place, 1);
    let options = OpenOptions { state: Some(place.path("long")), ..OpenOptions::default() };
    let far = VaultStore::S3(Box::new(store(&server, place.folder.path())));
    let long = Vault::open(far, &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
    for number in 2..5 {
        let other = open(&server, &place, "other");
        assert_eq!(long.snapshots().unwrap().len(), number - 1);
        other.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        assert_eq!(long.snapshots().unwrap().len(), number);
        // The one that put sees it, too, although its view is one command's.
        assert_eq!(other.snapshots().unwrap().len(), number);
    }
}

#[test]
fn an_outage_is_waited_out_and_told_once() {
    let home = tempfile::tempdir().unwrap();
    let server = HostileS3::start();
    let told = Arc::new(Mutex::new(Vec::new()));
    let retrying = |within: u64| {
        let told = told.clone();
        let retry = StoreRetry::within(Duration::from_secs(within))
            .telling(move |text| told.lock().unwrap().push(text.to_owned()));
        VaultStore::S3(Box::new(store(&server, home.path()).retrying(retry)))
    };
    // One request and its six retries are over before the server is back.
    let patient = retrying(900);
    server.refuse(8, 503);
    patient.put("config", b"one").unwrap();
    server.refuse(8, 429);
    assert_eq!(patient.get("config", 3).unwrap(), b"one");
    let said = std::mem::take(&mut *told.lock().unwrap());
    let [said] = &said[..] else { panic!("{said:?}") };
    assert!(said.contains("s3://bucket/some/vault") && said.contains("15m"), "{said}");
    assert!(said.contains("503"), "{said}");
    // A failure that stays is no outage; nor is one waited out where nobody asked for that.
    server.seen();
    server.refuse(1, 403);
    assert_eq!(patient.get("config", 3).unwrap_err().info().name, "StoreFailed");
    server.refuse(1, 404);
    assert_eq!(patient.get("config", 3).unwrap_err().info().name, "ObjectMissing");
    assert_eq!(server.seen().len(), 2);
    let hasty = retrying(0);
    server.refuse(100, 503);
    assert_eq!(hasty.get("config", 3).unwrap_err().info().name, "StoreFailed");
    assert_eq!(server.seen().len(), 7);
    assert_eq!(told.lock().unwrap().len(), 0);
}
