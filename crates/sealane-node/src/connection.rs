//! One WebSocket: frames in, deliveries out, until either side ends it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use crate::limits::{MAX_DELIVERY_BATCH_BYTES, MAX_SILENCE_MS};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream};
use sealane_codec::{Codec, CodecError, records};
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{Error, Features, ServerFrame, read_ops, write_batch};
use sealane_stream::{Output, Subscription, take_encoded};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};

use crate::access::{Grant, Pass};
use crate::app::App;
use crate::clock::{now_ms, stopped};
use crate::fair::Taken;
use crate::refusal::Refusal;
use crate::subscribe::Request;

/// The hub pings so often.
const PING_EVERY: Duration = Duration::from_secs(25);
/// A connection that has sent nothing for so long is dead.
const SILENCE: Duration = Duration::from_millis(MAX_SILENCE_MS);
/// Deliveries that are taken at once and sent together.
const TAKE: usize = 512;
/// Frames that are taken in, or messages that are sent, before others have their turn.
const TURN: usize = 32;
/// How long a client may take to read why it is closed.
const FAREWELL: Duration = Duration::from_secs(2);

struct Connection {
    app: Arc<App>,
    socket: WebSocket,
    codec: Codec,
    batch: usize,
    heartbeat: Option<Duration>,
    /// Structures that this side has defined, for `msgpack-records`.
    encoder: Option<records::Encoder>,
    /// Structures that the client has defined.
    decoder: Option<records::Decoder>,
    /// Whether frames were written that the socket may still hold.
    flushing: bool,
    /// Bytes of frames since deliveries were taken last.
    unflushed_bytes: usize,
    /// What the deliveries hold of the memory that is for all.
    held: Option<Taken>,
    sent: Instant,
    received: Instant,
    pinged: Instant,
}

/// What the socket did.
enum Io {
    Frame(Option<Result<Message, axum::Error>>),
    Flushed(Result<(), axum::Error>),
}

/// Why a connection ends.
enum End {
    /// The client has gone.
    Gone,
    /// The client said that it goes.
    Closed,
    /// The client is told why, and closed.
    Refused(Refusal),
}

pub(crate) async fn serve(app: Arc<App>, socket: WebSocket, pass: Pass, request: Request) {
    let mut connection = Connection::new(app, socket, request.codec);
    let end = connection.run(pass, request).await;
    if let End::Refused(refusal) = &end {
        connection.app.refused.note(refusal);
    }
    // A client that does not read is not waited for.
    let _ = timeout(FAREWELL, connection.farewell(end)).await;
}

/// Says why a socket is refused, which has been counted, and closes it.
pub(crate) async fn refuse(app: Arc<App>, socket: WebSocket, codec: Codec, refusal: Refusal) {
    let mut connection = Connection::new(app, socket, codec);
    let _ = timeout(FAREWELL, connection.farewell(End::Refused(refusal))).await;
}

impl Connection {
    fn new(app: Arc<App>, socket: WebSocket, codec: Codec) -> Self {
        let now = Instant::now();
        let records = codec == Codec::MsgPackRecords;
        Self {
            app,
            socket,
            codec,
            batch: 1,
            heartbeat: None,
            encoder: records.then(records::Encoder::new),
            decoder: records.then(records::Decoder::new),
            flushing: false,
            unflushed_bytes: 0,
            held: None,
            sent: now,
            received: now,
            pinged: now,
        }
    }

    async fn run(&mut self, pass: Pass, request: Request) -> End {
        let pattern = request.pattern.clone();
        let stream = pattern.to_string();
        let mut grant = match Grant::new(self.app.access.clone(), pass, pattern.clone()) {
            Ok(grant) => grant,
            Err(refusal) => return End::Refused(refusal),
        };
        (self.batch, self.heartbeat) = (request.batch, request.heartbeat);
        // From before the subscription: what is appended in between counts as after it.
        let time_ms = now_ms();
        let who = request.who.clone();
        let opened = self.app.hub.subscribe(request.pattern, request.who).await;
        let (mut subscription, joined) = match opened {
            Ok(opened) => opened,
            Err(error) => return End::Refused(error.into()),
        };
        let codec = self.codec;
        let shown = self.app.readers.enter(&subscription, pattern, &who, codec.name());
        let features = Features::ours();
        let frame = ServerFrame::Subscribed { stream, codec, time_ms, features, joined };
        if let Err(end) = self.send_frame(&frame) {
            return end;
        }
        let mut stopping = self.app.stopping.clone();
        let mut events = Vec::new();
        loop {
            let flushing = self.flushing;
            let wake = self.wake_at();
            let step = tokio::select! {
                io = io(&mut self.socket, flushing) => {
                    let after = self.after(io, &mut subscription).await;
                    shown.note(0, subscription.credit());
                    after
                }
                () = subscription.ready(), if !flushing => {
                    let taken = self.take(&mut subscription, &mut events).await;
                    taken.map(|taken| shown.note(taken, subscription.credit()))
                }
                () = tokio::time::sleep_until(wake) => self.tick(),
                granted = grant.changed() => granted.map_err(End::Refused),
                () = stopped(&mut stopping) => Err(End::Refused(Error::Draining.into())),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Sends what there is, as much as the connection may hold; returns how many messages.
    async fn take(
        &mut self,
        subscription: &mut Subscription,
        events: &mut Vec<Output>,
    ) -> Result<usize, End> {
        let mut share = self.app.share();
        let result = subscription.take(TAKE, share.bytes(), events).await;
        result.map_err(|error| End::Refused(error.into()))?;
        let taken = count(events);
        self.unflushed_bytes = 0;
        let delivered = self.deliver(events);
        share.keep(self.unflushed_bytes);
        self.held = Some(share);
        // A reader that catches up lets others have their turn.
        if taken >= TURN {
            tokio::task::yield_now().await;
        }
        delivered.map(|()| taken)
    }

    /// Takes in what the socket did, and every further frame that is already there.
    async fn after(&mut self, io: Io, subscription: &mut Subscription) -> Result<(), End> {
        let frame = match io {
            Io::Flushed(Ok(())) => {
                self.flushing = false;
                self.held = None;
                return Ok(());
            }
            Io::Flushed(Err(_)) => return Err(End::Gone),
            Io::Frame(frame) => frame,
        };
        self.received = Instant::now();
        self.accept(frame, subscription)?;
        for count in 1..TAKE {
            if count % TURN == 0 {
                tokio::task::yield_now().await;
            }
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            match Pin::new(&mut self.socket).poll_next(&mut cx) {
                Poll::Ready(frame) => self.accept(frame, subscription)?,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn accept(
        &mut self,
        frame: Option<Result<Message, axum::Error>>,
        subscription: &mut Subscription,
    ) -> Result<(), End> {
        let bytes = match frame {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_))) => {
                // The pong is queued by the library; it leaves with the next flush.
                self.flushing = true;
                return Ok(());
            }
            Some(Ok(Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Close(_))) => return Err(End::Closed),
            None => return Err(End::Gone),
            Some(Err(error)) => return Err(lost(error, self.codec)),
        };
        let mut ops = Vec::new();
        let read = match &mut self.decoder {
            None => read_ops(self.codec, &bytes, &mut ops),
            Some(decoder) => {
                let mut plain = Vec::with_capacity(bytes.len() + 32);
                let codec = self.codec.name();
                decoder
                    .to_plain(&bytes, &mut plain)
                    .map_err(|cause| Error::Decode { codec, cause })
                    .and_then(|()| read_ops(Codec::MsgPack, &plain, &mut ops))
            }
        };
        read.and_then(|()| ops.into_iter().try_for_each(|op| subscription.apply(op)))
            .map_err(|error| End::Refused(error.into()))
    }

    fn deliver(&mut self, events: &mut Vec<Output>) -> Result<(), End> {
        if self.batch == 1 {
            for event in events.drain(..) {
                match event {
                    Output::Deliver(delivery) => self.send(delivery.frame(self.codec))?,
                    Output::Status(frame) => self.send_frame(&frame)?,
                }
            }
        } else {
            self.deliver_batches(events)?;
        }
        self.app.hub.metrics().encoded.fetch_add(take_encoded(), Ordering::Relaxed);
        Ok(())
    }

    fn deliver_batches(&mut self, events: &mut Vec<Output>) -> Result<(), End> {
        let (mut frames, mut bytes) = (Vec::with_capacity(self.batch.min(events.len())), 0);
        for event in events.drain(..) {
            match event {
                Output::Deliver(delivery) => {
                    let frame = delivery.frame(self.codec);
                    let full = frames.len() == self.batch
                        || bytes + frame.len() > MAX_DELIVERY_BATCH_BYTES;
                    if full {
                        self.send_batch(&mut frames)?;
                        bytes = 0;
                    }
                    bytes += frame.len();
                    frames.push(frame);
                }
                Output::Status(frame) => {
                    self.send_batch(&mut frames)?;
                    bytes = 0;
                    self.send_frame(&frame)?;
                }
            }
        }
        self.send_batch(&mut frames)
    }

    fn send_batch(&mut self, frames: &mut Vec<Bytes>) -> Result<(), End> {
        if frames.is_empty() {
            return Ok(());
        }
        let size: usize = frames.iter().map(|frame| frame.len() + 1).sum();
        let mut out = Vec::with_capacity(size + 16);
        write_batch(self.codec.at_rest(), frames.iter().map(|frame| frame.as_ref()), &mut out);
        frames.clear();
        self.send(out.into())
    }

    fn send_frame(&mut self, frame: &ServerFrame) -> Result<(), End> {
        let mut bytes = Vec::with_capacity(128);
        frame.write(self.codec.at_rest(), &mut bytes);
        self.send(bytes.into())
    }

    /// Puts a frame, in the codec or for records in plain MessagePack, on its way.
    fn send(&mut self, frame: Bytes) -> Result<(), End> {
        self.unflushed_bytes += frame.len();
        let message = if let Some(encoder) = &mut self.encoder {
            let mut out = Vec::with_capacity(frame.len());
            let result = encoder.transcode(Codec::MsgPack, &frame, &mut out);
            let codec = self.codec.name();
            result.map_err(|cause| End::Refused(Error::Decode { codec, cause }.into()))?;
            Message::Binary(out.into())
        } else if self.codec == Codec::Json {
            let text = Utf8Bytes::try_from(frame).map_err(|_| End::Gone)?;
            Message::Text(text)
        } else {
            Message::Binary(frame)
        };
        self.flushing = true;
        self.sent = Instant::now();
        // The socket is flushed before more is taken: what it holds is bounded by one take.
        Pin::new(&mut self.socket).start_send(message).map_err(|_| End::Gone)
    }

    fn wake_at(&self) -> Instant {
        let ping = self.pinged + PING_EVERY;
        let dead = self.received + SILENCE;
        let heartbeat = self.heartbeat.map_or(ping, |heartbeat| self.sent + heartbeat);
        ping.min(dead).min(heartbeat)
    }

    fn tick(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now >= self.received + SILENCE {
            return Err(End::Gone);
        }
        if now >= self.pinged + PING_EVERY {
            self.pinged = now;
            self.flushing = true;
            let ping = Message::Ping(Bytes::new());
            Pin::new(&mut self.socket).start_send(ping).map_err(|_| End::Gone)?;
        }
        if self.heartbeat.is_some_and(|heartbeat| now >= self.sent + heartbeat) {
            if self.flushing {
                self.sent = now;
            } else {
                self.send_frame(&ServerFrame::Heartbeat(now_ms()))?;
            }
        }
        Ok(())
    }

    async fn farewell(&mut self, end: End) {
        let refusal = match end {
            End::Gone => return,
            End::Closed => {
                // The library has queued the answer to the client's close.
                drop(self.socket.flush().await);
                return;
            }
            End::Refused(refusal) => refusal,
        };
        let wire = refusal.wire();
        let draining = matches!(refusal, Refusal::Hub(Error::Draining));
        if !draining && self.send_frame(&ServerFrame::Error(wire.clone())).is_err() {
            return;
        }
        let reason = Utf8Bytes::from(wire.code.as_ref());
        let close = Message::Close(Some(CloseFrame { code: refusal.close(), reason }));
        if self.socket.send(close).await.is_ok() {
            // The close is answered, or the client goes, or the time is up.
            while let Some(Ok(_)) = self.socket.recv().await {}
        }
    }
}

/// Reads, and where `flushing` goes on writing, whichever is first: a client that writes without
/// reading is still heard.
fn io(socket: &mut WebSocket, flushing: bool) -> impl Future<Output = Io> {
    std::future::poll_fn(move |cx| {
        if let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
            return Poll::Ready(Io::Frame(frame));
        }
        if flushing && let Poll::Ready(result) = Pin::new(&mut *socket).poll_flush(cx) {
            return Poll::Ready(Io::Flushed(result));
        }
        Poll::Pending
    })
}

/// The messages among them.
fn count(events: &[Output]) -> usize {
    events.iter().filter(|event| matches!(event, Output::Deliver(_))).count()
}

fn lost(error: axum::Error, codec: Codec) -> End {
    let error = error.into_inner();
    match error.downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => {
            let limit = MAX_CLIENT_FRAME_BYTES;
            End::Refused(Error::TooLarge { what: "frame", limit }.into())
        }
        Some(tungstenite::Error::Utf8(_)) => {
            let (codec, cause) = (codec.name(), CodecError::NotUnicode { at: 0 });
            End::Refused(Error::Decode { codec, cause }.into())
        }
        Some(tungstenite::Error::Protocol(cause)) if !is_end(cause) => {
            End::Refused(Refusal::WebSocket(cause.to_string()))
        }
        _ => End::Gone,
    }
}

/// Whether the client has gone, with or without a word.
fn is_end(cause: &ProtocolError) -> bool {
    matches!(
        cause,
        ProtocolError::ResetWithoutClosingHandshake
            | ProtocolError::ReceivedAfterClosing
            | ProtocolError::SendAfterClosing
    )
}
