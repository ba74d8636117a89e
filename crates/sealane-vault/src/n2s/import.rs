//! A store of blobs as the next snapshot of a vault.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Error, MAX_N2S_BLOB_BYTES, N2sContent, is_blob_name, open, parse, safe_path};
use crate::format::page::{SnapshotEntry, SnapshotEntryKind, compare};
use crate::put::{self, PutOptions, PutReport, PutSource, SkippedItem};
use crate::vault::Vault;

/// A blob whose path in the snapshot is known, and nothing else.
struct N2sImportBlob {
    file: PathBuf,
    name: String,
    modified_s: f64,
}

impl Vault {
    /// Keeps what the blobs below a folder hold as the next snapshot, each compared with its name
    /// and hashes, one in memory at a time.
    ///
    /// A file lies at its blob's path, or at the blob's name if it has no path. Of several blobs
    /// with one path the newest lies there; the others beside it, with `.n2s-` and the first digits
    /// of their names behind. Blobs that fail are named in [`PutReport::skipped`] with a code; the
    /// rest is kept. The format knows no modes, so that files have 0644.
    ///
    /// # Errors
    /// As [`Vault::put_paths`].
    pub fn import_n2s(
        &self,
        store: &Path,
        passphrase: Option<&[u8]>,
        options: &PutOptions,
    ) -> Result<PutReport, crate::Error> {
        let mut skipped = vec![];
        let mut found = BTreeMap::new();
        look(store, &mut found, &mut skipped);
        let mut blobs: Vec<(Vec<u8>, N2sImportBlob)> = paths_of(found);
        blobs.sort_by(|(a, _), (b, _)| compare(a, b));
        let mut blobs = blobs.into_iter();
        let mut next = |skipped: &mut Vec<SkippedItem>| {
            for (path, found) in blobs.by_ref() {
                match read(&found, path, passphrase) {
                    Ok(entry) => return Some(entry),
                    Err(error) => skipped.push(failed(&found.file, error)),
                }
            }
            None
        };
        let mut report = put::put(self, PutSource::Each { from: store, next: &mut next }, options)?;
        skipped.append(&mut report.skipped);
        Ok(PutReport { skipped, ..report })
    }
}

/// Finds every blob by its path. Of what is no blob by its name, nothing is said.
fn look(
    folder: &Path,
    found: &mut BTreeMap<PathBuf, Vec<N2sImportBlob>>,
    skipped: &mut Vec<SkippedItem>,
) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let (path, reason) = (folder.display().to_string(), error.to_string());
            return skipped.push(SkippedItem { path, reason });
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for file in paths {
        if file.is_symlink() {
            continue;
        }
        if file.is_dir() {
            look(&file, found, skipped);
        } else if is_blob_name(&file) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match glance(&file, name) {
                Ok((at, modified_s)) => {
                    let blob = N2sImportBlob { name: name.to_owned(), file, modified_s };
                    found.entry(at).or_default().push(blob);
                }
                Err(error) => skipped.push(failed(&file, error)),
            }
        }
    }
}

/// Where a blob's file goes, and its time, before anything is compared.
fn glance(file: &Path, name: &str) -> Result<(PathBuf, f64), Error> {
    let (parsed, _) = parse::parse(&bytes(file)?)?;
    let path = match parsed.body {
        parse::N2sBody::Sealed { path, .. } | parse::N2sBody::Symlink { path, .. } => Some(path),
        parse::N2sBody::Open { path, .. } => path,
    };
    Ok((safe_path(path.as_deref().unwrap_or(name))?, parsed.modified_s))
}

fn bytes(file: &Path) -> Result<Vec<u8>, Error> {
    let about = fs::metadata(file).map_err(|_| Error::Unreadable)?;
    // A pipe would be waited for.
    if !about.is_file() {
        return Err(Error::Unreadable);
    }
    if about.len() > MAX_N2S_BLOB_BYTES {
        return Err(Error::TooLarge);
    }
    fs::read(file).map_err(|_| Error::Unreadable)
}

/// One path for each blob. What would lie where a folder has to be lies beside it.
fn paths_of(found: BTreeMap<PathBuf, Vec<N2sImportBlob>>) -> Vec<(Vec<u8>, N2sImportBlob)> {
    let parents = found.keys().flat_map(|path| path.ancestors().skip(1));
    let folders: BTreeSet<PathBuf> = parents.map(Path::to_path_buf).collect();
    let mut all = vec![];
    for (shared, mut blobs) in found {
        blobs.sort_by(|a, b| b.modified_s.total_cmp(&a.modified_s));
        for (age, blob) in blobs.into_iter().enumerate() {
            let mut path = shared.as_os_str().as_bytes().to_vec();
            if age > 0 || folders.contains(&shared) {
                path.extend_from_slice(b".n2s-");
                path.extend(blob.name.bytes().take(16));
            }
            all.push((path, blob));
        }
    }
    all
}

/// Opens a blob and makes an entry of it, with the content of a file.
fn read(
    found: &N2sImportBlob,
    path: Vec<u8>,
    passphrase: Option<&[u8]>,
) -> Result<(SnapshotEntry, Vec<u8>), Error> {
    let entry = open(&found.name, &bytes(&found.file)?, passphrase)?;
    let mtime_ns = entry.modified_ns()?;
    let (mode, node, content) = match entry.content {
        N2sContent::File(content) => (0o644, SnapshotEntryKind::Folder, content),
        N2sContent::Symlink(target) => {
            (0o777, SnapshotEntryKind::Link { target: target.into_bytes() }, vec![])
        }
    };
    let (hard_link, attributes) = (None, Vec::new());
    let entry = SnapshotEntry { path, mode, uid: 0, gid: 0, mtime_ns, node, hard_link, attributes };
    Ok((entry, content))
}

fn failed(file: &Path, error: Error) -> SkippedItem {
    let reason = format!("{error} [{}]", error.info().code);
    SkippedItem { path: file.display().to_string(), reason }
}
