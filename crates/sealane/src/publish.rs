use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::time::whole_ms;
use sealane_message::{DataType, Topic, Value};
use sealane_protocol::limits::MAX_ENVELOPE_BYTES;
use sealane_protocol::{Enqueue, EnqueueOutcome, Enqueued, StreamPosition};

use crate::group::{GroupClient, SEALED_IN, SentEnvelopes};
use crate::http::{ClientRequest, HubResponse, RequestIdempotency};
use crate::{Client, Error, HubLevel};

/// A message that is stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PublishedMessage {
    /// The message's id: `envelope.id`, or what the hub put there.
    pub id: String,
    /// Its stream.
    pub stream: Topic,
    /// Its offset in the stream.
    pub offset: u64,
    /// The stream's generation.
    pub generation: u64,
    /// The durability that was reached before the hub answered.
    pub level: HubLevel,
    /// Whether it had been stored already, under the same idempotency key.
    pub replayed: bool,
}

/// A message that is stored and enters its stream later.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ScheduledMessage {
    /// The message's id.
    pub id: String,
    /// The stream that it will enter.
    pub stream: Topic,
    /// When, in Unix milliseconds of the hub's clock.
    pub due_ms: u64,
    /// The durability that was reached before the hub answered.
    pub level: HubLevel,
    /// Whether it had been stored already, under the same idempotency key.
    pub replayed: bool,
}

/// Messages that were stored in one commit, at offsets without holes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PublishedBatch {
    /// The messages' ids, in order.
    pub ids: Vec<String>,
    /// Their stream.
    pub stream: Topic,
    /// The offset of the first.
    pub offset: u64,
    /// The stream's generation.
    pub generation: u64,
    /// The durability that was reached before the hub answered.
    pub level: HubLevel,
    /// How many.
    pub count: u64,
    /// Whether they had been stored already, under the same idempotency key.
    pub replayed: bool,
}

/// A message about to be published; awaiting it sends it.
#[must_use = "nothing is sent until this is awaited"]
#[derive(Debug, Clone)]
pub struct PublishBuilder {
    client: Client,
    topic: Result<Topic, Error>,
    codec: Codec,
    envelope: Bytes,
    expect: Option<u64>,
    once: Option<RequestIdempotency>,
    seal: Option<(GroupClient, DataType)>,
}

impl PublishBuilder {
    pub(crate) fn new(client: &Client, topic: &str, codec: Codec, envelope: Bytes) -> Self {
        let client = client.clone();
        let topic = check(topic, codec, &envelope);
        Self { client, topic, codec, envelope, expect: None, once: None, seal: None }
    }

    pub(crate) fn value(client: &Client, topic: &str, value: &Value) -> Self {
        let mut envelope = Vec::new();
        sealane_codec::encode(client.codec(), value, &mut envelope);
        Self::new(client, topic, client.codec(), envelope.into())
    }

    /// Sealed when it is sent, as the policy decides then.
    #[cfg(feature = "group")]
    pub(crate) fn sealed(self, group: &GroupClient, data_type: DataType) -> Self {
        Self { seal: Some((group.clone(), data_type)), ..self }
    }

    /// Stores it only if it gets this offset; otherwise the hub answers `OffsetMismatch`.
    pub fn expect(mut self, offset: u64) -> Self {
        self.expect = Some(offset);
        self
    }

    /// The idempotency key, 1 to 128 bytes: the hub stores what comes with a key once, also when
    /// another process repeats it. Without one the library makes a key for its own repetitions. A
    /// message that is sealed anew is another one: the hub refuses it with `KeyReused`.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.once = Some(RequestIdempotency::Key(key.into()));
        self
    }

    /// The hub stores this message in its stream once, whoever brings it: what it knows it by are
    /// the message's own bytes, of a sealed frame those that no relay changes. A hub that is older
    /// than this does not know it, and stores it each time. It does not go with
    /// [`PublishBuilder::delay`].
    pub fn once(mut self) -> Self {
        self.once = Some(RequestIdempotency::Content);
        self
    }

    /// Holds the message back for so long; it gets its offset when it is due. What was expected
    /// of its offset is forgotten.
    pub fn delay(self, delay: Duration) -> PublishLater {
        PublishLater { publish: Self { expect: None, ..self }, delay }
    }

    async fn send(self, delay_ms: Option<u64>) -> Result<PublishAnswer, Error> {
        let topic = self.topic?;
        let mut sent = None;
        let (codec, envelope) = match self.seal {
            Some((group, data_type)) => {
                let sealed =
                    group.seal_now(topic.as_str(), data_type, self.codec, &self.envelope)?;
                let (epoch, codec, envelopes) = (sealed.epoch, self.codec, vec![self.envelope]);
                sent = Some((group, SentEnvelopes { epoch, data_type, codec, envelopes }));
                (SEALED_IN, sealed.bytes.into())
            }
            None => (self.codec, self.envelope),
        };
        let mut body = Vec::with_capacity(envelope.len() + topic.as_str().len() + 64);
        let (envelopes, expect) = (vec![envelope.as_ref()], self.expect);
        let enqueue = Enqueue { to: topic, envelopes, is_batch: false, expect, delay_ms };
        enqueue.write(codec, &mut body);
        let once = self.once.unwrap_or_else(|| RequestIdempotency::Key(self.client.make_key()));
        let path = Enqueue::path(false);
        let answer = self.client.call(&ClientRequest::post(path, codec, body.into(), once)).await?;
        Ok(PublishAnswer { answer, sent })
    }
}

/// The hub's answer, and what was sealed for it.
struct PublishAnswer {
    answer: HubResponse,
    sent: Option<(GroupClient, SentEnvelopes)>,
}

impl IntoFuture for PublishBuilder {
    type Output = Result<PublishedMessage, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let PublishAnswer { answer, sent } = self.send(None).await?;
            let enqueued = Enqueued::read(answer.codec, &answer.body)?;
            let StreamPosition { generation, offset } = position(&enqueued)?;
            let id = id(&enqueued);
            let Enqueued { stream, level, replayed, .. } = enqueued;
            if let Some((group, sent)) = sent {
                group.sent(sent, &stream, generation, offset);
            }
            Ok(PublishedMessage { id, stream, offset, generation, level, replayed })
        })
    }
}

/// A delayed message about to be published; awaiting it sends it.
#[must_use = "nothing is sent until this is awaited"]
#[derive(Debug, Clone)]
pub struct PublishLater {
    publish: PublishBuilder,
    delay: Duration,
}

impl PublishLater {
    /// See [`PublishBuilder::key`].
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.publish = self.publish.key(key);
        self
    }
}

impl IntoFuture for PublishLater {
    type Output = Result<ScheduledMessage, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let PublishAnswer { answer, .. } =
                self.publish.send(Some(whole_ms(self.delay))).await?;
            let enqueued = Enqueued::read(answer.codec, &answer.body)?;
            let EnqueueOutcome::Due(due_ms) = enqueued.outcome else {
                return Err(Error::Protocol("a delayed message has no `dueMs`".into()));
            };
            let id = id(&enqueued);
            let Enqueued { stream, level, replayed, .. } = enqueued;
            Ok(ScheduledMessage { id, stream, due_ms, level, replayed })
        })
    }
}

/// Messages about to be published in one commit; awaiting it sends them.
#[must_use = "nothing is sent until this is awaited"]
#[derive(Debug, Clone)]
pub struct PublishBatch {
    client: Client,
    topic: Result<Topic, Error>,
    codec: Codec,
    body: Vec<u8>,
    once: Option<RequestIdempotency>,
    sent: Option<(GroupClient, SentEnvelopes)>,
}

impl PublishBatch {
    pub(crate) fn new<E: AsRef<[u8]>>(
        client: &Client,
        topic: &str,
        codec: Codec,
        envelopes: &[E],
        expect: Option<u64>,
    ) -> Self {
        let bytes: usize = envelopes.iter().map(|envelope| envelope.as_ref().len() + 1).sum();
        let mut body = Vec::with_capacity(bytes + topic.len() + 64);
        let mut topic = check(topic, codec, &[]);
        if let Ok(name) = &topic {
            let envelopes = envelopes.iter().map(AsRef::as_ref).collect();
            let to = name.clone();
            let enqueue = Enqueue { to, envelopes, is_batch: true, expect, delay_ms: None };
            enqueue.write(codec, &mut body);
        }
        if let Some(large) = envelopes.iter().find(|e| e.as_ref().len() > MAX_ENVELOPE_BYTES) {
            topic = Err(too_large(large.as_ref().len()));
        }
        Self { client: client.clone(), topic, codec, body, once: None, sent: None }
    }

    /// The same, with the envelopes that were sealed for it.
    #[cfg(feature = "group")]
    pub(crate) fn sealed(self, group: &GroupClient, sent: SentEnvelopes) -> Self {
        Self { sent: Some((group.clone(), sent)), ..self }
    }

    /// One that was refused before it could be made.
    #[cfg(feature = "group")]
    pub(crate) fn failed(client: &Client, error: Error) -> Self {
        let (client, codec) = (client.clone(), client.codec());
        Self { client, topic: Err(error), codec, body: Vec::new(), once: None, sent: None }
    }

    /// See [`PublishBuilder::key`].
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.once = Some(RequestIdempotency::Key(key.into()));
        self
    }

    /// The hub stores each of these messages in its stream once, whoever brings it, as
    /// [`PublishBuilder::once`] does with one. Those that the stream has already are left out: the
    /// answer counts those that are new, and is `replayed` where none is. A hub that is older than
    /// this refuses it with `InvalidParameter`.
    pub fn once(mut self) -> Self {
        self.once = Some(RequestIdempotency::Each);
        self
    }
}

impl IntoFuture for PublishBatch {
    type Output = Result<PublishedBatch, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.topic?;
            let once = self.once.unwrap_or_else(|| RequestIdempotency::Key(self.client.make_key()));
            let call = ClientRequest::post(Enqueue::path(true), self.codec, self.body.into(), once);
            let answer = self.client.call(&call).await?;
            let enqueued = Enqueued::read(answer.codec, &answer.body)?;
            let StreamPosition { generation, offset } = position(&enqueued)?;
            let Enqueued { ids, stream, level, replayed, .. } = enqueued;
            let ids: Vec<_> = ids.into_iter().map(Cow::into_owned).collect();
            let count = ids.len() as u64;
            if let Some((group, sent)) = self.sent {
                group.sent(sent, &stream, generation, offset);
            }
            Ok(PublishedBatch { ids, stream, offset, generation, level, count, replayed })
        })
    }
}

fn id(enqueued: &Enqueued<'_>) -> String {
    enqueued.ids.first().map_or_else(String::new, |id| id.clone().into_owned())
}

fn position(enqueued: &Enqueued<'_>) -> Result<StreamPosition, Error> {
    match enqueued.outcome {
        EnqueueOutcome::At(position) => Ok(position),
        EnqueueOutcome::Due(_) => Err(Error::Protocol("a message has no `offset`".into())),
    }
}

/// A duration as the protocol carries it; longer than time itself is as long as can be said.
pub(crate) fn too_large(bytes: usize) -> Error {
    Error::TooLarge { bytes, limit: MAX_ENVELOPE_BYTES }
}

fn check(topic: &str, codec: Codec, envelope: &[u8]) -> Result<Topic, Error> {
    if codec == Codec::MsgPackRecords {
        return Err(Error::RecordsCodec);
    }
    if envelope.len() > MAX_ENVELOPE_BYTES {
        return Err(too_large(envelope.len()));
    }
    Ok(topic.parse()?)
}
