//! How much a neighbour is avoided behind which frames have vanished.

use crate::limits::{MAX_BLAME_MS, MIN_BLAME_MS};
use crate::{Span, Time};

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

/// When a neighbour was blamed last, and for how long.
#[derive(Debug, Default)]
pub(crate) struct BlameHistory {
    until: Time,
    length: Span,
}

impl BlameHistory {
    /// Frames vanish behind it: it is avoided for a while, and for twice as long the next time.
    pub(crate) fn blame(&mut self, now: Time) {
        let longest = Span::millis(MAX_BLAME_MS);
        self.length = self.length.times(2).max(Span::millis(MIN_BLAME_MS)).min(longest);
        self.until = now + self.length;
    }

    /// Frames arrive behind it. The length stays: a neighbour that swallows frames now and then
    /// would else be tried again after the shortest time, for ever.
    pub(crate) fn forgive(&mut self) {
        self.until = Time(0);
    }

    /// How much it is avoided.
    pub(crate) fn at(&self, now: Time) -> Blame {
        if now >= self.until {
            return Blame::default();
        }
        let times = self.length.0 / Span::millis(MIN_BLAME_MS).0;
        let since = Time(self.until.0.saturating_sub(self.length.0));
        Blame { times: times.clamp(1, 255) as u16, since }
    }

    /// Whether it was blamed just now, so that another way may not be known yet.
    pub(crate) fn is_anew(&self, now: Time) -> bool {
        let blame = self.at(now);
        blame.is_any() && now.since(blame.since) < ANEW
    }
}

/// For so long a later sequence is asked for when a next hop was blamed.
const ANEW: Span = Span::seconds(8);
