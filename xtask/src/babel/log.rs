//! Lines of a log of the simulator: `spec/scenario.md`.

use std::path::Path;

use super::WINDOW_S;
use crate::process::XtaskResult;

/// A number of a line.
pub(crate) fn number(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// All lines of a kind.
pub(crate) fn of_kind<'a>(log: &'a str, kind: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!("\"kind\":\"{kind}\"");
    log.lines().filter(move |line| line.contains(&begin))
}

pub(super) fn read(path: &Path) -> XtaskResult<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The traffic in the seconds after a moment: bytes, and the share of the time on air.
pub(super) struct BabelTraffic {
    pub(super) bytes_per_second: f64,
    pub(super) air: f64,
}

/// Reads it off a log, for the time that control is counted.
pub(super) fn sent(log: &str, since_us: u64) -> BabelTraffic {
    let until = since_us + WINDOW_S * 1_000_000;
    let is_in = |line: &&str| number(line, "at").is_some_and(|at| (since_us..until).contains(&at));
    let (mut bytes, mut air) = (0, 0);
    for line in of_kind(log, "send").filter(is_in) {
        bytes += number(line, "bytes").unwrap_or(0);
        air += number(line, "air").unwrap_or(0);
    }
    let seconds = WINDOW_S as f64;
    BabelTraffic { bytes_per_second: bytes as f64 / seconds, air: air as f64 / 1e6 / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_in_the_window_counts() {
        let line = |at: u64| {
            format!(
                "{{\"v\":1,\"at\":{at},\"kind\":\"send\",\"node\":1,\"bytes\":60,\"air\":300}}\n"
            )
        };
        let log: String = [9, 10, 20, 10 + WINDOW_S * 1_000_000].map(line).concat();
        let BabelTraffic { bytes_per_second, air } = sent(&log, 10);
        assert_eq!(bytes_per_second, 120.0 / WINDOW_S as f64);
        assert!((air - 600e-6 / WINDOW_S as f64).abs() < 1e-12);
        assert_eq!(number("{\"at\":12}", "at"), Some(12));
        assert_eq!(number("{\"at\":12}", "of"), None);
    }
}
