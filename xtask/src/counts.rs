//! The counts in the closing line of a test program.

/// Tests of one program, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Those that were left out by name.
    pub(crate) filtered: u64,
}

impl TestCounts {
    /// Of a line that a test program printed, if it is the closing one.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| {
            let mut counts = counts.split("; ");
            counts.find_map(|count| count.strip_suffix(word)?.parse().ok()).unwrap_or(0)
        };
        let [passed, failed] = [" passed", " failed"].map(count);
        Some(Self { passed, failed, filtered: count(" filtered out") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_read_and_no_other() {
        let line = "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out";
        let counts = TestCounts { passed: 2, failed: 1, filtered: 5 };
        assert_eq!(TestCounts::read(line), Some(counts));
        assert_eq!(TestCounts::read("running 3 tests"), None);
    }
}
