//! Steps of a longer run, each timed, with a table at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::process::{self, XtaskResult};

/// Seconds for each step, and their sum for all of them.
const BUDGET: &str = ".ci/budget";
/// Says how many times the seconds of the budget a slower machine may take.
const FACTOR: &str = "SEALANE_BUDGET_FACTOR";

/// How a step ended when it did not fail.
pub(crate) enum StepResult {
    /// It ran.
    Passed,
    /// There was nothing to run, and why.
    Skipped(&'static str),
}

struct TimedStep {
    name: String,
    took: Duration,
    result: XtaskResult<StepResult>,
}

/// The steps so far. A failed step does not stop the run, so that one run shows all faults.
#[derive(Default)]
pub(crate) struct XtaskSteps {
    rows: Vec<TimedStep>,
    budget: Option<StepBudget>,
}

/// The time that each step may take.
struct StepBudget {
    seconds: BTreeMap<String, f64>,
    factor: f64,
}

impl StepBudget {
    fn load() -> XtaskResult<Self> {
        let text = std::fs::read_to_string(process::root().join(BUDGET));
        let text = text.map_err(|error| format!("{BUDGET}: {error}"))?;
        Self::read(&text, std::env::var(FACTOR).ok().as_deref())
    }

    /// Lines of a step's name and its seconds; `#` begins a comment.
    fn read(text: &str, factor: Option<&str>) -> XtaskResult<Self> {
        let mut seconds = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, number) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let number = positive(number);
            let number = number.ok_or_else(|| format!("{BUDGET}: `{line}` names no seconds"))?;
            seconds.insert(name.to_owned(), number);
        }
        let factor = factor.map_or(Some(1.0), positive);
        let factor = factor.ok_or_else(|| format!("{FACTOR} takes a number above 0"))?;
        Ok(Self { seconds, factor })
    }

    fn of(&self, step: &str) -> Option<f64> {
        self.seconds.get(step).map(|seconds| seconds * self.factor)
    }

    fn sum(&self) -> f64 {
        self.seconds.values().sum::<f64>() * self.factor
    }
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

impl XtaskSteps {
    /// Steps that all together may take what `.ci/budget` says.
    pub(crate) fn in_budget() -> XtaskResult<Self> {
        Ok(Self { rows: vec![], budget: Some(StepBudget::load()?) })
    }

    /// Runs one step.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> XtaskResult) {
        self.optional(name, || run().map(|()| StepResult::Passed));
    }

    /// Runs one step that may find nothing to do.
    pub(crate) fn optional(&mut self, name: &str, run: impl FnOnce() -> XtaskResult<StepResult>) {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let result = match self.left().is_zero() {
            true => Err("no time is left for it".to_owned()),
            false => run(),
        };
        if let Err(failure) = &result {
            eprintln!("{}", failure.lines().next().unwrap_or_default());
        }
        self.rows.push(TimedStep { name: name.to_owned(), took: start.elapsed(), result });
    }

    /// How much of the budget is left. A step that may hang is ended after it, so that the run
    /// itself can say what hangs.
    pub(crate) fn left(&self) -> Duration {
        let Some(budget) = &self.budget else { return Duration::MAX };
        Duration::from_secs_f64((budget.sum() - self.total()).max(0.0))
    }

    /// Prints the table, and fails if a step did, or if all of them took too long.
    pub(crate) fn finish(self) -> XtaskResult {
        for (name, failure) in self.failures() {
            println!("\n{name}: {failure}");
        }
        println!("\n{}", self.table());
        let failed: Vec<_> =
            self.rows.iter().filter(|row| row.result.is_err()).map(|row| &*row.name).collect();
        if !failed.is_empty() {
            return Err(format!("failed: {}", failed.join(", ")));
        }
        self.overrun().map_or(Ok(()), Err)
    }

    /// The failures with more to say than stands in the table.
    fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed =
            self.rows.iter().filter_map(|row| Some((&*row.name, row.result.as_ref().err()?)));
        failed.map(|(name, text)| (name, &**text)).filter(|(_, text)| text.contains('\n'))
    }

    fn total(&self) -> f64 {
        self.rows.iter().map(|row| row.took).sum::<Duration>().as_secs_f64()
    }

    /// The fault in the time that the steps took, if there is one.
    fn overrun(&self) -> Option<String> {
        let budget = self.budget.as_ref()?;
        if let Some(row) = self.rows.iter().find(|row| budget.of(&row.name).is_none()) {
            return Some(format!("{BUDGET} names no seconds for the step `{}`", row.name));
        }
        let (total, most) = (self.total(), budget.sum());
        (total > most)
            .then(|| format!("{total:.0} s are more than the {most:.0} of {BUDGET}; see its head"))
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(5);
        let planned = |seconds: Option<f64>| match seconds {
            Some(seconds) => format!("  {seconds:6.0}"),
            None if self.budget.is_some() => format!("  {:>6}", "none"),
            None => String::new(),
        };
        let heading = if self.budget.is_some() { "  budget" } else { "" };
        let mut table = format!("{:width$}  seconds{heading}  result\n", "step");
        for TimedStep { name, took, result } in &self.rows {
            let budget = planned(self.budget.as_ref().and_then(|budget| budget.of(name)));
            let result = match result {
                Ok(StepResult::Passed) => "passed".to_owned(),
                Ok(StepResult::Skipped(why)) => format!("skipped: {why}"),
                Err(failure) => {
                    format!("FAILED: {}", failure.lines().next().unwrap_or_default())
                }
            };
            table += &format!("{name:width$}  {:7.1}{budget}  {result}\n", took.as_secs_f64());
        }
        let budget = planned(self.budget.as_ref().map(StepBudget::sum));
        table + &format!("{:width$}  {:7.1}{budget}", "total", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_run_but_not_the_steps_after_it() {
        let mut steps = XtaskSteps::default();
        let mut ran = false;
        steps.step("first", || Err("no disk\nat all".to_owned()));
        steps.step("second", || {
            ran = true;
            Ok(())
        });
        steps.optional("third", || Ok(StepResult::Skipped("nothing there")));
        assert!(ran);
        let table = steps.table();
        assert!(table.contains("FAILED: no disk\n"), "{table}");
        assert!(table.contains("passed") && table.contains("skipped: nothing there"), "{table}");
        assert_eq!(steps.finish().unwrap_err(), "failed: first");
    }
    fn row(name: &str, seconds: u64) -> TimedStep {
        let took = Duration::from_secs(seconds);
        TimedStep { name: name.to_owned(), took, result: Ok(StepResult::Passed) }
    }

    #[test]
    fn a_run_above_its_budget_fails_and_shows_each_step_beside_its_seconds() {
        let steps = |budget: &str, factor| {
            let budget = Some(StepBudget::read(budget, factor).unwrap());
            XtaskSteps { rows: vec![row("build", 50), row("run", 30)], budget }
        };
        let enough = steps("# a comment\nbuild 30\nrun   60\n", None);
        let table = enough.table();
        assert!(table.contains("build     50.0      30  passed\n"), "{table}");
        assert!(table.ends_with("total     80.0      90"), "{table}");
        assert_eq!(enough.finish(), Ok(()), "one step may take what another leaves");
        let little = "build 30\nrun 40\n";
        let fault = steps(little, None).finish().unwrap_err();
        assert!(fault.starts_with("80 s are more than the 70 of .ci/budget"), "{fault}");
        assert_eq!(steps(little, Some("1.5")).finish(), Ok(()));
        assert!(steps("build 100\n", None).finish().unwrap_err().contains("the step `run`"));
        for (text, factor) in [("run soon", None), ("run 1", Some("0")), ("run -1", None)] {
            assert!(StepBudget::read(text, factor).is_err(), "{text}");
        }
    }

    #[test]
    fn behind_a_spent_budget_no_step_is_run() {
        let budget = StepBudget::read("hang 60\nnext 1\n", None).unwrap();
        let mut steps = XtaskSteps { rows: vec![row("hang", 60)], budget: Some(budget) };
        assert_eq!(steps.left(), Duration::from_secs(1));
        steps.rows.push(row("hang", 1));
        steps.step("next", || panic!("it runs"));
        assert_eq!(steps.finish().unwrap_err(), "failed: next");
    }

    #[test]
    fn a_clean_clone_takes_at_most_35_minutes() {
        let budget = StepBudget::load().unwrap();
        assert!(budget.sum() <= 35.0 * 60.0 * budget.factor);
    }
}
