//! `sealane consumer` and `sealane delayed`.

use std::time::Duration;

use sealane::{
    Client, ConnectionState, ConsumerHandle, ConsumerInfo, DelayedMessage, PendingMessage, Topic,
    Value,
};

use crate::args::consumer::{
    CliConsumerVerb, ConsumerArgs as Args, ConsumerNameArgs, DelayedArgs, DelayedVerb,
};
use crate::config::SettingsFile;
use crate::terminal::{NarrowTable, confirm, map, narrowed, table};
use crate::times::{count, now_ms, show_bytes, show_duration, show_span, show_time};
use crate::{CliFailure, Terminal};

/// Columns of the list that a narrow terminal goes without, the first of them first.
const SPARED: [&str; 5] = ["PAUSED", "REDELIVERED", "NEXT", "BEHIND", "DEAD"];

/// Lists, shows or steers consumers.
///
/// # Errors
/// The hub's refusal.
pub async fn run(
    args: &Args,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    let (which, did, info) = match &args.verb {
        CliConsumerVerb::Ls { topic } => return list(&client, topic.as_deref(), terminal).await,
        CliConsumerVerb::Info { which } => {
            return show(&find(&client, which)?.info().await?, terminal);
        }
        CliConsumerVerb::Rm { which, yes } => return remove(&client, which, *yes, terminal).await,
        CliConsumerVerb::Pause { which } => (which, "paused", find(&client, which)?.pause().await?),
        CliConsumerVerb::Resume { which } => {
            (which, "resumed", find(&client, which)?.resume().await?)
        }
        CliConsumerVerb::Reset { which, to } => {
            (which, "reset", find(&client, which)?.reset(*to).await?)
        }
        CliConsumerVerb::Skip { which, offsets } => {
            (which, "skipped them", find(&client, which)?.skip(offsets.clone()).await?)
        }
        CliConsumerVerb::Redeliver { which } => {
            (which, "delivers again", find(&client, which)?.redeliver().await?)
        }
    };
    if terminal.json() {
        return terminal.record(fields(&info));
    }
    let (next, in_flight) = (info.state.next, info.state.in_flight);
    terminal.line(format_args!(
        "{} {} {did}: next {next}, {in_flight} in flight, lag {}",
        which.topic,
        shown(which.name()),
        info.lag
    ))
}

fn find(client: &Client, which: &ConsumerNameArgs) -> Result<ConsumerHandle, CliFailure> {
    Ok(client.consumer(&which.topic, which.name())?)
}

pub(crate) fn shown(name: &str) -> &str {
    if name.is_empty() { "(inbox)" } else { name }
}

async fn list(
    client: &Client,
    topic: Option<&str>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    // Of one topic the hub says whether there is such a stream.
    let of_one = topic.filter(|topic| topic.parse::<Topic>().is_ok());
    let mut all = match of_one {
        Some(topic) => client.consumers(topic).await?,
        None => client.all_consumers(topic).await?,
    };
    if of_one.is_none() {
        // The one that stands for longest is what somebody who is called looks for.
        all.sort_by_key(|info| std::cmp::Reverse((info.oldest_ms, info.unfinished)));
    }
    if terminal.json() {
        return all.iter().try_for_each(|info| terminal.record(fields(info)));
    }
    let head = [
        "STREAM",
        "CONSUMER",
        "NEXT",
        "LAG",
        "BEHIND",
        "IN FLIGHT",
        "UNFINISHED",
        "OLDEST",
        "MEMBERS",
        "REDELIVERED",
        "DEAD",
        "PAUSED",
    ];
    let mut rows: Vec<_> = all.iter().map(row).collect();
    let mut head = head.to_vec();
    if of_one.is_some() {
        head.remove(0);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    let text = match terminal.size() {
        Some(size) => {
            let narrow = NarrowTable { columns: size.columns, spared: &SPARED, least: usize::MAX };
            narrowed(&head, rows, &narrow)
        }
        None => table(&head, &rows),
    };
    terminal.write(text.as_bytes())
}

fn row(info: &ConsumerInfo) -> Vec<String> {
    let state = &info.state;
    vec![
        info.stream.to_string(),
        shown(&state.consumer).to_owned(),
        state.next.to_string(),
        info.lag.to_string(),
        behind(info),
        state.in_flight.to_string(),
        info.unfinished.to_string(),
        oldest(info),
        state.members.to_string(),
        state.redelivered.to_string(),
        state.dead_lettered.to_string(),
        show_time(state.paused_ms),
    ]
}

/// For how long the oldest message waits that was not given yet.
fn behind(info: &ConsumerInfo) -> String {
    if info.lag == 0 { "-".to_owned() } else { show_duration(info.lag_ms) }
}

/// For how long the oldest message waits that is not done.
fn oldest(info: &ConsumerInfo) -> String {
    if info.unfinished == 0 { "-".to_owned() } else { show_duration(info.oldest_ms) }
}

fn show(info: &ConsumerInfo, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(fields(info));
    }
    let (state, settings) = (&info.state, &info.settings);
    let wait = show_span(Duration::from_millis(settings.ack_wait_ms));
    let attempts = match settings.max_attempts {
        0 => "no bound".to_owned(),
        count => count.to_string(),
    };
    let lines = [
        ("stream", info.stream.to_string()),
        ("consumer", shown(&state.consumer).to_owned()),
        ("next", state.next.to_string()),
        ("lag", format!("{}, {}", count(info.lag, "messages"), behind(info))),
        ("in flight", format!("{}, {} held", state.in_flight, info.held)),
        ("unfinished", format!("{}, {}", count(info.unfinished, "messages"), oldest(info))),
        ("members", state.members.to_string()),
        ("redelivered", state.redelivered.to_string()),
        ("dead letters", format!("{}, {} dropped", state.dead_lettered, state.dead_dropped)),
        ("paused since", show_time(state.paused_ms)),
        ("max in flight", settings.max_in_flight.to_string()),
        ("ack wait", wait),
        ("max attempts", attempts),
    ];
    for (name, value) in lines {
        terminal.line(format_args!("{name:<14}{value}"))?;
    }
    let connections = info.connections.as_deref().unwrap_or_default();
    if !connections.is_empty() {
        let head = ["CONNECTION", "SINCE", "CODEC", "CREDIT", "IN FLIGHT", "DELIVERED"];
        let rows: Vec<_> = connections.iter().map(connection_row).collect();
        terminal.write(format!("\n{}", table(&head, &rows)).as_bytes())?;
    }
    let pending = info.pending.as_deref().unwrap_or_default();
    if !pending.is_empty() {
        let head = ["OFFSET", "ATTEMPT", "HELD BY", "FOR", "AGAIN IN"];
        let now_ms = now_ms();
        let rows: Vec<_> = pending.iter().map(|one| pending_row(one, now_ms)).collect();
        terminal.write(format!("\n{}", table(&head, &rows)).as_bytes())?;
    }
    Ok(())
}

fn connection_row(connection: &ConnectionState) -> Vec<String> {
    vec![
        connection.connection.to_string(),
        show_time(connection.since_ms),
        connection.codec.clone(),
        connection.credit.to_string(),
        connection.in_flight.to_string(),
        connection.delivered.to_string(),
    ]
}

fn pending_row(message: &PendingMessage, now_ms: u64) -> Vec<String> {
    let nobody = || "-".to_owned();
    let held_for = |_| show_duration(now_ms.saturating_sub(message.since_ms));
    vec![
        message.offset.to_string(),
        message.attempt.to_string(),
        message.connection.map_or_else(nobody, |connection| connection.to_string()),
        message.connection.map_or_else(nobody, held_for),
        show_duration(message.due_ms.saturating_sub(now_ms)),
    ]
}

fn fields(info: &ConsumerInfo) -> Vec<(&'static str, Value)> {
    let (state, settings) = (&info.state, &info.settings);
    let mut fields: Vec<(&'static str, Value)> = vec![
        ("stream", info.stream.as_str().into()),
        ("consumer", state.consumer.as_str().into()),
        ("next", state.next.into()),
        ("lag", info.lag.into()),
        ("lagMs", info.lag_ms.into()),
        ("unfinished", info.unfinished.into()),
        ("oldestMs", info.oldest_ms.into()),
        ("inFlight", state.in_flight.into()),
        ("held", info.held.into()),
        ("members", state.members.into()),
        ("redelivered", state.redelivered.into()),
        ("deadLettered", state.dead_lettered.into()),
        ("deadDropped", state.dead_dropped.into()),
        ("pausedMs", state.paused_ms.into()),
        ("maxInFlight", u64::from(settings.max_in_flight).into()),
        ("ackWaitMs", settings.ack_wait_ms.into()),
        ("maxAttempts", u64::from(settings.max_attempts).into()),
    ];
    let connections = info.connections.iter().map(|all| {
        let all = all.iter().map(connection_fields).collect();
        ("connections", Value::Array(all))
    });
    fields.extend(connections);
    let pending = info.pending.iter().map(|all| {
        let all = all.iter().map(pending_fields).collect();
        ("pending", Value::Array(all))
    });
    fields.extend(pending);
    fields
}

fn connection_fields(connection: &ConnectionState) -> Value {
    map(vec![
        ("connection", connection.connection.into()),
        ("pattern", connection.pattern.as_str().into()),
        ("codec", connection.codec.as_str().into()),
        ("credit", connection.credit.into()),
        ("inFlight", connection.in_flight.into()),
        ("delivered", connection.delivered.into()),
        ("sinceMs", connection.since_ms.into()),
    ])
}

fn pending_fields(message: &PendingMessage) -> Value {
    map(vec![
        ("offset", message.offset.into()),
        ("attempt", u64::from(message.attempt).into()),
        ("connection", message.connection.map_or(Value::Null, Value::from)),
        ("sinceMs", message.since_ms.into()),
        ("dueMs", message.due_ms.into()),
    ])
}

async fn remove(
    client: &Client,
    which: &ConsumerNameArgs,
    yes: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let (topic, name) = (&which.topic, which.name());
    let consumer = find(client, which)?;
    if !yes && terminal.asks() {
        let in_flight = consumer.info().await?.state.in_flight;
        confirm(&format!("remove {} of {topic}, {in_flight} in flight?", shown(name)))?;
    }
    consumer.remove().await?;
    if terminal.json() {
        let topic: Value = topic.as_str().into();
        let fields = vec![("stream", topic), ("consumer", name.into()), ("removed", true.into())];
        return terminal.record(fields);
    }
    terminal.line(format_args!("{topic} {} removed", shown(name)))
}

/// Lists or cancels messages that are held back.
///
/// # Errors
/// The hub's refusal.
pub async fn delayed(
    args: &DelayedArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    match &args.verb {
        DelayedVerb::Ls { topic } => list_delayed(&client, topic, terminal).await,
        DelayedVerb::Cancel { topic, id } => {
            let cancelled = client.cancel(topic, id).await?;
            if !terminal.json() {
                let count = cancelled.cancelled;
                return terminal.line(format_args!("{topic} {id}: {count} cancelled"));
            }
            terminal.record(vec![
                ("stream", cancelled.stream.as_str().into()),
                ("id", cancelled.id.as_str().into()),
                ("cancelled", cancelled.cancelled.into()),
            ])
        }
    }
}

async fn list_delayed(
    client: &Client,
    topic: &str,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = client.delayed(topic, after).await?;
        for message in &page.delayed {
            if terminal.json() {
                terminal.record(delayed_fields(&page.stream, message))?;
            } else {
                rows.push(delayed_row(message));
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if terminal.json() {
        return Ok(());
    }
    terminal.write(table(&["ID", "COMES", "SIZE"], &rows).as_bytes())
}

fn delayed_row(message: &DelayedMessage) -> Vec<String> {
    vec![message.id.clone(), show_time(message.due_ms), show_bytes(message.bytes)]
}

fn delayed_fields(stream: &Topic, message: &DelayedMessage) -> Vec<(&'static str, Value)> {
    vec![
        ("stream", stream.as_str().into()),
        ("id", message.id.as_str().into()),
        ("dueMs", message.due_ms.into()),
        ("bytes", message.bytes.into()),
    ]
}
