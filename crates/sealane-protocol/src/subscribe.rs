use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use crate::limits::{MAX_CONSUMER_NAME_BYTES, MAX_DELIVERY_BATCH, MAX_IN_FLIGHT};
use sealane_message::Pattern;
use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::Error;

/// Where reading begins, as it stands in a query: `first`, `new`, an offset, an RFC 3339 time, or
/// `@` and Unix milliseconds.
///
/// ```
/// use sealane_protocol::ReadStart;
///
/// assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(ReadStart::Time(1000)));
/// assert_eq!(ReadStart::Time(1000).to_string(), "@1000");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStart {
    /// The first message that is kept.
    First,
    /// The first message that comes from now on.
    New,
    /// This offset.
    Offset(u64),
    /// The first message appended at this time or later, Unix milliseconds.
    Time(u64),
}

impl FromStr for ReadStart {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let cause = "is first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds";
            Error::parameter("from", cause)
        };
        if let Some(time_ms) = text.strip_prefix('@') {
            return time_ms.parse().map(ReadStart::Time).map_err(|_| wrong());
        }
        match text {
            "first" => Ok(ReadStart::First),
            "new" => Ok(ReadStart::New),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map(ReadStart::Offset).map_err(|_| wrong())
            }
            time => {
                let time = humantime::parse_rfc3339(time).map_err(|_| wrong())?;
                let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
                Ok(ReadStart::Time(u64::try_from(since.as_millis()).map_err(|_| wrong())?))
            }
        }
    }
}

impl fmt::Display for ReadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadStart::First => f.write_str("first"),
            ReadStart::New => f.write_str("new"),
            ReadStart::Offset(offset) => write!(f, "{offset}"),
            ReadStart::Time(time_ms) => write!(f, "@{time_ms}"),
        }
    }
}

impl Serialize for ReadStart {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// As text, or an offset as a number.
impl<'de> Deserialize<'de> for ReadStart {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct StartVisitor;

        impl Visitor<'_> for StartVisitor {
            type Value = ReadStart;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds")
            }

            fn visit_u64<E: serde::de::Error>(self, offset: u64) -> Result<ReadStart, E> {
                Ok(ReadStart::Offset(offset))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ReadStart, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(StartVisitor)
    }
}

/// The settings that a consumer promises its members; each member may change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConsumerSettings {
    /// Delivered and unacknowledged messages at most.
    pub max_in_flight: u32,
    /// Redeliver what was not acknowledged for so long.
    pub ack_wait_ms: u64,
    /// Dead letter after so many deliveries; 0: never.
    pub max_attempts: u32,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        Self { max_in_flight: MAX_IN_FLIGHT as u32, ack_wait_ms: 30_000, max_attempts: 0 }
    }
}

impl ConsumerSettings {
    /// Takes what a member changes.
    pub fn change(&mut self, change: ConsumerChange) {
        self.max_in_flight = change.max_in_flight.unwrap_or(self.max_in_flight);
        self.ack_wait_ms = change.ack_wait_ms.unwrap_or(self.ack_wait_ms);
        self.max_attempts = change.max_attempts.unwrap_or(self.max_attempts);
    }
}

/// The changes that a member makes to its consumer's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConsumerChange {
    /// Delivered and unacknowledged messages at most.
    pub max_in_flight: Option<u32>,
    /// Redeliver what was not acknowledged for so long.
    pub ack_wait_ms: Option<u64>,
    /// Dead letter after so many deliveries; 0: never.
    pub max_attempts: Option<u32>,
}

/// The request for a subscription: the query of `GET /v1/subscribe`, but for the codec, which is
/// negotiated.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscribeQuery {
    /// The streams.
    pub pattern: Pattern,
    /// Where a reader begins, or a consumer that is new; none: at the hub's choice.
    pub start: Option<ReadStart>,
    /// The generation in which the offset of `start` was seen.
    pub generation: Option<u64>,
    /// The consumer to share; none: the inbox, or whoever has a `start` reads for itself.
    pub consumer: Option<String>,
    /// Messages that may come in one frame.
    pub batch: usize,
    /// How often the hub says that it is still there.
    pub heartbeat_ms: Option<u64>,
    /// The consumer's settings.
    pub change: ConsumerChange,
}

impl SubscribeQuery {
    /// Reads the names and values of a query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] or [`Error::Topic`].
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, Error> {
        let (mut pattern, mut start, mut generation, mut consumer) = (None, None, None, None);
        let (mut batch, mut heartbeat_ms, mut change) = (1, None, ConsumerChange::default());
        for (name, value) in parameters {
            let number = |name, bounds| number(name, &value, bounds);
            match name.as_str() {
                "codec" => {}
                "stream" => pattern = Some(value.parse()?),
                "from" => start = Some(value.parse()?),
                "generation" => generation = Some(number("generation", 0..=u64::MAX)?),
                "batch" => batch = number("batch", 1..=MAX_DELIVERY_BATCH as u64)? as usize,
                "heartbeat_ms" => heartbeat_ms = Some(number("heartbeat_ms", 1000..=3_600_000)?),
                "max_in_flight" => {
                    let max = number("max_in_flight", 1..=MAX_IN_FLIGHT as u64)?;
                    change.max_in_flight = Some(max as u32);
                }
                "ack_wait_ms" => {
                    change.ack_wait_ms = Some(number("ack_wait_ms", 100..=86_400_000)?);
                }
                "max_attempts" => {
                    change.max_attempts = Some(number("max_attempts", 0..=1_000_000)? as u32);
                }
                "consumer" => consumer = Some(consumer_name(value)?),
                _ => return Err(Error::parameter(name, "is no parameter of a subscription")),
            }
        }
        let pattern = pattern.ok_or_else(|| Error::parameter("stream", "is missing"))?;
        let this = Self { pattern, start, generation, consumer, batch, heartbeat_ms, change };
        if this.is_reader() && this.change != ConsumerChange::default() {
            let cause = "and ack_wait_ms, max_attempts are for consumers";
            return Err(Error::parameter("max_in_flight", cause));
        }
        Ok(this)
    }

    /// Whether it reads for itself, without acknowledgement.
    pub fn is_reader(&self) -> bool {
        self.consumer.is_none() && self.start.is_some()
    }

    /// The names and values of the query.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let all = [
            ("stream", Some(self.pattern.to_string())),
            ("from", self.start.map(|start| start.to_string())),
            ("generation", number(self.generation)),
            ("consumer", self.consumer.clone()),
            ("batch", (self.batch > 1).then(|| self.batch.to_string())),
            ("heartbeat_ms", number(self.heartbeat_ms)),
            ("ack_wait_ms", number(self.change.ack_wait_ms)),
            ("max_attempts", number(self.change.max_attempts.map(u64::from))),
            ("max_in_flight", number(self.change.max_in_flight.map(u64::from))),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A name that a consumer may have: as in topics, no character that a terminal obeys.
fn consumer_name(name: String) -> Result<String, Error> {
    if name.is_empty() || name.len() > MAX_CONSUMER_NAME_BYTES {
        return Err(Error::parameter("consumer", "is not 1 to 64 bytes"));
    }
    if name.contains(char::is_control) {
        return Err(Error::parameter("consumer", "has a control character"));
    }
    Ok(name)
}

fn number(name: &'static str, text: &str, bounds: RangeInclusive<u64>) -> Result<u64, Error> {
    let number = text.parse().ok().filter(|n| bounds.contains(n));
    number.ok_or_else(|| Error::parameter(name, "is not an integer within its bounds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(all: &[(&str, &str)]) -> Result<SubscribeQuery, Error> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        SubscribeQuery::read(all.iter().map(owned).collect())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let inbox = SubscribeQuery {
            pattern: "a/*".parse().unwrap(),
            start: None,
            generation: None,
            consumer: None,
            batch: 1,
            heartbeat_ms: None,
            change: ConsumerChange::default(),
        };
        let change = ConsumerChange {
            max_in_flight: Some(1),
            ack_wait_ms: Some(100),
            max_attempts: Some(0),
        };
        let consumer =
            SubscribeQuery { consumer: Some("x".into()), change, batch: 64, ..inbox.clone() };
        let (start, generation) = (Some(ReadStart::Offset(7)), Some(9));
        let reader =
            SubscribeQuery { start, generation, heartbeat_ms: Some(1000), ..inbox.clone() };
        for subscribe in [inbox, consumer, reader] {
            let all = subscribe.parameters();
            let all: Vec<_> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(read(&all), Ok(subscribe));
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_by_name() {
        let stream = ("stream", "a");
        for wrong in [
            &[("from", "new")][..],
            &[stream, ("from", "-1")],
            &[stream, ("from", "@")],
            &[stream, ("batch", "0")],
            &[stream, ("consumer", "")],
            &[stream, ("consumer", "a\u{1b}")],
            &[stream, ("from", "new"), ("max_attempts", "3")],
            &[stream, ("teleport", "1")],
        ] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong:?}");
        }
    }
}
