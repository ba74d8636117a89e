//! Readers, verifications, puts and prunes go on while others put and prune. An open handle sees
//! everything that came since, and objects that are removed beside it are not taken for lost.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::hostile_s3::HostileS3;
use crate::s3::Server;
use crate::shared::{CHEAP, Host, PASSPHRASE, Place, Seed, assert_same, copy};
use sealane_vault::{
    DrillOptions, Error, GetOptions, OpenOptions, PruneOptions, PutOptions, PutReport,
    RetentionRules, S3Store, SlotSecret, Snapshot, SnapshotSelector, Vault, VaultMetadata,
    VaultStore,
};

const SECRET: SlotSecret<'_> = SlotSecret::Passphrase(PASSPHRASE);
/// A busy machine may stand still for longer than a server may be silent.
const PATIENCE: Duration = Duration::from_secs(3600);

fn options(place: &Place, state: &str) -> OpenOptions {
    OpenOptions { state: Some(place.path(state)), ..OpenOptions::default() }
}

fn last(last: usize, now: bool) -> PruneOptions {
    let keep = RetentionRules { last, ..RetentionRules::default() };
    PruneOptions { keep, now, ..PruneOptions::default() }
}

/// The newest snapshot of all.
fn newest(vault: &Vault) -> Snapshot {
    vault.snapshot(None).unwrap()
}

/// Each way to read the newest snapshot of a source with the file `stays`.
type Reader = fn(&Place, &Vault);

const READERS: [(&str, Reader); 7] = [
    ("get", |place, vault| {
        let (target, failed) = place.restores(vault, None);
        assert_eq!(failed, []);
        assert_same(&place.path("source"), &target);
    }),
    ("a range of a file", |place, vault| {
        let mut out = Vec::new();
        let mut file = vault.file(&newest(vault), b"source/stays").unwrap();
        file.read_range(0, u64::MAX, &mut out).unwrap();
        assert!(out == fs::read(place.path("source/stays")).unwrap());
    }),
    ("ls", |_, vault| {
        let snapshot = newest(vault);
        let mut entries = vault.entries(&snapshot).unwrap().map(Result::unwrap);
        assert!(entries.any(|entry| entry.path == b"source/stays"));
    }),
    ("find", |_, vault| {
        let mut found = Vec::new();
        vault
            .find("stays", &SnapshotSelector::default(), &mut |one| {
                found.push(one.snapshot);
                Ok(())
            })
            .unwrap();
        assert!(!found.is_empty());
        assert_eq!(vault.warnings(), []);
    }),
    ("the newest that has a path", |_, vault| {
        let paths = [b"source/stays".to_vec()];
        assert_eq!(
            vault.newest(&SnapshotSelector::default(), &paths).unwrap().number,
            newest(vault).number
        );
        assert_eq!(vault.warnings(), []);
    }),
    ("verify", |_, vault| assert_eq!(vault.verify(true).unwrap().problems, [])),
    ("drill", |_, vault| {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(vault.drill(scratch.path(), &DrillOptions::default()).unwrap().failed, []);
    }),
];

#[test]
fn a_handle_that_is_open_reads_what_was_put_since() {
    let place = Place::new();
    let owner = place.init();
    owner.put_reader("before", &mut &b"before"[..], &PutOptions::default()).unwrap();
    let open = READERS.map(|(name, _)| place.open_afresh(name));
    let source = place.source(|folder| {
        fs::write(folder.join("stays"), Seed(1).random(300_000)).unwrap();
    });
    owner.put_paths(&[source], &PutOptions::default()).unwrap();
    for ((name, reads), vault) in READERS.iter().zip(&open) {
        println!("{name}");
        reads(&place, vault);
    }
}

#[test]
fn a_handle_that_is_open_reads_what_a_prune_wrote_anew() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::write(folder.join("stays"), Seed(1).random(300_000)).unwrap();
        fs::write(folder.join("goes"), Seed(2).random(900_000)).unwrap();
    });
    let owner = place.init();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    fs::remove_file(source.join("goes")).unwrap();
    owner.put_paths(&[source], &PutOptions::default()).unwrap();
    let open = READERS.map(|(name, _)| place.open_afresh(name));
    let snapshots = open.each_ref().map(newest);
    let report = owner.prune(&last(1, true)).unwrap();
    assert!(report.repacked == 1 && report.removed_packs >= 1, "{report:?}");
    for ((name, reads), vault) in READERS.iter().zip(&open) {
        println!("{name}");
        reads(&place, vault);
    }
    // Also of a snapshot that was looked up before.
    for (vault, snapshot) in open.iter().zip(snapshots) {
        let target = tempfile::tempdir().unwrap();
        let got = vault.get_to(&snapshot, target.path(), &GetOptions::default()).unwrap();
        assert_eq!((got.failed, got.files), (vec![], 1));
    }
}

#[test]
fn a_reader_of_a_snapshot_that_is_removed_is_told_so_by_name() {
    let place = Place::new();
    let owner = place.init();
    let put = |turn: u64| {
        let content = Seed(turn).random(200_000);
        owner.put_reader("file", &mut &content[..], &PutOptions::default()).unwrap();
    };
    put(1);
    let vault = place.open_afresh("reader");
    let removed = newest(&vault);
    put(2);
    owner.prune(&last(1, false)).unwrap();
    // Without `now` it stays readable for a day.
    let mut out = Vec::new();
    vault.file(&removed, b"file").unwrap().read_range(0, u64::MAX, &mut out).unwrap();
    assert!(out == Seed(1).random(200_000));
    owner.prune(&last(1, true)).unwrap();
    let target = place.path("target");
    let name = |error: Error| error.info().name;
    let options = GetOptions::default();
    let got = vault.get_to(&removed, &target, &options).map_err(name);
    assert_eq!(got.unwrap_err(), "SnapshotRemoved");
    assert_eq!(vault.file(&removed, b"file").map_err(name).unwrap_err(), "SnapshotRemoved");
    let entry = vault.entries(&removed).unwrap().next().unwrap();
    assert_eq!(entry.map_err(name).unwrap_err(), "SnapshotRemoved");
    assert_eq!(vault.snapshot(Some(1)).map_err(name).unwrap_err(), "NoSnapshot");
    // Objects that are lost without a word of the owner's are still called lost.
    fs::remove_dir_all(place.path("vault/packs")).unwrap();
    let got = vault.file(&newest(&vault), b"file").map_err(name);
    assert_eq!(got.unwrap_err(), "ObjectMissing");
}

#[test]
fn a_reader_beside_a_change_of_the_main_key_is_told_so_by_name() {
    let place = Place::new();
    let owner = place.init();
    let content = Seed(1).random(200_000);
    owner.put_reader("file", &mut &content[..], &PutOptions::default()).unwrap();
    let vault = place.open_afresh("reader");
    let snapshot = newest(&vault);
    let rotated = owner.rotate(&SECRET, &place.options(), &Default::default()).unwrap().vault;
    // Data that the old key sealed is there until a prune has written it anew.
    vault.file(&snapshot, b"file").unwrap();
    rotated.prune(&last(9, true)).unwrap();
    let again = place.open_afresh("reader too");
    again.file(&newest(&again), b"file").unwrap();
    let refused = vault.file(&snapshot, b"file").map_err(|error| error.info().name);
    assert_eq!(refused.unwrap_err(), "KeyRotated");
}

/// A reader that acts when it is first read from.
struct Meanwhile<'a> {
    content: &'a [u8],
    act: Option<Box<dyn FnOnce() + 'a>>,
}

impl Read for Meanwhile<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.act.take().into_iter().for_each(|act| act());
        self.content.read(out)
    }
}

#[test]
fn a_put_that_relies_on_what_a_prune_condemned_meanwhile_is_refused_and_keeps_it_anew_then() {
    let place = Place::new();
    let owner = place.init();
    let (old, new) = (Seed(1).random(200_000), Seed(2).random(200_000));
    for content in [&old, &new] {
        owner.put_reader("file", &mut &content[..], &PutOptions::default()).unwrap();
    }
    let vault = place.open_afresh("other");
    let act = || drop(owner.prune(&last(1, false)).unwrap());
    let mut source = Meanwhile { content: &old, act: Some(Box::new(act)) };
    let refused = vault.put_reader("file", &mut source, &PutOptions::default());
    assert_eq!(refused.unwrap_err().info().name, "PruneRaced");
    let put = vault.put_reader("file", &mut &old[..], &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_bytes, old.len() as u64);
    owner.prune(&last(1, true)).unwrap();
    assert_eq!(vault.verify(true).unwrap().problems, []);
}

#[test]
fn a_handle_that_is_open_keeps_nothing_twice_that_another_has_put_since() {
    let place = Place::new();
    let vault = place.init();
    let content = Seed(1).random(200_000);
    let put = |vault: &Vault| -> PutReport {
        vault.put_reader("file", &mut &content[..], &PutOptions::default()).unwrap()
    };
    put(&place.open_afresh("other"));
    assert_eq!(put(&vault).counts.new_chunks, 0);
}

/// A vault in a server's memory that is set back to its beginning again and again.
struct Stage {
    place: Place,
    server: HostileS3,
    objects: BTreeMap<String, Vec<u8>>,
    slot: String,
}

impl Stage {
    /// Two snapshots of which a prune removes one, what an earlier one has condemned, and a
    /// writer's.
    fn new() -> Arc<Stage> {
        let (place, server) = (Place::new(), HostileS3::start());
        let objects = BTreeMap::new();
        let mut stage = Stage { place, server, objects, slot: String::new() };
        let owner = options(&stage.place, "owner");
        let vault =
            Vault::init(stage.store(), PASSPHRASE, CHEAP, VaultMetadata::Plain, &owner).unwrap();
        stage.slot = Host::of(&stage.place, &vault, "host").slot;
        let source = stage.place.source(|folder| {
            fs::write(folder.join("stays"), Seed(1).random(300_000)).unwrap();
        });
        for turn in 2..5 {
            fs::write(source.join("changes"), Seed(turn).random(700_000)).unwrap();
            let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default());
            put.unwrap();
            if turn == 3 {
                copy(&stage.place.path("owner"), &stage.place.path("then"));
                vault.prune(&last(1, false)).unwrap();
            }
        }
        // The newest link is a prune, which the next prune removes.
        vault.prune(&last(9, false)).unwrap();
        let dry = PruneOptions { dry_run: true, ..last(1, true) };
        assert_eq!(vault.prune(&dry).unwrap().removed, 1);
        stage.objects = stage.server.objects();
        Arc::new(stage)
    }

    /// Two snapshots of one file each, of which an earlier prune has removed the first: its pack is
    /// condemned, and the folder `again` has what is in it.
    fn of_condemned() -> Arc<Stage> {
        let (place, server) = (Place::new(), HostileS3::start());
        let mut stage = Stage { place, server, objects: BTreeMap::new(), slot: String::new() };
        let owner = options(&stage.place, "owner");
        let vault =
            Vault::init(stage.store(), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &owner).unwrap();
        stage.slot = Host::of(&stage.place, &vault, "host").slot;
        let (source, again) = (stage.place.path("source"), stage.place.path("again/source"));
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for (folder, turn) in [(&source, 2), (&again, 2), (&source, 3)] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("stays"), Seed(turn).random(100_000)).unwrap();
            for path in [&folder.join("stays"), folder] {
                fs::File::open(path).unwrap().set_modified(old).unwrap();
            }
            if *folder == source {
                let put = vault.put_paths(std::slice::from_ref(folder), &PutOptions::default());
                put.unwrap();
            }
            if turn == 2 {
                copy(&stage.place.path("owner"), &stage.place.path("then"));
            }
        }
        vault.prune(&last(1, false)).unwrap();
        stage.objects = stage.server.objects();
        assert_eq!(stage.server.keys("condemned/").len(), 1);
        Arc::new(stage)
    }

    fn store(&self) -> VaultStore {
        let environment = Server::environment(self.server.port, &self.place.path("home"));
        VaultStore::S3(
            S3Store::with_patience("s3://bucket/vault", environment, PATIENCE).unwrap().into(),
        )
    }

    fn open(&self, state: &str) -> Vault {
        Vault::open(self.store(), &SECRET, &options(&self.place, state)).unwrap()
    }

    /// Lets `other` come between before a request of `work`, each time another and from the same
    /// beginning: before every request with `SEALANE_EVERY=1`. In the end the vault is whole.
    fn at_each_request(
        self: &Arc<Stage>,
        other: impl Fn(&Stage) + Clone + Send + 'static,
        work: impl Fn(&Stage, &Vault),
    ) {
        let every = std::env::var("SEALANE_EVERY").map_or(6, |text| text.parse().unwrap());
        self.at_requests(every, other, work);
    }

    fn at_requests(
        self: &Arc<Stage>,
        every: usize,
        other: impl Fn(&Stage) + Clone + Send + 'static,
        work: impl Fn(&Stage, &Vault),
    ) {
        for requests in (0..).step_by(every) {
            self.server.set(self.objects.clone());
            // The newest link that the one has seen is one that goes.
            for (state, from) in [("one", "then"), ("other", "owner")] {
                let state = self.place.path(state);
                let _ = fs::remove_dir_all(&state);
                copy(&self.place.path(from), &state);
            }
            let _ = fs::remove_dir_all(self.place.path("fresh"));
            let (stage, other) = (Arc::clone(self), other.clone());
            self.server.after(requests, move || other(&stage));
            println!("after {requests} requests");
            work(self, &self.open("one"));
            let over = self.server.nothing_more();
            let vault = self.open("one");
            assert_eq!(vault.verify(false).unwrap().problems, [], "after {requests} requests");
            assert_eq!(vault.warnings(), [], "after {requests} requests");
            vault.prune(&last(9, true)).unwrap();
            if over {
                assert!(requests > 10);
                break;
            }
        }
    }
}

/// Removes a snapshot, an older prune, and packs.
fn prunes_now(stage: &Stage) {
    stage.open("other").prune(&last(1, true)).unwrap();
}

#[test]
fn a_prune_before_any_request_of_a_verification_is_no_problem() {
    Stage::new().at_each_request(prunes_now, |_, vault| {
        assert_eq!(vault.verify(true).unwrap().problems, []);
    });
}

#[test]
fn a_prune_before_any_request_of_a_reader_takes_nothing_from_it_that_stays() {
    Stage::new().at_each_request(prunes_now, |stage, vault| {
        for (_, reads) in &READERS[..5] {
            reads(&stage.place, vault);
        }
        assert_eq!(vault.warnings(), []);
    });
}

#[test]
fn a_prune_before_any_request_of_a_reader_of_what_goes_is_named() {
    Stage::new().at_each_request(prunes_now, |stage, vault| {
        let target = tempfile::tempdir_in(stage.place.folder.path()).unwrap();
        let got = vault
            .snapshot(Some(2))
            .and_then(|snapshot| vault.get_to(&snapshot, target.path(), &GetOptions::default()));
        match got {
            Ok(got) => assert_eq!((got.failed, got.files), (vec![], 2)),
            Err(Error::NoSnapshot(_) | Error::Removed(2)) => {}
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn a_prune_before_any_request_of_a_prune_leaves_the_chain_whole() {
    Stage::new().at_each_request(prunes_now, |_, vault| {
        vault.prune(&last(1, false)).unwrap();
        assert_eq!(vault.snapshots().unwrap().len(), 1);
    });
}

#[test]
fn a_prune_before_any_request_of_a_put_loses_nothing() {
    let prunes = |stage: &Stage| {
        let other = stage.open("other");
        let host = Some("another host".to_owned());
        let options = PutOptions { host, ..PutOptions::default() };
        other.put_paths(&[stage.place.path("source")], &options).unwrap();
        other.prune(&last(1, false)).unwrap();
    };
    Stage::new().at_each_request(prunes, |stage, vault| {
        let source = [stage.place.path("source")];
        let put = match vault.put_paths(&source, &PutOptions::default()) {
            Err(Error::Pruned) => vault.put_paths(&source, &PutOptions::default()),
            other => other,
        };
        let number = put.unwrap().snapshot;
        let has = |vault: &Vault| vault.snapshots().unwrap().iter().any(|s| s.number == number);
        assert!(has(vault) && has(&stage.open("fresh")));
        READERS[0].1(&stage.place, &stage.open("fresh"));
    });
}

#[test]
fn a_prune_before_any_request_of_the_removal_of_a_writer_leaves_the_chain_whole() {
    Stage::new().at_each_request(prunes_now, |stage, vault| {
        vault.remove_slot(&stage.slot).unwrap();
    });
}

/// The pack of what was removed is condemned, and a put of the same makes the same pack.
#[test]
fn a_put_of_what_is_condemned_before_any_request_of_a_prune_loses_nothing() {
    let puts = |stage: &Stage| {
        let again = [stage.place.path("again/source")];
        stage.open("other").put_paths(&again, &PutOptions::default()).unwrap();
    };
    Stage::of_condemned().at_requests(1, puts, |_, vault| {
        vault.prune(&last(9, true)).unwrap();
    });
}

/// If a put says that it kept a snapshot, that snapshot is believed.
#[test]
fn a_writer_that_is_removed_before_any_request_of_its_put_is_told_so() {
    let place = Place::new();
    let server = HostileS3::start();
    let store = {
        let (port, home) = (server.port, place.path("home"));
        move || {
            let environment = Server::environment(port, &home);
            let bucket = S3Store::with_patience("s3://bucket/vault", environment, PATIENCE);
            VaultStore::S3(bucket.unwrap().into())
        }
    };
    let owner = options(&place, "owner");
    let vault = Vault::init(store(), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &owner).unwrap();
    let host = Host::of(&place, &vault, "host");
    let (objects, slot) = (server.objects(), host.slot.clone());
    copy(&place.path("owner"), &place.path("then"));
    let host_options = options(&place, "host");
    let (mut refused, mut kept) = (0, 0);
    for requests in 0.. {
        server.set(objects.clone());
        for state in ["owner", "host", "fresh"] {
            let _ = fs::remove_dir_all(place.path(state));
        }
        copy(&place.path("then"), &place.path("owner"));
        let (store, slot, owner) = (store.clone(), slot.clone(), owner.clone());
        let act = {
            let store = store.clone();
            move || Vault::open(store(), &SECRET, &owner).unwrap().remove_slot(&slot).unwrap()
        };
        server.after(requests, act);
        let secret = SlotSecret::Writer(&host.key);
        let put = Vault::open(store(), &secret, &host_options).and_then(|writer| {
            writer.put_reader("file", &mut &b"content"[..], &PutOptions::default())
        });
        let over = server.nothing_more();
        match put {
            Ok(put) => {
                kept += 1;
                let vault = Vault::open(store(), &SECRET, &options(&place, "fresh")).unwrap();
                let snapshot = vault.snapshot(Some(put.snapshot));
                assert!(snapshot.is_ok(), "after {requests} requests: {snapshot:?}");
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.info().name, "WriterEnded", "after {requests} requests");
            }
        }
        if over {
            break;
        }
    }
    assert!(refused > 0 && kept > 0, "{refused} {kept}");
}

/// A link that comes to the chain while a prune works may need anything that is there.
#[test]
fn a_prune_that_sees_the_chain_grow_leaves_the_packs_that_are_due_to_the_next() {
    let waited = Arc::new(AtomicU64::new(0));
    let puts = |stage: &Stage| {
        let put = stage.open("other").put_reader("other", &mut &b"other"[..], &Default::default());
        put.unwrap();
    };
    Stage::of_condemned().at_each_request(puts, |stage, vault| {
        let report = vault.prune(&last(9, true)).unwrap();
        let left = stage.server.keys("condemned/").len() as u64;
        let removed = u64::from(left == 0);
        assert_eq!((report.waiting, report.removed_packs), (left, removed), "{report:?}");
        waited.fetch_add(left, Ordering::Relaxed);
    });
    assert!(waited.load(Ordering::Relaxed) > 0);
}
