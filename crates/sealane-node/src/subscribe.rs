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
use sealane_message::limits::{
    MAX_CLIENT_FRAME_BYTES, MAX_CONSUMER_NAME_BYTES, MAX_DELIVERY_BATCH, MAX_IN_FLIGHT,
};
use sealane_stream::{ConsumerChange, Error, From, Who};

use crate::access::{self, Pass, Right};
use crate::connection;
use crate::query;
use crate::refusal::Refusal;
use crate::reply::answer;
use crate::routes::App;
use crate::streams::read_from;

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
        let mut request = read(parameters?)?;
        if let Who::Member { owner, .. } = &mut request.who {
            *owner = pass.name().to_owned();
        }
        pass.need_all(Right::Read, &request.pattern)?;
        Ok((codec, request))
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

fn read(parameters: Vec<(String, String)>) -> Result<Request, Refusal> {
    let (mut pattern, mut from, mut generation, mut consumer) = (None, None, None, None);
    let (mut batch, mut heartbeat, mut change) = (1, None, ConsumerChange::default());
    for (name, value) in parameters {
        match name.as_str() {
            "codec" => {}
            "stream" => pattern = Some(value.parse::<Pattern>().map_err(Error::from)?),
            "from" => from = Some(read_from(&value)?),
            "generation" => generation = Some(number("generation", &value, 0, u64::MAX)?),
            "consumer" => consumer = Some(value),
            "batch" => batch = number("batch", &value, 1, MAX_DELIVERY_BATCH as u64)? as usize,
            "heartbeat_ms" => {
                let ms = number("heartbeat_ms", &value, 1000, 3_600_000)?;
                heartbeat = Some(Duration::from_millis(ms));
            }
            "max_in_flight" => {
                let max = number("max_in_flight", &value, 1, MAX_IN_FLIGHT as u64)?;
                change.max_in_flight = Some(max as u32);
            }
            "ack_wait_ms" => {
                change.ack_wait_ms = Some(number("ack_wait_ms", &value, 100, 86_400_000)?);
            }
            "max_attempts" => {
                change.max_attempts = Some(number("max_attempts", &value, 0, 1_000_000)? as u32);
            }
            _ => return Err(Error::parameter(name, "is no parameter of a subscription").into()),
        }
    }
    let pattern = pattern.ok_or_else(|| Error::parameter("stream", "is missing"))?;
    let who = who(from, generation, consumer, change)?;
    Ok(Request { pattern, who, batch, heartbeat })
}

fn who(
    from: Option<From>,
    generation: Option<u64>,
    consumer: Option<String>,
    change: ConsumerChange,
) -> Result<Who, Error> {
    match (consumer, from) {
        (Some(name), from) => {
            let name = consumer_name(name)?;
            Ok(member(name, from.unwrap_or(From::First), change))
        }
        (None, Some(_)) if change != ConsumerChange::default() => {
            let cause = "and ack_wait_ms, max_attempts are for consumers";
            Err(Error::parameter("max_in_flight", cause))
        }
        (None, Some(from)) => Ok(Who::Reader { from, generation }),
        (None, None) => Ok(member(String::new(), From::First, change)),
    }
}

/// A member of a consumer, whose token is named once it is known.
fn member(name: String, from: From, change: ConsumerChange) -> Who {
    Who::Member { name, owner: String::new(), from, change }
}

/// A name that a consumer may have: as in topics, no character that a terminal obeys.
fn consumer_name(name: String) -> Result<String, Error> {
    if name.is_empty() || name.len() > MAX_CONSUMER_NAME_BYTES {
        return Err(Error::parameter("consumer", "is not 1 to 64 bytes"));
    }
    if name.contains(char::is_control) {
        return Err(Error::parameter("consumer", "has a control character"));
    }
    Ok(name)
}

fn number(name: &'static str, text: &str, min: u64, max: u64) -> Result<u64, Error> {
    let number = text.parse().ok().filter(|n| (min..=max).contains(n));
    number.ok_or_else(|| Error::parameter(name, "is not an integer within its bounds"))
}
