//! A publisher that sends requests, for hubs without a publishing socket.

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;

use super::{PublisherItem, PublisherProgress, PublisherSealing};
use crate::limits::MAX_REQUEST_MESSAGES;
use crate::{Client, Error};
use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::Topic;
use sealane_protocol::limits::MAX_BATCH_MESSAGES;

const _: () = assert!(MAX_REQUEST_MESSAGES <= MAX_BATCH_MESSAGES);

/// Envelope bytes at which a request is full.
const FULL_REQUEST_BYTES: usize = 4 << 20;

pub(super) struct RequestPublisher {
    client: Client,
    topic: Topic,
    codec: Codec,
    seal: Option<PublisherSealing>,
    stored: PublisherProgress,
    failed: Option<Error>,
}

impl RequestPublisher {
    pub(super) fn new(client: Client, topic: Topic, seal: Option<PublisherSealing>) -> Self {
        let codec = client.codec();
        Self { client, topic, codec, seal, stored: PublisherProgress::default(), failed: None }
    }

    /// Sends what is queued, beginning with `taken`.
    pub(super) async fn run(
        mut self,
        mut taken: Vec<PublisherItem>,
        items: &mut mpsc::Receiver<PublisherItem>,
    ) {
        while !taken.is_empty() || items.recv_many(&mut taken, MAX_REQUEST_MESSAGES).await > 0 {
            let mut batch = Vec::new();
            let mut size = 0;
            for item in taken.drain(..) {
                match item {
                    PublisherItem::Envelope(envelope, room) => {
                        size += envelope.len();
                        batch.push((envelope, room));
                        if size >= FULL_REQUEST_BYTES {
                            self.store(&mut batch).await;
                            size = 0;
                        }
                    }
                    PublisherItem::Progress(done) => {
                        self.store(&mut batch).await;
                        let _ = done.send(self.stored);
                    }
                    PublisherItem::Flush(done) => {
                        self.store(&mut batch).await;
                        let outcome = self.failed.clone().map_or(Ok(self.stored), Err);
                        // The caller may have gone; the outcome stays for the next flush.
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
            Some(PublisherSealing { group, data_type }) => {
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
