//! Subscriptions by pattern: who is told of which stream.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use sealane_message::Pattern;

use crate::Error;
use crate::consumer::ConsumerMember;
use crate::limits::MAX_FOLLOWED_STREAMS;
use crate::signal::{StreamMet, SubscriptionSignal};
use crate::stream::StreamEntry;

/// Subscriptions by pattern, and how much all subscriptions follow.
///
/// A pattern may match all streams there are. So a subscription holds nothing for a stream before
/// that has something for it, and the writer tells it then.
#[derive(Default)]
pub(super) struct PatternFollowers {
    patterns: Mutex<PatternIndex>,
    /// How many subscriptions by pattern have come so far.
    met: AtomicU64,
    followed: AtomicUsize,
}

/// Subscriptions by pattern, in the order in which they came, to be told of streams that they have
/// not met.
#[derive(Default)]
struct PatternIndex {
    all: BTreeMap<u64, (Pattern, Arc<SubscriptionSignal>)>,
    of_member: HashMap<ConsumerMember, u64>,
}

impl PatternFollowers {
    /// Tells the subscriptions by pattern that came since the stream had something last: each is
    /// looked at once for each stream, however often that is published to.
    pub(super) fn meet(&self, stream: &Arc<StreamEntry>, offset: u64) {
        // Together with the fence of `watch`: either this finds the new subscription, or that one
        // finds what the stream has got.
        fence(Ordering::SeqCst);
        let met = stream.met.load(Ordering::Acquire);
        if met == self.met.load(Ordering::Acquire) {
            return;
        }
        let patterns = self.patterns.lock();
        for (pattern, signal) in patterns.all.range(met + 1..).map(|(_, watch)| watch) {
            if pattern.matches(&stream.topic) {
                signal.join(StreamMet { stream: stream.clone(), offset });
            }
        }
        stream.met.store(self.met.load(Ordering::Acquire), Ordering::Release);
    }

    /// Has `signal` told of the streams that come to match. Those that match now are to be looked
    /// for after this: a stream that is made between comes twice then, and not never.
    pub(super) fn watch(
        &self,
        member: ConsumerMember,
        pattern: &Pattern,
        signal: &Arc<SubscriptionSignal>,
    ) {
        {
            let mut patterns = self.patterns.lock();
            let number = self.met.fetch_add(1, Ordering::AcqRel) + 1;
            patterns.all.insert(number, (pattern.clone(), signal.clone()));
            patterns.of_member.insert(member, number);
        }
        fence(Ordering::SeqCst);
    }

    pub(super) fn unwatch(&self, member: ConsumerMember) {
        let mut patterns = self.patterns.lock();
        if let Some(number) = patterns.of_member.remove(&member) {
            patterns.all.remove(&number);
        }
    }

    /// Notes that a subscription follows one more stream than `before`.
    ///
    /// # Errors
    /// [`Error::TooMany`] where all together follow as many as they may, and this one more than its
    /// share: a subscription that follows little is not refused for others that follow much.
    pub(super) fn follow(&self, before: usize) -> Result<(), Error> {
        // Taken first and given back: two that look at the same time must not both find the last
        // place.
        let all = self.followed.fetch_add(1, Ordering::Relaxed);
        if all < MAX_FOLLOWED_STREAMS
            || before < MAX_FOLLOWED_STREAMS / self.patterns.lock().all.len().max(1)
        {
            return Ok(());
        }
        // The place was taken before the check, so that two at the bound cannot both pass.
        self.unfollow(1);
        let limit = MAX_FOLLOWED_STREAMS as u64;
        Err(Error::TooMany { what: "streams followed by all subscriptions", limit })
    }

    pub(super) fn unfollow(&self, count: usize) {
        self.followed.fetch_sub(count, Ordering::Relaxed);
    }

    /// Streams that subscriptions follow, each as often as it is followed.
    pub(super) fn followed(&self) -> usize {
        self.followed.load(Ordering::Relaxed)
    }
}
