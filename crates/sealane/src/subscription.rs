mod cursors;
mod drive;
mod ranges;
mod shared;
mod socket;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use sealane_message::Pattern;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::SealCounts;
use crate::event::ClientEvents;
use crate::limits::MAX_EVENTS;
use crate::subscribe::SubscribeBuilder;
use crate::{ClientEvent, Error, ReceivedMessage};
use drive::SubscriptionDriver;
pub(crate) use shared::SubscriptionShared;

/// Messages as they come: a [`Stream`], and [`Subscription::next`] for who has no use for one.
///
/// It connects again by itself, waiting 50 ms to 5 s between attempts. Who reads for itself then
/// goes on behind the last message; a consumer joins again, and what it had not acknowledged
/// comes once more. An error that connecting again cannot cure is the last item.
///
/// At most the credit window ([`SubscribeBuilder::credit`]) waits here: a slow reader slows the hub
/// down.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<SubscriptionShared>,
    events: broadcast::Sender<ClientEvent>,
    first_events: Option<ClientEvents>,
    driver: Option<JoinHandle<()>>,
}

impl Subscription {
    pub(crate) async fn open(subscribe: SubscribeBuilder, pattern: Pattern) -> Result<Self, Error> {
        let (events, receiver) = broadcast::channel(MAX_EVENTS);
        let shared = Arc::new(SubscriptionShared::new(&subscribe));
        let mut driver =
            SubscriptionDriver::new(subscribe, pattern, Arc::clone(&shared), events.downgrade());
        let socket = driver.connect().await?;
        let driver = tokio::spawn(driver.run(socket));
        Ok(Self {
            shared,
            events,
            first_events: Some(ClientEvents(receiver)),
            driver: Some(driver),
        })
    }

    /// The next message; `None` after the end: a limit that was reached, or an error that was
    /// given before.
    pub async fn next(&mut self) -> Option<Result<ReceivedMessage, Error>> {
        std::future::poll_fn(|context| self.shared.poll(context)).await
    }

    /// Events beside the messages. The first call hears everything since the beginning. Later calls
    /// hear the events from then on.
    pub fn events(&mut self) -> ClientEvents {
        self.first_events.take().unwrap_or_else(|| ClientEvents(self.events.subscribe()))
    }

    /// Whether the hub has this feature of spec/hub.md §5, as it said on the last connection; one
    /// that lists no features has those of version 1. A hub that is reached later may be another.
    pub fn has(&self, feature: &str) -> bool {
        self.shared.has(feature)
    }

    /// Bytes that came over the wire, frame headers included, without those of TCP.
    pub fn received_bytes(&self) -> u64 {
        self.shared.received_bytes()
    }

    /// The counts of sealed messages, if the subscription has a group.
    pub fn seal_counts(&self) -> SealCounts {
        self.shared.seal_counts()
    }

    /// Sends the acknowledgements that wait, and ends the connection. Dropping a subscription
    /// does the same, without waiting for it.
    pub async fn close(mut self) {
        self.shared.close();
        if let Some(driver) = self.driver.take() {
            // It fails only by panicking, and then the connection has ended as well.
            let _ = driver.await;
        }
    }
}

impl Stream for Subscription {
    type Item = Result<ReceivedMessage, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.poll(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.close();
    }
}
