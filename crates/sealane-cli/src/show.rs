//! How messages are written: as JSON, as columns on a terminal, as bare bodies in a pipe.

use std::collections::HashSet;
use std::fmt::Write;

use sealane::{Class, Codec, Error, ReceivedMessage, Seal, Topic, Value};
use sealane_codec::Transcoder;

use crate::colour::ColourTone;
use crate::terminal::map;
use crate::times::{now_ms, show_duration, show_time};
use crate::{CliFailure, Terminal, sealed};

/// Writes messages.
pub(crate) struct MessagePrinter {
    transcoder: Transcoder,
    /// Where people read them, and want to know more than the bodies.
    columns: Option<MessageColumns>,
    /// Sealed streams of which it was said that they are.
    told: HashSet<Topic>,
}

/// How wide the columns have been so far.
#[derive(Default)]
struct MessageColumns {
    topic: usize,
    offset: usize,
    sender: usize,
    class: usize,
}

impl MessagePrinter {
    /// One that writes bodies alone if `raw`, and what the terminal is for otherwise.
    pub(crate) fn new(raw: bool, terminal: &Terminal) -> Self {
        let columns = (terminal.screen() && !raw).then(MessageColumns::default);
        Self { transcoder: Transcoder::new(), columns, told: HashSet::new() }
    }

    /// Writes one message. Of one that is sealed and was not opened it writes what can be seen.
    ///
    /// # Errors
    /// An envelope that the hub should not have delivered, or output that cannot be written.
    pub(crate) fn print(
        &mut self,
        message: &ReceivedMessage,
        terminal: &mut Terminal,
    ) -> Result<(), CliFailure> {
        let frame = match &message.seal {
            Some(_) => None,
            None => sealed::describe(message)?,
        };
        if frame.is_some() && self.told.insert(message.stream.clone()) {
            eprintln!("sealane: {} is sealed: shown is what can be seen of it", message.stream);
        }
        if terminal.json() {
            return terminal.record(fields(message, frame)?);
        }
        let mut line = Vec::with_capacity(2 * message.envelope.len() + 128);
        let columns = self.columns.as_mut().map(|all| all.write(message, frame.as_ref()));
        if let Some(frame) = frame {
            let id = message.value()?.field("id").cloned().unwrap_or(Value::Null);
            let shown = map(vec![("id", id), ("sealed", frame)]);
            sealane_codec::encode(Codec::Json, &shown, &mut line);
        } else {
            let done =
                self.transcoder.transcode(message.codec, &message.envelope, Codec::Json, &mut line);
            done.map_err(Error::from)?;
        }
        if let Some(columns) = columns {
            terminal.write(terminal.painted(ColourTone::Dim, &columns).as_bytes())?;
        }
        terminal.body(&line)
    }
}

impl MessageColumns {
    /// Time, topic, offset; of a sealed message also who sent it, and how sure that is.
    fn write(&mut self, message: &ReceivedMessage, frame: Option<&Value>) -> String {
        let topic = message.stream.as_str();
        let offset = message.offset.to_string();
        self.topic = self.topic.max(topic.chars().count());
        self.offset = self.offset.max(offset.len());
        let (time, topic_width, offset_width) =
            (show_time(message.stored_ms), self.topic, self.offset);
        let mut text = format!("{time:<24}  {topic:<topic_width$}  {offset:>offset_width$}  ");
        let who = message.seal.as_ref().map(who).or_else(|| frame.map(seen));
        if let Some((sender, class)) = who {
            self.sender = self.sender.max(sender.chars().count());
            self.class = self.class.max(class.chars().count());
            let (sender_width, class_width) = (self.sender, self.class);
            // Writing to a String cannot fail.
            let _ = write!(text, "{sender:<sender_width$}  {class:<class_width$}  ");
        }
        text
    }
}

/// The sender of a sealed message, and its class with the certainty of the sender. An urgent
/// message has its age, too.
fn who(seal: &Seal) -> (String, String) {
    let sure = match seal.class {
        Class::Signed => "signed",
        Class::Peer => "the other of the two",
        Class::Group | Class::Authenticated => "unsigned",
    };
    let now_ms = now_ms();
    let age = seal.age_ms(now_ms).map(|age_ms| {
        let age = show_duration(age_ms);
        if seal.is_old(now_ms) { format!(", OLD: {age}") } else { format!(", {age} ago") }
    });
    let class = format!("{} {sure}{}", seal.class.letter(), age.unwrap_or_default());
    (seal.sender.clone(), class)
}

/// The same, from the header of a frame.
fn seen(frame: &Value) -> (String, String) {
    let text = |name| frame.field(name).and_then(Value::as_text).unwrap_or("-").to_owned();
    (text("source"), text("class"))
}

fn fields(
    message: &ReceivedMessage,
    frame: Option<Value>,
) -> Result<Vec<(&'static str, Value)>, CliFailure> {
    let mut fields = vec![
        ("stream", message.stream.as_str().into()),
        ("offset", message.offset.into()),
        ("generation", message.generation.into()),
        ("attempt", Value::from(u64::from(message.attempt))),
        ("storedMs", message.stored_ms.into()),
        ("envelope", message.value()?),
    ];
    fields.extend(frame.map(|frame| ("frame", frame)));
    fields.extend(message.seal.as_ref().map(|seal| ("seal", seal_fields(seal))));
    Ok(fields)
}

fn seal_fields(seal: &Seal) -> Value {
    map(vec![
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
    ])
}
