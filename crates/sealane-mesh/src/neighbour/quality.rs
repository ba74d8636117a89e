//! How well a neighbour and this machine hear each other, and what a hop between them costs.

use crate::hello::BEST;
use crate::limits::{MAX_LOSS_COST, MAX_ROUND_TRIP_MS};
use crate::{MeshSpan, MeshTime};

/// The share of expected units that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeliveryRatio {
    /// 65,535 is all.
    value: u16,
    /// How much the value rests on, up to [`DeliveryRatio::MEMORY`].
    count: u8,
}

impl DeliveryRatio {
    /// How many of the last ones count.
    pub(super) const MEMORY: u8 = 16;

    pub(crate) fn note(&mut self, came: bool) {
        self.count = (self.count + 1).min(Self::MEMORY);
        let target = if came { i32::from(u16::MAX) } else { 0 };
        let step = (target - i32::from(self.value)) / i32::from(self.count);
        self.value = u16::try_from(i32::from(self.value) + step).unwrap_or(u16::MAX);
    }

    /// The share of 15, with less trust in what was heard only once or twice.
    pub(crate) fn of_fifteen(self) -> u8 {
        let share = (u32::from(self.value) * u32::from(BEST) + 0x7fff) / u32::from(u16::MAX);
        let trust = u32::from(FIRST_TRUST) + 2 * u32::from(self.count);
        share.min(trust).min(BEST.into()) as u8
    }
}

/// Loss both ways and the round trip of one link.
#[derive(Debug)]
pub(crate) struct LinkQuality {
    arrived: DeliveryRatio,
    /// How many of the own hellos the neighbour says that it hears, of 15, and when it said so.
    told: u8,
    told_at: MeshTime,
    round_trip: Option<MeshSpan>,
    cost: Option<u16>,
}

impl LinkQuality {
    pub(super) fn new(now: MeshTime) -> Self {
        Self {
            arrived: DeliveryRatio::default(),
            told: 0,
            told_at: now,
            round_trip: None,
            cost: None,
        }
    }

    /// Counts a hello that came, and those before it that did not.
    pub(super) fn arrived(&mut self, lost: u16) {
        // More than the memory holds would change nothing, and a neighbour chooses the number.
        (0..lost.min(u16::from(DeliveryRatio::MEMORY))).for_each(|_| self.arrived.note(false));
        self.arrived.note(true);
    }

    /// How many of the neighbour's hellos come, of 15.
    pub(crate) fn heard(&self) -> u8 {
        self.arrived.of_fifteen()
    }

    /// How many of the own hellos the neighbour says that it hears, of 15.
    pub(crate) fn told(&self) -> u8 {
        self.told
    }

    /// Takes how well the neighbour says that it hears this machine.
    pub(crate) fn note_told(&mut self, told: u8, now: MeshTime) {
        (self.told, self.told_at) = (told, now);
    }

    pub(crate) fn round_trip(&self) -> Option<MeshSpan> {
        self.round_trip
    }

    /// Whether neither hears the other any more.
    pub(crate) fn is_lost_both_ways(&self) -> bool {
        (self.heard(), self.told) == (0, 0)
    }

    /// Whether how well the neighbour hears this machine was told too long ago.
    pub(super) fn is_told_old(&self, now: MeshTime, interval: MeshSpan) -> bool {
        now.since(self.told_at) > interval.times(TOLD_INTERVALS)
    }

    /// Takes a round trip, if it can be one.
    pub(crate) fn took(&mut self, round_trip: MeshSpan) -> bool {
        if round_trip > MeshSpan::millis(MAX_ROUND_TRIP_MS) {
            return false;
        }
        self.round_trip = Some(match self.round_trip {
            None => round_trip,
            Some(known) => MeshSpan((known.0 * 7 + round_trip.0) / 8),
        });
        true
    }

    /// Follows what loss and delay are now.
    pub(super) fn settle(&mut self, now: MeshTime, interval: MeshSpan) {
        let is_old = self.is_told_old(now, interval);
        let both = u32::from(self.heard()) * u32::from(self.told);
        let best = u32::from(BEST) * u32::from(BEST);
        let Some(loss) = (u32::from(COST_MIN) * best).checked_div(both).filter(|_| !is_old) else {
            self.cost = None;
            return;
        };
        let delay = self.round_trip.map_or(0, slowness);
        let fresh = loss.min(MAX_LOSS_COST) as i32 + delay as i32;
        // One hello alone is trusted little. Its high price would last for long if the first few
        // hellos were smoothed as later ones are.
        let is_young = self.arrived.count < YOUNG;
        let cost = match self.cost {
            Some(known) if !is_young => i32::from(known) + (fresh - i32::from(known)) / 8,
            _ => fresh,
        };
        self.cost = u16::try_from(cost).ok();
    }

    /// The cost of a hop, if both ends hear each other.
    pub(super) fn cost(&self) -> Option<u16> {
        // Smoothing rounds towards the last value, and can pass below what a perfect link costs.
        self.cost.map(|cost| cost.max(COST_MIN))
    }
}

/// The cost of a round trip.
fn slowness(round_trip: MeshSpan) -> u64 {
    let over = round_trip.0.saturating_sub(FREE_ROUND_TRIP.0);
    let whole = SLOW_ROUND_TRIP.0 - FREE_ROUND_TRIP.0;
    (SLOW_COST * over / whole).min(SLOW_COST)
}

/// The best that one hello alone may show, less two.
const FIRST_TRUST: u8 = 8;
/// A link without loss and delay.
pub(crate) const COST_MIN: u16 = 64;
/// Round trips up to here cost nothing.
const FREE_ROUND_TRIP: MeshSpan = MeshSpan::millis(4);
/// Round trips from here on cost the most.
const SLOW_ROUND_TRIP: MeshSpan = MeshSpan::millis(104);
/// The cost of a slow round trip.
const SLOW_COST: u64 = 256;
/// Hello intervals after which what a neighbour told is too old.
const TOLD_INTERVALS: u64 = 48;
/// Of fewer hellos each counts at once.
const YOUNG: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_what_comes() {
        let mut share = DeliveryRatio::default();
        assert_eq!(share.of_fifteen(), 0);
        share.note(true);
        assert_eq!(share.of_fifteen(), 10, "one hello alone shows little");
        (0..40).for_each(|_| share.note(true));
        assert_eq!(share.of_fifteen(), 15);
        (0..200).for_each(|n| share.note(n % 5 != 0));
        assert!((11..=13).contains(&share.of_fifteen()), "{share:?}");
        (0..80).for_each(|_| share.note(false));
        assert_eq!(share.of_fifteen(), 0);
    }

    #[test]
    fn round_trips_cost_between_four_and_a_hundred_and_four_milliseconds() {
        assert_eq!(
            [0, 4, 54, 104, 5000].map(|ms| slowness(MeshSpan::millis(ms))),
            [0, 0, 128, 256, 256]
        );
    }
}
