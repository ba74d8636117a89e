//! `sealane sub`.

use std::collections::HashSet;

use futures_util::FutureExt;
use sealane::{Class, Codec, Error, Event, Events, Message, Seal, Subscription, Value};
use sealane_codec::Transcoder;

use crate::args::Sub;
use crate::config::{File, Key};
use crate::terminal::harmless;
use crate::times::now_ms;
use crate::{Failure, Terminal, sealed};

/// Prints messages, one per line, until the count is reached or Ctrl-C.
///
/// # Errors
/// The hub's refusal, or output that cannot be written.
pub async fn run(args: &Sub, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
    let codec = file.setting(Key::Codec, args.codec.as_ref()).codec()?;
    let client = file.client(args.hub.server.as_ref(), args.codec.as_ref())?;
    let group = match &args.group {
        Some(name) => Some(sealed::open(&client, &args.keys, name, file).await?),
        None => None,
    };
    if let Some(group) = &group {
        sealed::warn(group);
    }
    let subscribe = match &group {
        Some(group) => group.subscribe(&args.pattern),
        None => client.subscribe(&args.pattern),
    };
    let mut subscribe = subscribe.codec(codec).batch(args.batch);
    if let Some(start) = args.from {
        subscribe = subscribe.from(start);
    }
    if let Some(name) = &args.consumer {
        subscribe = subscribe.consumer(name);
    }
    if args.inbox {
        subscribe = subscribe.inbox();
    }
    if let Some(count) = args.count {
        subscribe = subscribe.limit(count);
    }
    let mut subscription = subscribe.await?;
    let events = tokio::spawn(tell(subscription.events()));
    let orders = group.map(|group| tokio::spawn(tell(group.events())));
    let outcome = tokio::select! {
        outcome = print(&mut subscription, !args.no_ack, terminal) => outcome,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    // Also after a failure: what was printed is done, and what happened before is told.
    subscription.close().await;
    // It ends with the subscription, and fails only by panicking.
    let _ = events.await;
    if let Some(orders) = orders {
        orders.abort();
    }
    outcome
}

/// Messages that are printed before they are acknowledged together.
const MAX_PRINTED: usize = 256;

async fn print(
    subscription: &mut Subscription,
    ack: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mut printed = Vec::with_capacity(MAX_PRINTED);
    let mut told = HashSet::new();
    let mut transcoder = Transcoder::new();
    loop {
        let next = match subscription.next().now_or_never() {
            Some(next) => next,
            None => {
                hand_on(&mut printed, ack, terminal)?;
                subscription.next().await
            }
        };
        let Some(message) = next else { break };
        let message = message?;
        let frame = match &message.seal {
            Some(_) => None,
            None => sealed::describe(&message)?,
        };
        if frame.is_some() && told.insert(message.stream.clone()) {
            eprintln!("sealane: {} is sealed: shown is what can be seen of it", message.stream);
        }
        show(&message, frame, &mut transcoder, terminal)?;
        printed.push(message);
        if printed.len() == MAX_PRINTED {
            hand_on(&mut printed, ack, terminal)?;
        }
    }
    hand_on(&mut printed, ack, terminal)
}

/// Acknowledges what was printed, once it has left this process.
fn hand_on(printed: &mut Vec<Message>, ack: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    terminal.flush()?;
    printed.drain(..).filter(|_| ack).for_each(|message| message.ack());
    Ok(())
}

/// Writes one message.
pub(crate) fn show(
    message: &Message,
    frame: Option<Value>,
    transcoder: &mut Transcoder,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        let mut fields = vec![
            ("stream", message.stream.as_str().into()),
            ("offset", message.offset.into()),
            ("generation", message.generation.into()),
            ("attempt", Value::from(u64::from(message.attempt))),
            ("envelope", message.value()?),
        ];
        fields.extend(frame.map(|frame| ("frame", frame)));
        fields.extend(message.seal.as_ref().map(|seal| ("seal", seal_fields(seal))));
        return terminal.record(fields);
    }
    if let Some(frame) = frame {
        let mut line = Vec::with_capacity(256);
        let id = message.value()?.field("id").cloned().unwrap_or(Value::Null);
        let shown = Value::Map(vec![("id".into(), id), ("sealed".into(), frame)]);
        sealane_codec::encode(Codec::Json, &shown, &mut line);
        return terminal.body(&line);
    }
    let mut line = Vec::with_capacity(2 * message.envelope.len() + 64);
    if let Some(seal) = &message.seal {
        line.extend_from_slice(who(seal, now_ms()).as_bytes());
    }
    transcoder
        .transcode(message.codec, &message.envelope, Codec::Json, &mut line)
        .map_err(Error::from)?;
    terminal.body(&line)
}

/// Who sent a sealed message, how sure that is, and of an urgent one how old it is.
fn who(seal: &Seal, now_ms: u64) -> String {
    let sure = match seal.class {
        Class::Signed => "signed",
        Class::Peer => "the other of the two",
        Class::Group | Class::Authenticated => "unsigned",
    };
    let age = seal.age_ms(now_ms).map(|age_ms| {
        let age = crate::times::show_duration(age_ms);
        if seal.is_old(now_ms) { format!(", OLD: {age}") } else { format!(", {age} ago") }
    });
    let sender = harmless(&seal.sender);
    let (letter, age) = (seal.class.letter(), age.unwrap_or_default());
    format!("{sender} [{letter}, {sure}{age}] ")
}

fn seal_fields(seal: &Seal) -> Value {
    let fields = [
        ("group", seal.group.to_string().into()),
        ("sender", seal.sender.as_str().into()),
        ("slot", u64::from(seal.slot).into()),
        ("class", seal.class.letter().to_string().into()),
        ("type", seal.data_type.to_string().into()),
        ("epoch", seal.epoch.into()),
        ("context", seal.context.to_string().into()),
        ("counter", seal.counter.into()),
        ("timeMs", seal.time_ms.map_or(Value::Null, Value::from)),
        ("old", seal.is_old(now_ms()).into()),
    ];
    Value::Map(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Says on standard error what happens beside the messages.
pub(crate) async fn tell(mut events: Events) {
    let mut lost = false;
    while let Some(event) = events.next().await {
        match event {
            Event::Disconnected { cause } if !lost => {
                eprintln!("sealane: connection lost, connecting again: {}", harmless(&cause));
                lost = true;
            }
            Event::Connected if lost => {
                eprintln!("sealane: connected again");
                lost = false;
            }
            Event::Gap { stream, from, to, reason } => {
                eprintln!(
                    "sealane: {stream}: offsets {from} to {to} do not come: {}",
                    harmless(&reason)
                );
            }
            Event::NotRecovered { stream, generation, offset } => {
                eprintln!(
                    "sealane: {stream}: messages may be missing; \
                     going on at offset {offset} of generation {generation}"
                );
            }
            Event::Refused { stream, offset, code, cause, .. } => {
                eprintln!(
                    "sealane: {stream} offset {offset} is not shown: {} [{code}]",
                    harmless(&cause)
                );
            }
            Event::Superseded { stream, offset } => {
                eprintln!(
                    "sealane: {stream} offset {offset} stands behind a removal that was not known \
                     yet; it was sealed again and published behind the others"
                );
            }
            Event::Keys { group, removed: true, .. } => {
                eprintln!("sealane: this member was removed from group {group}");
            }
            Event::Keys { group, epoch, .. } => {
                eprintln!("sealane: group {group} is in epoch {epoch}");
            }
            _ => {}
        }
    }
}
