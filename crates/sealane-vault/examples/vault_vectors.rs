//! Writes `vectors/vault4`, as root: `cargo run -p sealane-vault --example vault_vectors`
//!
//! The vault that it makes has keys and salts of its own each time; the one that is kept stands for
//! all vaults of servers that are out there. `vectors/vault` is of before there were lists of
//! slots, `vectors/vault2` of before a main key could be changed, and `vectors/vault3` of before
//! there were devices, pipes and attributes. They stay.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, makedev, mknodat};
use sealane_vault::{
    Argon2Cost, ChunkCompression, OpenOptions, PutOptions, RecoveryCode, RotateOptions, SlotSecret,
    Snapshot, SnapshotEntryKind, Vault, VaultMetadata, VaultStore,
};
use serde_json::{Value, json};

const PASSPHRASE: &str = "the vault of the vectors";
/// Cheap, since this passphrase keeps no secret.
const COST: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/vault4");
    let work = std::env::temp_dir().join(format!("vault-vectors-{}", std::process::id()));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let source = work.join("source");
    fill(&source)?;
    // Files that changed just now would be read again by the next put.
    std::thread::sleep(Duration::from_millis(200));

    let place = folder.join("store");
    let store = || VaultStore::open(&place.to_string_lossy());
    let options = OpenOptions { state: Some(work.join("state")), ..OpenOptions::default() };
    let vault =
        Vault::init(store()?, PASSPHRASE.as_bytes(), COST, VaultMetadata::Sealed, &options)?;
    for compression in [ChunkCompression::Zstd(3), ChunkCompression::Lz4, ChunkCompression::None] {
        // Other content each time, so that every compression has chunks of its own.
        fs::write(source.join("changes"), format!("{compression:?} ").repeat(500))?;
        let put = PutOptions { compression, ..PutOptions::default() };
        vault.put_paths(std::slice::from_ref(&source), &put)?;
    }
    let key = vault.add_writer("a host")?;
    let writer = Vault::open(store()?, &SlotSecret::Writer(&key), &options)?;
    fs::write(source.join("changes"), "by a writer ".repeat(500))?;
    writer.put_paths(std::slice::from_ref(&source), &PutOptions::default())?;
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default())?;

    let slots = vault.slots()?;
    let slot = slots.iter().find(|slot| slot.label.as_deref() == Some("a host"));
    vault.remove_slot(slot.map_or("", |slot| &slot.id))?;
    drop(vault);
    let (vault, code) = change_twice(&source, &store, &options)?;

    let snapshots = vault.snapshots()?;
    let told = snapshots.iter().map(|snapshot| told(&vault, snapshot));
    let text = json!({
        "passphrase": PASSPHRASE,
        "recovery": *code.expose(),
        "head": vault.head_text()?,
        "snapshots": told.collect::<Result<Vec<_>, _>>()?,
    });
    fs::write(folder.join("vault.json"), format!("{text:#}\n"))?;
    fs::remove_dir_all(folder.join("store/tmp"))?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

/// Changes the main key twice, with a snapshot of the owner and of a writer under each.
fn change_twice(
    source: &Path,
    store: &dyn Fn() -> Result<VaultStore, sealane_vault::Error>,
    options: &OpenOptions,
) -> Result<(Vault, RecoveryCode), Box<dyn std::error::Error>> {
    let secret = SlotSecret::Passphrase(PASSPHRASE.as_bytes());
    let key = Vault::open(store()?, &secret, options)?.add_writer("another host")?;
    let mut last = None;
    for change in ["first", "second"] {
        let vault = Vault::open(store()?, &secret, options)?;
        let rotate = RotateOptions { recovery: true, ..RotateOptions::default() };
        let rotated = vault.rotate(&secret, options, &rotate)?;
        fs::write(source.join("changes"), format!("behind the {change} change ").repeat(500))?;
        rotated.vault.put_paths(&[source.to_owned()], &PutOptions::default())?;
        let writer = Vault::open(store()?, &SlotSecret::Writer(&key), options)?;
        writer.put_reader("of a writer", &mut change.as_bytes(), &PutOptions::default())?;
        last = rotated.recovery;
    }
    fs::write(source.join("changes"), "the last ".repeat(500))?;
    let vault = Vault::open(store()?, &secret, options)?;
    vault.put_paths(&[source.to_owned()], &PutOptions::default())?;
    Ok((vault, last.ok_or("no recovery code")?))
}

/// The content of a snapshot, as any reader must find it.
fn told(vault: &Vault, snapshot: &Snapshot) -> Result<Value, sealane_vault::Error> {
    let entries = vault.entries(snapshot)?.map(|entry| {
        let entry = entry?;
        let mut told = json!({
            "path": hex(&entry.path),
            "kind": entry.node.name(),
            "mode": format!("{:04o}", entry.mode),
            "mtime_ns": entry.mtime_ns,
        });
        match &entry.node {
            SnapshotEntryKind::Folder | SnapshotEntryKind::Fifo => {}
            SnapshotEntryKind::Device(device) => {
                told["device"] = json!([device.major, device.minor]);
            }
            SnapshotEntryKind::Link { target } => told["target"] = hex(target).into(),
            SnapshotEntryKind::File { size, .. } => {
                let mut content = Vec::new();
                vault.file(snapshot, &entry.path)?.read_range(0, *size, &mut content)?;
                told["size"] = (*size).into();
                told["blake3"] = blake3::hash(&content).to_hex().as_str().into();
            }
        }
        if let Some(first) = &entry.hard_link {
            told["same_as"] = hex(first).into();
        }
        for attribute in &entry.attributes {
            let name = String::from_utf8_lossy(&attribute.name).into_owned();
            told["attributes"][name] = hex(&attribute.value).into();
        }
        Ok(told)
    });
    let entries: Result<Vec<Value>, sealane_vault::Error> = entries.collect();
    Ok(json!({ "number": snapshot.number, "entries": entries? }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A small tree with a bit of everything, and a file of several chunks.
fn fill(source: &Path) -> std::io::Result<()> {
    fs::create_dir_all(source.join("deep"))?;
    fs::write(source.join("empty"), b"")?;
    fs::write(source.join("deep/note.txt"), b"the way of a message\n".repeat(40))?;
    fs::hard_link(source.join("deep/note.txt"), source.join("note again"))?;
    symlink("deep/note.txt", source.join("link"))?;
    fs::write(source.join(OsStr::from_bytes(b"not-utf8-\xff")), b"named in bytes")?;
    let mut noise = vec![0; 6000];
    blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut noise);
    fs::write(source.join("noise"), &noise)?;
    // Small when compressed, and cut by content: numbered blocks of noise.
    let blocks = (0_u64..3 << 11).flat_map(|number| {
        let at = 64 * (number as usize * 7 % 80);
        [&number.to_le_bytes(), &noise[at..at + 504]].concat()
    });
    fs::write(source.join("several chunks"), blocks.collect::<Vec<u8>>())?;
    let mut sparse = File::create(source.join("sparse"))?;
    sparse.write_all(b"begin")?;
    sparse.set_len(1 << 20)?;
    fs::set_permissions(source.join("empty"), fs::Permissions::from_mode(0o600))?;
    let times = ["empty", "noise", "several chunks", "sparse", "deep/note.txt"];
    for (number, name) in times.into_iter().enumerate() {
        let at = Duration::new(1_700_000_000 + number as u64, 123_456_789);
        File::open(source.join(name))?.set_modified(SystemTime::UNIX_EPOCH + at)?;
    }
    fill_as_root(source)
}

/// Things that servers have beside files. The ACL is user::rw- user:1000:rw- group::---
/// mask::rw- other::---, the capability cap_net_raw=ep.
fn fill_as_root(source: &Path) -> std::io::Result<()> {
    let none = u32::MAX;
    let rows = [(1, 6, none), (2, 6, 1000), (4, 0, none), (16, 6, none), (32, 0, none)];
    let row = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let acl = [&2_u32.to_le_bytes()[..], &rows.map(row).concat()].concat();
    let capability = [0x0200_0001_u32, 1 << 13, 0, 0, 0].map(u32::to_le_bytes).concat();
    let rows: [(&str, &str, &[u8]); 5] = [
        ("noise", "user.origin", b"the generator"),
        ("noise", "system.posix_acl_access", &acl),
        ("deep", "system.posix_acl_default", &acl),
        ("empty", "security.capability", &capability),
        ("link", "trusted.of", b"a link"),
    ];
    let none = XattrFlags::empty();
    rows.into_iter()
        .try_for_each(|(path, name, value)| lsetxattr(source.join(path), name, value, none))?;
    fs::hard_link(source.join("link"), source.join("link again"))?;
    let nodes = [
        ("disk", FileType::BlockDevice, makedev(259, 1 << 18)),
        ("null", FileType::CharacterDevice, makedev(1, 3)),
        ("pipe", FileType::Fifo, 0),
    ];
    let mode = Mode::from_raw_mode(0o620);
    nodes
        .into_iter()
        .try_for_each(|(name, kind, device)| mknodat(CWD, source.join(name), kind, mode, device))?;
    Ok(())
}
