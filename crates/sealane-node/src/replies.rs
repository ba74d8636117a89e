//! Streams of answers that nobody fetched. `reply/` is a convention of clients (spec/hub.md §3):
//! the hub knows no requests, and removes nothing unless the node is started so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sealane_message::Topic;
use sealane_stream::StreamState;
use tokio::sync::watch;

use crate::app::NodeApp;
use crate::clock::{now_ms, stopped};
use crate::limits::{MAX_CLOCK_DRIFT_MS, MAX_REPLY_LOOK_MS, MAX_REPLY_LOOKS};

/// The beginning of the topics of answers.
const REPLIES: &str = "reply/";

/// Removes streams of answers that had nothing new for `ttl` and have no reader, until the node
/// stops.
pub(crate) async fn tidy(app: Arc<NodeApp>, ttl: Duration, mut stopping: watch::Receiver<bool>) {
    // A quarter keeps a stream at most a quarter too long, without looking all the time.
    let every =
        (ttl / 4).clamp(Duration::from_millis(100), Duration::from_millis(MAX_REPLY_LOOK_MS));
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let mut watch = StepWatch::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = stopped(&mut stopping) => return,
        }
        // After a start or a step of the clock each answer has its whole time again.
        if watch.calm_for() < ttl {
            continue;
        }
        let before_ms = now_ms().saturating_sub(ttl_ms);
        if let Err(error) = look(&app, before_ms).await {
            tracing::warn!(%error, "streams of answers stay longer than they are to");
        }
    }
}

/// For how long the time of day has gone on as time passes.
struct StepWatch {
    day_ms: u64,
    looked: Instant,
    calm_since: Instant,
}

impl StepWatch {
    fn new() -> Self {
        let now = Instant::now();
        Self { day_ms: now_ms(), looked: now, calm_since: now }
    }

    fn calm_for(&mut self) -> Duration {
        let (day_ms, now) = (now_ms(), Instant::now());
        let passed = u64::try_from((now - self.looked).as_millis()).unwrap_or(u64::MAX);
        if day_ms.abs_diff(self.day_ms.saturating_add(passed)) > MAX_CLOCK_DRIFT_MS {
            self.calm_since = now;
        }
        (self.day_ms, self.looked) = (day_ms, now);
        now - self.calm_since
    }
}

/// Removes those that are older.
async fn look(app: &NodeApp, before_ms: u64) -> Result<(), sealane_protocol::Error> {
    let mut after: Option<Topic> = None;
    loop {
        // A page at a time: there may be a hundred thousand streams, and listing holds a lock.
        let listed = app.hub.streams(REPLIES, after.as_ref(), MAX_REPLY_LOOKS, |_| true);
        for state in listed.streams.into_iter().filter(|state| is_left(state, before_ms)) {
            // A message that has come since keeps the stream. The asking client may have removed it
            // meanwhile.
            match app.hub.remove_idle(&state).await {
                Ok(_) | Err(sealane_protocol::Error::UnknownStream(_)) => {}
                Err(error) => return Err(error),
            }
        }
        after = listed.next;
        if after.is_none() {
            return Ok(());
        }
        // Requests share this thread and must not wait for the whole walk.
        tokio::task::yield_now().await;
    }
}

fn is_left(state: &StreamState, before_ms: u64) -> bool {
    let is_read = state.readers > 0 || state.consumers.iter().any(|consumer| consumer.members > 0);
    // A stream that was just made has no message yet, so that its making counts too.
    !is_read && state.created_ms.max(state.last_ms) < before_ms
}
