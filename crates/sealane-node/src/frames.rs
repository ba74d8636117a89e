//! The frames of a WebSocket, read and written in the codec that was agreed on.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::limits::MAX_SILENCE_MS;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream};
use sealane_codec::{Codec, CodecError, records};
use sealane_protocol::{Error, WireError};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};

use crate::refusal::Refusal;

/// The hub pings so often.
const PING_EVERY: Duration = Duration::from_secs(25);
/// A connection that has sent nothing for so long is dead.
const SILENCE: Duration = Duration::from_millis(MAX_SILENCE_MS);
/// How long a client may take to read why it is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// One WebSocket.
pub(crate) struct Frames {
    socket: WebSocket,
    codec: Codec,
    /// The largest frame that is taken, for telling who sent a larger one.
    max_bytes: usize,
    /// Structures that this side has defined, for `msgpack-records`.
    encoder: Option<records::Encoder>,
    /// Structures that the client has defined.
    decoder: Option<records::Decoder>,
    /// Whether frames were written that the socket may still hold.
    is_flushing: bool,
    written_bytes: usize,
    sent: Instant,
    received: Instant,
    pinged: Instant,
}

/// What the socket did.
pub(crate) enum Heard {
    /// A frame came, here in [`Frames::codec`].
    Frame(Bytes),
    /// All that was sent has left.
    Flushed,
    /// Something that the library sees to by itself.
    Nothing,
}

/// Why a connection ends.
pub(crate) enum End {
    /// The client has gone.
    Gone,
    /// The client said that it goes.
    Closed,
    /// The client is told why, and closed.
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for End {
    fn from(error: E) -> Self {
        End::Refused(error.into())
    }
}

impl Frames {
    pub(crate) fn new(socket: WebSocket, codec: Codec, max_bytes: usize) -> Self {
        let now = Instant::now();
        let records = codec == Codec::MsgPackRecords;
        Self {
            socket,
            codec,
            max_bytes,
            encoder: records.then(records::Encoder::new),
            decoder: records.then(records::Decoder::new),
            is_flushing: false,
            written_bytes: 0,
            sent: now,
            received: now,
            pinged: now,
        }
    }

    /// The codec in which frames are given and taken here: MessagePack where the connection's is
    /// `msgpack-records`.
    pub(crate) fn codec(&self) -> Codec {
        self.codec.at_rest()
    }

    /// The codec of the connection.
    pub(crate) fn agreed(&self) -> Codec {
        self.codec
    }

    /// Whether frames were sent that the socket may still hold.
    pub(crate) fn is_flushing(&self) -> bool {
        self.is_flushing
    }

    /// Bytes of all frames that were sent.
    pub(crate) fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    /// When the last frame has left.
    pub(crate) fn sent(&self) -> Instant {
        self.sent
    }

    /// Counts as if a frame had been sent now.
    pub(crate) fn note_sent(&mut self, now: Instant) {
        self.sent = now;
    }

    /// Reads, and where frames were sent goes on writing, whichever is first: a client that writes
    /// without reading is still heard.
    pub(crate) fn hear(&mut self) -> impl Future<Output = Result<Heard, End>> {
        std::future::poll_fn(|cx| self.poll_hear(cx))
    }

    /// As [`Frames::hear`], of a task that waits for other things too.
    pub(crate) fn poll_hear(&mut self, cx: &mut Context<'_>) -> Poll<Result<Heard, End>> {
        if let Poll::Ready(message) = Pin::new(&mut self.socket).poll_next(cx) {
            // Further frames that are there already came with this one.
            self.received = Instant::now();
            return Poll::Ready(self.heard(message));
        }
        if !self.is_flushing {
            return Poll::Pending;
        }
        self.poll_flush(cx).map_ok(|()| Heard::Flushed)
    }

    /// Goes on writing what was sent.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.is_flushing = flushed.is_pending();
        if flushed.is_ready() {
            self.sent = Instant::now();
        }
        flushed.map_err(|_| End::Gone)
    }

    /// Writes what was sent as far as the client takes it at once. [`Frames::hear`] goes on where
    /// something is left, which only it waits for.
    pub(crate) fn flush_now(&mut self) -> Result<(), End> {
        match self.poll_flush(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// A further frame, if it is there already.
    pub(crate) fn hear_more(&mut self) -> Option<Result<Heard, End>> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.socket).poll_next(&mut cx) {
            Poll::Ready(message) => Some(self.heard(message)),
            Poll::Pending => None,
        }
    }

    fn heard(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<Heard, End> {
        let bytes = match message {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_))) => {
                // The pong is queued by the library; it leaves with the next flush.
                self.is_flushing = true;
                return Ok(Heard::Nothing);
            }
            Some(Ok(Message::Pong(_))) => return Ok(Heard::Nothing),
            Some(Ok(Message::Close(_))) => return Err(End::Closed),
            None => return Err(End::Gone),
            Some(Err(error)) => return Err(self.lost(error)),
        };
        let Some(decoder) = &mut self.decoder else { return Ok(Heard::Frame(bytes)) };
        let mut plain = Vec::with_capacity(bytes.len() + 32);
        let codec = self.codec.name();
        decoder.to_plain(&bytes, &mut plain).map_err(|cause| Error::Decode { codec, cause })?;
        Ok(Heard::Frame(plain.into()))
    }

    /// Puts a frame, in [`Frames::codec`], on its way.
    pub(crate) fn send(&mut self, frame: Bytes) -> Result<(), End> {
        self.written_bytes += frame.len();
        let message = if let Some(encoder) = &mut self.encoder {
            let mut out = Vec::with_capacity(frame.len());
            let result = encoder.transcode(Codec::MsgPack, &frame, &mut out);
            let codec = self.codec.name();
            result.map_err(|cause| Error::Decode { codec, cause })?;
            Message::Binary(out.into())
        } else if self.codec == Codec::Json {
            let text = Utf8Bytes::try_from(frame).map_err(|_| End::Gone)?;
            Message::Text(text)
        } else {
            Message::Binary(frame)
        };
        self.is_flushing = true;
        // The socket is flushed before more is taken: what it holds is bounded by one take.
        Pin::new(&mut self.socket).start_send(message).map_err(|_| End::Gone)
    }

    /// When [`Frames::tick`] has something to do.
    pub(crate) fn wake_at(&self) -> Instant {
        (self.pinged + PING_EVERY).min(self.received + SILENCE)
    }

    /// Pings where it is time to, and ends a connection that is silent.
    pub(crate) fn tick(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now >= self.received + SILENCE {
            return Err(End::Gone);
        }
        if now >= self.pinged + PING_EVERY {
            self.pinged = now;
            self.is_flushing = true;
            let ping = Message::Ping(Bytes::new());
            Pin::new(&mut self.socket).start_send(ping).map_err(|_| End::Gone)?;
        }
        Ok(())
    }

    /// Ends the connection as it is to end. A client that does not read is not waited for.
    pub(crate) async fn end(mut self, end: End) {
        let _ = timeout(FAREWELL, self.farewell(end)).await;
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
        if !draining && self.send_error(&wire).is_err() {
            return;
        }
        let reason = Utf8Bytes::from(wire.code.as_ref());
        let close = Message::Close(Some(CloseFrame { code: refusal.close(), reason }));
        if self.socket.send(close).await.is_ok() {
            // The close is answered, or the client goes, or the time is up.
            while let Some(Ok(_)) = self.socket.recv().await {}
        }
    }

    fn send_error(&mut self, error: &WireError) -> Result<(), End> {
        let mut frame = Vec::with_capacity(128);
        error.write(self.codec(), &mut frame);
        self.send(frame.into())
    }

    fn lost(&self, error: axum::Error) -> End {
        let error = error.into_inner();
        match error.downcast_ref::<tungstenite::Error>() {
            Some(tungstenite::Error::Capacity(_)) => {
                Error::TooLarge { what: "frame", limit: self.max_bytes }.into()
            }
            Some(tungstenite::Error::Utf8(_)) => {
                let (codec, cause) = (self.codec.name(), CodecError::NotUnicode { at: 0 });
                Error::Decode { codec, cause }.into()
            }
            Some(tungstenite::Error::Protocol(cause)) if !is_end(cause) => {
                End::Refused(Refusal::WebSocket(cause.to_string()))
            }
            _ => End::Gone,
        }
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
