//! Steps of a longer run, each timed, with a table at the end.

use std::time::{Duration, Instant};

use crate::process::Outcome;

/// How a step ended when it did not fail.
pub(crate) enum Done {
    /// It ran.
    Passed,
    /// There was nothing to run, and why.
    Skipped(&'static str),
}

struct Row {
    name: String,
    took: Duration,
    result: Outcome<Done>,
}

/// The steps so far. A failed step does not stop the run, so that one run shows all faults.
#[derive(Default)]
pub(crate) struct Steps {
    rows: Vec<Row>,
}

impl Steps {
    /// Runs one step.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Outcome) {
        self.optional(name, || run().map(|()| Done::Passed));
    }

    /// Runs one step that may find nothing to do.
    pub(crate) fn optional(&mut self, name: &str, run: impl FnOnce() -> Outcome<Done>) {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let result = run();
        if let Err(failure) = &result {
            eprintln!("{failure}");
        }
        self.rows.push(Row { name: name.to_owned(), took: start.elapsed(), result });
    }

    /// Prints the table, and fails if a step did.
    pub(crate) fn finish(self) -> Outcome {
        println!("\n{}", self.table());
        let failed: Vec<_> =
            self.rows.iter().filter(|row| row.result.is_err()).map(|row| &*row.name).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(5);
        let mut table = format!("{:width$}  seconds  result\n", "step");
        for Row { name, took, result } in &self.rows {
            let result = match result {
                Ok(Done::Passed) => "passed".to_owned(),
                Ok(Done::Skipped(why)) => format!("skipped: {why}"),
                Err(failure) => {
                    format!("FAILED: {}", failure.lines().next().unwrap_or_default())
                }
            };
            table += &format!("{name:width$}  {:7.1}  {result}\n", took.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|row| row.took).sum();
        table + &format!("{:width$}  {:7.1}", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_run_but_not_the_steps_after_it() {
        let mut steps = Steps::default();
        let mut ran = false;
        steps.step("first", || Err("no disk\nat all".to_owned()));
        steps.step("second", || {
            ran = true;
            Ok(())
        });
        steps.optional("third", || Ok(Done::Skipped("nothing there")));
        assert!(ran);
        let table = steps.table();
        assert!(table.contains("FAILED: no disk\n"), "{table}");
        assert!(table.contains("passed") && table.contains("skipped: nothing there"), "{table}");
        assert_eq!(steps.finish().unwrap_err(), "failed: first");
    }
}
