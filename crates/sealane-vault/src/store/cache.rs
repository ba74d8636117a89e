//! Small objects of a bucket, as this machine has read them before.
//!
//! An object of a vault never changes, so that it need not be read twice. A copy lies under the
//! BLAKE3 hash of its bytes, which is checked with each use. An index names the key and entity tag
//! under which each was listed. A copy that is damaged or gone is read from the bucket again.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ListedObject, spool_name};
use crate::Error;
use crate::format::pack::ObjectHash;
use crate::limits::{MAX_CACHE_BYTES, MAX_CACHE_INDEX_BYTES, MAX_CACHED_OBJECT_BYTES};
use crate::manifest::private_folder;
use crate::wire::{from_hex, hex};

const INDEX: &str = "index";
const MAGIC: &str = "sealane-objects-1";

/// The copy of an object: how it was listed, and what its bytes hash to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedObject {
    size: u64,
    tag: String,
    hash: ObjectHash,
}

/// The copies of one bucket's objects, in a folder of this machine.
#[derive(Debug)]
pub(super) struct StoreCache {
    folder: PathBuf,
    known: Mutex<BTreeMap<String, CachedObject>>,
}

impl StoreCache {
    /// The cache in a folder, which is made if need be. Whatever is wrong there, it is empty then.
    pub(super) fn open(folder: &Path) -> Result<StoreCache, Error> {
        private_folder(folder)?;
        let index = folder.join(INDEX);
        let is_short = fs::metadata(&index).is_ok_and(|found| found.len() <= MAX_CACHE_INDEX_BYTES);
        let text = is_short.then(|| fs::read_to_string(&index).ok()).flatten();
        let known = text.and_then(|text| parse(&text)).unwrap_or_default();
        let cache = StoreCache { folder: folder.to_owned(), known: Mutex::new(known) };
        cache.sweep();
        Ok(cache)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, CachedObject>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a listed object, if they were read before and are as they were.
    pub(super) fn get(&self, object: &ListedObject) -> Option<Vec<u8>> {
        let known = self.known().get(&object.key).cloned()?;
        if known.size != object.size || Some(&known.tag) != object.tag.as_ref() {
            return None;
        }
        let bytes = fs::read(self.folder.join(hex(&known.hash))).ok()?;
        (*blake3::hash(&bytes).as_bytes() == known.hash).then_some(bytes)
    }

    /// Keeps a copy of what the bucket gave for a key under this tag. [`StoreCache::write`] makes
    /// it last.
    pub(super) fn add(&self, key: &str, tag: Option<&str>, bytes: &[u8]) {
        let Some(tag) = tag.filter(|tag| is_word(tag)) else { return };
        if bytes.len() > MAX_CACHED_OBJECT_BYTES || !is_word(key) {
            return;
        }
        let size = bytes.len() as u64;
        let held: u64 = self.known().values().map(|known| known.size).sum();
        // A walk through more than fits would push out each copy before it is used again.
        if held.saturating_add(size) > MAX_CACHE_BYTES {
            return;
        }
        let hash = *blake3::hash(bytes).as_bytes();
        if self.write_file(&hex(&hash), bytes).is_ok() {
            let tag = tag.to_owned();
            self.known().insert(key.to_owned(), CachedObject { size, tag, hash });
        }
    }

    /// Drops the copy of one object.
    pub(super) fn remove(&self, key: &str) {
        if let Some(object) = self.known().remove(key) {
            let _ = fs::remove_file(self.folder.join(hex(&object.hash)));
        }
    }

    /// Drops the copies of objects that a listing of `prefix` does not show any more.
    pub(super) fn retain(&self, prefix: &str, listed: &[ListedObject]) {
        let there: HashSet<&str> = listed.iter().map(|object| object.key.as_str()).collect();
        let mut known = self.known();
        let is_gone = |key: &String| key.starts_with(prefix) && !there.contains(key.as_str());
        let gone: Vec<String> = known.keys().filter(|key| is_gone(key)).cloned().collect();
        for object in gone.iter().filter_map(|key| known.remove(key)) {
            // A copy that cannot be removed now is swept by a later run.
            let _ = fs::remove_file(self.folder.join(hex(&object.hash)));
        }
    }

    /// Writes the index. If that fails, the next run reads the objects again.
    pub(super) fn write(&self) {
        let mut text = format!("{MAGIC}\n");
        for (key, CachedObject { size, tag, hash }) in self.known().iter() {
            text.push_str(&format!("{key} {size} {tag} {}\n", hex(hash)));
        }
        text.push_str(&format!("{}\n", blake3::hash(text.as_bytes()).to_hex()));
        let _ = self.write_file(INDEX, text.as_bytes());
    }

    /// Forgets all copies.
    pub(super) fn clear(&self) {
        self.known().clear();
        self.sweep();
        self.write();
    }

    /// A cut file is as good as none, so that nothing waits for the disk.
    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let draft = self.folder.join(spool_name("draft")?);
        let written = File::create_new(&draft)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&draft, self.folder.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.map_err(|cause| Error::file(&draft, cause))
    }

    /// Removes files that the index does not name: another run may have left them.
    fn sweep(&self) {
        let known: HashSet<String> = self.known().values().map(|known| hex(&known.hash)).collect();
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name != INDEX && !known.contains(&name) {
                // If another run uses the copy right now, it reads the object from the bucket.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// Whether a key or a tag can stand in a line of the index.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads an index; none if it is not whole.
fn parse(text: &str) -> Option<BTreeMap<String, CachedObject>> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = text.get(..body.len() + 1)?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != sum {
        return None;
    }
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (key, size, tag, hash) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let (size, tag, hash) = (size.parse().ok()?, tag.to_owned(), from_hex(hash)?);
        Some((key.to_owned(), CachedObject { size, tag, hash }))
    };
    body.strip_prefix(MAGIC)?.strip_prefix('\n')?.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(key: &str, bytes: &[u8], tag: &str) -> ListedObject {
        let (key, tag) = (key.to_owned(), Some(tag.to_owned()));
        ListedObject { key, size: bytes.len() as u64, modified_ms: 0, tag }
    }

    #[test]
    fn a_copy_counts_for_the_object_that_was_read_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = StoreCache::open(folder.path()).unwrap();
        cache.add("snapshots/0000000001", Some("\"a\""), b"one");
        cache.add("snapshots/0000000002", None, b"two");
        cache.add("snapshots/a name", Some("\"b\""), b"three");
        cache.write();
        let cache = StoreCache::open(folder.path()).unwrap();
        let one = listed("snapshots/0000000001", b"one", "\"a\"");
        assert_eq!(cache.get(&one).unwrap(), b"one");
        for other in [
            listed("snapshots/0000000001", b"one", "\"b\""),
            listed("snapshots/0000000001", b"longer", "\"a\""),
            ListedObject { tag: None, ..one.clone() },
            listed("snapshots/0000000002", b"two", "\"a\""),
            listed("snapshots/a name", b"three", "\"b\""),
        ] {
            assert_eq!(cache.get(&other), None, "{other:?}");
        }
        cache.retain("keys/", &[]);
        assert!(cache.get(&one).is_some());
        cache.retain("snapshots/", &[]);
        assert!(cache.get(&one).is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the index alone");
    }

    #[test]
    fn a_damaged_copy_or_index_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let one = listed("snapshots/0000000001", b"one", "\"a\"");
        let filled = || {
            let cache = StoreCache::open(folder.path()).unwrap();
            cache.add(&one.key, one.tag.as_deref(), b"one");
            cache.write();
        };
        filled();
        let copy = folder.path().join(blake3::hash(b"one").to_hex().as_str());
        fs::write(&copy, b"two").unwrap();
        assert_eq!(StoreCache::open(folder.path()).unwrap().get(&one), None);
        filled();
        let index = folder.path().join(INDEX);
        let whole = fs::read(&index).unwrap();
        for end in 0..whole.len() {
            fs::write(&index, &whole[..end]).unwrap();
            let cut = StoreCache::open(folder.path()).unwrap();
            assert_eq!(cut.get(&one), None, "{end}");
        }
        let text = String::from_utf8(whole).unwrap().replace(" 3 ", " 4 ");
        fs::write(&index, text).unwrap();
        assert_eq!(StoreCache::open(folder.path()).unwrap().known().len(), 0);
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let folder = tempfile::tempdir().unwrap();
        let cache = StoreCache::open(folder.path()).unwrap();
        cache.add("snapshots/1", Some("a"), &vec![0; MAX_CACHED_OBJECT_BYTES + 1]);
        assert_eq!(cache.known().len(), 0);
        let size = MAX_CACHE_BYTES - 10;
        let held = CachedObject { size, tag: "a".to_owned(), hash: [0; 32] };
        cache.known().insert("snapshots/2".to_owned(), held);
        cache.add("snapshots/3", Some("a"), &[0; 11]);
        assert_eq!(cache.known().len(), 1);
        cache.add("snapshots/3", Some("a"), &[0; 10]);
        assert_eq!(cache.known().len(), 2);
    }
}
