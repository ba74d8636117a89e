//! When a machine tells, asks for and gives orders.

use std::collections::{BTreeSet, VecDeque};

use sealane_frame::GroupTag;
use sealane_seal::{Epoch, Slot};

use super::OrderKeeper;
use crate::limits::{MAX_ORDER_GIVERS, MAX_PIECES_WAITING};
use crate::neighbour::LinkId;
use crate::{InterfaceId, MeshSpan, MeshTime};

/// When what is held is told on an interface: RFC 6206. As long as all tell the same it is told
/// less and less often, and by one of those who hear each other.
#[derive(Debug)]
pub(crate) struct OrderTrickle {
    least: MeshSpan,
    interval: MeshSpan,
    pub(crate) say_at: Option<MeshTime>,
    pub(crate) ends: MeshTime,
    has_heard: bool,
}

/// How often the shortest interval is doubled.
const DOUBLINGS: u64 = 6;

impl OrderTrickle {
    pub(crate) fn new(now: MeshTime, least: MeshSpan, chance: MeshSpan) -> Self {
        let (say_at, has_heard) = (None, false);
        let mut trickle = Self { least, interval: least, say_at, ends: now, has_heard };
        trickle.begin(now, chance);
        trickle
    }

    /// Somebody lacks something: it is told soon. `chance` lies below half of the least interval.
    pub(crate) fn reset(&mut self, now: MeshTime, least: MeshSpan, chance: MeshSpan) {
        self.least = least;
        self.has_heard = false;
        if self.interval > least || self.say_at.is_none() {
            self.interval = least;
            self.begin(now, chance);
        }
    }

    /// Somebody has told the same.
    pub(crate) fn heard_same(&mut self) {
        self.has_heard = true;
    }

    fn begin(&mut self, now: MeshTime, chance: MeshSpan) {
        let half = self.interval.part(2);
        let within = MeshSpan(chance.0 % half.0.max(1));
        self.say_at = Some(now + half + within);
        self.ends = now + self.interval;
        self.has_heard = false;
    }

    /// Whether it is to be told now.
    pub(crate) fn tick(&mut self, now: MeshTime, chance: MeshSpan) -> bool {
        let is_due = self.say_at.is_some_and(|at| at <= now);
        if is_due {
            self.say_at = None;
        }
        let says = is_due && !self.has_heard;
        if self.ends <= now {
            let most = self.least.times(1 << DOUBLINGS);
            self.interval = self.interval.times(2).min(most);
            self.begin(now, chance);
        }
        says
    }

    pub(crate) fn due(&self) -> MeshTime {
        self.say_at.unwrap_or(self.ends).min(self.ends)
    }
}

/// Orders that a machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderRange {
    /// The first one.
    pub(crate) first: u64,
    /// The one behind the last, which it lacks.
    pub(crate) wants: u64,
}

impl OrderRange {
    pub(crate) fn has(self, number: u64) -> bool {
        (self.first..self.wants).contains(&number)
    }
}

/// A neighbour that holds orders which are lacking here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderGiver {
    pub(crate) link: LinkId,
    pub(crate) holds: OrderRange,
}

/// The open question about one group.
#[derive(Debug)]
pub(crate) struct OrderAsk {
    givers: VecDeque<OrderGiver>,
    pub(crate) at: MeshTime,
    rounds: u8,
}

/// How often one neighbour is asked without anything coming.
const ROUNDS: u8 = 3;

impl OrderAsk {
    pub(crate) fn new(at: MeshTime) -> Self {
        Self { givers: VecDeque::new(), at, rounds: 0 }
    }

    /// Notes who can give.
    pub(crate) fn note(&mut self, giver: OrderGiver) {
        if let Some(known) = self.givers.iter_mut().find(|known| known.link == giver.link) {
            known.holds = giver.holds;
        } else if self.givers.len() < MAX_ORDER_GIVERS {
            self.givers.push_back(giver);
        }
    }

    /// Whom to ask now, and for which order. A neighbour that gives nothing is asked last the next
    /// time.
    pub(crate) fn whom(&mut self, keeper: &OrderKeeper) -> Option<(LinkId, u64)> {
        self.givers.retain(|one| keeper.lacks_of(one.holds).is_some());
        self.rounds += 1;
        if self.rounds > ROUNDS {
            self.pass_over();
        }
        let first = self.givers.front()?;
        Some((first.link, keeper.lacks_of(first.holds)?))
    }

    /// Gives up the neighbour that is being asked: it says itself again what it holds.
    pub(crate) fn pass_over(&mut self) {
        self.givers.pop_front();
        self.rounds = 1;
    }

    /// Something has come.
    pub(crate) fn came(&mut self, at: MeshTime) {
        self.at = at;
        self.rounds = 0;
    }
}

/// A piece that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PieceToSend {
    /// The epoch that those who asked can open.
    pub(crate) epoch: Epoch,
    pub(crate) group: GroupTag,
    pub(crate) number: u64,
    pub(crate) piece: u16,
}

/// The pieces that are to be sent on an interface.
#[derive(Debug, Default)]
pub(crate) struct PieceQueue {
    waiting: VecDeque<PieceToSend>,
    sent: VecDeque<(PieceToSend, MeshTime)>,
    pub(crate) at: MeshTime,
}

impl PieceQueue {
    /// Has a piece sent, unless it waits already or was sent within the pause.
    pub(crate) fn want(&mut self, now: MeshTime, give: PieceToSend, pause: MeshSpan) {
        self.sent.retain(|(_, at)| now.since(*at) < pause);
        let is_near = self.waiting.contains(&give) || self.sent.iter().any(|(one, _)| *one == give);
        if !is_near && self.waiting.len() < MAX_PIECES_WAITING {
            self.waiting.push_back(give);
        }
    }

    /// The next pieces, of one order and one after the other, at most so many.
    pub(crate) fn next(&self, most: usize) -> Option<(PieceToSend, usize)> {
        let first = *self.waiting.front()?;
        let follows = |(at, one): &(usize, &PieceToSend)| {
            usize::from(one.piece) == usize::from(first.piece) + at
                && PieceToSend { piece: first.piece, ..**one } == first
        };
        let run = self.waiting.iter().take(most.max(1)).enumerate().take_while(follows);
        Some((first, run.count()))
    }

    /// So many of them were sent, or are not there any more.
    pub(crate) fn done(&mut self, now: MeshTime, count: usize) {
        let done = self.waiting.drain(..count.min(self.waiting.len()));
        self.sent.extend(done.map(|give| (give, now)));
        let over = self.sent.len().saturating_sub(MAX_PIECES_WAITING);
        self.sent.drain(..over);
    }

    pub(crate) fn due(&self) -> Option<MeshTime> {
        (!self.waiting.is_empty()).then_some(self.at)
    }
}

/// A notice of removal that is told on an interface until all have shown that they have it.
#[derive(Debug)]
pub(crate) struct RemovalRepeat {
    pub(crate) interface: InterfaceId,
    pub(crate) group: GroupTag,
    /// The order, and who is removed.
    pub(crate) which: (u64, Slot),
    pub(crate) at: MeshTime,
    pub(crate) left: u8,
    /// The neighbours that have it.
    pub(crate) shown: BTreeSet<Slot>,
    /// Those of them who were heard telling it.
    pub(crate) tellers: BTreeSet<Slot>,
    /// The neighbours that have shown that they have not heard it.
    pub(crate) lacks: BTreeSet<Slot>,
}

impl RemovalRepeat {
    /// Notes whether a neighbour has it.
    pub(crate) fn note(&mut self, slot: Slot, has: bool) {
        if has {
            self.shown.insert(slot);
            self.lacks.remove(&slot);
        } else {
            self.shown.remove(&slot);
            self.lacks.insert(slot);
        }
    }
}

/// A neighbour that holds an earlier epoch of the mesh's group, and opens nothing of the newest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpochBehind {
    pub(crate) epoch: Epoch,
    pub(crate) until: MeshTime,
}

#[cfg(test)]
mod tests {
    use sealane_seal::GroupId;

    use super::*;
    use crate::KeptGroup;

    fn keeper(orders: u64, has_member: bool) -> OrderKeeper {
        let (tag, id) = (GroupTag::from_bytes([1; 4]), GroupId([2; 32]));
        OrderKeeper::new(KeptGroup { tag, id, authority: [3; 32], orders, has_member })
    }

    #[test]
    fn a_machine_without_a_member_begins_where_a_neighbour_does() {
        let link = LinkId { interface: InterfaceId(0), slot: Slot::new(1).unwrap() };
        let holds = OrderRange { first: 6, wants: 9 };
        let asked = |has_member| {
            let mut ask = OrderAsk::new(MeshTime(0));
            ask.note(OrderGiver { link, holds });
            ask.whom(&keeper(4, has_member)).map(|(_, number)| number)
        };
        assert_eq!([asked(false), asked(true)], [Some(6), None]);
    }

    #[test]
    fn what_all_know_is_told_less_and_less_often_and_by_one() {
        let least = MeshSpan::seconds(1);
        let mut trickle = OrderTrickle::new(MeshTime(0), least, MeshSpan(0));
        let mut said = vec![];
        while said.len() < 12 {
            let at = trickle.due();
            if trickle.tick(at, MeshSpan(0)) {
                said.push(at);
            }
        }
        let gaps: Vec<_> = said.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
        assert!(gaps.is_sorted() && gaps.last() == Some(&least.times(64).0), "{gaps:?}");
        let now = trickle.due();
        trickle.reset(now, least, MeshSpan(1));
        assert_eq!(trickle.due(), now + least.part(2) + MeshSpan(1));
        trickle.heard_same();
        assert!(!trickle.tick(trickle.due(), MeshSpan(0)), "somebody else has told it");
    }

    #[test]
    fn a_neighbour_that_gives_nothing_is_left() {
        let link = |slot| LinkId { interface: InterfaceId(0), slot: Slot::new(slot).unwrap() };
        let holds = OrderRange { first: 3, wants: 9 };
        let mut ask = OrderAsk::new(MeshTime(0));
        [1, 2].into_iter().for_each(|slot| ask.note(OrderGiver { link: link(slot), holds }));
        let lacking = keeper(5, true);
        let mut whom = |_| ask.whom(&lacking).map(|(one, number)| (one.slot.number(), number));
        let asked: Vec<_> = (0..7).map(&mut whom).collect();
        let (one, two) = (Some((1, 5)), Some((2, 5)));
        assert_eq!(asked, [one, one, one, two, two, two, None]);
        ask.note(OrderGiver { link: link(1), holds });
        assert_eq!(ask.whom(&keeper(9, true)), None, "it lacks it, too");
    }

    #[test]
    fn a_piece_is_sent_once_in_a_while_whoever_asks() {
        let (mut giving, pause) = (PieceQueue::default(), MeshSpan(100));
        let give = |piece| PieceToSend {
            epoch: Epoch(0),
            group: GroupTag::from_bytes([1; 4]),
            number: 3,
            piece,
        };
        for piece in [0, 1, 1, 0, 2, 9] {
            giving.want(MeshTime(0), give(piece), pause);
        }
        assert_eq!(giving.next(8), Some((give(0), 3)));
        assert_eq!(giving.next(2), Some((give(0), 2)));
        giving.done(MeshTime(5), 3);
        giving.want(MeshTime(104), give(1), pause);
        assert_eq!(giving.next(8), Some((give(9), 1)));
        giving.want(MeshTime(105), give(1), pause);
        giving.done(MeshTime(105), 1);
        assert_eq!(giving.next(8), Some((give(1), 1)));
        (0..u16::MAX).for_each(|piece| giving.want(MeshTime(200), give(piece), pause));
        assert_eq!(giving.waiting.len(), MAX_PIECES_WAITING);
    }
}
