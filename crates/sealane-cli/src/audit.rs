//! `sealane audit`: who changed something at a node, and who was refused.

use sealane::{Client, HubError, ReceivedMessage, StartPosition, Value};

use crate::args::operate::AuditArgs;
use crate::config::SettingsFile;
use crate::terminal::harmless;
use crate::times::show_time;
use crate::{CliFailure, Terminal};

/// The topics of the node's own records: of what was done, and of refusals (spec/access.md,
/// *Audit*).
const TOPICS: [&str; 2] = ["audit/node", "audit/refused"];

/// Records that are asked for at once.
const PAGE_RECORDS: usize = 1000;

/// Prints the records of a node, the oldest first.
///
/// # Errors
/// The hub's refusal.
pub async fn run(
    args: &AuditArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?;
    if args.follow {
        return follow(&client, args, terminal).await;
    }
    let mut records = Vec::new();
    for topic in TOPICS {
        let from = place(&client, topic, args).await?;
        records.extend(read(&client, topic, from).await?);
    }
    if records.is_empty() {
        eprintln!("sealane: there is no record: a node with tokens keeps one of each change");
    }
    records.sort_by_key(|record| record.stored_ms);
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let left_out = match args.from {
        Some(_) => 0,
        None => records.len().saturating_sub(count),
    };
    records.iter().skip(left_out).try_for_each(|record| show(record, terminal))
}

/// All records of a topic from a place on.
async fn read(
    client: &Client,
    topic: &str,
    mut from: StartPosition,
) -> Result<Vec<ReceivedMessage>, CliFailure> {
    let mut records = Vec::new();
    loop {
        let page = match client.read(topic, from, PAGE_RECORDS).await {
            Ok(page) => page,
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => return Ok(records),
            Err(error) => return Err(error.into()),
        };
        records.extend(page.messages);
        if page.end {
            return Ok(records);
        }
        from = StartPosition::Offset(page.next);
    }
}

/// The place to begin at: that which was named, or that of the last records.
async fn place(
    client: &Client,
    topic: &str,
    args: &AuditArgs,
) -> Result<StartPosition, CliFailure> {
    if let Some(from) = args.from {
        return Ok(from);
    }
    match client.stream(topic).await {
        Ok(state) => {
            Ok(StartPosition::Offset(state.next.saturating_sub(args.count).max(state.first)))
        }
        Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
            Ok(StartPosition::First)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints records as they come, until Ctrl-C. One subscription of each topic has the past as well:
/// a page before it could lose records or show them twice.
async fn follow(
    client: &Client,
    args: &AuditArgs,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let [done, refused] = TOPICS;
    let mut done = client.subscribe(done).from(place(client, done, args).await?).await?;
    let mut refused = client.subscribe(refused).from(place(client, refused, args).await?).await?;
    loop {
        let next = tokio::select! {
            next = done.next() => next,
            next = refused.next() => next,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(message) = next else { break };
        show(&message?, terminal)?;
        terminal.flush()?;
    }
    done.close().await;
    refused.close().await;
    Ok(())
}

fn show(message: &ReceivedMessage, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let record = message.value()?;
    let text =
        |name: &str| record.field(name).and_then(Value::as_text).unwrap_or_default().to_owned();
    let omitted = record.field("omitted").and_then(Value::as_u64).unwrap_or_default();
    let [deed, token, address, on, detail] = ["deed", "token", "address", "on", "detail"].map(text);
    if terminal.json() {
        return terminal.record(vec![
            ("timeMs", message.stored_ms.into()),
            ("token", token.into()),
            ("address", address.into()),
            ("deed", deed.into()),
            ("on", on.into()),
            ("detail", detail.into()),
            ("omitted", omitted.into()),
        ]);
    }
    let time = show_time(message.stored_ms);
    let who = match (token.as_str(), address.as_str()) {
        ("", "") => "the node".to_owned(),
        ("", address) => format!("somebody at {address}"),
        (token, address) => format!("{token} at {address}"),
    };
    let behind = |text: &str| if text.is_empty() { String::new() } else { format!(" {text}") };
    let said = format!("{time}  {who} {deed}{}{}", behind(&on), in_brackets(&detail));
    terminal.line(harmless(&said))?;
    if omitted > 0 {
        terminal.line(format_args!("  {omitted} records before it were left out"))?;
    }
    Ok(())
}

fn in_brackets(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}
