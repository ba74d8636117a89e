use std::ops::RangeInclusive;

use crate::limits::MAX_RANGE_MESSAGES;
use sealane_codec::{Codec, Writer};
use sealane_frame::GroupTag;
use sealane_message::{Pattern, Topic};

use crate::error::{parameter_number, unknown_field};
use crate::fields::Fields;
use crate::{Error, HubLevel, Level, Malformed};

/// What a stream keeps; 0 means no bound. Whole blocks are removed, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Messages older than this go.
    pub max_age_ms: u64,
    /// So many messages stay.
    pub max_count: u64,
    /// So many bytes at rest stay.
    pub max_bytes: u64,
}

impl Retention {
    /// Whether there is nothing to remove, ever.
    pub fn keeps_all(&self) -> bool {
        *self == Retention::default()
    }
}

/// What is changed of a stream's settings, the body of a `PUT`; what is left out stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// When an enqueue is answered.
    pub level: Option<Level>,
    /// Messages older than this go; 0: no bound.
    pub max_age_ms: Option<u64>,
    /// So many messages stay; 0: no bound.
    pub max_count: Option<u64>,
    /// So many bytes at rest stay; 0: no bound.
    pub max_bytes: Option<u64>,
    /// The group that the stream is sealed for. It is made so, and never changes.
    pub sealed: Option<GroupTag>,
}

/// The body of a `PUT`, as it is shown to whoever sent another one.
const CHANGE: &str = concat!(
    r#"any of {"level": "memory", "os" or "disk", "maxAgeMs": N, "maxCount": N, "#,
    r#""maxBytes": N, "sealed": GROUP}"#
);

impl Change {
    /// Reads a request's body; an empty one changes nothing.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        let mut change = Change::default();
        if body.is_empty() {
            return Ok(change);
        }
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        for (key, raw) in sealane_codec::fields(codec, body).map_err(decode)? {
            match key.as_ref() {
                "level" => {
                    let name = sealane_codec::read_text(codec, raw).map_err(decode)?;
                    let cause = "is memory, os or disk";
                    let level = name.parse().map_err(|_| Error::parameter("level", cause))?;
                    change.level = Some(level);
                }
                "maxAgeMs" => change.max_age_ms = Some(parameter_number(codec, raw, "maxAgeMs")?),
                "maxCount" => change.max_count = Some(parameter_number(codec, raw, "maxCount")?),
                "maxBytes" => change.max_bytes = Some(parameter_number(codec, raw, "maxBytes")?),
                "sealed" => {
                    let name = sealane_codec::read_text(codec, raw).unwrap_or_default();
                    let cause = "is not a group tag: 8 lower-case hexadecimal digits";
                    let group = GroupTag::from_hex(&name);
                    change.sealed = Some(group.ok_or_else(|| Error::parameter("sealed", cause))?);
                }
                other => return Err(unknown_field(other, CHANGE)),
            }
        }
        Ok(change)
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let texts = [
            ("level", self.level.map(|level| level.name().to_owned())),
            ("sealed", self.sealed.map(|group| group.to_string())),
        ];
        let numbers = [
            ("maxAgeMs", self.max_age_ms),
            ("maxCount", self.max_count),
            ("maxBytes", self.max_bytes),
        ];
        let mut writer = Writer::new(codec, out);
        let (texts, numbers) = (
            texts.into_iter().filter_map(|(key, text)| Some((key, text?))).collect::<Vec<_>>(),
            numbers.into_iter().filter_map(|(key, n)| Some((key, n?))).collect::<Vec<_>>(),
        );
        writer.map(texts.len() + numbers.len());
        for (key, text) in texts {
            writer.key(key);
            writer.text(&text);
        }
        write_numbers(&mut writer, &numbers);
        writer.end();
    }
}

/// A stream's state.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamState {
    /// Its topic.
    pub stream: Topic,
    /// The generation that is being written.
    pub generation: u64,
    /// The lowest offset that can still be read.
    pub first: u64,
    /// The offset of the next message.
    pub next: u64,
    /// Messages that are kept.
    pub count: u64,
    /// Bytes at rest.
    pub bytes: u64,
    /// When a message counts as stored.
    pub level: HubLevel,
    /// The group whose keys open the messages, which the hub cannot read; none: it can.
    pub sealed: Option<GroupTag>,
    /// What is kept.
    pub retention: Retention,
    /// When the stream was made, in Unix milliseconds.
    pub created_ms: u64,
    /// When its last message was appended, in Unix milliseconds; 0: never.
    pub last_ms: u64,
    /// Connections that read for themselves.
    pub readers: u64,
    /// Those who share the work; the inbox is the one named `""`.
    pub consumers: Vec<ConsumerState>,
    /// Offsets that are damaged on disk and are not delivered.
    pub damaged: Vec<RangeInclusive<u64>>,
    /// Who reads it now; a list of streams does not say it.
    pub connections: Option<Vec<ConnectionState>>,
}

/// A consumer's state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsumerState {
    /// Its name.
    pub consumer: String,
    /// The next offset that it has not been given.
    pub next: u64,
    /// Messages delivered and not acknowledged.
    pub in_flight: u64,
    /// Connections that share the work now.
    pub members: u64,
    /// Deliveries beyond each message's first, since the hub was opened.
    pub redelivered: u64,
    /// Messages that ran out of attempts and were made dead letters.
    pub dead_lettered: u64,
    /// Messages that ran out of attempts and could be made no dead letter.
    pub dead_dropped: u64,
    /// Since when it is paused, in Unix milliseconds; 0: it is not.
    pub paused_ms: u64,
}

/// A connection that reads a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionState {
    /// Its number, which no other of this run of the hub has.
    pub connection: u64,
    /// The consumer that it belongs to; none: it reads for itself.
    pub consumer: Option<String>,
    /// What it has subscribed to.
    pub pattern: Pattern,
    /// The codec in which it reads.
    pub codec: String,
    /// Messages that it may still be sent.
    pub credit: u64,
    /// Messages of the stream that it was sent and has not acknowledged.
    pub in_flight: u64,
    /// Messages that it was sent.
    pub delivered: u64,
    /// Since when it reads, in Unix milliseconds.
    pub since_ms: u64,
}

impl StreamState {
    /// The lag of the consumer that is furthest behind; none: nobody shares the work.
    pub fn lag(&self) -> Option<u64> {
        self.consumers.iter().map(|consumer| consumer.lag(self.next)).max()
    }

    /// Writes the state.
    pub fn write(&self, writer: &mut Writer<'_>) {
        let numbers = [
            ("generation", self.generation),
            ("first", self.first),
            ("next", self.next),
            ("count", self.count),
            ("bytes", self.bytes),
            ("maxAgeMs", self.retention.max_age_ms),
            ("maxCount", self.retention.max_count),
            ("maxBytes", self.retention.max_bytes),
            ("createdMs", self.created_ms),
            ("lastMs", self.last_ms),
            ("readers", self.readers),
        ];
        // Those, and `stream`, `level`, `sealed`, `consumers` and `damaged`.
        writer.map(numbers.len() + 5 + usize::from(self.connections.is_some()));
        writer.key("stream");
        writer.text(self.stream.as_str());
        writer.key("level");
        writer.text(self.level.name());
        writer.key("sealed");
        match self.sealed {
            Some(group) => writer.text(&group.to_string()),
            None => writer.null(),
        }
        write_numbers(writer, &numbers);
        writer.key("consumers");
        writer.array(self.consumers.len());
        self.consumers.iter().for_each(|consumer| consumer.write(writer));
        writer.end();
        writer.key("damaged");
        writer.array(self.damaged.len());
        for range in &self.damaged {
            writer.map(2);
            write_numbers(writer, &[("from", *range.start()), ("to", *range.end())]);
            writer.end();
        }
        writer.end();
        if let Some(connections) = &self.connections {
            writer.key("connections");
            writer.array(connections.len());
            connections.iter().for_each(|connection| connection.write(writer));
            writer.end();
        }
        writer.end();
    }

    /// Reads a state.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        Self::from_fields(&Fields::read(codec, body)?)
    }

    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed> {
        let range = |r: &Fields<'_>| Ok(r.number("from")?..=r.number("to")?);
        let connections = fields.raw("connections").map(|_| fields.maps("connections"));
        let connections = connections.transpose()?.map(|all| {
            // A hub may come to describe connections otherwise; nobody depends on them.
            all.iter().filter_map(|fields| ConnectionState::read(fields).ok()).collect()
        });
        Ok(Self {
            stream: fields.topic("stream")?,
            generation: fields.number("generation")?,
            first: fields.number("first")?,
            next: fields.number("next")?,
            count: fields.number("count")?,
            bytes: fields.number("bytes")?,
            level: fields.level()?,
            sealed: fields.sealed()?,
            retention: Retention {
                max_age_ms: fields.number_or_zero("maxAgeMs"),
                max_count: fields.number_or_zero("maxCount"),
                max_bytes: fields.number_or_zero("maxBytes"),
            },
            created_ms: fields.number_or_zero("createdMs"),
            last_ms: fields.number_or_zero("lastMs"),
            readers: fields.number_or_zero("readers"),
            consumers: all(&fields.maps("consumers")?, ConsumerState::read)?,
            damaged: all(&fields.maps("damaged")?, range)?,
            connections,
        })
    }
}

pub(crate) fn all<T>(
    maps: &[Fields<'_>],
    read: impl Fn(&Fields<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    maps.iter().map(read).collect()
}

impl ConsumerState {
    /// The consumer's *lag*: messages of its stream, whose next offset is `next`, that it has not
    /// been given. What it has in flight is not in it. The two are read one after the other, so
    /// that the consumer may be ahead; then there is none.
    pub fn lag(&self, next: u64) -> u64 {
        next.saturating_sub(self.next)
    }

    /// Everything but its name.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("next", self.next),
            ("inFlight", self.in_flight),
            ("members", self.members),
            ("redelivered", self.redelivered),
            ("deadLettered", self.dead_lettered),
            ("deadDropped", self.dead_dropped),
            ("pausedMs", self.paused_ms),
        ]
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let numbers = self.numbers();
        writer.map(1 + numbers.len());
        writer.key("consumer");
        writer.text(&self.consumer);
        write_numbers(writer, &numbers);
        writer.end();
    }

    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            consumer: fields.text("consumer")?.into_owned(),
            next: fields.number("next")?,
            in_flight: fields.number_or_zero("inFlight"),
            members: fields.number_or_zero("members"),
            redelivered: fields.number_or_zero("redelivered"),
            dead_lettered: fields.number_or_zero("deadLettered"),
            dead_dropped: fields.number_or_zero("deadDropped"),
            paused_ms: fields.number_or_zero("pausedMs"),
        })
    }
}

impl ConnectionState {
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        let numbers = [
            ("connection", self.connection),
            ("credit", self.credit),
            ("inFlight", self.in_flight),
            ("delivered", self.delivered),
            ("sinceMs", self.since_ms),
        ];
        writer.map(3 + numbers.len());
        writer.key("consumer");
        match &self.consumer {
            Some(name) => writer.text(name),
            None => writer.null(),
        }
        writer.key("pattern");
        writer.text(self.pattern.as_str());
        writer.key("codec");
        writer.text(&self.codec);
        write_numbers(writer, &numbers);
        writer.end();
    }

    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            connection: fields.number_or_zero("connection"),
            consumer: fields.text("consumer").ok().map(Into::into),
            pattern: fields.text("pattern")?.parse()?,
            codec: fields.text_or_empty("codec"),
            credit: fields.number_or_zero("credit"),
            in_flight: fields.number_or_zero("inFlight"),
            delivered: fields.number_or_zero("delivered"),
            since_ms: fields.number_or_zero("sinceMs"),
        })
    }
}

/// A question for the streams of a hub: the query of `GET /v1/streams`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// Only those whose topic matches.
    pub pattern: Option<Pattern>,
    /// Those that come after this topic.
    pub after: Option<Topic>,
    /// At most so many; none: as many as an answer may have.
    pub limit: Option<usize>,
}

impl List {
    /// Reads the names and values of a query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] or [`Error::Topic`].
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, Error> {
        let mut list = Self::default();
        for (name, value) in parameters {
            match name.as_str() {
                "pattern" => list.pattern = Some(value.parse()?),
                "after" => list.after = Some(value.parse()?),
                "limit" => list.limit = Some(read_limit(&value)?),
                _ => return Err(Error::parameter(name, "is no parameter of this request")),
            }
        }
        Ok(list)
    }

    /// The names and values of the query.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("pattern", self.pattern.as_ref().map(ToString::to_string)),
            ("after", self.after.as_ref().map(ToString::to_string)),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

pub(crate) fn read_limit(text: &str) -> Result<usize, Error> {
    let limit = text.parse().ok().filter(|n| (1..=MAX_RANGE_MESSAGES).contains(n));
    limit.ok_or_else(|| Error::parameter("limit", "is not an integer from 1 to 1000"))
}

/// Streams of a hub, in the order of their topics.
#[derive(Debug, Clone, PartialEq)]
pub struct Streams {
    /// Their states.
    pub streams: Vec<StreamState>,
    /// [`List::after`] of the next page; none: this is the last.
    pub next: Option<Topic>,
}

impl Streams {
    /// Writes the answer.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.map(1 + usize::from(self.next.is_some()));
        writer.key("streams");
        writer.array(self.streams.len());
        self.streams.iter().for_each(|state| state.write(writer));
        writer.end();
        if let Some(next) = &self.next {
            writer.key("next");
            writer.text(next.as_str());
        }
        writer.end();
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::read(codec, body)?;
        let streams = all(&fields.maps("streams")?, StreamState::from_fields)?;
        Ok(Self { streams, next: fields.raw("next").map(|_| fields.topic("next")).transpose()? })
    }
}

/// Writes the answer to a `DELETE`: the stream is no more.
pub fn write_removed(stream: &Topic, writer: &mut Writer<'_>) {
    writer.map(2);
    writer.key("stream");
    writer.text(stream.as_str());
    writer.key("removed");
    writer.bool(true);
    writer.end();
}

pub(crate) fn write_numbers(writer: &mut Writer<'_>, numbers: &[(&str, u64)]) {
    for (key, number) in numbers {
        writer.key(key);
        writer.u64(*number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> StreamState {
        let consumer = ConsumerState {
            consumer: String::new(),
            next: 1,
            in_flight: 2,
            members: 3,
            redelivered: 4,
            dead_lettered: 5,
            dead_dropped: 6,
            paused_ms: 7,
        };
        StreamState {
            stream: "a/b".parse().unwrap(),
            generation: 7,
            first: 8,
            next: 9,
            count: 1,
            bytes: 10,
            level: HubLevel::Other("moon".into()),
            sealed: Some(GroupTag::from_bytes([1, 2, 3, 4])),
            retention: Retention { max_age_ms: 11, max_count: 12, max_bytes: 13 },
            created_ms: 14,
            last_ms: 15,
            readers: 16,
            consumers: vec![consumer],
            damaged: vec![3..=4],
            connections: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let connection = ConnectionState {
            connection: 9,
            consumer: None,
            pattern: "a/*".parse().unwrap(),
            codec: "cbor".into(),
            credit: 1,
            in_flight: 2,
            delivered: 3,
            since_ms: 4,
        };
        let of_consumer = ConnectionState { consumer: Some("x".into()), ..connection.clone() };
        let connections = Some(vec![connection, of_consumer]);
        let all = [state(), StreamState { sealed: None, connections, ..state() }];
        for codec in Codec::AT_REST {
            for state in &all {
                let mut body = Vec::new();
                state.write(&mut Writer::new(codec, &mut body));
                assert_eq!(StreamState::read(codec, &body).as_ref(), Ok(state));
            }
            let list = Streams { streams: all.to_vec(), next: Some("b".parse().unwrap()) };
            let mut body = Vec::new();
            list.write(&mut Writer::new(codec, &mut body));
            assert_eq!(Streams::read(codec, &body), Ok(list));
        }
    }

    #[test]
    fn a_change_is_read_back_and_what_is_none_is_refused_by_name() {
        let change = Change {
            level: Some(Level::Memory),
            max_age_ms: Some(1),
            max_count: None,
            max_bytes: Some(0),
            sealed: Some(GroupTag::from_bytes([1, 2, 3, 4])),
        };
        for codec in Codec::AT_REST {
            for change in [change, Change::default()] {
                let mut body = Vec::new();
                change.write(codec, &mut body);
                assert_eq!(Change::read(codec, &body), Ok(change));
            }
        }
        let read = |body: &str| Change::read(Codec::Json, body.as_bytes()).unwrap_err();
        assert!(matches!(read(r#"{"maxAge":1}"#), Error::UnknownField { .. }));
        for body in [r#"{"level":"moon"}"#, r#"{"maxCount":-1}"#, r#"{"sealed":7}"#] {
            assert!(matches!(read(body), Error::InvalidParameter { .. }), "{body}");
        }
    }
}
