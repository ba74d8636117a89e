//! What this machine knows of a vault: an SQLite database that can be made again from the store.
//!
//! It names where each chunk lies, and what each file looked like when it was last kept. It lies in
//! the state folder of the user and not with the vault, since it holds paths.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use crate::Error;
use crate::format::chunk::{ChunkHead, Descriptor, Id};
use crate::format::pack::{Hash, Pack};
use crate::format::page::{Piece, read_list, write_pieces};
use crate::wire::hex;

const VERSION: i64 = 1;
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pack (
        number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
        header BLOB NOT NULL, condemned INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS chunk (
        id BLOB NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
        descriptor INTEGER NOT NULL, plain INTEGER NOT NULL, sealed INTEGER NOT NULL,
        PRIMARY KEY (id, pack)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS seen (
        path BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
        pieces BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS read_index (hash BLOB PRIMARY KEY) WITHOUT ROWID;
";

const LOCATION: &str = "
    SELECT hash, header, size, offset, descriptor, plain, sealed
    FROM chunk JOIN pack ON pack.number = chunk.pack WHERE id = ?
    ORDER BY condemned LIMIT 1";

/// Where a chunk lies.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) pack: Hash,
    pub(crate) header: Vec<u8>,
    pub(crate) pack_bytes: u64,
    pub(crate) offset: u64,
    pub(crate) head: ChunkHead,
}

/// What a file looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

pub(crate) struct Manifest {
    database: Connection,
}

impl Manifest {
    /// The manifest in a state folder. One that is damaged or of another version is made anew.
    pub(crate) fn open(folder: &Path) -> Result<Manifest, Error> {
        let path = folder.join("manifest.db");
        match Manifest::try_open(&path) {
            Ok(manifest) => Ok(manifest),
            Err(Error::Manifest(error)) if is_damage(&error) => {
                for suffix in ["", "-wal", "-shm"] {
                    let mut name = path.clone().into_os_string();
                    name.push(suffix);
                    let _ = std::fs::remove_file(PathBuf::from(name));
                }
                Manifest::try_open(&path)
            }
            Err(error) => Err(error),
        }
    }

    fn try_open(path: &Path) -> Result<Manifest, Error> {
        let database = Connection::open(path)?;
        database.busy_timeout(std::time::Duration::from_secs(30))?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        // What a power cut loses is read from the store again.
        database.pragma_update(None, "synchronous", "NORMAL")?;
        Manifest::prepare(database)
    }

    /// A manifest that lives as long as this value.
    pub(crate) fn in_memory() -> Result<Manifest, Error> {
        Manifest::prepare(Connection::open_in_memory()?)
    }

    fn prepare(database: Connection) -> Result<Manifest, Error> {
        let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > VERSION {
            return Err(Error::Version("manifest.db".to_owned()));
        }
        // Otherwise each new value of a parameter has its statement prepared again.
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        database.execute_batch(TABLES)?;
        database.pragma_update(None, "user_version", VERSION)?;
        Ok(Manifest { database })
    }

    /// Does all of `work` or nothing of it.
    pub(crate) fn transaction<T>(
        &self,
        work: impl FnOnce(&Manifest) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.database.execute_batch("BEGIN IMMEDIATE")?;
        let outcome = work(self);
        self.database.execute_batch(if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        outcome
    }

    /// Does `work` with one view of the manifest, which spares each look a lock of its own.
    pub(crate) fn view<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.database.execute_batch("BEGIN")?;
        let outcome = work();
        self.database.execute_batch("COMMIT")?;
        outcome
    }

    pub(crate) fn packs(&self) -> Result<HashSet<Hash>, Error> {
        let mut rows = self.database.prepare("SELECT hash FROM pack")?;
        let packs = rows.query_map([], |row| row.get::<_, Hash>(0))?.collect::<Result<_, _>>()?;
        Ok(packs)
    }

    pub(crate) fn add_pack(&self, pack: &Pack) -> Result<(), Error> {
        let added = self
            .database
            .prepare_cached("INSERT OR IGNORE INTO pack (hash, size, header) VALUES (?, ?, ?)")?
            .execute(params![pack.hash, pack.size as i64, pack.header])?;
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

    pub(crate) fn forget_pack(&self, hash: &Hash) -> Result<(), Error> {
        let sql = "DELETE FROM chunk WHERE pack = (SELECT number FROM pack WHERE hash = ?)";
        self.database.execute(sql, [hash])?;
        self.database.execute("DELETE FROM pack WHERE hash = ?", [hash])?;
        Ok(())
    }

    pub(crate) fn condemn(&self, packs: &HashSet<Hash>) -> Result<(), Error> {
        self.database.execute("UPDATE pack SET condemned = 0 WHERE condemned", [])?;
        let mut update =
            self.database.prepare_cached("UPDATE pack SET condemned = 1 WHERE hash = ?")?;
        for hash in packs {
            update.execute([hash])?;
        }
        Ok(())
    }

    pub(crate) fn has_read_index(&self, hash: &Hash) -> Result<bool, Error> {
        let mut row = self.database.prepare_cached("SELECT 1 FROM read_index WHERE hash = ?")?;
        Ok(row.exists([hash])?)
    }

    pub(crate) fn index_read(&self, hash: &Hash) -> Result<(), Error> {
        self.database.execute("INSERT OR IGNORE INTO read_index VALUES (?)", [hash])?;
        Ok(())
    }

    /// The ids of all chunks that will stay.
    pub(crate) fn chunk_ids(&self) -> Result<HashSet<Id, crate::put::IdHash>, Error> {
        let sql = "SELECT id FROM chunk JOIN pack ON pack.number = chunk.pack
                   WHERE NOT pack.condemned";
        let mut rows = self.database.prepare(sql)?;
        let ids = rows.query_map([], |row| row.get(0).map(Id))?.collect::<Result<_, _>>()?;
        Ok(ids)
    }

    pub(crate) fn locate(&self, id: &Id) -> Result<Location, Error> {
        let mut rows = self.database.prepare_cached(LOCATION)?;
        let found = rows
            .query_row([id.0], |row| {
                let (descriptor, plain, sealed) = (row.get(4)?, row.get(5)?, row.get(6)?);
                let bounds: (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok((row.get(0)?, row.get(1)?, bounds, descriptor, plain, sealed))
            })
            .optional()?;
        let (pack, header, (size, offset), descriptor, plain_bytes, sealed_bytes) =
            found.ok_or_else(|| Error::Missing(format!("chunk {id}")))?;
        let malformed = Error::Malformed { what: "the manifest" };
        let descriptor = Descriptor::from_byte(descriptor).ok_or(malformed)?;
        let head = ChunkHead { id: *id, descriptor, plain_bytes, sealed_bytes }.check()?;
        let (pack_bytes, offset) = (size as u64, offset as u64);
        Ok(Location { pack, header, pack_bytes, offset, head })
    }

    pub(crate) fn seen(&self, path: &[u8]) -> Result<Option<(Look, Vec<Piece>)>, Error> {
        let sql = "SELECT size, mtime_ns, ctime_ns, device, inode, pieces FROM seen WHERE path = ?";
        let mut rows = self.database.prepare_cached(sql)?;
        let found = rows
            .query_row([path], |row| {
                let number = |at| row.get::<_, i64>(at).map(|number| number as u64);
                let look = Look {
                    size: number(0)?,
                    mtime_ns: row.get(1)?,
                    ctime_ns: row.get(2)?,
                    device: number(3)?,
                    inode: number(4)?,
                };
                Ok((look, row.get::<_, Vec<u8>>(5)?))
            })
            .optional()?;
        Ok(found.and_then(|(look, pieces)| Some((look, read_list(&pieces).ok()?))))
    }

    pub(crate) fn see(&self, path: &[u8], look: &Look, pieces: &[Piece]) -> Result<(), Error> {
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

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest").finish_non_exhaustive()
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Where the manifest of a vault lies, unless another folder is named.
pub(crate) fn state_folder(named: Option<&Path>, vault: &[u8; 16]) -> Result<PathBuf, Error> {
    let base = match named {
        Some(folder) => folder.to_owned(),
        None => default_state().ok_or(Error::NoState)?,
    };
    let folder = base.join(hex(vault));
    let made = std::fs::create_dir_all(&folder).and_then(|()| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
    });
    made.map_err(|cause| Error::file(&folder, cause))?;
    Ok(folder)
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
        let manifest = Manifest::open(folder.path()).unwrap();
        for byte in 0..100 {
            assert!(matches!(manifest.locate(&Id([byte; 24])), Err(Error::Missing(_))));
        }
        let statement = manifest.database.prepare_cached(LOCATION).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        assert!(statement.get_status(StatementStatus::Run) >= 100);
    }
}
