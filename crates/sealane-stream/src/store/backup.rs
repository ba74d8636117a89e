//! Copies of a store, made while its hub runs, and stores made from copies.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::fault::{DAMAGED, NO_STORE, StoreFault};
use super::schema::{VERSION, open_for_reading};
use crate::Error;

/// The file of a store.
pub(super) const STORE: &str = "streams.db";
/// The same while it is not complete.
const PART: &str = "streams.db.part";

/// The content of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreBackup {
    /// Streams.
    pub streams: u64,
    /// Messages in them.
    pub messages: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Copies the store in `folder` to `streams.db` in `to`, a new or empty folder. A hub may run on
/// the store: everything that was committed before the call is in the copy, which is what was
/// acknowledged at the levels `os` and `disk`. The copy is durable when this returns, and whatever
/// hub opens it begins new generations. Until then the hub's write-ahead log grows.
///
/// # Errors
/// [`Error::NoStore`], [`Error::TargetExists`] where `to` is in use, [`Error::NotAStore`] where the
/// store is damaged; [`Error::StorageFull`] and [`Error::StorageFailed`].
pub fn backup(folder: &Path, to: &Path) -> Result<StoreBackup, Error> {
    if !folder.join(STORE).is_file() {
        return Err(no_store(folder));
    }
    let (store, source) = (folder.join(STORE), open_for_reading(folder)?);
    into_new(to, &store, |part| copy_all(&source, &store, part))
}

/// Copies what is in the file of `store` and in the log beside it.
fn copy_all(source: &Connection, store: &Path, part: &Path) -> Result<(), Error> {
    // SQLite fills an empty file, and keeps who may read it.
    private(part)?;
    let path = part.to_str().ok_or_else(|| failed(part, "the path is not UTF-8"))?;
    // `VACUUM INTO` reads one snapshot in WAL mode, so that a hub goes on writing.
    let copied = source.execute("VACUUM INTO ?1", [path]);
    copied.map(|_| ()).map_err(|error| unreadable(store, error))
}

/// Makes a store in `folder`, which must have none, from a copy in `from`, which stays.
///
/// # Errors
/// [`Error::NoStore`] where there is no copy, [`Error::NotAStore`] where it is damaged,
/// [`Error::StoreTooNew`], and [`Error::TargetExists`] where `folder` has a store;
/// [`Error::StorageFull`] and [`Error::StorageFailed`].
pub fn restore(from: &Path, folder: &Path) -> Result<StoreBackup, Error> {
    let copy = from.join(STORE);
    if !copy.is_file() {
        return Err(Error::NoStore(said(from, "there is no backup")));
    }
    let has_log = copy.with_extension("db-wal").exists();
    into_new(folder, &copy, |part| {
        // A log beside the file may hold commits that the file lacks, and the mark of a hub that
        // was killed too. SQLite sees both, and a copy of the file alone would lose them.
        if has_log {
            let source = open_for_reading(from)?;
            closed(&source, from, &copy)?;
            copy_all(&source, &copy, part)?;
            // A hub may have come since.
            return closed(&Connection::open(part).map_err(StoreFault::from)?, from, &copy);
        }
        let mut to = private(part)?;
        let copied = File::open(&copy).and_then(|mut from| io::copy(&mut from, &mut to));
        copied.map(|_| ()).map_err(|cause| file_failed(&copy, &cause))
    })
}

/// Refuses a store that a hub uses or was killed on: the last commit of a hub takes the mark
/// `running` away.
fn closed(store: &Connection, from: &Path, path: &Path) -> Result<(), Error> {
    known(store, path)?;
    let closed = "SELECT NOT EXISTS (SELECT 1 FROM meta WHERE name = 'running')";
    let closed = store.query_row(closed, [], |row| row.get(0));
    match closed.map_err(|error| unreadable(path, error))? {
        true => Ok(()),
        false => {
            let cause = "this is a store that a hub uses, no backup";
            Err(Error::NoStore(said(from, cause)))
        }
    }
}

/// The content of a store, once its pages and tables have been found whole. The checksums of single
/// records are checked when they are read. Readers are told of damaged records.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`] naming the first damage, [`Error::StoreTooNew`], and
/// [`Error::StorageFailed`] where the file cannot be read.
pub fn check(folder: &Path) -> Result<StoreBackup, Error> {
    let store = folder.join(STORE);
    if !store.is_file() {
        return Err(no_store(folder));
    }
    check_file(&store, &store)
}

/// When the newest message of a store was stored, in Unix milliseconds by the clock of its hub, or
/// nothing where there is no message. A hub may run on the store.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::StoreTooNew`], [`Error::StorageFailed`].
pub fn newest_ms(folder: &Path) -> Result<Option<u64>, Error> {
    let store = folder.join(STORE);
    if !store.is_file() {
        return Err(no_store(folder));
    }
    let connection = open_for_reading(folder)?;
    known(&connection, &store)?;
    // Times never decrease along a stream: only its last block is looked at.
    let newest = "SELECT max((SELECT last_ms FROM block
             WHERE key BETWEEN number << 40 AND (number << 40) + (1 << 40) - 1
             ORDER BY key DESC LIMIT 1)) FROM stream";
    let newest = connection.query_row(newest, [], |row| row.get::<_, Option<u64>>(0));
    newest.map_err(|error| unreadable(&store, error))
}

/// Makes a store in `folder` by `copy`. What is wrong with its content is told of `source`.
fn into_new(
    folder: &Path,
    source: &Path,
    copy: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<StoreBackup, Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|cause| file_failed(folder, &cause))?;
    let (part, store) = (folder.join(PART), folder.join(STORE));
    // A log that was left beside a store that is gone would be taken for the new one's.
    if ["", "-wal", "-journal"].iter().any(|end| folder.join(format!("{STORE}{end}")).exists()) {
        return Err(Error::TargetExists(folder.display().to_string()));
    }
    // The files that an interrupted copy has left are of no use.
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(folder.join(format!("{PART}{end}")));
    }
    // The mark gives each stream a new generation when it is opened, since messages after the copy
    // are missing.
    let marked = copy(&part).and_then(|()| mark(&part, source));
    // The copy is checked before it gets its name. A damaged one never looks like a backup.
    let copied = marked.and_then(|()| check_file(&part, source));
    let kept = copied.and_then(|backup| {
        let durable = || -> io::Result<()> {
            OpenOptions::new().write(true).open(&part)?.sync_all()?;
            // The bytes are synced before the name. A crash leaves a part that the next run
            // removes.
            fs::rename(&part, &store)?;
            File::open(folder)?.sync_all()
        };
        durable().map(|()| backup).map_err(|cause| file_failed(folder, &cause))
    });
    if kept.is_err() {
        let _ = fs::remove_file(&part);
    }
    kept
}

/// A new file that its owner alone can read: the bodies of open streams are in it.
fn private(part: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    opened.map_err(|cause| file_failed(part, &cause))
}

/// Says in the copy that it is one: the store that it was made of may have gone on, so that the
/// same offsets would name other messages.
fn mark(part: &Path, source: &Path) -> Result<(), Error> {
    let connection = Connection::open(part).map_err(StoreFault::from)?;
    known(&connection, source)?;
    // One file without a log beside it: the copy of a copy may be in either mode.
    let single = connection.pragma_update(None, "journal_mode", "DELETE");
    let insert = "INSERT OR REPLACE INTO meta VALUES ('copied', 1)";
    single.and_then(|()| connection.execute(insert, [])).map_err(StoreFault::from)?;
    Ok(())
}

pub(super) fn no_store(folder: &Path) -> Error {
    Error::NoStore(said(folder, "there is no store"))
}

/// Refuses what this program cannot read.
pub(super) fn known(connection: &Connection, path: &Path) -> Result<(), Error> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: i64 = version.map_err(|error| unreadable(path, error))?;
    match found {
        1..=VERSION => Ok(()),
        ..1 => Err(Error::NotAStore(said(path, NO_STORE))),
        _ => Err(Error::StoreTooNew { found, known: VERSION }),
    }
}

/// Looks at every page of the file at `path`, and tells what is wrong of `source`.
fn check_file(path: &Path, source: &Path) -> Result<StoreBackup, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(StoreFault::from)?;
    known(&connection, source)?;
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    let found: String = found.map_err(|error| unreadable(source, error))?;
    if found != "ok" {
        return Err(Error::NotAStore(said(source, DAMAGED)));
    }
    let count = |sql: &str| -> Result<u64, Error> {
        let count = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).optional();
        Ok(count.map_err(StoreFault::from)?.unwrap_or_default() as u64)
    };
    Ok(StoreBackup {
        streams: count("SELECT count(*) FROM stream")?,
        messages: count("SELECT coalesce(sum(count), 0) FROM block")?,
        bytes: fs::metadata(path).map_err(|cause| file_failed(path, &cause))?.len(),
    })
}

/// The damage of a file that SQLite takes for no database, or for a damaged one.
pub(super) fn unreadable(path: &Path, error: rusqlite::Error) -> Error {
    match StoreFault::from(error) {
        StoreFault::NotAStore(what) => Error::NotAStore(said(path, &what)),
        other => other.into(),
    }
}

fn failed(path: &Path, what: &str) -> Error {
    Error::StorageFailed(said(path, what))
}

fn said(path: &Path, what: &str) -> String {
    format!("{}: {what}", path.display())
}

fn file_failed(path: &Path, cause: &io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::StorageFull => Error::StorageFull,
        _ => failed(path, &cause.to_string()),
    }
}
