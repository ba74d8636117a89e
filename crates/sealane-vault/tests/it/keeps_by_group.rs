//! A prune counts within one signer, host and set of paths, and says of each snapshot why it stays
//! or goes; and where no number is given, nobody else's snapshot is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use crate::shared::{Place, Seed};
use sealane_vault::{
    Error, GetOptions, OpenOptions, PruneOptions, PutOptions, RetentionGroupBy, RetentionRules,
    SlotSecret, SnapshotSelector, Vault, VaultStore, WriterKey,
};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
/// 2026-11-01, some hours before noon.
const BEGIN_NS: i64 = 20_758 * DAY_NS + DAY_NS / 3;

/// The options that an operator with restic habits types.
fn usual() -> RetentionRules {
    RetentionRules { daily: 7, weekly: 4, monthly: 12, ..RetentionRules::default() }
}

fn prune(keep: RetentionRules) -> PruneOptions {
    PruneOptions { keep, now: true, ..PruneOptions::default() }
}

fn on(host: &str, day: i64) -> PutOptions {
    let time_ns = Some(BEGIN_NS + day * DAY_NS);
    PutOptions { host: Some(host.to_owned()), time_ns, ..PutOptions::default() }
}

fn put(vault: &Vault, name: &str, options: &PutOptions) -> u64 {
    vault.put_reader(name, &mut name.as_bytes(), options).unwrap().snapshot
}

fn numbers(vault: &Vault) -> Vec<u64> {
    vault.snapshots().unwrap().iter().map(|snapshot| snapshot.number).collect()
}

fn writer(place: &Place, owner: &Vault, state: &str) -> Vault {
    let key: WriterKey = owner.add_writer(state).unwrap().expose().parse().unwrap();
    let options = OpenOptions { state: Some(place.path(state)), ..OpenOptions::default() };
    Vault::open(place.store(), &SlotSecret::Writer(&key), &options).unwrap()
}

fn whose(host: &str, signer: Option<&str>) -> SnapshotSelector {
    let (host, signer) = (Some(host.to_owned()), signer.map(str::to_owned));
    SnapshotSelector { host, signer, ..SnapshotSelector::default() }
}

#[test]
fn folders_do_not_use_up_what_is_kept_of_each_other() {
    let place = Place::new();
    let vault = place.init();
    for name in ["docs", "photos"] {
        let folder = place.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), name).unwrap();
        vault.put_paths(&[folder], &PutOptions::default()).unwrap();
    }
    let report = vault.prune(&prune(RetentionRules { last: 1, ..usual() })).unwrap();
    assert_eq!((report.kept, report.removed), (2, 0), "{report:?}");
    for (number, name) in [(1, "docs"), (2, "photos")] {
        let target = place.path(&format!("back {name}"));
        let snapshot = vault.snapshot(Some(number)).unwrap();
        vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
        assert_eq!(fs::read_to_string(target.join(name).join("file")).unwrap(), name);
    }
    // Another way to the same folder is the same folder.
    let (docs, link) = (place.path("docs"), place.path("link"));
    std::os::unix::fs::symlink(place.path("."), &link).unwrap();
    let before = report.groups.len();
    for way in [link.join("docs"), docs.join("."), place.path("photos/../docs")] {
        vault.put_paths(&[way], &PutOptions::default()).unwrap();
    }
    assert_eq!(vault.retention(&prune(usual())).unwrap().len(), before);
}

#[test]
fn hosts_do_not_use_up_what_is_kept_of_each_other() {
    let place = Place::new();
    let vault = place.init();
    for day in 0..10 {
        put(&vault, "docs", &on("laptop", day));
        put(&vault, "docs", &on("server", day));
    }
    let report =
        vault.prune(&prune(RetentionRules { daily: 7, ..RetentionRules::default() })).unwrap();
    assert_eq!((report.kept, report.removed), (14, 6));
    assert_eq!(numbers(&vault), (7..=20).collect::<Vec<_>>());
    // If a user asks for one group for all, the prune uses one.
    let group_by = RetentionGroupBy { signer: false, host: false, paths: false, tags: false };
    let keep = RetentionRules { daily: 7, ..RetentionRules::default() };
    let together = PruneOptions { group_by, ..prune(keep) };
    let verdicts = vault.retention(&together).unwrap().remove(0).verdicts;
    assert_eq!(verdicts.iter().filter(|verdict| verdict.stays).count(), 7);
}

#[test]
fn a_writer_flushes_nothing_of_the_owner() {
    let place = Place::new();
    let owner = place.init();
    let own: Vec<u64> = (0..3).map(|day| put(&owner, "docs", &on("laptop", day))).collect();
    let writer = writer(&place, &owner, "field");
    // It names the owner's host and path, and days to come.
    for day in 10..17 {
        put(&writer, "docs", &on("laptop", day));
    }
    for keep in [
        RetentionRules { last: 7, ..RetentionRules::default() },
        RetentionRules { daily: 7, ..RetentionRules::default() },
    ] {
        assert_eq!(place.open().prune(&prune(keep)).unwrap().removed, 0);
    }
    let left = numbers(&place.open());
    assert!(own.iter().all(|number| left.contains(number)), "{left:?}");
}

#[test]
fn tags_years_and_times_keep_what_they_name() {
    let place = Place::new();
    let vault = place.init();
    let tagged = PutOptions { tags: vec!["move".into(), "a".into()], ..on("laptop", -900) };
    put(&vault, "docs", &tagged);
    for day in [-800, -400, -40, -5, -1, 0] {
        put(&vault, "docs", &on("laptop", day));
    }
    let kept = |keep: RetentionRules| -> BTreeSet<u64> {
        let groups = vault.retention(&prune(keep)).unwrap();
        let verdicts = groups.iter().flat_map(|group| &group.verdicts);
        assert!(verdicts.clone().all(|verdict| !verdict.reasons.is_empty()));
        verdicts.filter(|verdict| verdict.stays).map(|verdict| verdict.snapshot).collect()
    };
    assert_eq!(vault.snapshots().unwrap()[0].tags, ["a", "move"]);
    assert_eq!(
        kept(RetentionRules { tags: vec!["move".into()], ..RetentionRules::default() }),
        [1, 7].into()
    );
    assert_eq!(kept(RetentionRules { yearly: 2, ..RetentionRules::default() }), [3, 7].into());
    let week = Some(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(
        kept(RetentionRules { within: week, ..RetentionRules::default() }),
        [5, 6, 7].into()
    );
    assert_eq!(kept(RetentionRules { hourly: 2, ..RetentionRules::default() }), [6, 7].into());
    let long = PutOptions { tags: vec!["x".repeat(65)], ..PutOptions::default() };
    let refused = vault.put_reader("docs", &mut &b""[..], &long).unwrap_err();
    assert_eq!(refused.info().name, "ObjectTooLarge");
}

#[test]
fn nothing_goes_that_was_not_agreed_to() {
    let place = Place::new();
    let vault = place.init();
    for day in 0..3 {
        put(&vault, "docs", &on("laptop", day));
    }
    let options = prune(RetentionRules { last: 1, ..RetentionRules::default() });
    // Between the list and the answer, somebody puts.
    put(&vault, "docs", &on("laptop", 3));
    let approved = Some(BTreeSet::from([1, 2]));
    let report = vault.prune(&PruneOptions { approved, ..options }).unwrap();
    assert_eq!((report.kept, report.removed), (2, 2));
    assert_eq!(numbers(&vault), [3, 4]);
}

#[test]
fn without_a_number_only_ones_own_newest_is_taken() {
    let place = Place::new();
    let owner = place.init();
    let this = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert_eq!(
        owner.newest(&SnapshotSelector::default(), &[]).unwrap_err().info().name,
        "NoSnapshot"
    );
    put(&owner, "docs", &on("server", 0));
    let none = owner.newest(&SnapshotSelector::default(), &[]).unwrap_err();
    assert!(matches!(&none, Error::NoOwnSnapshot { .. }), "{none}");
    assert!(none.to_string().contains("1 of `server`"), "{none}");
    let writer = writer(&place, &owner, "field");
    put(&writer, "docs", &on(&this, 1));
    let none = place.open().newest(&SnapshotSelector::default(), &[]).unwrap_err().to_string();
    assert!(none.contains("by writer") && none.contains("1 of `server`"), "{none}");
    put(&owner, "docs", &PutOptions::default());
    put(&owner, "photos", &PutOptions::default());
    put(&owner, "docs", &on("server", 3));
    put(&writer, "docs", &on(&this, 4));
    let vault = place.open();
    let newest = |whose: &SnapshotSelector, paths: &[&str]| {
        let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        vault.newest(whose, &paths).map(|snapshot| snapshot.number)
    };
    assert_eq!(newest(&SnapshotSelector::default(), &[]).unwrap(), 4);
    assert_eq!(newest(&SnapshotSelector::default(), &["docs"]).unwrap(), 3);
    assert_eq!(newest(&whose("server", None), &[]).unwrap(), 5);
    let slot = vault.snapshot(Some(6)).unwrap().signer.unwrap();
    assert_eq!(newest(&whose(&this, Some(&slot)), &[]).unwrap(), 6);
    assert_eq!(
        newest(&SnapshotSelector { anyone: true, ..SnapshotSelector::default() }, &[]).unwrap(),
        6
    );
    let none = newest(&SnapshotSelector::default(), &["docs", "nothing"]).unwrap_err();
    assert!(none.info().name == "NoEntry" && none.to_string().contains("nothing"), "{none}");
    // A search through snapshots looks through one's own.
    let find = |pattern: &str, whose: &SnapshotSelector| {
        let mut found = Vec::new();
        vault.find(pattern, whose, &mut |one| {
            found.push(one.snapshot);
            Ok(())
        })?;
        Ok::<_, Error>(found)
    };
    assert_eq!(find("docs", &SnapshotSelector::default()).unwrap(), [3]);
    assert_eq!(find("docs", &whose("server", None)).unwrap(), [5, 1]);
    assert_eq!(find("*.pdf", &SnapshotSelector::default()).unwrap_err().info().name, "NoMatch");
}

#[test]
fn a_vault_of_version_1_is_grouped_by_the_names_in_it() {
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/vault");
    let told = fs::read(vectors.join("vault.json")).unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    let place = Place::new();
    let objects = VaultStore::open(vectors.join("store").to_str().unwrap()).unwrap();
    for object in objects.list("").unwrap() {
        let path = place.path("vault").join(&object.key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, objects.get(&object.key, usize::MAX).unwrap()).unwrap();
    }
    let passphrase = told["passphrase"].as_str().unwrap().as_bytes();
    let vault =
        Vault::open(place.store(), &SlotSecret::Passphrase(passphrase), &place.options()).unwrap();
    let roots: BTreeMap<u64, BTreeSet<Vec<u8>>> = vault
        .snapshots()
        .unwrap()
        .iter()
        .map(|snapshot| {
            assert_eq!((snapshot.paths.len(), snapshot.tags.len()), (0, 0));
            let entries = vault.entries(snapshot).unwrap().map(Result::unwrap);
            let root = |path: Vec<u8>| path.split(|byte| *byte == b'/').next().unwrap().to_vec();
            (snapshot.number, entries.map(|entry| root(entry.path)).collect())
        })
        .collect();
    let groups =
        vault.retention(&prune(RetentionRules { last: 1, ..RetentionRules::default() })).unwrap();
    // The owner and a writer have put the same folder.
    assert_eq!(groups.len(), 2);
    for group in &groups {
        let paths: BTreeSet<Vec<u8>> = group.group.paths.clone().unwrap().into_iter().collect();
        for verdict in &group.verdicts {
            assert_eq!(roots[&verdict.snapshot], paths);
        }
    }
}

/// Random histories, kept for real: what a dry run says is what happens, no rule keeps less of a
/// group than it says, and what stays is whole.
#[test]
fn a_dry_run_says_what_the_prune_does() {
    for seed in 0..12 {
        let mut random = Seed(1000 + seed);
        let mut below = |bound: u64| random.next() % bound;
        let place = Place::new();
        let owner = place.init();
        let signers = [place.open(), writer(&place, &owner, "field")];
        for _ in 0..4 + below(10) {
            // Days stand still and go back, too.
            let day = below(60) as i64 - 30;
            let mut options = on(["laptop", "server"][below(2) as usize], day);
            if below(3) == 0 {
                options.tags = vec!["keep".to_owned()];
            }
            put(&signers[below(2) as usize], ["docs", "photos"][below(2) as usize], &options);
        }
        let keep = RetentionRules {
            last: below(3) as usize,
            daily: below(4) as usize,
            weekly: below(3) as usize,
            monthly: below(2) as usize,
            tags: if below(2) == 0 { vec!["keep".to_owned()] } else { Vec::new() },
            ..RetentionRules::default()
        };
        let options = prune(keep.clone());
        let vault = place.open();
        let before = place.objects();
        let dry = PruneOptions { dry_run: true, ..options.clone() };
        let dry = vault.prune(&dry).unwrap();
        assert!(place.objects() == before, "a dry run wrote");
        let report = vault.prune(&options).unwrap();
        assert_eq!(dry.groups, report.groups, "seed {seed}");
        assert_eq!((dry.kept, dry.removed), (report.kept, report.removed));
        let verdicts = dry.groups.iter().flat_map(|group| &group.verdicts);
        let stays: Vec<_> = verdicts.filter(|one| one.stays).map(|one| one.snapshot).collect();
        let stays: BTreeSet<u64> = stays.into_iter().collect();
        assert_eq!(numbers(&place.open()), stays.into_iter().collect::<Vec<_>>(), "seed {seed}");
        for group in &dry.groups {
            let kept = group.verdicts.iter().filter(|verdict| verdict.stays).count();
            assert!(group.verdicts[0].stays && kept >= keep.last.min(group.verdicts.len()));
        }
        assert!(place.open().verify(true).unwrap().problems.is_empty(), "seed {seed}");
        assert_eq!(place.open().prune(&options).unwrap().removed, 0, "seed {seed}");
    }
}

#[test]
fn what_a_lost_page_named_is_not_said_to_be_no_entry() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"content").unwrap());
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let wanted = vec![b"source/file".to_vec()];
    for pack in place.store().list("packs/").unwrap() {
        place.store().delete(&pack.key).unwrap();
    }
    let vault = place.open();
    let newest = vault.newest(&SnapshotSelector::default(), &wanted).unwrap();
    for dry_run in [true, false] {
        let options = GetOptions { paths: wanted.clone(), dry_run, ..GetOptions::default() };
        let report = vault.get_to(&newest, &place.path("back"), &options).unwrap();
        let failed = format!("{:?}", report.failed);
        assert!(failed.contains("page") && failed.contains("SL-VAULT-03"), "{failed}");
    }
    // The content of the page is unknown, and the snapshot counts as a group of its own.
    let groups =
        vault.retention(&prune(RetentionRules { last: 1, ..RetentionRules::default() })).unwrap();
    assert_eq!(groups.len(), 1);
}
