//! The migrations that bring a store of an earlier version to this one.

use rusqlite::Connection;

use super::StoreFault;
use super::schema::VERSION;

/// The tables that version 3 brought, for new stores and for old ones.
pub(super) const SINCE_3: &str = "
CREATE TABLE consumer (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    stream        INTEGER NOT NULL,
    name          TEXT NOT NULL,
    owner         TEXT NOT NULL,
    max_in_flight INTEGER NOT NULL,
    ack_wait_ms   INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    dead_lettered INTEGER NOT NULL,
    dead_dropped  INTEGER NOT NULL,
    since         INTEGER NOT NULL,
    state         BLOB NOT NULL,
    UNIQUE (stream, name)
) STRICT;

CREATE TABLE progress (
    number INTEGER PRIMARY KEY,
    data   BLOB NOT NULL
) STRICT;

CREATE TABLE removed (
    stream INTEGER PRIMARY KEY
) STRICT;

CREATE INDEX delayed_stream ON delayed (stream);
INSERT INTO meta VALUES ('stream', 1);
";

/// The columns that version 4 brought for consumers and delayed messages, for new stores and for
/// old ones.
pub(super) const CONSUMERS_SINCE_4: &str = "
ALTER TABLE consumer ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delayed ADD COLUMN id BLOB NOT NULL DEFAULT x'';
DROP INDEX delayed_stream;
CREATE INDEX delayed_stream ON delayed (stream, due_ms);
CREATE INDEX delayed_id ON delayed (stream, id);
";

/// The table that version 4 brought, for new stores and for old ones.
pub(super) const SINCE_4: &str = "
CREATE TABLE session (
    stream  INTEGER NOT NULL,
    session BLOB NOT NULL,
    n       INTEGER NOT NULL,
    places  BLOB NOT NULL,
    hour    INTEGER NOT NULL,
    PRIMARY KEY (stream, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_hour ON session (hour);
";

/// The statements that each earlier version lacks: the first entry brings version 1 to version 2.
const MIGRATIONS: [&[&str]; VERSION as usize - 1] = [
    &["ALTER TABLE stream ADD COLUMN sealed BLOB CHECK (length(sealed) = 4)"],
    &[
        "ALTER TABLE consumer RENAME TO consumer_2",
        SINCE_3,
        // Versions before gave numbers of removed streams out again and could leave rows behind
        // that then became a stranger's. What belongs to no stream goes now.
        "INSERT INTO consumer SELECT NULL, stream, name, '', max_in_flight, ack_wait_ms,
             max_attempts, dead_lettered, 0, 0, state
             FROM consumer_2 WHERE stream IN (SELECT number FROM stream);
         DROP TABLE consumer_2;
         DELETE FROM damage WHERE stream NOT IN (SELECT number FROM stream);
         DELETE FROM generation WHERE stream NOT IN (SELECT number FROM stream);
         DELETE FROM delayed WHERE stream NOT IN (SELECT number FROM stream);
         DELETE FROM idempotency WHERE stream NOT IN (SELECT number FROM stream);
         INSERT INTO removed SELECT DISTINCT key >> 40 FROM block
             EXCEPT SELECT number FROM stream;
         UPDATE meta SET value = 1 + max((SELECT coalesce(max(number), 0) FROM stream),
             (SELECT coalesce(max(stream), 0) FROM removed)) WHERE name = 'stream'",
    ],
    &[
        SINCE_4,
        CONSUMERS_SINCE_4,
        // The id of a record stands behind its head of 18 bytes, the last of which is its length.
        "UPDATE delayed SET id = substr(data, 19,
             16 * (instr('0123456789ABCDEF', substr(hex(substr(data, 18, 1)), 1, 1)) - 1)
             + instr('0123456789ABCDEF', substr(hex(substr(data, 18, 1)), 2, 1)) - 1)",
    ],
];

/// Brings a store of an earlier version to this one, all or nothing.
pub(super) fn run(connection: &Connection, version: i64) -> Result<(), StoreFault> {
    let transaction = connection.unchecked_transaction()?;
    let steps = MIGRATIONS.iter().skip(usize::try_from(version - 1).unwrap_or(0));
    for step in steps.copied().flatten() {
        transaction.execute_batch(step)?;
    }
    // The version changes with the tables in one transaction. A crash leaves the old store or the
    // new one.
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    tracing::info!(from = version, to = VERSION, "the store was brought to this version");
    Ok(())
}
