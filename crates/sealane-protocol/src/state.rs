use std::ops::RangeInclusive;

use crate::limits::MAX_RANGE_MESSAGES;
use sealane_codec::{Codec, DatumWriter, typed};
use sealane_frame::GroupTag;
use sealane_message::{Pattern, Topic};

use crate::forms::{
    AsText, MaybeGroup, MaybeText, OffsetRangesForm, append, read_body, those_read,
};
use crate::{Error, HubLevel, Level};

/// The bounds of a stream; 0 means no bound. Whole blocks are removed, oldest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
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

/// The changes to a stream's settings, the body of a `PUT`; a setting that is left out stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamChange {
    /// When an enqueue is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The group that the stream is sealed for. It is made so, and never changes.
    #[serde(skip_serializing_if = "Option::is_none", with = "MaybeGroup")]
    pub sealed: Option<GroupTag>,
    /// Messages older than this go; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<u64>,
    /// So many messages stay; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// So many bytes at rest stay; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The stream forgets its own bounds, but for those that are named beside this: the rule that
    /// matches holds again, or the hub's default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub follow_rules: bool,
}

/// The body of a `PUT`, as it is shown to whoever sent another one.
const CHANGE: &str = concat!(
    r#"any of {"level": "memory", "os" or "disk", "maxAgeMs": N, "maxCount": N, "#,
    r#""maxBytes": N, "followRules": true or false, "sealed": GROUP}"#
);

impl StreamChange {
    /// Reads a request's body; an empty one changes nothing.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        read_body(codec, body, CHANGE)
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        append(codec, self, out);
    }
}

/// A stream's state.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamState {
    /// Its topic.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// When a message counts as stored.
    #[serde(with = "AsText")]
    pub level: HubLevel,
    /// The group whose keys open the messages, which the hub cannot read; none: it can.
    #[serde(default, with = "MaybeGroup")]
    pub sealed: Option<GroupTag>,
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
    /// The stream's retention.
    #[serde(flatten)]
    pub retention: Retention,
    /// The pattern of the rule that the retention, or a part of it, is of; empty: the hub's
    /// default. None: all of it is the stream's own, or it has no bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// When the stream was made, in Unix milliseconds.
    #[serde(default)]
    pub created_ms: u64,
    /// When its last message was appended, in Unix milliseconds; 0: never.
    #[serde(default)]
    pub last_ms: u64,
    /// Connections that read for themselves.
    #[serde(default)]
    pub readers: u64,
    /// Those who share the work; the inbox is the one named `""`.
    #[serde(default)]
    pub consumers: Vec<ConsumerState>,
    /// Offsets that are damaged on disk and are not delivered.
    #[serde(default, with = "OffsetRangesForm")]
    pub damaged: Vec<RangeInclusive<u64>>,
    /// The connections that read it now; a list of streams leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "those_read")]
    pub connections: Option<Vec<ConnectionState>>,
}

/// A consumer's state.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConsumerState {
    /// Its name.
    pub consumer: String,
    /// The next offset that it has not been given.
    pub next: u64,
    /// Messages delivered and not acknowledged.
    #[serde(default)]
    pub in_flight: u64,
    /// Connections that share the work now.
    #[serde(default)]
    pub members: u64,
    /// Deliveries beyond each message's first, since the hub was opened.
    #[serde(default)]
    pub redelivered: u64,
    /// Messages that ran out of attempts and were made dead letters.
    #[serde(default)]
    pub dead_lettered: u64,
    /// Messages that ran out of attempts and could be made no dead letter.
    #[serde(default)]
    pub dead_dropped: u64,
    /// Since when it is paused, in Unix milliseconds; 0: it is not.
    #[serde(default)]
    pub paused_ms: u64,
}

/// A connection that reads a stream.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConnectionState {
    /// The consumer that it belongs to; none: it reads for itself.
    #[serde(default)]
    pub consumer: Option<String>,
    /// The pattern of its subscription.
    #[serde(with = "AsText")]
    pub pattern: Pattern,
    /// The codec in which it reads.
    #[serde(default)]
    pub codec: String,
    /// Its number, which no other of this run of the hub has.
    #[serde(default)]
    pub connection: u64,
    /// Messages that it may still be sent.
    #[serde(default)]
    pub credit: u64,
    /// Messages of the stream that it was sent and has not acknowledged.
    #[serde(default)]
    pub in_flight: u64,
    /// Messages that it was sent.
    #[serde(default)]
    pub delivered: u64,
    /// Since when it reads, in Unix milliseconds.
    #[serde(default)]
    pub since_ms: u64,
}

impl StreamState {
    /// The lag of the consumer that is furthest behind; none: nobody shares the work.
    pub fn lag(&self) -> Option<u64> {
        self.consumers.iter().map(|consumer| consumer.lag(self.next)).max()
    }

    /// The unfinished messages of the consumer that has most; none: nobody shares the work.
    pub fn unfinished(&self) -> Option<u64> {
        self.consumers.iter().map(|consumer| consumer.unfinished(self.next)).max()
    }
}

impl ConsumerState {
    /// The consumer's *lag*: messages of its stream, whose next offset is `next`, that it has not
    /// been given. What it has in flight is not in it. The two are read one after the other, so
    /// that the consumer may be ahead; then there is none.
    pub fn lag(&self, next: u64) -> u64 {
        next.saturating_sub(self.next)
    }

    /// The messages that are not done for it: its lag, and what it has in flight.
    pub fn unfinished(&self, next: u64) -> u64 {
        self.lag(next) + self.in_flight
    }
}

/// A question for the streams of a hub: the query of `GET /v1/streams`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamsQuery {
    /// Only those whose topic matches.
    pub pattern: Option<Pattern>,
    /// Those that come after this topic.
    pub after: Option<Topic>,
    /// At most so many; none: as many as an answer may have.
    pub limit: Option<usize>,
}

impl StreamsQuery {
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
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamsPage {
    /// Their states.
    #[serde(default)]
    pub streams: Vec<StreamState>,
    /// [`StreamsQuery::after`] of the next page; none: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "MaybeText")]
    pub next: Option<Topic>,
}

/// The answer to a `DELETE`.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Removed<'a> {
    /// The stream.
    #[serde(with = "AsText")]
    pub(crate) stream: &'a Topic,
    /// The consumer that is no more; none: the stream is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) consumer: Option<&'a str>,
    /// Always true.
    pub(crate) removed: bool,
}

/// Writes the answer to a `DELETE`: the stream is no more.
pub fn write_removed(stream: &Topic, writer: &mut DatumWriter<'_>) {
    typed::write(&Removed { stream, consumer: None, removed: true }, writer);
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
            rule: Some("a/**".into()),
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
                state.write(&mut DatumWriter::new(codec, &mut body));
                assert_eq!(StreamState::read(codec, &body).as_ref(), Ok(state));
            }
            let list = StreamsPage { streams: all.to_vec(), next: Some("b".parse().unwrap()) };
            let mut body = Vec::new();
            list.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(StreamsPage::read(codec, &body), Ok(list));
        }
    }

    #[test]
    fn a_change_is_read_back_and_what_is_none_is_refused_by_name() {
        let change = StreamChange {
            level: Some(Level::Memory),
            max_age_ms: Some(1),
            max_count: None,
            max_bytes: Some(0),
            follow_rules: true,
            sealed: Some(GroupTag::from_bytes([1, 2, 3, 4])),
        };
        for codec in Codec::AT_REST {
            for change in [change, StreamChange::default()] {
                let mut body = Vec::new();
                change.write(codec, &mut body);
                assert_eq!(StreamChange::read(codec, &body), Ok(change));
            }
        }
        let read = |body: &str| StreamChange::read(Codec::Json, body.as_bytes()).unwrap_err();
        assert!(matches!(read(r#"{"maxAge":1}"#), Error::UnknownField { .. }));
        for body in
            [r#"{"level":"moon"}"#, r#"{"maxCount":-1}"#, r#"{"sealed":7}"#, r#"{"followRules":1}"#]
        {
            assert!(matches!(read(body), Error::InvalidParameter { .. }), "{body}");
        }
    }
}
