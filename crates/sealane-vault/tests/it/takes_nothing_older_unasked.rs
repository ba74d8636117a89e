//! Where the newest snapshot cannot be read, an older one is taken only by whoever asks for it.

use std::fs;

use crate::shared::Place;
use sealane_vault::{DrillOptions, PutOptions, SnapshotSelector, Vault};

fn put(vault: &Vault, content: &[u8]) -> u64 {
    vault.put_reader("file", &mut &*content, &PutOptions::default()).unwrap().snapshot
}

#[test]
fn an_older_snapshot_is_no_success() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, b"yesterday");
    let before = place.open_afresh("before");
    put(&owner, b"today");
    let path = place.path("vault/snapshots/0000000002");
    let whole = fs::read(&path).unwrap();
    for (turn, at) in [30, 66, whole.len() / 2, whole.len() - 1].into_iter().enumerate() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&path, if turn == 0 { &whole[..at] } else { &flipped }).unwrap();
        // The machine that made it, one that knows the one before, and one that knows nothing.
        for vault in [&place.open(), &before, &place.open_afresh(&format!("fresh {at}"))] {
            let drill = |options| {
                let scratch = tempfile::tempdir().unwrap();
                vault.drill(scratch.path(), &options).map(|report| report.snapshot)
            };
            let paths = [b"file".to_vec()];
            let failures = [
                vault.snapshot(None).map(|snapshot| snapshot.number),
                vault.newest(&SnapshotSelector::default(), &paths).map(|snapshot| snapshot.number),
                drill(DrillOptions::default()),
            ];
            for failure in failures {
                let failure = failure.unwrap_err();
                assert_eq!(failure.info().name, "OlderOnly", "{at}");
                let said = failure.to_string();
                assert!(said.starts_with("snapshot 1 would be taken"), "{said}");
                assert!(said.contains("2 (") && said.contains("SL-VAULT-"), "{said}");
            }
            let asked = SnapshotSelector { allow_older: true, ..SnapshotSelector::default() };
            assert_eq!(vault.newest(&asked, &paths).unwrap().number, 1);
            assert_eq!(vault.snapshot(Some(1)).unwrap().number, 1);
            let asked = DrillOptions { allow_older: true, ..DrillOptions::default() };
            assert_eq!(drill(asked).unwrap(), 1);
        }
    }
    // A newer one that can be read takes its place.
    assert_eq!(put(&place.open(), b"tomorrow"), 3);
    assert_eq!(place.open_afresh("then").snapshot(None).unwrap().number, 3);
}
