//! `POST /v1/enqueue` and `/v1/enqueue/batch`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use sealane_codec::{Codec, CodecError, Transcoder, Writer};
use sealane_message::limits::{MAX_BATCH_MESSAGES, MAX_ENVELOPE_BYTES};
use sealane_stream::{Appended, Enqueue, Envelope, Error, IdempotencyKey};

use crate::access::{Pass, Right};
use crate::body;
use crate::refusal::Refusal;
use crate::reply::{Fill, accepted, answer};
use crate::routes::App;

/// The bodies of requests, as they are shown to whoever sent another one.
const ONE: &str = r#"{"to": TOPIC, "envelope": {…}}, with "delayMs" or "expect" if you like"#;
const BATCH: &str = r#"{"to": TOPIC, "envelopes": [{…}, …]}, with "expect" if you like"#;

pub(crate) async fn one(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let result = append(&app, request, false).await;
    answer(&headers, result.map(|appended| (StatusCode::OK, write_one(appended))))
}

pub(crate) async fn batch(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let result = append(&app, request, true).await;
    answer(&headers, result.map(|appended| (StatusCode::OK, write_batch(appended))))
}

async fn append(app: &App, request: Request, batch: bool) -> Result<Appended, Refusal> {
    let headers = request.headers().clone();
    // What cannot be answered is not done.
    accepted(&headers)?;
    let pass = request.extensions().get::<Pass>().cloned().ok_or(Refusal::Unauthorized)?;
    // Nothing is held for who may publish nowhere.
    pass.need_any(Right::Publish)?;
    in_time(app, &pass)?;
    let body = body::read(&app.fair, &pass, request).await?;
    let enqueue = read(app, &pass, body.codec, &body.bytes, &headers, batch)?;
    if pass.has_token() {
        let count = enqueue.envelopes.len();
        app.fair.enqueued.charge(&pass.name().to_owned(), count, Instant::now());
    }
    Ok(app.hub.enqueue(enqueue).await?)
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
    pass: &Pass,
    codec: Codec,
    body: &Bytes,
    headers: &HeaderMap,
    batch: bool,
) -> Result<Enqueue, Refusal> {
    let name = codec.name();
    let decode = |cause| match cause {
        // Around an envelope that is within its limits there is nothing deep or large.
        CodecError::TooDeep { .. } => Error::InvalidEnvelope("is nested too deep"),
        cause => Error::Decode { codec: name, cause },
    };
    let (mut to, mut raw, mut delay_ms, mut expect) = (None, None, None, None);
    let content = if batch { "envelopes" } else { "envelope" };
    for (key, value) in sealane_codec::fields(codec, body).map_err(decode)? {
        match key.as_ref() {
            "to" => to = Some(sealane_codec::read_text(codec, value).map_err(decode)?),
            "delayMs" if !batch => delay_ms = Some(number(codec, value, "delayMs")?),
            "expect" => expect = Some(number(codec, value, "expect")?),
            key if key == content => raw = Some(value),
            key => {
                let expected = if batch { BATCH } else { ONE };
                return Err(unknown(key, expected).into());
            }
        }
    }
    let to: Cow<'_, str> = to.ok_or_else(|| Error::parameter("to", "is missing"))?;
    let topic = to.parse().map_err(Error::from)?;
    pass.need(Right::Publish, &topic)?;
    let raw = raw.ok_or_else(|| Error::parameter(content, "is missing"))?;
    let raws = if batch { elements(codec, raw)? } else { vec![raw] };
    let envelopes = SCRATCH.with_borrow_mut(|scratch| {
        raws.into_iter()
            .map(|raw| Envelope::read(scratch, app.hub.ids(), codec, raw))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let key = match headers.get("idempotency-key") {
        Some(key) => Some(IdempotencyKey::new(pass.name().as_bytes(), key.as_bytes(), body)?),
        None => None,
    };
    Ok(Enqueue { topic, envelopes, expect, delay_ms, key })
}

/// A field that a request's body does not have.
pub(crate) fn unknown(field: &str, expected: &'static str) -> Error {
    const SHOWN_CHARS: usize = 64;
    Error::UnknownField { field: field.chars().take(SHOWN_CHARS).collect(), expected }
}

fn elements(codec: Codec, raw: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let all = sealane_codec::elements(codec, raw)
        .map_err(|cause| Error::Decode { codec: codec.name(), cause })?;
    if all.len() > MAX_BATCH_MESSAGES {
        let limit = MAX_BATCH_MESSAGES as u64;
        return Err(Error::TooMany { what: "messages in a batch", limit }.into());
    }
    if all.iter().any(|raw| raw.len() > MAX_ENVELOPE_BYTES) {
        return Err(Error::TooLarge { what: "envelope", limit: MAX_ENVELOPE_BYTES }.into());
    }
    Ok(all)
}

fn number(codec: Codec, raw: &[u8], name: &'static str) -> Result<u64, Error> {
    let cause = "is not an integer from 0";
    sealane_codec::read_u64(codec, raw).map_err(|_| Error::parameter(name, cause))
}

fn write_one(appended: Appended) -> Fill {
    Box::new(move |writer| {
        let placed = if appended.due_ms.is_some() { 4 } else { 5 };
        writer.map(placed + usize::from(appended.replayed));
        writer.key("id");
        writer.text(appended.ids.first().map_or("", as_text));
        write_place(writer, &appended);
        writer.end();
    })
}

fn write_batch(appended: Appended) -> Fill {
    Box::new(move |writer| {
        writer.map(6 + usize::from(appended.replayed));
        writer.key("ids");
        writer.array(appended.ids.len());
        appended.ids.iter().for_each(|id| writer.text(as_text(id)));
        writer.end();
        writer.key("count");
        writer.u64(appended.ids.len() as u64);
        write_place(writer, &appended);
        writer.end();
    })
}

fn write_place(writer: &mut Writer<'_>, appended: &Appended) {
    writer.key("stream");
    writer.text(appended.stream.as_str());
    if let Some(due_ms) = appended.due_ms {
        writer.key("due");
        writer.u64(due_ms);
    } else {
        writer.key("offset");
        writer.u64(appended.offset);
        writer.key("generation");
        writer.u64(appended.generation);
    }
    writer.key("level");
    writer.text(appended.level.name());
    if appended.replayed {
        writer.key("replayed");
        writer.bool(true);
    }
}

fn as_text(id: &Bytes) -> &str {
    std::str::from_utf8(id).unwrap_or_default()
}

thread_local! {
    static SCRATCH: RefCell<Transcoder> = RefCell::new(Transcoder::new());
}
