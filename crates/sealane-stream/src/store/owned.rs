//! The rows of each owner: counted, and removed where they are too many.

use std::path::Path;

use rusqlite::{Connection, params};

use super::schema::open_for_reading;
use super::{StoreFault, StoreWrites};
use crate::Error;
use crate::shares::{ShareChanges, ShareKind};

/// How much an owner has of one kind in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRows {
    /// The token; empty: no token was needed.
    pub owner: String,
    /// Their kind.
    pub kind: ShareKind,
    /// How many.
    pub count: u64,
}

/// Counts what each owner holds in the store of a folder: all but what is in flight. Reads every
/// key: not for each request.
///
/// # Errors
/// Where there is no store of this version, or it cannot be read.
pub fn owned(folder: &Path) -> Result<Vec<OwnedRows>, Error> {
    let counted = count(folder)?;
    let rows = counted.all().map(|(owner, kind, count)| OwnedRows { owner, kind, count });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| (&a.owner, a.kind).cmp(&(&b.owner, b.kind)));
    Ok(rows)
}

fn count(folder: &Path) -> Result<ShareChanges, StoreFault> {
    let connection = open_for_reading(folder)?;
    let mut shares = ShareChanges::default();
    let tables = ["delayed", "session", "idempotency", "consumer"];
    count_rows(&connection, &tables, &mut shares)?;
    let mut query = connection.prepare("SELECT owner, topic FROM stream")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (owner, topic) = (row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let kind = topic.parse().ok().and_then(|topic| ShareKind::of_stream(&topic));
        kind.into_iter().for_each(|kind| shares.add(&owner, kind, 1));
    }
    Ok(shares)
}

/// Adds what each owner has in these tables. All but that of consumers have an index of owners.
fn count_rows(
    connection: &Connection,
    tables: &[&str],
    shares: &mut ShareChanges,
) -> Result<(), StoreFault> {
    for table in tables {
        let query = format!("SELECT owner, count(*) FROM {table} GROUP BY owner");
        let mut query = connection.prepare(&query)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (owner, count) = (row.get::<_, String>(0)?, row.get(1)?);
            match *table {
                "delayed" => shares.add(&owner, ShareKind::Delayed, count),
                "session" => shares.add(&owner, ShareKind::Sessions, count),
                "consumer" => shares.add(&owner, ShareKind::Consumers, count),
                _ => shares.add_keys(&owner, count),
            }
        }
    }
    Ok(())
}

impl StoreWrites {
    /// Adds what each owner has of delayed messages, keys and sessions.
    pub(crate) fn count_owned(&self, shares: &mut ShareChanges) -> Result<(), StoreFault> {
        count_rows(&self.connection, &["delayed", "session", "idempotency"], shares)
    }

    /// Forgets so many of the oldest keys of an owner, less those that it lost by this very commit;
    /// returns how many.
    pub(super) fn trim_keys(
        &self,
        owner: &str,
        rows: u64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        let rows = rows.saturating_sub(shares.lost_keys(owner));
        self.remove_owned(
            "DELETE FROM idempotency WHERE (stream, key) IN (SELECT stream, key
             FROM idempotency WHERE owner = ?1 ORDER BY time_ms, stream, key LIMIT ?2)
             RETURNING owner",
            params![owner, rows],
            |owner| shares.remove_key(owner),
        )
    }

    /// Runs a statement that returns the owners of the rows which it removes; returns how many
    /// those are.
    pub(super) fn remove_owned(
        &self,
        query: &str,
        params: impl rusqlite::Params,
        mut gone: impl FnMut(&str),
    ) -> Result<u64, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self.connection.prepare_cached(query)?;
        let mut rows = query.query(params)?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            gone(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
            count += 1;
        }
        Ok(count)
    }
}
