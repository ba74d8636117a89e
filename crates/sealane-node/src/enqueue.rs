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
use sealane_protocol::{EnqueueOutcome, Enqueued, Error, StreamPosition};
use sealane_stream::{
    AppendedMessages, EnvelopeBuffer, IdempotencyKey, StreamEnqueue, StreamEnvelope,
};

use crate::access::{RequestPass, TokenRight};
use crate::app::NodeApp;
use crate::body;
use crate::fair::ReplyPlace;
use crate::refusal::HttpRefusal;
use crate::reply::{ReplyFill, accepted, answer, answer_in, place_for};

/// The name of the header that gives the scope in which a request is done once.
const SCOPE: &str = "idempotency-scope";

pub(crate) async fn one(State(app): State<Arc<NodeApp>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let result = append(&app, request, false).await;
    answer(&headers, result.map(|(_, appended)| (StatusCode::OK, write(appended, false))))
}

pub(crate) async fn batch(State(app): State<Arc<NodeApp>>, request: Request) -> Response {
    let headers = request.headers().clone();
    match append(&app, request, true).await {
        Ok((place, appended)) => {
            answer_in(place, &headers, Ok((StatusCode::OK, write(appended, true))))
        }
        Err(refusal) => answer(&headers, Err(refusal)),
    }
}

/// Bytes of an answer beside its ids, and of each id beside its own, in the longest codec.
const ANSWER_BYTES: usize = 1 << 10;
const ID_BYTES: usize = 8;

/// Appends what a request brings; also returns the room for its answer.
async fn append(
    app: &Arc<NodeApp>,
    request: Request,
    is_batch: bool,
) -> Result<(ReplyPlace, AppendedMessages), HttpRefusal> {
    let headers = request.headers().clone();
    // A request that cannot be answered is not done.
    accepted(&headers)?;
    let pass =
        request.extensions().get::<RequestPass>().cloned().ok_or(HttpRefusal::Unauthorized)?;
    // Nothing is held for who may publish nowhere.
    pass.need_to_enqueue()?;
    // A client beyond its rate is refused before its body costs memory. How much it sent is charged
    // below.
    in_time(app, &pass)?;
    let body = body::read(&app.fair, &pass, request).await?;
    // The topic stands in the body, so that the right to it can only be asked after reading.
    let asked = sealane_protocol::Enqueue::read(body.codec, &body.bytes, is_batch)?;
    // Nothing more is worked out for who may not publish there.
    pass.need(TokenRight::Publish, &asked.to)?;
    let once = EnqueueIdentity::read(&headers)?;
    let mut enqueue = read(app, &asked, body.codec, pass.owner())?;
    enqueue.key = match once {
        None => None,
        Some(EnqueueIdentity::Key(key)) => {
            // The key is bound to the token, so that no client can replay or probe another's.
            Some(IdempotencyKey::new(pass.name().as_bytes(), key, &body.bytes)?)
        }
        // Else the client that came first could say when the message is stored for all.
        Some(EnqueueIdentity::Content) if asked.delay_ms.is_some() => {
            return Err(Error::parameter("delayMs", "goes without `Idempotency-Scope`").into());
        }
        Some(EnqueueIdentity::Content) => {
            Some(IdempotencyKey::of_content(&asked.envelopes, &enqueue.envelopes))
        }
        Some(EnqueueIdentity::Each) => {
            Some(IdempotencyKey::of_each(&asked.envelopes, &enqueue.envelopes))
        }
    };
    let ids = enqueue.envelopes.iter().map(|envelope| envelope.id().len() * 6 + ID_BYTES);
    let place = place_for(app, &pass, ANSWER_BYTES + ids.sum::<usize>()).await?;
    if pass.has_token() {
        let count = enqueue.envelopes.len();
        // Messages are charged before they are stored. A request that the store refuses has cost
        // its work all the same.
        app.fair.enqueued.charge(&pass.name().to_owned(), count, Instant::now());
    }
    Ok((place, app.hub.enqueue(enqueue).await?))
}

/// The identity by which the hub recognises a repeated request, so that it is done once.
enum EnqueueIdentity<'a> {
    /// A key of the client's, which is its own.
    Key(&'a [u8]),
    /// The messages themselves, whoever brings them.
    Content,
    /// Each message by itself, whoever brings it.
    Each,
}

impl<'a> EnqueueIdentity<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Option<Self>, Error> {
        let key = headers.get("idempotency-key").map(HeaderValue::as_bytes);
        let mut scopes = headers.get_all(SCOPE).iter().map(HeaderValue::as_bytes);
        match (scopes.next(), scopes.next(), key) {
            (None, _, key) => Ok(key.map(EnqueueIdentity::Key)),
            (Some(b"stream"), None, None) => Ok(Some(EnqueueIdentity::Content)),
            (Some(b"message"), None, None) => Ok(Some(EnqueueIdentity::Each)),
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
fn in_time(app: &NodeApp, pass: &RequestPass) -> Result<(), HttpRefusal> {
    if !pass.has_token() {
        return Ok(());
    }
    let wait = app.fair.enqueued.wait(&pass.name().to_owned(), Instant::now());
    wait.map_or(Ok(()), |wait| Err(HttpRefusal::TooFast(wait)))
}

fn read(
    app: &NodeApp,
    asked: &sealane_protocol::Enqueue<'_>,
    codec: Codec,
    owner: Arc<str>,
) -> Result<StreamEnqueue, HttpRefusal> {
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
    let mut buffer = EnvelopeBuffer::expecting(envelopes.iter().map(|raw| raw.len()));
    let mut envelopes = SCRATCH.with_borrow_mut(|scratch| {
        let ids = app.hub.ids();
        let read = |raw| StreamEnvelope::read_into(&mut buffer, scratch, ids, codec, raw);
        envelopes.iter().copied().map(read).collect::<Result<Vec<_>, _>>()
    })?;
    if buffer.is_loose() {
        envelopes.iter_mut().for_each(StreamEnvelope::own);
    }
    let (topic, expect, delay_ms) = (to.clone(), *expect, *delay_ms);
    Ok(StreamEnqueue { topic, envelopes, expect, delay_ms, key: None, owner })
}

fn write(appended: AppendedMessages, is_batch: bool) -> ReplyFill {
    Box::new(move |writer| {
        let AppendedMessages { stream, ids, offset, generation, due_ms, level, replayed } =
            appended;
        let at = EnqueueOutcome::At(StreamPosition { generation, offset });
        let enqueued = Enqueued {
            ids: ids.iter().map(|id| as_text(id).into()).collect(),
            stream,
            outcome: due_ms.map_or(at, EnqueueOutcome::Due),
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
