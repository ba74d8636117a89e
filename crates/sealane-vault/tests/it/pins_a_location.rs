//! A place holds the vault that it held when it was first used: a store that puts another there,
//! made for the victim's public key, is refused by name and reads nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::s3::Server;
use crate::shared::{CHEAP, Host, PASSPHRASE, Place};
use sealane_group::Identity;
use sealane_vault::{
    Error, OpenOptions, PutOptions, S3Store, SlotSecret, Vault, VaultMetadata, VaultStore,
};

/// A vault that somebody opens by identity, and another that the store made for that identity and
/// has put in its place.
fn exchanged(place: &Place, victim: &Identity) {
    let own = place.init();
    own.add_identity(victim.public(), "victim").unwrap();
    open(place, victim, None).unwrap();
    let store = VaultStore::open(place.path("evil").to_str().unwrap()).unwrap();
    let options = OpenOptions { state: Some(place.path("thief")), ..OpenOptions::default() };
    let evil = Vault::init(store, b"of the store", CHEAP, VaultMetadata::Sealed, &options).unwrap();
    evil.add_identity(victim.public(), "victim").unwrap();
    fs::rename(place.path("vault"), place.path("held")).unwrap();
    fs::rename(place.path("evil"), place.path("vault")).unwrap();
}

fn open(place: &Place, identity: &Identity, expect: Option<String>) -> Result<Vault, Error> {
    let options = OpenOptions { expect, ..place.options() };
    Vault::open(place.store(), &SlotSecret::Identity(identity), &options)
}

#[test]
fn a_vault_that_was_exchanged_is_refused_by_name() {
    let (place, victim) = (Place::new(), Identity::generate("victim").unwrap());
    exchanged(&place, &victim);
    let refused = open(&place, &victim, None).unwrap_err();
    assert_eq!(refused.info().name, "VaultExchanged");
    assert!(refused.to_string().contains(place.path("vault").to_str().unwrap()), "{refused}");
    assert_eq!(place.store().list("packs/").unwrap(), []);
    // A recovery on the same machine knows it, too.
    let alone = OpenOptions { objects_alone: true, ..place.options() };
    let alone = Vault::open(place.store(), &SlotSecret::Identity(&victim), &alone);
    assert_eq!(alone.unwrap_err().info().name, "VaultExchanged");
    // And so it is by another way to write the same place.
    let other = format!("{}/../vault", place.path("vault").display());
    let store = VaultStore::open(&other).unwrap();
    let refused = Vault::open(store, &SlotSecret::Identity(&victim), &place.options());
    assert_eq!(refused.unwrap_err().info().name, "VaultExchanged");
    // The true one is taken as before.
    fs::rename(place.path("vault"), place.path("evil")).unwrap();
    fs::rename(place.path("held"), place.path("vault")).unwrap();
    assert!(open(&place, &victim, None).is_ok());
}

#[test]
fn a_machine_that_remembers_nothing_is_told_what_to_expect() {
    let (place, victim) = (Place::new(), Identity::generate("victim").unwrap());
    exchanged(&place, &victim);
    let held = VaultStore::open(place.path("held").to_str().unwrap()).unwrap();
    let own = Vault::open(held, &SlotSecret::Passphrase(PASSPHRASE), &place.options()).unwrap();
    fs::remove_dir_all(place.path("state")).unwrap();
    let refused = open(&place, &victim, Some(own.anchor())).unwrap_err();
    assert_eq!(refused.info().name, "VaultExchanged");
    // A refused vault was not remembered. Who says nothing trusts the first use.
    let evil = open(&place, &victim, None).unwrap();
    assert_ne!(evil.anchor(), own.anchor());
    let refused = open(&place, &victim, Some("nonsense".to_owned())).unwrap_err();
    assert_eq!(refused.info().name, "ObjectMalformed");
}

#[test]
fn whoever_replaced_the_vault_says_so_once() {
    let (place, victim) = (Place::new(), Identity::generate("victim").unwrap());
    exchanged(&place, &victim);
    let fresh = OpenOptions { state: Some(place.path("fresh")), ..OpenOptions::default() };
    let anchor =
        Vault::open(place.store(), &SlotSecret::Identity(&victim), &fresh).unwrap().anchor();
    assert!(open(&place, &victim, None).is_err());
    assert!(open(&place, &victim, Some(anchor)).is_ok());
    assert!(open(&place, &victim, None).is_ok());
}

#[test]
fn a_place_that_is_empty_is_not_taken_for_a_new_one() {
    let place = Place::new();
    let first = place.init();
    let anchor = first.anchor();
    fs::rename(place.path("vault"), place.path("held")).unwrap();
    let init = |replace: bool| {
        let options = OpenOptions { replace, ..place.options() };
        Vault::init(place.store(), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &options)
    };
    let alone = OpenOptions { objects_alone: true, ..place.options() };
    let recovers = Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &alone);
    for refused in [place.try_open(), recovers, init(false)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.info().name, "VaultGone");
        assert!(refused.to_string().contains(&anchor), "{refused}");
        assert!(refused.info().hint.contains("mounted"));
    }
    // Nothing was written, and the vault is taken again when it is back.
    assert!(!place.path("vault/config").exists());
    let _ = fs::remove_dir_all(place.path("vault"));
    fs::rename(place.path("held"), place.path("vault")).unwrap();
    assert_eq!(place.open().anchor(), anchor);
    // A config that is lost is another matter.
    fs::remove_file(place.path("vault/config")).unwrap();
    assert_eq!(place.try_open().unwrap_err().info().name, "NoVault");
    // If the user says that the vault is given up, a new one is made.
    fs::remove_dir_all(place.path("vault")).unwrap();
    assert_ne!(init(true).unwrap().anchor(), anchor);
    assert!(place.try_open().is_ok());
}

/// A link leads to the disk. Where the disk is not mounted, its folder is empty, or the link leads
/// nowhere.
#[test]
fn a_place_behind_a_link_keeps_its_name_while_its_disk_is_not_mounted() {
    for is_left in [true, false] {
        let place = Place::new();
        let (disk, link) = (place.path("disk"), place.path("link"));
        fs::create_dir(&disk).unwrap();
        std::os::unix::fs::symlink("disk", &link).unwrap();
        let store = || VaultStore::open(link.join("in/vault").to_str().unwrap()).unwrap();
        let options = place.options();
        let anchor = Vault::init(store(), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &options)
            .unwrap()
            .anchor();
        fs::rename(&disk, place.path("held")).unwrap();
        if is_left {
            fs::create_dir(&disk).unwrap();
        }
        let direct = VaultStore::open(disk.join("in/vault").to_str().unwrap()).unwrap();
        for store in [store(), direct] {
            let secret = SlotSecret::Passphrase(PASSPHRASE);
            let refused = Vault::open(store, &secret, &options).unwrap_err();
            assert_eq!(refused.info().name, "VaultGone", "{is_left}");
            assert!(refused.to_string().contains(&anchor), "{refused}");
        }
        let made = Vault::init(store(), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &options);
        assert_eq!(made.unwrap_err().info().name, "VaultGone", "{is_left}");
    }
}

#[test]
fn the_first_use_of_a_place_is_told() {
    let place = Place::new();
    let owner = place.init();
    assert!(!place.open().is_first_use());
    let state = |state: &str, expect: Option<String>| {
        let state = Some(place.path(state));
        let options = OpenOptions { state, expect, ..OpenOptions::default() };
        Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap()
    };
    assert!(state("other", None).is_first_use());
    assert!(!state("other", None).is_first_use());
    assert!(!state("third", Some(owner.anchor())).is_first_use());
}

/// The same vault id with an owner of the store's own.
#[test]
fn another_owner_under_the_same_id_is_refused_anywhere() {
    let (place, victim) = (Place::new(), Identity::generate("victim").unwrap());
    exchanged(&place, &victim);
    let evil = fs::read(place.path("vault/config")).unwrap();
    let id = evil[8..24].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let owner = place.path("state").join(id);
    fs::create_dir_all(&owner).unwrap();
    let (_, known) =
        place.path("state").read_dir().unwrap().fold((0, None), |(n, known), entry| {
            let file = entry.unwrap().path().join("owner");
            (n + 1, known.or_else(|| fs::read(file).ok()))
        });
    fs::write(owner.join("owner"), known.unwrap()).unwrap();
    fs::remove_dir_all(place.path("state/places")).unwrap();
    assert_eq!(open(&place, &victim, None).unwrap_err().info().name, "VaultExchanged");
}

#[test]
fn a_vault_from_before_is_signed_at_the_first_open_with_the_main_key() {
    let place = Place::new();
    let owner = place.init();
    let key = owner.add_writer("host").unwrap();
    drop(owner);
    fs::remove_dir_all(place.path("vault/roster")).unwrap();
    fs::remove_dir_all(place.path("state")).unwrap();
    // A writer cannot sign it.
    let options = OpenOptions { state: Some(place.path("host")), ..OpenOptions::default() };
    let writer = Vault::open(place.store(), &SlotSecret::Writer(&key), &options).unwrap();
    let warnings = writer.warnings();
    assert!(warnings.len() == 1 && warnings[0].reason.starts_with("Unsigned"), "{warnings:?}");
    assert_eq!(place.store().list("roster/").unwrap(), []);
    assert_eq!(place.open().warnings(), []);
    assert_eq!(place.store().list("roster/").unwrap().len(), 1);
    assert!(place.open().slots().unwrap().iter().all(|slot| slot.signed));
    let writer = Vault::open(place.store(), &SlotSecret::Writer(&key), &options).unwrap();
    assert_eq!(writer.warnings(), []);
    writer.put_reader("a", &mut &b"a"[..], &PutOptions::default()).unwrap();
}

/// It tells names, and neither what is in the files nor what opens the vault.
#[test]
fn the_state_folder_opens_nothing() {
    let place = Place::new();
    let content = b"the content of a file that nobody else may read";
    let source = place.source(|folder| fs::write(folder.join("named"), content).unwrap());
    let owner = place.init();
    let code = owner.add_recovery("paper").unwrap();
    let host = Host::of(&place, &owner, "host");
    // A file that changed just now is not remembered.
    std::thread::sleep(Duration::from_millis(100));
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    host.open(&place).put_paths(&[source], &PutOptions::default()).unwrap();
    let code = code.expose().to_string();
    let key = host.key.expose().to_string();
    let hidden = [&content[..], PASSPHRASE, code.as_bytes(), key.as_bytes()];
    let mut named = 0;
    for state in ["state", "host"] {
        for file in files(&place.path(state)) {
            let bytes = fs::read(&file).unwrap();
            let has = |what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
            assert!(!hidden.iter().any(|what| has(what)), "{}", file.display());
            named += usize::from(has(b"named"));
        }
    }
    // The search finds what is there.
    assert!(named > 0);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Two servers may each have a bucket of that name.
#[test]
#[ignore = "lab: needs Python packages"]
fn a_bucket_of_the_same_name_at_another_server_is_another_place() {
    let place = Place::new();
    let (one, two) = (Server::start(), Server::start());
    let home = place.path("home");
    let bucket = |server: &Server| {
        let environment = Server::environment(server.port, &home);
        VaultStore::S3(S3Store::with_environment("s3://bucket/vault", environment).unwrap().into())
    };
    let init = |server: &Server| {
        let options = place.options();
        Vault::init(bucket(server), PASSPHRASE, CHEAP, VaultMetadata::Sealed, &options).unwrap()
    };
    let (first, second) = (init(&one), init(&two));
    assert_ne!(first.id(), second.id());
    let open =
        |server| Vault::open(bucket(server), &SlotSecret::Passphrase(PASSPHRASE), &place.options());
    assert_eq!(open(&one).unwrap().id(), first.id());
    assert_eq!(open(&two).unwrap().id(), second.id());
    // A place that an earlier version remembers without its server counts where nothing else is
    // remembered.
    let places: Vec<_> = files(&place.path("state/places"));
    assert_eq!(places.len(), 2);
    let hash = blake3::hash(b"s3://bucket/vault").to_hex();
    let (kept, text) = (&places[0], fs::read(&places[0]).unwrap());
    fs::write(kept.with_file_name(&hash[..32]), &text).unwrap();
    places.iter().for_each(|place| fs::remove_file(place).unwrap());
    let names = [open(&one), open(&two)].map(|opened| opened.err().map(|error| error.info().name));
    assert_eq!(names.iter().flatten().collect::<Vec<_>>(), [&"VaultExchanged"]);
}
