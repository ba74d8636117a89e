//! How much of an hour a radio has sent.

use std::collections::VecDeque;

use crate::{SimSpan, SimTime};

/// The minutes that make an hour.
const MINUTES: usize = 60;
const MINUTE_US: u64 = 60_000_000;

/// The air time of a radio in the last hour, minute by minute.
///
/// The minute that has only begun counts beside 60 whole ones, so that no stretch of an hour,
/// wherever it begins, has more than is allowed.
#[derive(Debug)]
pub(crate) struct RadioDutyWindow {
    allowed: SimSpan,
    minutes: VecDeque<SimSpan>,
    /// The number of the last of them.
    minute: u64,
}

impl RadioDutyWindow {
    /// A radio that may send for these parts of a million of an hour.
    pub(crate) fn new(ppm: u32) -> Self {
        let allowed = SimSpan(3600 * u64::from(ppm));
        Self { allowed, minutes: VecDeque::from([SimSpan(0)]), minute: 0 }
    }

    /// Takes a transmission, unless it is more than is allowed: then it is not to be made.
    pub(crate) fn spend(&mut self, now: SimTime, air: SimSpan) -> bool {
        let minute = now.0 / MINUTE_US;
        let passed = minute.saturating_sub(self.minute).min(MINUTES as u64 + 1);
        (0..passed).for_each(|_| self.minutes.push_back(SimSpan(0)));
        self.minute = minute;
        while self.minutes.len() > MINUTES + 1 {
            self.minutes.pop_front();
        }
        let spent = self.minutes.iter().fold(SimSpan(0), |sum, minute| sum + *minute);
        let is_allowed = spent + air <= self.allowed;
        if let Some(last) = self.minutes.back_mut().filter(|_| is_allowed) {
            *last += air;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hour_has_more_than_is_allowed_wherever_it_begins() {
        let mut duty = RadioDutyWindow::new(10_000);
        let mut sent = vec![];
        for tenth in 0..4 * 36_000_u64 {
            let now = SimTime(tenth * 100_000);
            if duty.spend(now, SimSpan(250_000)) {
                sent.push(now);
            }
        }
        for first in &sent {
            let hour = sent.iter().filter(|at| *at >= first && (**at - *first).0 < 3_600_000_000);
            assert!(hour.count() * 250_000 <= 36_000_000, "from {first}");
        }
        assert!(sent.len() * 250_000 > 3 * 36_000_000, "what is allowed is given: {}", sent.len());
    }

    #[test]
    fn a_wire_may_always_send() {
        let mut duty = RadioDutyWindow::new(1_000_000);
        assert!((0..3600).all(|second| duty.spend(SimTime(second * 1_000_000), SimSpan(980_000))));
    }
}
