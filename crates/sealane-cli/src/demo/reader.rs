use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Error, ReceivedMessage, Subscription, Value};
use tokio::sync::watch;

use super::ledger::fingerprint;

/// The messages that a reader has received.
#[derive(Debug, Default)]
pub(super) struct DemoReaderTally {
    /// The fingerprint of each message under its id.
    pub(super) received: HashMap<String, u64>,
    /// Deliveries, repeated ones included.
    pub(super) deliveries: u64,
    /// Deliveries after a message's first.
    pub(super) redelivered: u64,
    /// Bytes over the wire.
    pub(super) bytes: u64,
    /// Time to decode each envelope and to encode it again.
    pub(super) codec_time: Duration,
}

/// A consumer that reads all streams in one codec.
pub(super) struct DemoReader {
    subscription: Subscription,
    count: Arc<AtomicU64>,
    tally: DemoReaderTally,
    again: Vec<u8>,
}

impl DemoReader {
    pub(super) async fn join(client: &Client, pattern: &str, codec: Codec) -> Result<Self, Error> {
        let name = format!("demo-{}", codec.name());
        let subscription = client.subscribe(pattern).consumer(name).codec(codec).await?;
        Ok(Self {
            subscription,
            count: Arc::default(),
            tally: DemoReaderTally::default(),
            again: Vec::new(),
        })
    }

    /// How many different messages have come.
    pub(super) fn count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.count)
    }

    /// Reads until it is told to stop; tells what it got last where somebody wants to see it.
    pub(super) async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
        shown: Option<watch::Sender<Option<ReceivedMessage>>>,
    ) -> Result<DemoReaderTally, Error> {
        loop {
            let next = tokio::select! {
                next = self.subscription.next() => next,
                _ = stop.changed() => None,
            };
            let Some(message) = next else { break };
            let message = message?;
            self.take(&message)?;
            if let Some(shown) = &shown {
                shown.send_replace(Some(message));
            }
        }
        self.tally.bytes = self.subscription.received_bytes();
        self.subscription.close().await;
        Ok(self.tally)
    }

    fn take(&mut self, message: &ReceivedMessage) -> Result<(), Error> {
        let began = Instant::now();
        let envelope = message.value()?;
        self.again.clear();
        sealane_codec::encode(message.codec, &envelope, &mut self.again);
        self.tally.codec_time += began.elapsed();
        self.tally.deliveries += 1;
        self.tally.redelivered += u64::from(message.attempt > 1);
        if let Some(id) = envelope.field("id").and_then(Value::as_text) {
            self.tally.received.insert(id.to_owned(), fingerprint(&envelope));
        }
        let count = u64::try_from(self.tally.received.len()).unwrap_or(u64::MAX);
        self.count.store(count, Ordering::Relaxed);
        message.ack();
        Ok(())
    }
}
