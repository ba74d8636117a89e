//! Consumers as those see and steer them who run them: `/v1/consumers/{topic}`.

use std::fmt;
use std::ops::RangeInclusive;

use sealane_codec::{Codec, DatumWriter, typed};
use sealane_message::Topic;

use crate::forms::{AsText, MaybeText, append, read_body, those_read};
use crate::state::{ConnectionState, ConsumerState, Removed};
use crate::{ConsumerSettings, Error, ReadStart};

/// An action on a consumer: the body of `POST /v1/consumers/{topic}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerVerb {
    /// It is given nothing until it is resumed.
    Pause,
    /// It is given messages again.
    Resume,
    /// It goes on here, as if it had been made here; what it had been given is no more its own.
    Reset(ReadStart),
    /// These offsets, both ends included, are done for it.
    Skip(RangeInclusive<u64>),
    /// All messages that it was given and has not finished come again at once.
    Redeliver,
}

/// The body, as it is shown to whoever sent another one.
const VERB: &str = concat!(
    r#"one of {"pause": true or false}, {"reset": "first", "new", OFFSET or TIME}, "#,
    r#"{"skip": {"from": N, "to": N}}, {"redeliver": true}"#
);

/// A verb as it stands on the wire: the one field of a map.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ConsumerVerb"))]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerbForm {
    /// It is given nothing until it is resumed: `false`.
    Pause(bool),
    /// It goes on at this place.
    Reset(ReadStart),
    /// These offsets are done for it.
    Skip(SkipForm),
    /// Its unfinished messages come again: `true`.
    Redeliver(bool),
}

/// Offsets as acknowledgements name them: `{offset}` or `{from, to}`.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SkipForm {
    /// This one alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// The first.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// The last.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
}

impl fmt::Display for ConsumerVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
            Self::Reset(start) => write!(f, "reset {start}"),
            Self::Skip(offsets) => write!(f, "skip {}-{}", offsets.start(), offsets.end()),
            Self::Redeliver => f.write_str("redeliver"),
        }
    }
}

impl ConsumerVerb {
    /// Reads a request's body, which is one verb.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        match read_body(codec, body, VERB)? {
            VerbForm::Pause(true) => Ok(Self::Pause),
            VerbForm::Pause(false) => Ok(Self::Resume),
            VerbForm::Reset(start) => Ok(Self::Reset(start)),
            VerbForm::Skip(skip) => Ok(Self::Skip(skip.offsets()?)),
            VerbForm::Redeliver(true) => Ok(Self::Redeliver),
            VerbForm::Redeliver(false) => Err(Error::parameter("redeliver", "is not true")),
        }
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let form = match self {
            Self::Pause => VerbForm::Pause(true),
            Self::Resume => VerbForm::Pause(false),
            Self::Reset(start) => VerbForm::Reset(*start),
            Self::Skip(offsets) => VerbForm::Skip(SkipForm {
                offset: None,
                from: Some(*offsets.start()),
                to: Some(*offsets.end()),
            }),
            Self::Redeliver => VerbForm::Redeliver(true),
        };
        append(codec, &form, out);
    }
}

impl SkipForm {
    fn offsets(self) -> Result<RangeInclusive<u64>, Error> {
        let (from, to) = match (self.offset, self.from, self.to) {
            (Some(offset), None, None) => (offset, offset),
            (None, Some(from), Some(to)) => (from, to),
            _ => {
                let cause = r#"is not {"offset": N} or {"from": N, "to": N}"#;
                return Err(Error::parameter("skip", cause));
            }
        };
        if from > to {
            return Err(Error::parameter("skip", "ends before it begins"));
        }
        Ok(from..=to)
    }
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
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConsumerInfo {
    /// Its stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// Its name, and how far it is.
    #[serde(flatten)]
    pub state: ConsumerState,
    /// Messages of the stream that it has not been given.
    pub lag: u64,
    /// For how long the oldest of those has been stored, in milliseconds; 0: there is none.
    #[serde(default)]
    pub lag_ms: u64,
    /// Messages that are not done for it: those that it was not given, and those in flight.
    #[serde(default)]
    pub unfinished: u64,
    /// For how long the oldest of those has been stored, in milliseconds; 0: there is none.
    #[serde(default)]
    pub oldest_ms: u64,
    /// Of the messages in flight, those that a member has now. The others wait to come again.
    #[serde(default)]
    pub held: u64,
    /// The settings that it promises its members.
    #[serde(flatten)]
    pub settings: ConsumerSettings,
    /// The connections that share its work now; a list of consumers leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "those_read")]
    pub connections: Option<Vec<ConnectionState>>,
    /// The first of its messages that are not done; a list of consumers does not say them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Vec<PendingMessage>>,
}

/// A message that a consumer was given and has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingMessage {
    /// The connection that has it, by [`ConnectionState::connection`]; none: it waits to come
    /// again.
    #[serde(default)]
    pub connection: Option<u64>,
    /// Its offset.
    pub offset: u64,
    /// How often it was delivered.
    pub attempt: u32,
    /// Since when somebody has it, in Unix milliseconds; 0: nobody has it.
    #[serde(default)]
    pub since_ms: u64,
    /// When it comes again if it is not acknowledged before, in Unix milliseconds; 0: at once.
    #[serde(default)]
    pub due_ms: u64,
}

/// The consumers of one stream, by their names.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Consumers {
    /// The stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// They.
    #[serde(default)]
    pub consumers: Vec<ConsumerInfo>,
}

/// Consumers of several streams, in the order of their topics and names.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConsumersPage {
    /// They.
    #[serde(default)]
    pub consumers: Vec<ConsumerInfo>,
    /// The `after` of the next page; none: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "MaybeText")]
    pub next: Option<Topic>,
}

/// Writes the answer to a `DELETE`: the consumer is no more.
pub fn write_consumer_removed(stream: &Topic, consumer: &str, writer: &mut DatumWriter<'_>) {
    typed::write(&Removed { stream, consumer: Some(consumer), removed: true }, writer);
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
        ConsumerInfo {
            stream,
            state,
            lag: 11,
            lag_ms: 12,
            unfinished: 14,
            oldest_ms: 15,
            held: 13,
            settings,
            connections: None,
            pending: None,
        }
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
            whole.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(ConsumerInfo::read(codec, &body), Ok(whole.clone()));
            let all = Consumers { stream: info().stream, consumers: vec![info(), whole.clone()] };
            let mut body = Vec::new();
            all.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(Consumers::read(codec, &body), Ok(all));
            for next in [None, Some("b".parse().unwrap())] {
                let page = ConsumersPage { consumers: vec![info()], next };
                let mut body = Vec::new();
                page.write(&mut DatumWriter::new(codec, &mut body));
                assert_eq!(ConsumersPage::read(codec, &body), Ok(page));
            }
        }
    }

    #[test]
    fn a_verb_is_read_back_and_what_is_none_is_refused_by_name() {
        let starts = [ReadStart::First, ReadStart::New, ReadStart::Offset(7), ReadStart::Time(9)];
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
        assert_eq!(read(r#"{"reset":5}"#), Ok(ConsumerVerb::Reset(ReadStart::Offset(5))));
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
