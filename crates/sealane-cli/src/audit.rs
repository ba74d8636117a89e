//! `sealane audit`: who changed something at a node, and who was refused.

use sealane::{Client, HubError, ReceivedMessage, StartPosition, Subscription, Value};

use crate::args::operate::AuditArgs;
use crate::config::SettingsFile;
use crate::terminal::harmless;
use crate::times::show_time;
use crate::{CliFailure, Terminal};

/// The topic of the node's own records (spec/access.md, *Audit*).
const TOPIC: &str = "audit/node";

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
    let mut from = match args.from {
        Some(from) => from,
        None => last(&client, args.count).await?,
    };
    // The subscription stands before the past is printed, so that no record falls between.
    let live = match args.follow {
        true => Some(client.subscribe(TOPIC).from(StartPosition::New).await?),
        false => None,
    };
    let mut left = if args.from.is_some() { u64::MAX } else { args.count };
    loop {
        let page = match client.read(TOPIC, from, PAGE_RECORDS).await {
            Ok(page) => page,
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
                eprintln!(
                    "sealane: there is no record: a node with tokens keeps one of each change"
                );
                break;
            }
            Err(error) => return Err(error.into()),
        };
        for message in page.messages.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            show(message, terminal)?;
            left -= 1;
        }
        if page.end || left == 0 {
            break;
        }
        from = StartPosition::Offset(page.next);
    }
    match live {
        Some(live) => follow(live, terminal).await,
        None => Ok(()),
    }
}

/// The place of the last records.
async fn last(client: &Client, count: u64) -> Result<StartPosition, CliFailure> {
    match client.stream(TOPIC).await {
        Ok(state) => Ok(StartPosition::Offset(state.next.saturating_sub(count).max(state.first))),
        Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
            Ok(StartPosition::First)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints records as they come, until Ctrl-C.
async fn follow(mut subscription: Subscription, terminal: &mut Terminal) -> Result<(), CliFailure> {
    terminal.flush()?;
    loop {
        let next = tokio::select! {
            next = subscription.next() => next,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(message) = next else { break };
        show(&message?, terminal)?;
        terminal.flush()?;
    }
    subscription.close().await;
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
