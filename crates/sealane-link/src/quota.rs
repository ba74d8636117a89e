//! How many frames are taken of a neighbour.

/// A bucket that fills at a rate, up to what comes in a tenth of a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitQuota {
    per_second: u64,
    left: u64,
    /// Up to when it was filled.
    filled_us: u64,
}

const SECOND_US: u64 = 1_000_000;

impl UnitQuota {
    pub(crate) fn new(per_second: u32, now_us: u64) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, left: Self::most(per_second), filled_us: now_us }
    }

    /// How many of `wanted` frames are taken.
    pub(crate) fn take(&mut self, wanted: usize, now_us: u64) -> usize {
        // A tenth of a second fills the bucket. The product below stays small after a long silence.
        let passed_us = now_us.saturating_sub(self.filled_us).min(SECOND_US);
        let more = passed_us * self.per_second / SECOND_US;
        if more > 0 {
            // The rest of a frame's time counts the next time.
            self.filled_us = match passed_us {
                SECOND_US => now_us,
                _ => self.filled_us + more * SECOND_US / self.per_second.max(1),
            };
            self.left = (self.left + more).min(Self::most(self.per_second));
        }
        // A batch is cut and not refused whole. Otherwise a fast neighbour with large batches would
        // get nothing.
        let taken = (wanted as u64).min(self.left);
        self.left -= taken;
        taken as usize
    }

    /// At least what one batch can hold.
    fn most(per_second: u64) -> u64 {
        (per_second / 10).max(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_rate_is_taken_however_it_is_asked_for() {
        for (per_second, step_us) in [(1000, 1), (1000, 37), (7, 1000), (1_000_000, 13)] {
            let mut quota = UnitQuota::new(per_second, 0);
            let mut taken = 0;
            let mut now_us = 0;
            while now_us < 3 * SECOND_US {
                taken += quota.take(3, now_us);
                now_us += step_us;
            }
            let expected = 3 * per_second as usize;
            let burst = (per_second as usize / 10).max(64);
            let asked = 3 * (3 * SECOND_US).div_ceil(step_us) as usize;
            let most = (expected + burst).min(asked);
            assert!(taken <= most, "{per_second}: {taken} of {most}");
            assert!(taken + 4 >= most.min(expected), "{per_second}: {taken} of {most}");
        }
    }

    #[test]
    fn silence_fills_it_up_to_its_burst() {
        let mut quota = UnitQuota::new(1000, 0);
        assert_eq!(quota.take(1000, 0), 100);
        assert_eq!(quota.take(1, 0), 0);
        assert_eq!(quota.take(1000, 100 * SECOND_US), 100);
    }
}
