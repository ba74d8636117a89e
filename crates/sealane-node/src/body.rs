//! Bodies of requests: at most so large, so slow, and so many bytes of all of them at once.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use sealane_codec::{Codec, negotiate, records};
use sealane_message::limits::{
    MAX_BODIES_BYTES, MAX_BODY_GRACE_MS, MAX_REQUEST_BYTES, MIN_BODY_RATE,
};
use sealane_stream::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::fair::Fair;
use crate::refusal::Refusal;

/// A body, and its share of the memory that there is for bodies.
pub(crate) struct Received {
    pub(crate) codec: Codec,
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reads a request's body. Records, whose structures must all stand in the body, come out as plain
/// MessagePack.
pub(crate) async fn read(fair: &Fair, request: Request) -> Result<Received, Refusal> {
    let headers = request.headers();
    let codec = match headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) {
        None => Codec::Json,
        Some(kind) => negotiate::content_type(kind)
            .map_err(|unknown| Refusal::Codec(StatusCode::UNSUPPORTED_MEDIA_TYPE, unknown))?,
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|n| n.parse::<usize>().ok());
    if length.is_some_and(|n| n > MAX_REQUEST_BYTES) {
        return Err(too_large());
    }
    let (bytes, share) = gather(fair, request.into_body()).await?;
    if codec != Codec::MsgPackRecords {
        return Ok(Received { codec, bytes, _share: share });
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let read = records::Decoder::new().to_plain(&bytes, &mut plain);
    read.map_err(|cause| Error::Decode { codec: codec.name(), cause })?;
    Ok(Received { codec: Codec::MsgPack, bytes: plain.into(), _share: share })
}

fn too_large() -> Refusal {
    Error::TooLarge { what: "body", limit: MAX_REQUEST_BYTES }.into()
}

/// The pieces, in one.
async fn gather(
    fair: &Fair,
    mut body: Body,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
    let grace = Instant::now() + Duration::from_millis(MAX_BODY_GRACE_MS);
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    let (mut count, mut share): (usize, Option<OwnedSemaphorePermit>) = (0, None);
    loop {
        let due = grace + Duration::from_secs((count / MIN_BODY_RATE) as u64);
        let piece = match timeout_at(due, body.frame()).await {
            Err(_) => return Err(Refusal::SlowBody),
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                return Err(Refusal::Body("the connection ended within the body"));
            }
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        count += piece.len();
        if count > MAX_REQUEST_BYTES {
            return Err(too_large());
        }
        let more = fair.bodies.clone().try_acquire_many_owned(piece.len() as u32);
        let more = more.map_err(|_| Refusal::Crowded)?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&piece);
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok((bytes, share))
}

/// The memory of bodies fits the permits of a semaphore, and one body fits that memory.
const _: () =
    assert!(MAX_BODIES_BYTES < u32::MAX as usize && MAX_REQUEST_BYTES <= MAX_BODIES_BYTES);

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::fair::Limits;

    fn pieces(count: usize) -> Body {
        let piece = |_| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 100]));
        Body::from_stream(stream::iter((0..count).map(piece)))
    }

    #[tokio::test]
    async fn the_memory_of_bodies_is_for_all_and_comes_back() {
        let mut fair = Fair::new(Limits::default());
        fair.bodies = std::sync::Arc::new(tokio::sync::Semaphore::new(1000));
        let (bytes, share) = gather(&fair, pieces(6)).await.ok().unwrap();
        assert_eq!((bytes.len(), fair.bodies.available_permits()), (600, 400));
        assert!(matches!(gather(&fair, pieces(5)).await, Err(Refusal::Crowded)));
        assert_eq!(fair.bodies.available_permits(), 400);
        assert_eq!(gather(&fair, pieces(4)).await.ok().unwrap().0.len(), 400);
        drop(share);
        assert_eq!(fair.bodies.available_permits(), 1000);
        assert!(gather(&fair, Body::empty()).await.ok().unwrap().0.is_empty());
    }
}
