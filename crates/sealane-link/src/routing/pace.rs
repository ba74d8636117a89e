//! When the data path's table and the status follow what the machine has found.

use std::time::Duration;

use sealane_mesh::MeshTime;

/// How far table and status are behind the machine.
pub(super) struct RoutingPace {
    /// Neighbours or ways may have changed since the table was made.
    is_stale: bool,
    refreshed: MeshTime,
    told: MeshTime,
}

/// How soon after what was heard the table follows, at the latest.
const REFRESH_US: u64 = 50_000;
/// How old a status may be.
const STATUS_US: u64 = 1_000_000;
/// The time that makes table or status due at once.
const LONG_AGO: MeshTime = MeshTime(0);

impl Default for RoutingPace {
    fn default() -> Self {
        Self { is_stale: true, refreshed: LONG_AGO, told: LONG_AGO }
    }
}

impl RoutingPace {
    /// The machine heard what may change neighbours or ways.
    pub(super) fn note_change(&mut self) {
        self.is_stale = true;
    }

    /// The machine has changed neighbours or ways: the table follows in this turn.
    pub(super) fn refresh_now(&mut self) {
        (self.is_stale, self.refreshed) = (true, LONG_AGO);
    }

    /// The status follows in this turn.
    pub(super) fn tell_now(&mut self) {
        self.told = LONG_AGO;
    }

    /// How long the thread may sleep with a stale table.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.is_stale.then_some(Duration::from_micros(REFRESH_US))
    }

    /// Whether the table is made now; it then counts as made.
    pub(super) fn is_table_due(&mut self, now: MeshTime) -> bool {
        let is_due = self.is_stale && now.since(self.refreshed).0 >= REFRESH_US;
        if is_due {
            (self.is_stale, self.refreshed) = (false, now);
        }
        is_due
    }

    /// Whether the status is told now; it then counts as told.
    pub(super) fn is_status_due(&mut self, now: MeshTime) -> bool {
        let is_due = now.since(self.told).0 >= STATUS_US || self.told == LONG_AGO;
        if is_due {
            self.told = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_wait_for_the_next_table_and_changed_ways_do_not() {
        let mut pace = RoutingPace::default();
        assert!(pace.is_table_due(MeshTime(REFRESH_US)), "the first table");
        assert_eq!(pace.patience(), None, "nothing has changed since");
        pace.note_change();
        let soon = MeshTime(2 * REFRESH_US - 1);
        assert!(pace.patience().is_some() && !pace.is_table_due(soon));
        assert!(pace.is_table_due(MeshTime(2 * REFRESH_US)));
        pace.refresh_now();
        assert!(pace.is_table_due(MeshTime(2 * REFRESH_US + 1)), "a way has changed");
    }

    #[test]
    fn a_status_is_told_once_a_second_or_when_it_must() {
        let mut pace = RoutingPace::default();
        assert!(pace.is_status_due(MeshTime(1)), "the first status");
        assert!(!pace.is_status_due(MeshTime(STATUS_US)));
        assert!(pace.is_status_due(MeshTime(STATUS_US + 1)));
        pace.tell_now();
        assert!(pace.is_status_due(MeshTime(STATUS_US + 2)));
    }
}
