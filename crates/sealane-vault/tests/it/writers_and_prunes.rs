//! The rights of owner and writers in a vault, and the objects that a prune leaves.

use std::fs;

use crate::shared::{CHEAP, PASSPHRASE, Place, assert_same, mixed_files};
use sealane_vault::{
    GetOptions, OpenOptions, PruneOptions, PutOptions, RetentionRules, SlotSecret, Vault, WriterKey,
};

#[test]
fn a_writer_adds_and_cannot_read() {
    let place = Place::new();
    let source = place.source(mixed_files);
    let owner = place.init();
    let key: WriterKey = owner.add_writer("field host").unwrap().expose().parse().unwrap();
    let options = OpenOptions { state: Some(place.path("host")), ..OpenOptions::default() };
    let writer = || Vault::open(place.store(), &SlotSecret::Writer(&key), &options).unwrap();
    let first = writer().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(first.counts.files, 263);
    // The writer knows by its own memory which chunks it has kept.
    let again = writer().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(again.counts.new_chunks, 0);
    let host = writer();
    let name = |error: sealane_vault::Error| error.info().name;
    assert_eq!(host.snapshots().map_err(name).unwrap_err(), "WriterCannot");
    assert_eq!(host.verify(false).map_err(name).unwrap_err(), "WriterCannot");
    assert_eq!(host.add_recovery("x").map_err(name).unwrap_err(), "WriterCannot");
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let prune = PruneOptions { keep, ..PruneOptions::default() };
    assert_eq!(host.prune(&prune).map_err(name).unwrap_err(), "WriterCannot");

    let owner = place.open();
    let snapshot = owner.snapshot(None).unwrap();
    assert!(snapshot.by_writer);
    let target = place.path("target");
    let got = owner.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_eq!(got.failed, []);
    assert_same(&source, &target.join("source"));
    // The restore has opened every chunk, so the owner need not keep the data again.
    let put = owner.put_paths(&[source], &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_chunks, 0);
    assert!(owner.verify(true).unwrap().problems.is_empty());
    // The snapshots of a writer stay when it is removed.
    let slot = owner.slots().unwrap().into_iter().find(|slot| slot.label.is_some()).unwrap();
    assert_eq!(slot.label.as_deref(), Some("field host"));
    owner.remove_slot(&slot.id).unwrap();
    assert_eq!(owner.verify(false).unwrap().problems, []);
}

#[test]
fn slots_open_the_same_vault_and_the_last_stays() {
    let place = Place::new();
    let vault = place.init();
    let identity = sealane_group::Identity::generate("anna").unwrap();
    vault.add_identity(identity.public(), "anna").unwrap();
    let second = vault.add_passphrase(b"another", CHEAP, "second").unwrap();
    let open = |secret: &SlotSecret<'_>| Vault::open(place.store(), secret, &place.options());
    assert!(open(&SlotSecret::Identity(&identity)).is_ok());
    assert!(open(&SlotSecret::Passphrase(b"another")).is_ok());
    vault.remove_slot(&second).unwrap();
    assert!(open(&SlotSecret::Passphrase(b"another")).is_err());
    assert!(open(&SlotSecret::Passphrase(PASSPHRASE)).is_ok());
    let slots = vault.slots().unwrap();
    assert_eq!(slots.len(), 2);
    vault.remove_slot(&slots[0].id).unwrap();
    let last = vault.remove_slot(&slots[1].id).unwrap_err();
    assert_eq!(last.info().name, "LastSlot");
}

#[test]
fn a_prune_keeps_what_is_needed_and_removes_the_rest_in_two_steps() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("stays"), b"stays").unwrap());
    let vault = place.init();
    for round in 0..4_u64 {
        fs::write(source.join("changes"), crate::shared::Seed(round).random(1 << 20)).unwrap();
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    }
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let dry = PruneOptions { keep: keep.clone(), dry_run: true, ..PruneOptions::default() };
    let before = place.objects();
    let dry = vault.prune(&dry).unwrap();
    assert_eq!((dry.kept, dry.removed), (1, 3));
    assert!(place.objects() == before);

    let report = vault.prune(&PruneOptions { keep, ..PruneOptions::default() }).unwrap();
    assert_eq!((report.removed, report.removed_packs), (3, 0));
    // A prune does exactly what its dry run tells. Packs that are written anew are condemned, too.
    let told = (dry.repacked, dry.condemned + dry.repacked);
    assert_eq!(told, (report.repacked, report.condemned), "{dry:?} {report:?}");
    assert!(report.condemned >= 2, "{report:?}");
    assert!(place.open().verify(true).unwrap().problems.is_empty());
    // A put in between needs condemned data, and keeps it anew.
    fs::write(source.join("changes"), crate::shared::Seed(0).random(1 << 20)).unwrap();
    let put =
        place.open().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_bytes, 1 << 20);

    let keep = RetentionRules { last: 2, ..RetentionRules::default() };
    let vault = place.open();
    let report = vault.prune(&PruneOptions { keep, now: true, ..PruneOptions::default() }).unwrap();
    assert_eq!(report.removed, 0);
    assert!(report.removed_packs >= 2, "{report:?}");
    assert!(place.open().verify(true).unwrap().problems.is_empty());
    let vault = place.open();
    let target = place.path("target");
    let snapshot = vault.snapshot(None).unwrap();
    assert_eq!(vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap().failed, []);
    assert_same(&source, &target.join("source"));
    // A machine that remembers nothing accepts the chain, and a machine that remembers a head does,
    // too.
    let options = OpenOptions { state: Some(place.path("new")), ..OpenOptions::default() };
    assert!(Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).is_ok());
}

#[test]
fn two_writers_at_once_both_end_up_in_the_chain() {
    let place = Place::new();
    place.init();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let place = &place;
            scope.spawn(move || {
                let state = Some(place.path(&format!("state{number}")));
                let options = OpenOptions { state, ..OpenOptions::default() };
                let secret = SlotSecret::Passphrase(PASSPHRASE);
                let vault = Vault::open(place.store(), &secret, &options).unwrap();
                for round in 0..5 {
                    let content = format!("{number} {round}");
                    let name = format!("file{number}");
                    let put = PutOptions { note: content.clone(), ..PutOptions::default() };
                    vault.put_reader(&name, &mut content.as_bytes(), &put).unwrap();
                }
            });
        }
    });
    let vault = place.open();
    let snapshots = vault.snapshots().unwrap();
    let numbers: Vec<u64> = snapshots.iter().map(|snapshot| snapshot.number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    let notes: std::collections::HashSet<_> = snapshots.iter().map(|s| &s.note).collect();
    assert_eq!(notes.len(), 20);
    assert!(vault.verify(true).unwrap().problems.is_empty());
}
