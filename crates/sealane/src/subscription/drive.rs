//! Keeps a subscription connected.

use std::sync::Arc;
use std::time::Duration;

use sealane_message::{Pattern, Retry};
use sealane_protocol::{Deliver, ServerFrame, StreamJoined};
use tokio::sync::broadcast;
use tokio::time::{sleep, sleep_until, timeout};

use super::cursors::SubscriptionCursors;
use super::shared::{RejectedDelivery, SubscriptionShared};
use crate::backoff::RetryBackoff;
use crate::error::DeliveryRejection;
use crate::group::SubscriptionOpener;
use crate::limits::{EPOCH_RETRY_MS, MAX_CLOSE_WAIT_MS, MAX_SUBSCRIBE_ANSWER_MS};
use crate::socket::{SocketFailure, SocketReader, SocketWriter, connect};
use crate::subscribe::{StartPosition, SubscribeBuilder};
use crate::{ClientEvent, Error, HubError, ReceivedMessage};

/// The connection's side of a subscription.
pub(super) struct SubscriptionDriver {
    subscribe: SubscribeBuilder,
    pattern: Pattern,
    shared: Arc<SubscriptionShared>,
    /// Weak, so that who listens hears the end when the subscription is gone.
    events: broadcast::WeakSender<ClientEvent>,
    /// Where a reader has come to; a consumer's place is kept by the hub.
    cursors: Option<SubscriptionCursors>,
    /// Whether this connection has brought anything.
    delivered: bool,
    /// Opens what comes; none: it is given as it is.
    reading: Option<SubscriptionOpener>,
}

impl SubscriptionDriver {
    pub(super) fn new(
        subscribe: SubscribeBuilder,
        pattern: Pattern,
        shared: Arc<SubscriptionShared>,
        events: broadcast::WeakSender<ClientEvent>,
    ) -> Self {
        let single = pattern.topic().is_some();
        let start = subscribe.start.unwrap_or(StartPosition::New);
        let cursors = subscribe.is_reader().then(|| SubscriptionCursors::new(start, single));
        let reading = subscribe
            .group
            .clone()
            .map(|group| SubscriptionOpener::new(group, !subscribe.is_reader()));
        Self { subscribe, pattern, shared, events, cursors, delivered: false, reading }
    }

    /// Makes the first connection.
    pub(super) async fn connect(&mut self) -> Result<(SocketReader, SocketWriter), Error> {
        self.join().await.map_err(|ended| match ended {
            SocketFailure::Lost(cause) => {
                let address = self.subscribe.client.address();
                Error::NotReachable { address, cause }
            }
            SocketFailure::Refused(wire) => Error::Refused(wire),
            SocketFailure::Failed(error) => error,
        })
    }

    /// Reads and connects again until the end.
    pub(super) async fn run(mut self, socket: (SocketReader, SocketWriter)) {
        let mut socket = Some(socket);
        let mut backoff = RetryBackoff::new();
        while !self.shared.is_closing() {
            let ended = match socket.take() {
                Some((reader, writer)) => {
                    self.delivered = false;
                    let ended = self.serve(reader, writer).await;
                    // A hub that only takes connections to end them is not asked ever faster.
                    if self.delivered {
                        backoff = RetryBackoff::new();
                    }
                    ended
                }
                None => match self.join().await {
                    Ok(made) => {
                        socket = Some(made);
                        continue;
                    }
                    Err(ended) => ended,
                },
            };
            let cause = match self.passing(ended) {
                Ok(cause) => cause,
                Err(error) => return self.shared.end(Some(error)),
            };
            if self.shared.is_closing() {
                break;
            }
            self.tell(ClientEvent::Disconnected { cause });
            tokio::select! {
                () = sleep(backoff.wait()) => {}
                () = self.closing() => {}
            }
        }
        self.shared.end(None);
    }

    /// Why the connection is gone, where another may be made.
    fn passing(&self, ended: SocketFailure) -> Result<String, Error> {
        match ended {
            SocketFailure::Lost(cause) => Ok(cause),
            SocketFailure::Failed(error) => Err(error),
            SocketFailure::Refused(wire) => {
                let passes = match HubError::named(&wire.code) {
                    // The pattern's other streams are still there.
                    Some(HubError::StreamRemoved) => self.pattern.topic().is_none(),
                    known => known.is_some_and(|error| error.retry() != Retry::Never),
                };
                if passes { Ok(wire.message) } else { Err(Error::Refused(wire)) }
            }
        }
    }

    async fn closing(&self) {
        while !self.shared.is_closing() {
            self.shared.work.notified().await;
        }
    }

    /// Connects and waits until the subscription stands.
    async fn join(&mut self) -> Result<(SocketReader, SocketWriter), SocketFailure> {
        let start = self.cursors.as_ref().map(SubscriptionCursors::start).or(self.subscribe.start);
        let path = self.subscribe.path(self.pattern.clone(), start);
        let address = self.subscribe.client.hub();
        let token = self.subscribe.client.token();
        let trust = self.subscribe.client.trust();
        let made = connect(address, &path, token, trust, self.subscribe.codec).await;
        let (mut reader, mut writer) = made?;
        let first = timeout(Duration::from_millis(MAX_SUBSCRIBE_ANSWER_MS), reader.next())
            .await
            .map_err(|_| SocketFailure::Lost("the hub does not answer".into()))??;
        let (ServerFrame::Subscribed { time_ms, joined, features, .. }, bytes) = first else {
            let cause = "the first frame is not `subscribed`".into();
            return Err(SocketFailure::Failed(Error::Protocol(cause)));
        };
        let seeks = features.has("seek");
        self.shared.begin(features);
        self.shared.received(bytes);
        if let Some(cursors) = &mut self.cursors {
            cursors.began(time_ms);
            // Without it the streams are read again from where the subscription began, and what
            // was given already is dropped here.
            if seeks {
                writer.send(&cursors.seeks()).await?;
            }
        }
        self.tell(ClientEvent::Connected);
        if let Some(joined) = joined {
            self.joined(&joined);
        }
        Ok((reader, writer))
    }

    async fn serve(&mut self, mut reader: SocketReader, mut writer: SocketWriter) -> SocketFailure {
        let shared = Arc::clone(&self.shared);
        let reading = self.read(&mut reader);
        tokio::pin!(reading);
        tokio::select! {
            ended = &mut reading => ended,
            ended = write(&shared, &mut writer) => match ended {
                Err(ended) => ended,
                Ok(()) => {
                    let ended = timeout(Duration::from_millis(MAX_CLOSE_WAIT_MS), reading).await;
                    ended.unwrap_or_else(|_| SocketFailure::Lost("closed".into()))
                }
            },
        }
    }

    async fn read(&mut self, reader: &mut SocketReader) -> SocketFailure {
        loop {
            let (frame, bytes) = match reader.next().await {
                Ok(next) => next,
                Err(ended) => return ended,
            };
            self.shared.received(bytes);
            if let Err(error) = self.take(frame).await {
                return SocketFailure::Failed(error);
            }
        }
    }

    async fn take(&mut self, frame: ServerFrame) -> Result<(), Error> {
        match frame {
            ServerFrame::Deliver(deliver) => return self.deliver(vec![deliver]).await,
            ServerFrame::Batch(all) => return self.deliver(all).await,
            ServerFrame::Joined(joined) => self.joined(&joined),
            ServerFrame::Gap { stream, from, to, reason } => {
                if let Some(cursors) = &mut self.cursors {
                    cursors.skipped(&stream, to);
                }
                self.tell(ClientEvent::Gap { stream, from, to, reason });
            }
            // Heartbeats have done their work by coming.
            _ => {}
        }
        Ok(())
    }

    async fn deliver(&mut self, mut all: Vec<Deliver>) -> Result<(), Error> {
        self.delivered = true;
        let count = all.len();
        if let Some(cursors) = &mut self.cursors {
            all.retain(|deliver| cursors.advance(deliver));
        }
        let codec = self.subscribe.codec;
        let messages =
            all.into_iter().map(|deliver| ReceivedMessage::new(codec, deliver)).collect();
        if self.reading.is_none() {
            return self.shared.deliver(count, messages, Vec::new());
        }
        let (messages, others) = self.open(messages).await;
        self.shared.deliver(count, messages, others)
    }

    /// Opens deliveries, and tells of those that are not shown. Where an epoch is not known yet,
    /// the orders that the hub has are read first: a sender obeyed them before it sealed.
    async fn open(
        &mut self,
        all: Vec<ReceivedMessage>,
    ) -> (Vec<ReceivedMessage>, Vec<RejectedDelivery>) {
        let (mut messages, mut others) = (Vec::with_capacity(all.len()), Vec::new());
        let Some(mut reading) = self.reading.take() else { return (messages, others) };
        let mut has_looked = false;
        for message in all {
            let mut outcome = reading.open(&message);
            if !has_looked && outcome.as_ref().is_err_and(DeliveryRejection::passes) {
                has_looked = true;
                if let Err(error) = reading.group().catch_up().await {
                    tracing::warn!(code = error.code(), %error, "the orders cannot be read");
                }
                outcome = reading.open(&message);
            }
            match outcome {
                Ok(opened) => messages.push(opened),
                Err(refusal) => {
                    reading.count(&refusal);
                    let (info, cause) = (refusal.info(), refusal.to_string());
                    let (stream, offset) = (message.stream, message.offset);
                    let again_ms = refusal.passes().then_some(EPOCH_RETRY_MS);
                    others.push(RejectedDelivery { stream: stream.clone(), offset, again_ms });
                    let (code, name) = (info.code, info.name);
                    self.tell(ClientEvent::Refused { stream, offset, code, name, cause });
                }
            }
        }
        self.shared.counted(reading.counts());
        self.reading = Some(reading);
        (messages, others)
    }

    fn joined(&mut self, joined: &StreamJoined) {
        if let Some(cursors) = &mut self.cursors {
            cursors.joined(joined);
        }
        if !joined.recovered {
            self.tell(ClientEvent::NotRecovered {
                stream: joined.stream.clone(),
                generation: joined.generation,
                offset: joined.offset,
            });
        }
    }

    fn tell(&self, event: ClientEvent) {
        event.log();
        if let Some(events) = self.events.upgrade() {
            // Nobody may be listening.
            let _ = events.send(event);
        }
    }
}

/// Grants credit and acknowledges until the subscription is closed.
async fn write(
    shared: &SubscriptionShared,
    writer: &mut SocketWriter,
) -> Result<(), SocketFailure> {
    loop {
        let work = shared.work();
        if !work.ops.is_empty() {
            writer.send(&work.ops).await?;
        }
        if work.closing {
            return writer.close().await;
        }
        match work.wait_until {
            Some(until) => tokio::select! {
                () = shared.work.notified() => {}
                () = sleep_until(until) => {}
            },
            None => shared.work.notified().await,
        }
    }
}
