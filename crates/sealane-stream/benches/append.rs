//! Durable appends beside two baselines, in one run and interleaved: the floor (the same bytes
//! appended to a plain file with fdatasync) and SQLite with a row for each message.
//!
//! `cargo bench -p sealane-stream`; `SEALANE_ROUNDS` sets how often each is measured.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use sealane_codec::{Codec, Transcoder};
use sealane_stream::{HubConfig, Level, Retention, StreamEnqueue, StreamEnvelope, StreamHub};

const ROUND: Duration = Duration::from_millis(300);
const BODY: &[u8] = &[b'x'; 256];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::var("SEALANE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(9);
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "appends of 256-byte messages a second, fsynced; median of {rounds} (lowest, highest)"
    );
    println!("{:>6}  {:>28}  {:>28}  {:>28}  share of raw", "group", "raw", "rows", "Sealane");
    for group in [1, 10, 100, 1000] {
        let hub = open(&folder.path().join(format!("hub{group}")))?;
        let mut rows = Rows::open(&folder.path().join(format!("rows{group}.db")))?;
        let mut raw = std::fs::File::create(folder.path().join(format!("raw{group}")))?;
        let (mut floor, mut by_row, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        // The first round warms up and is not counted.
        for round in 0..=rounds {
            let rates = [
                measure(group, || append_raw(&mut raw, group))?,
                measure(group, || rows.append(group))?,
                measure(group, || runtime.block_on(append(&hub, group)))?,
            ];
            if round > 0 {
                floor.push(rates[0]);
                by_row.push(rates[1]);
                ours.push(rates[2]);
            }
        }
        let share = median(&mut ours) / median(&mut floor) * 100.0;
        let cells = [show(&mut floor), show(&mut by_row), show(&mut ours)];
        println!("{group:>6}  {}  {}  {}  {share:.0} %", cells[0], cells[1], cells[2]);
        hub.close()?;
    }
    Ok(())
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn measure(
    group: usize,
    mut once: impl FnMut() -> Done,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < ROUND {
        once()?;
        count += group;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

fn append_raw(file: &mut std::fs::File, group: usize) -> Done {
    file.write_all(&BODY.repeat(group))?;
    file.sync_data()?;
    Ok(())
}

/// The straightforward design: WAL, `synchronous=FULL`, one row for each message.
struct Rows {
    connection: rusqlite::Connection,
    next: i64,
}

impl Rows {
    fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let connection = rusqlite::Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE message (stream INTEGER, offset INTEGER, time INTEGER, codec INTEGER,
             id TEXT, sum INTEGER, body BLOB, PRIMARY KEY (stream, offset)) WITHOUT ROWID",
        )?;
        Ok(Self { connection, next: 0 })
    }

    fn append(&mut self, group: usize) -> Done {
        let transaction = self.connection.transaction()?;
        for _ in 0..group {
            transaction
                .prepare_cached(
                    "INSERT INTO message VALUES (1, ?1, 0, 1, 'abcdefghijkl-1', 0, ?2)",
                )?
                .execute(rusqlite::params![self.next, BODY])?;
            self.next += 1;
        }
        transaction.commit()?;
        Ok(())
    }
}

fn open(folder: &Path) -> Result<StreamHub, sealane_stream::Error> {
    let folder = folder.to_owned();
    StreamHub::open(HubConfig { folder, level: Level::Disk, retention: Retention::default() })
}

/// Checked and stored like any message; made anew each time, as it would come from a socket.
async fn append(hub: &StreamHub, group: usize) -> Done {
    let mut scratch = Transcoder::new();
    let data = "x".repeat(256 - 32);
    let raw = format!(r#"{{"id":"abcdefghijkl-1","data":"{data}"}}"#);
    let envelopes = (0..group)
        .map(|_| StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, raw.as_bytes()))
        .collect::<Result<_, _>>()?;
    let topic = "bench".parse()?;
    hub.enqueue(StreamEnqueue {
        topic,
        envelopes,
        expect: None,
        delay_ms: None,
        key: None,
        owner: "".into(),
    })
    .await?;
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn show(values: &mut [f64]) -> String {
    let middle = median(values);
    let (low, high) = (values.first().unwrap_or(&0.0), values.last().unwrap_or(&0.0));
    format!("{:>28}", format!("{middle:.0} ({low:.0}, {high:.0})"))
}
