//! A publisher on a socket: it numbers what it sends, and sends again what was not answered.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::{Retry, Topic};
use sealane_protocol::{
    EnqueueOutcome, NotPlaced, PublishFrame, PublishItem, PublishQuery, StoredRange,
    StreamPosition, WireError, write_publish,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::pending::{PendingSealedEnvelope, PublisherBacklog, UnansweredMessage};
use super::{PublisherItem, PublisherProgress, PublisherSealing};
use crate::address::RequestPath;
use crate::backoff::RetryBackoff;
use crate::group::{SEALED_IN, SentEnvelopes};
use crate::limits::{MAX_QUEUED_MESSAGES, MAX_SESSION_ANSWER_MS};
use crate::socket::{SocketFailure, SocketReader, SocketWriter, connect};
use crate::{Client, Error, HubError};

/// Bytes at which a frame of items is full; with one item more it is within a hub's limit.
const FULL_FRAME_BYTES: usize = 32 << 10;

/// The hub takes no publishing sockets: this is still to be sent in another way.
pub(super) struct SocketUnsupported {
    pub(super) taken: Vec<PublisherItem>,
    pub(super) seal: Option<PublisherSealing>,
}

pub(super) struct PublisherSession {
    client: Client,
    topic: Topic,
    /// The codec of the envelopes, and that of the connection.
    codec: Codec,
    sent_in: Codec,
    seal: Option<PublisherSealing>,
    name: String,
    pending: PublisherBacklog,
    /// Callers that wait until so many messages are answered.
    flushes: VecDeque<(u64, oneshot::Sender<Result<PublisherProgress, Error>>)>,
    stored: PublisherProgress,
    trouble: Option<PublisherOutage>,
    /// Until then nothing is sent again that was refused.
    resend_at: Option<Instant>,
    /// Whether nothing more will be queued.
    is_closed: bool,
    /// The number that the hub has refused for good, and why. It ends the publisher once all
    /// messages before it are answered: the hub answers them in any order.
    refusal: Option<(u64, Error)>,
    failed: Option<Error>,
}

/// The failures since a message was last stored.
struct PublisherOutage {
    since: Instant,
    attempts: u32,
    backoff: RetryBackoff,
}

/// A connection on which the session stands.
struct PublisherConnection {
    reader: SocketReader,
    writer: SocketWriter,
}

impl PublisherSession {
    pub(super) fn new(client: Client, topic: Topic, seal: Option<PublisherSealing>) -> Self {
        let (codec, name) = (client.codec(), client.make_key());
        Self {
            sent_in: if seal.is_some() { SEALED_IN } else { codec },
            client,
            topic,
            codec,
            seal,
            name,
            pending: PublisherBacklog::new(),
            flushes: VecDeque::new(),
            stored: PublisherProgress::default(),
            trouble: None,
            resend_at: None,
            is_closed: false,
            refusal: None,
            failed: None,
        }
    }

    /// Sends what is queued, beginning with `first`.
    ///
    /// # Errors
    /// [`SocketUnsupported`], before anything is sent.
    pub(super) async fn run(
        mut self,
        first: PublisherItem,
        items: &mut mpsc::Receiver<PublisherItem>,
    ) -> Result<(), SocketUnsupported> {
        let mut taken = vec![first];
        let mut link = loop {
            match self.join().await {
                Ok(link) => break Some(link),
                Err(ended) if is_unknown(&ended) => {
                    return Err(SocketUnsupported { taken, seal: self.seal });
                }
                Err(ended) => self.wait(ended).await,
            }
            if self.failed.is_some() {
                break None;
            }
        };
        self.accept(&mut taken);
        while self.failed.is_none() && !(self.is_closed && self.pending.is_empty()) {
            let ended = match &mut link {
                Some(link) => self.step(link, items).await.err(),
                // An idle publisher does not mind that its hub is away.
                None if self.pending.is_empty() => {
                    self.receive(items).await;
                    None
                }
                None => match self.join().await {
                    Ok(made) => {
                        link = Some(made);
                        None
                    }
                    Err(ended) => Some(ended),
                },
            };
            if let Some(ended) = ended {
                link = None;
                self.wait(ended).await;
            }
        }
        if let Some(mut link) = link.filter(|_| self.failed.is_none()) {
            // All is answered: how the connection ends changes nothing.
            drop(link.writer.close().await);
        }
        while items.recv_many(&mut taken, MAX_QUEUED_MESSAGES).await > 0 {
            self.accept(&mut taken);
        }
        Ok(())
    }

    /// Opens a connection for the session.
    async fn join(&mut self) -> Result<PublisherConnection, SocketFailure> {
        let query = PublishQuery { session: Some(self.name.clone()), stream: None };
        let path = RequestPath::new(PublishQuery::PATH).with_all(query.parameters());
        let path = path.with("codec", self.sent_in.name()).into_string();
        let (hub, token) = (self.client.hub(), self.client.token());
        let made = connect(hub, &path, token, self.client.trust(), self.sent_in).await;
        let (mut reader, writer) = made?;
        let first = timeout(Duration::from_millis(MAX_SESSION_ANSWER_MS), reader.answer())
            .await
            .map_err(|_| SocketFailure::Lost("the hub does not answer".into()))??;
        let PublishFrame::Session { .. } = first else {
            let cause = "the first frame is not `session`".into();
            return Err(SocketFailure::Failed(Error::Protocol(cause)));
        };
        self.pending.connected();
        self.refusal = None;
        Ok(PublisherConnection { reader, writer })
    }

    /// Sends what may be sent, and takes in what comes next.
    async fn step(
        &mut self,
        link: &mut PublisherConnection,
        items: &mut mpsc::Receiver<PublisherItem>,
    ) -> Result<(), SocketFailure> {
        if self.resend_at.is_none() {
            self.fill(&mut link.writer).await?;
        }
        let is_open = !self.is_closed && self.pending.len() < MAX_QUEUED_MESSAGES;
        let again = self.resend_at;
        tokio::select! {
            frame = link.reader.answer() => return self.take(frame?),
            () = self.receive(items), if is_open && self.failed.is_none() => {}
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                self.resend_at = None;
            }
        }
        Ok(())
    }

    /// Waits for what is queued, and takes it in.
    async fn receive(&mut self, items: &mut mpsc::Receiver<PublisherItem>) {
        let room = MAX_QUEUED_MESSAGES.saturating_sub(self.pending.len()).max(1);
        let mut taken = Vec::new();
        if items.recv_many(&mut taken, room).await == 0 {
            self.is_closed = true;
        }
        self.accept(&mut taken);
    }

    fn accept(&mut self, taken: &mut Vec<PublisherItem>) {
        for item in taken.drain(..) {
            match item {
                // Envelopes behind a failure are dropped, so that nobody waits for room.
                PublisherItem::Envelope(..) if self.failed.is_some() => {}
                PublisherItem::Envelope(envelope, room) => self.pending.push(envelope, room),
                PublisherItem::Flush(done) => self.flushes.push_back((self.pending.pushed(), done)),
                // The caller may have gone.
                PublisherItem::Progress(done) => drop(done.send(self.stored)),
            }
        }
        self.tell();
    }

    /// Tells those whose messages are answered.
    fn tell(&mut self) {
        let outcome = self.failed.clone().map_or(Ok(self.stored), Err);
        let answered = self.pending.answered();
        while let Some((_, done)) = self.flushes.pop_front_if(|(count, _)| *count <= answered) {
            // The caller may have gone; the outcome stays for the next flush.
            let _ = done.send(outcome.clone());
        }
    }

    /// Sends what the hub has asked for.
    async fn fill(&mut self, writer: &mut SocketWriter) -> Result<(), SocketFailure> {
        let (mut items, mut ends) = (Vec::new(), Vec::new());
        let mut has_sent = false;
        while let Some((n, message)) = self.pending.next() {
            if let Some(seal) = &self.seal
                && message.sealed.is_none()
            {
                message.sealed = Some(seal.apply(&self.topic, self.codec, &message.envelope)?);
            }
            let envelope = message.sealed.as_ref().map_or(&message.envelope, |one| &one.envelope);
            let before = items.len();
            let to = self.topic.clone();
            let item = PublishItem { to, n, envelope, delay_ms: None, expect: None };
            item.write(self.sent_in, &mut items);
            self.pending.note_sent(items.len() - before);
            ends.push(items.len());
            if items.len() >= FULL_FRAME_BYTES {
                self.feed(writer, &mut items, &mut ends).await?;
                has_sent = true;
            }
        }
        if !ends.is_empty() {
            self.feed(writer, &mut items, &mut ends).await?;
            has_sent = true;
        }
        if has_sent { writer.flush().await } else { Ok(()) }
    }

    /// Puts a frame of items, which end at `ends`, on its way.
    async fn feed(
        &self,
        writer: &mut SocketWriter,
        items: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<(), SocketFailure> {
        let mut frame = Vec::with_capacity(items.len() + ends.len() + 24);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let parts: Vec<&[u8]> =
            begins.zip(ends.iter()).filter_map(|(from, to)| items.get(from..*to)).collect();
        write_publish(self.sent_in, parts.into_iter(), &mut frame);
        items.clear();
        ends.clear();
        writer.feed(frame).await
    }

    fn take(&mut self, frame: PublishFrame) -> Result<(), SocketFailure> {
        match frame {
            PublishFrame::Credit { messages, bytes } => self.pending.granted(messages, bytes),
            PublishFrame::Published(placed) => self.placed(placed)?,
            PublishFrame::Refused(refused) => self.refused(refused)?,
            // Frames that only a newer hub sends are ignored.
            _ => {}
        }
        let first = self.pending.first();
        match self.refusal.take_if(|(number, _)| *number <= first) {
            Some((_, error)) => Err(SocketFailure::Failed(error)),
            None => Ok(()),
        }
    }

    fn placed(&mut self, placed: StoredRange) -> Result<(), Error> {
        let EnqueueOutcome::At(StreamPosition { generation, offset }) = placed.outcome else {
            return Err(Error::Protocol("a message that is not delayed has no offset".into()));
        };
        let messages = self.pending.stored(placed.numbers)?;
        let count = messages.len() as u64;
        self.stored.messages += count;
        self.stored.next = Some(offset.saturating_add(count));
        self.stored.generation = Some(generation);
        if let Some(PublisherSealing { group, .. }) = &self.seal {
            for (at, UnansweredMessage { sealed, .. }) in (offset..).zip(messages) {
                if let Some(PendingSealedEnvelope { sent, .. }) = sealed {
                    group.sent(sent, &self.topic, generation, at);
                }
            }
        }
        self.trouble = None;
        self.tell();
        Ok(())
    }

    fn refused(&mut self, refused: NotPlaced) -> Result<(), SocketFailure> {
        let NotPlaced { numbers, error, .. } = refused;
        let number = numbers.from;
        self.pending.refused(numbers).map_err(Error::from)?;
        match HubError::named(&error.code) {
            // The stream was made anew, or has lost what was not on the disk yet: what is not
            // answered is not there, and counts from 1 again.
            Some(HubError::NumberSkipped) if error.next < Some(self.pending.first()) => {
                self.name = self.client.make_key();
                self.pending.renumber();
                Err(SocketFailure::Lost("the hub does not know the session any more".into()))
            }
            // It follows from the refusal of one before it.
            Some(HubError::NumberSkipped) => Ok(()),
            Some(HubError::StorageBusy) => match self.pause(error.message.clone()) {
                Some(wait) => {
                    self.resend_at = Some(Instant::now() + wait);
                    Ok(())
                }
                None => Err(SocketFailure::Failed(Error::Refused(error))),
            },
            _ => {
                self.refusal.get_or_insert((number, Error::Refused(error)));
                Ok(())
            }
        }
    }

    /// Waits before another connection is made, or fails for good.
    async fn wait(&mut self, ended: SocketFailure) {
        let cause = match ended {
            SocketFailure::Lost(cause) => cause,
            SocketFailure::Refused(wire) if passes(&wire) => wire.message,
            SocketFailure::Refused(wire) => return self.fail(Error::Refused(wire)),
            SocketFailure::Failed(error) => return self.fail(error),
        };
        if self.pending.is_empty() && self.stored.messages > 0 {
            tracing::debug!(topic = %self.topic, cause, "the connection of a publisher ended");
            return;
        }
        match self.pause(cause.clone()) {
            Some(wait) => sleep(wait).await,
            None => {
                let address = self.client.address();
                let attempts = self.trouble.as_ref().map_or(1, |trouble| trouble.attempts);
                self.fail(match self.pending.was_sent() {
                    true => Error::NoAnswer { address, attempts, cause },
                    false => Error::NotReachable { address, cause },
                });
            }
        }
    }

    /// How long to wait before another attempt; none where the client's patience is at its end.
    fn pause(&mut self, cause: String) -> Option<Duration> {
        let begin =
            || PublisherOutage { since: Instant::now(), attempts: 0, backoff: RetryBackoff::new() };
        let trouble = self.trouble.get_or_insert_with(begin);
        trouble.attempts += 1;
        tracing::debug!(topic = %self.topic, cause, "a publisher tries again");
        let left = self.client.longest_wait().checked_sub(trouble.since.elapsed());
        left.filter(|left| !left.is_zero()).map(|left| trouble.backoff.wait().min(left))
    }

    fn fail(&mut self, error: Error) {
        tracing::warn!(topic = %self.topic, code = error.code(), %error, "publisher ended");
        self.failed = Some(error);
        self.pending.clear();
        self.tell();
    }
}

impl PublisherSealing {
    fn apply(
        &self,
        topic: &Topic,
        codec: Codec,
        envelope: &Bytes,
    ) -> Result<PendingSealedEnvelope, Error> {
        let PublisherSealing { group, data_type } = self;
        let sealed = group.seal_now(topic.as_str(), *data_type, codec, envelope)?;
        let (epoch, envelopes) = (sealed.epoch, vec![envelope.clone()]);
        let sent = SentEnvelopes { epoch, data_type: *data_type, codec, envelopes };
        Ok(PendingSealedEnvelope { envelope: sealed.bytes.into(), sent })
    }
}

impl SocketReader {
    /// The next frame of a publishing socket.
    async fn answer(&mut self) -> Result<PublishFrame, SocketFailure> {
        let (codec, payload) = self.frame().await?;
        match PublishFrame::read(codec, &payload) {
            Ok(PublishFrame::Error(wire)) => Err(SocketFailure::Refused(wire)),
            Ok(frame) => Ok(frame),
            Err(error) => Err(SocketFailure::Failed(error.into())),
        }
    }
}

impl From<Error> for SocketFailure {
    fn from(error: Error) -> Self {
        SocketFailure::Failed(error)
    }
}

/// Whether the hub is one without publishing sockets.
fn is_unknown(ended: &SocketFailure) -> bool {
    let SocketFailure::Refused(wire) = ended else { return false };
    matches!(
        HubError::named(&wire.code),
        Some(HubError::NotFound | HubError::MethodNotAllowed | HubError::UpgradeRequired)
    )
}

/// Whether another connection may do better.
fn passes(wire: &WireError) -> bool {
    HubError::named(&wire.code).is_some_and(|error| error.retry() != Retry::Never)
}
