//! `GET /v1/subscribe`: who reads, in which codec; then the connection takes over.

use std::time::Duration;

use axum::response::Response;
use sealane_codec::Codec;
use sealane_message::Pattern;
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{Start, Subscribe};
use sealane_stream::Who;

use crate::access::Pass;
use crate::connection;
use crate::handshake::Sizes;
use crate::refusal::Refusal;
use crate::upgrade::{Opening, Parameters};

/// The frames that clients of a subscription send are short.
const READ_BUFFER_BYTES: usize = 4096;

/// The request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) pattern: Pattern,
    pub(crate) who: Who,
    pub(crate) codec: Codec,
    pub(crate) batch: usize,
    pub(crate) heartbeat: Option<Duration>,
}

pub(crate) async fn subscribe(opening: Opening) -> Response {
    let sizes =
        Sizes { read_buffer_bytes: READ_BUFFER_BYTES, max_frame_bytes: MAX_CLIENT_FRAME_BYTES };
    opening.open(sizes, ask, connection::serve)
}

/// The request, where the stream may be read.
fn ask(parameters: Parameters, pass: &Pass) -> Result<Request, Refusal> {
    let Parameters { query, codec } = parameters;
    let asked = Subscribe::read(query)?;
    // A pattern is granted whole or not at all. Passing over streams in silence would look like an
    // empty hub.
    pass.need_to_read_all(&asked.pattern)?;
    let who = who(&asked, pass.name());
    let Subscribe { pattern, batch, heartbeat_ms, .. } = asked;
    let heartbeat = heartbeat_ms.map(Duration::from_millis);
    Ok(Request { pattern, who, codec, batch, heartbeat })
}

/// The reader of a subscription, with the token `owner`.
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
