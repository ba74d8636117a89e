//! The machines that are heard and not understood, and how often they are asked to announce
//! themselves.

use sealane_seal::Slot;

use crate::limits::MAX_STRANGERS;
use crate::{MeshSpan, MeshTime};

/// Those who are asked on an interface, by the slots that their units claim. Where the edge of what
/// a radio reaches is wide, somebody is always heard once and not again: whoever asked each time
/// would spend air time for ever on those who do not hear it.
#[derive(Debug, Default)]
pub(crate) struct MeshStrangers {
    known: Vec<AskedStranger>,
    /// The strangers that are asked with the next hello.
    asks: AnnounceAsks,
    /// When somebody was last asked who was not known.
    asked_at: Option<MeshTime>,
}

/// The strangers that are asked to announce themselves.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum AnnounceAsks {
    Nobody,
    /// Up to [`STRANGERS_ASKED`], which a hello lists as not heard.
    These(Vec<Slot>),
    /// Also with the first hello.
    #[default]
    All,
}

impl AnnounceAsks {
    /// The slots that are listed as strangers.
    pub(crate) fn strangers(&self) -> &[Slot] {
        match self {
            AnnounceAsks::These(slots) => slots,
            AnnounceAsks::Nobody | AnnounceAsks::All => &[],
        }
    }

    fn has_room(&self) -> bool {
        matches!(self, AnnounceAsks::These(slots) if slots.len() < STRANGERS_ASKED)
    }

    fn add(&mut self, slot: Option<Slot>) {
        match (&mut *self, slot) {
            (AnnounceAsks::All, _) => {}
            (_, None) => *self = AnnounceAsks::All,
            (AnnounceAsks::Nobody, Some(slot)) => *self = AnnounceAsks::These(vec![slot]),
            (AnnounceAsks::These(slots), Some(slot)) => {
                if slots.len() < STRANGERS_ASKED && !slots.contains(&slot) {
                    slots.push(slot);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct AskedStranger {
    slot: Slot,
    asked: MeshTime,
    asks: u32,
}

/// How an interface asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskManner {
    /// Announcements go in parts.
    pub(crate) is_narrow: bool,
    /// Everybody is asked, and told of this machine each time.
    pub(crate) is_scarce: bool,
}

/// Strangers that one hello asks for their announcements.
const STRANGERS_ASKED: usize = 4;
/// So often a stranger is asked soon.
const SOON: u32 = 4;
/// Then the pause doubles so many times at most.
const DOUBLINGS: u32 = 5;
/// After so many hello intervals a stranger is a new one.
const FORGOTTEN_INTERVALS: u64 = 48;

/// Whether a stranger is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StrangerAsk {
    /// It was not asked often yet, and may know as little of this machine.
    Soon,
    Seldom,
    NotNow,
}

impl MeshStrangers {
    /// The strangers that are asked with the next hello.
    pub(crate) fn asks(&self) -> &AnnounceAsks {
        &self.asks
    }

    /// Notes that a hello has asked.
    pub(crate) fn asked(&mut self) {
        self.asks = AnnounceAsks::Nobody;
    }

    /// Has whoever claims a slot asked, or everybody: at once, and with the others of one hello.
    pub(crate) fn ask(
        &mut self,
        slot: Option<Slot>,
        now: MeshTime,
        interval: MeshSpan,
        manner: AskManner,
    ) -> StrangerAsk {
        let is_asked = self.asked_at.is_some_and(|at| now.since(at) < interval.part(2));
        if is_asked && !self.asks.has_room() {
            return StrangerAsk::NotNow;
        }
        let asking = match slot.filter(|_| !manner.is_narrow) {
            Some(slot) => self.ask_one(slot, now, interval),
            None => StrangerAsk::Soon,
        };
        let asking = match asking {
            StrangerAsk::Seldom if manner.is_scarce => StrangerAsk::Soon,
            other => other,
        };
        if asking != StrangerAsk::NotNow {
            self.asks.add(slot.filter(|_| !manner.is_scarce));
            self.asked_at = self.asked_at.filter(|_| is_asked).or(Some(now));
        }
        asking
    }

    /// Whether a stranger is to be asked now; notes that it is.
    fn ask_one(&mut self, slot: Slot, now: MeshTime, interval: MeshSpan) -> StrangerAsk {
        let forgotten = interval.times(FORGOTTEN_INTERVALS);
        self.known.retain(|one| now.since(one.asked) < forgotten);
        let known = self.known.iter_mut().find(|one| one.slot == slot);
        if let Some(known) = known {
            let doublings = known.asks.saturating_sub(SOON).min(DOUBLINGS);
            let pause = interval.part(2).times(1 << doublings);
            if now.since(known.asked) < pause {
                return StrangerAsk::NotNow;
            }
            (known.asked, known.asks) = (now, known.asks.saturating_add(1));
            return if known.asks <= SOON { StrangerAsk::Soon } else { StrangerAsk::Seldom };
        }
        if self.known.len() == MAX_STRANGERS {
            let oldest = (0..).zip(&self.known).min_by_key(|(_, one)| one.asked).map(|(at, _)| at);
            oldest.map(|at| self.known.swap_remove(at));
        }
        self.known.push(AskedStranger { slot, asked: now, asks: 1 });
        StrangerAsk::Soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: MeshSpan = MeshSpan::seconds(1);

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    #[test]
    fn a_stranger_is_asked_a_few_times_soon_and_then_seldom() {
        let mut strangers = MeshStrangers::default();
        let moments = (0..200).map(|tenth| MeshTime(0) + MeshSpan::millis(100 * tenth));
        let mut ask = |at| strangers.ask_one(slot(7), at, INTERVAL);
        let asked: Vec<_> =
            moments.filter(|at| ask(*at) != StrangerAsk::NotNow).map(|at| at.0).collect();
        let seconds: Vec<_> = asked.iter().map(|at| *at as f64 / 1e6).collect();
        assert_eq!(seconds, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0]);
        let later = MeshTime(0) + MeshSpan::seconds(17 + FORGOTTEN_INTERVALS);
        assert_eq!(ask(later), StrangerAsk::Soon);
        assert_eq!(ask(later + MeshSpan::millis(500)), StrangerAsk::Soon, "as a new one");
    }

    #[test]
    fn strangers_are_told_apart_and_bounded() {
        let mut strangers = MeshStrangers::default();
        assert_eq!(strangers.ask_one(slot(1), MeshTime(0), INTERVAL), StrangerAsk::Soon);
        assert_eq!(strangers.ask_one(slot(1), MeshTime(1), INTERVAL), StrangerAsk::NotNow);
        for number in 2..1000 {
            let asked = strangers.ask_one(slot(number), MeshTime(u64::from(number)), INTERVAL);
            assert_eq!(asked, StrangerAsk::Soon);
            assert!(strangers.known.len() <= MAX_STRANGERS);
        }
    }
}
