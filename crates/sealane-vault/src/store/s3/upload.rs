//! One large object in parts, continued where a killed run stopped.
//!
//! A journal beside the spooled packs names the upload and its parts with the hash of each, a line
//! per part, written once the bucket has acknowledged it. A line that was cut costs one part.
//!
//! Its name is that of the object at its server. One run at a time holds it by a lock; another run
//! that sends the same object meanwhile has a journal of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{MAX_S3_PARTS_IN_FLIGHT, MAX_UPLOAD_JOURNAL_BYTES, S3_PART_BYTES};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::aws::AmazonS3;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Location;

use super::super::outage::OutageCause;
use super::super::spool_name;
use crate::Error;

const MAGIC: &str = "sealane-upload-1 ";

/// The reason why an upload stopped.
#[derive(Debug)]
pub(super) enum S3UploadError {
    /// The spooled file or the journal.
    File(io::Error),
    /// The bucket.
    Bucket(object_store::Error),
}

impl S3UploadError {
    pub(super) fn into_error(self, key: &str) -> Error {
        match self {
            S3UploadError::File(cause) => Error::store(key, cause),
            S3UploadError::Bucket(cause) => super::failure(key, cause),
        }
    }
}

impl std::fmt::Display for S3UploadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            S3UploadError::File(cause) => cause.fmt(f),
            S3UploadError::Bucket(cause) => cause.fmt(f),
        }
    }
}

impl OutageCause for S3UploadError {
    fn may_pass(&self) -> bool {
        matches!(self, S3UploadError::Bucket(cause) if cause.may_pass())
    }
}

impl From<io::Error> for S3UploadError {
    fn from(cause: io::Error) -> S3UploadError {
        S3UploadError::File(cause)
    }
}

impl From<object_store::Error> for S3UploadError {
    fn from(cause: object_store::Error) -> S3UploadError {
        S3UploadError::Bucket(cause)
    }
}

/// A file on its way to be an object.
pub(super) struct S3Upload<'a> {
    bucket: &'a AmazonS3,
    at: Location,
    file: &'a Path,
    size: u64,
    /// The most parts that the bucket has had of one upload. An upload that is begun anew has to
    /// get further to count as progress: else a bucket that forgets uploads is tried for ever.
    pub(super) finished: AtomicU64,
}

impl<'a> S3Upload<'a> {
    pub(super) fn new(bucket: &'a AmazonS3, at: Location, file: &'a Path, size: u64) -> Self {
        S3Upload { bucket, at, file, size, finished: AtomicU64::new(0) }
    }

    /// Uploads the file. An earlier upload that the bucket no longer knows is begun anew, once.
    pub(super) async fn run(&self, journal: &UploadJournal) -> Result<(), S3UploadError> {
        let earlier = S3PendingUpload::read(&journal.path);
        if let Some(earlier) = earlier.filter(|earlier| earlier.at == self.at) {
            match self.proceed(earlier, journal).await {
                Err(S3UploadError::Bucket(object_store::Error::NotFound { .. })) => {}
                outcome => return outcome,
            }
        }
        let id = self.bucket.create_multipart(&self.at).await?;
        let begun = S3PendingUpload { at: self.at.clone(), id, parts: vec![] };
        journal.begin(&begun)?;
        self.proceed(begun, journal).await
    }

    /// Sends the parts that are missing, and makes the object of all.
    async fn proceed(
        &self,
        upload: S3PendingUpload,
        journal: &UploadJournal,
    ) -> Result<(), S3UploadError> {
        let file = File::open(self.file)?;
        let count = self.size.div_ceil(S3_PART_BYTES);
        let (file, lines, upload) = (&file, &journal.lines, &upload);
        let finished = &AtomicU64::new(upload.parts.len() as u64);
        let parts: Vec<PartId> = stream::iter(0..count)
            .map(|index| self.part(index, file, upload, lines, finished))
            .buffered(MAX_S3_PARTS_IN_FLIGHT)
            .try_collect()
            .await?;
        self.bucket.complete_multipart(&self.at, &upload.id, parts).await?;
        Ok(journal.remove()?)
    }

    async fn part(
        &self,
        index: u64,
        file: &File,
        upload: &S3PendingUpload,
        mut lines: &File,
        finished: &AtomicU64,
    ) -> Result<PartId, S3UploadError> {
        let offset = index * S3_PART_BYTES;
        let length = S3_PART_BYTES.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset)?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let known = upload.parts.iter().find(|part| part.index == index && part.hash == hash);
        if let Some(known) = known {
            return Ok(PartId { content_id: known.content_id.clone() });
        }
        let number = usize::try_from(index).unwrap_or(usize::MAX);
        let sent = self.bucket.put_part(&self.at, &upload.id, number, bytes.into()).await?;
        lines.write_all(format!("{index} {hash} {}\n", sent.content_id).as_bytes())?;
        let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
        self.finished.fetch_max(finished, Ordering::Relaxed);
        Ok(sent)
    }
}

/// An upload as its journal tells it.
#[derive(Debug)]
pub(super) struct S3PendingUpload {
    at: Location,
    id: String,
    parts: Vec<S3UploadPart>,
}

#[derive(Debug, PartialEq)]
struct S3UploadPart {
    index: u64,
    hash: String,
    content_id: String,
}

impl S3PendingUpload {
    /// Reads a journal; none if the file is something else.
    pub(super) fn read(journal: &Path) -> Option<S3PendingUpload> {
        if fs::metadata(journal).ok()?.len() > MAX_UPLOAD_JOURNAL_BYTES {
            return None;
        }
        S3PendingUpload::parse(&fs::read_to_string(journal).ok()?)
    }

    /// Only whole lines count.
    fn parse(text: &str) -> Option<S3PendingUpload> {
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let (id, at) = lines.next()?.strip_prefix(MAGIC)?.split_once(' ')?;
        let at = Location::parse(at).ok()?;
        let parts = lines.map_while(S3UploadPart::parse).collect();
        Some(S3PendingUpload { at, id: id.to_owned(), parts })
    }

    fn first_line(&self) -> String {
        format!("{MAGIC}{} {}\n", self.id, self.at)
    }

    /// Has the bucket forget the parts.
    pub(super) async fn abort(self, bucket: &AmazonS3) -> object_store::Result<()> {
        bucket.abort_multipart(&self.at, &self.id).await
    }
}

impl S3UploadPart {
    fn parse(line: &str) -> Option<S3UploadPart> {
        let (index, rest) = line.split_once(' ')?;
        let (hash, content_id) = rest.split_once(' ')?;
        let index = index.parse().ok()?;
        Some(S3UploadPart { index, hash: hash.to_owned(), content_id: content_id.to_owned() })
    }
}

/// The journal of an upload, which no other run writes to while this one does.
pub(super) struct UploadJournal {
    path: PathBuf,
    lines: File,
}

impl UploadJournal {
    /// The journal of an object at a place, in a spool. If another run holds it, a new one.
    pub(super) fn open(spool: &Path, place: &str, key: &str) -> io::Result<UploadJournal> {
        let known = spool.join(journal_name(place, key));
        if let Some(journal) = UploadJournal::lock(&known)? {
            return Ok(journal);
        }
        let own = spool.join(spool_name("upload").map_err(io::Error::other)?);
        UploadJournal::lock(&own)?.ok_or_else(|| io::Error::other("a journal is held by others"))
    }

    /// The file, unless another run holds it or has just removed it.
    fn lock(path: &Path) -> io::Result<Option<UploadJournal>> {
        let lines = OpenOptions::new().create(true).append(true).open(path)?;
        match lines.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(cause)) => return Err(cause),
        }
        let held = lines.metadata()?;
        let is_there = |found: fs::Metadata| (found.dev(), found.ino()) == (held.dev(), held.ino());
        let is_held = fs::metadata(path).is_ok_and(is_there);
        Ok(is_held.then(|| UploadJournal { path: path.to_owned(), lines }))
    }

    /// Whether a run holds a journal now.
    pub(super) fn is_held(path: &Path) -> bool {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
    }

    fn begin(&self, upload: &S3PendingUpload) -> io::Result<()> {
        self.lines.set_len(0)?;
        (&self.lines).write_all(upload.first_line().as_bytes())
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// The name of an object's journal. Two servers may have a bucket of one name.
fn journal_name(place: &str, key: &str) -> String {
    let name = blake3::hash(format!("{place}\n{key}").as_bytes()).to_hex();
    format!("{}.upload", name.get(..32).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_places_and_no_two_runs_share_a_journal() {
        let key = "packs/ab/cd";
        let places = ["http://one s3://bucket/a", "http://two s3://bucket/a", "s3://bucket/a"];
        let names: std::collections::BTreeSet<String> =
            places.iter().map(|place| journal_name(place, key)).collect();
        assert_eq!(names.len(), 3);
        let spool = tempfile::tempdir().unwrap();
        let open = || UploadJournal::open(spool.path(), places[0], key).unwrap();
        let upload = |id: &str| S3PendingUpload {
            at: Location::from("a/packs/ab/cd"),
            id: id.into(),
            parts: vec![],
        };
        let (first, second) = (open(), open());
        assert_ne!(first.path, second.path);
        assert!(UploadJournal::is_held(&first.path) && UploadJournal::is_held(&second.path));
        first.begin(&upload("one")).unwrap();
        second.begin(&upload("two")).unwrap();
        let id = |journal: &UploadJournal| S3PendingUpload::read(&journal.path).unwrap().id;
        assert_eq!((id(&first), id(&second)), ("one".to_owned(), "two".to_owned()));
        // Both end, in any order, and what a killed run left is continued.
        second.remove().unwrap();
        let known = first.path.clone();
        drop(first);
        assert!(!UploadJournal::is_held(&known));
        let next = open();
        assert_eq!((&next.path, &*id(&next)), (&known, "one"));
        next.remove().unwrap();
        assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_journal_that_was_cut_keeps_its_whole_lines() {
        let upload = S3PendingUpload {
            at: Location::from("a b/packs/ab"),
            id: "id-1".into(),
            parts: vec![],
        };
        let text = upload.first_line() + "0 aa \"etag 0\"\n1 bb \"etag 1\"\n";
        let whole = S3PendingUpload::parse(&text).unwrap();
        assert_eq!((&whole.at, &*whole.id, whole.parts.len()), (&upload.at, "id-1", 2));
        assert_eq!(whole.parts[1].content_id, "\"etag 1\"");
        for end in 0..text.len() {
            let parts =
                S3PendingUpload::parse(&text[..end]).map(|cut| cut.parts).unwrap_or_default();
            assert!(parts.len() < 2 && whole.parts.starts_with(&parts));
        }
        assert!(S3PendingUpload::parse("a pack\n").is_none());
    }
}
