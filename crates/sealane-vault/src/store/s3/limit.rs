//! A bound on the bytes a second that go to a bucket, for links that others need as well.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpRequestBody};
use tokio::time::{Sleep, sleep};

use crate::limits::S3_LIMITED_PIECE_BYTES;

/// One bucket's bound, which all its connections share.
#[derive(Debug, Default)]
pub(super) struct UploadLimit {
    /// Bytes a second; 0 is no bound.
    rate: AtomicU64,
    bucket: Mutex<TokenBucket>,
}

impl UploadLimit {
    pub(super) fn set(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate > 0)
    }

    /// How long so many bytes take at least.
    pub(super) fn time_for(&self, bytes: u64) -> Duration {
        self.rate().map_or(Duration::ZERO, |rate| time_for(bytes, rate))
    }

    /// Takes tokens for so many bytes; gives how long to wait before they are sent.
    fn take(&self, bytes: u64) -> Duration {
        let Some(rate) = self.rate() else { return Duration::ZERO };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(Instant::now(), bytes, rate)
    }
}

fn time_for(bytes: u64, rate: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A token bucket that holds the tokens of one piece: whoever was idle may send one at once.
#[derive(Debug, Default)]
struct TokenBucket {
    /// When all that was taken so far has been sent at the rate. None: nothing was.
    paid_at: Option<Instant>,
}

impl TokenBucket {
    fn take(&mut self, now: Instant, bytes: u64, rate: u64) -> Duration {
        // Time in which nothing was sent gives no tokens for later.
        let begin = self.paid_at.map_or(now, |paid_at| paid_at.max(now));
        self.paid_at = begin.checked_add(time_for(bytes, rate)).or(self.paid_at);
        begin.saturating_duration_since(now)
    }
}

/// The body of a request, no faster than the bound.
pub(super) struct S3RequestBody {
    body: HttpRequestBody,
    limit: Arc<UploadLimit>,
    /// Bytes that the body gave and that were not sent yet.
    rest: Bytes,
    /// The next piece and when it may go.
    waits: Option<(Pin<Box<Sleep>>, Bytes)>,
}

impl S3RequestBody {
    pub(super) fn new(body: HttpRequestBody, limit: Arc<UploadLimit>) -> S3RequestBody {
        S3RequestBody { body, limit, rest: Bytes::new(), waits: None }
    }
}

impl Body for S3RequestBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        loop {
            if let Some((sleep, piece)) = &mut self.waits {
                ready!(sleep.as_mut().poll(context));
                let piece = std::mem::take(piece);
                self.waits = None;
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if self.rest.is_empty() {
                match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => self.rest = data,
                        Err(other) => return Poll::Ready(Some(Ok(other))),
                    },
                    end => return Poll::Ready(end),
                }
            }
            let whole = self.rest.len();
            let bytes = match self.limit.rate() {
                Some(_) => whole.min(S3_LIMITED_PIECE_BYTES),
                None => whole,
            };
            let piece = self.rest.split_to(bytes);
            let wait = self.limit.take(piece.len() as u64);
            if wait.is_zero() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            self.waits = Some((Box::pin(sleep(wait)), piece));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waits.is_none() && self.rest.is_empty() && self.body.is_end_stream()
    }

    /// Hyper reads it before the first frame, and tells the server the length by it.
    fn size_hint(&self) -> SizeHint {
        let held = self.rest.len() + self.waits.as_ref().map_or(0, |(_, piece)| piece.len());
        match self.body.size_hint().exact() {
            Some(left) => SizeHint::with_exact(left + held as u64),
            None => SizeHint::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 100_000;

    #[test]
    fn an_hour_of_rest_earns_no_more_than_one_piece() {
        let mut bucket = TokenBucket::default();
        let mut now = Instant::now();
        for rest in [Duration::ZERO, Duration::from_secs(3600)] {
            now += rest;
            let begin = now;
            for _ in 0..100 {
                now += bucket.take(now, 1000, RATE);
            }
            // The last piece may go once those before it have had their time.
            assert_eq!(now - begin, time_for(99_000, RATE));
            now += time_for(1000, RATE);
        }
    }

    #[test]
    fn without_a_bound_nothing_waits() {
        let limit = UploadLimit::default();
        assert_eq!(
            (limit.take(u64::MAX), limit.time_for(u64::MAX)),
            (Duration::ZERO, Duration::ZERO)
        );
        limit.set(RATE);
        assert_eq!(limit.take(50_000), Duration::ZERO);
        assert!(limit.take(1) > Duration::from_millis(400));
        assert_eq!(limit.time_for(8 << 20), Duration::from_nanos(83_886_080_000));
    }
}
