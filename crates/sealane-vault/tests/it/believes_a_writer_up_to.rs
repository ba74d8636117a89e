//! A writer that is removed is believed up to the snapshot that was the newest then: what it kept
//! is read everywhere, and what it adds later by nobody.

use std::fs;

use crate::shared::{Host, Place, head};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{PruneOptions, PutOptions, RetentionRules, Vault};

fn put(vault: &Vault, name: &str) -> u64 {
    vault.put_reader(name, &mut name.as_bytes(), &PutOptions::default()).unwrap().snapshot
}

/// Signs a link as a removed writer that keeps no rules.
fn sign_anyway(writer: &Vault) -> u64 {
    let (number, previous) = head(writer);
    let link = FalseLink { number: number + 1, previous, ..FalseLink::default() };
    hostile::plant_link(writer, link).unwrap();
    number + 1
}

fn numbers(vault: &Vault) -> Vec<u64> {
    vault.snapshots().unwrap().iter().map(|snapshot| snapshot.number).collect()
}

#[test]
fn what_it_kept_stays_readable_on_every_machine() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    put(&owner, "a");
    put(&host.open(&place), "b");
    owner.remove_slot(&host.slot).unwrap();
    for vault in [place.open(), place.open_afresh("fresh")] {
        assert_eq!(numbers(&vault), [1, 2]);
        let mut out = Vec::new();
        let snapshot = vault.snapshot(Some(2)).unwrap();
        vault.file(&snapshot, b"b").unwrap().read_range(0, 9, &mut out).unwrap();
        assert_eq!((out.as_slice(), vault.warnings().as_slice()), (&b"b"[..], &[][..]));
        assert_eq!(vault.verify(true).unwrap().problems, []);
    }
    let slots = place.open().slots().unwrap();
    let slot = slots.iter().find(|slot| slot.id == host.slot).unwrap();
    assert_eq!(slot.until, Some(2));
}

#[test]
fn what_it_adds_later_is_no_snapshot_and_stops_nobody() {
    let place = Place::new();
    let owner = place.init();
    let (bad, good) = (Host::of(&place, &owner, "bad"), Host::of(&place, &owner, "good"));
    put(&bad.open(&place), "a");
    owner.remove_slot(&bad.slot).unwrap();
    // The writer is told before a byte is sent.
    let before = place.objects();
    let refused = bad.open(&place).put_reader("b", &mut &b"b"[..], &PutOptions::default());
    assert_eq!(refused.unwrap_err().info().name, "WriterEnded");
    assert!(place.objects() == before);
    let after = sign_anyway(&bad.open(&place));
    let then = put(&good.open(&place), "good");
    let last = put(&place.open(), "last");
    for vault in [place.open(), place.open_afresh("fresh")] {
        assert_eq!(numbers(&vault), [1, then, last]);
        let refused = vault.snapshot(Some(after)).unwrap_err();
        assert_eq!(refused.info().name, "WriterEnded");
        // It is nobody's fault and nobody's alarm: the next prune takes it away.
        assert_eq!(vault.verify(true).unwrap().problems, []);
        assert_eq!((vault.unbelieved().unwrap(), vault.warnings()), (1, vec![]));
    }
    let keep = RetentionRules { last: 9, ..RetentionRules::default() };
    let report = place.open().prune(&PruneOptions { keep, ..PruneOptions::default() }).unwrap();
    assert_eq!((report.unbelieved, report.removed), (1, 0));
    for vault in [place.open(), place.open_afresh("fresh"), place.open_afresh("other")] {
        assert_eq!(vault.unbelieved().unwrap(), 0);
        assert_eq!(numbers(&vault), [1, then, last]);
        assert_eq!(vault.verify(true).unwrap().problems, []);
    }
}

/// A source that removes the writer when it is read.
struct Removing<'a>(Option<(&'a Vault, &'a str)>);

impl std::io::Read for Removing<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let Some((owner, slot)) = self.0.take() else { return Ok(0) };
        owner.remove_slot(slot).unwrap();
        out[0] = 7;
        Ok(1)
    }
}

#[test]
fn a_put_that_began_before_its_writer_was_removed_is_not_told_that_it_kept() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let writer = host.open(&place);
    let mut source = Removing(Some((&owner, &host.slot)));
    let refused = writer.put_reader("a", &mut source, &PutOptions::default()).unwrap_err();
    assert_eq!(refused.info().name, "WriterEnded");
    assert_eq!(place.open().unbelieved().unwrap(), 0);
}

/// A store that helps the writer takes the list back.
#[test]
fn a_store_that_takes_the_list_back_is_named() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    put(&host.open(&place), "a");
    owner.remove_slot(&host.slot).unwrap();
    sign_anyway(&host.open(&place));
    let lists = place.store().list("roster/").unwrap();
    fs::remove_file(place.path("vault").join(&lists.last().unwrap().key)).unwrap();
    // A machine that has seen it holds to it.
    assert_eq!(numbers(&place.open()), [1]);
    // The chain tells any other machine that there was one.
    let fresh = place.open_afresh("fresh");
    let named = |at: &sealane_vault::SkippedItem| at.path.starts_with("roster/");
    assert!(fresh.verify(false).unwrap().problems.iter().any(named));
    // Nor does anybody sign a new one that believes the writer again, but who repairs.
    fs::remove_dir_all(place.path("vault/roster")).unwrap();
    let other = place.open_afresh("other");
    assert!(other.warnings().iter().any(named));
    assert_eq!(place.store().list("roster/").unwrap(), []);
    other.repair(&[], &PutOptions::default()).unwrap();
    let until = other.slots().unwrap().iter().find_map(|slot| slot.until);
    assert!(until.is_some(), "{until:?}");
}

#[test]
fn a_slot_that_an_earlier_version_removed_makes_nothing_unreadable() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    put(&host.open(&place), "a");
    put(&owner, "b");
    let other = Host::of(&place, &owner, "other");
    put(&other.open(&place), "c");
    fs::remove_file(place.path("vault/keys").join(&host.slot)).unwrap();
    fs::remove_dir_all(place.path("vault/roster")).unwrap();
    let later = place.open_afresh("fresh");
    assert_eq!(numbers(&later), [2, 3]);
    assert!(!later.warnings().is_empty());
    assert_eq!(put(&later, "d"), 4);
}

#[test]
fn a_writer_does_not_push_others_out_of_the_chain() {
    let place = Place::new();
    let owner = place.init();
    let (bad, good) = (Host::of(&place, &owner, "bad"), Host::of(&place, &owner, "good"));
    put(&owner, "a");
    let first = head(&owner);
    // It takes a number ahead, and later the one that it left free.
    let writer = bad.open(&place);
    let link = |number| FalseLink { number, previous: first.1, ..FalseLink::default() };
    hostile::plant_link(&writer, link(3)).unwrap();
    assert_eq!(put(&good.open(&place), "b"), 2);
    assert_eq!(put(&owner, "c"), 4);
    hostile::plant_link(&writer, link(6)).unwrap();
    assert_eq!(put(&good.open(&place), "d"), 5);
    for vault in [place.open(), place.open_afresh("fresh")] {
        assert_eq!(numbers(&vault), [1, 2, 4, 5]);
    }
    assert_eq!(put(&place.open_afresh("another"), "e"), 7);
}

#[test]
fn two_machines_of_the_owner_do_not_undo_each_other() {
    let place = Place::new();
    let (one, two) = (place.init(), place.open_afresh("two"));
    let host = Host::of(&place, &one, "host");
    put(&host.open(&place), "a");
    one.remove_slot(&host.slot).unwrap();
    two.add_passphrase(b"another", crate::shared::CHEAP, "another").unwrap();
    let fresh = place.open_afresh("fresh");
    let slots = fresh.slots().unwrap();
    assert!(slots.len() == 3 && slots.iter().all(|slot| slot.signed), "{slots:?}");
    assert_eq!(slots.iter().find_map(|slot| slot.until), Some(1));
}
