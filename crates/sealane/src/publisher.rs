use std::sync::Arc;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::{DataType, Topic, Value};
use sealane_protocol::limits::{MAX_BATCH_MESSAGES, MAX_ENVELOPE_BYTES};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::group::Group;
use crate::limits::{MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES};
use crate::publish::too_large;
use crate::{Client, Error};

/// Messages of one request; fewer than a hub takes, so that many publishers take turns.
const MAX_REQUEST_MESSAGES: usize =
    if MAX_BATCH_MESSAGES < 4096 { MAX_BATCH_MESSAGES } else { 4096 };

/// Envelope bytes at which a request is full.
const FULL_REQUEST_BYTES: usize = 4 << 20;

/// What a publisher has stored so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stored {
    /// Messages that the hub has acknowledged.
    pub messages: u64,
    /// The offset after the last of them; `None` before the first.
    pub next: Option<u64>,
    /// The generation of the last of them.
    pub generation: Option<u64>,
}

/// Publishes to one stream in the background, in order: what waits while a request is on its way
/// goes together with the next, so that the rate follows the load without a timer.
///
/// The queue is bounded by messages and bytes; [`Publisher::send`] waits where it is full. The
/// first error that repeating does not cure ends the publisher: nothing after it is sent, so that
/// no later message overtakes one that failed. Dropping it sends what is queued.
#[derive(Debug, Clone)]
pub struct Publisher {
    queue: mpsc::Sender<Item>,
    bytes: Arc<Semaphore>,
    codec: Codec,
}

impl Publisher {
    pub(crate) fn start(
        client: Client,
        topic: Topic,
        seal: Option<(Group, DataType)>,
    ) -> Result<Self, Error> {
        let (queue, items) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let codec = client.codec();
        let stored = Stored::default();
        let worker = Worker { client, topic, codec, seal, stored, failed: None };
        tokio::spawn(worker.run(items));
        Ok(Self { queue, bytes: Arc::new(Semaphore::new(MAX_QUEUED_BYTES)), codec })
    }

    /// Queues a map, waiting while the queue is full.
    ///
    /// # Errors
    /// [`Error::TooLarge`], or [`Error::Ended`] after a failure that [`Publisher::flush`] tells.
    pub async fn send(&self, envelope: &Value) -> Result<(), Error> {
        let mut bytes = Vec::new();
        sealane_codec::encode(self.codec, envelope, &mut bytes);
        self.send_raw(bytes).await
    }

    /// Queues an envelope that is encoded in the client's codec.
    ///
    /// # Errors
    /// As [`Publisher::send`].
    pub async fn send_raw(&self, envelope: impl Into<Bytes>) -> Result<(), Error> {
        let envelope = envelope.into();
        if envelope.len() > MAX_ENVELOPE_BYTES {
            return Err(too_large(envelope.len()));
        }
        let size = u32::try_from(envelope.len()).unwrap_or(u32::MAX);
        let ended = || Error::Ended("publisher");
        let room = Arc::clone(&self.bytes).acquire_many_owned(size).await.map_err(|_| ended())?;
        let item = Item::Envelope(envelope, room);
        self.queue.send(item).await.map_err(|_| ended())
    }

    /// Waits until everything queued before is stored.
    ///
    /// # Errors
    /// What ended the publisher.
    pub async fn flush(&self) -> Result<Stored, Error> {
        let (done, answer) = oneshot::channel();
        let ended = || Error::Ended("publisher");
        self.queue.send(Item::Flush(done)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

#[derive(Debug)]
enum Item {
    Envelope(Bytes, OwnedSemaphorePermit),
    Flush(oneshot::Sender<Result<Stored, Error>>),
}

struct Worker {
    client: Client,
    topic: Topic,
    codec: Codec,
    seal: Option<(Group, DataType)>,
    stored: Stored,
    failed: Option<Error>,
}

impl Worker {
    async fn run(mut self, mut items: mpsc::Receiver<Item>) {
        let mut taken = Vec::new();
        while items.recv_many(&mut taken, MAX_REQUEST_MESSAGES).await > 0 {
            let mut batch = Vec::new();
            let mut size = 0;
            for item in taken.drain(..) {
                match item {
                    Item::Envelope(envelope, room) => {
                        size += envelope.len();
                        batch.push((envelope, room));
                        if size >= FULL_REQUEST_BYTES {
                            self.store(&mut batch).await;
                            size = 0;
                        }
                    }
                    Item::Flush(done) => {
                        self.store(&mut batch).await;
                        let outcome = self.failed.clone().map_or(Ok(self.stored), Err);
                        // Whoever asked may have gone; the outcome stays for the next who asks.
                        let _ = done.send(outcome);
                    }
                }
            }
            self.store(&mut batch).await;
        }
    }

    /// Stores the batch, and gives its room back. After a failure it only does the latter, so that
    /// nobody waits for room that will never be.
    async fn store(&mut self, batch: &mut Vec<(Bytes, OwnedSemaphorePermit)>) {
        if batch.is_empty() {
            return;
        }
        let (envelopes, _room): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        if self.failed.is_some() {
            return;
        }
        let topic = self.topic.as_str();
        let publish = match &self.seal {
            Some((group, data_type)) => {
                group.publish_batch(topic, *data_type, self.codec, &envelopes)
            }
            None => self.client.publish_batch(topic, self.codec, &envelopes),
        };
        match publish.await {
            Ok(published) => {
                self.stored.messages += published.count;
                self.stored.next = Some(published.offset + published.count);
                self.stored.generation = Some(published.generation);
            }
            Err(error) => {
                tracing::warn!(topic = %self.topic, code = error.code(), %error, "publisher ended");
                self.failed = Some(error);
            }
        }
    }
}
