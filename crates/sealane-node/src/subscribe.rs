//! `GET /v1/subscribe`: who reads, in which codec; then the connection takes over.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use sealane_codec::Codec;
use sealane_message::Pattern;
use sealane_protocol::limits::MAX_CLIENT_FRAME_BYTES;
use sealane_protocol::{ReadStart, SubscribeQuery};
use sealane_stream::SubscriptionReader;

use crate::access::{AccessTokens, RequestPass};
use crate::connection;
use crate::handshake::SocketSizes;
use crate::refusal::HttpRefusal;
use crate::upgrade::{SocketOpening, SocketParameters};

/// The frames that clients of a subscription send are short.
const READ_BUFFER_BYTES: usize = 4096;

/// The request of a client.
#[derive(Debug)]
pub(crate) struct SubscribeRequest {
    pub(crate) pattern: Pattern,
    pub(crate) who: SubscriptionReader,
    pub(crate) codec: Codec,
    pub(crate) batch: usize,
    pub(crate) heartbeat: Option<Duration>,
}

pub(crate) async fn subscribe(opening: SocketOpening) -> Response {
    let sizes = SocketSizes {
        read_buffer_bytes: READ_BUFFER_BYTES,
        max_frame_bytes: MAX_CLIENT_FRAME_BYTES,
    };
    let access = opening.access();
    opening.open(sizes, |parameters, pass| ask(parameters, pass, access), connection::serve)
}

/// The request, where the stream may be read.
fn ask(
    parameters: SocketParameters,
    pass: &RequestPass,
    access: Arc<AccessTokens>,
) -> Result<SubscribeRequest, HttpRefusal> {
    let SocketParameters { query, codec } = parameters;
    let asked = SubscribeQuery::read(query)?;
    // A pattern is granted whole or not at all. Passing over streams in silence would look like an
    // empty hub.
    pass.need_to_read_all(&asked.pattern)?;
    let who = who(&asked, pass, access);
    let SubscribeQuery { pattern, batch, heartbeat_ms, .. } = asked;
    let heartbeat = heartbeat_ms.map(Duration::from_millis);
    Ok(SubscribeRequest { pattern, who, codec, batch, heartbeat })
}

/// The reader of a subscription.
fn who(
    asked: &SubscribeQuery,
    pass: &RequestPass,
    access: Arc<AccessTokens>,
) -> SubscriptionReader {
    let SubscribeQuery { start, generation, consumer, change, .. } = asked;
    match start {
        Some(start) if asked.is_reader() => {
            SubscriptionReader::Reader { start: *start, generation: *generation }
        }
        _ => SubscriptionReader::Member {
            name: consumer.clone().unwrap_or_default(),
            owner: pass.name().to_owned(),
            start: start.unwrap_or(ReadStart::First),
            change: *change,
            steers: pass.steers(access),
        },
    }
}
