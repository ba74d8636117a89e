use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;
use sealane_codec::Codec;
#[cfg(feature = "group")]
use sealane_group::GroupMembership;
use sealane_message::{Topic, Value};
use sealane_protocol::{Health, RangeQuery, StreamState};

use crate::Error;
use crate::address::{HubAddress, RequestPath, stream_path};
use crate::backoff::random;
#[cfg(feature = "group")]
use crate::group::GroupClient;
use crate::http::{ClientRequest, ConnectionPool, HubResponse};
use crate::limits::MAX_PATIENCE_MS;
use crate::publish::{PublishBatch, PublishBuilder};
use crate::publisher::Publisher;
use crate::stream::{ConfigureStream, ListStreams, MessagePage};
use crate::subscribe::{StartPosition, SubscribeBuilder};
use crate::wire::TlsTrust;

/// A hub, as a client sees it. Cloning is cheap; clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    pool: Arc<ConnectionPool>,
    keys: Arc<IdempotencyKeys>,
    codec: Codec,
    patience: Duration,
}

impl Client {
    /// A client of the hub at `127.0.0.1:9087`, `hub.local`, `http://hub.local:9087`, or with TLS
    /// at `https://hub.example`. Nothing is sent yet: connections are made when they are needed.
    ///
    /// # Errors
    /// [`Error::Address`] where the text is no address.
    pub fn connect(address: &str) -> Result<Client, Error> {
        let address: HubAddress = address.parse()?;
        Ok(Client {
            pool: Arc::new(ConnectionPool::new(address, None, TlsTrust::default())),
            keys: Arc::new(IdempotencyKeys {
                prefix: (random(), random()),
                next: AtomicU64::new(0),
            }),
            codec: Codec::MsgPack,
            patience: Duration::from_millis(MAX_PATIENCE_MS),
        })
    }

    /// Encodes published values, and asks for deliveries, in this codec instead of `msgpack`.
    ///
    /// # Errors
    /// [`Error::RecordsCodec`] for `msgpack-records`.
    pub fn with_codec(mut self, codec: Codec) -> Result<Client, Error> {
        if codec == Codec::MsgPackRecords {
            return Err(Error::RecordsCodec);
        }
        self.codec = codec;
        Ok(self)
    }

    /// Brings this token (spec/access.md) with every request.
    ///
    /// # Errors
    /// [`Error::Token`] where it cannot be one.
    pub fn with_token(mut self, token: &str) -> Result<Client, Error> {
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| Error::Token)?;
        value.set_sensitive(true);
        let (address, trust) = (self.pool.address().clone(), self.pool.trust().clone());
        self.pool = Arc::new(ConnectionPool::new(address, Some(value), trust));
        Ok(self)
    }

    /// Trusts a hub of an `https` address whose certificate is one of these, or is signed with one
    /// of them; PEM. Without this it is those that the system trusts.
    ///
    /// # Errors
    /// [`Error::Trust`] where there is no certificate in `pem`.
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Client, Error> {
        let (address, token) = (self.pool.address().clone(), self.pool.token().cloned());
        self.pool = Arc::new(ConnectionPool::new(address, token, TlsTrust::only(pem)?));
        Ok(self)
    }

    /// If a request gets no answer, the client repeats it for this long (default 10 s). Zero makes
    /// one attempt. Repeating never stores a published message twice.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Client {
        self.patience = patience;
        self
    }

    /// The hub's address, `host:port`.
    pub fn address(&self) -> String {
        self.pool.address().to_string()
    }

    /// Publishes a map to the stream of `topic`, which its first message makes.
    ///
    /// # Errors
    /// The hub's refusal, [`Error::NotReachable`], or [`Error::NoAnswer`] after repeating it.
    pub fn publish(&self, topic: &str, envelope: &Value) -> PublishBuilder {
        PublishBuilder::value(self, topic, envelope)
    }

    /// Publishes an envelope that is encoded already.
    ///
    /// # Errors
    /// As [`Client::publish`].
    pub fn publish_raw(
        &self,
        topic: &str,
        codec: Codec,
        envelope: impl Into<Bytes>,
    ) -> PublishBuilder {
        PublishBuilder::new(self, topic, codec, envelope.into())
    }

    /// Publishes encoded envelopes in one commit: all or none.
    ///
    /// # Errors
    /// As [`Client::publish`].
    pub fn publish_batch<E: AsRef<[u8]>>(
        &self,
        topic: &str,
        codec: Codec,
        envelopes: &[E],
    ) -> PublishBatch {
        PublishBatch::new(self, topic, codec, envelopes, None)
    }

    #[cfg(feature = "group")]
    /// A client that seals what it publishes and opens what it reads, by the keys of a group. Its
    /// orders are read first, and followed.
    ///
    /// # Errors
    /// [`Error::NotReachable`], or the hub's refusal of its control stream.
    pub async fn group(&self, member: impl Into<GroupMembership>) -> Result<GroupClient, Error> {
        GroupClient::open(self, member.into()).await
    }

    /// A handle that publishes to one stream in the background, in batches and in order.
    ///
    /// # Errors
    /// [`Error::Topic`] where the name is no topic.
    pub fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        Publisher::start(self.clone(), topic.parse()?, None)
    }

    /// Subscribes to a topic or pattern, by default from what is new. Awaiting it connects.
    ///
    /// # Errors
    /// The hub's refusal, or [`Error::NotReachable`].
    pub fn subscribe(&self, pattern: &str) -> SubscribeBuilder {
        SubscribeBuilder::new(self.clone(), pattern)
    }

    /// The hub's streams, a page at a time.
    ///
    /// # Errors
    /// The hub's refusal, [`Error::NotReachable`] or [`Error::NoAnswer`].
    pub fn streams(&self) -> ListStreams {
        ListStreams::new(self.clone())
    }

    /// The state of one stream.
    ///
    /// # Errors
    /// As [`Client::streams`]; the hub refuses with `UnknownStream`.
    pub async fn stream(&self, topic: &str) -> Result<StreamState, Error> {
        let topic: Topic = topic.parse()?;
        let answer = self.call(&ClientRequest::get(stream_path(topic.as_str()))).await?;
        Ok(StreamState::read(answer.codec, &answer.body)?)
    }

    /// Up to `limit` messages of one stream, at most 1000, read without subscribing.
    ///
    /// # Errors
    /// As [`Client::stream`].
    pub async fn read(
        &self,
        topic: &str,
        from: StartPosition,
        limit: usize,
    ) -> Result<MessagePage, Error> {
        let topic: Topic = topic.parse()?;
        let range = RangeQuery { from: from.asked(), limit };
        let query = RequestPath::new(stream_path(topic.as_str())).with_all(range.parameters());
        let call = ClientRequest { accept: self.codec, ..ClientRequest::get(query.into_string()) };
        MessagePage::read(&self.call(&call).await?)
    }

    /// Makes a stream or changes its level and retention. Awaiting it sends it.
    ///
    /// # Errors
    /// As [`Client::stream`]; the hub refuses with `SealMismatch`.
    pub fn configure(&self, topic: &str) -> ConfigureStream {
        ConfigureStream::new(self.clone(), topic)
    }

    /// Deletes a stream and all its messages.
    ///
    /// # Errors
    /// As [`Client::stream`].
    pub async fn remove(&self, topic: &str) -> Result<(), Error> {
        let topic: Topic = topic.parse()?;
        let path = stream_path(topic.as_str());
        let call =
            ClientRequest { method: Method::DELETE, repeatable: false, ..ClientRequest::get(path) };
        self.call(&call).await.map(drop)
    }

    /// Whether the hub is well, and what it is.
    ///
    /// # Errors
    /// [`Error::NotReachable`], [`Error::NoAnswer`], or the refusal of a hub that is stopping.
    pub async fn health(&self) -> Result<Health, Error> {
        let answer = self.call(&ClientRequest::get("/health")).await?;
        Ok(Health::read(answer.codec, &answer.body)?)
    }

    /// The time by the hub's clock, to the second. It is none if the hub's answers have no `Date`.
    ///
    /// # Errors
    /// As [`Client::health`].
    pub async fn clock(&self) -> Result<Option<SystemTime>, Error> {
        Ok(self.call(&ClientRequest::get("/health")).await?.date)
    }

    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    pub(crate) fn hub(&self) -> &HubAddress {
        self.pool.address()
    }

    pub(crate) fn token(&self) -> Option<&HeaderValue> {
        self.pool.token()
    }

    pub(crate) fn trust(&self) -> &TlsTrust {
        self.pool.trust()
    }

    /// How long a request without an answer is repeated.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.patience
    }

    pub(crate) fn make_key(&self) -> String {
        self.keys.make()
    }

    pub(crate) async fn call(&self, call: &ClientRequest) -> Result<HubResponse, Error> {
        self.pool.call(call, self.patience).await
    }
}

/// The idempotency keys of a client: 128 random bits and a number.
#[derive(Debug)]
struct IdempotencyKeys {
    prefix: (u64, u64),
    next: AtomicU64,
}

impl IdempotencyKeys {
    fn make(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}{:016x}-{number:x}", self.prefix.0, self.prefix.1)
    }
}
