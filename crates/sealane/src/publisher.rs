//! Publishing to one stream in the background.

mod pending;
mod requests;
mod session;

use std::sync::Arc;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::{DataType, Topic, Value};
use sealane_protocol::limits::MAX_ENVELOPE_BYTES;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::group::GroupClient;
use crate::limits::{MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES};
use crate::publish::too_large;
use crate::{Client, Error};
use requests::RequestPublisher;
use session::{PublisherSession, SocketUnsupported};

/// The messages that a publisher has stored so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PublisherProgress {
    /// Messages that the hub has acknowledged.
    pub messages: u64,
    /// The offset after the last of them; `None` before the first.
    pub next: Option<u64>,
    /// The generation of the last of them.
    pub generation: Option<u64>,
}

/// Publishes to one stream in the background, in order. It uses a socket of its own, on which many
/// messages are under way at once. If the connection is lost, the publisher connects again and
/// sends the unanswered messages again. The hub knows each message by its number and stores it
/// once. If a hub has no publishing sockets, the publisher sends requests.
///
/// The backlog and the messages under way are bounded by number and bytes; [`Publisher::send`]
/// waits at the bound. The first error that repeating does not cure within [`Client::patience`]
/// ends the publisher. Nothing after it is sent, so that no later message overtakes one that
/// failed. Dropping the publisher sends the queued messages.
#[derive(Debug, Clone)]
pub struct Publisher {
    queue: mpsc::Sender<PublisherItem>,
    bytes: Arc<Semaphore>,
    codec: Codec,
}

impl Publisher {
    pub(crate) fn start(
        client: Client,
        topic: Topic,
        seal: Option<(GroupClient, DataType)>,
    ) -> Result<Self, Error> {
        let (queue, items) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let codec = client.codec();
        let seal = seal.map(|(group, data_type)| PublisherSealing { group, data_type });
        tokio::spawn(run(client, topic, seal, items));
        Ok(Self { queue, bytes: Arc::new(Semaphore::new(MAX_QUEUED_BYTES)), codec })
    }

    /// Queues a map, waiting while the queue is full.
    ///
    /// # Errors
    /// [`Error::TooLarge`], or [`Error::Ended`] if the runtime that it was made in is gone.
    /// [`Publisher::flush`] tells all other failures.
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
        let item = PublisherItem::Envelope(envelope, room);
        self.queue.send(item).await.map_err(|_| ended())
    }

    /// Waits until everything queued before is stored.
    ///
    /// # Errors
    /// The error that ended the publisher.
    pub async fn flush(&self) -> Result<PublisherProgress, Error> {
        let (done, answer) = oneshot::channel();
        let ended = || Error::Ended("publisher");
        self.queue.send(PublisherItem::Flush(done)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Publisher {
    /// The messages that are stored so far, whether the publisher goes on or has ended. After a
    /// failure these are the ones before it.
    ///
    /// # Errors
    /// [`Error::Ended`] if the runtime that it was made in is gone.
    pub async fn progress(&self) -> Result<PublisherProgress, Error> {
        let (done, answer) = oneshot::channel();
        let ended = || Error::Ended("publisher");
        self.queue.send(PublisherItem::Progress(done)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())
    }
}

#[derive(Debug)]
enum PublisherItem {
    Envelope(Bytes, OwnedSemaphorePermit),
    Flush(oneshot::Sender<Result<PublisherProgress, Error>>),
    Progress(oneshot::Sender<PublisherProgress>),
}

/// How messages are sealed just before they are sent.
#[derive(Debug)]
struct PublisherSealing {
    group: GroupClient,
    data_type: DataType,
}

/// Sends what is queued until the publisher is dropped.
async fn run(
    client: Client,
    topic: Topic,
    seal: Option<PublisherSealing>,
    mut items: mpsc::Receiver<PublisherItem>,
) {
    let first = loop {
        match items.recv().await {
            None => return,
            // Nobody is connected to for nothing.
            Some(PublisherItem::Flush(done)) => drop(done.send(Ok(PublisherProgress::default()))),
            Some(PublisherItem::Progress(done)) => drop(done.send(PublisherProgress::default())),
            Some(envelope) => break envelope,
        }
    };
    let session = PublisherSession::new(client.clone(), topic.clone(), seal);
    if let Err(SocketUnsupported { taken, seal }) = session.run(first, &mut items).await {
        RequestPublisher::new(client, topic, seal).run(taken, &mut items).await;
    }
}
