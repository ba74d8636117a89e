//! Request and reply over streams (spec/hub.md §3): a message that asks, and one that answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealane_message::Value;
use sealane_message::time::whole_ms;
use tokio::time::timeout;

use crate::backoff::random;
use crate::limits::MAX_REPLY_REMOVAL_MS;
use crate::{Client, Error, ReceivedMessage, StartPosition};

/// Where answers go, and nowhere else: who asks must not choose what the rights of who answers are
/// used for.
const REPLIES: &str = "reply/";
const ID: &str = "id";
const REPLY_TO: &str = "replyTo";
const IN_REPLY_TO: &str = "inReplyTo";
const DEADLINE: &str = "deadlineMs";

impl Client {
    /// Publishes a map to `topic` as a request, and waits for the first answer, at most this long.
    /// A token needs the rights to publish there, and to read and manage `reply/**`: the answer
    /// comes on a stream of its own, which is removed afterwards.
    ///
    /// # Errors
    /// [`Error::NoReply`] when the time is over: the request may have been heard. As
    /// [`Client::publish`]; [`Error::NotARequest`] where `body` is no map.
    pub async fn request(
        &self,
        topic: &str,
        body: &Value,
        deadline: Duration,
    ) -> Result<ReceivedMessage, Error> {
        let (id, reply_to) = (hex(), format!("{REPLIES}{}", hex()));
        let fields = vec![
            (REPLY_TO, Value::from(reply_to.as_str())),
            (DEADLINE, Value::from(now_ms().saturating_add(whole_ms(deadline)))),
        ];
        let request = with(body, &id, fields)?;
        let asking = self.ask(topic, &request, ExpectedReply { id: &id, reply_to: &reply_to });
        let answer = timeout(deadline, asking).await;
        let client = self.clone();
        let removal = tokio::spawn(async move {
            if let Err(error) = client.remove(&reply_to).await {
                tracing::debug!(%error, topic = reply_to, "the stream of a reply stays");
            }
        });
        if let Ok(answer) = answer {
            return answer;
        }
        // A caller that waited in vain may end now, and the removal with it.
        let _ = timeout(Duration::from_millis(MAX_REPLY_REMOVAL_MS), removal).await;
        Err(Error::NoReply { topic: topic.to_owned(), waited: deadline })
    }

    async fn ask(
        &self,
        topic: &str,
        request: &Value,
        expected: ExpectedReply<'_>,
    ) -> Result<ReceivedMessage, Error> {
        // It reads before it asks: no answer can come too early.
        let mut answers = self.subscribe(expected.reply_to).from(StartPosition::First).await?;
        self.publish(topic, request).await?;
        while let Some(answer) = answers.next().await {
            let answer = answer?;
            if text(&answer.value()?, IN_REPLY_TO).as_deref() == Some(expected.id) {
                return Ok(answer);
            }
        }
        Err(Error::Ended("subscription"))
    }

    /// Whether anybody still waits for the answer to a request: what work is done for it, is to be
    /// done only then.
    ///
    /// # Errors
    /// [`Error::NotARequest`] where the message does not ask for an answer.
    pub fn is_awaited(&self, request: &ReceivedMessage) -> Result<bool, Error> {
        Ok(ReplyTarget::read(request)?.is_awaited())
    }

    /// Answers a request with a map; says whether anybody still waits for it. After its deadline
    /// nothing is sent.
    ///
    /// # Errors
    /// [`Error::NotARequest`] where `request` does not ask for an answer, or `body` is no map. As
    /// [`Client::publish`].
    pub async fn reply(&self, request: &ReceivedMessage, body: &Value) -> Result<bool, Error> {
        let asked = ReplyTarget::read(request)?;
        if !asked.is_awaited() {
            return Ok(false);
        }
        let answer = with(body, &hex(), vec![(IN_REPLY_TO, Value::from(asked.id.as_str()))])?;
        self.publish(&asked.to, &answer).await?;
        Ok(true)
    }
}

/// The answer that a request waits for.
struct ExpectedReply<'a> {
    /// The id of the request, which the answer names.
    id: &'a str,
    /// The topic that it comes on.
    reply_to: &'a str,
}

/// The fields of a request that describe its answer.
struct ReplyTarget {
    id: String,
    to: String,
    deadline_ms: Option<u64>,
}

impl ReplyTarget {
    fn read(request: &ReceivedMessage) -> Result<Self, Error> {
        let asked = request.value()?;
        let (Some(id), Some(to)) = (text(&asked, ID), text(&asked, REPLY_TO)) else {
            return Err(Error::NotARequest("the message has no `id` and `replyTo`"));
        };
        if !to.starts_with(REPLIES) {
            return Err(Error::NotARequest("its `replyTo` is not below `reply/`"));
        }
        let deadline_ms = asked.field(DEADLINE).and_then(Value::as_u64);
        Ok(Self { id, to, deadline_ms })
    }

    fn is_awaited(&self) -> bool {
        self.deadline_ms.is_none_or(|deadline| deadline >= now_ms())
    }
}

/// The map with this id and these fields instead of its own.
fn with(body: &Value, id: &str, fields: Vec<(&str, Value)>) -> Result<Value, Error> {
    let Value::Map(entries) = body else {
        return Err(Error::NotARequest("the body is no map"));
    };
    let ours = |key: &str| key == ID || fields.iter().any(|(name, _)| *name == key);
    let kept = entries.iter().filter(|(key, _)| !ours(key)).cloned();
    let mut all = vec![(ID.to_owned(), Value::from(id))];
    all.extend(kept);
    all.extend(fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Ok(Value::Map(all))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.field(key).and_then(Value::as_text).map(str::to_owned)
}

fn hex() -> String {
    format!("{:016x}{:016x}", random(), random())
}

/// Milliseconds since 1970-01-01 UTC, by this machine's clock.
pub(crate) fn now_ms() -> u64 {
    whole_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
