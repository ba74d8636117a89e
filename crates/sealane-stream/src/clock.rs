//! The two clocks of a hub: the time of day, which steps and lies, and time that passes.
//!
//! A duration runs on the second one. The first is data: it stands in messages and is told to
//! clients (spec/store.md §11).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clocks of one hub. Clones share them.
#[derive(Debug, Clone)]
pub struct HubClock(Arc<ClockSource>);

#[derive(Debug)]
struct ClockSource {
    began: Instant,
    /// The time of day at `began`.
    began_ms: u64,
    /// How far a test has set the time of day.
    set_ms: AtomicI64,
    /// How much time a test has let pass.
    passed_ms: AtomicU64,
}

impl HubClock {
    /// The clocks of the system, as they are from now on.
    pub fn system() -> Self {
        let (began, began_ms) = (Instant::now(), system_ms());
        let (set_ms, passed_ms) = (AtomicI64::new(0), AtomicU64::new(0));
        Self(Arc::new(ClockSource { began, began_ms, set_ms, passed_ms }))
    }

    /// Sets the time of day ahead or back by so many milliseconds; no time passes. For tests.
    pub fn step(&self, by_ms: i64) {
        self.0.set_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    /// Lets so much time pass, on both clocks. For tests.
    pub fn pass(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.passed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The time of day, in Unix milliseconds.
    pub(crate) fn day_ms(&self) -> u64 {
        let source = &self.0;
        let real = system_ms().saturating_add(source.passed_ms.load(Ordering::Relaxed));
        real.saturating_add_signed(source.set_ms.load(Ordering::Relaxed))
    }

    /// Time that passes, in milliseconds. It began at the time of day, and never steps.
    pub(crate) fn steady_ms(&self) -> u64 {
        let source = &self.0;
        let ran = u64::try_from(source.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let passed = ran.saturating_add(source.passed_ms.load(Ordering::Relaxed));
        source.began_ms.saturating_add(passed)
    }

    /// How far the time of day is ahead of the time that passes.
    pub(crate) fn ahead_ms(&self) -> i64 {
        let (day, steady) = (self.day_ms(), self.steady_ms());
        i64::try_from(i128::from(day) - i128::from(steady)).unwrap_or(i64::MAX)
    }
}

impl Default for HubClock {
    fn default() -> Self {
        Self::system()
    }
}

fn system_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_steps_and_the_time_that_passes_does_not() {
        const HOUR_MS: i64 = 3_600_000;
        let near = |a: u64, b: u64| a.abs_diff(b) < 10_000;
        let clock = HubClock::system();
        let (day, steady) = (clock.day_ms(), clock.steady_ms());
        assert!(near(day, steady));
        clock.step(-HOUR_MS);
        assert!(near(clock.day_ms() + HOUR_MS as u64, day) && near(clock.steady_ms(), steady));
        clock.pass(Duration::from_secs(3600));
        assert!(near(clock.day_ms(), day) && near(clock.steady_ms(), steady + HOUR_MS as u64));
        clock.step(-i64::MAX / 2);
        assert_eq!(clock.day_ms(), 0, "before 1970 there is nothing");
    }
}
