//! How a subscription learns that there may be something for it, without being sent anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::stream::Stream;

/// A stream that a subscription's pattern matches and that it has not met before.
pub(crate) struct Met {
    pub(crate) stream: Arc<Stream>,
    /// The first offset that came since the subscription was there.
    pub(crate) offset: u64,
}

/// Wakes one subscription and says which of its lanes to look at.
#[derive(Default)]
pub(crate) struct Signal {
    notify: Notify,
    ready: Mutex<Vec<usize>>,
    joined: Mutex<Vec<Met>>,
}

impl Signal {
    /// Resolves once something was signalled since the last time.
    pub(crate) async fn wait(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn take_ready(&self, into: &mut Vec<usize>) {
        into.append(&mut self.ready.lock());
    }

    pub(crate) fn take_joined(&self) -> Vec<Met> {
        std::mem::take(&mut self.joined.lock())
    }

    pub(crate) fn has_joined(&self) -> bool {
        !self.joined.lock().is_empty()
    }

    /// A stream that the subscription's pattern matches was made, or has something for it for the
    /// first time.
    pub(crate) fn join(&self, met: Met) {
        self.joined.lock().push(met);
        self.notify.notify_one();
    }
}

/// A lane's place in the list of those who wait for a stream.
pub(crate) struct Waiter {
    signal: Arc<Signal>,
    lane: usize,
    armed: AtomicBool,
}

impl Waiter {
    pub(crate) fn new(signal: Arc<Signal>, lane: usize) -> Self {
        Self { signal, lane, armed: AtomicBool::new(false) }
    }

    /// Asks for one wake. Look once more after arming: what came before is not signalled.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Signals the lane, whether it asked or not.
    pub(crate) fn rouse(&self) {
        self.armed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Signals the lane, if it asked.
    pub(crate) fn wake(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.signal.ready.lock().push(self.lane);
            self.signal.notify.notify_one();
        }
    }
}
