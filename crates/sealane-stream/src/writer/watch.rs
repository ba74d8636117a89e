//! Whether the time of day can be trusted, and how old messages are by it.
//!
//! Nothing goes for its age in the first ten minutes after a start or a step of the clock. A step
//! back shows that the clock was ahead: what was stored under it ages from the step. A step ahead
//! shows that it was behind: what was stored since the start or the step before is as much younger.

use std::time::Duration;

use crate::clock::HubClock;
use crate::commit::{ClockMark, ClockStep, RowRestamp, StoreChange};
use crate::limits::{
    CLOCK_CALM_MS, CLOCK_LOOK_MS, CLOCK_MARK_MS, CLOCK_SENSE_MS, CLOCK_STEP_MS, MAX_CLOCK_STEPS,
};

/// The writer's look at the clocks.
pub(super) struct ClockWatch {
    clock: HubClock,
    /// Both clocks, as they were at the last look.
    day_ms: u64,
    steady_ms: u64,
    /// Since when there was no step, by the time that passes.
    calm_since_ms: u64,
    /// The time of day at the start or behind the last step.
    since_ms: u64,
    /// The time of day behind the first step ahead since it was calm.
    first_ahead_ms: Option<u64>,
    /// The last step back: what the clock said before it, and since when it had said so.
    set_back: Option<(u64, u64)>,
    ages: BlockAges,
    /// The mark that the store has.
    marked: ClockMark,
    /// Whether the mark is to be stored with the next commit.
    is_news: bool,
    /// Steps that the store does not have yet, and whether it has others that are refuted.
    new_steps: bool,
    /// Rows whose times are to be set right, once the clock is calm.
    restamps: Vec<RowRestamp>,
}

/// How old blocks are, whatever the clock was when they were stored.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockAges {
    steps: Vec<ClockStep>,
    mark: ClockMark,
}

impl BlockAges {
    /// When a block was stored by the clock of now. `stored_ms` is 0 where the time of its last
    /// message was not ahead of the clock.
    pub(super) fn stored_at(&self, last_ms: u64, stored_ms: u64, now_ms: u64) -> u64 {
        let at = match (last_ms <= now_ms.saturating_add(CLOCK_STEP_MS), stored_ms) {
            // A clock that went back by less than a step was never seen to be wrong.
            (true, _) => last_ms.min(now_ms),
            // The clock of then may be wrong too, and then the steps below know it.
            (false, 1..) => stored_ms,
            (false, 0) => self.mark.right_ms.min(last_ms),
        };
        let covers = |step: &&ClockStep| (step.since_ms..=step.until_ms).contains(&at);
        let later = self.steps.iter().filter(covers).map(|step| step.shown_ms - step.until_ms);
        at + later.max().unwrap_or(0)
    }
}

/// Whether a step is of a clock that began in 1970, as one without a battery does.
fn is_from_reset(step: &ClockStep) -> bool {
    step.until_ms < CLOCK_SENSE_MS
}

impl ClockWatch {
    pub(super) fn new(clock: HubClock, marked: ClockMark, steps: Vec<ClockStep>) -> Self {
        let (day_ms, steady_ms) = (clock.day_ms(), clock.steady_ms());
        let mut watch = Self {
            clock,
            day_ms,
            steady_ms,
            calm_since_ms: steady_ms,
            since_ms: day_ms,
            first_ahead_ms: None,
            set_back: None,
            ages: BlockAges { steps, mark: marked },
            marked,
            is_news: false,
            new_steps: false,
            restamps: Vec::new(),
        };
        // The same steps are seen while no hub runs, as far as they can be told from a pause.
        if marked.seen_ms > day_ms + CLOCK_STEP_MS {
            watch.steps_back(marked.seen_ms, day_ms);
        } else if (1..CLOCK_SENSE_MS).contains(&marked.seen_ms) && day_ms >= CLOCK_SENSE_MS {
            watch.since_ms = 0;
            // The mark is up to so old, and the hub may have stored something since.
            watch.steps_ahead((marked.seen_ms + CLOCK_MARK_MS).min(day_ms), day_ms);
        }
        // A crash may have come before the rows of an earlier step were set right.
        let known = watch.ages.steps.iter().map(RowRestamp::of_step);
        watch.restamps = known.collect();
        watch
    }

    /// Looks whether the time of day has stepped, every quarter of a second.
    pub(super) fn look(&mut self) {
        let (day_ms, steady_ms) = (self.clock.day_ms(), self.clock.steady_ms());
        let passed = steady_ms.saturating_sub(self.steady_ms);
        if passed < CLOCK_LOOK_MS {
            return;
        }
        let expected = self.day_ms.saturating_add(passed);
        if day_ms.saturating_add(CLOCK_STEP_MS) < expected {
            self.steps_back(expected, day_ms);
        } else if day_ms > expected.saturating_add(CLOCK_STEP_MS) {
            self.steps_ahead(expected, day_ms);
        }
        (self.day_ms, self.steady_ms) = (day_ms, steady_ms);
        if day_ms.abs_diff(self.marked.seen_ms) >= CLOCK_MARK_MS {
            self.is_news = true;
        }
    }

    /// Whether something may go for its age.
    pub(super) fn is_calm(&self) -> bool {
        self.steady_ms.saturating_sub(self.calm_since_ms) >= CLOCK_CALM_MS
    }

    pub(super) fn ages(&self) -> &BlockAges {
        &self.ages
    }

    /// A calm clock sees messages from a later time, up to `ahead_ms`: their clock was ahead, and
    /// nobody saw it set back.
    pub(super) fn saw_ahead(&mut self, ahead_ms: u64) {
        if ahead_ms > self.ages.mark.ahead_ms.max(self.day_ms) {
            self.ages.mark.ahead_ms = ahead_ms;
            self.ages.mark.right_ms = self.day_ms;
            self.is_news = true;
        }
    }

    /// The clock was ahead: it said `before_ms`, and now says `day_ms`.
    fn steps_back(&mut self, before_ms: u64, day_ms: u64) {
        tracing::warn!(back = ?Duration::from_millis(before_ms - day_ms), "the clock was set back");
        self.first_ahead_ms = None;
        let by_ms = before_ms - day_ms;
        for step in self.ages.steps.iter_mut().filter(|step| is_from_reset(step)) {
            // The clock was wrong before it was set, and was set too far. A clock that begins in
            // 1970 again says nothing of it.
            if step.shown_ms > day_ms && day_ms >= CLOCK_SENSE_MS {
                step.shown_ms = step.shown_ms.saturating_sub(by_ms).max(step.until_ms);
                self.new_steps = true;
            }
        }
        // A step ahead that is taken back was none.
        let is_refuted = |step: &ClockStep| {
            day_ms >= CLOCK_SENSE_MS && step.shown_ms > day_ms && !is_from_reset(step)
        };
        let refuted = self.ages.steps.iter().filter(|step| is_refuted(step));
        if let Some(first) = refuted.map(|step| step.since_ms).min() {
            self.since_ms = self.since_ms.min(first);
            self.ages.steps.retain(|step| !is_refuted(step));
            let is_refuted =
                |restamp: &RowRestamp| restamp.to_ms > day_ms && restamp.until_ms >= CLOCK_SENSE_MS;
            self.restamps.retain(|restamp| !is_refuted(restamp));
            self.new_steps = true;
        } else {
            self.set_back = Some((before_ms, self.since_ms));
            self.since_ms = day_ms;
        }
        self.ages.mark.ahead_ms = self.ages.mark.ahead_ms.max(before_ms);
        self.ages.mark.right_ms = day_ms;
        self.is_news = true;
        self.is_disturbed();
    }

    /// The clock was behind: it said `before_ms`, and now says `day_ms`.
    fn steps_ahead(&mut self, before_ms: u64, day_ms: u64) {
        tracing::warn!(by = ?Duration::from_millis(day_ms - before_ms), "the clock was set ahead");
        self.go_on_ahead(day_ms - before_ms, day_ms);
        let is_set = before_ms < CLOCK_SENSE_MS && day_ms >= CLOCK_SENSE_MS;
        // A clock that begins in 1970 may have begun there before this start too.
        let since_ms = if is_set { 0 } else { self.since_ms };
        let step = ClockStep { since_ms, until_ms: before_ms, shown_ms: day_ms };
        self.restamps.push(RowRestamp::of_step(&step));
        if is_set {
            // An earlier step stays true of what this time in 1970 has not reached.
            let earlier = self.ages.steps.iter_mut().filter(|other| is_from_reset(other));
            earlier.for_each(|other| other.since_ms = other.since_ms.max(before_ms + 1));
            self.ages.steps.retain(|other| other.since_ms <= other.until_ms);
        }
        self.ages.steps.retain(|other| other.since_ms != step.since_ms);
        self.ages.steps.push(step);
        // The oldest step goes. What it was about ages by the time that it was stored with.
        while self.ages.steps.len() > MAX_CLOCK_STEPS {
            // Without those from 1970 all that was stored there would go at once.
            let other = self.ages.steps.iter().position(|step| !is_from_reset(step));
            self.ages.steps.remove(other.unwrap_or(0));
        }
        // The clock may be where it was before it was set back, and what came then is of the same
        // clock as what comes now.
        let returns = self.set_back.take_if(|(before_ms, _)| *before_ms <= day_ms);
        self.since_ms = returns.map_or(day_ms, |(_, since_ms)| since_ms);
        self.new_steps = true;
        self.is_disturbed();
    }

    /// Adds to the steps since the clock was calm, which did not reach as far as they should have.
    fn go_on_ahead(&mut self, by_ms: u64, day_ms: u64) {
        let was_calm = self.is_calm();
        match self.first_ahead_ms.filter(|_| !was_calm) {
            None => self.first_ahead_ms = Some(day_ms),
            Some(first_ms) => {
                let steps = self.ages.steps.iter_mut().filter(|step| step.shown_ms >= first_ms);
                steps.for_each(|step| step.shown_ms += by_ms);
            }
        }
    }

    fn is_disturbed(&mut self) {
        self.calm_since_ms = self.clock.steady_ms();
    }

    /// Adds what the store is to know of the clock.
    pub(super) fn plan(&mut self, changes: &mut Vec<StoreChange>) {
        if std::mem::take(&mut self.new_steps) {
            changes.push(StoreChange::SetClockSteps { steps: self.ages.steps.clone() });
        }
        if std::mem::take(&mut self.is_news) {
            self.ages.mark.seen_ms = self.day_ms;
            self.marked = self.ages.mark;
            changes.push(StoreChange::SetClockMark(self.marked));
        }
    }

    /// Adds what sets the times of rows right, some at once: those of a clock that was behind, and
    /// then those that are ahead of it now.
    pub(super) fn restamp(&self, rows_max: u64) -> StoreChange {
        let ahead = RowRestamp::ahead_of(self.day_ms);
        let restamp = self.restamps.first().copied().unwrap_or(ahead);
        StoreChange::RestampRows(RowRestamp { rows_max, ..restamp })
    }

    /// A commit has set right all rows of the first restamp. Returns whether there was more to do
    /// behind it.
    pub(super) fn has_restamped(&mut self) -> bool {
        let has_more = !self.restamps.is_empty();
        self.restamps.drain(..usize::from(has_more));
        has_more
    }

    /// The time of day.
    pub(super) fn day_ms(&self) -> u64 {
        self.clock.day_ms()
    }

    /// The commit was given up, and with it what it should have stored of the clock.
    pub(super) fn fail(&mut self) {
        (self.is_news, self.new_steps) = (true, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    fn watch(clock: &HubClock) -> ClockWatch {
        ClockWatch::new(clock.clone(), ClockMark::default(), Vec::new())
    }

    fn settle(clock: &HubClock, watch: &mut ClockWatch) {
        assert!(!watch.is_calm());
        clock.pass(Duration::from_millis(CLOCK_CALM_MS - 1000));
        watch.look();
        assert!(!watch.is_calm(), "a second is missing");
        clock.pass(Duration::from_millis(1000));
        watch.look();
        assert!(watch.is_calm());
    }

    /// How old a block is that was stored now, after the steps and an hour.
    fn age_after(steps: &[i64]) -> u64 {
        let clock = HubClock::system();
        let mut watch = watch(&clock);
        clock.pass(Duration::from_secs(60));
        watch.look();
        let last_ms = clock.day_ms();
        for step in steps {
            clock.pass(Duration::from_secs(1));
            watch.look();
            clock.step(*step);
            clock.pass(Duration::from_secs(1));
            watch.look();
        }
        clock.pass(Duration::from_secs(3600));
        watch.look();
        let now_ms = clock.day_ms();
        now_ms.saturating_sub(watch.ages().stored_at(last_ms, 0, now_ms))
    }

    #[test]
    fn the_clock_is_calm_ten_minutes_after_a_start_and_after_each_step() {
        for step in [HOUR_MS, -HOUR_MS, 40 * DAY_MS, -40 * DAY_MS, 27 * 365 * DAY_MS] {
            let clock = HubClock::system();
            let mut watch = watch(&clock);
            settle(&clock, &mut watch);
            clock.step(step);
            clock.pass(Duration::from_secs(1));
            watch.look();
            settle(&clock, &mut watch);
        }
        let clock = HubClock::system();
        let mut watch = watch(&clock);
        settle(&clock, &mut watch);
        clock.step(900);
        clock.pass(Duration::from_secs(1));
        watch.look();
        assert!(watch.is_calm(), "a correction of less than two seconds is no step");
    }

    #[test]
    fn a_step_makes_no_message_older() {
        let year = 365 * DAY_MS;
        for steps in [
            &[][..],
            &[HOUR_MS],
            &[-HOUR_MS],
            &[40 * DAY_MS],
            &[-40 * DAY_MS],
            &[27 * year],
            &[-56 * year, 56 * year],
            &[40 * DAY_MS, -40 * DAY_MS],
            &[-HOUR_MS, HOUR_MS, HOUR_MS],
        ] {
            let age = age_after(steps);
            assert!(age <= 3_610_000, "{steps:?}: {age} ms old after an hour");
        }
        assert!(age_after(&[]) >= 3_600_000);
        // A step ahead that is taken back keeps nothing for longer.
        assert!(age_after(&[40 * DAY_MS, -40 * DAY_MS]) >= 3_600_000);
        // A message of a clock that was ahead ages from when that was set right.
        assert!(age_after(&[-40 * DAY_MS]) >= 3_590_000);
    }

    #[test]
    fn a_machine_that_begins_in_1970_keeps_what_it_stored_before_its_clock_was_set() {
        let clock = HubClock::system();
        clock.step(-(clock.day_ms() as i64) + 60_000);
        let mut first = watch(&clock);
        clock.pass(Duration::from_secs(100));
        first.look();
        let (last_ms, mut changes) = (clock.day_ms(), Vec::new());
        first.plan(&mut changes);
        let Some(StoreChange::SetClockMark(mark)) = changes.pop() else { panic!("{changes:?}") };
        // The clock is set while the hub is down.
        clock.step(56 * 365 * DAY_MS);
        let mut next = ClockWatch::new(clock.clone(), mark, Vec::new());
        clock.pass(Duration::from_secs(3600));
        next.look();
        let now_ms = clock.day_ms();
        let age = now_ms - next.ages().stored_at(last_ms, 0, now_ms);
        assert!((3_590_000..3_700_000).contains(&age), "{age}");
    }

    #[test]
    fn what_a_clock_ahead_has_stored_ages_from_when_a_calm_one_sees_it() {
        let clock = HubClock::system();
        let mut watch = watch(&clock);
        let ahead = clock.day_ms() + 27 * 365 * DAY_MS as u64;
        settle(&clock, &mut watch);
        watch.saw_ahead(ahead);
        let seen = clock.day_ms();
        clock.pass(Duration::from_secs(3600));
        watch.look();
        watch.saw_ahead(ahead);
        let at = watch.ages().stored_at(ahead, 0, clock.day_ms());
        assert!(at.abs_diff(seen) < 10_000, "it was seen once");
        // A later message under the stream's time ahead has its own.
        let stored = clock.day_ms();
        assert_eq!(watch.ages().stored_at(ahead, stored, stored + 5), stored);
    }

    /// A machine without a battery for its clock: time in 1970, and what a hub knows there.
    struct ResetMachine {
        clock: HubClock,
        watch: ClockWatch,
        real_ms: u64,
    }

    impl ResetMachine {
        fn boot() -> Self {
            let clock = HubClock::system();
            let real_ms = clock.day_ms();
            clock.step(10_000 - real_ms as i64);
            let watch = watch(&clock);
            Self { clock, watch, real_ms }
        }

        /// Lets time pass; returns what the clock says then.
        fn pass(&mut self, seconds: u64) -> u64 {
            self.clock.pass(Duration::from_secs(seconds));
            self.real_ms += seconds * 1000;
            self.watch.look();
            self.clock.day_ms()
        }

        /// Has the network set the clock, which is wrong by `off_ms` then.
        fn set(&mut self, off_ms: i64) {
            let (real_ms, day_ms) = (self.real_ms as i64, self.clock.day_ms() as i64);
            self.clock.step(real_ms + off_ms - day_ms);
            self.pass(1);
        }

        /// Starts the hub again, as its store knows the clock.
        fn restart(&mut self) {
            let (mark, steps) = (
                ClockMark { seen_ms: self.watch.day_ms, ..self.watch.ages.mark },
                self.watch.ages.steps.clone(),
            );
            self.watch = ClockWatch::new(self.clock.clone(), mark, steps);
        }

        /// The age of a block in seconds.
        fn age_s(&self, last_ms: u64) -> u64 {
            let now_ms = self.clock.day_ms();
            now_ms.saturating_sub(self.watch.ages().stored_at(last_ms, 0, now_ms)) / 1000
        }
    }

    #[test]
    fn a_hub_that_starts_again_in_1970_keeps_what_it_stored_before() {
        let mut machine = ResetMachine::boot();
        let block = machine.pass(90);
        machine.pass(100);
        machine.restart();
        machine.pass(100);
        machine.set(0);
        machine.pass(3600);
        let age = machine.age_s(block);
        assert!((3790..3820).contains(&age), "{age}");
    }

    #[test]
    fn a_machine_that_begins_in_1970_again_keeps_what_it_stored_there_the_first_time() {
        let mut machine = ResetMachine::boot();
        let first = machine.pass(1790);
        machine.pass(1800);
        machine.set(0);
        machine.pass(86_400);
        machine.clock.step(10_000 - machine.clock.day_ms() as i64);
        machine.restart();
        let second = machine.pass(40);
        machine.pass(10);
        machine.set(0);
        machine.pass(3600);
        let (first, second) = (machine.age_s(first), machine.age_s(second));
        assert!((91_840..91_870).contains(&first), "{first}");
        assert!((3600..3630).contains(&second), "{second}");
    }

    #[test]
    fn a_clock_that_is_set_in_several_steps_makes_no_message_older() {
        for steps in [&[-HOUR_MS, 0][..], &[-HOUR_MS, -HOUR_MS / 2, 0], &[40 * DAY_MS, 0]] {
            let mut machine = ResetMachine::boot();
            let block = machine.pass(90);
            for off_ms in steps {
                machine.set(*off_ms);
                machine.pass(20);
            }
            machine.pass(3600);
            let age = machine.age_s(block);
            assert!((3600..3800).contains(&age), "{steps:?}: {age}");
        }
    }

    #[test]
    fn a_clock_that_went_back_by_less_than_a_step_makes_no_message_older() {
        let mark = ClockMark { right_ms: 1000, ..ClockMark::default() };
        let ages = BlockAges { steps: Vec::new(), mark };
        assert_eq!(ages.stored_at(9_000_500, 0, 9_000_000), 9_000_000);
    }
}
