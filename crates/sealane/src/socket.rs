//! One WebSocket connection.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::header::{AUTHORIZATION, HeaderValue};
use sealane_codec::Codec;
use sealane_protocol::{ServerFrame, WireError};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error as WsError, Message as WsMessage};

use crate::Error;
use crate::address::HubAddress;
use crate::limits::{MAX_CONNECT_MS, MAX_HUB_SILENCE_MS};
use crate::wire::{ConnectFailure, HubConnection, TlsTrust, open};

/// How a connection ended, or why it could not be made.
#[derive(Debug)]
pub(crate) enum SocketFailure {
    /// Connecting again may help.
    Lost(String),
    /// The hub said why.
    Refused(WireError),
    /// The received bytes are not the protocol.
    Failed(Error),
}

/// The reading half.
pub(crate) struct SocketReader {
    stream: SplitStream<WebSocketStream<HubConnection>>,
    codec: Codec,
}

type SocketSink = SplitSink<WebSocketStream<HubConnection>, WsMessage>;

/// The writing half.
pub(crate) struct SocketWriter {
    sink: SocketSink,
    codec: Codec,
}

/// Opens a WebSocket at `path`; the hub's first frame is still to be read.
pub(crate) async fn connect(
    address: &HubAddress,
    path: &str,
    token: Option<&HeaderValue>,
    trust: &TlsTrust,
    codec: Codec,
) -> Result<(SocketReader, SocketWriter), SocketFailure> {
    let stream = open(address, trust).await.map_err(|unopened| match unopened {
        ConnectFailure::Lost(cause) => SocketFailure::Lost(cause),
        ConnectFailure::Failed(error) => SocketFailure::Failed(error),
    })?;
    let url = format!("ws://{address}{path}");
    let mut request = url.into_client_request().map_err(|e| SocketFailure::Lost(e.to_string()))?;
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, token.clone());
    }
    let shake = tokio_tungstenite::client_async(request, stream);
    let patience = Duration::from_millis(MAX_CONNECT_MS);
    let (socket, _) = timeout(patience, shake)
        .await
        .map_err(|_| SocketFailure::Lost(format!("no answer in {patience:?}")))?
        .map_err(handshake_failed)?;
    let (sink, stream) = socket.split();
    Ok((SocketReader { stream, codec }, SocketWriter { sink, codec }))
}

fn handshake_failed(error: WsError) -> SocketFailure {
    let WsError::Http(response) = error else {
        return SocketFailure::Lost(error.to_string());
    };
    let status = response.status();
    let body = Bytes::from(response.into_body().unwrap_or_default());
    match ServerFrame::read(Codec::Json, &body) {
        Ok(ServerFrame::Error(wire)) => SocketFailure::Refused(wire),
        _ if status.is_server_error() => SocketFailure::Lost(format!("status {}", status.as_u16())),
        _ => SocketFailure::Failed(Error::Protocol(format!(
            "status {} to an upgrade",
            status.as_u16()
        ))),
    }
}

impl SocketReader {
    /// The next frame, and its codec.
    pub(crate) async fn frame(&mut self) -> Result<(Codec, Bytes), SocketFailure> {
        loop {
            let silence = Duration::from_millis(MAX_HUB_SILENCE_MS);
            let message = timeout(silence, self.stream.next())
                .await
                .map_err(|_| SocketFailure::Lost(format!("nothing came for {silence:?}")))?;
            return match message {
                // Errors come as JSON where the hub could not agree on a codec.
                Some(Ok(WsMessage::Text(text))) => Ok((Codec::Json, Bytes::from(text))),
                Some(Ok(WsMessage::Binary(bytes))) => Ok((self.codec, bytes)),
                Some(Ok(WsMessage::Close(Some(frame)))) => {
                    let (code, reason) = (u16::from(frame.code), frame.reason);
                    Err(SocketFailure::Lost(format!("closed with {code} {reason}")))
                }
                Some(Ok(WsMessage::Close(None))) | None => {
                    Err(SocketFailure::Lost("closed by the hub".into()))
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => Err(SocketFailure::Lost(error.to_string())),
            };
        }
    }
}

impl SocketWriter {
    /// The codec of frames.
    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// Puts a frame on its way; it leaves with the next [`SocketWriter::flush`] at the latest.
    pub(crate) async fn feed(&mut self, frame: Vec<u8>) -> Result<(), SocketFailure> {
        let message = if self.codec.is_binary() {
            WsMessage::Binary(frame.into())
        } else {
            let text = String::from_utf8(frame)
                .map_err(|error| SocketFailure::Failed(Error::Protocol(error.to_string())))?;
            WsMessage::Text(text.into())
        };
        self.in_time(async |sink| sink.feed(message).await).await
    }

    /// Sends what was put on its way.
    pub(crate) async fn flush(&mut self) -> Result<(), SocketFailure> {
        self.in_time(async |sink| sink.flush().await).await
    }

    /// A hub that takes nothing for too long is gone.
    async fn in_time(
        &mut self,
        write: impl AsyncFnOnce(&mut SocketSink) -> Result<(), WsError>,
    ) -> Result<(), SocketFailure> {
        let silence = Duration::from_millis(MAX_HUB_SILENCE_MS);
        match timeout(silence, write(&mut self.sink)).await {
            Ok(written) => written.map_err(|error| SocketFailure::Lost(error.to_string())),
            Err(_) => Err(SocketFailure::Lost(format!("nothing was taken for {silence:?}"))),
        }
    }

    /// Says that nothing more comes.
    pub(crate) async fn close(&mut self) -> Result<(), SocketFailure> {
        let close = self.sink.send(WsMessage::Close(None));
        close.await.map_err(|error| SocketFailure::Lost(error.to_string()))
    }
}
