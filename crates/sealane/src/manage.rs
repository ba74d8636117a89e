//! The calls of an operator: consumers, delayed messages, and the retention of streams.

use std::ops::RangeInclusive;

use hyper::Method;
use sealane_codec::Codec;
use sealane_message::{Pattern, Topic};
use sealane_protocol::{
    Cancelled, ConsumerInfo, ConsumerVerb, Consumers, ConsumersPage, DelayedPage, DelayedPlace,
    ListDelayed, Purge, Purged, Retention, RetentionRule, RuleBounds, StreamRules, StreamsQuery,
    limits::MAX_RANGE_MESSAGES,
};

use crate::address::{RequestPath, topic_path};
use crate::http::{ClientRequest, HubResponse};
use crate::{Client, Error, StartPosition};

/// A consumer of one stream, to be looked at and steered. The token needs `read` to look, and
/// `manage` for all else. Nothing is asked before one of its calls is awaited.
#[derive(Debug, Clone)]
pub struct ConsumerHandle {
    client: Client,
    topic: Topic,
    name: String,
}

impl ConsumerHandle {
    /// How far it is, who has what of it since when, and which of its messages are not done.
    ///
    /// # Errors
    /// The hub refuses with `UnknownStream` or `UnknownConsumer`; [`Error::NotReachable`].
    pub async fn info(&self) -> Result<ConsumerInfo, Error> {
        inform(&self.client.call(&ClientRequest::get(self.path())).await?)
    }

    /// Gives its members nothing more until it is resumed, also behind a restart of the hub. What
    /// they have they may finish.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`].
    pub async fn pause(&self) -> Result<ConsumerInfo, Error> {
        self.steer(ConsumerVerb::Pause).await
    }

    /// Gives its members messages again.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`].
    pub async fn resume(&self) -> Result<ConsumerInfo, Error> {
        self.steer(ConsumerVerb::Resume).await
    }

    /// Lets it go on here, as if it had just been made: what its members have is not theirs any
    /// more.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`]; the hub refuses with `BeyondEnd`.
    pub async fn reset(&self, to: StartPosition) -> Result<ConsumerInfo, Error> {
        self.steer(ConsumerVerb::Reset(to.asked())).await
    }

    /// Counts these offsets as done. They begin at or before the next one that it is given.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`]; the hub refuses with `BeyondEnd` or `InvalidParameter`.
    pub async fn skip(&self, offsets: RangeInclusive<u64>) -> Result<ConsumerInfo, Error> {
        self.steer(ConsumerVerb::Skip(offsets)).await
    }

    /// Delivers at once again what was delivered and is not done, whoever has it.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`].
    pub async fn redeliver(&self) -> Result<ConsumerInfo, Error> {
        self.steer(ConsumerVerb::Redeliver).await
    }

    /// Removes it with all that it has not finished; the subscriptions of its members end.
    ///
    /// # Errors
    /// As [`ConsumerHandle::info`].
    pub async fn remove(&self) -> Result<(), Error> {
        let method = Method::DELETE;
        let call = ClientRequest { method, repeatable: false, ..ClientRequest::get(self.path()) };
        self.client.call(&call).await.map(drop)
    }

    async fn steer(&self, verb: ConsumerVerb) -> Result<ConsumerInfo, Error> {
        let mut body = Vec::new();
        verb.write(Codec::Json, &mut body);
        inform(&self.client.call(&once(self.path(), body)).await?)
    }

    fn path(&self) -> String {
        let path = topic_path("/v1/consumers", self.topic.as_str());
        RequestPath::new(path).with("consumer", &self.name).into_string()
    }
}

impl Client {
    /// The consumer of this name; the inbox has the empty one.
    ///
    /// # Errors
    /// [`Error::Topic`] where the name is no topic.
    pub fn consumer(&self, topic: &str, name: &str) -> Result<ConsumerHandle, Error> {
        let (client, name) = (self.clone(), name.to_owned());
        Ok(ConsumerHandle { client, topic: topic.parse()?, name })
    }

    /// The consumers of a stream, by name, without their connections and messages.
    ///
    /// # Errors
    /// As [`Client::stream`].
    pub async fn consumers(&self, topic: &str) -> Result<Vec<ConsumerInfo>, Error> {
        let topic: Topic = topic.parse()?;
        let answer =
            self.call(&ClientRequest::get(topic_path("/v1/consumers", topic.as_str()))).await?;
        Ok(Consumers::read(answer.codec, &answer.body)?.consumers)
    }

    /// The consumers of all streams whose topics match, in the order of topics and names: those
    /// that the token may read. Without a pattern, of all streams but those of systems.
    ///
    /// # Errors
    /// [`Error::Topic`], [`Error::NotReachable`].
    pub async fn all_consumers(&self, pattern: Option<&str>) -> Result<Vec<ConsumerInfo>, Error> {
        let pattern = pattern.map(str::parse).transpose()?;
        let mut query = StreamsQuery { pattern, ..StreamsQuery::default() };
        let mut all = Vec::new();
        loop {
            let path = RequestPath::new("/v1/consumers".to_owned()).with_all(query.parameters());
            let answer = self.call(&ClientRequest::get(path.into_string())).await?;
            let page = ConsumersPage::read(answer.codec, &answer.body)?;
            all.extend(page.consumers);
            query.after = page.next;
            if query.after.is_none() {
                return Ok(all);
            }
        }
    }

    /// The rules of retention, the most exact one first, and the bounds of streams that none of
    /// them matches.
    ///
    /// # Errors
    /// [`Error::NotReachable`], or the hub's refusal.
    pub async fn rules(&self) -> Result<StreamRules, Error> {
        let answer = self.call(&ClientRequest::get(RULES)).await?;
        Ok(StreamRules::read(answer.codec, &answer.body)?)
    }

    /// Has these bounds hold for all streams whose topics match and that have none of their own,
    /// those that are there and those that come.
    ///
    /// # Errors
    /// The hub refuses with `RuleTie` or `TooMany`; [`Error::Topic`], [`Error::NotReachable`].
    pub async fn set_rule(&self, pattern: &str, bounds: Retention) -> Result<RetentionRule, Error> {
        let pattern: Pattern = pattern.parse()?;
        let bounds = RuleBounds {
            max_age_ms: Some(bounds.max_age_ms),
            max_count: Some(bounds.max_count),
            max_bytes: Some(bounds.max_bytes),
        };
        let mut body = Vec::new();
        bounds.write(Codec::Json, &mut body);
        let body = Some((Codec::Json, body.into()));
        let call =
            ClientRequest { method: Method::PUT, body, ..ClientRequest::get(rule(&pattern)) };
        let answer = self.call(&call).await?;
        Ok(RetentionRule::read(answer.codec, &answer.body)?)
    }

    /// Removes the rule of a pattern.
    ///
    /// # Errors
    /// The hub refuses with `UnknownRule`; [`Error::Topic`], [`Error::NotReachable`].
    pub async fn remove_rule(&self, pattern: &str) -> Result<(), Error> {
        let path = rule(&pattern.parse()?);
        let call =
            ClientRequest { method: Method::DELETE, repeatable: false, ..ClientRequest::get(path) };
        self.call(&call).await.map(drop)
    }

    /// Messages that are held back for a stream, in the order in which they come, at most 1000: the
    /// first ones, or those behind the [`DelayedPage::next`] of an earlier page.
    ///
    /// # Errors
    /// As [`Client::stream`].
    pub async fn delayed(
        &self,
        topic: &str,
        after: Option<DelayedPlace>,
    ) -> Result<DelayedPage, Error> {
        let topic: Topic = topic.parse()?;
        let list = ListDelayed { after, limit: MAX_RANGE_MESSAGES };
        let path = topic_path("/v1/delayed", topic.as_str());
        let query = RequestPath::new(path).with_all(list.parameters());
        let answer = self.call(&ClientRequest::get(query.into_string())).await?;
        Ok(DelayedPage::read(answer.codec, &answer.body)?)
    }

    /// Cancels the held back messages of this id: they never come.
    ///
    /// # Errors
    /// As [`Client::stream`]; the hub refuses with `NotDelayed`.
    pub async fn cancel(&self, topic: &str, id: &str) -> Result<Cancelled, Error> {
        let topic: Topic = topic.parse()?;
        let path = topic_path("/v1/delayed", topic.as_str());
        let path = RequestPath::new(path).with("id", id).into_string();
        let call =
            ClientRequest { method: Method::DELETE, repeatable: false, ..ClientRequest::get(path) };
        let answer = self.call(&call).await?;
        Ok(Cancelled::read(answer.codec, &answer.body)?)
    }

    /// Removes the messages of a stream that stand before a place; [`StartPosition::New`]: all of
    /// them.
    ///
    /// # Errors
    /// As [`Client::stream`]; the hub refuses with `BeyondEnd`.
    pub async fn purge(&self, topic: &str, before: StartPosition) -> Result<Purged, Error> {
        let topic: Topic = topic.parse()?;
        let mut body = Vec::new();
        Purge { before: before.asked() }.write(Codec::Json, &mut body);
        let answer = self.call(&once(topic_path("/v1/purge", topic.as_str()), body)).await?;
        Ok(Purged::read(answer.codec, &answer.body)?)
    }
}

/// The path of the rules.
const RULES: &str = "/v1/rules";

/// The path of one rule.
fn rule(pattern: &Pattern) -> String {
    RequestPath::new(RULES).with("pattern", pattern.as_str()).into_string()
}

/// A request that would do something else the second time.
fn once(path: String, body: Vec<u8>) -> ClientRequest {
    let body = Some((Codec::Json, body.into()));
    ClientRequest { method: Method::POST, body, repeatable: false, ..ClientRequest::get(path) }
}

fn inform(answer: &HubResponse) -> Result<ConsumerInfo, Error> {
    Ok(ConsumerInfo::read(answer.codec, &answer.body)?)
}
