//! From the documents that neighbours exchange into a gateway's queue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealane_document::{DocumentCursor, DocumentStore, ShelfFrame};
use sealane_frame::PeerTag;

use super::{FollowedStore, FrameOrder, FrameTurn, Gateway};
use crate::limits::{MAX_ORDER_WAIT_MS, MAX_QUEUE_COMMIT};

/// Follows a store of documents: each frame goes into the queue once, in the order of its origin.
pub(super) struct DocumentFollower {
    gateway: Arc<Gateway>,
    own: PeerTag,
    order: FrameOrder,
    /// All up to this place has gone; none before the queue was asked.
    followed: Option<u64>,
    /// Places behind it that have gone.
    gone: BTreeSet<u64>,
    /// Those that wait, and when each came.
    waiting: Vec<(u64, Instant)>,
}

impl DocumentFollower {
    pub(super) fn new(gateway: &Arc<Gateway>, own: PeerTag) -> DocumentFollower {
        let gateway = Arc::clone(gateway);
        let (gone, waiting) = (BTreeSet::new(), Vec::new());
        DocumentFollower {
            gateway,
            own,
            order: FrameOrder::default(),
            followed: None,
            gone,
            waiting,
        }
    }

    /// Takes what has come. What the queue does not keep now is tried again at the next look.
    pub(super) fn look(&mut self, store: &DocumentStore) {
        let id = store.id();
        // The queue says where to go on. Its answer may fail with the disk, and is asked again.
        let Some(at) = self.followed.or_else(|| self.gateway.followed(id).ok()) else { return };
        self.followed = Some(at);
        let fresh = store.since(DocumentCursor(at), MAX_QUEUE_COMMIT);
        if fresh.is_empty() {
            return;
        }
        let now = Instant::now();
        let (places, turns) = self.turns(&fresh, now);
        // The store does not even show documents behind so many. So none of them waits for others
        // any more.
        let is_crowded = fresh.len() == MAX_QUEUE_COMMIT;
        let patience = if is_crowded { MAX_ORDER_WAIT_MS } else { 0 };
        // Order and set change on copies, since the queue may refuse the commit below. On the
        // originals the frames of a refused commit would count as late when they come again.
        let (mut order, mut gone) = (self.order.clone(), self.gone.clone());
        let chosen: Vec<&ShelfFrame> = order
            .choose(&turns, now + Duration::from_millis(patience))
            .into_iter()
            .filter_map(|one| fresh.get(*places.get(one)?))
            .collect();
        gone.extend(chosen.iter().map(|one| one.at.0));
        // The stored place moves only over frames without a gap. Frames that went ahead are noted
        // in memory alone.
        let through = fresh.iter().map(|one| one.at.0).take_while(|at| gone.contains(at)).last();
        let at = through.unwrap_or(at);
        // Nothing would change, and an empty commit would still be an fsync at each look.
        if chosen.is_empty() && self.followed == Some(at) {
            return;
        }
        // Frames that the hub gave this machine are there already.
        let brought = chosen.iter().filter(|one| one.from != self.own);
        let frames = brought.map(|one| &one.entry.frame()[..]);
        let followed = FollowedStore { store: id, at };
        if self.gateway.follow(frames, followed, order.late()).is_ok() {
            self.order = order;
            // Below the place all have gone, so that only the places behind it need memory.
            self.gone = gone.split_off(&at.saturating_add(1));
            self.waiting.retain(|(place, _)| *place > at && !self.gone.contains(place));
            self.followed = Some(at);
        }
    }

    /// Those that have not gone: their places among the fresh ones, and what their order depends
    /// on.
    fn turns(&mut self, fresh: &[ShelfFrame], now: Instant) -> (Vec<usize>, Vec<FrameTurn>) {
        let mut turns = Vec::new();
        let mut places = Vec::new();
        for (place, one) in fresh.iter().enumerate() {
            let at = one.at.0;
            if self.gone.contains(&at) {
                continue;
            }
            let known = self.waiting.iter().find(|(waits, _)| *waits == at).map(|(_, came)| *came);
            if known.is_none() {
                self.waiting.push((at, now));
            }
            let entry = &one.entry;
            places.push(place);
            turns.push(FrameTurn {
                origin: (one.group, entry.origin.number()),
                stamp: (entry.stamp.epoch.0, entry.stamp.counter),
                is_urgent: entry.data_type.is_urgent(),
                came: known.unwrap_or(now),
            });
        }
        (places, turns)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use sealane_document::{DocumentQuota, ShelfKeeper};
    use sealane_message::DataType;

    use super::*;
    use crate::gateway::frame::tests::frame;
    use crate::gateway::running::tests::gateway_without_a_hub;

    #[tokio::test]
    async fn frames_that_the_disk_refuses_are_counted_when_it_takes_them() {
        let folder = tempfile::tempdir().unwrap();
        let up = HashSet::from([DataType::CHAT]);
        let gateway = Arc::new(gateway_without_a_hub(folder.path(), &up));
        let mut follower = DocumentFollower::new(&gateway, PeerTag::from_bytes([9; 8]));
        let keeper = ShelfKeeper::Member;
        let mut store = DocumentStore::in_memory(keeper, DocumentQuota::default()).unwrap();
        let mut comes = |counter: u64, follower: &mut DocumentFollower| {
            let chat = frame(1, 2, DataType::CHAT.number(), counter);
            store.take(&chat, PeerTag::from_bytes([3; 8])).unwrap();
            follower.look(&store);
            // The frames behind a gap have waited for long enough.
            let wait = Duration::from_millis(MAX_ORDER_WAIT_MS);
            follower.waiting.iter_mut().for_each(|(_, came)| *came -= wait);
            follower.look(&store);
            let status = gateway.status();
            (status.heard.taken, status.late, status.queue.frames)
        };
        assert_eq!(comes(5, &mut follower), (1, 0, 1));
        gateway.fail_disk(true);
        assert_eq!(comes(4, &mut follower), (1, 0, 1), "it is not kept, and counts nowhere");
        assert!(gateway.status().queue_fault.is_some());
        gateway.fail_disk(false);
        assert_eq!(comes(6, &mut follower), (3, 1, 3), "it is late once");
        assert_eq!(gateway.status().heard.repeated, 0);
    }
}
