//! A copy that lags is read by whoever says so, and is never written to unasked; and a store that
//! was rolled back is refused where more of it was seen.

use std::fs;

use crate::shared::{PASSPHRASE, Place, copy};
use sealane_vault::{Error, OpenOptions, PutOptions, SlotSecret, Vault, VaultStore};

fn put(vault: &Vault, name: &str) -> Result<u64, Error> {
    let put = vault.put_reader("file", &mut name.as_bytes(), &PutOptions::default());
    put.map(|report| report.snapshot)
}

/// The vault that lies in a folder, as the one machine of the test opens it.
fn open(place: &Place, folder: &str, accept: Option<&str>) -> Result<Vault, Error> {
    let store = VaultStore::open(place.path(folder).to_str().unwrap()).unwrap();
    let accept_rollback = accept.map(str::to_owned);
    let options = OpenOptions { accept_rollback, ..place.options() };
    Vault::open(store, &SlotSecret::Passphrase(PASSPHRASE), &options)
}

#[test]
fn a_copy_of_yesterday_is_read_and_not_written_to() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, "yesterday").unwrap();
    let head = owner.head_text().unwrap();
    copy(&place.path("vault"), &place.path("copy"));
    put(&owner, "today").unwrap();
    let refused = open(&place, "copy", None).unwrap_err();
    assert_eq!(refused.info().name, "RolledBack");
    // It names what is there, and what to say.
    let said = refused.to_string();
    assert!(said.contains("newest is 1") && said.contains(&head), "{said}");
    assert!(open(&place, "copy", Some(&format!("1:{}", "00".repeat(32)))).is_err());
    for accept in [Some(head.as_str()), None] {
        // Once accepted it is known as a copy.
        let vault = open(&place, "copy", accept).unwrap();
        assert!(vault.warnings().iter().any(|at| at.reason.contains("a copy lags")));
        assert_eq!(vault.snapshot(None).unwrap().number, 1);
        assert_eq!(vault.verify(true).unwrap().problems, []);
        assert_eq!(vault.head_text().unwrap(), head);
    }
    let refused = put(&open(&place, "copy", None).unwrap(), "there").unwrap_err();
    assert_eq!(refused.info().name, "RolledBack");
    let other = open(&place, "copy", None).unwrap().add_recovery("paper").map(|_| ());
    assert_eq!(other.unwrap_err().info().name, "RolledBack");
    // The vault itself is as it was, and the copy comes after it.
    assert_eq!(put(&open(&place, "vault", None).unwrap(), "tomorrow").unwrap(), 3);
    copy(&place.path("vault"), &place.path("copy"));
    assert_eq!(open(&place, "copy", None).unwrap().warnings(), []);
    // A copy that shows less than it has shown was rolled back.
    for number in [2, 3] {
        fs::remove_file(place.path(&format!("copy/snapshots/{number:010}"))).unwrap();
    }
    assert_eq!(open(&place, "copy", None).unwrap_err().info().name, "RolledBack");
}

#[test]
fn what_is_truly_lost_is_given_up_by_who_writes() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, "one").unwrap();
    let head = owner.head_text().unwrap();
    put(&owner, "two").unwrap();
    fs::remove_file(place.path("vault/snapshots/0000000002")).unwrap();
    assert_eq!(open(&place, "vault", None).unwrap_err().info().name, "RolledBack");
    // To read it is not to give anything up.
    let vault = open(&place, "vault", Some(&head)).unwrap();
    assert_eq!(vault.snapshot(None).unwrap().number, 1);
    assert_eq!(open(&place, "vault", None).unwrap_err().info().name, "RolledBack");
    assert_eq!(put(&open(&place, "vault", Some(&head)).unwrap(), "again").unwrap(), 2);
    let vault = open(&place, "vault", None).unwrap();
    assert_eq!(vault.warnings(), []);
    assert_eq!(vault.verify(true).unwrap().problems, []);
    assert_eq!(put(&vault, "three").unwrap(), 3);
}

/// The vault is gone, and a copy that was read before is all that is left.
#[test]
fn a_copy_that_is_known_takes_the_place_of_what_is_lost() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, "yesterday").unwrap();
    let head = owner.head_text().unwrap();
    copy(&place.path("vault"), &place.path("copy"));
    put(&owner, "today").unwrap();
    open(&place, "copy", Some(&head)).unwrap();
    assert_eq!(open(&place, "copy", None).unwrap().snapshot(None).unwrap().number, 1);
    // A head that the copy lacks is refused, known or not.
    let other = format!("1:{}", "00".repeat(32));
    assert!(open(&place, "copy", Some(&other)).is_err());
    // To read it with the flag gives nothing up; to write does.
    assert_eq!(open(&place, "copy", Some(&head)).unwrap().verify(true).unwrap().problems, []);
    assert_eq!(
        put(&open(&place, "copy", None).unwrap(), "no").unwrap_err().info().name,
        "RolledBack"
    );
    assert_eq!(put(&open(&place, "copy", Some(&head)).unwrap(), "again").unwrap(), 2);
    let vault = open(&place, "copy", None).unwrap();
    assert_eq!((vault.warnings(), vault.snapshot(None).unwrap().number), (vec![], 2));
    assert_eq!(put(&vault, "tomorrow").unwrap(), 3);
}
