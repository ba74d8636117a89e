//! How much a neighbour is avoided behind which frames have vanished.

use crate::limits::{MAX_BLAME_MS, MIN_BLAME_MS};
use crate::{MeshSpan, MeshTime};

/// How much a neighbour is avoided behind which frames have vanished: the more often they have, the
/// more; and of two the one where that is longer ago may be mended by those behind it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NeighbourBlame {
    /// How often it was, about: 0 is not at all, or long ago.
    pub(crate) times: u16,
    pub(crate) since: MeshTime,
}

impl NeighbourBlame {
    pub(crate) fn is_any(self) -> bool {
        self.times > 0
    }
}

/// When a neighbour was blamed last, and for how long.
#[derive(Debug, Default)]
pub(crate) struct BlameHistory {
    until: MeshTime,
    length: MeshSpan,
}

impl BlameHistory {
    /// Frames vanish behind it: it is avoided for a while, and for twice as long the next time.
    pub(crate) fn blame(&mut self, now: MeshTime) {
        let longest = MeshSpan::millis(MAX_BLAME_MS);
        self.length = self.length.times(2).max(MeshSpan::millis(MIN_BLAME_MS)).min(longest);
        self.until = now + self.length;
    }

    /// Frames arrive behind it. The length stays: a neighbour that swallows frames now and then
    /// would else be tried again after the shortest time, for ever.
    pub(crate) fn forgive(&mut self) {
        self.until = MeshTime(0);
    }

    /// How much it is avoided.
    pub(crate) fn at(&self, now: MeshTime) -> NeighbourBlame {
        if now >= self.until {
            return NeighbourBlame::default();
        }
        let times = self.length.0 / MeshSpan::millis(MIN_BLAME_MS).0;
        let since = MeshTime(self.until.0.saturating_sub(self.length.0));
        NeighbourBlame { times: times.clamp(1, 255) as u16, since }
    }

    /// Whether it was blamed just now, so that another way may not be known yet.
    pub(crate) fn is_anew(&self, now: MeshTime) -> bool {
        let blame = self.at(now);
        blame.is_any() && now.since(blame.since) < ANEW
    }
}

/// For so long a later sequence is asked for when a next hop was blamed.
const ANEW: MeshSpan = MeshSpan::seconds(8);
