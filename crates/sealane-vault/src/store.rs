//! Where objects rest: a closed set of stores behind blocking calls.
//!
//! Keys are relative paths with `/`. An object is created if its key is free and is never changed,
//! so that a call that is repeated after a crash does no harm.

mod cache;
mod folder;
mod look;
mod outage;
mod s3;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::format::pack::ObjectHash;
use crate::keys::random;
use crate::limits::{MAX_SPOOL_AGE_MS, MAX_STORE_REQUESTS, S3_SINGLE_PUT_BYTES};
use crate::wire::hex;

pub use folder::FolderStore;
pub(crate) use folder::create_from;
pub use outage::StoreRetry;
pub use s3::S3Store;

use crate::Error;

/// Bytes that are read at once of an object that is hashed.
const BLOCK_BYTES: usize = 1 << 20;

/// An object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its key.
    pub key: String,
    /// Its length in bytes.
    pub size: u64,
    /// When the store says it was written: milliseconds since 1970-01-01 UTC.
    pub modified_ms: i64,
    /// Another one for other bytes, where a store says so: the entity tag of a bucket.
    pub tag: Option<String>,
}

/// The outcome of a conditional creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The object is there now, durable.
    Created,
    /// The key was taken; nothing was written.
    Existed,
}

/// The file in the spool that keeps a little room free for what makes room.
const RESERVE: &str = "reserve";

/// A name in the spool that nobody else has, nor can know: hosts that share a folder may have equal
/// process ids, and somebody may lay a link under a name that is known.
pub(crate) fn spool_name(kind: &str) -> Result<String, Error> {
    Ok(format!("{}.{kind}", hex(&random::<16>()?)))
}

/// A place of objects.
#[derive(Debug)]
#[non_exhaustive]
pub enum VaultStore {
    /// A folder of this machine.
    Folder(FolderStore),
    /// A bucket of an S3-compatible store. Boxed, since its client is large.
    S3(Box<S3Store>),
}

/// Takes the bytes of an object, or why they cannot be had.
type ObjectTaker<'a> = dyn FnMut(&ListedObject, Result<Vec<u8>, Error>) -> Result<(), Error> + 'a;

impl VaultStore {
    /// The store at a folder's path, or at `s3://bucket/prefix`. Outages of a bucket are waited
    /// out, and nobody is told.
    ///
    /// # Errors
    /// [`Error::Store`] when it cannot be reached. That there is a vault in it is not checked.
    pub fn open(location: &str) -> Result<VaultStore, Error> {
        VaultStore::open_with(location, StoreRetry::default())
    }

    /// The same with outages waited out as `retry` says.
    ///
    /// # Errors
    /// As [`VaultStore::open`].
    pub fn open_with(location: &str, retry: StoreRetry) -> Result<VaultStore, Error> {
        if location.starts_with("s3://") {
            return Ok(VaultStore::S3(Box::new(S3Store::new(location)?.retrying(retry))));
        }
        Ok(VaultStore::Folder(FolderStore::new(Path::new(location))))
    }

    /// Sends no more than so many bytes a second from now on. Gives whether that can be: nothing is
    /// sent to a folder.
    pub fn limit_upload(&self, bytes_per_second: u64) -> bool {
        match self {
            VaultStore::Folder(_) => false,
            VaultStore::S3(bucket) => {
                bucket.limit_upload(bytes_per_second);
                true
            }
        }
    }

    /// The name to show to people.
    pub fn location(&self) -> String {
        match self {
            VaultStore::Folder(folder) => folder.root().display().to_string(),
            VaultStore::S3(bucket) => bucket.location().to_owned(),
        }
    }

    /// Creates a small object, durable on return.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::StoreFull`].
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, Error> {
        match self {
            VaultStore::Folder(folder) => folder.put(key, bytes),
            VaultStore::S3(bucket) => bucket.put(key, bytes),
        }
    }

    /// Creates a small object that others rely on. It counts as created once the store has given it
    /// back.
    ///
    /// # Errors
    /// As [`VaultStore::put`]; [`Error::Forgot`] when it is not there then, [`Error::Overwrites`]
    /// when another is.
    pub(crate) fn put_and_read(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, Error> {
        if self.put(key, bytes)? == CreateOutcome::Existed {
            return Ok(CreateOutcome::Existed);
        }
        let found = match self {
            VaultStore::Folder(folder) => folder.get(key, bytes.len()),
            VaultStore::S3(bucket) => bucket.get_back(key, bytes.len()),
        };
        match found {
            Ok(found) if found == bytes => Ok(CreateOutcome::Created),
            Ok(_) | Err(Error::TooLarge { .. }) => Err(Error::Overwrites(self.location())),
            Err(Error::Missing(key)) => Err(Error::Forgot(key)),
            Err(error) => Err(error),
        }
    }

    /// Refuses a store that writes over objects although it is told not to. Each opened store is
    /// asked once, with an object of a few bytes that is removed again.
    ///
    /// # Errors
    /// [`Error::Overwrites`], [`Error::Forgot`], [`Error::Store`].
    pub(crate) fn check_condition(&self) -> Result<(), Error> {
        match self {
            // The system's call is the condition.
            VaultStore::Folder(_) => Ok(()),
            VaultStore::S3(bucket) => bucket.check_condition(),
        }
    }

    /// Creates an object from a finished file of [`VaultStore::spool`], durable on return. The file
    /// is gone afterwards, whether the key was free or not.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::StoreFull`]. Then the file stays.
    pub fn put_file(&self, key: &str, file: &Path) -> Result<CreateOutcome, Error> {
        match self {
            VaultStore::Folder(folder) => folder.put_file(key, file),
            VaultStore::S3(bucket) => bucket.put_file(key, file),
        }
    }

    /// The same for an object that is named by the BLAKE3 hash of its bytes. What lies under that
    /// name and is not that has been damaged, and is replaced.
    ///
    /// # Errors
    /// As [`VaultStore::put_file`].
    pub(crate) fn put_hashed(
        &self,
        key: &str,
        file: &Path,
        hash: &ObjectHash,
    ) -> Result<CreateOutcome, Error> {
        let size = fs::metadata(file).map_err(|cause| Error::store(key, cause))?.len();
        if let VaultStore::S3(bucket) = self
            && size <= S3_SINGLE_PUT_BYTES
        {
            // The condition of the one request tells whether something is there.
            return bucket.put_hashed(key, file);
        }
        if self.size(key)?.is_some() && !self.has(key, hash)? {
            self.delete(key)?;
        }
        self.put_file(key, file)
    }

    /// Whether there is an object whose bytes have this BLAKE3 hash.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn has(&self, key: &str, hash: &ObjectHash) -> Result<bool, Error> {
        let Some(size) = self.size(key)? else { return Ok(false) };
        let (mut hasher, mut block, mut read) = (blake3::Hasher::new(), vec![0; BLOCK_BYTES], 0);
        while read < size {
            let left = usize::try_from(size - read).unwrap_or(usize::MAX);
            let Some(part) = block.get_mut(..left.min(BLOCK_BYTES)) else { break };
            match self.get_range(key, read, part) {
                Err(error) if error.is_damage() => return Ok(false),
                other => other?,
            }
            hasher.update(part);
            read += part.len() as u64;
        }
        Ok(hasher.finalize().as_bytes() == hash)
    }

    /// The folder in which packs are written before they become objects. It exists on return.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn spool(&self) -> Result<PathBuf, Error> {
        match self {
            VaultStore::Folder(folder) => folder.spool(),
            VaultStore::S3(bucket) => bucket.spool(),
        }
    }

    /// Frees the room that is kept for what makes room. Gives whether there was any.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn use_reserve(&self) -> Result<bool, Error> {
        match self {
            VaultStore::Folder(folder) => folder.use_reserve(),
            VaultStore::S3(_) => Ok(false),
        }
    }

    /// A whole object of at most `max` bytes.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::TooLarge`] before memory is taken, [`Error::Store`].
    pub fn get(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        match self {
            VaultStore::Folder(folder) => folder.get(key, max),
            VaultStore::S3(bucket) => bucket.get(key, max),
        }
    }

    /// An object that was listed, of at most `max` bytes: from the cache if this machine has read
    /// it before.
    ///
    /// # Errors
    /// As [`VaultStore::get`].
    pub(crate) fn get_listed(&self, object: &ListedObject, max: usize) -> Result<Vec<u8>, Error> {
        match self {
            VaultStore::Folder(folder) => folder.get(&object.key, max),
            VaultStore::S3(bucket) => bucket.get_listed(object, max),
        }
    }

    /// An object by its key: as [`VaultStore::get_listed`] if the look that lasts has listed it.
    ///
    /// # Errors
    /// As [`VaultStore::get`].
    pub(crate) fn get_seen(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        match self {
            VaultStore::Folder(folder) => folder.get(key, max),
            VaultStore::S3(bucket) => bucket.get_seen(key, max),
        }
    }

    /// Gives listed objects to `take` in their order, each as [`VaultStore::get_listed`] would.
    /// From a bucket several are read at a time.
    ///
    /// # Errors
    /// The first of `take`.
    pub(crate) fn get_each(
        &self,
        objects: &[ListedObject],
        max: usize,
        take: &mut ObjectTaker<'_>,
    ) -> Result<(), Error> {
        match self {
            VaultStore::Folder(folder) => {
                objects.iter().try_for_each(|object| take(object, folder.get(&object.key, max)))
            }
            VaultStore::S3(bucket) => bucket.get_each(objects, max, take),
        }
    }

    /// How many objects are read at a time: a disk has nothing from more than one.
    pub(crate) fn requests_at_once(&self) -> usize {
        match self {
            VaultStore::Folder(_) => 1,
            VaultStore::S3(_) => MAX_STORE_REQUESTS,
        }
    }

    /// Does `work` for each item, and gives the outcomes in their order. Where each waits for a
    /// bucket, several are under way at a time.
    pub(crate) fn for_each<I: Sync, T: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I) -> T + Sync,
    ) -> Vec<T> {
        if self.requests_at_once() == 1 {
            return items.iter().map(work).collect();
        }
        let mut outcomes = Vec::with_capacity(items.len());
        for some in items.chunks(self.requests_at_once()) {
            let work = &work;
            outcomes.extend(std::thread::scope(|scope| {
                let under_way: Vec<_> =
                    some.iter().map(|item| scope.spawn(move || work(item))).collect();
                let join = |one: std::thread::ScopedJoinHandle<'_, T>| {
                    one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                under_way.into_iter().map(join).collect::<Vec<_>>()
            }));
        }
        outcomes
    }

    /// Remembers small objects of a bucket in `folder`, which is this machine's alone. What is
    /// found there is checked before it is used.
    pub(crate) fn remember_in(&self, folder: &Path) {
        if let VaultStore::S3(bucket) = self {
            bucket.remember_in(folder);
        }
    }

    /// Forgets an object that was given and is damaged: the bucket may have it whole later, under
    /// the same tag.
    pub(crate) fn doubt(&self, key: &str) {
        if let VaultStore::S3(bucket) = self {
            bucket.doubt(key);
        }
    }

    /// Forgets what is remembered: from here on each object is read from the bucket again.
    pub(crate) fn forget(&self) {
        if let VaultStore::S3(bucket) = self {
            bucket.forget();
        }
    }

    /// A look that lasts as long as the guard.
    pub(crate) fn look(&self) -> StoreLookGuard<'_> {
        self.begin_look();
        StoreLookGuard { store: self }
    }

    /// Begins a look at a bucket: until it ends, a listing that was made counts for all that ask
    /// for the same, unless this store writes there.
    pub(crate) fn begin_look(&self) {
        if let VaultStore::S3(bucket) = self {
            bucket.look().begin();
        }
    }

    /// Ends the look that began last.
    pub(crate) fn end_look(&self) {
        if let VaultStore::S3(bucket) = self {
            bucket.look().end();
        }
    }

    /// Lists the objects below these prefixes anew from here on, also within a look.
    pub(crate) fn look_anew_at(&self, prefixes: &[&str]) {
        if let VaultStore::S3(bucket) = self {
            prefixes.iter().for_each(|prefix| bucket.look().wrote(prefix));
        }
    }

    /// Lists everything anew from here on, also within a look.
    pub(crate) fn look_anew(&self) {
        if let VaultStore::S3(bucket) = self {
            bucket.look().forget();
        }
    }

    /// Ends all looks: what removes objects goes by no older listing.
    pub(crate) fn stop_looking(&self) {
        if let VaultStore::S3(bucket) = self {
            bucket.look().stop();
        }
    }

    /// Whether an object is there, as the look that lasts knows it; none if it does not.
    pub(crate) fn is_listed(&self, key: &str) -> Option<bool> {
        match self {
            VaultStore::Folder(_) => None,
            VaultStore::S3(bucket) => bucket.look().has(key),
        }
    }

    /// Fills `out` from `offset` of an object.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Truncated`] when the object ends before, [`Error::Store`].
    pub fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        match self {
            VaultStore::Folder(folder) => folder.get_range(key, offset, out),
            VaultStore::S3(bucket) => bucket.get_range(key, offset, out),
        }
    }

    /// An object's length, if it is there.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self {
            VaultStore::Folder(folder) => folder.size(key),
            VaultStore::S3(bucket) => bucket.size(key),
        }
    }

    /// All objects whose key begins with `prefix`, which ends in `/` or is empty, sorted by key.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, Error> {
        match self {
            VaultStore::Folder(folder) => folder.list(prefix),
            VaultStore::S3(bucket) => bucket.list(prefix),
        }
    }

    /// Removes an object; one that is not there is none to remove.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        match self {
            VaultStore::Folder(folder) => folder.delete(key),
            VaultStore::S3(bucket) => bucket.delete(key),
        }
    }
}

/// A look at a store that lasts as long as this.
pub(crate) struct StoreLookGuard<'a> {
    store: &'a VaultStore,
}

impl Drop for StoreLookGuard<'_> {
    fn drop(&mut self) {
        self.store.end_look();
    }
}

/// Removes what killed runs left in a spool a day ago, each file of which `may_go` says so.
///
/// Other hosts may write into the same folder. So a file's age is counted by the clock that gives
/// files their times: a host whose own clock is fast would sweep what another one is writing.
fn sweep(spool: &Path, may_go: impl Fn(&Path) -> bool) {
    if let Ok(now) = time_in(spool) {
        sweep_as_of(now, spool, may_go);
    }
}

/// The time that a new file of a folder has.
fn time_in(folder: &Path) -> io::Result<SystemTime> {
    let probe = folder.join(spool_name("clock").map_err(io::Error::other)?);
    let time = File::create_new(&probe).and_then(|file| file.metadata()?.modified());
    let _ = std::fs::remove_file(&probe);
    time
}

fn sweep_as_of(now: SystemTime, spool: &Path, may_go: impl Fn(&Path) -> bool) {
    for file in std::fs::read_dir(spool).into_iter().flatten().flatten() {
        let written = file.metadata().and_then(|meta| meta.modified());
        let age = written.map(|written| now.duration_since(written));
        if file.file_name() == RESERVE {
            continue;
        }
        let is_old = matches!(age, Ok(Ok(age)) if age > Duration::from_millis(MAX_SPOOL_AGE_MS));
        if is_old && may_go(&file.path()) {
            // If a file cannot be removed now, the next sweep finds it again.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_in_a_spool_are_alike_or_tell_of_the_process() {
        let names: std::collections::BTreeSet<String> =
            (0..100).map(|_| spool_name("pack").unwrap()).collect();
        assert_eq!(names.len(), 100);
        let is_random = |name: &String| name.len() == 32 + ".pack".len();
        assert!(names.iter().all(is_random), "{names:?}");
    }

    #[test]
    fn a_spool_is_swept_by_the_clock_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path();
        let names = |spool: &Path| std::fs::read_dir(spool).unwrap().count();
        std::fs::write(spool.join("1-1.pack"), b"of another host").unwrap();
        let now = time_in(spool).unwrap();
        assert_eq!(names(spool), 1, "the probe is gone");
        let age = Duration::from_millis(MAX_SPOOL_AGE_MS);
        // The folder's server may be behind this machine by years.
        let behind = now - 100 * age;
        let file = File::options().write(true).open(spool.join("1-1.pack")).unwrap();
        for (written, left) in [(behind, 1), (behind - age / 2, 1), (behind - 2 * age, 0)] {
            file.set_modified(written).unwrap();
            sweep_as_of(behind, spool, |_| true);
            assert_eq!(names(spool), left);
        }
    }
}
