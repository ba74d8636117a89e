//! The migrations that bring a store of an earlier version to this one.

use rusqlite::Connection;

use super::StoreFault;
use super::schema::VERSION;

/// The tables that version 3 brought, for new stores and for old ones.
const SINCE_3: &str = "
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
const CONSUMERS_SINCE_4: &str = "
ALTER TABLE consumer ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delayed ADD COLUMN id BLOB NOT NULL DEFAULT x'';
DROP INDEX delayed_stream;
CREATE INDEX delayed_stream ON delayed (stream, due_ms);
CREATE INDEX delayed_id ON delayed (stream, id);
";

/// The table that version 4 brought, for new stores and for old ones.
const SINCE_4: &str = "
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

/// The tables and columns that version 5 brought, for new stores and for old ones.
const SINCE_5: &str = "
CREATE TABLE rule (
    pattern    TEXT PRIMARY KEY,
    max_age_ms INTEGER NOT NULL,
    max_count  INTEGER NOT NULL,
    max_bytes  INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    maker      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE clock_step (
    since_ms INTEGER PRIMARY KEY,
    until_ms INTEGER NOT NULL,
    shown_ms INTEGER NOT NULL
) STRICT;

ALTER TABLE stream ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE stream ADD COLUMN own_bounds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE block ADD COLUMN stored_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delayed ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX delayed_owner ON delayed (owner);
ALTER TABLE idempotency ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX idempotency_owner ON idempotency (owner, time_ms);
ALTER TABLE session ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN digests BLOB;
CREATE INDEX session_owner ON session (owner, hour);
";

/// All that came since version 2, in order: a new store is made of it.
pub(super) const SINCE_2: [&str; 4] = [SINCE_3, SINCE_4, CONSUMERS_SINCE_4, SINCE_5];

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
    &[
        SINCE_5,
        // A bound that differs from none may be the stream's own or the hub's default. As the
        // stream's own, no rule that is made later removes more than before.
        "UPDATE stream SET own_bounds = (max_age_ms <> 0) + 2 * (max_count <> 0)
             + 4 * (max_bytes <> 0)",
        // Keys and sessions begin with the length of the token's name, whose lowest byte is all of
        // it. A key that the hub made of a message names no token: it counts for nobody's.
        "UPDATE idempotency SET owner = CAST(substr(key, 5,
             16 * (instr('0123456789ABCDEF', substr(hex(key), 1, 1)) - 1)
             + instr('0123456789ABCDEF', substr(hex(key), 2, 1)) - 1) AS TEXT)
             WHERE substr(key, 1, 4) <> x'ffffffff'",
        "UPDATE idempotency SET owner = char(1) WHERE substr(key, 1, 4) = x'ffffffff'",
        "UPDATE session SET owner = CAST(substr(session, 5,
             16 * (instr('0123456789ABCDEF', substr(hex(session), 1, 1)) - 1)
             + instr('0123456789ABCDEF', substr(hex(session), 2, 1)) - 1) AS TEXT)",
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
