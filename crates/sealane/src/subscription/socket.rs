//! One WebSocket connection of a subscription.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::header::{AUTHORIZATION, HeaderValue};
use sealane_codec::Codec;
use sealane_protocol::{Op, ServerFrame, WireError};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error as WsError, Message as WsMessage};

use crate::Error;
use crate::address::Address;
use crate::wire::{CONNECT_TIMEOUT, Trust, Unopened, Wire, open};

/// A connection on which nothing came for so long is lost: three heartbeats and a little.
const SILENCE: Duration = Duration::from_secs(35);

/// How a connection ended, or why it could not be made.
#[derive(Debug)]
pub(super) enum Ended {
    /// Connecting again may help.
    Lost(String),
    /// The hub said why.
    Refused(WireError),
    /// What came is not the protocol.
    Failed(Error),
}

/// The reading half.
pub(super) struct Reader {
    stream: SplitStream<WebSocketStream<Wire>>,
    codec: Codec,
}

/// The writing half.
pub(super) struct Writer {
    sink: SplitSink<WebSocketStream<Wire>, WsMessage>,
    codec: Codec,
}

/// Opens a WebSocket at `path`; the hub's first frame is still to be read.
pub(super) async fn connect(
    address: &Address,
    path: &str,
    token: Option<&HeaderValue>,
    trust: &Trust,
    codec: Codec,
) -> Result<(Reader, Writer), Ended> {
    let stream = open(address, trust).await.map_err(|unopened| match unopened {
        Unopened::Lost(cause) => Ended::Lost(cause),
        Unopened::Failed(error) => Ended::Failed(error),
    })?;
    let url = format!("ws://{address}{path}");
    let mut request = url.into_client_request().map_err(|e| Ended::Lost(e.to_string()))?;
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, token.clone());
    }
    let shake = tokio_tungstenite::client_async(request, stream);
    let (socket, _) = timeout(CONNECT_TIMEOUT, shake)
        .await
        .map_err(|_| Ended::Lost(format!("no answer in {CONNECT_TIMEOUT:?}")))?
        .map_err(handshake_failed)?;
    let (sink, stream) = socket.split();
    Ok((Reader { stream, codec }, Writer { sink, codec }))
}

fn handshake_failed(error: WsError) -> Ended {
    let WsError::Http(response) = error else {
        return Ended::Lost(error.to_string());
    };
    let status = response.status();
    let body = Bytes::from(response.into_body().unwrap_or_default());
    match ServerFrame::read(Codec::Json, &body) {
        Ok(ServerFrame::Error(wire)) => Ended::Refused(wire),
        _ if status.is_server_error() => Ended::Lost(format!("status {}", status.as_u16())),
        _ => Ended::Failed(Error::Protocol(format!("status {} to an upgrade", status.as_u16()))),
    }
}

impl Reader {
    /// The next frame that is known here, and the bytes on the wire until its end.
    pub(super) async fn next(&mut self) -> Result<(ServerFrame, u64), Ended> {
        let mut bytes = 0;
        loop {
            let message = timeout(SILENCE, self.stream.next())
                .await
                .map_err(|_| Ended::Lost(format!("nothing came for {SILENCE:?}")))?;
            let (codec, payload) = match message {
                // Errors come as JSON where the hub could not agree on a codec.
                Some(Ok(WsMessage::Text(text))) => (Codec::Json, Bytes::from(text)),
                Some(Ok(WsMessage::Binary(bytes))) => (self.codec, bytes),
                Some(Ok(WsMessage::Close(Some(frame)))) => {
                    return Err(Ended::Lost(format!(
                        "closed with {} {}",
                        u16::from(frame.code),
                        frame.reason
                    )));
                }
                Some(Ok(WsMessage::Close(None))) | None => {
                    return Err(Ended::Lost("closed by the hub".into()));
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(Ended::Lost(error.to_string())),
            };
            bytes += wire_bytes(payload.len());
            return match ServerFrame::read(codec, &payload) {
                Ok(ServerFrame::Error(wire)) => Err(Ended::Refused(wire)),
                Ok(ServerFrame::Unknown(status)) => {
                    tracing::debug!(status, "a frame that only a newer hub knows");
                    continue;
                }
                Ok(frame) => Ok((frame, bytes)),
                Err(error) => Err(Ended::Failed(Error::Protocol(error.to_string()))),
            };
        }
    }
}

/// A payload and the header of its unmasked frame (RFC 6455 §5.2).
fn wire_bytes(payload: usize) -> u64 {
    let header = match payload {
        0..=125 => 2,
        126..=0xFFFF => 4,
        _ => 10,
    };
    u64::try_from(payload + header).unwrap_or(u64::MAX)
}

impl Writer {
    /// Sends these with one system call where they fit.
    pub(super) async fn send(&mut self, ops: &[Op]) -> Result<(), Ended> {
        let lost = |error: WsError| Ended::Lost(error.to_string());
        for op in ops {
            let mut frame = Vec::with_capacity(64);
            op.write(self.codec, &mut frame);
            let message = if self.codec.is_binary() {
                WsMessage::Binary(frame.into())
            } else {
                let text = String::from_utf8(frame)
                    .map_err(|error| Ended::Failed(Error::Protocol(error.to_string())))?;
                WsMessage::Text(text.into())
            };
            self.sink.feed(message).await.map_err(lost)?;
        }
        self.sink.flush().await.map_err(lost)
    }

    /// Says that nothing more comes.
    pub(super) async fn close(&mut self) -> Result<(), Ended> {
        let close = self.sink.send(WsMessage::Close(None));
        close.await.map_err(|error| Ended::Lost(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_headers_count() {
        assert_eq!(wire_bytes(125), 127);
        assert_eq!(wire_bytes(126), 130);
        assert_eq!(wire_bytes(65_536), 65_546);
    }
}
