//! `sealane stream`.

use std::time::Duration;

use sealane::{
    Client, ConfigureStream, ConsumerState, GroupTag, StartPosition, StreamState, Value,
};

use crate::args::{ListArgs, StreamArgs, StreamNew, StreamPurge, StreamSet, StreamVerb};
use crate::config::SettingsFile;
use crate::terminal::{NarrowTable, confirm, map, narrowed, table};
use crate::times::{count, show_bytes, show_span, show_time};
use crate::{CliFailure, Terminal, key, leaks};

/// Columns of the list that a narrow terminal goes without, the first of them first.
const SPARED: [&str; 3] = ["FIRST", "SEALED", "LEVEL"];

/// Lists, shows, changes or removes streams.
///
/// # Errors
/// The hub's refusal.
pub async fn run(
    args: &StreamArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    match &args.verb {
        StreamVerb::Ls { pattern } => list(&client, pattern.as_deref(), terminal).await,
        StreamVerb::Info { topic } => show(&client.stream(topic).await?, terminal),
        StreamVerb::Rm { topic, yes } => remove(&client, topic, *yes, terminal).await,
        StreamVerb::Purge(purge) => self::purge(&client, purge, terminal).await,
        StreamVerb::New(new) => show(&make(&client, new).await?, terminal),
        StreamVerb::Set(set) => show(&change(&client, set).await?, terminal),
        StreamVerb::Leaks { topic, count } => leaks::run(&client, topic, *count, terminal).await,
    }
}

/// Lists streams.
///
/// # Errors
/// The hub's refusal.
pub async fn ls(
    args: &ListArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    list(&client, args.pattern.as_deref(), terminal).await
}

/// All streams whose topic matches, page by page.
pub(crate) async fn all(
    client: &Client,
    pattern: Option<&str>,
) -> Result<Vec<StreamState>, sealane::Error> {
    let (mut streams, mut after) = (Vec::new(), None);
    loop {
        let mut ask = client.streams();
        if let Some(pattern) = pattern {
            ask = ask.matching(pattern);
        }
        if let Some(topic) = after.take() {
            ask = ask.after(topic);
        }
        let page = ask.await?;
        streams.extend(page.streams);
        after = page.next;
        if after.is_none() {
            return Ok(streams);
        }
    }
}

async fn list(
    client: &Client,
    pattern: Option<&str>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let streams = all(client, pattern).await?;
    if terminal.json() {
        return streams.iter().try_for_each(|state| terminal.record(fields(state)));
    }
    let rows: Vec<_> = streams.iter().map(row).collect();
    let head = ["STREAM", "SEALED", "FIRST", "NEXT", "COUNT", "SIZE", "LEVEL", "LAST"];
    let text = match terminal.size() {
        // Whole topics: they are copied from here.
        Some(size) => {
            let narrow = NarrowTable { columns: size.columns, spared: &SPARED, least: usize::MAX };
            narrowed(&head, rows, &narrow)
        }
        None => table(&head, &rows),
    };
    terminal.write(text.as_bytes())
}

fn row(state: &StreamState) -> Vec<String> {
    vec![
        state.stream.to_string(),
        sealed(state),
        state.first.to_string(),
        state.next.to_string(),
        state.count.to_string(),
        show_bytes(state.bytes),
        state.level.to_string(),
        show_time(state.last_ms),
    ]
}

/// The group of a sealed stream.
fn sealed(state: &StreamState) -> String {
    state.sealed.map_or("open".to_owned(), |group| group.to_string())
}

fn show(state: &StreamState, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(fields(state));
    }
    let bound = |n: u64, text: String| if n == 0 { "no bound".to_owned() } else { text };
    let max_age = show_span(Duration::from_millis(state.retention.max_age_ms));
    let lines = [
        ("stream", state.stream.to_string()),
        ("sealed", sealed(state)),
        ("level", state.level.to_string()),
        ("generation", state.generation.to_string()),
        ("offsets", format!("first {}, next {}", state.first, state.next)),
        ("kept", format!("{}, {}", count(state.count, "messages"), show_bytes(state.bytes))),
        ("max age", bound(state.retention.max_age_ms, max_age)),
        ("max count", bound(state.retention.max_count, state.retention.max_count.to_string())),
        ("max bytes", bound(state.retention.max_bytes, show_bytes(state.retention.max_bytes))),
        ("created", show_time(state.created_ms)),
        ("last message", show_time(state.last_ms)),
        ("readers", state.readers.to_string()),
    ];
    for (name, value) in lines {
        terminal.line(format_args!("{name:<14}{value}"))?;
    }
    for range in &state.damaged {
        terminal.line(format_args!("{:<14}{} to {}", "damaged", range.start(), range.end()))?;
    }
    if state.consumers.is_empty() {
        return Ok(());
    }
    let head = ["CONSUMER", "NEXT", "IN FLIGHT", "MEMBERS", "REDELIVERED", "DEAD"];
    let rows: Vec<_> = state.consumers.iter().map(consumer_row).collect();
    terminal.write(format!("\n{}", table(&head, &rows)).as_bytes())
}

fn consumer_row(consumer: &ConsumerState) -> Vec<String> {
    let name = if consumer.consumer.is_empty() { "(inbox)" } else { &consumer.consumer };
    vec![
        name.to_owned(),
        consumer.next.to_string(),
        consumer.in_flight.to_string(),
        consumer.members.to_string(),
        consumer.redelivered.to_string(),
        consumer.dead_lettered.to_string(),
    ]
}

fn fields(state: &StreamState) -> Vec<(&'static str, Value)> {
    let consumers = state.consumers.iter().map(|consumer| {
        map(vec![
            ("consumer", consumer.consumer.as_str().into()),
            ("next", consumer.next.into()),
            ("inFlight", consumer.in_flight.into()),
            ("members", consumer.members.into()),
            ("redelivered", consumer.redelivered.into()),
            ("deadLettered", consumer.dead_lettered.into()),
            ("deadDropped", consumer.dead_dropped.into()),
            ("pausedMs", consumer.paused_ms.into()),
        ])
    });
    let damaged = state
        .damaged
        .iter()
        .map(|range| map(vec![("from", (*range.start()).into()), ("to", (*range.end()).into())]));
    vec![
        ("stream", state.stream.as_str().into()),
        ("generation", state.generation.into()),
        ("first", state.first.into()),
        ("next", state.next.into()),
        ("count", state.count.into()),
        ("bytes", state.bytes.into()),
        ("level", state.level.name().into()),
        ("sealed", state.sealed.map_or(Value::Null, |group| group.to_string().into())),
        ("maxAgeMs", state.retention.max_age_ms.into()),
        ("maxCount", state.retention.max_count.into()),
        ("maxBytes", state.retention.max_bytes.into()),
        ("createdMs", state.created_ms.into()),
        ("lastMs", state.last_ms.into()),
        ("readers", state.readers.into()),
        ("consumers", Value::Array(consumers.collect())),
        ("damaged", Value::Array(damaged.collect())),
    ]
}

async fn remove(
    client: &Client,
    topic: &str,
    yes: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if !yes && terminal.asks() {
        let messages = count(client.stream(topic).await?.count, "messages");
        confirm(&format!("remove {topic} with {messages}?"))?;
    }
    client.remove(topic).await?;
    if terminal.json() {
        return terminal.record(vec![("stream", topic.into()), ("removed", true.into())]);
    }
    terminal.line(format_args!("{topic} removed"))
}

/// Removes the oldest messages of a stream.
async fn purge(
    client: &Client,
    args: &StreamPurge,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let topic = &args.topic;
    let before = match args.keep {
        Some(keep) => StartPosition::Offset(client.stream(topic).await?.next.saturating_sub(keep)),
        None => args.before.unwrap_or(StartPosition::New),
    };
    if !args.yes && terminal.asks() {
        let messages = count(client.stream(topic).await?.count, "messages");
        confirm(&format!("purge {topic}, which has {messages}?"))?;
    }
    let purged = client.purge(topic, before).await?;
    if terminal.json() {
        return terminal.record(vec![
            ("stream", purged.stream.as_str().into()),
            ("purged", purged.purged.into()),
            ("first", purged.first.into()),
            ("next", purged.next.into()),
        ]);
    }
    let (messages, first, next) = (count(purged.purged, "messages"), purged.first, purged.next);
    terminal.line(format_args!("{topic}: {messages} purged, first {first}, next {next}"))
}

/// Makes a stream. Where there is one already that is what was asked for, it is shown.
async fn make(client: &Client, new: &StreamNew) -> Result<StreamState, CliFailure> {
    let make = configure(client, &new.set);
    if let Some(group) = &new.sealed {
        let group = match GroupTag::from_hex(group) {
            Some(group) => group,
            None => key::open(&new.keys)?.group(group)?.tag(),
        };
        return Ok(make.sealed(group).await?);
    }
    // The hub would leave it sealed, and say nothing.
    let found = client.stream(&new.set.topic).await;
    if found.is_ok_and(|state| state.sealed.is_some()) {
        return Err(CliFailure::Usage("the stream is there already, and it is sealed"));
    }
    Ok(make.await?)
}

async fn change(client: &Client, set: &StreamSet) -> Result<StreamState, CliFailure> {
    Ok(configure(client, set).await?)
}

fn configure(client: &Client, set: &StreamSet) -> ConfigureStream {
    let mut change = client.configure(&set.topic);
    if let Some(level) = set.level {
        change = change.level(level);
    }
    if let Some(age) = set.max_age {
        change = change.max_age(age);
    }
    if let Some(count) = set.max_count {
        change = change.max_count(count);
    }
    if let Some(bytes) = set.max_bytes {
        change = change.max_bytes(bytes);
    }
    change
}
