//! The name of a store, which no copy of its file shares.
//!
//! A copy that `backup` made carries `meta.copied`, and every other copy of the file is another
//! file: it has another inode, or the same number and another time of birth. Both are read when the
//! store is opened. A file that was moved within its file system keeps its name. So does one on a
//! disk that was cloned block by block: nothing in the file system tells the two apart.

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::StoreFault;
use super::backup::{STORE, known, no_store};
use super::schema::open_for_reading;
use crate::Error;

/// 16 random bytes, drawn when a store is made and when a copy of its file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId([u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The id of the store in `folder`, or nothing where its next opening draws one: it is a copy, or
/// of an earlier version. A hub may run on the store.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::StoreTooNew`], [`Error::StorageFailed`].
pub fn store_id(folder: &Path) -> Result<Option<StoreId>, Error> {
    let path = folder.join(STORE);
    if !path.is_file() {
        return Err(no_store(folder));
    }
    let connection = open_for_reading(folder)?;
    known(&connection, &path)?;
    Ok(StoreId::find(&connection, file_mark(&path).as_deref())?)
}

impl StoreId {
    /// A number that was drawn with the id.
    pub(super) fn drawn(self) -> u64 {
        self.0.iter().take(8).fold(0, |drawn, byte| drawn << 8 | u64::from(*byte))
    }

    /// The id of a store that is just opened, and whether it is new, so that it is to be written.
    pub(super) fn of_opened(connection: &Connection, path: &Path) -> Result<OpenedId, StoreFault> {
        let file = file_mark(path);
        if let Some(id) = Self::find(connection, file.as_deref())? {
            return Ok(OpenedId { id, new_file: None });
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|cause| StoreFault::Failed(format!("no random bytes: {cause}")))?;
        Ok(OpenedId { id: Self(bytes), new_file: Some(file.unwrap_or_default()) })
    }

    /// The id that the store has, if it is still the file that the id was drawn for.
    fn find(connection: &Connection, file: Option<&str>) -> Result<Option<Self>, StoreFault> {
        // A file that cannot be told from others may be a copy.
        let Some(file) = file else { return Ok(None) };
        let id = "SELECT value FROM meta WHERE name = 'store_id'
             AND EXISTS (SELECT 1 FROM meta WHERE name = 'store_file' AND value = ?1)
             AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'copied')";
        let found = connection.query_row(id, [file], |row| row.get(0)).optional()?;
        Ok(found.map(Self))
    }
}

/// The id of a store that is just opened.
pub(super) struct OpenedId {
    pub(super) id: StoreId,
    /// The file that the id was drawn for just now; none: the store has the id already.
    new_file: Option<String>,
}

impl OpenedId {
    /// Writes an id that was drawn just now.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), StoreFault> {
        if let Some(file) = &self.new_file {
            let rows = "INSERT OR REPLACE INTO meta VALUES ('store_id', ?1), ('store_file', ?2)";
            connection.execute(rows, params![self.id.0, file])?;
        }
        Ok(())
    }
}

/// Names a file: its inode, and when that came to be. The number of the device is no part of it,
/// since it may be another after each boot. None: the system does not say it.
fn file_mark(path: &Path) -> Option<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
    // A file system that knows no time of birth says so by leaving the field out.
    let born = match StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
        true => (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        false => (0, 0),
    };
    Some(format!("{} {}.{:09}", found.stx_ino, born.0, born.1))
}
