//! The memory of replies that clients have not taken yet.
//!
//! A reply that fits the share of a connection counts as deliveries do. A larger one is held here,
//! in room that no smaller one can take, and leaves in pieces as its client takes them. If a
//! further one lacks room, those that stand still are cut off, the longest first: of the same
//! owner where that has its part, and else of all. A reply that is refused waited for clients that
//! read, or for its turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::DeliveryShare;
use crate::limits::{MAX_REPLIES_BYTES, MAX_REPLIES_MADE, MIN_REPLY_STALL_MS, REPLY_PIECE_BYTES};
use crate::peer::ClientPeer;

/// The client that a reply counts for: each has a share of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ReplyOwner {
    Token(Arc<str>),
    /// An address, where no token is asked for.
    Peer(ClientPeer),
    /// A request that came by no connection.
    Unknown,
}

/// The memory of replies that are larger than the share of a connection.
pub(crate) struct ReplyMemory {
    max_kib: usize,
    turns: Arc<Semaphore>,
    /// Places of those that wait for room and hold memory meanwhile.
    waits: Arc<Semaphore>,
    room: Mutex<ReplyRoom>,
    /// Told when a reply has gone.
    gone: Notify,
    /// Replies that are held, the small ones too.
    count: Arc<AtomicUsize>,
    cut: AtomicU64,
}

#[derive(Default)]
struct ReplyRoom {
    held_kib: usize,
    next: u64,
    replies: HashMap<u64, HeldReply>,
    owners: HashMap<ReplyOwner, OwnerReplies>,
}

/// One reply, and how far its client has come.
struct HeldReply {
    owner: ReplyOwner,
    kib: usize,
    /// The rest of it; none: the reply is still being made.
    bytes: Option<Bytes>,
    /// When the client took something last.
    since: Instant,
    /// Told when it is cut off, for who holds its bytes elsewhere.
    cut: Arc<Notify>,
}

/// The replies of one owner.
struct OwnerReplies {
    kib: usize,
    turns: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    /// Replies, turns and places that need this entry.
    users: usize,
}

impl ReplyMemory {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            max_kib: MAX_REPLIES_BYTES >> 10,
            turns: Arc::new(Semaphore::new(MAX_REPLIES_MADE)),
            waits: Arc::new(Semaphore::new(MAX_REPLIES_MADE)),
            room: Mutex::default(),
            gone: Notify::new(),
            count: Arc::default(),
            cut: AtomicU64::new(0),
        })
    }

    /// How many replies are held.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes of the large ones.
    pub(crate) fn held(&self) -> usize {
        self.room.lock().held_kib << 10
    }

    /// Replies that were cut off.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Waits until the owner, which has a part of all (`parts`), may make a reply of unknown size.
    /// None: it took too long.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        owner: &ReplyOwner,
        parts: usize,
        until: Instant,
    ) -> Option<ReplyTurn> {
        let place = OwnerPlace::new(self, owner, parts);
        let both = async {
            // The own turn comes first. A crowd of one owner waits there, and not before others.
            let own = place.turns.clone().acquire_owned().await.ok()?;
            let of_node = self.turns.clone().acquire_owned().await.ok()?;
            Some((own, of_node))
        };
        let (own, of_node) = timeout_at(until, both).await.ok().flatten()?;
        Some(ReplyTurn { _own: own, _of_node: of_node, _place: place })
    }

    /// Room for a reply of so many bytes, of which the owner may hold a part of all (`parts`).
    /// Replies that stand still make room for it.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        owner: &ReplyOwner,
        parts: usize,
        bytes: usize,
        now: Instant,
    ) -> Option<ReplyHold> {
        let kib = (bytes + REPLY_PIECE_BYTES).div_ceil(1024);
        let owner_kib_max = self.max_kib / parts.max(1);
        let mut room = self.room.lock();
        loop {
            let of_owner = room.owners.get(owner).map_or(0, |owner| owner.kib);
            // One reply always passes, however large it is.
            let is_owner_full = of_owner > 0 && of_owner + kib > owner_kib_max;
            let is_full = room.held_kib > 0 && room.held_kib + kib > self.max_kib;
            if !is_owner_full && !is_full {
                break;
            }
            let stalled = room.longest_stalled(is_owner_full.then_some(owner), now)?;
            room.replies.get(&stalled).into_iter().for_each(|held| held.cut.notify_one());
            self.let_go(&mut room, stalled);
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        let number = room.next;
        room.next += 1;
        room.held_kib += kib;
        let of_owner = room.owner(owner, parts);
        of_owner.kib += kib;
        of_owner.users += 1;
        let (owner, cut) = (owner.clone(), Arc::new(Notify::new()));
        let held = HeldReply { owner, kib, bytes: None, since: now, cut: cut.clone() };
        room.replies.insert(number, held);
        drop(room);
        Some(ReplyHold { memory: self.clone(), number, bytes, cut, _counted: self.counted() })
    }

    /// A place to wait for room with memory that nobody counts, for an owner that has a part of all
    /// (`parts`). None: as many wait already as may.
    pub(crate) fn wait_place(
        self: &Arc<Self>,
        owner: &ReplyOwner,
        parts: usize,
    ) -> Option<ReplyWaitPlace> {
        let place = OwnerPlace::new(self, owner, parts);
        // The own place comes first, as with turns. A crowd of one owner leaves others theirs.
        let own = place.waits.clone().try_acquire_owned().ok()?;
        let of_node = self.waits.clone().try_acquire_owned().ok()?;
        Some(ReplyWaitPlace { _own: own, _of_node: of_node, _place: place })
    }

    /// Waits until there may be more room. Returns whether there is still time.
    pub(crate) async fn wait(&self, until: Instant) -> bool {
        // A reply that stands still may be cut off only after a while, of which nobody is told.
        let look = Instant::now() + Duration::from_millis(MIN_REPLY_STALL_MS / 2);
        tokio::select! {
            () = self.gone.notified() => {}
            () = sleep_until(look.min(until)) => {}
        }
        Instant::now() < until
    }

    /// A reply that is held, for as long as this is there.
    pub(crate) fn counted(&self) -> ReplyCounted {
        self.count.fetch_add(1, Ordering::Relaxed);
        ReplyCounted(self.count.clone())
    }

    fn let_go(&self, room: &mut ReplyRoom, number: u64) {
        let Some(held) = room.replies.remove(&number) else { return };
        room.held_kib -= held.kib;
        room.leave(&held.owner, held.kib);
        self.gone.notify_waiters();
    }
}

impl ReplyRoom {
    fn owner(&mut self, owner: &ReplyOwner, parts: usize) -> &mut OwnerReplies {
        let part = || Arc::new(Semaphore::new((MAX_REPLIES_MADE / parts.max(1)).max(1)));
        let new = || OwnerReplies { kib: 0, turns: part(), waits: part(), users: 0 };
        self.owners.entry(owner.clone()).or_insert_with(new)
    }

    fn leave(&mut self, owner: &ReplyOwner, kib: usize) {
        let Some(of_owner) = self.owners.get_mut(owner) else { return };
        of_owner.kib -= kib;
        of_owner.users -= 1;
        // The map is then as large as the owners that have something here.
        if of_owner.users == 0 {
            self.owners.remove(owner);
        }
    }

    /// The reply of which nothing was taken for the longest time, and for long enough.
    fn longest_stalled(&self, of: Option<&ReplyOwner>, now: Instant) -> Option<u64> {
        let stall = Duration::from_millis(MIN_REPLY_STALL_MS);
        let may_go = |held: &HeldReply| {
            let is_asked = of.is_none_or(|owner| held.owner == *owner);
            is_asked && held.bytes.is_some() && now.saturating_duration_since(held.since) >= stall
        };
        let stalled = self.replies.iter().filter(|(_, held)| may_go(held));
        stalled.min_by_key(|(_, held)| held.since).map(|(number, _)| *number)
    }
}

/// The entry of an owner, which stays while this is there.
struct OwnerPlace {
    memory: Arc<ReplyMemory>,
    owner: ReplyOwner,
    turns: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

impl OwnerPlace {
    fn new(memory: &Arc<ReplyMemory>, owner: &ReplyOwner, parts: usize) -> Self {
        let mut room = memory.room.lock();
        let of_owner = room.owner(owner, parts);
        of_owner.users += 1;
        let (turns, waits) = (of_owner.turns.clone(), of_owner.waits.clone());
        Self { memory: memory.clone(), owner: owner.clone(), turns, waits }
    }
}

impl Drop for OwnerPlace {
    fn drop(&mut self) {
        self.memory.room.lock().leave(&self.owner, 0);
    }
}

/// The right to make one reply now.
pub(crate) struct ReplyTurn {
    _own: OwnedSemaphorePermit,
    _of_node: OwnedSemaphorePermit,
    _place: OwnerPlace,
}

/// A place of one that waits for room.
pub(crate) struct ReplyWaitPlace {
    _own: OwnedSemaphorePermit,
    _of_node: OwnedSemaphorePermit,
    _place: OwnerPlace,
}

/// One of the replies that are held.
pub(crate) struct ReplyCounted(Arc<AtomicUsize>);

impl Drop for ReplyCounted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The room of one large reply, until it is dropped.
pub(crate) struct ReplyHold {
    memory: Arc<ReplyMemory>,
    number: u64,
    bytes: usize,
    cut: Arc<Notify>,
    _counted: ReplyCounted,
}

impl ReplyHold {
    /// The bytes that it was made for.
    pub(crate) fn room(&self) -> usize {
        self.bytes
    }

    /// Holds the reply, which may be cut off from now on.
    pub(crate) fn fill(&self, bytes: Vec<u8>) {
        let mut room = self.memory.room.lock();
        if let Some(held) = room.replies.get_mut(&self.number) {
            held.bytes = Some(bytes.into());
            held.since = Instant::now();
        }
    }

    /// Holds bytes that are elsewhere, as [`ReplyHold::fill`] does.
    pub(crate) fn fill_elsewhere(&self) {
        self.fill(Vec::new());
    }

    /// Notes that the client has taken some of what is elsewhere.
    pub(crate) fn touch(&self) {
        if let Some(held) = self.memory.room.lock().replies.get_mut(&self.number) {
            held.since = Instant::now();
        }
    }

    /// Waits until it is cut off.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }

    /// A copy of the next piece, empty behind the last one. None: the reply was cut off.
    pub(crate) fn next_piece(&self) -> Option<Bytes> {
        let piece = {
            let mut room = self.memory.room.lock();
            let held = room.replies.get_mut(&self.number)?;
            held.since = Instant::now();
            let left = held.bytes.as_mut()?;
            left.split_to(left.len().min(REPLY_PIECE_BYTES))
        };
        // A slice would keep the whole reply, which another one may need the room of.
        Some(Bytes::copy_from_slice(&piece))
    }
}

impl Drop for ReplyHold {
    fn drop(&mut self) {
        let mut room = self.memory.room.lock();
        self.memory.let_go(&mut room, self.number);
    }
}

/// The room that a reply has.
pub(crate) enum ReplyPlace {
    /// It fits the share of a connection.
    Share(DeliveryShare, ReplyCounted),
    Hold(ReplyHold),
}

impl ReplyPlace {
    /// Bytes that it has room for.
    pub(crate) fn room(&self) -> usize {
        match self {
            ReplyPlace::Share(share, _) => share.bytes(),
            ReplyPlace::Hold(hold) => hold.room(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::DeliveryMemory;
    use super::*;
    use crate::limits::MAX_DELIVERIES_BYTES;

    fn memory() -> (DeliveryMemory, Arc<ReplyMemory>) {
        let deliveries = DeliveryMemory::new(MAX_DELIVERIES_BYTES - MAX_REPLIES_BYTES);
        (deliveries, ReplyMemory::new())
    }

    fn token(name: &str) -> ReplyOwner {
        ReplyOwner::Token(name.into())
    }

    const MIB: usize = 1 << 20;

    fn later() -> Instant {
        Instant::now() + Duration::from_millis(2 * MIN_REPLY_STALL_MS)
    }

    #[test]
    fn replies_that_stand_still_make_room_and_those_that_are_read_do_not() {
        let (deliveries, replies) = memory();
        let (owner, now) = (token("a"), Instant::now());
        let mut held = Vec::new();
        while let Some(hold) = replies.reserve(&owner, 1, 7 * MIB, now) {
            hold.fill(vec![7; 7 * MIB]);
            held.push(hold);
            assert!(replies.held() <= MAX_REPLIES_BYTES);
        }
        assert_eq!((held.len(), deliveries.held()), (9, 0));
        // Nothing goes as long as nobody knows that it stands still.
        assert!(replies.reserve(&owner, 1, 7 * MIB, now).is_none());
        let further = replies.reserve(&owner, 1, 7 * MIB, later()).unwrap();
        assert_eq!(replies.cut(), 1);
        let told = |hold: &&ReplyHold| hold.cut().now_or_never().is_some();
        assert_eq!(held.iter().filter(told).count(), 1);
        let cut = held.iter().filter(|hold| hold.next_piece().is_none()).count();
        assert_eq!(cut, 1, "one went, and the others go on");
        drop((held, further));
        assert_eq!((replies.held(), replies.count(), deliveries.held()), (0, 0, 0));
        assert!(replies.room.lock().owners.is_empty());
    }

    #[test]
    fn unread_replies_that_are_small_leave_large_ones_their_room() {
        let (deliveries, replies) = memory();
        // Each connection is the only one more when it asks, and has the largest share for it.
        let mut small: Vec<_> = (1..4000).map(|count| deliveries.share(count)).collect();
        small.iter_mut().for_each(|share| share.keep(share.bytes()));
        let now = Instant::now();
        let mut large = Vec::new();
        for owner in ["b", "c"] {
            let hold = replies.reserve(&token(owner), 4, 15 * MIB, now);
            large.push(hold.expect("room that no small reply takes"));
        }
        assert!(deliveries.held() + replies.held() <= MAX_DELIVERIES_BYTES);
    }

    #[test]
    fn a_reply_that_its_client_takes_elsewhere_does_not_stand_still() {
        let (_deliveries, replies) = memory();
        let began = Instant::now();
        let holds = [token("a"), token("b")].map(|owner| {
            let hold = replies.reserve(&owner, 1, 30 * MIB, began).unwrap();
            hold.fill_elsewhere();
            hold
        });
        std::thread::sleep(Duration::from_millis(MIN_REPLY_STALL_MS + 50));
        holds[0].touch();
        assert!(replies.reserve(&token("c"), 1, 30 * MIB, Instant::now()).is_some());
        let told = holds.map(|hold| hold.cut().now_or_never().is_some());
        assert_eq!(told, [false, true]);
    }

    #[test]
    fn an_owner_beyond_its_part_makes_room_of_its_own() {
        let (_deliveries, replies) = memory();
        let other = replies.reserve(&token("b"), 4, MIB, Instant::now()).unwrap();
        other.fill(vec![7; MIB]);
        let mut held = Vec::new();
        for _ in 0..3 {
            let hold = replies.reserve(&token("a"), 4, 5 * MIB, Instant::now()).unwrap();
            hold.fill(vec![7; 5 * MIB]);
            held.push(hold);
        }
        assert!(replies.reserve(&token("a"), 4, 5 * MIB, Instant::now()).is_none());
        let further = replies.reserve(&token("a"), 4, 5 * MIB, later()).unwrap();
        assert!(other.next_piece().is_some(), "another owner's stays");
        drop(further);
    }

    #[tokio::test]
    async fn a_crowd_of_one_owner_waits_for_itself() {
        let (_deliveries, replies) = memory();
        let soon = || Instant::now() + Duration::from_millis(50);
        let mut held = Vec::new();
        for _ in 0..MAX_REPLIES_MADE / 4 {
            held.push(replies.turn(&token("a"), 4, soon()).await.unwrap());
        }
        assert!(replies.turn(&token("a"), 4, soon()).await.is_none());
        assert!(replies.turn(&token("b"), 4, soon()).await.is_some());
        held.pop();
        assert!(replies.turn(&token("a"), 4, soon()).await.is_some());
        held.clear();
        assert!(replies.room.lock().owners.is_empty());
    }

    #[test]
    fn few_wait_with_memory_that_nobody_counts() {
        let (_deliveries, replies) = memory();
        let place = |name: &str| replies.wait_place(&token(name), 4);
        let mut held = Vec::new();
        for _ in 0..MAX_REPLIES_MADE / 4 {
            held.push(place("a").unwrap());
        }
        assert!(place("a").is_none(), "an owner has a part of the places");
        for name in ["b", "c", "d"] {
            held.extend((0..MAX_REPLIES_MADE / 4).map(|_| place(name).unwrap()));
        }
        assert!(place("e").is_none(), "the node has no more");
        held.pop();
        assert!(place("e").is_some());
        held.clear();
        assert!(replies.room.lock().owners.is_empty());
    }
}
