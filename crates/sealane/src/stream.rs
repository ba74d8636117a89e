use std::future::{Future, IntoFuture};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use hyper::Method;
use sealane_codec::{Codec, Writer};
use sealane_frame::GroupTag;
use sealane_message::Topic;
use sealane_stream::Level;
use sealane_stream::protocol::{ServerFrame, read_frame};

use crate::address::{Query, stream_path};
use crate::http::{Answer, Call};
use crate::publish::milliseconds;
use crate::reply::Reply;
use crate::{Client, Error, HubLevel, Message};

/// What the hub tells about a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
    /// Bytes of their envelopes.
    pub bytes: u64,
    /// When a message counts as stored.
    pub level: HubLevel,
    /// The group whose keys open the messages, which the hub cannot read; none: it can.
    pub sealed: Option<GroupTag>,
    /// Messages older than this many milliseconds go; 0: none does.
    pub max_age_ms: u64,
    /// The oldest messages beyond this many go; 0: none does.
    pub max_count: u64,
    /// The oldest messages beyond this many bytes go; 0: none does.
    pub max_bytes: u64,
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
}

/// What the hub tells about a consumer of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConsumerState {
    /// Its name.
    pub consumer: String,
    /// The next offset that it has not been given.
    pub next: u64,
    /// Messages delivered and not acknowledged.
    pub in_flight: u64,
    /// Connections that share the work now.
    pub members: u64,
    /// Deliveries beyond each message's first.
    pub redelivered: u64,
    /// Messages that were given up.
    pub dead_lettered: u64,
}

impl StreamState {
    pub(crate) fn read(answer: &Answer) -> Result<Self, Error> {
        Self::from_reply(&Reply::read(answer.codec, &answer.body)?)
    }

    fn from_reply(reply: &Reply<'_>) -> Result<Self, Error> {
        let consumers = reply.maps("consumers")?;
        let damaged = reply.maps("damaged")?;
        let range = |r: &Reply<'_>| Ok(r.number("from")?..=r.number("to")?);
        Ok(Self {
            stream: reply.topic("stream")?,
            generation: reply.number("generation")?,
            first: reply.number("first")?,
            next: reply.number("next")?,
            count: reply.number("count")?,
            bytes: reply.number("bytes")?,
            level: HubLevel::read(reply)?,
            sealed: group(reply)?,
            max_age_ms: reply.number_or_zero("maxAgeMs"),
            max_count: reply.number_or_zero("maxCount"),
            max_bytes: reply.number_or_zero("maxBytes"),
            created_ms: reply.number_or_zero("createdMs"),
            last_ms: reply.number_or_zero("lastMs"),
            readers: reply.number_or_zero("readers"),
            consumers: consumers.iter().map(ConsumerState::read).collect::<Result<_, _>>()?,
            damaged: damaged.iter().map(range).collect::<Result<_, Error>>()?,
        })
    }
}

/// An open stream says null, and a hub that knows no others says nothing.
fn group(reply: &Reply<'_>) -> Result<Option<GroupTag>, Error> {
    let Ok(text) = reply.text("sealed") else { return Ok(None) };
    let unknown = || Error::Protocol(format!("`{text}` is no group tag"));
    GroupTag::from_hex(&text).map(Some).ok_or_else(unknown)
}

impl ConsumerState {
    fn read(reply: &Reply<'_>) -> Result<Self, Error> {
        Ok(Self {
            consumer: reply.text("consumer")?.into_owned(),
            next: reply.number("next")?,
            in_flight: reply.number_or_zero("inFlight"),
            members: reply.number_or_zero("members"),
            redelivered: reply.number_or_zero("redelivered"),
            dead_lettered: reply.number_or_zero("deadLettered"),
        })
    }
}

/// What the hub tells about itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// Its version.
    pub version: String,
    /// What it is doing, in a word.
    pub status: String,
    /// The level of streams that name none.
    pub level: HubLevel,
    /// How many streams it has.
    pub streams: u64,
}

impl Health {
    pub(crate) fn read(answer: &Answer) -> Result<Self, Error> {
        let reply = Reply::read(answer.codec, &answer.body)?;
        Ok(Self {
            version: reply.text("version")?.into_owned(),
            status: reply.text("status")?.into_owned(),
            level: HubLevel::read(&reply)?,
            streams: reply.number("streams")?,
        })
    }
}

/// Messages of one stream that were read without subscribing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page {
    /// The stream.
    pub stream: Topic,
    /// The generation that is being written.
    pub generation: u64,
    /// The messages, in order. Acknowledging them does nothing.
    pub messages: Vec<Message>,
    /// Where the next page begins.
    pub next: u64,
    /// Whether nothing is left.
    pub end: bool,
}

impl Page {
    pub(crate) fn read(answer: &Answer) -> Result<Self, Error> {
        let reply = Reply::read(answer.codec, &answer.body)?;
        let deliver = |raw| match read_frame(answer.codec, &answer.body.slice_ref(raw)) {
            Ok(ServerFrame::Deliver(deliver)) => Ok(Message::new(answer.codec, deliver)),
            Ok(_) => Err(Error::Protocol("a message is no deliver frame".into())),
            Err(error) => Err(Error::Protocol(error.to_string())),
        };
        Ok(Self {
            stream: reply.topic("stream")?,
            generation: reply.number("generation")?,
            messages: reply
                .elements("messages")?
                .into_iter()
                .map(deliver)
                .collect::<Result<_, _>>()?,
            next: reply.number("next")?,
            end: reply.flag("end"),
        })
    }
}

/// Streams of a hub, in the order of their topics.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamsPage {
    /// Their states.
    pub streams: Vec<StreamState>,
    /// Give this to [`ListStreams::after`] for the next page; none: this is the last.
    pub next: Option<Topic>,
}

/// A question for the hub's streams; awaiting it asks.
#[must_use = "nothing is asked until this is awaited"]
#[derive(Debug, Clone)]
pub struct ListStreams {
    client: Client,
    pattern: Option<String>,
    after: Option<Topic>,
    limit: Option<usize>,
}

impl ListStreams {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, pattern: None, after: None, limit: None }
    }

    /// Only those whose topic matches.
    pub fn matching(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.to_owned());
        self
    }

    /// Those that come after this topic.
    pub fn after(mut self, topic: Topic) -> Self {
        self.after = Some(topic);
        self
    }

    /// At most so many, 1000 at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl IntoFuture for ListStreams {
    type Output = Result<StreamsPage, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let query = Query::new("/v1/streams")
                .with_some("pattern", self.pattern)
                .with_some("after", self.after)
                .with_some("limit", self.limit);
            let answer = self.client.call(&Call::get(query.into_string())).await?;
            let reply = Reply::read(answer.codec, &answer.body)?;
            let streams = reply.maps("streams")?;
            let streams = streams.iter().map(StreamState::from_reply).collect::<Result<_, _>>()?;
            Ok(StreamsPage { streams, next: reply.topic("next").ok() })
        })
    }
}

/// A change to a stream; awaiting it makes the stream where there is none.
#[must_use = "nothing is changed until this is awaited"]
#[derive(Debug, Clone)]
pub struct Configure {
    client: Client,
    topic: String,
    level: Option<Level>,
    sealed: Option<GroupTag>,
    numbers: Vec<(&'static str, u64)>,
}

impl Configure {
    pub(crate) fn new(client: Client, topic: &str) -> Self {
        Self { client, topic: topic.to_owned(), level: None, sealed: None, numbers: Vec::new() }
    }

    /// When a message counts as stored.
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Makes the stream sealed for this group: it takes no other messages, as long as it lives. A
    /// stream that is there and is something else is refused with `SealMismatch`.
    pub fn sealed(mut self, group: GroupTag) -> Self {
        self.sealed = Some(group);
        self
    }

    /// Messages older than this go; zero: none does.
    pub fn max_age(self, age: Duration) -> Self {
        self.number("maxAgeMs", milliseconds(age))
    }

    /// The oldest messages beyond this many go; zero: none does.
    pub fn max_count(self, count: u64) -> Self {
        self.number("maxCount", count)
    }

    /// The oldest messages beyond this many bytes go; zero: none does.
    pub fn max_bytes(self, bytes: u64) -> Self {
        self.number("maxBytes", bytes)
    }

    fn number(mut self, name: &'static str, number: u64) -> Self {
        self.numbers.retain(|(other, _)| *other != name);
        self.numbers.push((name, number));
        self
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut writer = Writer::new(Codec::Json, &mut body);
        let named = usize::from(self.level.is_some()) + usize::from(self.sealed.is_some());
        writer.map(named + self.numbers.len());
        if let Some(level) = self.level {
            writer.key("level");
            writer.text(&level.to_string());
        }
        if let Some(group) = self.sealed {
            writer.key("sealed");
            writer.text(&group.to_string());
        }
        for (name, number) in &self.numbers {
            writer.key(name);
            writer.u64(*number);
        }
        writer.end();
        body
    }
}

impl IntoFuture for Configure {
    type Output = Result<StreamState, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let topic: Topic = self.topic.parse()?;
            let call = Call {
                method: Method::PUT,
                body: Some((Codec::Json, self.body().into())),
                ..Call::get(stream_path(topic.as_str()))
            };
            StreamState::read(&self.client.call(&call).await?)
        })
    }
}
