//! Consumers as those see and steer them who run them: `/v1/consumers/{topic}`.

use std::ops::RangeInclusive;

use sealane_codec::{Codec, Writer};
use sealane_message::Topic;

use crate::error::{parameter_number, unknown_field};
use crate::fields::Fields;
use crate::state::{ConnectionState, ConsumerState, all, write_numbers};
use crate::{ConsumerSettings, Error, Malformed, Start};

/// What is done to a consumer: the body of `POST /v1/consumers/{topic}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerVerb {
    /// It is given nothing until it is resumed.
    Pause,
    /// It is given messages again.
    Resume,
    /// It goes on here, as if it had been made here; what it had been given is no more its own.
    Reset(Start),
    /// These offsets, both ends included, are done for it.
    Skip(RangeInclusive<u64>),
    /// What it was given and has not finished comes again at once.
    Redeliver,
}

/// The body, as it is shown to whoever sent another one.
const VERB: &str = concat!(
    r#"one of {"pause": true or false}, {"reset": "first", "new", OFFSET or TIME}, "#,
    r#"{"skip": {"from": N, "to": N}}, {"redeliver": true}"#
);

impl ConsumerVerb {
    /// Reads a request's body, which is one verb.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        let fields = sealane_codec::fields(codec, body).map_err(decode)?;
        let [(key, raw)] = fields.as_slice() else {
            return Err(Error::parameter("body", "is not exactly one verb"));
        };
        let flag = |name| {
            let flag = sealane_codec::read_bool(codec, raw);
            flag.map_err(|_| Error::parameter(name, "is not true or false"))
        };
        match key.as_ref() {
            "pause" => Ok(if flag("pause")? { Self::Pause } else { Self::Resume }),
            "reset" => Ok(Self::Reset(read_place(codec, raw, "reset")?)),
            "skip" => Ok(Self::Skip(read_offsets(codec, raw)?)),
            "redeliver" if flag("redeliver")? => Ok(Self::Redeliver),
            "redeliver" => Err(Error::parameter("redeliver", "is not true")),
            other => Err(unknown_field(other, VERB)),
        }
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let mut writer = Writer::new(codec, out);
        writer.map(1);
        match self {
            Self::Pause | Self::Resume => {
                writer.key("pause");
                writer.bool(*self == Self::Pause);
            }
            Self::Reset(start) => {
                writer.key("reset");
                writer.text(&start.to_string());
            }
            Self::Skip(offsets) => {
                writer.key("skip");
                writer.map(2);
                write_numbers(&mut writer, &[("from", *offsets.start()), ("to", *offsets.end())]);
                writer.end();
            }
            Self::Redeliver => {
                writer.key("redeliver");
                writer.bool(true);
            }
        }
        writer.end();
    }
}

/// A place in a stream: an offset as a number, or any place as text.
pub(crate) fn read_place(codec: Codec, raw: &[u8], name: &'static str) -> Result<Start, Error> {
    if let Ok(offset) = sealane_codec::read_u64(codec, raw) {
        return Ok(Start::Offset(offset));
    }
    let text = sealane_codec::read_text(codec, raw).ok();
    let place = text.and_then(|text| text.parse().ok());
    let cause = "is not first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds";
    place.ok_or_else(|| Error::parameter(name, cause))
}

/// Offsets as acknowledgements name them: `{offset}` or `{from, to}`.
fn read_offsets(codec: Codec, raw: &[u8]) -> Result<RangeInclusive<u64>, Error> {
    let wrong = || Error::parameter("skip", r#"is not {"offset": N} or {"from": N, "to": N}"#);
    let fields = sealane_codec::fields(codec, raw).map_err(|_| wrong())?;
    let (mut from, mut to) = (None, None);
    for (key, raw) in fields {
        let offset = Some(parameter_number(codec, raw, "skip")?);
        match key.as_ref() {
            "offset" if from.is_none() && to.is_none() => (from, to) = (offset, offset),
            "from" if from.is_none() => from = offset,
            "to" if to.is_none() => to = offset,
            _ => return Err(wrong()),
        }
    }
    let (from, to) = (from.ok_or_else(wrong)?, to.ok_or_else(wrong)?);
    if from > to {
        return Err(Error::parameter("skip", "ends before it begins"));
    }
    Ok(from..=to)
}

/// The consumer that a query names; none: all of the stream.
///
/// # Errors
/// [`Error::InvalidParameter`].
pub fn read_consumer_query(parameters: Vec<(String, String)>) -> Result<Option<String>, Error> {
    let mut consumer = None;
    for (name, value) in parameters {
        match name.as_str() {
            "consumer" => consumer = Some(value),
            _ => return Err(Error::parameter(name, "is no parameter of this request")),
        }
    }
    Ok(consumer)
}

/// One consumer, as `GET /v1/consumers/{topic}` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerInfo {
    /// Its stream.
    pub stream: Topic,
    /// Its name, and how far it is.
    pub state: ConsumerState,
    /// Messages of the stream that it has not been given.
    pub lag: u64,
    /// For how long the oldest of those has been stored, in milliseconds; 0: there is none.
    pub lag_ms: u64,
    /// Of the messages in flight, those that a member has now. The others wait to come again.
    pub held: u64,
    /// What it promises its members.
    pub settings: ConsumerSettings,
    /// Who shares its work now; a list of consumers does not say it.
    pub connections: Option<Vec<ConnectionState>>,
    /// The first of its messages that are not done; a list of consumers does not say them.
    pub pending: Option<Vec<PendingMessage>>,
}

/// A message that a consumer was given and has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingMessage {
    /// Its offset.
    pub offset: u64,
    /// How often it was delivered.
    pub attempt: u32,
    /// Who has it, by [`ConnectionState::connection`]; none: it waits to come again.
    pub connection: Option<u64>,
    /// Since when somebody has it, in Unix milliseconds; 0: nobody has it.
    pub since_ms: u64,
    /// When it comes again if it is not acknowledged before, in Unix milliseconds; 0: at once.
    pub due_ms: u64,
}

impl ConsumerInfo {
    /// Writes the answer.
    pub fn write(&self, writer: &mut Writer<'_>) {
        let numbers = [
            ("lag", self.lag),
            ("lagMs", self.lag_ms),
            ("held", self.held),
            ("maxInFlight", u64::from(self.settings.max_in_flight)),
            ("ackWaitMs", self.settings.ack_wait_ms),
            ("maxAttempts", u64::from(self.settings.max_attempts)),
        ];
        let state = self.state.numbers();
        let lists = usize::from(self.connections.is_some()) + usize::from(self.pending.is_some());
        writer.map(2 + state.len() + numbers.len() + lists);
        writer.key("stream");
        writer.text(self.stream.as_str());
        writer.key("consumer");
        writer.text(&self.state.consumer);
        write_numbers(writer, &state);
        write_numbers(writer, &numbers);
        if let Some(connections) = &self.connections {
            writer.key("connections");
            writer.array(connections.len());
            connections.iter().for_each(|connection| connection.write(writer));
            writer.end();
        }
        if let Some(pending) = &self.pending {
            writer.key("pending");
            writer.array(pending.len());
            pending.iter().for_each(|message| message.write(writer));
            writer.end();
        }
        writer.end();
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        Self::from_fields(&Fields::read(codec, body)?)
    }

    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed> {
        let narrow = |name| -> Result<u32, Malformed> {
            Ok(u32::try_from(fields.number(name)?).unwrap_or(u32::MAX))
        };
        let maps = |name| fields.raw(name).map(|_| fields.maps(name)).transpose();
        let settings = ConsumerSettings {
            max_in_flight: narrow("maxInFlight")?,
            ack_wait_ms: fields.number("ackWaitMs")?,
            max_attempts: narrow("maxAttempts")?,
        };
        let connections = maps("connections")?.map(|connections| {
            // A hub may come to describe connections otherwise; nobody depends on them.
            connections.iter().filter_map(|one| ConnectionState::read(one).ok()).collect()
        });
        let pending = maps("pending")?.map(|pending| all(&pending, PendingMessage::read));
        Ok(Self {
            stream: fields.topic("stream")?,
            state: ConsumerState::read(fields)?,
            lag: fields.number("lag")?,
            lag_ms: fields.number_or_zero("lagMs"),
            held: fields.number_or_zero("held"),
            settings,
            connections,
            pending: pending.transpose()?,
        })
    }
}

impl PendingMessage {
    fn write(&self, writer: &mut Writer<'_>) {
        writer.map(5);
        writer.key("connection");
        match self.connection {
            Some(connection) => writer.u64(connection),
            None => writer.null(),
        }
        let numbers = [
            ("offset", self.offset),
            ("attempt", u64::from(self.attempt)),
            ("sinceMs", self.since_ms),
            ("dueMs", self.due_ms),
        ];
        write_numbers(writer, &numbers);
        writer.end();
    }

    fn read(fields: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            offset: fields.number("offset")?,
            attempt: u32::try_from(fields.number("attempt")?).unwrap_or(u32::MAX),
            connection: fields.number("connection").ok(),
            since_ms: fields.number_or_zero("sinceMs"),
            due_ms: fields.number_or_zero("dueMs"),
        })
    }
}

/// The consumers of one stream, by their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumers {
    /// The stream.
    pub stream: Topic,
    /// They.
    pub consumers: Vec<ConsumerInfo>,
}

impl Consumers {
    /// Writes the answer.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.map(2);
        writer.key("stream");
        writer.text(self.stream.as_str());
        writer.key("consumers");
        writer.array(self.consumers.len());
        self.consumers.iter().for_each(|consumer| consumer.write(writer));
        writer.end();
        writer.end();
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::read(codec, body)?;
        let consumers = all(&fields.maps("consumers")?, ConsumerInfo::from_fields)?;
        Ok(Self { stream: fields.topic("stream")?, consumers })
    }
}

/// Writes the answer to a `DELETE`: the consumer is no more.
pub fn write_consumer_removed(stream: &Topic, consumer: &str, writer: &mut Writer<'_>) {
    writer.map(3);
    writer.key("stream");
    writer.text(stream.as_str());
    writer.key("consumer");
    writer.text(consumer);
    writer.key("removed");
    writer.bool(true);
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ConsumerInfo {
        let state = ConsumerState {
            consumer: "billing".into(),
            next: 1,
            paused_ms: 7,
            ..ConsumerState::default()
        };
        let settings = ConsumerSettings { max_in_flight: 8, ack_wait_ms: 9, max_attempts: 10 };
        let stream = "a/b".parse().unwrap();
        let (lag, lag_ms, held) = (11, 12, 13);
        let (connections, pending) = (None, None);
        ConsumerInfo { stream, state, lag, lag_ms, held, settings, connections, pending }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let connection = ConnectionState {
            connection: 1,
            consumer: Some("billing".into()),
            pattern: "a/*".parse().unwrap(),
            codec: "cbor".into(),
            credit: 2,
            in_flight: 3,
            delivered: 4,
            since_ms: 5,
        };
        let held =
            PendingMessage { offset: 1, attempt: 2, connection: Some(1), since_ms: 4, due_ms: 5 };
        let waits = PendingMessage { connection: None, since_ms: 0, due_ms: 0, ..held };
        let (connections, pending) = (Some(vec![connection]), Some(vec![held, waits]));
        let whole = ConsumerInfo { connections, pending, ..info() };
        for codec in Codec::AT_REST {
            let mut body = Vec::new();
            whole.write(&mut Writer::new(codec, &mut body));
            assert_eq!(ConsumerInfo::read(codec, &body), Ok(whole.clone()));
            let all = Consumers { stream: info().stream, consumers: vec![info(), whole.clone()] };
            let mut body = Vec::new();
            all.write(&mut Writer::new(codec, &mut body));
            assert_eq!(Consumers::read(codec, &body), Ok(all));
        }
    }

    #[test]
    fn a_verb_is_read_back_and_what_is_none_is_refused_by_name() {
        let starts = [Start::First, Start::New, Start::Offset(7), Start::Time(9)];
        let verbs = starts.map(ConsumerVerb::Reset).into_iter().chain([
            ConsumerVerb::Pause,
            ConsumerVerb::Resume,
            ConsumerVerb::Skip(3..=5),
            ConsumerVerb::Redeliver,
        ]);
        for verb in verbs {
            for codec in Codec::AT_REST {
                let mut body = Vec::new();
                verb.write(codec, &mut body);
                assert_eq!(ConsumerVerb::read(codec, &body), Ok(verb.clone()));
            }
        }
        let read = |body: &str| ConsumerVerb::read(Codec::Json, body.as_bytes());
        assert_eq!(read(r#"{"reset":5}"#), Ok(ConsumerVerb::Reset(Start::Offset(5))));
        assert_eq!(read(r#"{"skip":{"offset":5}}"#), Ok(ConsumerVerb::Skip(5..=5)));
        for wrong in [
            "{}",
            r#"{"pause":true,"redeliver":true}"#,
            r#"{"pause":1}"#,
            r#"{"redeliver":false}"#,
            r#"{"reset":"yesterday"}"#,
            r#"{"reset":-1}"#,
            r#"{"skip":5}"#,
            r#"{"skip":{"from":5}}"#,
            r#"{"skip":{"from":5,"to":4}}"#,
            r#"{"skip":{"offset":5,"to":6}}"#,
        ] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong}");
        }
        assert!(matches!(read(r#"{"explode":true}"#), Err(Error::UnknownField { .. })));
        assert!(matches!(read("[]"), Err(Error::Decode { .. })));
    }
}
