//! One WebSocket: frames in, deliveries out, until either side ends it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::limits::{MAX_DELIVERY_BATCH_BYTES, MAX_REPLY_WAIT_MS, MIN_REPLY_STALL_MS};
use bytes::Bytes;
use sealane_codec::Codec;
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{Error, Features, ServerFrame, read_ops, write_batch};
use sealane_stream::{DeliveryPiece, StreamDelivery, StreamSubscription, take_encoded};
use tokio::time::{Instant, sleep_until};

use crate::access::{ConnectionGrant, RequestPass};
use crate::app::NodeApp;
use crate::clock::{now_ms, stopped};
use crate::fair::{DeliveryShare, ReplyHold, ReplyOwner};
use crate::frames::{ConnectionEnd, SocketEvent, SocketFrames, SocketLayout};
use crate::handshake::WebSocket;
use crate::refusal::HttpRefusal;
use crate::subscribe::SubscribeRequest;

/// Deliveries that are taken at once and sent together.
const TAKE: usize = 512;
/// Frames that are taken in, or messages that are sent, before others have their turn.
const TURN: usize = 32;

struct ReadConnection {
    app: Arc<NodeApp>,
    frames: SocketFrames,
    batch: usize,
    heartbeat: Option<Duration>,
    /// The share of the common memory that the deliveries hold.
    held: Option<DeliveryShare>,
    /// The room that they have where they are larger than a share.
    large: Option<ReplyHold>,
    /// Where they are larger than a share, and there is no room for them yet.
    unheld: Option<UnheldWait>,
    /// Bytes that the client had taken at the last look.
    taken_bytes: u64,
    owner: ReplyOwner,
}

/// The wait for room of what is on its way already.
struct UnheldWait {
    /// When the client took something last.
    since: Instant,
    /// When there may be room.
    look: Instant,
}

impl UnheldWait {
    fn new(since: Instant) -> Self {
        // A reply that stands still makes room only after a while, of which nobody is told.
        let look = Instant::now() + Duration::from_millis(MIN_REPLY_STALL_MS / 2);
        Self { since, look }
    }
}

/// Deliver frames that are to be sent as one.
#[derive(Default)]
struct DeliverBatch {
    frames: Vec<Bytes>,
    bytes: usize,
}

pub(crate) async fn serve(
    app: Arc<NodeApp>,
    socket: WebSocket,
    pass: RequestPass,
    request: SubscribeRequest,
) {
    let frames = SocketFrames::new(socket, request.codec, MAX_CLIENT_FRAME_BYTES);
    let owner = pass.reply_owner();
    let mut connection = ReadConnection {
        app,
        frames,
        batch: 1,
        heartbeat: None,
        held: None,
        large: None,
        unheld: None,
        taken_bytes: 0,
        owner,
    };
    let end = connection.run(pass, request).await;
    if let ConnectionEnd::Refused(refusal) = &end {
        connection.app.refused.note(refusal);
    }
    connection.frames.end(end).await;
}

/// Waits until what is held is to go for others; for ever where nothing is held.
async fn cut_off(large: Option<&ReplyHold>) {
    match large {
        Some(hold) => hold.cut().await,
        None => std::future::pending().await,
    }
}

/// Hears the socket, and notes when it takes something: a client that reads a long message in many
/// steps does not stand still.
async fn hear(
    frames: &mut SocketFrames,
    taken_bytes: &mut u64,
    large: Option<&ReplyHold>,
    unheld: &mut Option<UnheldWait>,
) -> Result<SocketEvent, ConnectionEnd> {
    poll_fn(|cx| {
        let heard = frames.poll_hear(cx);
        let taken = frames.taken_bytes();
        if taken != std::mem::replace(taken_bytes, taken) {
            large.into_iter().for_each(ReplyHold::touch);
            unheld.iter_mut().for_each(|wait| wait.since = Instant::now());
        }
        heard
    })
    .await
}

/// Waits until there may be room for what has none; for ever where that is nothing.
async fn look_again(look: Option<Instant>) {
    match look {
        Some(look) => sleep_until(look).await,
        None => std::future::pending().await,
    }
}

/// Says why a socket is refused, which has been counted, and closes it.
pub(crate) async fn refuse(socket: WebSocket, codec: Codec, refusal: HttpRefusal) {
    let frames = SocketFrames::new(socket, codec, MAX_CLIENT_FRAME_BYTES);
    frames.end(ConnectionEnd::Refused(refusal)).await;
}

impl ReadConnection {
    async fn run(&mut self, pass: RequestPass, request: SubscribeRequest) -> ConnectionEnd {
        let pattern = request.pattern.clone();
        let stream = pattern.to_string();
        // The token may have changed since the upgrade was accepted, so that it is asked again.
        let grant = match ConnectionGrant::reading(self.app.access.clone(), pass, pattern.clone()) {
            Ok(grant) => grant,
            Err(refusal) => return ConnectionEnd::Refused(refusal),
        };
        (self.batch, self.heartbeat) = (request.batch, request.heartbeat);
        // From before the subscription: what is appended in between counts as after it.
        let time_ms = now_ms();
        let who = request.who.clone();
        let opened = self.app.hub.subscribe(request.pattern, request.who).await;
        let (mut subscription, joined) = match opened {
            Ok(opened) => opened,
            Err(error) => return ConnectionEnd::Refused(error.into()),
        };
        let codec = self.frames.agreed();
        let shown = self.app.readers.enter(&subscription, pattern, &who, codec.name());
        let features = Features::ours();
        let frame = ServerFrame::Subscribed { stream, codec, time_ms, features, joined };
        // The client learns codec and place before its first delivery, whatever is ready already.
        if let Err(end) = self.send_frame(&frame) {
            return end;
        }
        let mut stopping = self.app.stopping.clone();
        let mut events = Vec::new();
        // A future that is waited for all the time is registered once and not for each frame. The
        // timer only moves to later, so it is set again when it has come.
        let mut wake = pin!(sleep_until(self.wake_at()));
        // Both are polled in place and keep their registration over all turns of the loop.
        let (mut refused, mut stopped) = (pin!(grant.refused()), pin!(stopped(&mut stopping)));
        loop {
            let flushing = self.frames.is_flushing();
            let look = self.unheld.as_ref().map(|wait| wait.look);
            let step = tokio::select! {
                heard = hear(
                    &mut self.frames, &mut self.taken_bytes, self.large.as_ref(), &mut self.unheld,
                ) => {
                    let after = self.after(heard, &mut subscription).await;
                    shown.note(0, subscription.credit());
                    after
                }
                // While the socket holds something, nothing more is taken: a slow reader costs a
                // cursor.
                () = subscription.ready(), if !flushing => {
                    let taken = self.take(&mut subscription, &mut events).await;
                    taken.map(|taken| shown.note(taken, subscription.credit()))
                }
                () = wake.as_mut() => {
                    let ticked = self.tick();
                    wake.as_mut().reset(self.wake_at());
                    ticked
                }
                () = cut_off(self.large.as_ref()) => {
                    Err(ConnectionEnd::Refused(HttpRefusal::RepliesUnread))
                }
                () = look_again(look) => self.hold_unheld(),
                refusal = refused.as_mut() => Err(ConnectionEnd::Refused(refusal)),
                () = stopped.as_mut() => Err(ConnectionEnd::Refused(Error::Draining.into())),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Sends what there is, as much as the connection may hold; returns how many messages.
    async fn take(
        &mut self,
        subscription: &mut StreamSubscription,
        events: &mut Vec<DeliveryPiece>,
    ) -> Result<usize, ConnectionEnd> {
        // Taken before the messages are: what a slow reader holds counts against the memory for
        // all.
        let mut share = self.app.share();
        let result = subscription.take_pieces(TAKE, share.bytes(), events).await;
        result.map_err(|error| ConnectionEnd::Refused(error.into()))?;
        let taken: usize = events.iter().map(DeliveryPiece::messages).sum();
        let before = self.frames.written_bytes();
        let delivered = self.deliver(events);
        // Shared frames count in full. A client that takes nothing is left with a copy of them.
        let written = self.frames.written_bytes() - before;
        let is_large = share.is_large(written);
        share.keep(written);
        self.held = Some(share);
        delivered?;
        // Most clients take what they are sent at once. Then nothing is left to come back for.
        self.frames.flush_now()?;
        if !self.frames.is_flushing() {
            (self.held, self.large, self.unheld) = (None, None, None);
        } else if is_large {
            self.unheld = Some(UnheldWait::new(Instant::now()));
            self.hold_unheld()?;
        }
        // A reader that catches up lets others have their turn.
        if taken >= TURN {
            tokio::task::yield_now().await;
        }
        Ok(taken)
    }

    /// Holds what its client has not taken of a message that no share allows, if there is room for
    /// it. If others lack room later on, the connection ends for it: the message comes again.
    fn hold_unheld(&mut self) -> Result<(), ConnectionEnd> {
        let Some(wait) = self.unheld.take() else { return Ok(()) };
        let left = self.frames.waiting_bytes();
        if self.held.as_ref().is_some_and(|share| !share.is_large(left)) {
            return Ok(());
        }
        if let Some(hold) = self.app.large(&self.owner, left) {
            hold.fill_elsewhere();
            (self.held, self.large) = (None, Some(hold));
            return Ok(());
        }
        // A client that reads makes the room itself. One that does not is not waited for.
        if wait.since.elapsed() >= Duration::from_millis(MAX_REPLY_WAIT_MS) {
            return Err(ConnectionEnd::Refused(HttpRefusal::RepliesUnread));
        }
        self.unheld = Some(UnheldWait::new(wait.since));
        Ok(())
    }

    /// Takes in what the socket did, and every further frame that is already there.
    async fn after(
        &mut self,
        heard: Result<SocketEvent, ConnectionEnd>,
        subscription: &mut StreamSubscription,
    ) -> Result<(), ConnectionEnd> {
        match heard? {
            SocketEvent::Flushed => {
                (self.held, self.large, self.unheld) = (None, None, None);
                return Ok(());
            }
            SocketEvent::Frame(frame) => self.accept(&frame, subscription)?,
            SocketEvent::Nothing => {}
        }
        // Frames that are there already are taken in one go. A task that is woken for each frame
        // costs more than the frame.
        for count in 1..TAKE {
            if count % TURN == 0 {
                tokio::task::yield_now().await;
            }
            match self.frames.hear_more().transpose()? {
                Some(SocketEvent::Frame(frame)) => self.accept(&frame, subscription)?,
                Some(SocketEvent::Flushed | SocketEvent::Nothing) => {}
                None => break,
            }
        }
        Ok(())
    }

    fn accept(
        &mut self,
        frame: &[u8],
        subscription: &mut StreamSubscription,
    ) -> Result<(), ConnectionEnd> {
        let mut ops = Vec::new();
        read_ops(self.frames.codec(), frame, &mut ops)?;
        // Operations of a frame apply in order up to the first bad one. The connection ends there.
        Ok(ops.into_iter().try_for_each(|op| subscription.apply(op))?)
    }

    fn deliver(&mut self, events: &mut Vec<DeliveryPiece>) -> Result<(), ConnectionEnd> {
        // One frame for each message can be shared with all readers. Batches differ by reader.
        if self.batch == 1 {
            self.deliver_singly(events)?;
        } else {
            self.deliver_batches(events)?;
        }
        self.app.hub.metrics().encoded.fetch_add(take_encoded(), Ordering::Relaxed);
        Ok(())
    }

    /// Sends each message in a frame of its own; those that others are sent too as they are.
    fn deliver_singly(&mut self, events: &mut Vec<DeliveryPiece>) -> Result<(), ConnectionEnd> {
        for event in events.drain(..) {
            match event {
                // The bytes go past the WebSocket library, which would copy each frame: 0.85 to
                // 0.61 µs a delivery (decision 12).
                DeliveryPiece::Burst(burst) if self.frames.shares() => {
                    let messages = burst.messages::<SocketLayout>(self.frames.codec());
                    self.frames.send_shared(messages);
                }
                DeliveryPiece::Burst(burst) => {
                    burst.deliveries().try_for_each(|delivery| self.send_delivery(&delivery))?;
                }
                DeliveryPiece::Again(delivery) => self.send_delivery(&delivery)?,
                DeliveryPiece::Status(frame) => self.send_frame(&frame)?,
            }
        }
        Ok(())
    }

    fn send_delivery(&mut self, delivery: &StreamDelivery) -> Result<(), ConnectionEnd> {
        let frame = delivery.frame(self.frames.codec());
        self.frames.send(|out| out.extend_from_slice(&frame))
    }

    /// Sends the messages in frames of several.
    fn deliver_batches(&mut self, events: &mut Vec<DeliveryPiece>) -> Result<(), ConnectionEnd> {
        let mut batch = DeliverBatch::default();
        for event in events.drain(..) {
            match event {
                DeliveryPiece::Burst(burst) => {
                    burst.deliveries().try_for_each(|delivery| self.add(&mut batch, &delivery))?;
                }
                DeliveryPiece::Again(delivery) => self.add(&mut batch, &delivery)?,
                DeliveryPiece::Status(frame) => {
                    // A status frame has its place among the messages, so that the batch before it
                    // leaves first.
                    self.send_batch(&mut batch)?;
                    self.send_frame(&frame)?;
                }
            }
        }
        self.send_batch(&mut batch)
    }

    /// Adds a delivery to a batch; sends what it does not fit with.
    fn add(
        &mut self,
        batch: &mut DeliverBatch,
        delivery: &StreamDelivery,
    ) -> Result<(), ConnectionEnd> {
        let frame = delivery.frame(self.frames.codec());
        // A client that asks for large batches does not choose how much memory they take.
        let is_full = batch.frames.len() == self.batch
            || batch.bytes + frame.len() > MAX_DELIVERY_BATCH_BYTES;
        if is_full {
            self.send_batch(batch)?;
        }
        batch.bytes += frame.len();
        batch.frames.push(frame);
        Ok(())
    }

    fn send_batch(&mut self, batch: &mut DeliverBatch) -> Result<(), ConnectionEnd> {
        let DeliverBatch { frames, bytes } = std::mem::take(batch);
        if frames.is_empty() {
            return Ok(());
        }
        let codec = self.frames.codec();
        self.frames.send(|out| {
            out.reserve(bytes + frames.len() + 16);
            write_batch(codec, frames.iter().map(|frame| frame.as_ref()), out);
        })
    }

    fn send_frame(&mut self, frame: &ServerFrame) -> Result<(), ConnectionEnd> {
        let codec = self.frames.codec();
        self.frames.send(|out| frame.write(codec, out))
    }

    fn wake_at(&self) -> Instant {
        let wake = self.frames.wake_at();
        // Any frame is a sign of life. A heartbeat is due only after silence.
        self.heartbeat.map_or(wake, |heartbeat| wake.min(self.frames.sent() + heartbeat))
    }

    fn tick(&mut self) -> Result<(), ConnectionEnd> {
        self.frames.tick()?;
        let now = Instant::now();
        if self.heartbeat.is_some_and(|heartbeat| now >= self.frames.sent() + heartbeat) {
            // A client that does not take what it is sent needs no sign of life, which it would not
            // get.
            if self.frames.is_flushing() {
                // A socket that takes nothing has frames waiting. One more would only join them.
                self.frames.note_sent(now);
            } else {
                self.send_frame(&ServerFrame::Heartbeat(now_ms()))?;
            }
        }
        Ok(())
    }
}
