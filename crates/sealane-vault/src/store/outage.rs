//! Outages of a bucket: a failure that may pass is waited out, and the user is told once.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use object_store::client::{HttpError, HttpErrorKind};

use crate::limits::{MAX_OUTAGE_MS, MAX_OUTAGE_WAIT_MS, OUTAGE_WAIT_MS};

/// Tells the user of an outage.
type OutageTell = Arc<dyn Fn(&str) + Send + Sync>;

/// How long an outage of a bucket is waited out, and who is told.
#[derive(Clone)]
pub struct StoreRetry {
    within: Duration,
    tell: Option<OutageTell>,
}

impl Default for StoreRetry {
    fn default() -> StoreRetry {
        StoreRetry::within(Duration::from_millis(MAX_OUTAGE_MS))
    }
}

impl fmt::Debug for StoreRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRetry").field("within", &self.within).finish_non_exhaustive()
    }
}

impl StoreRetry {
    /// Waits out an outage of no more than this, counted from the first request that failed. If
    /// another part of a large object arrives, the next failure begins another outage.
    pub fn within(within: Duration) -> StoreRetry {
        StoreRetry { within, tell: None }
    }

    /// Tells of the first outage.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> StoreRetry {
        StoreRetry { tell: Some(Arc::new(tell)), ..self }
    }
}

/// The outages of one bucket.
#[derive(Debug)]
pub(super) struct StoreOutage {
    retry: StoreRetry,
    is_told: AtomicBool,
}

/// A failed request.
pub(super) trait OutageCause: fmt::Display {
    /// Whether the same request may succeed later.
    fn may_pass(&self) -> bool;
}

impl StoreOutage {
    pub(super) fn new(retry: StoreRetry) -> StoreOutage {
        StoreOutage { retry, is_told: AtomicBool::new(false) }
    }

    /// Asks until there is an answer, or a failure that does not pass in time.
    pub(super) async fn wait_out<T, E: OutageCause, F: Future<Output = Result<T, E>>>(
        &self,
        place: &str,
        ask: impl FnMut() -> F,
    ) -> Result<T, E> {
        let finished = AtomicU64::new(0);
        self.wait_out_parts(place, &finished, ask).await
    }

    /// The same for a request of many parts, of which `finished` have arrived. A link that fails
    /// now and then sends all of a large object in more time than one outage may take.
    pub(super) async fn wait_out_parts<T, E: OutageCause, F: Future<Output = Result<T, E>>>(
        &self,
        place: &str,
        finished: &AtomicU64,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, E> {
        let mut waits = OutageWaits::new(self.retry.within);
        loop {
            match ask().await {
                Err(cause) if cause.may_pass() => {
                    let finished = finished.load(Ordering::Relaxed);
                    let wait = waits.next(Instant::now(), finished);
                    let Some(wait) = wait else { return Err(cause) };
                    self.tell(place, &cause);
                    tokio::time::sleep(wait).await;
                }
                outcome => return outcome,
            }
        }
    }

    fn tell(&self, place: &str, cause: &impl fmt::Display) {
        let Some(tell) = &self.retry.tell else { return };
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let within = humantime::format_duration(self.retry.within);
            let cause = super::s3::answer(&cause.to_string());
            tell(&format!("`{place}` does not answer and is tried again for {within}: {cause}"));
        }
    }
}

/// The waits of one request, from its first failure on, or from the first since a part arrived.
struct OutageWaits {
    within: Duration,
    finished: u64,
    since: Option<Instant>,
    next: Duration,
}

impl OutageWaits {
    fn new(within: Duration) -> OutageWaits {
        let next = Duration::from_millis(OUTAGE_WAIT_MS);
        OutageWaits { within, finished: 0, since: None, next }
    }

    /// How long to wait at `now`, when so many parts have arrived; none once the time is over.
    fn next(&mut self, now: Instant, finished: u64) -> Option<Duration> {
        if finished > self.finished {
            *self = OutageWaits { finished, ..OutageWaits::new(self.within) };
        }
        let since = *self.since.get_or_insert(now);
        let left = self.within.saturating_sub(now.saturating_duration_since(since));
        let wait = self.next.min(left);
        self.next = (self.next * 2).min(Duration::from_millis(MAX_OUTAGE_WAIT_MS));
        (!wait.is_zero()).then_some(wait)
    }
}

impl OutageCause for object_store::Error {
    fn may_pass(&self) -> bool {
        let object_store::Error::Generic { source, .. } = self else { return false };
        let text = self.to_string();
        // A machine without a role has no such server, and a certificate stays as it is.
        if text.contains("http://169.254.") || text.contains("certificate") {
            return false;
        }
        let mut cause: Option<&(dyn StdError + 'static)> = Some(source.as_ref());
        while let Some(found) = cause {
            if may_pass(found) {
                return true;
            }
            cause = found.source();
        }
        false
    }
}

/// Whether one cause of a failed request is of the kind that passes.
fn may_pass(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(http) = cause.downcast_ref::<HttpError>() {
        use HttpErrorKind::{Connect, Interrupted, Request, Timeout};
        return matches!(http.kind(), Connect | Interrupted | Request | Timeout);
    }
    // The client keeps the status of an answer as text alone.
    let text = cause.to_string();
    let status = text.strip_prefix("Server returned non-2xx status code: ");
    let status = status.and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    status.is_some_and(|status| matches!(status, 408 | 429 | 500 | 502 | 503 | 504))
        || text.starts_with("Server returned error response")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_end_in_time() {
        let begun = Instant::now();
        let within = Duration::from_millis(MAX_OUTAGE_MS);
        let (mut waits, mut now, mut all) = (OutageWaits::new(within), begun, Vec::new());
        // Each try takes a second, too.
        while let Some(wait) = waits.next(now, 0) {
            all.push(wait);
            now += wait + Duration::from_secs(1);
        }
        assert_eq!(all[0], Duration::from_millis(OUTAGE_WAIT_MS));
        let most = Duration::from_millis(MAX_OUTAGE_WAIT_MS);
        assert!(all.iter().all(|wait| *wait <= most) && all.contains(&most));
        let took = now - begun;
        assert!(took >= within && took <= within + Duration::from_secs(2), "{took:?}");
        assert!(OutageWaits::new(Duration::ZERO).next(begun, 0).is_none());
        // A second outage of the same request begins no new time.
        assert!(waits.next(now, 0).is_none());
    }

    /// A part arrives, and then the bucket is out for most of the time that it may be: again and
    /// again.
    #[test]
    fn an_outage_ends_with_a_part_that_arrives() {
        let within = Duration::from_millis(MAX_OUTAGE_MS);
        let (mut waits, mut now) = (OutageWaits::new(within), Instant::now());
        for finished in 0..20 {
            let first = waits.next(now, finished);
            assert_eq!(first, Some(Duration::from_millis(OUTAGE_WAIT_MS)), "{finished}");
            now += within - Duration::from_secs(1);
            assert!(waits.next(now, finished).is_some(), "{finished}");
        }
        // Without another part it is over in time. Parts that arrive anew are no progress.
        now += Duration::from_secs(1);
        assert!(waits.next(now, 19).is_none() && waits.next(now, 3).is_none());
    }

    #[test]
    fn a_passing_failure_is_told_from_one_that_stays() {
        let generic = |source: Box<dyn StdError + Send + Sync>| object_store::Error::Generic {
            store: "S3",
            source,
        };
        let status = |status: &str| {
            generic(format!("Server returned non-2xx status code: {status}: ").into())
        };
        for passes in ["408 Request Timeout", "429 Too Many Requests", "500 Internal", "503 Slow"] {
            assert!(status(passes).may_pass(), "{passes}");
        }
        for stays in ["400 Bad Request", "403 Forbidden", "501 Not Implemented", "507 Full"] {
            assert!(!status(stays).may_pass(), "{stays}");
        }
        let http = |kind, text: &str| {
            generic(Box::new(HttpError::new(kind, std::io::Error::other(text.to_owned()))))
        };
        assert!(http(HttpErrorKind::Connect, "connection refused").may_pass());
        assert!(http(HttpErrorKind::Timeout, "the server was silent for 2m").may_pass());
        assert!(!http(HttpErrorKind::Unknown, "plain HTTP").may_pass());
        assert!(!http(HttpErrorKind::Connect, "invalid peer certificate: Expired").may_pass());
        let role = "Error performing PUT http://169.254.169.254/latest/api/token in 1s";
        assert!(!http(HttpErrorKind::Connect, role).may_pass());
        let gone = object_store::Error::NotFound { path: "a".into(), source: "503".into() };
        assert!(!gone.may_pass());
    }
}
