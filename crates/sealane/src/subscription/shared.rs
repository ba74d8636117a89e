use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sealane_message::Topic;
use sealane_protocol::{AckMark, Features, Op};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ranges::OffsetRanges;
use crate::SealCounts;
use crate::limits::{MAX_ACK_DELAY_MS, MAX_ACKS_WAITING};
use crate::subscribe::SubscribeBuilder;
use crate::{Error, ReceivedMessage};

/// The state that the user's side of a subscription shares with its connection.
pub(crate) struct SubscriptionShared {
    state: Mutex<SubscriptionState>,
    /// Wakes the connection: there is credit to grant, something to acknowledge, or the end.
    pub(super) work: Notify,
}

struct SubscriptionState {
    /// Bounded by the credit window: nothing comes that was not granted.
    queue: VecDeque<ReceivedMessage>,
    window: u64,
    /// Granted on this connection and not delivered.
    outstanding: u64,
    limit: Option<u64>,
    taken: u64,
    reader: bool,
    single: bool,
    connection: u64,
    /// Of the hub that this connection is to.
    features: Features,
    acks: OffsetRanges,
    /// Bounded like the queue by what is in flight.
    nacks: Vec<(Topic, u64, u64)>,
    /// Kept until it is due, where the hub takes no delay; bounded as `nacks` is.
    held: Vec<DelayedReturn>,
    flush_at: Option<Instant>,
    closing: bool,
    ended: bool,
    error: Option<Error>,
    received_bytes: u64,
    seal_counts: SealCounts,
    waker: Option<Waker>,
}

/// A message that is given back to the hub later.
struct DelayedReturn {
    due: Instant,
    stream: Topic,
    offset: u64,
}

/// A delivery that is not shown.
pub(super) struct RejectedDelivery {
    pub(super) stream: Topic,
    pub(super) offset: u64,
    /// When it is to come again; none: it is done.
    pub(super) again_ms: Option<u64>,
}

/// The operations that the connection is to send now.
pub(super) struct SubscriptionWork {
    pub(super) ops: Vec<Op>,
    pub(super) closing: bool,
    pub(super) wait_until: Option<Instant>,
}

impl SubscriptionShared {
    pub(crate) fn new(subscribe: &SubscribeBuilder) -> Self {
        let state = SubscriptionState {
            queue: VecDeque::new(),
            window: u64::from(subscribe.credit),
            outstanding: 0,
            limit: subscribe.limit,
            taken: 0,
            reader: subscribe.is_reader(),
            single: !subscribe.pattern.contains('*'),
            connection: 0,
            features: Features::base(),
            acks: OffsetRanges::default(),
            nacks: Vec::new(),
            held: Vec::new(),
            flush_at: None,
            closing: false,
            ended: false,
            error: None,
            received_bytes: 0,
            seal_counts: SealCounts::default(),
            waker: None,
        };
        Self { state: Mutex::new(state), work: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock()
    }

    /// Gives the user the next message.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<ReceivedMessage, Error>>> {
        let mut state = self.lock();
        if state.limit.is_some_and(|limit| state.taken >= limit) {
            // The connection stays until it is closed: what was given is still to be acknowledged.
            return Poll::Ready(None);
        }
        if let Some(message) = state.queue.pop_front() {
            state.taken += 1;
            if state.grantable() > 0 {
                self.work.notify_one();
            }
            return Poll::Ready(Some(Ok(message)));
        }
        if state.ended || state.closing {
            return Poll::Ready(state.error.take().map(Err));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    pub(crate) fn ack(&self, stream: &Topic, offset: u64, connection: u64) {
        let mut state = self.lock();
        // Of an earlier connection: it comes again on this one, perhaps as another message if the
        // stream has a new generation.
        if state.connection == connection {
            state.acks.add(stream, offset);
            self.schedule(&mut state);
        }
    }

    pub(crate) fn nack(&self, stream: &Topic, offset: u64, delay_ms: u64, connection: u64) {
        let mut state = self.lock();
        if state.connection == connection {
            self.give_back(&mut state, stream.clone(), offset, delay_ms);
        }
    }

    fn give_back(&self, state: &mut SubscriptionState, stream: Topic, offset: u64, delay_ms: u64) {
        if delay_ms == 0 || state.features.has("nack-delay") {
            state.nacks.push((stream, offset, delay_ms));
            return self.schedule(state);
        }
        // If the clock cannot hold the due time, the message comes again when `ack_wait` is over.
        if let Some(due) = Instant::now().checked_add(Duration::from_millis(delay_ms)) {
            state.held.push(DelayedReturn { due, stream, offset });
            self.work.notify_one();
        }
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.lock().features.has(feature)
    }

    fn schedule(&self, state: &mut SubscriptionState) {
        let waiting = state.acks.len() + state.nacks.len();
        if waiting == 1 {
            state.flush_at = Some(Instant::now() + Duration::from_millis(MAX_ACK_DELAY_MS));
            self.work.notify_one();
        } else if waiting == MAX_ACKS_WAITING {
            state.flush_at = Some(Instant::now());
            self.work.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.wake();
        self.work.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.lock().received_bytes
    }

    /// Ends the subscription, with what it ended for.
    pub(super) fn end(&self, error: Option<Error>) {
        let mut state = self.lock();
        state.ended = true;
        state.error = error;
        state.wake();
    }

    /// A new connection begins; gives its number. What a consumer had in flight comes again, to
    /// this or another member, so that what waits here is old.
    pub(super) fn begin(&self, features: Features) -> u64 {
        let mut state = self.lock();
        state.connection += 1;
        state.features = features;
        state.outstanding = 0;
        state.acks.clear();
        state.nacks.clear();
        state.held.clear();
        state.flush_at = None;
        if !state.reader {
            state.queue.clear();
        }
        state.connection
    }

    /// The work to do now, and until when it can wait.
    pub(super) fn work(&self) -> SubscriptionWork {
        let mut state = self.lock();
        let mut ops = Vec::new();
        let closing = state.closing;
        let now = Instant::now();
        let returned = state.release(now);
        let due = returned || state.flush_at.is_some_and(|at| at <= now);
        if closing || due {
            state.take_marks(&mut ops);
        }
        let credit = if closing { 0 } else { state.grantable() };
        if credit > 0 {
            state.outstanding += credit;
            ops.push(Op::Credit(credit));
        }
        let held = state.held.iter().map(|held| held.due).min();
        SubscriptionWork { ops, closing, wait_until: state.flush_at.into_iter().chain(held).min() }
    }

    /// Puts messages before the user, and gives the others back to the hub. Together they are so
    /// many `deliveries`, or fewer where some had come before.
    ///
    /// # Errors
    /// [`Error::Protocol`] where more came than was granted.
    pub(super) fn deliver(
        self: &Arc<Self>,
        deliveries: usize,
        messages: Vec<ReceivedMessage>,
        others: Vec<RejectedDelivery>,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        let deliveries = u64::try_from(deliveries).unwrap_or(u64::MAX);
        let Some(outstanding) = state.outstanding.checked_sub(deliveries) else {
            return Err(Error::Protocol("more was delivered than was granted".into()));
        };
        state.outstanding = outstanding;
        let (reader, connection) = (state.reader, state.connection);
        for mut message in messages {
            if !reader {
                message.came_by(self, connection);
            }
            state.queue.push_back(message);
        }
        for RejectedDelivery { stream, offset, again_ms } in others.into_iter().filter(|_| !reader)
        {
            match again_ms {
                Some(delay_ms) => self.give_back(&mut state, stream, offset, delay_ms),
                None => {
                    state.acks.add(&stream, offset);
                    self.schedule(&mut state);
                }
            }
        }
        if state.grantable() > 0 {
            self.work.notify_one();
        }
        state.wake();
        Ok(())
    }

    pub(crate) fn seal_counts(&self) -> SealCounts {
        self.lock().seal_counts
    }

    pub(super) fn counted(&self, counts: SealCounts) {
        self.lock().seal_counts = counts;
    }

    pub(super) fn received(&self, bytes: u64) {
        self.lock().received_bytes += bytes;
    }
}

impl SubscriptionState {
    /// Credit to grant now; 0 while the rest of the window is not worth a frame.
    fn grantable(&self) -> u64 {
        let here =
            u64::try_from(self.queue.len()).unwrap_or(u64::MAX).saturating_add(self.outstanding);
        let room = self.window.saturating_sub(here);
        let left = self.limit.map_or(u64::MAX, |l| l.saturating_sub(self.taken + here));
        let credit = room.min(left);
        let worth = credit >= (self.window / 4).max(1) || self.outstanding == 0;
        if worth { credit } else { 0 }
    }

    /// Gives back what was held and is due; whether there was any.
    fn release(&mut self, now: Instant) -> bool {
        let due = self.held.extract_if(.., |held| held.due <= now);
        let before = self.nacks.len();
        self.nacks.extend(due.map(|held| (held.stream, held.offset, 0)));
        self.nacks.len() > before
    }

    fn take_marks(&mut self, ops: &mut Vec<Op>) {
        self.flush_at = None;
        let single = self.single;
        let name = |stream| (!single).then_some(stream);
        let range = |stream, from, to| AckMark::Range { stream: name(stream), from, to };
        let acks: Vec<AckMark> =
            self.acks.take().map(|(stream, from, to)| range(stream, from, to)).collect();
        // A frame has a size limit; what waits is seldom more than one such part.
        ops.extend(acks.chunks(MAX_ACKS_WAITING).map(|part| Op::Ack(part.to_vec())));
        let nacks = std::mem::take(&mut self.nacks);
        ops.extend(nacks.into_iter().map(|(stream, offset, delay_ms)| {
            Op::Nack(vec![range(stream, offset, offset)], delay_ms)
        }));
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for SubscriptionShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use sealane_codec::Codec;
    use sealane_protocol::Deliver;

    use super::*;
    use crate::Client;

    fn shared(window: u32, limit: Option<u64>) -> Arc<SubscriptionShared> {
        let subscribe = Client::connect("hub").unwrap().subscribe("a").consumer("c").credit(window);
        let subscribe = SubscribeBuilder { limit, ..subscribe };
        Arc::new(SubscriptionShared::new(&subscribe))
    }

    fn deliver(
        shared: &Arc<SubscriptionShared>,
        offsets: std::ops::Range<u64>,
    ) -> Result<(), Error> {
        let (stream, envelope): (Topic, _) = ("a".parse().unwrap(), bytes::Bytes::new());
        let one = |offset| Deliver {
            stream: stream.clone(),
            offset,
            generation: 1,
            attempt: 1,
            stored_ms: 0,
            envelope: envelope.clone(),
        };
        let messages: Vec<_> =
            offsets.map(|at| ReceivedMessage::new(Codec::Json, one(at))).collect();
        shared.deliver(messages.len(), messages, Vec::new())
    }

    fn take(shared: &SubscriptionShared) -> Option<ReceivedMessage> {
        match shared.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(message))) => Some(message),
            _ => None,
        }
    }

    fn credit(shared: &SubscriptionShared) -> u64 {
        let granted = |op: &Op| if let Op::Credit(n) = op { *n } else { 0 };
        shared.work().ops.iter().map(granted).sum()
    }

    #[tokio::test]
    async fn what_is_granted_waits_or_is_under_way_never_passes_the_window() {
        let shared = shared(8, None);
        shared.begin(Features::ours());
        assert_eq!(credit(&shared), 8);
        assert_eq!(credit(&shared), 0);
        deliver(&shared, 0..8).unwrap();
        assert_eq!(credit(&shared), 0, "nothing was taken");
        assert!(take(&shared).is_some());
        assert_eq!(credit(&shared), 1, "the hub has none left");
        assert!(take(&shared).is_some());
        assert_eq!(credit(&shared), 0, "not worth a frame");
        assert!(take(&shared).is_some());
        assert_eq!(credit(&shared), 2);
        deliver(&shared, 8..11).unwrap();
        assert!(matches!(deliver(&shared, 11..12), Err(Error::Protocol(_))));
    }

    #[tokio::test]
    async fn a_limit_bounds_the_sum() {
        let shared = shared(8, Some(10));
        shared.begin(Features::ours());
        assert_eq!(credit(&shared), 8);
        deliver(&shared, 0..8).unwrap();
        while take(&shared).is_some() {}
        assert_eq!(credit(&shared), 2);
        shared.begin(Features::ours());
        assert_eq!(credit(&shared), 2, "on a new connection the same two");
    }

    #[tokio::test]
    async fn acknowledgements_are_gathered_and_old_ones_dropped() {
        let shared = shared(8, None);
        shared.begin(Features::ours());
        credit(&shared);
        deliver(&shared, 0..3).unwrap();
        let all: Vec<ReceivedMessage> = (0..3).map(|_| take(&shared).unwrap()).collect();
        all.iter().for_each(ReceivedMessage::ack);
        assert!(!shared.work().ops.iter().any(|op| matches!(op, Op::Ack(_))), "they wait");
        tokio::time::sleep(Duration::from_millis(MAX_ACK_DELAY_MS) * 2).await;
        let ops = shared.work().ops;
        let range = AckMark::Range { stream: None, from: 0, to: 2 };
        assert_eq!(ops.first(), Some(&Op::Ack(vec![range])));
        shared.begin(Features::ours());
        all.iter().for_each(ReceivedMessage::ack);
        tokio::time::sleep(Duration::from_millis(MAX_ACK_DELAY_MS) * 2).await;
        assert!(!shared.work().ops.iter().any(|op| matches!(op, Op::Ack(_))));
    }

    #[tokio::test]
    async fn a_hub_that_takes_no_delay_is_given_back_what_is_due() {
        let shared = shared(8, None);
        shared.begin(Features::from_iter(["batch".to_owned()]));
        credit(&shared);
        deliver(&shared, 0..2).unwrap();
        let nacks = |ops: Vec<Op>| -> Vec<Op> {
            ops.into_iter().filter(|op| matches!(op, Op::Nack(..))).collect()
        };
        let [first, second] = [take(&shared).unwrap(), take(&shared).unwrap()];
        first.nack(Duration::from_millis(100));
        second.nack(Duration::from_secs(3600));
        let work = shared.work();
        assert!(work.wait_until.is_some() && nacks(work.ops).is_empty(), "it is held back here");
        tokio::time::sleep(Duration::from_millis(101)).await;
        let range = AckMark::Range { stream: None, from: 0, to: 0 };
        assert_eq!(nacks(shared.work().ops), [Op::Nack(vec![range], 0)]);
        assert!(nacks(shared.work().ops).is_empty(), "the second is not due");
        shared.begin(Features::ours());
        assert!(shared.work().wait_until.is_none(), "what was held is another connection's");
        assert!(shared.has("nack-delay"));
    }
}
