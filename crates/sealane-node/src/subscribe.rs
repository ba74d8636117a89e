//! `GET /v1/subscribe`: who reads, in which codec; then the connection takes over.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State};
use axum::http::header::{ACCEPT, SEC_WEBSOCKET_PROTOCOL};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use sealane_codec::{Codec, negotiate};
use sealane_message::Pattern;
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{Error, Start, Subscribe};
use sealane_stream::Who;

use crate::access::{self, Pass};
use crate::app::App;
use crate::connection;
use crate::query;
use crate::refusal::Refusal;
use crate::reply::answer;

/// Bytes that are read from a connection at once; it is held as long as the connection lives.
const READ_BUFFER_BYTES: usize = 4096;

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) pattern: Pattern,
    pub(crate) who: Who,
    pub(crate) batch: usize,
    pub(crate) heartbeat: Option<Duration>,
}

pub(crate) async fn subscribe(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    query: RawQuery,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return answer(&headers, Err(Refusal::UpgradeRequired));
    };
    let Some(alive) = app.alive().filter(|_| !app.is_stopping()) else {
        return answer(&headers, Err(Error::Draining.into()));
    };
    let mut upgrade = upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(MAX_CLIENT_FRAME_BYTES)
        .max_frame_size(MAX_CLIENT_FRAME_BYTES);
    let parameters = query::read(query);
    let codec = codec(parameters.as_deref().unwrap_or_default(), &headers);
    echo(&mut upgrade, &headers, &codec);
    // What is wrong with a subscription is said on the socket.
    let request = codec.and_then(|codec| {
        let asked = Subscribe::read(parameters?)?;
        pass.need_to_read_all(&asked.pattern)?;
        let who = who(&asked, pass.name());
        let Subscribe { pattern, batch, heartbeat_ms, .. } = asked;
        let heartbeat = heartbeat_ms.map(Duration::from_millis);
        Ok((codec, Request { pattern, who, batch, heartbeat }))
    });
    upgrade.on_upgrade(move |socket| async move {
        connection::serve(app, socket, pass, request).await;
        drop(alive);
    })
}

/// The first that is present of `?codec=`, the offered sub-protocols, `Accept`; none: JSON.
fn codec(parameters: &[(String, String)], headers: &HeaderMap) -> Result<Codec, Refusal> {
    let unknown = |unknown| Refusal::Codec(StatusCode::NOT_ACCEPTABLE, unknown);
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
fn echo(upgrade: &mut WebSocketUpgrade, headers: &HeaderMap, codec: &Result<Codec, Refusal>) {
    let said = match codec {
        Ok(codec) => codecs(headers).find(|name| *name == codec.name()),
        Err(_) => codecs(headers).next(),
    };
    // A browser that offers nothing but its token takes no other answer.
    let said = said.or_else(|| offered(headers).next());
    if let Some(said) = said.and_then(|name| HeaderValue::from_str(name).ok()) {
        upgrade.set_selected_protocol(said);
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

/// Who reads, with the token `owner`.
fn who(asked: &Subscribe, owner: &str) -> Who {
    let Subscribe { start, generation, consumer, change, .. } = asked;
    match start {
        Some(start) if asked.is_reader() => Who::Reader { start: *start, generation: *generation },
        _ => Who::Member {
            name: consumer.clone().unwrap_or_default(),
            owner: owner.to_owned(),
            start: start.unwrap_or(Start::First),
            change: *change,
        },
    }
}
