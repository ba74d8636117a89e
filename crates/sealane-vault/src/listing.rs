//! Names that can be read without a key: only in vaults with plain metadata.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::Error;
use crate::format::pack::ObjectHash;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind};
use crate::store::{VaultStore, spool_name};
use crate::wire::hex;

pub(crate) fn listing_key(hash: &ObjectHash) -> String {
    format!("listings/{}.jsonl", hex(hash))
}

/// A listing that is being written: a line of JSON per entry, without any hash of a content.
pub(crate) struct ListingWriter {
    file: BufWriter<File>,
    path: PathBuf,
    hasher: blake3::Hasher,
}

impl ListingWriter {
    pub(crate) fn create(spool: &Path) -> Result<ListingWriter, Error> {
        let path = spool.join(spool_name("listing")?);
        let file = File::create_new(&path).map_err(|cause| Error::store("tmp", cause))?;
        Ok(ListingWriter { file: BufWriter::new(file), path, hasher: blake3::Hasher::new() })
    }

    pub(crate) fn add(&mut self, entry: &SnapshotEntry) -> Result<(), Error> {
        let mut row = json!({ "v": 1, "mode": entry.mode, "mtime_ns": entry.mtime_ns });
        match &entry.node {
            SnapshotEntryKind::File { size, .. } => set(&mut row, "size", json!(size)),
            SnapshotEntryKind::Link { target } => set(&mut row, "target", text(target)),
            SnapshotEntryKind::Device(device) => {
                set(&mut row, "major", json!(device.major));
                set(&mut row, "minor", json!(device.minor));
            }
            SnapshotEntryKind::Folder | SnapshotEntryKind::Fifo => {}
        }
        set(&mut row, "kind", json!(entry.node.name()));
        set(&mut row, "path", text(&entry.path));
        let mut line = row.to_string();
        line.push('\n');
        self.hasher.update(line.as_bytes());
        self.file.write_all(line.as_bytes()).map_err(|cause| Error::store("tmp", cause))
    }

    pub(crate) fn finish(mut self, store: &VaultStore) -> Result<ObjectHash, Error> {
        self.file.flush().map_err(|cause| Error::store("tmp", cause))?;
        let hash = *self.hasher.finalize().as_bytes();
        store.put_hashed(&listing_key(&hash), &self.path, &hash)?;
        Ok(hash)
    }
}

fn set(row: &mut serde_json::Value, name: &str, value: serde_json::Value) {
    if let Some(map) = row.as_object_mut() {
        map.insert(name.to_owned(), value);
    }
}

/// Text, or the bytes in hexadecimal digits where they are no UTF-8.
fn text(bytes: &[u8]) -> serde_json::Value {
    match str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}
