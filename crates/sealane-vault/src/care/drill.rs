use std::collections::HashSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use rustix::fs::lgetxattr;
use serde_json::{Value, json};

use crate::Error;
use crate::format::chunk::ChunkKind;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::page::{
    DeviceKind, DeviceNode, EntryAttribute, FilePiece, SnapshotEntry, SnapshotEntryKind,
};
use crate::get::{ChunkReader, GetOptions, SnapshotEntries, is_roots_attribute, restore};
use crate::keys::random;
use crate::limits::MAX_REPORT_BYTES;
use crate::put::{SkippedItem, now_ns};
use crate::vault::Vault;
use crate::wire::VaultFieldReader;

/// The snapshot and the sample of a drill.
#[derive(Debug, Clone, Default)]
pub struct DrillOptions {
    /// The snapshot; none is the newest.
    pub snapshot: Option<u64>,
    /// How many files, chosen anew each time; none is all.
    pub sample: Option<u64>,
    /// Whether an older one will do where the newest cannot be read.
    pub allow_older: bool,
}

/// A restore that was proven, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrillReport {
    /// When it ended: nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// The snapshot.
    pub snapshot: u64,
    /// The head of the chain, as `number:hash`.
    pub head: String,
    /// Whether it was all of the snapshot: no sample, and no device was left out.
    pub all: bool,
    /// Files, folders and links that came back as they were kept.
    pub entries: u64,
    /// Files among them.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// How long it took.
    pub took_ms: u64,
    /// Files that did not come back, or without one of their attributes.
    pub failed: Vec<SkippedItem>,
}

impl DrillReport {
    /// As it is stored, and shown.
    pub fn to_json(&self) -> Value {
        let failed = |failed: &SkippedItem| json!({ "path": failed.path, "reason": failed.reason });
        // A report is bounded; that something failed matters more than all names.
        let failed: Vec<Value> = self.failed.iter().take(100).map(failed).collect();
        json!({
            "v": 1, "time_ns": self.time_ns, "snapshot": self.snapshot, "head": self.head,
            "all": self.all, "entries": self.entries, "files": self.files, "bytes": self.bytes,
            "took_ms": self.took_ms, "proven": self.failed.is_empty(), "failed": failed,
        })
    }

    fn from_json(value: &Value) -> Option<DrillReport> {
        let number = |name: &str| value.get(name)?.as_u64();
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let failed = |failed: &Value| {
            Some(SkippedItem { path: text(failed, "path")?, reason: text(failed, "reason")? })
        };
        Some(DrillReport {
            time_ns: value.get("time_ns")?.as_i64()?,
            snapshot: number("snapshot")?,
            head: text(value, "head")?,
            all: value.get("all")?.as_bool()?,
            entries: number("entries")?,
            files: number("files")?,
            bytes: number("bytes")?,
            took_ms: number("took_ms")?,
            failed: value.get("failed")?.as_array()?.iter().map(failed).collect::<Option<_>>()?,
        })
    }
}

impl Vault {
    /// Restores a sample or all of a snapshot into `scratch`, which must be empty, from the objects
    /// alone; compares what then lies on disk with what was kept; and keeps a signed report in
    /// the store. What it restored is left in `scratch`.
    ///
    /// # Errors
    /// [`Error::OlderOnly`], and what the store or the scratch folder fails for as a whole. What
    /// did not come back is in [`DrillReport::failed`].
    pub fn drill(&self, scratch: &Path, options: &DrillOptions) -> Result<DrillReport, Error> {
        let begun = Instant::now();
        let snapshot = match options.snapshot {
            None => self.newest_of_all(options.allow_older)?,
            number => self.snapshot(number)?,
        };
        let manifest = self.manifest_from_packs()?;
        let wanted = self.choose(&snapshot, options.sample)?;
        let chunks = || {
            let mut chunks = ChunkReader::new(self, &manifest)?;
            chunks.turn_to(&snapshot);
            Ok::<_, Error>(chunks)
        };
        let entries = SnapshotEntries::new(chunks()?, &snapshot.body.pages);
        let entries = entries.filter(|entry| entry.as_ref().map_or(true, &wanted));
        let get = GetOptions::default().of_writer(snapshot.by_writer);
        let mut restored = restore(chunks()?, entries, scratch, &get)?;
        restored.failed.append(&mut restored.lacking);
        let mut report = DrillReport {
            time_ns: now_ns(),
            snapshot: snapshot.number,
            head: self.head_text()?,
            all: options.sample.is_none(),
            entries: 0,
            files: 0,
            bytes: 0,
            took_ms: 0,
            failed: restored.failed,
        };
        let entries = SnapshotEntries::new(chunks()?, &snapshot.body.pages);
        let takes = |entry: &mut SnapshotEntry| {
            let takes = wanted(entry) && !get.refuses(entry);
            if takes {
                get.withhold(entry);
            }
            takes
        };
        self.compare_all(chunks()?, scratch, entries, takes, &mut report)?;
        report.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.keep_report(&report)?;
        Ok(report)
    }

    /// Says of each entry whether it is in the sample: all with folders and links, or about as many
    /// files as were asked for, others each time.
    fn choose(
        &self,
        snapshot: &crate::vault::Snapshot,
        sample: Option<u64>,
    ) -> Result<impl Fn(&SnapshotEntry) -> bool + use<>, Error> {
        let seed: [u8; 32] = random()?;
        let files = snapshot.counts.files.max(1);
        let root = rustix::process::geteuid().is_root();
        let share = sample.map(|sample| u64::MAX / files * sample.min(files));
        Ok(move |entry: &SnapshotEntry| match share {
            // Only root makes devices.
            None => root || !matches!(entry.node, SnapshotEntryKind::Device(_)),
            Some(share) => {
                let hash = blake3::keyed_hash(&seed, &entry.path);
                let (first, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
                let file = matches!(entry.node, SnapshotEntryKind::File { .. });
                file && u64::from_le_bytes(*first) <= share
            }
        })
    }

    /// Compares the entries that a restore `takes`, and counts them.
    fn compare_all(
        &self,
        mut chunks: ChunkReader<'_>,
        scratch: &Path,
        entries: SnapshotEntries<'_>,
        takes: impl Fn(&mut SnapshotEntry) -> bool,
        report: &mut DrillReport,
    ) -> Result<(), Error> {
        let named: HashSet<String> = report.failed.iter().map(|item| item.path.clone()).collect();
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                // The restore has named it.
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error),
            };
            if !takes(&mut entry) {
                report.all = false;
                continue;
            }
            match self.compare(&mut chunks, scratch, &entry) {
                Ok(()) => {
                    report.entries += 1;
                    report.files += u64::from(matches!(entry.node, SnapshotEntryKind::File { .. }));
                    report.bytes += entry.size();
                }
                Err(_) if named.contains(&entry.shown()) => {}
                Err(reason) => {
                    let reason = reason.to_string();
                    report.failed.push(SkippedItem { path: entry.shown(), reason });
                }
            }
        }
        Ok(())
    }

    /// Compares an entry with what lies on disk, reading it again.
    fn compare(
        &self,
        chunks: &mut ChunkReader<'_>,
        scratch: &Path,
        entry: &SnapshotEntry,
    ) -> std::io::Result<()> {
        let path = scratch.join(std::ffi::OsStr::from_bytes(&entry.path));
        let found = path.symlink_metadata()?;
        let mtime_ns = found.mtime().checked_mul(1_000_000_000);
        let mtime_ns = mtime_ns.and_then(|ns| ns.checked_add(found.mtime_nsec()));
        let same_mode = found.is_symlink() || found.mode() & 0o7777 == entry.mode;
        if mtime_ns != Some(entry.mtime_ns) || !same_mode {
            return Err(std::io::Error::other("its mode or time differs"));
        }
        compare_attributes(&path, entry)?;
        match &entry.node {
            SnapshotEntryKind::Folder if found.is_dir() => Ok(()),
            SnapshotEntryKind::Link { target } => {
                let there = std::fs::read_link(&path)?;
                let same = there.as_os_str().as_bytes() == target;
                if same { Ok(()) } else { Err(std::io::Error::other("it points elsewhere")) }
            }
            SnapshotEntryKind::File { size, pieces } if found.is_file() && found.len() == *size => {
                let file = File::open(&path)?;
                let mut at = 0;
                for piece in pieces {
                    let parts = chunks.parts(piece).map_err(std::io::Error::other)?;
                    let same = self.compare_content(&file, at, &parts);
                    same?;
                    at += piece.bytes();
                }
                Ok(())
            }
            SnapshotEntryKind::Device(device) if is_device(&found, *device) => Ok(()),
            SnapshotEntryKind::Fifo if found.file_type().is_fifo() => Ok(()),
            _ => Err(std::io::Error::other("its kind or size differs")),
        }
    }

    fn compare_content(&self, file: &File, at: u64, pieces: &[FilePiece]) -> std::io::Result<()> {
        let differs = || std::io::Error::other("its content differs");
        let mut at = at;
        let mut data = Vec::new();
        for piece in pieces {
            let mut left = piece.bytes();
            while left > 0 {
                // Chunks are read whole; holes may be longer than memory.
                let part = match piece {
                    FilePiece::Hole { .. } => left.min(1 << 20),
                    _ => left,
                };
                data.resize(usize::try_from(part).unwrap_or(0), 0);
                file.read_exact_at(&mut data, at)?;
                let same = match piece {
                    FilePiece::Chunk { id, .. } => self.naming().id(ChunkKind::Data, &data) == *id,
                    _ => data.iter().all(|byte| *byte == 0),
                };
                if !same {
                    return Err(differs());
                }
                at += part;
                left -= part;
            }
        }
        Ok(())
    }

    fn keep_report(&self, report: &DrillReport) -> Result<(), Error> {
        let mut object = ObjectHeader { kind: ObjectKind::Report, ..self.header() }.write();
        let record =
            self.sealing().seal_record(&object, report.to_json().to_string().as_bytes())?;
        object.extend_from_slice(&record);
        self.signer().sign(&mut object)?;
        self.store().put(&format!("reports/{:020}", report.time_ns.max(0)), &object)?;
        Ok(())
    }

    /// The last drill in which everything came back: the last proven restore.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for. Reports that the owner did not sign are
    /// skipped and named by [`Vault::warnings`].
    pub fn last_proven(&self) -> Result<Option<DrillReport>, Error> {
        self.owner("read reports")?;
        for object in self.store().list("reports/")?.iter().rev() {
            match self.read_report(&object.key) {
                Ok(report) if report.failed.is_empty() => return Ok(Some(report)),
                Ok(_) => {}
                Err(error) if error.is_damage() => {
                    self.warn([SkippedItem { path: object.key.clone(), reason: error.named() }]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// A report that the owner signed.
    pub(super) fn read_report(&self, key: &str) -> Result<DrillReport, Error> {
        let bytes = self.store().get(key, MAX_REPORT_BYTES)?;
        let signed = bytes.get(..bytes.len().saturating_sub(64)).unwrap_or_default();
        let mut reader = VaultFieldReader::new("a report", signed);
        let header =
            ObjectHeader::read(&mut reader, key, ObjectKind::Report, Some(self.vault_id()))?;
        self.verify_owners(&header, key, &bytes)?;
        let at = signed.len() - reader.left();
        let (head, record) = signed.split_at_checked(at).unwrap_or_default();
        let text = self.sealing_of(&header)?.open_record(key, head, record)?;
        let malformed = Error::Malformed { what: "a report" };
        let value: Value = serde_json::from_slice(&text).map_err(|_| malformed)?;
        DrillReport::from_json(&value).ok_or(Error::Malformed { what: "a report" })
    }
}

/// Compares the attributes of an entry with those on disk.
fn compare_attributes(path: &Path, entry: &SnapshotEntry) -> std::io::Result<()> {
    let root = rustix::process::geteuid().is_root();
    for EntryAttribute { name, value } in &entry.attributes {
        if !root && is_roots_attribute(name) {
            continue;
        }
        // A longer value does not fit, and differs.
        let mut there = vec![0; value.len() + 1];
        let length = lgetxattr(path, name.as_slice(), there.as_mut_slice());
        if !length.is_ok_and(|length| there.get(..length) == Some(value.as_slice())) {
            let shown = String::from_utf8_lossy(name);
            return Err(std::io::Error::other(format!("its attribute `{shown}` differs")));
        }
    }
    Ok(())
}

fn is_device(found: &std::fs::Metadata, device: DeviceNode) -> bool {
    let kind = match device.kind {
        DeviceKind::Character => found.file_type().is_char_device(),
        DeviceKind::Block => found.file_type().is_block_device(),
    };
    kind && found.rdev() == rustix::fs::makedev(device.major, device.minor)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{XattrFlags, lremovexattr, lsetxattr};

    use super::*;
    use crate::put::{PutOptions, PutSource, put};
    use crate::{Argon2Cost, OpenOptions, VaultMetadata, VaultStore};

    fn entry(name: &[u8]) -> SnapshotEntry {
        SnapshotEntry {
            path: b"file".to_vec(),
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mtime_ns: 1,
            node: SnapshotEntryKind::File { size: 0, pieces: Vec::new() },
            hard_link: None,
            attributes: vec![EntryAttribute { name: name.to_vec(), value: b"1".to_vec() }],
        }
    }

    #[test]
    fn an_attribute_that_does_not_come_back_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = VaultStore::open(folder.path().join("vault").to_str().unwrap()).unwrap();
        let state = Some(folder.path().join("state"));
        let options = OpenOptions { state, ..OpenOptions::default() };
        let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
        let vault = Vault::init(store, b"secret", cost, VaultMetadata::Sealed, &options).unwrap();
        // No system has the first.
        for (name, failed) in [("system.sealane", 1), ("user.sealane", 0)] {
            let mut content = &b"content"[..];
            let source = PutSource::Reader(entry(name.as_bytes()), &mut content);
            put(&vault, source, &PutOptions::default()).unwrap();
            let report = vault.drill(&folder.path().join(name), &DrillOptions::default()).unwrap();
            assert_eq!(report.failed.len(), failed, "{:?}", report.failed);
            assert!(report.failed.iter().all(|item| item.reason.contains(name)));
            assert!(report.all && report.entries == 1 - failed as u64);
            assert_eq!(vault.last_proven().unwrap().is_some(), failed == 0);
        }
    }

    #[test]
    fn an_attribute_on_disk_is_compared_byte_by_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"").unwrap();
        let entry = entry(b"user.sealane");
        assert!(compare_attributes(&path, &entry).is_err());
        for (value, is_same) in [(&b"1"[..], true), (b"2", false), (b"", false), (b"12", false)] {
            lsetxattr(&path, "user.sealane", value, XattrFlags::empty()).unwrap();
            assert_eq!(compare_attributes(&path, &entry).is_ok(), is_same, "{value:?}");
        }
        lremovexattr(&path, "user.sealane").unwrap();
        assert!(compare_attributes(&path, &entry).is_err());
    }
}
