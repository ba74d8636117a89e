//! The upgrade to a WebSocket: what is asked for, which codec is agreed on, and how a refusal is
//! told.
//!
//! A browser shows a page nothing of an upgrade that HTTP refuses. A refused socket is therefore
//! opened, told why, and closed (spec/hub.md §4). It is read no further and serves nothing.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, RawQuery, Request};
use axum::http::header::{ACCEPT, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sealane_codec::{Codec, negotiate};
use sealane_protocol::Error;
use tokio::sync::Semaphore;

use crate::access::{self, AccessTokens, RequestPass};
use crate::app::NodeApp;
use crate::connection;
use crate::handshake::{SocketHandshake, SocketSizes, WebSocket};
use crate::limits::{MAX_REFUSED_SOCKET_BYTES, MAX_TOLD_REFUSALS};
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{RefusalName, answer};

/// The places for refused sockets that are being told why.
pub(crate) struct RefusalSlots(Arc<Semaphore>);

impl Default for RefusalSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_TOLD_REFUSALS)))
    }
}

/// A request for a WebSocket that is served, by whoever may be here.
pub(crate) struct SocketOpening {
    app: Arc<NodeApp>,
    pass: RequestPass,
    query: RawQuery,
    headers: HeaderMap,
    handshake: SocketHandshake,
}

/// The parameters of a request for a WebSocket.
pub(crate) struct SocketParameters {
    pub(crate) query: Vec<(String, String)>,
    pub(crate) codec: Codec,
}

impl FromRequestParts<Arc<NodeApp>> for SocketOpening {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<NodeApp>) -> Result<Self, Response> {
        let pass = Extension::<RequestPass>::from_request_parts(parts, app).await;
        let Extension(pass) = pass.map_err(IntoResponse::into_response)?;
        let Some(handshake) = SocketHandshake::read(parts) else {
            return Err(answer(&parts.headers, Err(HttpRefusal::UpgradeRequired)));
        };
        let query = RawQuery(parts.uri.query().map(str::to_owned));
        let (app, headers) = (app.clone(), parts.headers.clone());
        Ok(Self { app, pass, query, headers, handshake })
    }
}

impl SocketOpening {
    /// The tokens that the sender is known by.
    pub(crate) fn access(&self) -> Arc<AccessTokens> {
        self.app.access.clone()
    }

    /// Opens the socket for what `ask` makes of the parameters, and has it served; where that is
    /// refused the client is told so. The socket counts among those that are served, and the node
    /// waits for it, until its farewell has been said.
    pub(crate) fn open<R, S>(
        self,
        sizes: SocketSizes,
        ask: impl FnOnce(SocketParameters, &RequestPass) -> Result<R, HttpRefusal>,
        serve: impl FnOnce(Arc<NodeApp>, WebSocket, RequestPass, R) -> S + Send + 'static,
    ) -> Response
    where
        R: Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let Self { app, pass, query, headers, mut handshake } = self;
        // The node waits for each hold that it gave. None is given once it stops.
        let Some(alive) = app.alive().filter(|_| !app.is_stopping()) else {
            return answer(&headers, Err(Error::Draining.into()));
        };
        let query = query::read(query);
        let codec = codec(query.as_deref().unwrap_or_default(), &headers);
        echo(&mut handshake, &headers, &codec);
        let told_in = *codec.as_ref().unwrap_or(&Codec::Json);
        let asked = codec.and_then(|codec| ask(SocketParameters { query: query?, codec }, &pass));
        // The place is taken last, so that a request that is wrong anyway uses none.
        let (request, served) = match asked.and_then(|asked| Ok((asked, app.serving.enter()?))) {
            Ok(granted) => granted,
            Err(refusal) => return tell(&app, handshake, &headers, told_in, refusal),
        };
        handshake.accept(sizes, move |socket| async move {
            serve(app, socket, pass, request).await;
            // Both are held until the farewell was said, or the node could end before it.
            drop((served, alive));
        })
    }
}

/// Refuses a request that asks for a WebSocket, or should have asked for one.
pub(crate) async fn refuse(app: &Arc<NodeApp>, request: Request, refusal: HttpRefusal) -> Response {
    let (mut parts, _) = request.into_parts();
    let Some(mut handshake) = SocketHandshake::read(&mut parts) else {
        return answer(&parts.headers, Err(refusal));
    };
    let parameters = query::read(RawQuery(parts.uri.query().map(str::to_owned)));
    let codec = codec(&parameters.unwrap_or_default(), &parts.headers);
    echo(&mut handshake, &parts.headers, &codec);
    tell(app, handshake, &parts.headers, codec.unwrap_or(Codec::Json), refusal)
}

/// Opens a socket only to say on it why it is refused. Where no place for that is left, or the
/// node stops, the refusal is an answer of HTTP.
fn tell(
    app: &Arc<NodeApp>,
    handshake: SocketHandshake,
    headers: &HeaderMap,
    codec: Codec,
    refusal: HttpRefusal,
) -> Response {
    // Refused sockets cost a task each. A flood of bad tokens gets plain HTTP beyond this bound.
    let place = app.telling.0.clone().try_acquire_owned();
    let (Ok(place), Some(alive)) = (place, app.alive()) else {
        return answer(headers, Err(refusal));
    };
    let sizes = SocketSizes {
        read_buffer_bytes: MAX_REFUSED_SOCKET_BYTES,
        max_frame_bytes: MAX_REFUSED_SOCKET_BYTES,
    };
    let reason = RefusalName(refusal.info().name);
    let mut response = handshake.accept(sizes, move |socket| async move {
        connection::refuse(socket, codec, refusal).await;
        drop((place, alive));
    });
    // The refusal is counted now, whether the client waits for the upgrade or not.
    response.extensions_mut().insert(reason);
    response
}

/// The codec of a socket: the first that is present of `?codec=`, the offered sub-protocols,
/// `Accept`; none: JSON.
fn codec(parameters: &[(String, String)], headers: &HeaderMap) -> Result<Codec, HttpRefusal> {
    let unknown = |unknown| HttpRefusal::Codec(StatusCode::NOT_ACCEPTABLE, unknown);
    if let Some((_, name)) = parameters.iter().find(|(key, _)| key == "codec") {
        let codec = negotiate::query(name).map_err(unknown)?;
        // A browser ends a connection that answers none of the sub-protocols that it offered.
        let mut offered = codecs(headers).peekable();
        if offered.peek().is_some() && !offered.any(|name| name == codec.name()) {
            let cause = "is not among the sub-protocols that are offered";
            return Err(Error::parameter("codec", cause).into());
        }
        return Ok(codec);
    }
    if let Some(codec) = negotiate::subprotocols(codecs(headers)).map_err(unknown)? {
        return Ok(codec);
    }
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let codec = accept.map(|accept| negotiate::accept(accept).map_err(unknown)).transpose()?;
    Ok(codec.flatten().unwrap_or(Codec::Json))
}

/// Says the agreed codec where sub-protocols were offered, if it is one of them. Of a refused
/// offer the first is said, for browsers to open the connection and be told why.
fn echo(handshake: &mut SocketHandshake, headers: &HeaderMap, codec: &Result<Codec, HttpRefusal>) {
    let said = match codec {
        // RFC 6455 §4.2.2: the answer is one of the offered sub-protocols, or none.
        Ok(codec) => codecs(headers).find(|name| *name == codec.name()),
        Err(_) => codecs(headers).next(),
    };
    // A browser that offers nothing but its token takes no other answer.
    let said = said.or_else(|| offered(headers).next());
    if let Some(said) = said.and_then(|name| HeaderValue::from_str(name).ok()) {
        handshake.choose(said);
    }
}

/// The offered sub-protocols but those that bring a token.
fn codecs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    offered(headers).filter(|name| !access::is_token(name))
}

/// The offered sub-protocols in the client's order, which the upgrade itself does not keep.
fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let names = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}
