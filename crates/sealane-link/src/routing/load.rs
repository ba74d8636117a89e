//! How busy the channel of a radio is, as far as its driver can tell.

use sealane_mesh::{MeshMedium, MeshSpan, MeshTime};

/// The air time of the units that a radio has sent and heard, by the figures of its medium.
#[derive(Debug)]
pub(super) struct RadioLoad {
    medium: MeshMedium,
    since: MeshTime,
    air: MeshSpan,
}

/// How often the load is told.
const TOLD: MeshSpan = MeshSpan::seconds(1);
/// All the time, in millionths.
const ALWAYS_PPM: u64 = 1_000_000;

impl RadioLoad {
    pub(super) fn new(medium: MeshMedium, now: MeshTime) -> Self {
        Self { medium, since: now, air: MeshSpan(0) }
    }

    /// Counts a unit that was sent or heard.
    pub(super) fn note(&mut self, unit_bytes: usize) {
        self.air = self.air + self.medium.air(unit_bytes);
    }

    /// Once a second, the share of time since the last call that gave one, in millionths.
    pub(super) fn take(&mut self, now: MeshTime) -> Option<u32> {
        let passed = now.since(self.since);
        // Over a shorter time one unit of a slow radio would be the whole channel.
        if passed < TOLD {
            return None;
        }
        let air = std::mem::take(&mut self.air);
        self.since = now;
        // The divisor is the time that really passed. The thread may have been late by more than a
        // second.
        let share = air.0.saturating_mul(ALWAYS_PPM) / passed.0;
        // Units in a queue can add up to more air than the time had. No channel is busier than
        // always.
        Some(share.min(ALWAYS_PPM) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_the_air_time_of_units_in_the_time_that_has_passed() {
        let medium = MeshMedium::dot11p();
        let mut load = RadioLoad::new(medium, MeshTime(7));
        let second = |number: u64| MeshTime(7) + MeshSpan::seconds(number);
        (0..100).for_each(|_| load.note(500));
        assert_eq!(
            load.take(MeshTime(7) + MeshSpan::millis(999)),
            None,
            "it is told once a second"
        );
        let air = medium.air(500).0 * 100;
        assert!((80_000..100_000).contains(&air), "{air} \u{b5}s");
        assert_eq!(load.take(second(1)), Some(air as u32));
        assert_eq!(load.take(second(1)), None);
        assert_eq!(load.take(second(3)), Some(0), "what was told counts no more");
        (0..100).for_each(|_| load.note(500));
        assert_eq!(load.take(second(5)), Some(air as u32 / 2), "of two seconds it is the mean");
        (0..10_000).for_each(|_| load.note(1500));
        assert_eq!(load.take(second(6)), Some(1_000_000), "never more than all of it");
    }
}
