//! `sealane stream`.

use std::time::Duration;

use sealane::{
    Client, ConfigureStream, ConsumerState, GroupTag, HubError, Retention, RetentionRule,
    StartPosition, StreamRules, StreamState, Value,
};

use crate::args::stream::{ListArgs, StreamArgs, StreamNew, StreamPurge, StreamSet, StreamVerb};
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
        StreamVerb::Set(set) if is_pattern(&set.topic) => bound(&client, set, terminal).await,
        StreamVerb::Set(set) => show(&change(&client, set).await?, terminal),
        StreamVerb::Rules => rules(&client, terminal).await,
        StreamVerb::Unset { pattern, rule } if *rule || is_pattern(pattern) => {
            unset(&client, pattern, terminal).await
        }
        StreamVerb::Unset { pattern, .. } => follow_rules(&client, pattern, terminal).await,
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
        ("bounds by", bounds_by(state)),
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

/// The source of the bounds.
fn bounds_by(state: &StreamState) -> String {
    match state.rule.as_deref() {
        Some("") => "the node's default (sealane up --max-age)".to_owned(),
        Some(pattern) => format!("the rule {pattern}"),
        None if state.retention.keeps_all() => "-".to_owned(),
        None => "this stream alone".to_owned(),
    }
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
        ("rule", state.rule.as_deref().map_or(Value::Null, Value::from)),
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
    if is_pattern(topic) {
        return remove_all(client, topic, yes, terminal).await;
    }
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

/// Removes all streams that match. They are listed first, and without a terminal to ask on it takes
/// `--yes`: a pattern may match more than was meant.
async fn remove_all(
    client: &Client,
    pattern: &str,
    yes: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let streams = all(client, Some(pattern)).await?;
    if streams.is_empty() {
        return Err(CliFailure::NothingMatches(pattern.to_owned()));
    }
    if !yes {
        for state in &streams {
            let (messages, size) = (count(state.count, "messages"), show_bytes(state.bytes));
            eprintln!("  {}  {messages}, {size}", state.stream);
        }
        if !terminal.asks() {
            return Err(CliFailure::Usage("a pattern is removed with --yes; these match it"));
        }
        let messages = count(streams.iter().map(|state| state.count).sum(), "messages");
        let streams = count(streams.len() as u64, "streams");
        confirm(&format!("remove {streams} with {messages}?"))?;
    }
    for state in streams {
        let topic = state.stream.as_str();
        match client.remove(topic).await {
            Ok(()) => {}
            // Somebody else was faster.
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => continue,
            Err(error) => return Err(error.into()),
        }
        if terminal.json() {
            terminal.record(vec![("stream", topic.into()), ("removed", true.into())])?;
        } else {
            terminal.line(format_args!("{topic} removed"))?;
        }
    }
    Ok(())
}

/// Whether a name stands for several topics.
fn is_pattern(name: &str) -> bool {
    name.split('/').any(|segment| segment == "*" || segment == "**")
}

/// Has a rule hold for the streams of a pattern.
async fn bound(
    client: &Client,
    set: &StreamSet,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if set.level.is_some() {
        return Err(CliFailure::Usage("a rule has bounds, and no --level"));
    }
    if set.max_age.is_none() && set.max_count.is_none() && set.max_bytes.is_none() {
        return Err(CliFailure::Usage("a rule takes --max-age, --max-count or --max-bytes"));
    }
    let milliseconds = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    // A bound that is not named stays as it is, as with a stream.
    let known = client.rules().await?.rules;
    let known = known.into_iter().find(|rule| rule.pattern.as_str() == set.topic);
    let known = known.map(|rule| rule.retention).unwrap_or_default();
    let bounds = Retention {
        max_age_ms: set.max_age.map_or(known.max_age_ms, milliseconds),
        max_count: set.max_count.unwrap_or(known.max_count),
        max_bytes: set.max_bytes.unwrap_or(known.max_bytes),
    };
    let rule = client.set_rule(&set.topic, bounds).await?;
    if terminal.json() {
        return terminal.record(rule_fields(&rule));
    }
    let streams = all(client, Some(&set.topic)).await?;
    let held = streams.iter().filter(|state| state.rule.as_deref() == Some(set.topic.as_str()));
    let (held, matching) = (held.count() as u64, count(streams.len() as u64, "streams"));
    terminal.line(format_args!(
        "{}: {}; it holds for {held} of {matching} that match, and for those that come",
        rule.pattern,
        bounds_said(&rule.retention)
    ))
}

async fn rules(client: &Client, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let StreamRules { rules, default, .. } = client.rules().await?;
    if terminal.json() {
        return rules.iter().try_for_each(|rule| terminal.record(rule_fields(rule)));
    }
    let mut rows: Vec<_> = rules.iter().map(rule_row).collect();
    let [age, messages, bytes] = bound_cells(&default);
    rows.push(vec!["(default)".to_owned(), age, messages, bytes, "-".to_owned(), "-".to_owned()]);
    let head = ["PATTERN", "MAX AGE", "MAX COUNT", "MAX BYTES", "BY", "SINCE"];
    terminal.write(table(&head, &rows).as_bytes())
}

fn rule_row(rule: &RetentionRule) -> Vec<String> {
    let [age, messages, bytes] = bound_cells(&rule.retention);
    let maker = if rule.maker.is_empty() { "-" } else { &rule.maker };
    let since = show_time(rule.created_ms);
    vec![rule.pattern.to_string(), age, messages, bytes, maker.to_owned(), since]
}

/// The bounds as cells of a table.
fn bound_cells(bounds: &Retention) -> [String; 3] {
    let cell = |n: u64, said: String| if n == 0 { "-".to_owned() } else { said };
    [
        cell(bounds.max_age_ms, show_span(Duration::from_millis(bounds.max_age_ms))),
        cell(bounds.max_count, bounds.max_count.to_string()),
        cell(bounds.max_bytes, show_bytes(bounds.max_bytes)),
    ]
}

/// The bounds in one line.
fn bounds_said(bounds: &Retention) -> String {
    let names = ["max age", "max count", "max bytes"].into_iter();
    let said = names.zip(bound_cells(bounds)).filter(|(_, cell)| cell != "-");
    let said: Vec<String> = said.map(|(name, cell)| format!("{name} {cell}")).collect();
    if said.is_empty() { "no bound".to_owned() } else { said.join(", ") }
}

fn rule_fields(rule: &RetentionRule) -> Vec<(&'static str, Value)> {
    vec![
        ("pattern", rule.pattern.as_str().into()),
        ("maxAgeMs", rule.retention.max_age_ms.into()),
        ("maxCount", rule.retention.max_count.into()),
        ("maxBytes", rule.retention.max_bytes.into()),
        ("createdMs", rule.created_ms.into()),
        ("maker", rule.maker.as_str().into()),
    ]
}

async fn unset(client: &Client, pattern: &str, terminal: &mut Terminal) -> Result<(), CliFailure> {
    client.remove_rule(pattern).await?;
    if terminal.json() {
        return terminal.record(vec![("pattern", pattern.into()), ("removed", true.into())]);
    }
    terminal.line(format_args!("{pattern}: its rule is removed"))
}

/// Has a stream forget its own bounds, and says which hold from now on.
async fn follow_rules(
    client: &Client,
    topic: &str,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    // The change alone would make a stream that is not there.
    client.stream(topic).await?;
    let state = client.configure(topic).follow_rules().await?;
    if terminal.json() {
        return terminal.record(fields(&state));
    }
    let bounds = bounds_said(&state.retention);
    match bounds_by(&state).as_str() {
        "-" => terminal.line(format_args!("{topic}: {bounds}; no rule matches it")),
        by => terminal.line(format_args!("{topic}: {bounds}, by {by}")),
    }
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
