//! Two writers, a prune and a reader at the same time, each with a state of its own: whatever a put
//! has reported comes back byte for byte until a rule removes it, and in the end nothing is amiss.
//!
//! `SEALANE_SECONDS` says for how long, on each kind of store.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::s3::Server;
use crate::shared::{CHEAP, PASSPHRASE, Place, Seed};
use sealane_vault::{
    Error, OpenOptions, PruneOptions, PutOptions, RetentionRules, S3Store, SlotSecret, Vault,
    VaultMetadata, VaultStore, WriterKey,
};

/// Snapshots that each writer keeps of its own.
const LAST: usize = 5;
/// How often a handle of the reader goes through all snapshots.
const LOOKS: usize = 20;
/// A busy machine may stand still for longer than a server may be silent.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Snapshots that were reported as kept: by number, the writer and the content.
type Kept = Mutex<BTreeMap<u64, (String, Vec<u8>)>>;

struct Scene<'a> {
    place: &'a Place,
    store: &'a (dyn Fn() -> VaultStore + Sync),
    until: Instant,
    kept: Kept,
}

#[test]
fn in_a_folder() {
    let place = Place::new();
    run(&place, &|| place.store());
}

#[test]
#[ignore = "lab: needs Python packages"]
fn in_a_bucket() {
    let (place, server) = (Place::new(), Server::start());
    let home = place.path("home");
    run(&place, &|| {
        let environment = Server::environment(server.port, &home);
        VaultStore::S3(
            S3Store::with_patience("s3://bucket/vault", environment, PATIENCE).unwrap().into(),
        )
    });
}

fn run(place: &Place, store: &(dyn Fn() -> VaultStore + Sync)) {
    let seconds = std::env::var("SEALANE_SECONDS").map_or(3, |text| text.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let scene = Scene { place, store, until, kept: Kept::default() };
    let sealed = VaultMetadata::Sealed;
    let owner = Vault::init(store(), PASSPHRASE, CHEAP, sealed, &scene.options("owner")).unwrap();
    let keys = ["a", "b"].map(|name| (name, owner.add_writer(name).unwrap()));
    let (pruned, read) = std::thread::scope(|scope| {
        for (name, key) in &keys {
            scope.spawn(|| scene.writes(name, key));
        }
        let prunes = scope.spawn(|| scene.prunes());
        let reads = scope.spawn(|| scene.reads());
        (prunes.join().unwrap(), reads.join().unwrap())
    });
    let vault = scene.owner("fresh");
    assert_eq!(vault.verify(true).unwrap().problems, []);
    let kept = scene.kept.lock().unwrap().clone();
    for name in ["a", "b"] {
        let mut newest = kept.iter().rev().filter(|(_, (by, _))| by == name).take(LAST);
        newest.by_ref().for_each(|(number, _)| assert!(scene.reads_back(&vault, *number)));
        assert!(kept.values().any(|(by, _)| by == name));
    }
    let there = vault.snapshots().unwrap().len();
    println!("{} puts, {pruned} prunes, {read} reads, {there} snapshots stay", kept.len());
    assert!(pruned > 0 && read > 0);
}

impl Scene<'_> {
    fn options(&self, state: &str) -> OpenOptions {
        OpenOptions { state: Some(self.place.path(state)), ..OpenOptions::default() }
    }

    fn owner(&self, state: &str) -> Vault {
        let secret = SlotSecret::Passphrase(PASSPHRASE);
        Vault::open((self.store)(), &secret, &self.options(state)).unwrap()
    }

    fn is_over(&self) -> bool {
        Instant::now() > self.until
    }

    /// Every other content is one that both writers have.
    fn writes(&self, name: &str, key: &WriterKey) {
        let mut own = Seed(u64::from(name.as_bytes()[0]));
        for turn in 0.. {
            let content = match turn % 2 {
                0 => Seed(turn).random(100_000),
                _ => own.random(150_000),
            };
            let state = self.options(name);
            let number = loop {
                let vault = Vault::open((self.store)(), &SlotSecret::Writer(key), &state).unwrap();
                match vault.put_reader(name, &mut content.as_slice(), &PutOptions::default()) {
                    Ok(put) => break put.snapshot,
                    Err(Error::Pruned | Error::Raced) => {}
                    Err(error) => panic!("{name}: {error}"),
                }
            };
            self.kept.lock().unwrap().insert(number, (name.to_owned(), content));
            if self.is_over() {
                break;
            }
        }
    }

    fn prunes(&self) -> u64 {
        for turn in 1.. {
            let keep = RetentionRules { last: LAST, ..RetentionRules::default() };
            match self.owner("prunes").prune(&PruneOptions { keep, ..PruneOptions::default() }) {
                Ok(_) | Err(Error::Raced) => {}
                Err(error) => panic!("prune: {error}"),
            }
            if self.is_over() {
                return turn;
            }
        }
        0
    }

    /// Reads whatever there is, for a while with one handle: what comes and goes meanwhile is to
    /// be seen by it. Every other handle remembers nothing.
    fn reads(&self) -> u64 {
        let mut reads = 0;
        for turn in 0.. {
            let state = format!("reads {}", turn % 2);
            let _ = std::fs::remove_dir_all(self.place.path("reads 1"));
            let vault = self.owner(&state);
            for _ in 0..LOOKS {
                self.reads_all(&vault);
                reads += 1;
                if self.is_over() {
                    return reads;
                }
            }
            assert_eq!(vault.verify(false).unwrap().problems, []);
        }
        reads
    }

    fn reads_all(&self, vault: &Vault) {
        for snapshot in vault.snapshots().unwrap() {
            let number = snapshot.number;
            if !self.reads_back(vault, number) {
                let there = vault.snapshots().unwrap();
                let gone = there.iter().all(|other| other.number != number);
                assert!(gone, "snapshot {number} does not come back");
            }
        }
        assert_eq!(vault.warnings(), []);
    }

    /// Whether a snapshot is there; if it is, it holds what was put.
    fn reads_back(&self, vault: &Vault, number: u64) -> bool {
        // Its put may not have returned yet.
        let Some((name, content)) = self.kept.lock().unwrap().get(&number).cloned() else {
            return true;
        };
        let mut out = Vec::new();
        let read = vault.snapshot(Some(number)).and_then(|snapshot| {
            let size = content.len() as u64;
            vault.file(&snapshot, name.as_bytes())?.read_range(0, size, &mut out)
        });
        match read {
            Ok(_) => assert!(out == content, "snapshot {number} holds something else"),
            Err(Error::NoSnapshot(_) | Error::Removed(_)) => return false,
            Err(error) => panic!("snapshot {number}: {error}"),
        }
        true
    }
}
