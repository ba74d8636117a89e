//! The order of what an origin sent, when it comes in another one.
//!
//! Neighbours hand on what is new at once, and what a machine has missed when they find that out.
//! So frames can overtake others. A sender counts all that it seals: a gap between two counters
//! says that something may still come. Frames behind a gap wait for it, but not for long, since the
//! gap may be a frame that is for nobody here, or that is lost.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use sealane_frame::GroupTag;

use crate::limits::{MAX_ORDER_HELD, MAX_ORDER_WAIT_MS};

/// A frame of an origin that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTurn {
    /// The group, and the origin's slot there.
    pub origin: (GroupTag, u16),
    /// Its epoch and counter.
    pub stamp: (u64, u64),
    /// Whether it goes at once.
    pub is_urgent: bool,
    /// When it came.
    pub came: Instant,
}

/// Which frames' turn it is. Its size is bounded by the members on relay cards. A choice is made on
/// a copy, which is dropped where the disk refuses the frames: they are chosen again then, and
/// counted once.
#[derive(Debug, Clone, Default)]
pub struct FrameOrder {
    origins: HashMap<(GroupTag, u16), OriginOrder>,
    late: u64,
}

#[derive(Debug, Clone, Default)]
struct OriginOrder {
    /// The greatest stamp up to which frames have gone in order.
    last: Option<(u64, u64)>,
    /// Urgent frames that went ahead of it.
    ahead: BTreeSet<(u64, u64)>,
}

impl FrameOrder {
    /// Of frames that wait, the places of those whose turn it is, in their order.
    pub fn choose(&mut self, waiting: &[FrameTurn], now: Instant) -> Vec<usize> {
        let mut by_origin: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, turn) in waiting.iter().enumerate() {
            by_origin.entry(turn.origin).or_default().push(place);
        }
        let mut chosen = Vec::new();
        for (origin, mut places) in by_origin {
            // Counters order the frames of one origin alone. Between origins there is no order to
            // restore.
            places.sort_by_key(|place| waiting.get(*place).map(|turn| turn.stamp));
            let turns: Vec<_> = places
                .iter()
                .filter_map(|place| waiting.get(*place).map(|turn| (*place, *turn)))
                .collect();
            let known = self.origins.entry(origin).or_default();
            chosen.extend(known.choose(&turns, now, &mut self.late));
        }
        chosen
    }

    /// How many frames came when later ones of their origin had gone.
    pub fn late(&self) -> u64 {
        self.late
    }
}

impl OriginOrder {
    /// Of the frames of this origin, by their stamps.
    fn choose(&mut self, turns: &[(usize, FrameTurn)], now: Instant, late: &mut u64) -> Vec<usize> {
        let wait = Duration::from_millis(MAX_ORDER_WAIT_MS);
        // A frame that has waited long enough takes along all frames that stand before it.
        let is_over = |turn: &FrameTurn| now.saturating_duration_since(turn.came) >= wait;
        // A frame that goes on ahead of earlier ones would make those late, so that they go first.
        let over = turns.iter().rposition(|(_, turn)| is_over(turn)).map_or(0, |at| at + 1);
        // A forged counter opens a gap that never fills. The bound keeps it from holding up an
        // origin for ever.
        let over = if turns.len() > MAX_ORDER_HELD { turns.len() } else { over };
        let mut chosen = Vec::new();
        for (index, (place, turn)) in turns.iter().enumerate() {
            // A gap may be a frame that still comes, so that those behind it wait for a while.
            let is_next = self.is_next(turn.stamp);
            if index < over || is_next {
                // A late frame is still sent on. Readers can order by counters, and only the count
                // tells an operator.
                *late += u64::from(self.last.is_some_and(|last| turn.stamp < last));
                // The mark only grows. A late frame must not reopen a gap that has been given up.
                self.last = self.last.max(Some(turn.stamp));
                chosen.push(*place);
            } else if turn.is_urgent {
                // An urgent frame is noted and does not move the mark, or it would make late those
                // that it overtook.
                self.go_ahead(turn.stamp);
                chosen.push(*place);
            }
            self.pass_ahead();
        }
        chosen
    }

    /// Whether a frame follows those that have gone, or comes late.
    fn is_next(&self, (epoch, counter): (u64, u64)) -> bool {
        // A gateway that has just started knows no mark. The first frames of an origin then wait
        // for earlier ones.
        self.last.is_some_and(|last| (epoch, counter) <= (last.0, last.1.saturating_add(1)))
    }

    /// Remembers an urgent frame that goes ahead. Whoever makes up counters without end takes no
    /// more memory than an honest origin: of a frame that is forgotten there seems to be a gap.
    fn go_ahead(&mut self, stamp: (u64, u64)) {
        self.ahead.insert(stamp);
        if self.ahead.len() > MAX_ORDER_HELD {
            self.ahead.pop_last();
        }
    }

    /// Frames that went ahead leave no gap.
    fn pass_ahead(&mut self) {
        while let Some((epoch, counter)) = self.last
            && self.ahead.remove(&(epoch, counter.saturating_add(1)))
        {
            self.last = Some((epoch, counter.saturating_add(1)));
        }
        if let Some(last) = self.last {
            // Stamps below the mark fill no gap, and would only use up the bound.
            self.ahead = self.ahead.split_off(&last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        order: FrameOrder,
        now: Instant,
        waiting: Vec<FrameTurn>,
    }

    impl Scene {
        fn new() -> Scene {
            Scene { order: FrameOrder::default(), now: Instant::now(), waiting: vec![] }
        }

        fn comes(&mut self, slot: u16, counter: u64, is_urgent: bool) {
            let origin = (GroupTag::from_bytes([1; 4]), slot);
            self.waiting.push(FrameTurn { origin, stamp: (0, counter), is_urgent, came: self.now });
        }

        /// The counters of those that go now.
        fn go(&mut self) -> Vec<u64> {
            let chosen = self.order.choose(&self.waiting, self.now);
            let counters = chosen.iter().map(|place| self.waiting[*place].stamp.1).collect();
            let mut place = 0;
            self.waiting.retain(|_| {
                place += 1;
                !chosen.contains(&(place - 1))
            });
            counters
        }

        fn wait(&mut self, ms: u64) {
            self.now += Duration::from_millis(ms);
        }
    }

    #[test]
    fn what_follows_goes_at_once_and_a_gap_is_waited_for() {
        let mut scene = Scene::new();
        // A gateway that has just started may have missed something.
        scene.comes(1, 11, false);
        assert_eq!(scene.go(), [0; 0]);
        scene.comes(1, 10, false);
        scene.wait(MAX_ORDER_WAIT_MS);
        assert_eq!(scene.go(), [10, 11]);
        scene.comes(1, 12, false);
        assert_eq!(scene.go(), [12]);
        scene.comes(1, 15, false);
        scene.comes(1, 14, false);
        assert_eq!(scene.go(), [0; 0]);
        scene.comes(1, 13, false);
        assert_eq!(scene.go(), [13, 14, 15]);
        // A missing frame is not waited for forever; if it comes then, it is late.
        scene.comes(1, 17, false);
        scene.wait(MAX_ORDER_WAIT_MS - 1);
        assert_eq!(scene.go(), [0; 0]);
        scene.wait(1);
        assert_eq!((scene.go(), scene.order.late()), (vec![17], 0));
        scene.comes(1, 16, false);
        assert_eq!((scene.go(), scene.order.late()), (vec![16], 1));
    }

    #[test]
    fn calls_for_help_wait_for_nobody_and_leave_no_gap() {
        let mut scene = Scene::new();
        scene.comes(1, 1, false);
        scene.wait(MAX_ORDER_WAIT_MS);
        assert_eq!(scene.go(), [1]);
        scene.comes(1, 3, true);
        scene.comes(1, 4, false);
        assert_eq!(scene.go(), [3]);
        scene.comes(1, 2, false);
        assert_eq!(scene.go(), [2, 4]);
    }

    #[test]
    fn urgent_frames_with_made_up_counters_take_no_memory() {
        let mut scene = Scene::new();
        scene.comes(1, 1, false);
        scene.wait(MAX_ORDER_WAIT_MS);
        assert_eq!(scene.go(), [1]);
        for counter in 0..10_000 {
            scene.comes(1, 1_000_000 + 2 * counter, true);
            assert_eq!(scene.go().len(), 1, "each goes at once");
        }
        let ahead = |scene: &Scene| scene.order.origins.values().map(|one| one.ahead.len()).sum();
        let held: usize = ahead(&scene);
        assert!(held <= MAX_ORDER_HELD, "{held}");
        // The true ones between are still known.
        scene.comes(1, 3, true);
        scene.comes(1, 4, false);
        assert_eq!(scene.go(), [3]);
        scene.comes(1, 2, false);
        assert_eq!(scene.go(), [2, 4]);
    }

    #[test]
    fn origins_do_not_wait_for_each_other_and_none_for_too_many() {
        let mut scene = Scene::new();
        scene.comes(1, 1, false);
        scene.comes(2, 1, false);
        scene.wait(MAX_ORDER_WAIT_MS);
        assert_eq!(scene.go(), [1, 1]);
        scene.comes(1, 3, false);
        scene.comes(2, 2, false);
        assert_eq!(scene.go(), [2]);
        let held = MAX_ORDER_HELD as u64;
        (4..held + 3).for_each(|counter| scene.comes(1, counter, false));
        assert_eq!(scene.go(), [0; 0]);
        scene.comes(1, held + 3, false);
        assert_eq!(scene.go(), (3..held + 4).collect::<Vec<_>>(), "its log has no more room");
    }
}
