//! A WebSocket client that speaks any codec and shows every frame as JSON.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use sealane_codec::{Codec, records};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

use crate::http::{from_json, to_json};

/// An expected frame comes within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// An unwanted frame has not come after this time.
const SILENCE: Duration = Duration::from_millis(150);

pub(crate) struct Socket {
    inner: WebSocketStream<TcpStream>,
    codec: Codec,
    encoder: records::Encoder,
    decoder: records::Decoder,
    /// The sub-protocol that the hub agreed to.
    pub(crate) protocol: Option<String>,
    /// The first frame: `subscribed`, or an error.
    pub(crate) first: Value,
    /// The codec that the first frame was read in.
    pub(crate) first_in: Codec,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivered {
    pub(crate) stream: String,
    pub(crate) offset: u64,
    pub(crate) generation: u64,
    pub(crate) attempt: u64,
    pub(crate) envelope: Value,
}

/// How a connection ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Ending {
    /// The name of the error that was told before.
    pub(crate) error: Option<String>,
    /// The code of the close.
    pub(crate) code: Option<u16>,
}

impl Socket {
    /// Opens a subscription and reads its first frame.
    pub(crate) async fn open(
        address: SocketAddr,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> Socket {
        Socket::open_at(address, &format!("/v1/subscribe?{query}"), headers).await
    }

    /// Opens a socket at any path and reads its first frame.
    pub(crate) async fn open_at(
        address: SocketAddr,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Socket {
        let url = format!("ws://{address}{path}");
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let opening = tokio_tungstenite::client_async(request, stream);
        let (inner, response) = tokio::time::timeout(PATIENCE, opening).await.unwrap().unwrap();
        let protocol = response.headers().get("sec-websocket-protocol");
        let mut socket = Socket {
            inner,
            codec: Codec::Json,
            encoder: records::Encoder::new(),
            decoder: records::Decoder::new(),
            protocol: protocol.map(|name| name.to_str().unwrap().to_owned()),
            first: Value::Null,
            first_in: Codec::Json,
        };
        socket.first = socket.first_frame().await;
        socket
    }

    /// Reads the first frame, which names the codec of all further ones.
    async fn first_frame(&mut self) -> Value {
        let message = self.message().await.expect("a first frame");
        let bytes = message.into_data();
        let read = |codec| Some((codec, sealane_codec::decode(codec, &bytes).ok()?));
        let (codec, value) = Codec::ALL.into_iter().find_map(read).expect("a frame of some codec");
        let agreed = value.field("codec").and_then(|name| name.as_text());
        self.first_in = codec;
        self.codec = agreed.and_then(Codec::from_name).unwrap_or(codec);
        self.read(&bytes)
    }

    /// Sends a frame in the connection's codec.
    pub(crate) async fn send(&mut self, frame: Value) {
        self.feed(frame).await;
        self.inner.flush().await.unwrap();
    }

    /// The same, to be sent together with what follows.
    pub(crate) async fn feed(&mut self, frame: Value) {
        let bytes = match self.codec {
            Codec::MsgPackRecords => {
                let plain = from_json(&frame, Codec::MsgPack);
                let mut out = Vec::new();
                self.encoder.transcode(Codec::MsgPack, &plain, &mut out).unwrap();
                out
            }
            codec => from_json(&frame, codec),
        };
        let message = match self.codec {
            Codec::Json => Message::text(String::from_utf8(bytes).unwrap()),
            _ => Message::binary(bytes),
        };
        self.inner.feed(message).await.unwrap();
    }

    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.inner.send(message).await.unwrap();
    }

    /// Writes bytes to the connection itself.
    pub(crate) async fn write_past(&mut self, bytes: &[u8]) {
        self.inner.get_mut().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn credit(&mut self, n: u64) {
        self.send(json!({"credit": n})).await;
    }

    pub(crate) async fn ack(&mut self, marks: Value) {
        self.send(json!({"ack": marks})).await;
    }

    /// The next frame.
    pub(crate) async fn frame(&mut self) -> Value {
        let message = self.message().await.expect("a frame, not an end");
        assert!(!message.is_close(), "a frame, not {message:?}");
        assert_eq!(message.is_text(), self.codec == Codec::Json);
        let bytes = message.into_data();
        self.read(&bytes)
    }

    /// The next frame, which is a delivery.
    pub(crate) async fn deliver(&mut self) -> Delivered {
        Delivered::read(self.frame().await)
    }

    /// The next deliveries.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<Delivered> {
        let mut all = Vec::new();
        while all.len() < count {
            all.push(self.deliver().await);
        }
        all
    }

    /// The frame that comes within a short time, if any does.
    pub(crate) async fn frame_soon(&mut self) -> Option<Value> {
        tokio::time::timeout(SILENCE, self.frame()).await.ok()
    }

    /// Waits until the hub has honoured all that was sent; fails if anything comes until then or
    /// within a short time.
    pub(crate) async fn is_silent(&mut self) {
        self.send_raw(Message::Ping(Bytes::new())).await;
        let next = tokio::time::timeout(PATIENCE, self.inner.next());
        let answer = next.await.expect("a pong in time").unwrap().unwrap();
        assert!(answer.is_pong(), "{answer:?}");
        assert_eq!(self.frame_soon().await, None);
    }

    /// Reads until the hub closes; whatever is delivered before is passed over.
    pub(crate) async fn ending(&mut self) -> Ending {
        let mut ending = Ending { error: name_of(&self.first), code: None };
        while let Some(message) = self.message().await {
            if let Message::Close(close) = message {
                ending.code = close.map(|close| close.code.into());
                break;
            }
            let bytes = message.into_data();
            ending.error = name_of(&self.read(&bytes)).or(ending.error);
        }
        ending
    }

    /// Closes, and waits until the hub has let go.
    pub(crate) async fn close(mut self) {
        // The hub may have closed first.
        let _ = self.inner.close(None).await;
        while self.message().await.is_some() {}
    }

    async fn message(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.inner.next());
            match next.await.expect("a frame in time")?.ok()? {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return Some(message),
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Value {
        match self.codec {
            Codec::MsgPackRecords => {
                let mut plain = Vec::new();
                self.decoder.to_plain(bytes, &mut plain).unwrap();
                to_json(Codec::MsgPack, &plain)
            }
            codec => to_json(codec, bytes),
        }
    }
}

impl Delivered {
    pub(crate) fn read(frame: Value) -> Delivered {
        let number = |key: &str| frame[key].as_u64().unwrap_or_else(|| panic!("{key} of {frame}"));
        Delivered {
            stream: frame["stream"].as_str().unwrap().to_owned(),
            offset: number("offset"),
            generation: number("generation"),
            attempt: number("attempt"),
            envelope: frame["deliver"].clone(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.envelope["id"].as_str().unwrap()
    }
}

impl Ending {
    pub(crate) fn new(error: &str, code: u16) -> Ending {
        Ending { error: Some(error.to_owned()), code: Some(code) }
    }
}

fn name_of(frame: &Value) -> Option<String> {
    frame["error"]["code"].as_str().map(str::to_owned)
}

/// The offsets of deliveries, and their attempts.
pub(crate) fn places(all: &[Delivered]) -> Vec<(u64, u64)> {
    all.iter().map(|delivered| (delivered.offset, delivered.attempt)).collect()
}

/// The offsets of deliveries.
pub(crate) fn offsets(all: &[Delivered]) -> Vec<u64> {
    all.iter().map(|delivered| delivered.offset).collect()
}
