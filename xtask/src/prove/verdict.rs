//! Whether what a run printed proves anything: a test that skipped itself has passed, and so has a
//! program none of whose tests has the name that was asked for.

use crate::counts::TestCounts;

/// The results of tests that the lines of a run have reported.
#[derive(Debug, Default)]
pub(super) struct ProofVerdict {
    passed: u64,
    skip: Option<String>,
}

impl ProofVerdict {
    /// Takes in one line that a run printed.
    pub(super) fn hear(&mut self, line: &str) {
        if let Some(counts) = TestCounts::read(line) {
            self.passed += counts.passed;
        }
        if self.skip.is_none() && is_skip(line) {
            self.skip = Some(line.trim().to_owned());
        }
    }

    /// Why a run that ended well proves nothing; `tests` says whether it was one of tests.
    pub(super) fn fault(&self, tests: bool) -> Option<String> {
        match &self.skip {
            Some(line) => Some(format!("a test was skipped: {line}")),
            None if tests && self.passed == 0 => Some("no test ran".to_owned()),
            None => None,
        }
    }
}

/// The words by which tests say that they did not run.
fn is_skip(line: &str) -> bool {
    let line = line.trim_start();
    line.contains("NOT SHOWN") || line.starts_with("not tested") || line.starts_with("skipped ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSING: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 3s";

    fn of(lines: &[&str]) -> Option<String> {
        let mut verdict = ProofVerdict::default();
        lines.iter().for_each(|line| verdict.hear(line));
        verdict.fault(true)
    }

    #[test]
    fn a_run_needs_a_test_that_ran_and_none_that_was_skipped() {
        assert_eq!(of(&["running 2 tests", CLOSING]), None);
        let none = CLOSING.replace("2 passed", "0 passed");
        assert_eq!(of(&["running 0 tests", &none]).as_deref(), Some("no test ran"));
        assert_eq!(of(&[]).as_deref(), Some("no test ran"));
        for skip in ["NOT SHOWN: no root", "not tested: no library", "skipped 1: needs root"] {
            assert_eq!(of(&[skip, CLOSING]), Some(format!("a test was skipped: {skip}")));
        }
        assert_eq!(ProofVerdict::default().fault(false), None, "a bench has no tests");
    }
}
