//! `sealane stream leaks`: everything that the hub can see of a stream, found by reading what it
//! holds as anybody without keys would.

use std::collections::BTreeMap;

use sealane::{Client, Codec, StartPosition, StreamState, Value};
use sealane_frame::FrameView;

use crate::sealed::{codec_name, read, tag_name};
use crate::times::{count as things, show_bytes, show_time};
use crate::{CliFailure, Terminal};

/// Messages of one request.
const PAGE: u64 = 1000;
/// Examples that a row shows.
const EXAMPLES: usize = 3;

/// Prints what the hub can see of a stream, looking at up to `count` of its last messages.
///
/// # Errors
/// The hub's refusal, or output that cannot be written.
pub async fn run(
    client: &Client,
    topic: &str,
    count: u64,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = client.clone().with_codec(Codec::MsgPack)?;
    let state = client.stream(topic).await?;
    let Some(group) = state.sealed else { return open(&state, terminal) };
    let seen = LeakSummary::collect(&client, &state, count).await?;
    let mut rows = seen.rows();
    rows.extend(stream_rows(&state));
    if terminal.json() {
        return records(&state, &seen, &rows, terminal);
    }
    terminal.line(format_args!("{topic} is sealed for group {group}."))?;
    let all = things(state.count, "messages");
    terminal.line(format_args!("Looked at {} of {all}.\n", seen.messages))?;
    terminal.line("What the hub sees               DISTINCT  EXAMPLES")?;
    for row in &rows {
        let name = format!("{}: {}", row.of, row.field);
        let distinct = row.distinct.map_or(String::new(), |count| count.to_string());
        let line = format!("  {name:<30}{distinct:>8}  {}", row.examples.join(", "));
        terminal.line(line.trim_end())?;
    }
    terminal.line(format_args!("  {:<38}  {}", "connection", CONNECTION))?;
    terminal.line("\nWhat the hub does not see")?;
    let hidden = show_bytes(seen.hidden_bytes);
    let bodies = things(seen.hidden, "messages");
    terminal.line(format_args!("  the bodies of {bodies}, {hidden}"))?;
    terminal.line(format_args!("  {UNSEEN}"))?;
    if seen.clear > 0 {
        let clear = show_bytes(seen.clear_bytes);
        let bodies = things(seen.clear, "messages");
        terminal
            .line(format_args!("\nThe bodies of {bodies} of class A are in clear, {clear}."))?;
    }
    Ok(())
}

/// The facts that the hub knows of a client while it is connected.
const CONNECTION: &str = "addresses, when and how much is sent and read; keys of repeats for 24 h";
const UNSEEN: &str = "keys; who is behind a tag or slot; the signatures of class S";

fn open(state: &StreamState, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let all = "topic, ids, bodies in full, sizes, times, who reads";
    if terminal.json() {
        return terminal.record(vec![
            ("stream", state.stream.as_str().into()),
            ("sealed", Value::Null),
            ("field", "everything".into()),
            ("examples", Value::Array(vec![all.into()])),
        ]);
    }
    terminal.line(format_args!("{} is open: the hub sees everything: {all}.", state.stream))
}

/// One thing that the hub sees.
struct LeakRow {
    /// `message` or `stream`.
    of: &'static str,
    field: &'static str,
    /// How many values there are, where they were counted.
    distinct: Option<usize>,
    examples: Vec<String>,
}

/// The facts that the messages showed.
#[derive(Default)]
struct LeakSummary {
    messages: u64,
    /// How often each value of each field came.
    fields: BTreeMap<(usize, &'static str), BTreeMap<String, u64>>,
    hidden: u64,
    hidden_bytes: u64,
    clear: u64,
    clear_bytes: u64,
}

impl LeakSummary {
    async fn collect(client: &Client, state: &StreamState, count: u64) -> Result<Self, CliFailure> {
        let mut seen = LeakSummary::default();
        let mut next = state.next.saturating_sub(count).max(state.first);
        while next < state.next {
            let limit = PAGE.min(state.next - next) as usize;
            let page =
                client.read(state.stream.as_str(), StartPosition::Offset(next), limit).await?;
            for message in &page.messages {
                if let Some(sealed) = read(message)? {
                    seen.add(sealed.id.as_deref().unwrap_or_default(), &sealed.frame);
                }
            }
            if page.end || page.next <= next {
                break;
            }
            next = page.next;
        }
        Ok(seen)
    }

    fn add(&mut self, id: &str, bytes: &[u8]) {
        let Ok(frame) = FrameView::parse(bytes) else { return };
        self.messages += 1;
        let (header, seal) = (frame.header(), frame.seal_header());
        let values = [
            ("id", id.to_owned()),
            ("frame bytes", bytes.len().to_string()),
            ("body bytes", header.body_bytes().to_string()),
            ("next hop", tag_name(header.next_hop())),
            ("previous hop", tag_name(header.previous_hop())),
            ("hop limit", header.hop_limit().to_string()),
            ("kind", format!("{:?}", header.kind()).to_lowercase()),
            ("class", header.class().letter().to_string()),
            ("priority", format!("{:?}", header.priority()).to_lowercase()),
            ("compression", format!("{:?}", header.compression()).to_lowercase()),
            ("codec", codec_name(header.codec())),
            ("data type", header.data_type().to_string()),
            ("group tag", header.group().to_string()),
            ("source tag", header.source().to_string()),
            ("destination tag", tag_name(header.destination())),
            ("sender context", header.context().to_string()),
            ("orders obeyed, low 8 bits", header.orders().to_string()),
            ("slot", seal.key.slot.number().to_string()),
            ("epoch, low 8 bits", (seal.key.epoch_low).to_string()),
            // As wide as they get, so that they are in order as text too.
            ("sequence", format!("{:>20}", header.sequence())),
        ];
        for (at, (field, value)) in values.into_iter().enumerate() {
            *self.fields.entry((at, field)).or_default().entry(value).or_default() += 1;
        }
        let body = header.body_bytes() as u64;
        if frame.clear_body().is_some() {
            self.clear += 1;
            self.clear_bytes += body;
        } else {
            self.hidden += 1;
            self.hidden_bytes += body;
        }
    }

    fn rows(&self) -> Vec<LeakRow> {
        let row = |((_, field), values): (&(usize, &'static str), &BTreeMap<String, u64>)| {
            let mut most: Vec<_> = values.iter().collect();
            most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let examples = most.iter().take(EXAMPLES).map(|(value, _)| value.trim().to_owned());
            LeakRow {
                of: "message",
                field,
                distinct: Some(values.len()),
                examples: examples.collect(),
            }
        };
        self.fields.iter().map(row).collect()
    }
}

/// The facts beside the messages.
fn stream_rows(state: &StreamState) -> Vec<LeakRow> {
    let row = |field, examples| LeakRow { of: "stream", field, distinct: None, examples };
    let consumers = state.consumers.iter().map(|consumer| {
        let name = if consumer.consumer.is_empty() { "(inbox)" } else { &consumer.consumer };
        format!("{name} at {} with {}", consumer.next, things(consumer.members, "connections"))
    });
    vec![
        row("topic", vec![state.stream.to_string()]),
        row("when each message came", vec![format!("last {}", show_time(state.last_ms))]),
        row("when it was made", vec![show_time(state.created_ms)]),
        row("consumers", consumers.collect()),
        row("readers now", vec![state.readers.to_string()]),
    ]
}

fn records(
    state: &StreamState,
    seen: &LeakSummary,
    rows: &[LeakRow],
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let group = state.sealed.map_or(Value::Null, |group| group.to_string().into());
    terminal.record(vec![
        ("stream", state.stream.as_str().into()),
        ("sealed", group),
        ("messages", state.count.into()),
        ("looked", seen.messages.into()),
        ("hiddenBodies", seen.hidden.into()),
        ("hiddenBytes", seen.hidden_bytes.into()),
        ("clearBodies", seen.clear.into()),
        ("clearBytes", seen.clear_bytes.into()),
    ])?;
    let told = [("connection", CONNECTION, true), ("message", UNSEEN, false)];
    for row in rows {
        let examples = row.examples.iter().map(|example| example.as_str().into()).collect();
        terminal.record(vec![
            ("of", row.of.into()),
            ("field", row.field.into()),
            ("distinct", row.distinct.map_or(Value::Null, |count| (count as u64).into())),
            ("examples", Value::Array(examples)),
            ("seen", true.into()),
        ])?;
    }
    for (of, words, is_seen) in told {
        terminal.record(vec![
            ("of", of.into()),
            ("field", words.into()),
            ("seen", is_seen.into()),
        ])?;
    }
    Ok(())
}
