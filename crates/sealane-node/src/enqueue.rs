//! `POST /v1/enqueue` and `/v1/enqueue/batch`.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use sealane_codec::{Codec, Transcoder};
use sealane_protocol::limits::{MAX_BATCH_MESSAGES, MAX_ENVELOPE_BYTES};
use sealane_protocol::{Enqueued, Error, Outcome, Position};
use sealane_stream::{Appended, Enqueue, Envelope, IdempotencyKey};

use crate::access::{Pass, Right};
use crate::app::App;
use crate::body;
use crate::refusal::Refusal;
use crate::reply::{Fill, accepted, answer};

/// The name of the header that gives the scope in which a request is done once.
const SCOPE: &str = "idempotency-scope";

pub(crate) async fn one(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let result = append(&app, request, false).await;
    answer(&headers, result.map(|appended| (StatusCode::OK, write(appended, false))))
}

pub(crate) async fn batch(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let result = append(&app, request, true).await;
    answer(&headers, result.map(|appended| (StatusCode::OK, write(appended, true))))
}

async fn append(app: &App, request: Request, is_batch: bool) -> Result<Appended, Refusal> {
    let headers = request.headers().clone();
    // A request that cannot be answered is not done.
    accepted(&headers)?;
    let pass = request.extensions().get::<Pass>().cloned().ok_or(Refusal::Unauthorized)?;
    // Nothing is held for who may publish nowhere.
    pass.need_to_enqueue()?;
    // A client beyond its rate is refused before its body costs memory. How much it sent is charged
    // below.
    in_time(app, &pass)?;
    let body = body::read(&app.fair, &pass, request).await?;
    // The topic stands in the body, so that the right to it can only be asked after reading.
    let asked = sealane_protocol::Enqueue::read(body.codec, &body.bytes, is_batch)?;
    // Nothing more is worked out for who may not publish there.
    pass.need(Right::Publish, &asked.to)?;
    let once = Once::read(&headers)?;
    let mut enqueue = read(app, &asked, body.codec)?;
    enqueue.key = match once {
        None => None,
        Some(Once::Key(key)) => {
            // The key is bound to the token, so that no client can replay or probe another's.
            Some(IdempotencyKey::new(pass.name().as_bytes(), key, &body.bytes)?)
        }
        // Else the client that came first could say when the message is stored for all.
        Some(Once::Content) if asked.delay_ms.is_some() => {
            return Err(Error::parameter("delayMs", "goes without `Idempotency-Scope`").into());
        }
        Some(Once::Content) => {
            Some(IdempotencyKey::of_content(&asked.envelopes, &enqueue.envelopes))
        }
        Some(Once::Each) => Some(IdempotencyKey::of_each(&asked.envelopes, &enqueue.envelopes)),
    };
    if pass.has_token() {
        let count = enqueue.envelopes.len();
        // Messages are charged before they are stored. A request that the store refuses has cost
        // its work all the same.
        app.fair.enqueued.charge(&pass.name().to_owned(), count, Instant::now());
    }
    Ok(app.hub.enqueue(enqueue).await?)
}

/// The identity by which the hub recognises a repeated request, so that it is done once.
enum Once<'a> {
    /// A key of the client's, which is its own.
    Key(&'a [u8]),
    /// The messages themselves, whoever brings them.
    Content,
    /// Each message by itself, whoever brings it.
    Each,
}

impl<'a> Once<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Option<Self>, Error> {
        let key = headers.get("idempotency-key").map(HeaderValue::as_bytes);
        let mut scopes = headers.get_all(SCOPE).iter().map(HeaderValue::as_bytes);
        match (scopes.next(), scopes.next(), key) {
            (None, _, key) => Ok(key.map(Once::Key)),
            (Some(b"stream"), None, None) => Ok(Some(Once::Content)),
            (Some(b"message"), None, None) => Ok(Some(Once::Each)),
            (Some(b"stream" | b"message"), None, Some(_)) => {
                Err(Error::parameter("Idempotency-Scope", "goes without `Idempotency-Key`"))
            }
            _ => Err(Error::parameter(
                "Idempotency-Scope",
                "is not `stream` or `message`, given once",
            )),
        }
    }
}

/// Refuses who has enqueued too much lately, before the body is read.
fn in_time(app: &App, pass: &Pass) -> Result<(), Refusal> {
    if !pass.has_token() {
        return Ok(());
    }
    let wait = app.fair.enqueued.wait(&pass.name().to_owned(), Instant::now());
    wait.map_or(Ok(()), |wait| Err(Refusal::TooFast(wait)))
}

fn read(
    app: &App,
    asked: &sealane_protocol::Enqueue<'_>,
    codec: Codec,
) -> Result<Enqueue, Refusal> {
    let sealane_protocol::Enqueue { to, envelopes, expect, delay_ms, .. } = asked;
    if envelopes.len() > MAX_BATCH_MESSAGES {
        let limit = MAX_BATCH_MESSAGES as u64;
        return Err(Error::TooMany { what: "messages in a batch", limit }.into());
    }
    if envelopes.iter().any(|raw| raw.len() > MAX_ENVELOPE_BYTES) {
        return Err(Error::TooLarge { what: "envelope", limit: MAX_ENVELOPE_BYTES }.into());
    }
    // The transcoder's buffers are kept for each thread. A request would otherwise allocate and
    // grow them anew.
    let envelopes = SCRATCH.with_borrow_mut(|scratch| {
        let read = |raw| Envelope::read(scratch, app.hub.ids(), codec, raw);
        envelopes.iter().copied().map(read).collect::<Result<Vec<_>, _>>()
    })?;
    let (topic, expect, delay_ms) = (to.clone(), *expect, *delay_ms);
    Ok(Enqueue { topic, envelopes, expect, delay_ms, key: None })
}

fn write(appended: Appended, is_batch: bool) -> Fill {
    Box::new(move |writer| {
        let Appended { stream, ids, offset, generation, due_ms, level, replayed } = appended;
        let at = Outcome::At(Position { generation, offset });
        let enqueued = Enqueued {
            ids: ids.iter().map(|id| as_text(id).into()).collect(),
            stream,
            outcome: due_ms.map_or(at, Outcome::Due),
            level: level.into(),
            replayed,
        };
        enqueued.write(is_batch, writer);
    })
}

fn as_text(id: &Bytes) -> &str {
    std::str::from_utf8(id).unwrap_or_default()
}

thread_local! {
    static SCRATCH: RefCell<Transcoder> = RefCell::new(Transcoder::new());
}
