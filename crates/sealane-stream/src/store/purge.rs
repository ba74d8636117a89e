//! The removals on request: the oldest messages of streams, consumers, delayed messages.

use rusqlite::{OptionalExtension, params};

use super::{StoreFault, StoreWrites, key, offset_of};
use crate::commit::StreamExtent;

/// Bytes before the next record of a block: its length, which does not count itself.
const LENGTH_BYTES: usize = 4;

/// A block of which some goes and some stays.
struct PurgeCut {
    generation: u64,
    /// Messages that stay.
    count: u64,
    last_ms: u64,
    stored_ms: u64,
    /// Where the first of them begins.
    at: usize,
    data: Vec<u8>,
}

impl StoreWrites {
    /// Removes the messages of a stream before `extent.first`. The block that the offset stands in
    /// is made shorter now; those before it are left to retention. Returns the bytes that went.
    pub(super) fn purge(&self, extent: StreamExtent) -> Result<u64, StoreFault> {
        let (stream, before) = (extent.stream, extent.first);
        let old = self.block_around(stream, before)?;
        let mut cut_bytes = 0;
        if let Some((old, cut)) = old {
            let PurgeCut { generation, count, last_ms, stored_ms, at, data } = cut;
            let rest = data.get(at..).unwrap_or_default();
            // The key says the first offset, so that a shorter block is another row. Records keep
            // their sums, which cover their own places and not the block's.
            self.run("DELETE FROM block WHERE key = ?1", [old])?;
            self.run(
                "INSERT INTO block VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![key(stream, before), generation, count, last_ms, rest, stored_ms],
            )?;
            cut_bytes = at as u64;
        }
        let bytes = extent.bytes.saturating_sub(cut_bytes);
        self.set_extent(StreamExtent { bytes, ..extent })?;
        Ok(cut_bytes)
    }

    /// The block that begins before an offset and ends behind it, with its key; none where there is
    /// none, or where damage hides where it could be cut.
    fn block_around(
        &self,
        stream: u32,
        offset: u64,
    ) -> Result<Option<(i64, PurgeCut)>, StoreFault> {
        let mut query = self.connection.prepare_cached(
            "SELECT key, generation, count, last_ms, data, stored_ms FROM block
             WHERE key >= ?1 AND key < ?2 ORDER BY key DESC LIMIT 1",
        )?;
        let row = query.query_row([key(stream, 0), key(stream, offset)], |row| {
            let cut = PurgeCut {
                generation: row.get(1)?,
                count: row.get(2)?,
                last_ms: row.get(3)?,
                stored_ms: row.get(5)?,
                at: 0,
                data: row.get(4)?,
            };
            Ok((row.get::<_, i64>(0)?, cut))
        });
        let Some((block, cut)) = row.optional()? else { return Ok(None) };
        // Lengths lead from record to record. If one is damaged, the cut is not known, and the
        // block stays whole: what is damaged is never made worse.
        let gone = offset - offset_of(block);
        if gone >= cut.count {
            return Ok(None);
        }
        // If a length in the block is damaged, the block stays whole. Cutting elsewhere would lose
        // good messages.
        let at = (0..gone).try_fold(0, |at, _| behind(&cut.data, at));
        Ok(at.map(|at| (block, PurgeCut { at, count: cut.count - gone, ..cut })))
    }

    /// Removes a consumer. What it did is in rows that others share, and that are passed over.
    pub(super) fn remove_consumer(&self, number: u64) -> Result<(), StoreFault> {
        self.run("DELETE FROM consumer WHERE number = ?1", [number])
    }

    /// Whether messages are held back for the stream.
    pub(crate) fn has_delayed(&self, stream: u32) -> Result<bool, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM delayed WHERE stream = ?1)")?;
        Ok(query.query_row([stream], |row| row.get(0))?)
    }

    /// The rows of up to `limit` messages of this id that are held back.
    pub(crate) fn find_delayed(
        &self,
        stream: u32,
        id: &[u8],
        limit: usize,
    ) -> Result<Vec<i64>, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self
            .connection
            .prepare_cached("SELECT number FROM delayed WHERE stream = ?1 AND id = ?2 LIMIT ?3")?;
        let rows = query.query_map(params![stream, id, limit], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Where the record behind the one at `at` begins.
fn behind(data: &[u8], at: usize) -> Option<usize> {
    let length = data.get(at..at + LENGTH_BYTES)?.try_into().ok().map(u32::from_le_bytes)?;
    let end = (at + LENGTH_BYTES).checked_add(usize::try_from(length).ok()?)?;
    (end <= data.len()).then_some(end)
}
