//! The time, and the end of it.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Resolves when the node stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the node: an error means that it has stopped.
    drop(stopping.wait_for(|stop| *stop).await);
}
