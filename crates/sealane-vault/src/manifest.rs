//! The manifest of a vault on this machine: an SQLite database that can be made again from the
//! store.
//!
//! It names where each chunk lies, and the metadata of each file when it was last kept. It lies in
//! the state folder of the user and not with the vault, since it holds paths.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use crate::Error;
use crate::format::chunk::{ChunkDescriptor, ChunkHead, ChunkId, ChunkKind};
use crate::format::pack::{ObjectHash, PackRecord};
use crate::format::page::{FilePiece, read_remembered, write_pieces};
use crate::limits::MAX_MANIFEST_WAIT_MS;
use crate::wire::hex;

const VERSION: i64 = 3;
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pack (
        number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
        header BLOB NOT NULL, condemned INTEGER NOT NULL DEFAULT 0,
        own INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS chunk (
        id BLOB NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
        descriptor INTEGER NOT NULL, plain INTEGER NOT NULL, sealed INTEGER NOT NULL,
        state INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (id, pack)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS seen (
        path BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
        pieces BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS read_index (hash BLOB PRIMARY KEY) WITHOUT ROWID;
";

/// Opened chunks come first, then those of the owner's packs, then those of packs that will stay.
const PLACES: &str = "
    SELECT hash, header, size, offset, descriptor, plain, sealed, state, own
    FROM chunk JOIN pack ON pack.number = chunk.pack WHERE id = ?
    ORDER BY state = 2, state != 1 AND NOT own, condemned LIMIT 64";

/// The user of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManifestAccess {
    /// The owner, who knows the store's packs by their trailers.
    Everything,
    /// A writer, who knows only what it wrote.
    Nothing,
}

/// The writer of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackOrigin {
    /// The owner: what its trailer says is so.
    Owner,
    /// A writer, or whoever has a main key from before a change: what it says is found out.
    Other,
}

/// The state of a chunk in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// It was opened, and is what its id says.
    Opened = 1,
    /// It does not open: it counts as absent.
    Bad = 2,
}

/// The state that a read has found of a chunk in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkFinding {
    pub(crate) id: ChunkId,
    pub(crate) pack: ObjectHash,
    pub(crate) state: ChunkState,
}

/// Where a chunk lies.
#[derive(Debug, Clone)]
pub(crate) struct ChunkLocation {
    pub(crate) pack: ObjectHash,
    pub(crate) header: Vec<u8>,
    pub(crate) pack_bytes: u64,
    pub(crate) offset: u64,
    pub(crate) head: ChunkHead,
    /// Whether the chunk is known not to open there.
    pub(crate) bad: bool,
    /// Whether the owner wrote the pack.
    pub(crate) own: bool,
}

/// The metadata of a file, to see whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VaultFileStat {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

pub(crate) struct ChunkManifest {
    database: Connection,
    /// Whether somebody looks at it with one view.
    viewed: Cell<bool>,
}

impl ChunkManifest {
    /// The manifest in a state folder. One that is damaged or of another version is made anew.
    pub(crate) fn open(folder: &Path, reads: ManifestAccess) -> Result<ChunkManifest, Error> {
        let path = folder.join("manifest.db");
        match ChunkManifest::try_open(&path, reads) {
            Ok(manifest) => Ok(manifest),
            Err(Error::Manifest(error)) if is_damage(&error) => {
                for suffix in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(suffix);
                    let _ = std::fs::remove_file(PathBuf::from(name));
                }
                ChunkManifest::try_open(&path, reads)
            }
            Err(error) => Err(error),
        }
    }

    fn try_open(path: &Path, reads: ManifestAccess) -> Result<ChunkManifest, Error> {
        let database = Connection::open(path)?;
        database.busy_timeout(std::time::Duration::from_millis(MAX_MANIFEST_WAIT_MS))?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        // If a power cut loses rows, they are read from the store again.
        database.pragma_update(None, "synchronous", "NORMAL")?;
        ChunkManifest::prepare(database, reads)
    }

    /// A manifest that lives as long as this value. If it outgrows a small part of memory, the rest
    /// goes to a file without a name.
    pub(crate) fn temporary() -> Result<ChunkManifest, Error> {
        ChunkManifest::prepare(Connection::open("")?, ManifestAccess::Everything)
    }

    fn prepare(database: Connection, reads: ManifestAccess) -> Result<ChunkManifest, Error> {
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > VERSION {
            return Err(Error::Version("manifest.db".to_owned()));
        }
        // Otherwise each new value of a parameter has its statement prepared again.
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if (1..VERSION).contains(&version) {
            // Another process may be doing the same.
            database.execute_batch("BEGIN IMMEDIATE")?;
            let renewed = renew(&database, reads);
            database.execute_batch(if renewed.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
            renewed?;
        }
        database.execute_batch(TABLES)?;
        database.pragma_update(None, "user_version", VERSION)?;
        Ok(ChunkManifest { database, viewed: Cell::new(false) })
    }

    /// Does all of `work` or nothing of it. Within a view, which shows the change afterwards.
    pub(crate) fn transaction<T>(
        &self,
        work: impl FnOnce(&ChunkManifest) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.viewed.get() {
            self.database.execute_batch("COMMIT")?;
        }
        let outcome = self.write(work);
        if self.viewed.get() {
            self.database.execute_batch("BEGIN")?;
        }
        outcome
    }

    fn write<T>(&self, work: impl FnOnce(&ChunkManifest) -> Result<T, Error>) -> Result<T, Error> {
        self.database.execute_batch("BEGIN IMMEDIATE")?;
        let outcome = work(self);
        self.database.execute_batch(if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        outcome
    }

    /// Does `work` with one view of the manifest, which spares each look a lock of its own.
    pub(crate) fn view<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.database.execute_batch("BEGIN")?;
        self.viewed.set(true);
        let outcome = work();
        self.viewed.set(false);
        self.database.execute_batch("COMMIT")?;
        outcome
    }

    pub(crate) fn packs(&self) -> Result<HashSet<ObjectHash>, Error> {
        let mut rows = self.database.prepare("SELECT hash FROM pack")?;
        let packs =
            rows.query_map([], |row| row.get::<_, ObjectHash>(0))?.collect::<Result<_, _>>()?;
        Ok(packs)
    }

    /// The packs that the owner wrote.
    pub(crate) fn own_packs(&self) -> Result<HashSet<ObjectHash>, Error> {
        let mut rows = self.database.prepare("SELECT hash FROM pack WHERE own")?;
        let packs =
            rows.query_map([], |row| row.get::<_, ObjectHash>(0))?.collect::<Result<_, _>>()?;
        Ok(packs)
    }

    /// Forgets the packs after a change of the main key: which of them are the owner's, is to be
    /// learned from what the new key seals.
    pub(crate) fn begin(&self, generation: u8) -> Result<(), Error> {
        let known = "PRAGMA application_id";
        let known: i64 = self.database.query_row(known, [], |row| row.get(0))?;
        if known == i64::from(generation) {
            return Ok(());
        }
        self.transaction(|manifest| {
            manifest.database.execute_batch(FORGET)?;
            Ok(manifest.database.pragma_update(None, "application_id", generation)?)
        })
    }

    pub(crate) fn add_pack(&self, pack: &PackRecord, origin: PackOrigin) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO pack (hash, size, header, own) VALUES (?, ?, ?, ?)";
        let own = origin == PackOrigin::Owner;
        let added = self.database.prepare_cached(sql)?.execute(params![
            pack.hash,
            pack.size as i64,
            pack.header,
            own
        ])?;
        if added == 0 {
            return Ok(());
        }
        let number = self.database.last_insert_rowid();
        let mut insert = self.database.prepare_cached(
            "INSERT OR IGNORE INTO chunk (id, pack, offset, descriptor, plain, sealed)
             VALUES (?, ?, ?, ?, ?, ?)",
        )?;
        let mut offset = pack.header.len() as u64;
        for chunk in &pack.chunks {
            insert.execute(params![
                chunk.id.0,
                number,
                offset as i64,
                chunk.descriptor.to_byte(),
                chunk.plain_bytes,
                chunk.sealed_bytes,
            ])?;
            offset += u64::from(chunk.sealed_bytes);
        }
        Ok(())
    }

    pub(crate) fn forget_pack(&self, hash: &ObjectHash) -> Result<(), Error> {
        let sql = "DELETE FROM chunk WHERE pack = (SELECT number FROM pack WHERE hash = ?)";
        self.database.execute(sql, [hash])?;
        self.database.execute("DELETE FROM pack WHERE hash = ?", [hash])?;
        Ok(())
    }

    pub(crate) fn condemn(&self, packs: &HashSet<ObjectHash>) -> Result<(), Error> {
        self.database.execute("UPDATE pack SET condemned = 0 WHERE condemned", [])?;
        let mut update =
            self.database.prepare_cached("UPDATE pack SET condemned = 1 WHERE hash = ?")?;
        for hash in packs {
            update.execute([hash])?;
        }
        Ok(())
    }

    /// The packs that a prune will remove, and that this manifest knows.
    pub(crate) fn condemned_packs(&self) -> Result<HashSet<ObjectHash>, Error> {
        let mut rows = self.database.prepare("SELECT hash FROM pack WHERE condemned")?;
        let packs =
            rows.query_map([], |row| row.get::<_, ObjectHash>(0))?.collect::<Result<_, _>>()?;
        Ok(packs)
    }

    pub(crate) fn has_read_index(&self, hash: &ObjectHash) -> Result<bool, Error> {
        let mut row = self.database.prepare_cached("SELECT 1 FROM read_index WHERE hash = ?")?;
        Ok(row.exists([hash])?)
    }

    pub(crate) fn index_read(&self, hash: &ObjectHash) -> Result<(), Error> {
        self.database.execute("INSERT OR IGNORE INTO read_index VALUES (?)", [hash])?;
        Ok(())
    }

    /// The ids of all chunks that will stay and that a put need not keep again: those that the
    /// owner sealed, and of others those that were opened once. A writer has only its own.
    pub(crate) fn kept_ids(
        &self,
        reads: ManifestAccess,
    ) -> Result<HashSet<ChunkId, crate::put::IdHash>, Error> {
        let trusted = match reads {
            ManifestAccess::Everything => "AND (pack.own OR state = 1)".to_owned(),
            ManifestAccess::Nothing => String::new(),
        };
        let sql = format!(
            "SELECT id FROM chunk JOIN pack ON pack.number = chunk.pack
             WHERE NOT pack.condemned AND state != 2 {trusted}"
        );
        let mut rows = self.database.prepare(&sql)?;
        let ids = rows.query_map([], |row| row.get(0).map(ChunkId))?.collect::<Result<_, _>>()?;
        Ok(ids)
    }

    /// Whether every place of a chunk is known to be bad.
    pub(crate) fn is_bad(&self, id: &ChunkId) -> Result<bool, Error> {
        let sql = "SELECT min(state = 2) FROM chunk WHERE id = ?";
        let mut row = self.database.prepare_cached(sql)?;
        Ok(row.query_row([id.0], |row| row.get::<_, Option<bool>>(0))?.unwrap_or(false))
    }

    /// The places of chunks that are known to be bad.
    pub(crate) fn bad_places(&self) -> Result<HashSet<(ChunkId, ObjectHash)>, Error> {
        let sql = "SELECT id, hash FROM chunk JOIN pack ON pack.number = chunk.pack
                   WHERE state = 2";
        let mut rows = self.database.prepare(sql)?;
        let places = rows.query_map([], |row| Ok((ChunkId(row.get(0)?), row.get(1)?)))?;
        Ok(places.collect::<Result<_, _>>()?)
    }

    /// Notes what was learned of chunks.
    pub(crate) fn learn(&self, learned: &[ChunkFinding]) -> Result<(), Error> {
        let mut update = self.database.prepare_cached(
            "UPDATE chunk SET state = ?
             WHERE id = ? AND pack = (SELECT number FROM pack WHERE hash = ?)",
        )?;
        for learned in learned {
            update.execute(params![learned.state as i64, learned.id.0, learned.pack])?;
        }
        Ok(())
    }

    /// Counts all chunks of a pack as absent.
    pub(crate) fn doubt_pack(&self, pack: &ObjectHash) -> Result<(), Error> {
        let sql = "UPDATE chunk SET state = 2
                   WHERE pack = (SELECT number FROM pack WHERE hash = ?)";
        self.database.execute(sql, [pack])?;
        Ok(())
    }

    /// Takes back what was found bad of a pack, which has been written again.
    pub(crate) fn trust_pack(&self, pack: &ObjectHash) -> Result<(), Error> {
        let sql = "UPDATE chunk SET state = 0
                   WHERE state = 2 AND pack = (SELECT number FROM pack WHERE hash = ?)";
        self.database.execute(sql, [pack])?;
        Ok(())
    }

    /// The chunks of a pack.
    pub(crate) fn chunks_of(&self, pack: &ObjectHash) -> Result<Vec<(ChunkId, ChunkKind)>, Error> {
        let sql = "SELECT id, descriptor FROM chunk
                   WHERE pack = (SELECT number FROM pack WHERE hash = ?)";
        let mut statement = self.database.prepare_cached(sql)?;
        let mut rows = statement.query([pack])?;
        let mut chunks = Vec::new();
        while let Some(row) = rows.next()? {
            let malformed = Error::Malformed { what: "the manifest" };
            let descriptor = ChunkDescriptor::from_byte(row.get(1)?).ok_or(malformed)?;
            chunks.push((ChunkId(row.get(0)?), descriptor.kind));
        }
        Ok(chunks)
    }

    /// Where a chunk lies, the likeliest place first.
    pub(crate) fn places(&self, id: &ChunkId) -> Result<Vec<ChunkLocation>, Error> {
        let mut statement = self.database.prepare_cached(PLACES)?;
        let mut rows = statement.query([id.0])?;
        let mut places = Vec::new();
        while let Some(row) = rows.next()? {
            let malformed = Error::Malformed { what: "the manifest" };
            let descriptor = ChunkDescriptor::from_byte(row.get(4)?).ok_or(malformed)?;
            let (plain_bytes, sealed_bytes) = (row.get(5)?, row.get(6)?);
            let head = ChunkHead { id: *id, descriptor, plain_bytes, sealed_bytes }.check()?;
            let (size, offset): (i64, i64) = (row.get(2)?, row.get(3)?);
            let (pack_bytes, offset) = (size as u64, offset as u64);
            let (pack, header) = (row.get(0)?, row.get(1)?);
            let bad = row.get::<_, i64>(7)? == ChunkState::Bad as i64;
            let own = row.get(8)?;
            places.push(ChunkLocation { pack, header, pack_bytes, offset, head, bad, own });
        }
        if places.is_empty() { Err(Error::Missing(format!("chunk {id}"))) } else { Ok(places) }
    }

    pub(crate) fn seen(
        &self,
        path: &[u8],
    ) -> Result<Option<(VaultFileStat, Vec<FilePiece>)>, Error> {
        let sql = "SELECT size, mtime_ns, ctime_ns, device, inode, pieces FROM seen WHERE path = ?";
        let mut rows = self.database.prepare_cached(sql)?;
        let found = rows
            .query_row([path], |row| {
                let number = |at| row.get::<_, i64>(at).map(|number| number as u64);
                let look = VaultFileStat {
                    size: number(0)?,
                    mtime_ns: row.get(1)?,
                    ctime_ns: row.get(2)?,
                    device: number(3)?,
                    inode: number(4)?,
                };
                Ok((look, row.get::<_, Vec<u8>>(5)?))
            })
            .optional()?;
        Ok(found.and_then(|(look, pieces)| Some((look, read_remembered(&pieces).ok()?))))
    }

    pub(crate) fn see(
        &self,
        path: &[u8],
        look: &VaultFileStat,
        pieces: &[FilePiece],
    ) -> Result<(), Error> {
        let mut packed = Vec::new();
        write_pieces(&mut packed, pieces);
        let sql = "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)";
        let mut insert = self.database.prepare_cached(sql)?;
        insert.execute(params![
            path,
            look.size as i64,
            look.mtime_ns,
            look.ctime_ns,
            look.device as i64,
            look.inode as i64,
            packed,
        ])?;
        Ok(())
    }
}

impl std::fmt::Debug for ChunkManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest").finish_non_exhaustive()
    }
}

const FORGET: &str = "DELETE FROM chunk; DELETE FROM pack; DELETE FROM read_index";

/// Brings an older manifest to this version. What files looked like stays; what the first says of
/// packs may come from an index that a writer made, so that the owner reads it again.
fn renew(database: &Connection, reads: ManifestAccess) -> Result<(), Error> {
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 1 {
        database.execute_batch("ALTER TABLE chunk ADD COLUMN state INTEGER NOT NULL DEFAULT 0")?;
        if reads == ManifestAccess::Everything {
            database.execute_batch(FORGET)?;
        }
    }
    if version < VERSION {
        database.execute_batch(
            "ALTER TABLE pack ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
             UPDATE pack SET own = length(header) = 24",
        )?;
    }
    database.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Where the manifest of a vault lies, unless another folder is named.
pub(crate) fn state_folder(named: Option<&Path>, vault: &[u8; 16]) -> Result<PathBuf, Error> {
    let folder = state_base(named)?.join(hex(vault));
    private_folder(&folder)?;
    Ok(folder)
}

/// The folder of what is remembered of all vaults.
pub(crate) fn state_base(named: Option<&Path>) -> Result<PathBuf, Error> {
    match named {
        Some(folder) => Ok(folder.to_owned()),
        None => default_state().ok_or(Error::NoState),
    }
}

/// Makes a folder that only its owner enters.
pub(crate) fn private_folder(folder: &Path) -> Result<(), Error> {
    let made = std::fs::create_dir_all(folder).and_then(|()| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
    });
    made.map_err(|cause| Error::file(folder, cause))
}

fn default_state() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")));
    Some(state?.join("sealane/vaults"))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_look_is_prepared_once() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = ChunkManifest::open(folder.path(), ManifestAccess::Everything).unwrap();
        for byte in 0..100 {
            assert!(matches!(manifest.places(&ChunkId([byte; 24])), Err(Error::Missing(_))));
        }
        let statement = manifest.database.prepare_cached(PLACES).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        assert!(statement.get_status(StatementStatus::Run) >= 100);
    }
}
