//! The frames of a WebSocket, read and written in the codec that was agreed on.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::limits::{MAX_FAREWELL_MS, MAX_SILENCE_MS, PING_INTERVAL_MS};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use sealane_codec::{Codec, CodecError, records};
use sealane_protocol::{Error, WireError, write_message};
use sealane_stream::DeliverLayout;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::error::{Error as SocketError, ProtocolError};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes, protocol::CloseFrame};

use crate::handshake::WebSocket;
use crate::refusal::HttpRefusal;

/// A ping without anything in it, whole (RFC 6455 §5.5.2).
const PING: [u8; 2] = [0x89, 0];

/// How a block lays its frames out for WebSockets: a server's heads carry no mask, so that the same
/// bytes are for everybody who reads in the same codec.
pub(crate) struct SocketLayout;

impl DeliverLayout for SocketLayout {
    fn write(codec: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        write_message(codec, out, write);
    }
}

/// One WebSocket.
pub(crate) struct SocketFrames {
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
    /// Whether the library has something to send by itself.
    library_answers: bool,
    /// Whether the library may have read more than it has given.
    library_holds: bool,
    written_bytes: usize,
    sent: Instant,
    received: Instant,
    pinged: Instant,
}

/// An event of the socket.
pub(crate) enum SocketEvent {
    /// A frame came, here in [`SocketFrames::codec`].
    Frame(Bytes),
    /// All that was sent has left.
    Flushed,
    /// Something that the library sees to by itself.
    Nothing,
}

/// Why a connection ends.
pub(crate) enum ConnectionEnd {
    /// The client has gone.
    Gone,
    /// The client said that it goes.
    Closed,
    /// The client is told why, and closed.
    Refused(HttpRefusal),
}

impl<E: Into<HttpRefusal>> From<E> for ConnectionEnd {
    fn from(error: E) -> Self {
        ConnectionEnd::Refused(error.into())
    }
}

impl SocketFrames {
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
            library_answers: false,
            library_holds: true,
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

    /// Bytes that the connection has taken, ever: a client that reads has more of them each time.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.socket.get_ref().taken_bytes()
    }

    /// Bytes that were sent and that the connection has not taken.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.socket.get_ref().waiting_bytes()
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
    pub(crate) fn poll_hear(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SocketEvent, ConnectionEnd>> {
        if let Poll::Ready(message) = self.poll_message(cx) {
            // Further frames that are there already came with this one.
            self.received = Instant::now();
            return Poll::Ready(self.heard(message));
        }
        if !self.is_flushing {
            return Poll::Pending;
        }
        self.poll_flush(cx).map_ok(|()| SocketEvent::Flushed)
    }

    /// The next message. Most tasks are woken to send: the library, which would prepare memory for
    /// what it reads, is asked where something has come.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, SocketError>>> {
        // The library fills its read buffer with zeros before it looks, the largest symbol outside
        // the kernel when it was measured (decision 12).
        let outlet = self.socket.get_ref();
        let holds = self.library_holds || outlet.has_ahead();
        if !holds && outlet.connection().poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let message = Pin::new(&mut self.socket).poll_next(cx);
        self.library_holds = message.is_ready();
        message
    }

    /// Goes on writing what was sent.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        // A library that has answered a close looks no further than to what it writes into.
        let given = match self.library_answers {
            true => {
                Sink::poll_flush(Pin::new(&mut self.socket), cx).map_err(|_| ConnectionEnd::Gone)?
            }
            false => Poll::Ready(()),
        };
        let flushed = match given {
            Poll::Ready(()) => self.poll_out(cx),
            Poll::Pending => Poll::Pending,
        };
        self.is_flushing = flushed.is_pending();
        if flushed.is_ready() {
            self.library_answers = false;
            self.sent = Instant::now();
        }
        flushed
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        AsyncWrite::poll_flush(Pin::new(self.socket.get_mut()), cx).map_err(|_| ConnectionEnd::Gone)
    }

    /// Writes what was sent as far as the client takes it at once. [`SocketFrames::poll_hear`] goes
    /// on where something is left, which only it waits for.
    pub(crate) fn flush_now(&mut self) -> Result<(), ConnectionEnd> {
        match self.poll_flush(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => {
                // A client that takes nothing would otherwise keep whole blocks, which everybody
                // else has done with.
                self.socket.get_mut().keep_own();
                Ok(())
            }
        }
    }

    /// A further frame, if it is there already.
    pub(crate) fn hear_more(&mut self) -> Option<Result<SocketEvent, ConnectionEnd>> {
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_message(&mut cx) {
            Poll::Ready(message) => Some(self.heard(message)),
            Poll::Pending => None,
        }
    }

    fn heard(
        &mut self,
        message: Option<Result<Message, SocketError>>,
    ) -> Result<SocketEvent, ConnectionEnd> {
        let bytes = match message {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_))) => {
                // The pong is queued by the library; it leaves with the next flush.
                (self.is_flushing, self.library_answers) = (true, true);
                return Ok(SocketEvent::Nothing);
            }
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => return Ok(SocketEvent::Nothing),
            Some(Ok(Message::Close(_))) => return Err(ConnectionEnd::Closed),
            None => return Err(ConnectionEnd::Gone),
            Some(Err(error)) => return Err(self.lost(&error)),
        };
        let Some(decoder) = &mut self.decoder else { return Ok(SocketEvent::Frame(bytes)) };
        let mut plain = Vec::with_capacity(bytes.len() + 32);
        let codec = self.codec.name();
        decoder.to_plain(&bytes, &mut plain).map_err(|cause| Error::Decode { codec, cause })?;
        Ok(SocketEvent::Frame(plain.into()))
    }

    /// Puts what is written, a frame in [`SocketFrames::codec`], on its way.
    ///
    /// The socket is flushed before more is taken: what it holds is bounded by one take.
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionEnd> {
        let codec = self.codec();
        let own = self.socket.get_mut().own();
        let before = own.len();
        if let Some(encoder) = &mut self.encoder {
            let (mut plain, mut out) = (Vec::with_capacity(128), Vec::new());
            write(&mut plain);
            out.reserve(plain.len());
            let result = encoder.transcode(Codec::MsgPack, &plain, &mut out);
            let codec = self.codec.name();
            result.map_err(|cause| Error::Decode { codec, cause })?;
            // Structures are of this connection alone, so that its messages cannot be shared.
            write_message(Codec::MsgPack, own, |own| own.extend_from_slice(&out));
        } else {
            write_message(codec, own, write);
        }
        self.written_bytes += own.len().saturating_sub(before);
        self.is_flushing = true;
        Ok(())
    }

    /// Whether what this connection is sent is the same for all of its codec.
    pub(crate) fn shares(&self) -> bool {
        self.encoder.is_none()
    }

    /// Puts whole messages on their way, in [`SocketFrames::codec`], that others are sent as they
    /// are.
    pub(crate) fn send_shared(&mut self, messages: Bytes) {
        debug_assert!(self.shares(), "messages in structures of another connection");
        self.written_bytes += messages.len();
        self.is_flushing = true;
        self.socket.get_mut().share(messages);
    }

    /// When [`SocketFrames::tick`] has something to do.
    pub(crate) fn wake_at(&self) -> Instant {
        (self.pinged + Duration::from_millis(PING_INTERVAL_MS))
            .min(self.received + Duration::from_millis(MAX_SILENCE_MS))
    }

    /// Pings where it is time to, and ends a connection that is silent.
    pub(crate) fn tick(&mut self) -> Result<(), ConnectionEnd> {
        let now = Instant::now();
        if now >= self.received + Duration::from_millis(MAX_SILENCE_MS) {
            return Err(ConnectionEnd::Gone);
        }
        if now >= self.pinged + Duration::from_millis(PING_INTERVAL_MS) {
            self.pinged = now;
            self.is_flushing = true;
            self.socket.get_mut().own().extend_from_slice(&PING);
        }
        Ok(())
    }

    /// Ends the connection as it is to end. A client that does not read is not waited for.
    pub(crate) async fn end(mut self, end: ConnectionEnd) {
        let _ = timeout(Duration::from_millis(MAX_FAREWELL_MS), self.farewell(end)).await;
    }

    async fn farewell(&mut self, end: ConnectionEnd) {
        let refusal = match end {
            ConnectionEnd::Gone => return,
            ConnectionEnd::Closed => {
                // The library has queued the answer to the client's close.
                self.library_answers = true;
                drop(poll_fn(|cx| self.poll_flush(cx)).await);
                return;
            }
            ConnectionEnd::Refused(refusal) => refusal,
        };
        let wire = refusal.wire();
        let draining = matches!(refusal, HttpRefusal::Hub(Error::Draining));
        // When the node stops, the close alone says so: for a client that is no error.
        if !draining && self.send_error(&wire).is_err() {
            return;
        }
        let reason = Utf8Bytes::from(wire.code.as_ref());
        let close = Message::Close(Some(CloseFrame { code: refusal.close().into(), reason }));
        if self.socket.send(close).await.is_ok() {
            // The close is answered, or the client goes, or the time is up.
            while let Some(Ok(_)) = self.socket.next().await {}
        }
    }

    fn send_error(&mut self, error: &WireError) -> Result<(), ConnectionEnd> {
        let codec = self.codec();
        self.send(|out| error.write(codec, out))
    }

    fn lost(&self, error: &SocketError) -> ConnectionEnd {
        match error {
            SocketError::Capacity(_) => {
                Error::TooLarge { what: "frame", limit: self.max_bytes }.into()
            }
            SocketError::Utf8(_) => {
                let (codec, cause) = (self.codec.name(), CodecError::NotUnicode { at: 0 });
                Error::Decode { codec, cause }.into()
            }
            SocketError::Protocol(cause) if !is_end(cause) => {
                ConnectionEnd::Refused(HttpRefusal::WebSocket(cause.to_string()))
            }
            _ => ConnectionEnd::Gone,
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
