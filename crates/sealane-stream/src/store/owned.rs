//! What owners hold, as the store says it beside a hub that runs.

use std::path::Path;

use rusqlite::Connection;

use super::StoreFault;
use super::schema::open_for_reading;
use crate::Error;
use crate::shares::{ShareChanges, ShareKind};

/// What an owner has of one kind in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRows {
    /// The token; empty: no token was needed.
    pub owner: String,
    /// What it is.
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
pub(super) fn count_rows(
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
