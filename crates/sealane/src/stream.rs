use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use hyper::Method;
use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_message::Topic;
use sealane_message::time::whole_ms;
use sealane_protocol::{Level, StreamChange, StreamState, StreamsPage, StreamsQuery};

use crate::address::{RequestPath, stream_path};
use crate::http::{ClientRequest, HubResponse};
use crate::{Client, Error, ReceivedMessage};

/// Messages of one stream that were read without subscribing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagePage {
    /// The stream.
    pub stream: Topic,
    /// The generation that is being written.
    pub generation: u64,
    /// The messages, in order. Acknowledging them does nothing.
    pub messages: Vec<ReceivedMessage>,
    /// Where the next page begins.
    pub next: u64,
    /// Whether nothing is left.
    pub end: bool,
}

impl MessagePage {
    pub(crate) fn read(answer: &HubResponse) -> Result<Self, Error> {
        let codec = answer.codec;
        let page = sealane_protocol::RangePage::read(codec, &answer.body)?;
        let deliveries = page.deliveries(codec)?.into_iter();
        Ok(Self {
            messages: deliveries.map(|deliver| ReceivedMessage::new(codec, deliver)).collect(),
            stream: page.stream,
            generation: page.generation,
            next: page.next,
            end: page.end,
        })
    }
}

/// A question for the hub's streams; awaiting it asks.
#[must_use = "nothing is asked until this is awaited"]
#[derive(Debug, Clone)]
pub struct ListStreams {
    client: Client,
    /// Checked when it is asked.
    pattern: Option<String>,
    list: StreamsQuery,
}

impl ListStreams {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, pattern: None, list: StreamsQuery::default() }
    }

    /// Only those whose topic matches.
    pub fn matching(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.to_owned());
        self
    }

    /// Those that come after this topic.
    pub fn after(mut self, topic: Topic) -> Self {
        self.list.after = Some(topic);
        self
    }

    /// At most so many, 1000 at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.list.limit = Some(limit);
        self
    }
}

impl IntoFuture for ListStreams {
    type Output = Result<StreamsPage, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            self.list.pattern = self.pattern.map(|pattern| pattern.parse()).transpose()?;
            let query = RequestPath::new("/v1/streams").with_all(self.list.parameters());
            let answer = self.client.call(&ClientRequest::get(query.into_string())).await?;
            Ok(StreamsPage::read(answer.codec, &answer.body)?)
        })
    }
}

/// A change to a stream; awaiting it makes the stream where there is none.
#[must_use = "nothing is changed until this is awaited"]
#[derive(Debug, Clone)]
pub struct ConfigureStream {
    client: Client,
    topic: String,
    change: StreamChange,
}

impl ConfigureStream {
    pub(crate) fn new(client: Client, topic: &str) -> Self {
        Self { client, topic: topic.to_owned(), change: StreamChange::default() }
    }

    /// When a message counts as stored.
    pub fn level(mut self, level: Level) -> Self {
        self.change.level = Some(level);
        self
    }

    /// Makes the stream sealed for this group: it takes no other messages, as long as it lives. A
    /// stream that is there and is something else is refused with `SealMismatch`.
    pub fn sealed(mut self, group: GroupTag) -> Self {
        self.change.sealed = Some(group);
        self
    }

    /// The stream forgets the bounds that were set for it alone, but for those that are named
    /// beside this: the rule that matches holds again, or the hub's default.
    pub fn follow_rules(mut self) -> Self {
        self.change.follow_rules = true;
        self
    }

    /// Messages older than this go; zero: none does.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.change.max_age_ms = Some(whole_ms(age));
        self
    }

    /// The oldest messages beyond this many go; zero: none does.
    pub fn max_count(mut self, count: u64) -> Self {
        self.change.max_count = Some(count);
        self
    }

    /// The oldest messages beyond this many bytes go; zero: none does.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.change.max_bytes = Some(bytes);
        self
    }
}

impl IntoFuture for ConfigureStream {
    type Output = Result<StreamState, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let topic: Topic = self.topic.parse()?;
            let mut body = Vec::new();
            self.change.write(Codec::Json, &mut body);
            let call = ClientRequest {
                method: Method::PUT,
                body: Some((Codec::Json, body.into())),
                ..ClientRequest::get(stream_path(topic.as_str()))
            };
            let answer = self.client.call(&call).await?;
            Ok(StreamState::read(answer.codec, &answer.body)?)
        })
    }
}
