//! The file of a queue.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::GatewayError;

/// The version of the file: spec/gateway.md, *The queue*.
const VERSION: i64 = 1;

/// The application id that marks a file of SQLite as a queue: `SLgq`.
const APPLICATION: i64 = 0x534c_6771;

/// `AUTOINCREMENT`: a number never comes again, so that order lasts over an empty queue.
const SCHEMA: &str = "
    CREATE TABLE frame (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        stream INTEGER NOT NULL,
        urgency INTEGER NOT NULL,
        source BLOB NOT NULL,
        name BLOB NOT NULL UNIQUE,
        bytes BLOB NOT NULL
    ) STRICT;
    CREATE INDEX frame_of_stream ON frame (stream, number);
    CREATE INDEX frame_of_source ON frame (urgency, source, number);
    CREATE TABLE lost (
        why TEXT NOT NULL,
        urgency INTEGER NOT NULL,
        frames INTEGER NOT NULL,
        PRIMARY KEY (why, urgency)
    ) STRICT;
    CREATE TABLE place (
        stream INTEGER PRIMARY KEY,
        generation INTEGER NOT NULL,
        next INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE followed (
        store BLOB PRIMARY KEY,
        at INTEGER NOT NULL
    ) STRICT;
";

/// Opens the file, or makes it, for this process alone.
pub(super) fn open(file: &Path) -> Result<Connection, GatewayError> {
    // The file is made before SQLite opens it, because SQLite would make it readable for others.
    make_private(file)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        // A lock of this crate guards the connection, so that SQLite's own would only cost.
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(file, flags).map_err(|cause| failed(file, &cause))?;
    let found = prepare(&connection).map_err(|cause| failed(file, &cause))?;
    match found {
        QueueFileKind::Queue => Ok(connection),
        QueueFileKind::Newer(found) => {
            Err(GatewayError::TooNew { file: file.to_owned(), found, known: VERSION })
        }
        QueueFileKind::Other => {
            let cause = "it is a database of another program".to_owned();
            Err(GatewayError::NotAQueue { file: file.to_owned(), cause })
        }
    }
}

/// The kind of a file, by its content.
enum QueueFileKind {
    Queue,
    Newer(i64),
    Other,
}

fn prepare(connection: &Connection) -> rusqlite::Result<QueueFileKind> {
    // The lock is kept from the first look on, and a killed process leaves none behind.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let found = (number("application_id")?, number("user_version")?);
    // A file of another program is not even brought into another mode.
    if found != (APPLICATION, VERSION) && (found != (0, 0) || tables > 0) {
        return Ok(if found.0 == APPLICATION {
            QueueFileKind::Newer(found.1)
        } else {
            QueueFileKind::Other
        });
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // SQLite takes its lock with the first transaction. Taken here, a second process fails at its
    // start.
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")?;
    // Schema and marks are one transaction, so that a kill leaves an empty file and no half of a
    // queue.
    if tables == 0 {
        connection.execute_batch(&format!(
            "BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION};
             PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
    }
    Ok(QueueFileKind::Queue)
}

/// Makes a new file that only its owner reads: it tells who sends how much.
fn make_private(file: &Path) -> Result<(), GatewayError> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = std::fs::File::options().write(true).create_new(true).mode(0o600).open(file);
    match made {
        // `create_new` makes the file private from its first moment. An existing one keeps the mode
        // that its owner chose.
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(GatewayError::Failed { file: file.to_owned(), cause: error.to_string() })
        }
        _ => Ok(()),
    }
}

/// An error of SQLite as an error of this crate.
pub(super) fn failed(file: &Path, cause: &rusqlite::Error) -> GatewayError {
    let (file, text) = (file.to_owned(), cause.to_string());
    match cause.sqlite_error_code() {
        // The lock is never given back while the process lives, so that a busy file is another
        // process's.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => GatewayError::InUse { file },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            GatewayError::NotAQueue { file, cause: text }
        }
        _ => GatewayError::Failed { file, cause: text },
    }
}
