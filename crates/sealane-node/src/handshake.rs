//! The handshake of a WebSocket (RFC 6455 §4.2), and the connection that HTTP leaves behind it.

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::limits::MAX_LIBRARY_ANSWERS_BYTES;
use crate::outlet::SocketOutlet;
use crate::socket::HubSocket;

/// One WebSocket.
pub(crate) type WebSocket = WebSocketStream<SocketOutlet<HubSocket>>;

/// The sizes of a socket's buffer and frames.
#[derive(Clone, Copy)]
pub(crate) struct SocketSizes {
    /// Bytes that are read from the connection at once. They are held as long as it lives, and the
    /// WebSocket library fills them with zeros whenever it looks whether there is more.
    pub(crate) read_buffer_bytes: usize,
    pub(crate) max_frame_bytes: usize,
}

/// A client's part of the handshake.
pub(crate) struct SocketHandshake {
    /// Shows that we have understood it.
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
    connection: OnUpgrade,
}

impl SocketHandshake {
    /// Reads what a request says of it; none where it is no request for a WebSocket.
    pub(crate) fn read(parts: &mut Parts) -> Option<Self> {
        let headers = &parts.headers;
        let is_asked = parts.method == Method::GET
            && lists(headers, &CONNECTION, "upgrade")
            && lists(headers, &UPGRADE, "websocket")
            && headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
        let key = keys.next().filter(|key| is_asked && is_key(key.as_bytes()))?;
        // Of two keys a proxy may have taken the other one for the request's.
        if keys.next().is_some() {
            return None;
        }
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
        // hyper hands over a connection only if it agreed to an upgrade. Without this there is
        // nothing to serve.
        let connection = parts.extensions.remove::<OnUpgrade>()?;
        Some(Self { accept, protocol: None, connection })
    }

    /// Answers with this one of the sub-protocols that are offered.
    pub(crate) fn choose(&mut self, protocol: HeaderValue) {
        self.protocol = Some(protocol);
    }

    /// Accepts; has the socket served once the answer has left.
    pub(crate) fn accept<S>(
        self,
        sizes: SocketSizes,
        serve: impl FnOnce(WebSocket) -> S + Send + 'static,
    ) -> Response
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let Self { accept, protocol, connection } = self;
        // The answer has to leave before the connection is free, so that serving waits in a task of
        // its own.
        tokio::spawn(async move {
            // A client that does not wait for the answer has gone.
            let Ok(upgraded) = connection.await else { return };
            if let Some(socket) = open(upgraded, sizes).await {
                serve(socket).await;
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// Whether a text is a key of a handshake: 16 bytes in base64 (RFC 6455 §4.1).
fn is_key(text: &[u8]) -> bool {
    let bytes = base64_simd::STANDARD.decode_to_vec(text);
    bytes.is_ok_and(|bytes| bytes.len() == KEY_BYTES)
}

/// The bytes of a handshake's key.
const KEY_BYTES: usize = 16;

/// The connection as it was accepted, and what came on it behind the request.
async fn open(upgraded: Upgraded, sizes: SocketSizes) -> Option<WebSocket> {
    let parts = upgraded.downcast::<TokioIo<HubSocket>>();
    debug_assert!(parts.is_ok(), "a connection that the port has not accepted");
    let parts = parts.ok()?;
    let SocketSizes { read_buffer_bytes, max_frame_bytes } = sizes;
    // The library must hold nothing back: shared frames pass it by, and order would be lost.
    let config = WebSocketConfig::default()
        .read_buffer_size(read_buffer_bytes)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_LIBRARY_ANSWERS_BYTES)
        .max_message_size(Some(max_frame_bytes))
        .max_frame_size(Some(max_frame_bytes));
    // A client may send its first frame with the request. hyper has read that already.
    let (outlet, begun) = (SocketOutlet::new(parts.io.into_inner()), parts.read_buf.to_vec());
    let socket = WebSocketStream::from_partially_read(outlet, begun, Role::Server, Some(config));
    Some(socket.await)
}

/// Whether a header, which is a list, has this word.
fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lists = headers.get_all(name).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    /// The example of RFC 6455 §1.3, with these fields in place of its own.
    fn read(method: &str, changed: &[(&'static str, &'static str)]) -> Option<SocketHandshake> {
        let fields = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut request = Request::builder().method(method).body(()).unwrap();
        let all = fields.iter().filter(|(name, _)| changed.iter().all(|(other, _)| name != other));
        for (name, value) in all.chain(changed.iter().filter(|(_, value)| !value.is_empty())) {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        let connection = hyper::upgrade::on(&mut request);
        request.extensions_mut().insert(connection);
        SocketHandshake::read(&mut request.into_parts().0)
    }

    #[tokio::test]
    async fn a_handshake_is_answered_as_the_standard_has_it() {
        let mut handshake = read("GET", &[]).unwrap();
        handshake.choose(HeaderValue::from_static("json"));
        let sizes = SocketSizes { read_buffer_bytes: 1024, max_frame_bytes: 1024 };
        let response = handshake.accept(sizes, |_| async {});
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let field = |name| response.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(field(SEC_WEBSOCKET_ACCEPT), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!((field(CONNECTION), field(UPGRADE)), ("upgrade", "websocket"));
        assert_eq!(field(SEC_WEBSOCKET_PROTOCOL), "json");
        assert!(read("GET", &[("upgrade", "h2c, WebSocket")]).is_some());
    }

    #[test]
    fn whoever_does_not_ask_for_a_socket_gets_none() {
        assert!(read("POST", &[]).is_none());
        for (name, value) in [
            ("connection", "keep-alive"),
            ("connection", "upgrades"),
            ("connection", ""),
            ("upgrade", "h2c"),
            ("upgrade", ""),
            ("sec-websocket-version", "8"),
            ("sec-websocket-version", ""),
            ("sec-websocket-key", ""),
        ] {
            assert!(read("GET", &[(name, value)]).is_none(), "{name}: {value}");
        }
    }
}
