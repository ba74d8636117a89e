//! `GET /v1/subscribe`: who reads, in which codec; then the connection takes over.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use sealane_codec::Codec;
use sealane_message::Pattern;
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{Error, Start, Subscribe};
use sealane_stream::Who;

use crate::access::Pass;
use crate::app::App;
use crate::connection;
use crate::query;
use crate::refusal::Refusal;
use crate::reply::answer;
use crate::upgrade;

/// Bytes that are read from a connection at once; it is held as long as the connection lives.
const READ_BUFFER_BYTES: usize = 4096;

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) pattern: Pattern,
    pub(crate) who: Who,
    pub(crate) codec: Codec,
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
    let Ok(mut upgrade) = upgrade else {
        return answer(&headers, Err(Refusal::UpgradeRequired));
    };
    let Some(alive) = app.alive().filter(|_| !app.is_stopping()) else {
        return answer(&headers, Err(Error::Draining.into()));
    };
    let parameters = query::read(query);
    let codec = upgrade::codec(parameters.as_deref().unwrap_or_default(), &headers);
    upgrade::echo(&mut upgrade, &headers, &codec);
    let told_in = *codec.as_ref().unwrap_or(&Codec::Json);
    let asked = codec.and_then(|codec| ask(parameters?, codec, &pass));
    let (request, served) = match asked.and_then(|asked| Ok((asked, app.serving.enter()?))) {
        Ok(granted) => granted,
        Err(refusal) => return upgrade::tell(&app, upgrade, &headers, told_in, refusal),
    };
    let upgrade = upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(MAX_CLIENT_FRAME_BYTES)
        .max_frame_size(MAX_CLIENT_FRAME_BYTES);
    upgrade.on_upgrade(move |socket| async move {
        connection::serve(app, socket, pass, request).await;
        // Held until the connection has ended, its farewell included.
        drop((served, alive));
    })
}

/// What is asked for, where it may be read.
fn ask(parameters: Vec<(String, String)>, codec: Codec, pass: &Pass) -> Result<Request, Refusal> {
    let asked = Subscribe::read(parameters)?;
    pass.need_to_read_all(&asked.pattern)?;
    let who = who(&asked, pass.name());
    let Subscribe { pattern, batch, heartbeat_ms, .. } = asked;
    let heartbeat = heartbeat_ms.map(Duration::from_millis);
    Ok(Request { pattern, who, codec, batch, heartbeat })
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
