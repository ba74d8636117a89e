//! The vaults that earlier versions wrote read as they were written: `vectors/vault`, of before
//! there were lists of slots, `vectors/vault2`, and `vectors/vault3`, whose main key was changed
//! twice, and `vectors/vault4`, with things that only servers have. What is put into them again is
//! cut, named and found as it was then.

use std::fs;
use std::path::{Path, PathBuf};

use sealane_vault::{
    GetOptions, PutOptions, RecoveryCode, SlotSecret, SnapshotEntry, SnapshotEntryKind, Vault,
    VaultStore,
};
use serde_json::Value;

use crate::shared::Place;

const VAULTS: [&str; 4] = ["vault", "vault2", "vault3", "vault4"];

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(name)
}

fn told(name: &str) -> Value {
    serde_json::from_slice(&fs::read(vectors(name).join("vault.json")).unwrap()).unwrap()
}

/// The vault, copied, since opening it may write.
fn place(name: &str) -> Place {
    let place = Place::new();
    let objects = VaultStore::open(vectors(name).join("store").to_str().unwrap()).unwrap();
    for object in objects.list("").unwrap() {
        let path = place.path("vault").join(&object.key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, objects.get(&object.key, usize::MAX).unwrap()).unwrap();
    }
    place
}

fn open(place: &Place, secret: &SlotSecret<'_>) -> Vault {
    Vault::open(place.store(), secret, &place.options()).unwrap()
}

fn recovery(told: &Value) -> RecoveryCode {
    told["recovery"].as_str().unwrap().parse().unwrap()
}

fn hex(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn check(entry: &SnapshotEntry, told: &Value, content: &[u8]) {
    assert_eq!(told["path"], hex(&entry.path));
    assert_eq!(told["mode"], format!("{:04o}", entry.mode));
    assert_eq!(told["mtime_ns"], entry.mtime_ns);
    let first = entry.hard_link.as_ref().map_or(Value::Null, |first| hex(first));
    assert_eq!(told.get("same_as").cloned().unwrap_or_default(), first);
    assert_eq!(told["kind"], entry.node.name());
    let attributes = entry.attributes.iter().map(|one| {
        let (name, value) = (String::from_utf8(one.name.clone()).unwrap(), hex(&one.value));
        (name, value)
    });
    let attributes: Value = attributes.collect::<serde_json::Map<_, _>>().into();
    let known = told.get("attributes").cloned().unwrap_or_else(|| serde_json::json!({}));
    assert_eq!(known, attributes);
    match &entry.node {
        SnapshotEntryKind::Folder | SnapshotEntryKind::Fifo => {}
        SnapshotEntryKind::Link { target } => assert_eq!(told["target"], hex(target)),
        SnapshotEntryKind::Device(device) => {
            assert_eq!(told["device"], serde_json::json!([device.major, device.minor]));
        }
        SnapshotEntryKind::File { size, .. } => {
            assert_eq!(told["size"], *size);
            assert_eq!(told["blake3"], blake3::hash(content).to_hex().as_str());
        }
    }
}

#[test]
fn vaults_of_version_1_read_as_they_were_written() {
    for name in VAULTS {
        let told = told(name);
        let passphrase = told["passphrase"].as_str().unwrap();
        let code = recovery(&told);
        for secret in [SlotSecret::Passphrase(passphrase.as_bytes()), SlotSecret::Recovery(&code)] {
            let place = place(name);
            reads(&told, &open(&place, &secret));
        }
    }
}

fn reads(told: &Value, vault: &Vault) {
    assert_eq!(told["head"], vault.head_text().unwrap());
    let snapshots = vault.snapshots().unwrap();
    assert_eq!(told["snapshots"].as_array().unwrap().len(), snapshots.len());
    for (snapshot, told) in snapshots.iter().zip(told["snapshots"].as_array().unwrap()) {
        assert_eq!(told["number"], snapshot.number);
        let entries: Vec<SnapshotEntry> =
            vault.entries(snapshot).unwrap().collect::<Result<_, _>>().unwrap();
        let told = told["entries"].as_array().unwrap();
        assert_eq!(entries.len(), told.len());
        for (entry, told) in entries.iter().zip(told) {
            let mut content = Vec::new();
            if let SnapshotEntryKind::File { size, .. } = entry.node {
                let mut file = vault.file(snapshot, &entry.path).unwrap();
                file.read_range(0, size, &mut content).unwrap();
            }
            check(entry, told, &content);
        }
    }
}

/// The one of before is signed by that, and has nothing else to say.
#[test]
fn a_vault_of_before_there_were_lists_verifies_and_is_signed() {
    let told = told("vault");
    let place = place("vault");
    let vault = open(&place, &SlotSecret::Recovery(&recovery(&told)));
    assert_eq!(vault.warnings(), []);
    assert_eq!(vault.verify(true).unwrap().problems, []);
    assert_eq!(place.store().list("roster/").unwrap().len(), 1);
    assert_eq!(vault.snapshots().unwrap().len(), 5);
}

#[test]
fn what_is_put_again_is_cut_and_named_as_it_was_then() {
    for name in VAULTS {
        let told = told(name);
        let place = place(name);
        let vault = open(&place, &SlotSecret::Recovery(&recovery(&told)));
        let newest = vault.snapshot(None).unwrap();
        let target = place.path("target");
        // Only root makes devices, and they have no content.
        let entries = vault.entries(&newest).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| matches!(entry.node, SnapshotEntryKind::File { .. }));
        let paths = files.map(|entry| entry.path).collect();
        let options = GetOptions { paths, ..GetOptions::default() };
        let got = vault.get_to(&newest, &target, &options).unwrap();
        assert_eq!(got.failed, []);
        let put = vault.put_paths(&[target.join("source")], &PutOptions::default()).unwrap();
        assert_eq!((put.counts.new_chunks, put.skipped), (0, vec![]));
        let cut = vault.entries(&newest).unwrap().any(|entry| match entry.unwrap().node {
            SnapshotEntryKind::File { pieces, .. } => {
                pieces.len() > 1 && pieces[1].bytes() > 1 << 18
            }
            _ => false,
        });
        assert!(cut, "no file was cut by its content");
    }
}
