//! How a subscription learns that there may be something for it, without being sent anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use crate::stream::StreamEntry;

/// A stream that a subscription's pattern matches and that it has not met before.
pub(crate) struct StreamMet {
    pub(crate) stream: Arc<StreamEntry>,
    /// The first offset that came since the subscription was there.
    pub(crate) offset: u64,
}

/// Wakes one subscription and says which of its lanes to look at.
#[derive(Default)]
pub(crate) struct SubscriptionSignal(Mutex<SignalState>);

#[derive(Default)]
struct SignalState {
    ready: Vec<usize>,
    joined: Vec<StreamMet>,
    /// The task that waits, until it is woken.
    waker: Option<Waker>,
}

/// The result of listening for a subscription.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SignalHeard {
    /// Nothing: it is woken when there is something.
    Nothing,
    /// Lanes to look at.
    Lanes,
    /// Streams that it has not met before, and perhaps lanes.
    Streams,
}

impl SubscriptionSignal {
    /// Takes the lanes that were signalled since the last time. Where nothing was, `waker` is woken
    /// once something is.
    pub(crate) fn listen(&self, waker: &Waker, lanes: &mut Vec<usize>) -> SignalHeard {
        let mut signalled = self.0.lock();
        let has_lanes = !signalled.ready.is_empty();
        lanes.append(&mut signalled.ready);
        // Streams are told without taking them, since joining may wait for the disk and `listen`
        // must not.
        if !signalled.joined.is_empty() {
            return SignalHeard::Streams;
        }
        if has_lanes {
            return SignalHeard::Lanes;
        }
        match &mut signalled.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        SignalHeard::Nothing
    }

    /// Takes all that was signalled.
    pub(crate) fn take(&self, lanes: &mut Vec<usize>) -> Vec<StreamMet> {
        let mut signalled = self.0.lock();
        lanes.append(&mut signalled.ready);
        std::mem::take(&mut signalled.joined)
    }

    /// A stream that the subscription's pattern matches was made, or has something for it for the
    /// first time.
    pub(crate) fn join(&self, met: StreamMet) {
        self.note(|signalled| signalled.joined.push(met));
    }

    fn note(&self, what: impl FnOnce(&mut SignalState)) {
        let waker = {
            let mut signalled = self.0.lock();
            what(&mut signalled);
            // The waker is called outside of the lock, which the woken task takes first.
            signalled.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A lane's place in the list of those who wait for a stream.
pub(crate) struct LaneWaiter {
    signal: Arc<SubscriptionSignal>,
    lane: usize,
    armed: AtomicBool,
}

impl LaneWaiter {
    pub(crate) fn new(signal: Arc<SubscriptionSignal>, lane: usize) -> Self {
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
        // A lane is signalled once until it asks again. A busy stream would otherwise fill the
        // list.
        if self.armed.swap(false, Ordering::SeqCst) {
            self.signal.note(|signalled| signalled.ready.push(self.lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn whoever_found_nothing_is_woken_once_and_only_for_what_was_asked_for() {
        let (signal, woken) = (Arc::new(SubscriptionSignal::default()), Arc::new(Woken::default()));
        let (waiter, waker) = (LaneWaiter::new(signal.clone(), 7), Waker::from(woken.clone()));
        let count = || woken.0.load(Ordering::SeqCst);
        let mut lanes = Vec::new();
        waiter.wake();
        assert_eq!(signal.listen(&waker, &mut lanes), SignalHeard::Nothing, "it has not asked");
        waiter.arm();
        waiter.wake();
        waiter.wake();
        assert_eq!((count(), lanes.len()), (1, 0));
        assert_eq!(signal.listen(&waker, &mut lanes), SignalHeard::Lanes);
        assert_eq!(lanes, [7]);
        // A wake that came while the subscription did not wait is found, and wakes no task.
        waiter.rouse();
        assert_eq!(count(), 1);
        assert!(signal.take(&mut lanes).is_empty() && lanes == [7, 7]);
        assert_eq!(signal.listen(&waker, &mut lanes), SignalHeard::Nothing);
        waiter.rouse();
        assert_eq!(count(), 2);
    }
}
