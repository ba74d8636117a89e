use std::borrow::Cow;

use sealane_codec::{Codec, CodecError, DatumWriter};
use sealane_message::Topic;

use crate::error::{parameter_number, unknown_field};
use crate::fields::ReplyFields;
use crate::{Error, HubLevel, Malformed, StreamPosition};

/// A request to append messages to one stream: all or none, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueue<'a> {
    /// The stream.
    pub to: Topic,
    /// The messages, each one map of the body's codec.
    pub envelopes: Vec<&'a [u8]>,
    /// Whether it has the form of a batch, which one message may have too.
    pub is_batch: bool,
    /// The offset that the first must get.
    pub expect: Option<u64>,
    /// How long a message is held back; not in a batch.
    pub delay_ms: Option<u64>,
}

/// The bodies of requests, as they are shown to whoever sent other ones.
const ONE: &str = r#"{"to": TOPIC, "envelope": {…}}, with "delayMs" or "expect" if you like"#;
const BATCH: &str = r#"{"to": TOPIC, "envelopes": [{…}, …]}, with "expect" if you like"#;

impl<'a> Enqueue<'a> {
    /// Where a request of this form is sent.
    pub fn path(is_batch: bool) -> &'static str {
        if is_batch { "/v1/enqueue/batch" } else { "/v1/enqueue" }
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let mut writer = DatumWriter::new(codec, out);
        let delay_ms = self.delay_ms.filter(|_| !self.is_batch);
        writer.map(2 + usize::from(self.expect.is_some()) + usize::from(delay_ms.is_some()));
        writer.key("to");
        writer.text(self.to.as_str());
        if self.is_batch {
            writer.key("envelopes");
            writer.array(self.envelopes.len());
            self.envelopes.iter().for_each(|envelope| writer.raw(envelope));
            writer.end();
        } else if let [envelope] = self.envelopes.as_slice() {
            writer.key("envelope");
            writer.raw(envelope);
        }
        for (name, number) in [("expect", self.expect), ("delayMs", delay_ms)] {
            if let Some(number) = number {
                writer.key(name);
                writer.u64(number);
            }
        }
        writer.end();
    }

    /// Reads a request's body; the envelopes are slices of it that nobody has looked into.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`], [`Error::InvalidParameter`] or
    /// [`Error::Topic`].
    pub fn read(codec: Codec, body: &'a [u8], is_batch: bool) -> Result<Self, Error> {
        let decode = |cause| match cause {
            // Around an envelope that is within its limits there is nothing deep or large.
            CodecError::TooDeep { .. } => Error::InvalidEnvelope("is nested too deep"),
            cause => Error::Decode { codec: codec.name(), cause },
        };
        let (mut to, mut raw, mut delay_ms, mut expect) = (None, None, None, None);
        let content = if is_batch { "envelopes" } else { "envelope" };
        let parted = match is_batch {
            // Each layer that is read by itself is a pass over all envelopes.
            true => sealane_codec::fields_beside(codec, body, content).ok(),
            false => None,
        };
        let (fields, elements) = match parted {
            Some((fields, elements)) => (fields, Some(elements)),
            // A body that is wrong is read layer by layer, which says what is wrong with it.
            None => (sealane_codec::fields(codec, body).map_err(decode)?, None),
        };
        for (key, value) in fields {
            match key.as_ref() {
                "to" => to = Some(sealane_codec::read_text(codec, value).map_err(decode)?),
                "delayMs" if !is_batch => {
                    delay_ms = Some(parameter_number(codec, value, "delayMs")?);
                }
                "expect" => expect = Some(parameter_number(codec, value, "expect")?),
                key if key == content => raw = Some(value),
                key => return Err(unknown_field(key, if is_batch { BATCH } else { ONE })),
            }
        }
        let to: Cow<'_, str> = to.ok_or_else(|| Error::parameter("to", "is missing"))?;
        let to = to.parse()?;
        let missing = || Error::parameter(content, "is missing");
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        let envelopes = match elements {
            Some(elements) => elements,
            None if is_batch => {
                sealane_codec::elements(codec, raw.ok_or_else(missing)?).map_err(decode)?
            }
            None => vec![raw.ok_or_else(missing)?],
        };
        Ok(Self { to, envelopes, is_batch, expect, delay_ms })
    }
}

/// The result for the messages of an [`Enqueue`].
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueued<'a> {
    /// The messages' ids, in order.
    pub ids: Vec<Cow<'a, str>>,
    /// Their stream.
    pub stream: Topic,
    /// Where the first of them stands, or when it will enter the stream.
    pub outcome: EnqueueOutcome,
    /// The level that was reached before the hub answered.
    pub level: HubLevel,
    /// Whether they had been stored already, under the same idempotency key.
    pub replayed: bool,
}

/// Whether messages are in their stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// They are: the first stands here.
    At(StreamPosition),
    /// They enter it at this time, Unix milliseconds of the hub's clock.
    Due(u64),
}

impl EnqueueOutcome {
    /// The outcome of the message that stands `count` behind the first.
    pub fn behind(self, count: u64) -> Self {
        match self {
            EnqueueOutcome::At(StreamPosition { generation, offset }) => {
                EnqueueOutcome::At(StreamPosition {
                    generation,
                    offset: offset.saturating_add(count),
                })
            }
            EnqueueOutcome::Due(due_ms) => EnqueueOutcome::Due(due_ms),
        }
    }
}

impl<'a> Enqueued<'a> {
    /// Writes the answer to a request, which had the form of a batch or not.
    pub fn write(&self, is_batch: bool, writer: &mut DatumWriter<'_>) {
        let named = if is_batch { 2 } else { 1 };
        let placed = if matches!(self.outcome, EnqueueOutcome::At(_)) { 2 } else { 1 };
        writer.map(named + placed + 2 + usize::from(self.replayed));
        if is_batch {
            writer.key("ids");
            writer.array(self.ids.len());
            self.ids.iter().for_each(|id| writer.text(id));
            writer.end();
            writer.key("count");
            writer.u64(self.ids.len() as u64);
        } else {
            writer.key("id");
            writer.text(self.ids.first().map_or("", AsRef::as_ref));
        }
        writer.key("stream");
        writer.text(self.stream.as_str());
        match self.outcome {
            EnqueueOutcome::Due(due_ms) => {
                writer.key("dueMs");
                writer.u64(due_ms);
            }
            EnqueueOutcome::At(StreamPosition { generation, offset }) => {
                writer.key("offset");
                writer.u64(offset);
                writer.key("generation");
                writer.u64(generation);
            }
        }
        writer.key("level");
        writer.text(self.level.name());
        if self.replayed {
            writer.key("replayed");
            writer.bool(true);
        }
        writer.end();
    }

    /// Reads an answer of either form.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &'a [u8]) -> Result<Self, Malformed> {
        let fields = ReplyFields::read(codec, body)?;
        let ids = match fields.raw("ids") {
            Some(_) => fields.texts("ids")?,
            None => vec![fields.text("id")?],
        };
        let outcome = match fields.raw("dueMs") {
            Some(_) => EnqueueOutcome::Due(fields.number("dueMs")?),
            None => EnqueueOutcome::At(StreamPosition {
                generation: fields.number("generation")?,
                offset: fields.number("offset")?,
            }),
        };
        let replayed = fields.flag("replayed").unwrap_or(false);
        Ok(Self { ids, stream: fields.topic("stream")?, outcome, level: fields.level()?, replayed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn what_is_written_is_read_back() {
        for codec in Codec::AT_REST {
            let mut envelope = Vec::new();
            let mut writer = DatumWriter::new(codec, &mut envelope);
            writer.map(0);
            writer.end();
            let to: Topic = "a/b".parse().unwrap();
            let raw = envelope.as_slice();
            let (expect, delay_ms) = (Some(7), Some(9));
            let one =
                Enqueue { to: to.clone(), envelopes: vec![raw], is_batch: false, expect, delay_ms };
            let two = Enqueue { envelopes: vec![raw, raw], is_batch: true, ..one.clone() };
            for enqueue in [Enqueue { delay_ms: None, ..two }, one] {
                let mut body = Vec::new();
                enqueue.write(codec, &mut body);
                assert_eq!(Enqueue::read(codec, &body, enqueue.is_batch), Ok(enqueue));
            }
            let at = EnqueueOutcome::At(StreamPosition { generation: 3, offset: 4 });
            for (ids, outcome, is_batch) in
                [(1, at, false), (1, EnqueueOutcome::Due(5), false), (2, at, true), (1, at, true)]
            {
                let ids = vec![Cow::from("m"); ids];
                let level = HubLevel::from(Level::Os);
                let stream = to.clone();
                let enqueued = Enqueued { ids, stream, outcome, level, replayed: is_batch };
                let mut body = Vec::new();
                enqueued.write(is_batch, &mut DatumWriter::new(codec, &mut body));
                assert_eq!(Enqueued::read(codec, &body), Ok(enqueued));
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused_by_name() {
        let json = |body: &'static str, is_batch| {
            Enqueue::read(Codec::Json, body.as_bytes(), is_batch).unwrap_err()
        };
        assert_eq!(json(r#"{"envelope":{}}"#, false), Error::parameter("to", "is missing"));
        assert_eq!(json(r#"{"to":"a"}"#, true), Error::parameter("envelopes", "is missing"));
        for (body, is_batch) in [
            (r#"{"to":"a","envelope":{}}"#, true),
            (r#"{"to":"a","envelopes":[]}"#, false),
            (r#"{"to":"a","envelopes":[],"delayMs":1}"#, true),
        ] {
            assert!(matches!(json(body, is_batch), Error::UnknownField { .. }), "{body}");
        }
        assert!(matches!(json(r#"{"to":"a//b","envelope":{}}"#, false), Error::Topic(_)));
    }
}
