//! Bodies in and out, in the codec that each side asked for.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use sealane_codec::{Codec, Writer, negotiate, records};
use sealane_message::limits::MAX_REQUEST_BYTES;
use sealane_stream::Error;

use crate::refusal::Refusal;

/// Writes a reply's body.
pub(crate) type Fill = Box<dyn FnOnce(&mut Writer<'_>) + Send>;

/// A reply, or why there is none, in the codec that the request accepts.
pub(crate) fn answer(headers: &HeaderMap, result: Result<(StatusCode, Fill), Refusal>) -> Response {
    let (codec, result) = match accepted(headers) {
        Ok(codec) => (codec, result),
        Err(refusal) => (Codec::Json, result.and(Err(refusal))),
    };
    let mut body = Vec::with_capacity(256);
    let status = match result {
        Ok((status, fill)) => {
            fill(&mut Writer::new(codec, &mut body));
            status
        }
        Err(refusal) => {
            refusal.wire().write(codec, &mut body);
            refusal.status()
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(codec.content_type());
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The codec of the reply.
pub(crate) fn accepted(headers: &HeaderMap) -> Result<Codec, Refusal> {
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Codec::Json);
    };
    let codec = negotiate::accept(accept)
        .map_err(|unknown| Refusal::Codec(StatusCode::NOT_ACCEPTABLE, unknown))?;
    Ok(codec.map_or(Codec::Json, Codec::at_rest))
}

/// The codec of a request's body, and the body. Records, whose structures must all stand in the
/// body, come out as plain MessagePack.
pub(crate) async fn read_body(request: Request) -> Result<(Codec, Bytes), Refusal> {
    let headers = request.headers();
    let codec = match headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        None => Codec::Json,
        Some(kind) => negotiate::content_type(kind)
            .map_err(|unknown| Refusal::Codec(StatusCode::UNSUPPORTED_MEDIA_TYPE, unknown))?,
    };
    let too_large = Error::TooLarge { what: "body", limit: MAX_REQUEST_BYTES };
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n > MAX_REQUEST_BYTES) {
        return Err(too_large.into());
    }
    match to_bytes(request.into_body(), MAX_REQUEST_BYTES).await {
        Ok(body) if codec == Codec::MsgPackRecords => {
            let mut plain = Vec::with_capacity(body.len());
            let read = records::Decoder::new().to_plain(&body, &mut plain);
            read.map_err(|cause| Error::Decode { codec: codec.name(), cause })?;
            Ok((Codec::MsgPack, plain.into()))
        }
        Ok(body) => Ok((codec, body)),
        // The reader ends at the limit; anything else is the connection's fault.
        Err(error) if error.to_string().contains("length limit") => Err(too_large.into()),
        Err(_) => Err(Refusal::Body("the connection ended within the body")),
    }
}
