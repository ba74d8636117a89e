//! A neighbour on an interface: how well it is heard both ways, how long a round trip takes, and
//! whether it is there.

use std::collections::VecDeque;
use std::sync::Arc;

use sealane_frame::PeerTag;
use sealane_seal::Slot;

use crate::hello::BEST;
use crate::hop::HopReader;
use crate::limits::{MAX_BLAME_MS, MAX_KEPT_FRAMES, MAX_MESH_NEIGHBOURS, MIN_BLAME_MS};
use crate::slots::Slots;
use crate::{Address, Hello, InterfaceId, Span, Time, Urgency};

/// A neighbour by the interface that it is heard on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId {
    /// The interface.
    pub(crate) interface: InterfaceId,
    /// The member.
    pub(crate) slot: Slot,
}

/// What share of something came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ratio {
    /// 65,535 is all.
    value: u16,
    /// How much the value rests on, up to [`Ratio::MEMORY`].
    count: u8,
}

impl Ratio {
    /// How many of the last ones count.
    const MEMORY: u8 = 16;

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

/// The best that one hello alone may show, less two.
const FIRST_TRUST: u8 = 8;

/// Whether a neighbour is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Its last hello came in time.
    Heard,
    /// It is asked.
    Asked {
        /// How many probes were sent.
        probes: u8,
        /// Since when.
        since: Time,
        /// When the next one is, or it is given up.
        next: Time,
    },
    /// It does not answer: nothing goes by it.
    Silent,
}

/// How much a neighbour is avoided behind which frames have vanished: the more often they have, the
/// more; and of two the one where that is longer ago may be mended by those behind it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blame {
    /// How often it was, about: 0 is not at all, or long ago.
    pub(crate) times: u16,
    pub(crate) since: Time,
}

impl Blame {
    pub(crate) fn is_any(self) -> bool {
        self.times > 0
    }
}

/// A probe that was not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentProbe {
    pub(crate) number: u32,
    pub(crate) at: Time,
}

/// A frame for one neighbour.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) frame: Arc<[u8]>,
    pub(crate) urgency: Urgency,
    /// The neighbour that brought it; nobody, if it was made on this machine.
    pub(crate) from: Option<LinkId>,
}

/// A time stamp that a neighbour waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// When its hello was sent, by its own clock.
    pub(crate) sent: u32,
    /// When it was heard, by the own one.
    pub(crate) heard: u32,
}

/// One neighbour on one interface.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) id: LinkId,
    pub(crate) tag: PeerTag,
    pub(crate) address: Address,
    pub(crate) interval: Span,
    pub(crate) hello_sequence: u16,
    pub(crate) routes_sequence: Option<u16>,
    /// When it was asked for all routes, and how often.
    asked: Option<Time>,
    asks: u8,
    /// It has told all routes since this machine takes them.
    pub(crate) has_told_all: bool,
    /// When anything authentic of it was heard last.
    pub(crate) heard: Time,
    /// Until when its next hello comes.
    pub(crate) due: Time,
    pub(crate) arrived: Ratio,
    /// How many of the own hellos it says that it hears, of 15, and when it said so.
    pub(crate) told: u8,
    pub(crate) told_at: Time,
    pub(crate) round_trip: Option<Span>,
    pub(crate) stamp: Option<Stamp>,
    /// It has given back what nobody could know before this machine started: it is there now, at
    /// this address.
    pub(crate) is_proven: bool,
    /// It has opened a hello of this machine since that started and obeyed its last order.
    pub(crate) has_opened: bool,
    cost: Option<u16>,
    pub(crate) presence: Presence,
    pub(crate) probes: VecDeque<SentProbe>,
    pub(crate) sleeps: bool,
    pub(crate) hop: HopReader,
    /// In which of the own hellos it was listed last, and given a time stamp.
    pub(crate) listed: u64,
    /// How well it is heard, as it was told.
    heard_told: u8,
    pub(crate) echoed: u64,
    blamed_until: Time,
    blamed_for: Span,
    /// Frames for it that wait until it wakes up.
    pub(crate) kept: VecDeque<Kept>,
    /// Whom it hears well, as it told lately.
    near: VecDeque<Slot>,
}

/// A link without loss and delay.
pub(crate) const COST_MIN: u16 = 64;
/// The most that loss adds up to.
const COST_MAX: u32 = 1024;
/// Round trips up to here cost nothing.
const FREE_ROUND_TRIP: Span = Span::millis(4);
/// Round trips from here on cost the most.
const SLOW_ROUND_TRIP: Span = Span::millis(104);
/// What a slow round trip costs.
const SLOW_COST: u64 = 256;
/// A longer round trip is no measurement.
const ROUND_TRIP_MAX: Span = Span::seconds(600);
/// Hello intervals after which what a neighbour told is too old.
const TOLD_INTERVALS: u64 = 48;
/// For so long a later sequence is asked for when a next hop was blamed.
const ANEW: Span = Span::seconds(8);
/// A hello comes earlier than it was told by one part of so many of the interval, at least.
pub(crate) const LAG_PART: u64 = 40;
/// Of fewer hellos each counts at once.
const YOUNG: u8 = 8;
/// A quality that has changed by so much of 15 has changed much.
const MUCH: u8 = 3;
/// Who hears so many well is in a crowd.
const CROWD: usize = 16;
/// So often a neighbour is asked for all routes soon after the last time, and then seldom.
const ASKS_SOON: u8 = 5;
/// Hello intervals between two requests for all routes then.
const ASK_INTERVALS: u64 = 2;
/// From here on, of 15, something is heard well.
const WELL: u8 = 8;
/// Probes that may be answered late.
const PROBES_KEPT: usize = 8;

/// Where a hello came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeardAt {
    pub(crate) id: LinkId,
    pub(crate) tag: PeerTag,
    pub(crate) address: Address,
    pub(crate) now: Time,
}

impl Neighbour {
    pub(crate) fn new(at: HeardAt, hello: &Hello, hop: HopReader) -> Self {
        Self {
            id: at.id,
            tag: at.tag,
            address: at.address,
            interval: hello.interval(),
            hello_sequence: hello.sequence.wrapping_sub(1),
            routes_sequence: None,
            asked: None,
            asks: 0,
            has_told_all: false,
            heard: at.now,
            due: at.now + hello.interval(),
            arrived: Ratio::default(),
            told: 0,
            told_at: at.now,
            round_trip: None,
            stamp: None,
            is_proven: false,
            has_opened: false,
            cost: None,
            presence: Presence::Heard,
            probes: VecDeque::new(),
            sleeps: hello.sleeps,
            hop,
            listed: 0,
            heard_told: 0,
            echoed: 0,
            blamed_until: Time(0),
            blamed_for: Span(0),
            kept: VecDeque::new(),
            near: VecDeque::new(),
        }
    }

    /// Takes a hello that is later than the last one.
    pub(crate) fn hear(&mut self, at: HeardAt, hello: &Hello) {
        let lost = hello.sequence.wrapping_sub(self.hello_sequence).wrapping_sub(1);
        (0..lost.min(u16::from(Ratio::MEMORY))).for_each(|_| self.arrived.note(false));
        self.arrived.note(true);
        if self.address != at.address {
            self.address = at.address;
            self.is_proven = false;
        }
        self.hello_sequence = hello.sequence;
        self.interval = hello.interval();
        self.sleeps = hello.sleeps;
        self.note_near(hello);
        self.is_there(at.now);
    }

    /// Whether it is to be told something: it has had no time stamp, or is heard much better or
    /// worse than it was told.
    pub(crate) fn has_news(&self) -> bool {
        self.echoed == 0 || self.arrived.of_fifteen().abs_diff(self.heard_told) >= MUCH
    }

    /// How many of its hellos are heard, of 15, which it is told now.
    pub(crate) fn tell_heard(&mut self) -> u8 {
        self.heard_told = self.arrived.of_fifteen();
        self.heard_told
    }

    /// Whether neither hears the other any more.
    pub(crate) fn is_lost_both_ways(&self) -> bool {
        (self.arrived.of_fifteen(), self.told) == (0, 0)
    }

    /// Whether all its routes are to be asked for: none of its messages has come, or none that told
    /// them all where they are awaited. Where air time is scarce, one message is enough.
    pub(crate) fn lacks_routes(&self, is_awaited: bool) -> bool {
        let is_missed = is_awaited && !self.has_told_all && self.asks < ASKS_SOON;
        self.cost().is_some() && (self.routes_sequence.is_none() || is_missed)
    }

    /// Whether it was not asked for all routes just before; notes that it is now.
    pub(crate) fn may_ask_all(&mut self, now: Time, pause: Span) -> bool {
        let is_seldom = self.asks >= ASKS_SOON;
        let pause = if is_seldom { self.interval.times(ASK_INTERVALS) } else { pause };
        let may = self.asked.is_none_or(|asked| now.since(asked) >= pause);
        if may {
            self.asked = Some(now);
            self.asks = self.asks.saturating_add(1);
        }
        may
    }

    fn note_near(&mut self, hello: &Hello) {
        let mut named = Slots::default();
        hello.neighbours.iter().for_each(|listed| named.insert(listed.slot));
        self.near.retain(|slot| !named.contains(*slot));
        for listed in &hello.neighbours {
            let is_first = named.remove(listed.slot);
            if !is_first {
                // The last that is said of a slot counts.
                self.near.retain(|slot| *slot != listed.slot);
            }
            if listed.heard >= WELL && listed.told >= WELL {
                self.near.push_back(listed.slot);
            }
        }
        let over = self.near.len().saturating_sub(MAX_MESH_NEIGHBOURS);
        self.near.drain(..over);
    }

    /// Whether it hears so many that some other one tells it what all are told.
    pub(crate) fn is_in_crowd(&self) -> bool {
        self.near.len() >= CROWD
    }

    /// Whether another machine hears it, as far as it told.
    pub(crate) fn is_near(&self, slot: Slot) -> bool {
        self.near.contains(&slot)
    }

    /// It was heard: whatever was thought of it, it is there.
    pub(crate) fn is_there(&mut self, now: Time) {
        self.heard = now;
        self.presence = Presence::Heard;
        // It was sent a while ago. The next hello is as much earlier than it was told.
        let lag = self.round_trip.unwrap_or_default().part(2).min(self.interval.part(LAG_PART));
        self.due = self.due.max(Time(now.0 - lag.0.min(now.0)) + self.interval);
    }

    /// Whether it needs no announcement of this machine: it has opened what followed the last one,
    /// and still lists this machine.
    pub(crate) fn knows_this(&self, now: Time) -> bool {
        self.has_opened && self.told > 0 && !self.is_told_old(now)
    }

    /// Whether how well it hears this machine was told too long ago.
    fn is_told_old(&self, now: Time) -> bool {
        now.since(self.told_at) > self.interval.times(TOLD_INTERVALS)
    }

    /// Takes a round trip, if it can be one.
    pub(crate) fn took(&mut self, round_trip: Span) -> bool {
        if round_trip > ROUND_TRIP_MAX {
            return false;
        }
        self.round_trip = Some(match self.round_trip {
            None => round_trip,
            Some(known) => Span((known.0 * 7 + round_trip.0) / 8),
        });
        true
    }

    /// Follows what loss and delay are now. The first few hellos count at once.
    pub(crate) fn settle(&mut self, now: Time) {
        let is_old = self.is_told_old(now);
        let both = u32::from(self.arrived.of_fifteen()) * u32::from(self.told);
        let best = u32::from(BEST) * u32::from(BEST);
        let Some(loss) = (u32::from(COST_MIN) * best).checked_div(both).filter(|_| !is_old) else {
            self.cost = None;
            return;
        };
        let delay = self.round_trip.map_or(0, slowness);
        let fresh = loss.min(COST_MAX) as i32 + delay as i32;
        let is_young = self.arrived.count < YOUNG;
        let cost = match self.cost {
            Some(known) if !is_young => i32::from(known) + (fresh - i32::from(known)) / 8,
            _ => fresh,
        };
        self.cost = u16::try_from(cost).ok();
    }

    /// What a hop to it costs, if frames may go by it.
    pub(crate) fn cost(&self) -> Option<u16> {
        let is_usable = self.is_proven && self.presence != Presence::Silent;
        self.cost.filter(|_| is_usable).map(|cost| cost.max(COST_MIN))
    }

    /// Frames vanish behind it: it is avoided for a while, and for twice as long the next time.
    pub(crate) fn blame(&mut self, now: Time) {
        let longest = Span::millis(MAX_BLAME_MS);
        let next = self.blamed_for.times(2).max(Span::millis(MIN_BLAME_MS)).min(longest);
        self.blamed_for = next;
        self.blamed_until = now + next;
    }

    /// Frames arrive behind it. The next time it is avoided for longer all the same.
    pub(crate) fn forgive(&mut self) {
        self.blamed_until = Time(0);
    }

    /// How much it is avoided.
    pub(crate) fn blame_at(&self, now: Time) -> Blame {
        if now >= self.blamed_until {
            return Blame::default();
        }
        let times = self.blamed_for.0 / Span::millis(MIN_BLAME_MS).0;
        let since = Time(self.blamed_until.0.saturating_sub(self.blamed_for.0));
        Blame { times: times.clamp(1, 255) as u16, since }
    }

    /// Whether it was blamed just now, so that another way may not be known yet.
    pub(crate) fn is_blamed_anew(&self, now: Time) -> bool {
        let blame = self.blame_at(now);
        blame.is_any() && now.since(blame.since) < ANEW
    }

    /// Keeps a frame until it wakes up. Gives the one that there is no room for: the oldest of the
    /// least urgent.
    pub(crate) fn keep(&mut self, kept: Kept) -> Option<Kept> {
        self.kept.push_back(kept);
        if self.kept.len() <= MAX_KEPT_FRAMES {
            return None;
        }
        let least = self.kept.iter().map(|kept| kept.urgency).max()?;
        let oldest = self.kept.iter().position(|kept| kept.urgency == least)?;
        self.kept.remove(oldest)
    }

    /// Remembers a probe.
    pub(crate) fn probed(&mut self, probe: SentProbe) {
        if self.probes.len() == PROBES_KEPT {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
    }

    /// When a probe with that number was sent, once.
    pub(crate) fn answered(&mut self, number: u32) -> Option<Time> {
        let at = self.probes.iter().position(|probe| probe.number == number)?;
        self.probes.remove(at).map(|probe| probe.at)
    }
}

/// What a round trip costs.
fn slowness(round_trip: Span) -> u64 {
    let over = round_trip.0.saturating_sub(FREE_ROUND_TRIP.0);
    let whole = SLOW_ROUND_TRIP.0 - FREE_ROUND_TRIP.0;
    (SLOW_COST * over / whole).min(SLOW_COST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_what_comes() {
        let mut share = Ratio::default();
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
            [0, 4, 54, 104, 5000].map(|ms| slowness(Span::millis(ms))),
            [0, 0, 128, 256, 256]
        );
    }
}
