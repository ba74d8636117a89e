//! Bodies of requests: at most so large, so slow, and so many bytes of all of them at once.

use std::borrow::Cow;
use std::time::Duration;

use crate::limits::{MAX_BODY_GRACE_MS, MAX_DISCARD_MS, MAX_DISCARDED_BYTES, MIN_BODY_RATE};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderValue, StatusCode};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use sealane_codec::{Codec, negotiate, records};
use sealane_protocol::Error;
use sealane_protocol::limits::MAX_REQUEST_BYTES;
use tokio::time::{Instant, timeout, timeout_at};

use crate::access::RequestPass;
use crate::fair::{BodyShare, FairLimits};
use crate::refusal::HttpRefusal;

/// Reads a body and forgets it, within bounds.
async fn discard(mut body: Body) {
    let mut left = MAX_DISCARDED_BYTES;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(less) = left.checked_sub(length) else { return };
            left = less;
        }
    };
    let _ = timeout(Duration::from_millis(MAX_DISCARD_MS), all).await;
}

/// A body, and its share of the memory that there is for bodies.
pub(crate) struct ReceivedBody {
    pub(crate) codec: Codec,
    pub(crate) bytes: Bytes,
    _share: BodyShare,
}

/// Reads a request's body. Records, whose structures must all stand in the body, come out as plain
/// MessagePack.
pub(crate) async fn read(
    fair: &FairLimits,
    pass: &RequestPass,
    request: Request,
) -> Result<ReceivedBody, HttpRefusal> {
    let headers = request.headers();
    let codec = match headers.get(CONTENT_TYPE) {
        None => Codec::Json,
        Some(kind) => content_type(kind)?,
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|n| n.parse::<usize>().ok());
    // A length that is too large is refused before anything is read. A lying one meets the bound
    // below.
    if length.is_some_and(|n| n > MAX_REQUEST_BYTES) {
        // A client that waits for leave to send gets its answer at once. Any other one is still
        // sending, and would find the connection reset before it reads why.
        let is_sending = length.is_some_and(|n| n <= MAX_DISCARDED_BYTES);
        if is_sending && !headers.contains_key(EXPECT) {
            discard(request.into_body()).await;
        }
        return Err(too_large());
    }
    // The share grows with what has come. A client that declares 16 MiB and sends nothing takes
    // nothing.
    let mut share = fair.bodies.share(pass.has_token().then(|| pass.name()));
    let bytes = gather(&mut share, request.into_body()).await?;
    if codec != Codec::MsgPackRecords {
        return Ok(ReceivedBody { codec, bytes, _share: share });
    }
    let plain = to_plain(&mut share, bytes)?;
    Ok(ReceivedBody { codec: Codec::MsgPack, bytes: plain, _share: share })
}

/// The plain form of records, which counts in place of them.
fn to_plain(share: &mut BodyShare, records: Bytes) -> Result<Bytes, HttpRefusal> {
    let mut plain = Vec::with_capacity(records.len());
    let read = records::Decoder::new().to_plain(&records, &mut plain);
    let codec = Codec::MsgPackRecords.name();
    read.map_err(|cause| Error::Decode { codec, cause })?;
    // Records can be much shorter than what they stand for.
    share.grow(plain.len())?;
    share.shrink(records.len());
    Ok(plain.into())
}

fn content_type(kind: &HeaderValue) -> Result<Codec, HttpRefusal> {
    // A value that is no text is unknown, whatever it begins with.
    let text = kind.to_str().map_or_else(|_| format!("{kind:?}").into(), Cow::Borrowed);
    negotiate::content_type(&text)
        .map_err(|unknown| HttpRefusal::Codec(StatusCode::UNSUPPORTED_MEDIA_TYPE, unknown))
}

fn too_large() -> HttpRefusal {
    Error::TooLarge { what: "body", limit: MAX_REQUEST_BYTES }.into()
}

/// The pieces, in one.
async fn gather(share: &mut BodyShare, mut body: Body) -> Result<Bytes, HttpRefusal> {
    let mut pace = BodyPace::new(Instant::now());
    let (mut first, mut all, mut count) = (Bytes::new(), BytesMut::new(), 0);
    loop {
        // The deadline moves with the bytes, so that a slow honest client passes and a silent one
        // does not.
        let piece = match timeout_at(pace.due, body.frame()).await {
            Err(_) => return Err(HttpRefusal::SlowBody),
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                return Err(HttpRefusal::Body("the connection ended within the body"));
            }
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        pace.took(piece.len(), Instant::now());
        count += piece.len();
        if count > MAX_REQUEST_BYTES {
            discard(body).await;
            return Err(too_large());
        }
        share.grow(piece.len())?;
        // Most bodies come in one piece, which is kept as it is and never copied.
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// When more of a body must have come. What came faster than it must is no credit beyond the grace:
/// whoever has sent almost all of a body does not hold it for as long as it might have taken.
struct BodyPace {
    due: Instant,
}

impl BodyPace {
    fn new(now: Instant) -> Self {
        Self { due: now + Duration::from_millis(MAX_BODY_GRACE_MS) }
    }

    fn took(&mut self, bytes: usize, now: Instant) {
        let earned = Duration::from_secs_f64(bytes as f64 / MIN_BODY_RATE as f64);
        // Speed earns no more than the grace. A client could else send almost all at once and hold
        // it for minutes.
        self.due = (self.due + earned).min(now + Duration::from_millis(MAX_BODY_GRACE_MS));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::fair::BodyMemory;

    fn pieces(count: usize) -> Body {
        let piece = |_| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 100]));
        Body::from_stream(stream::iter((0..count).map(piece)))
    }

    #[tokio::test]
    async fn the_memory_of_bodies_is_for_all_and_comes_back() {
        let bodies = BodyMemory::new(1000, 1000);
        let gathered = async |count| {
            let mut share = bodies.share(None);
            gather(&mut share, pieces(count)).await.map(|bytes| (bytes.len(), share))
        };
        let (length, share) = gathered(6).await.ok().unwrap();
        assert_eq!((length, bodies.held()), (600, 600));
        assert!(matches!(gathered(5).await, Err(HttpRefusal::Crowded)));
        assert_eq!(bodies.held(), 600);
        assert_eq!(gathered(4).await.ok().unwrap().0, 400);
        drop(share);
        assert_eq!(bodies.held(), 0);
        assert_eq!(gathered(0).await.ok().unwrap().0, 0);
    }

    #[test]
    fn the_plain_form_of_records_counts_in_place_of_them() {
        // A record of one long key, which is said once, and then of one byte each time.
        let mut records = vec![0xdc, 0, 50, 0xd4, 0x72, 0x40, 0x91, 0xb9];
        records.extend_from_slice(&[b'k'; 25]);
        records.push(0xc0);
        (1..50).for_each(|_| records.extend_from_slice(&[0x40, 0xc0]));
        let plain = |max| {
            let bodies = BodyMemory::new(max, max);
            let mut share = bodies.share(None);
            share.grow(records.len()).ok().unwrap();
            let plain = to_plain(&mut share, records.clone().into());
            plain.map(|plain| (plain.len(), bodies.held()))
        };
        let (length, held) = plain(4000).ok().unwrap();
        assert!(length > 10 * records.len() / 2 && held == length, "{length} {held}");
        assert!(matches!(plain(length), Err(HttpRefusal::Crowded)), "both stand for a moment");
    }

    #[test]
    fn a_body_that_came_fast_may_stand_still_no_longer_than_any_other() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut fast, mut steady) = (BodyPace::new(start), BodyPace::new(start));
        fast.took(MAX_REQUEST_BYTES - 10, start);
        assert_eq!(fast.due, start + Duration::from_millis(MAX_BODY_GRACE_MS));
        // A byte now and then is no pace.
        (1..10).for_each(|second| fast.took(1, at(second)));
        assert!(
            fast.due < start + Duration::from_millis(MAX_BODY_GRACE_MS) + Duration::from_millis(10)
        );
        for second in 1..=2000 {
            assert!(steady.due > at(second), "{second}");
            steady.took(MIN_BODY_RATE, at(second));
        }
    }
}
