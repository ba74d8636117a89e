//! Replies, in the codec that was asked for.

mod metered;

use axum::body::Body;
use axum::http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use sealane_codec::{Codec, DatumWriter, negotiate};

use crate::refusal::HttpRefusal;
pub(crate) use metered::{MadeReply, answer_in, answer_metered, place_for};

/// Writes a reply's body.
pub(crate) type ReplyFill = Box<dyn FnOnce(&mut DatumWriter<'_>) + Send>;

/// A reply, or why there is none, in the codec that the request accepts.
pub(crate) fn answer(
    headers: &HeaderMap,
    result: Result<(StatusCode, ReplyFill), HttpRefusal>,
) -> Response {
    let (codec, result) = match accepted(headers) {
        Ok(codec) => (codec, result),
        // A codec that is not known cannot carry its own refusal, so that JSON does.
        Err(refusal) => (Codec::Json, result.and(Err(refusal))),
    };
    let mut body = Vec::with_capacity(256);
    let mut response = Response::default();
    match result {
        Ok((status, fill)) => {
            fill(&mut DatumWriter::new(codec, &mut body));
            *response.status_mut() = status;
        }
        Err(refusal) => {
            refusal.wire().write(codec, &mut body);
            refuse(&mut response, &refusal);
        }
    }
    *response.body_mut() = Body::from(body);
    let kind = HeaderValue::from_static(codec.content_type());
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The name of the refusal that a response is, for those who count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalName(pub(crate) &'static str);

fn refuse(response: &mut Response, refusal: &HttpRefusal) {
    *response.status_mut() = refusal.status();
    response.extensions_mut().insert(RefusalName(refusal.info().name));
    if let Some(wait) = refusal.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    // In these cases the connection may hold bytes that nobody can place. It is closed rather than
    // read on.
    if matches!(refusal, HttpRefusal::SlowBody | HttpRefusal::Guesses(_) | HttpRefusal::Head(..)) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// The codec of the reply.
pub(crate) fn accepted(headers: &HeaderMap) -> Result<Codec, HttpRefusal> {
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Codec::Json);
    };
    let codec = negotiate::accept(accept)
        .map_err(|unknown| HttpRefusal::Codec(StatusCode::NOT_ACCEPTABLE, unknown))?;
    // Records need a connection that keeps their structures. A single reply goes as plain
    // MessagePack.
    Ok(codec.map_or(Codec::Json, Codec::at_rest))
}
