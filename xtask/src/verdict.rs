//! The closing words of the test runner, repeated where a reader looks first.

use std::collections::{BTreeMap, BTreeSet};

/// The runner's words about a test that takes long.
const SLOW: &str = " has been running for over 60 seconds";
/// How the runner tells of a test of the laboratory that it leaves out.
const LEFT_OUT: &str = " ... ignored, lab: needs ";
/// So many lines of what failed tests printed are kept.
const MOST_LINES: usize = 300;

/// Tests, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// Those that were left out by name.
    pub(crate) filtered: u64,
}

impl TestCounts {
    /// Of the closing line of a test program, if this is one:
    /// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; …`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| {
            let mut counts = counts.split("; ");
            counts.find_map(|count| count.strip_suffix(word)?.parse().ok()).unwrap_or(0)
        };
        let [passed, failed, ignored, filtered] =
            [" passed", " failed", " ignored", " filtered out"].map(count);
        Some(Self { passed, failed, ignored, filtered })
    }
}

/// The closing words of all test binaries of a run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestVerdict {
    counts: TestCounts,
    binaries: u64,
    /// Names of failed tests, in the order in which they were told.
    names: Vec<String>,
    /// Tests that have been running for over a minute, and are not done.
    slow: BTreeSet<String>,
    /// The output of failed tests: from `failures:` to the list of their names.
    said: Vec<String>,
    part: VerdictPart,
    /// The lack that keeps this machine from being a laboratory.
    pub(crate) lack: Option<String>,
    /// Tests of the laboratory that did not run, by what they need.
    not_run: BTreeMap<String, u64>,
}

/// Which part of a binary's output is being read.
#[derive(Debug, Default, PartialEq, Clone, Copy)]
enum VerdictPart {
    #[default]
    Tests,
    Said,
    Names,
}

impl TestVerdict {
    /// Takes one line of the runner's standard output.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(TestCounts { passed, failed, ignored, .. }) = TestCounts::read(line) {
            self.binaries += 1;
            self.counts.passed += passed;
            self.counts.failed += failed;
            self.counts.ignored += ignored;
            self.part = VerdictPart::Tests;
            self.slow.clear();
            return;
        }
        if self.part == VerdictPart::Tests {
            self.follow(line);
        }
        match (self.part, line) {
            (VerdictPart::Tests, "failures:") => self.part = VerdictPart::Said,
            (VerdictPart::Said, "failures:") => self.part = VerdictPart::Names,
            (VerdictPart::Said, _) if self.said.len() < MOST_LINES && !is_frame(line) => {
                self.said.push(line.to_owned())
            }
            (VerdictPart::Names, name) if !name.is_empty() => {
                self.names.push(name.trim().to_owned())
            }
            _ => {}
        }
    }

    /// `test NAME has been running for over 60 seconds`, and later `test NAME ... ok`.
    fn follow(&mut self, line: &str) {
        let Some(line) = line.strip_prefix("test ") else { return };
        if let Some((_, need)) = line.split_once(LEFT_OUT) {
            *self.not_run.entry(need.to_owned()).or_default() += 1;
        }
        if let Some(name) = line.strip_suffix(SLOW) {
            self.slow.insert(name.to_owned());
        } else if let Some((name, _)) = line.split_once(" ... ") {
            self.slow.remove(name);
        }
    }

    /// The block about tests that did not run. Without it a green run would pass for a whole one.
    fn say_not_run(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum: u64 = self.not_run.values().sum();
        if sum == 0 && self.lack.is_none() {
            return Ok(());
        }
        let frame = "#".repeat(80);
        writeln!(f, "{frame}\n## NOT RUN: {sum} tests of the laboratory, which need")?;
        for (need, count) in &self.not_run {
            writeln!(f, "##   {count:4}  {need}")?;
        }
        for line in self.lack.iter().flat_map(|lack| lack.lines()) {
            writeln!(f, "## {line}")?;
        }
        writeln!(f, "## `cargo xtask test --lab` runs them as root; so does `.ci/run`.\n{frame}")
    }
}

/// Whether a line is one of a stack trace: the panic before it says where it was.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u16>().is_ok());
    number || line.starts_with("at ") || line == "stack backtrace:" || line.is_empty()
}

impl std::fmt::Display for TestVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.said {
            writeln!(f, "{line}")?;
        }
        for name in &self.names {
            writeln!(f, "test {name} ... FAILED")?;
        }
        for name in &self.slow {
            writeln!(f, "test {name} was still running: FAILED")?;
        }
        self.say_not_run(f)?;
        let (TestCounts { passed, failed, ignored, .. }, binaries) = (&self.counts, self.binaries);
        let word = if *failed == 0 && self.slow.is_empty() { "ok" } else { "FAILED" };
        write!(f, "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; ")?;
        write!(f, "of {binaries} test binaries")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_tests_printed_and_all_counts_are_said_again() {
        let mut verdict = TestVerdict::default();
        let first = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n\
            ---- b stdout ----\nthread 'b' panicked\nstack backtrace:\n   0: rust_begin_unwind\n\
            \x20           at library/std/panicking.rs:1:5\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; \
            finished in 0.1s";
        let second = "running 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; \
            0 ignored; 0 measured; 0 filtered out; finished in 0.0s";
        first.lines().chain(second.lines()).for_each(|line| verdict.hear(line));
        let text = verdict.to_string();
        assert!(text.contains("thread 'b' panicked\ntest b ... FAILED\n"), "{text}");
        let sum = "test result: FAILED. 2 passed; 1 failed; 3 ignored; of 2 test binaries";
        assert!(text.ends_with(sum), "{text}");
    }

    #[test]
    fn who_is_not_done_at_the_end_is_named() {
        let mut verdict = TestVerdict::default();
        verdict.hear("test slow has been running for over 60 seconds");
        verdict.hear("test hangs has been running for over 60 seconds");
        verdict.hear("test slow ... ok");
        let text = verdict.to_string();
        assert!(text.starts_with("test hangs was still running: FAILED\ntest result: FAILED."));
        verdict.hear("test result: ok. 2 passed; 0 failed");
        assert!(!verdict.to_string().contains("FAILED"), "{verdict}");
    }

    #[test]
    fn tests_that_did_not_run_are_counted_by_what_they_need() {
        let mut verdict = TestVerdict::default();
        for line in [
            "test a ... ignored, lab: needs zsh",
            "test b ... ignored, lab: needs root (network namespaces)",
            "test c ... ignored, lab: needs zsh",
            "test as_process_d ... ignored, started by another",
            "test result: ok. 1 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out",
        ] {
            verdict.hear(line);
        }
        verdict.lack = Some("this user is not root".to_owned());
        let text = verdict.to_string();
        let block = "## NOT RUN: 3 tests of the laboratory, which need\n\
            ##      1  root (network namespaces)\n##      2  zsh\n## this user is not root\n";
        assert!(text.contains(block), "{text}");
        assert!(text.ends_with("1 passed; 0 failed; 4 ignored; of 1 test binaries"), "{text}");
        assert!(!TestVerdict::default().to_string().contains("NOT RUN"));
    }

    #[test]
    fn the_closing_line_is_read_and_no_other() {
        let line = "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out";
        let counts = TestCounts { passed: 2, failed: 1, ignored: 0, filtered: 5 };
        assert_eq!(TestCounts::read(line), Some(counts));
        assert_eq!(TestCounts::read("running 3 tests"), None);
    }

    #[test]
    fn a_flood_of_words_is_cut() {
        let mut verdict = TestVerdict::default();
        verdict.hear("failures:");
        (0..2 * MOST_LINES).for_each(|_| verdict.hear("more"));
        assert_eq!(verdict.said.len(), MOST_LINES);
    }
}
