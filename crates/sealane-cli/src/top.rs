//! `sealane top`: what the streams of a node do now.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use sealane::{Client, StreamState, Topic, Value};

use crate::args::operate::TopArgs;
use crate::config::SettingsFile;
use crate::limits::MIN_TOP_TOPIC_COLUMNS;
use crate::terminal::{NarrowTable, narrowed, table};
use crate::times::{show_bytes, show_duration};
use crate::{CliFailure, Terminal, stream};

/// Back to the upper left corner, and nothing left of what stood there.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Columns that a narrow terminal goes without, the first of them first.
const SPARED: [&str; 3] = ["SIZE", "COUNT", "READERS"];
/// Lines of a terminal beside those of the streams: the head, how many are not shown, the prompt.
const OTHER_LINES: usize = 3;

/// The state at one look.
struct TopSample {
    at: Instant,
    streams: Vec<StreamState>,
    /// By stream.
    oldest_ms: HashMap<Topic, u64>,
}

/// A stream and what happened in it since the last look.
struct TopRow<'a> {
    state: &'a StreamState,
    messages_per_s: f64,
    bytes_per_s: f64,
    /// Of the consumer that is furthest behind.
    lag: u64,
    in_flight: u64,
    /// Of the consumer that has most.
    unfinished: u64,
    /// For how long the oldest unfinished message has been stored, in milliseconds; 0: there is
    /// none, or the hub does not say it.
    oldest_ms: u64,
}

/// Shows streams and their rates, the busiest first, until Ctrl-C.
///
/// # Errors
/// The hub's refusal.
pub async fn run(
    args: &TopArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    let screen = !terminal.json() && std::io::stdout().is_terminal();
    let mut before = look(&client, args.pattern.as_deref()).await?;
    // Listened to from the beginning, since Ctrl-C may come while the hub is asked.
    let mut ended = tokio::spawn(tokio::signal::ctrl_c());
    let mut left = args.count.map(|count| count.saturating_sub(1));
    while left != Some(0) {
        tokio::select! {
            () = tokio::time::sleep(args.every) => {}
            _ = &mut ended => break,
        }
        let now = look(&client, args.pattern.as_deref()).await?;
        let rows = rows(&before, &now);
        if screen {
            terminal.write(CLEAR.as_bytes())?;
        }
        show(&rows, terminal)?;
        terminal.flush()?;
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

async fn look(client: &Client, pattern: Option<&str>) -> Result<TopSample, CliFailure> {
    let streams = stream::all(client, pattern).await?;
    let mut oldest_ms = HashMap::new();
    let is_shared = streams.iter().any(|state| !state.consumers.is_empty());
    // An older hub has no list of all consumers: ages are left out then.
    if is_shared && let Ok(all) = client.all_consumers(pattern).await {
        for info in all {
            let oldest = oldest_ms.entry(info.stream).or_insert(0);
            *oldest = info.oldest_ms.max(*oldest);
        }
    }
    Ok(TopSample { at: Instant::now(), streams, oldest_ms })
}

fn rows<'a>(before: &TopSample, now: &'a TopSample) -> Vec<TopRow<'a>> {
    let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
    let known: HashMap<&Topic, &StreamState> =
        before.streams.iter().map(|state| (&state.stream, state)).collect();
    let mut rows: Vec<TopRow<'_>> = now
        .streams
        .iter()
        .map(|state| {
            let before = known.get(&state.stream);
            let messages = before.map_or(0, |before| state.next.saturating_sub(before.next));
            // Messages that retention dropped in between are not seen: the mean size stands for
            // them.
            let mean = state.bytes as f64 / state.count.max(1) as f64;
            TopRow {
                state,
                messages_per_s: messages as f64 / seconds,
                bytes_per_s: messages as f64 * mean / seconds,
                lag: state.lag().unwrap_or(0),
                in_flight: state.consumers.iter().map(|consumer| consumer.in_flight).sum(),
                unfinished: state.unfinished().unwrap_or(0),
                oldest_ms: now.oldest_ms.get(&state.stream).copied().unwrap_or_default(),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let rates = b.messages_per_s.total_cmp(&a.messages_per_s);
        rates.then(b.unfinished.cmp(&a.unfinished)).then(a.state.stream.cmp(&b.state.stream))
    });
    rows
}

/// For how long the oldest message waits that is not done.
fn oldest(row: &TopRow<'_>) -> String {
    if row.unfinished == 0 { "-".to_owned() } else { show_duration(row.oldest_ms) }
}

/// A row as it stands in the table.
fn cells(row: &TopRow<'_>) -> Vec<String> {
    vec![
        row.state.stream.to_string(),
        format!("{:.0}", row.messages_per_s),
        show_bytes(row.bytes_per_s as u64),
        row.state.count.to_string(),
        show_bytes(row.state.bytes),
        row.state.readers.to_string(),
        row.state.consumers.len().to_string(),
        row.lag.to_string(),
        row.in_flight.to_string(),
        oldest(row),
    ]
}

fn show(rows: &[TopRow<'_>], terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return rows.iter().try_for_each(|row| {
            terminal.record(vec![
                ("stream", row.state.stream.as_str().into()),
                ("messagesPerSecond", Value::F64(row.messages_per_s)),
                ("bytesPerSecond", Value::F64(row.bytes_per_s)),
                ("count", row.state.count.into()),
                ("bytes", row.state.bytes.into()),
                ("readers", row.state.readers.into()),
                ("consumers", (row.state.consumers.len() as u64).into()),
                ("lag", row.lag.into()),
                ("inFlight", row.in_flight.into()),
                ("unfinished", row.unfinished.into()),
                ("oldestMs", row.oldest_ms.into()),
            ])
        });
    }
    let head = [
        "STREAM",
        "MSG/S",
        "BYTES/S",
        "COUNT",
        "SIZE",
        "READERS",
        "CONSUMERS",
        "LAG",
        "IN FLIGHT",
        "OLDEST",
    ];
    let mut cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let Some(size) = terminal.size() else {
        return terminal.write(table(&head, &cells).as_bytes());
    };
    let shown = size.rows.saturating_sub(OTHER_LINES).max(1);
    let left = cells.len().saturating_sub(shown);
    cells.truncate(shown);
    let narrow =
        NarrowTable { columns: size.columns, spared: &SPARED, least: MIN_TOP_TOPIC_COLUMNS };
    terminal.write(narrowed(&head, cells, &narrow).as_bytes())?;
    if left > 0 {
        terminal.line(format_args!("… {left} more, which do less"))?;
    }
    Ok(())
}
