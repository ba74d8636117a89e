//! The clocks that a node goes by: that of this machine, beside what was written by it, and that
//! of the hub, beside that of this machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealane::Client;

use super::DoctorFindings;
use crate::limits::{MAX_CLOCKS_APART_MS, MAX_FILE_AHEAD_MS, MAX_HUB_TIME_AGE_MS};
use crate::times::show_span;

/// The newest write, and its time.
struct LatestWrite {
    what: String,
    at: SystemTime,
}

/// Looks whether anything in the data folder is of a time that has not come yet.
pub(super) fn of_this_machine(data: &Path, findings: &mut DoctorFindings) {
    let now = SystemTime::now();
    let Some(newest) = newest(data) else { return };
    match newest.at.duration_since(now) {
        Ok(ahead) if ahead > Duration::from_millis(MAX_FILE_AHEAD_MS) => findings.bad(
            "clock",
            format!(
                "it says {}, and {} is {} newer: until then, tokens that have expired hold again, \
                 delayed messages and retention wait, and new messages get the time of the last; \
                 set the clock, by NTP for example",
                shown(now),
                newest.what,
                lasting(ahead),
            ),
        ),
        _ => {
            findings.good("clock", format!("{}, later than all that was written here", shown(now)));
        }
    }
    generations(data, now, findings);
}

/// Says so if the generations of a store run ahead of the clock. They rise all the same, so that
/// there is nothing to mend.
fn generations(data: &Path, now: SystemTime, findings: &mut DoctorFindings) {
    let newest = sealane_stream::newest_generation(data).unwrap_or_default();
    let Some(newest) = UNIX_EPOCH.checked_add(Duration::from_secs(newest)) else { return };
    let Ok(ahead) = newest.duration_since(now) else { return };
    if ahead.as_secs() > sealane_stream::limits::MAX_GENERATION_AHEAD {
        let by = lasting(ahead);
        findings.good(
            "generations",
            format!(
                "{by} ahead of the clock, which was ahead once; they rise by one until it is there"
            ),
        );
    }
}

/// The newest of the files of a data folder and of the messages in its store.
fn newest(data: &Path) -> Option<LatestWrite> {
    let files = fs::read_dir(data).ok()?.flatten().filter_map(|entry| {
        let what = entry.file_name().to_string_lossy().into_owned();
        Some(LatestWrite { what, at: entry.metadata().ok()?.modified().ok()? })
    });
    let newest = sealane_stream::newest_ms(data).ok().flatten();
    let message = newest.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)));
    let message = message.map(|at| LatestWrite { what: "the newest message".to_owned(), at });
    files.chain(message).max_by_key(|written| written.at)
}

/// Compares the hub's clock with that of this machine.
pub(super) async fn of_the_hub(client: &Client, findings: &mut DoctorFindings) {
    let asked = SystemTime::now();
    // A proxy may have taken the time out of the answer: then there is nothing to compare.
    let Ok(Some(hub)) = client.clock().await else { return };
    let Some(apart) = apart(hub, asked, SystemTime::now()) else {
        return findings.good("hub's clock", "as that of this machine");
    };
    let (by, side) = match apart {
        ClockDifference::Ahead(by) => (by, "ahead of"),
        ClockDifference::Behind(by) => (by, "behind"),
    };
    findings.warning(
        "hub's clock",
        format!(
            "{} {side} that of this machine: `--from -10m` begins elsewhere, `sub` shows the \
             hub's times, and tokens and certificates expire by one clock and not by the other; \
             set both, by NTP for example",
            lasting(by)
        ),
    );
}

/// How a hub's clock differs from this machine's.
#[derive(Debug, PartialEq, Eq)]
enum ClockDifference {
    Ahead(Duration),
    Behind(Duration),
}

/// How far a hub's clock is from this machine's at least, if that is too far. It was asked and has
/// answered between two moments.
fn apart(hub: SystemTime, asked: SystemTime, answered: SystemTime) -> Option<ClockDifference> {
    let too_far = |by: &Duration| *by > Duration::from_millis(MAX_CLOCKS_APART_MS);
    let ahead = hub.duration_since(answered).ok().filter(too_far);
    let latest = hub.checked_add(Duration::from_millis(MAX_HUB_TIME_AGE_MS))?;
    let behind = asked.duration_since(latest).ok().filter(too_far);
    ahead.map(ClockDifference::Ahead).or(behind.map(ClockDifference::Behind))
}

fn shown(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Whole seconds, as people write them.
fn lasting(time: Duration) -> String {
    show_span(Duration::from_secs(time.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::DoctorVerdict;

    fn after(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn clocks_that_tell_the_same_within_an_answer_are_not_apart() {
        let (asked, answered) = (after(1000), after(1010));
        for hub in [993, 998, 1000, 1010, 1015] {
            assert_eq!(apart(after(hub), asked, answered), None, "{hub}");
        }
        let day = Duration::from_secs(86_400);
        assert_eq!(apart(after(1010) + day, asked, answered), Some(ClockDifference::Ahead(day)));
        let six = Duration::from_secs(6);
        assert_eq!(apart(after(992), asked, answered), Some(ClockDifference::Behind(six)));
        assert_eq!(apart(after(1016), asked, answered), Some(ClockDifference::Ahead(six)));
    }

    #[tokio::test]
    async fn generations_that_run_ahead_are_told_and_are_no_fault() {
        use sealane_stream::{HubClock, HubConfig, Level, Retention, StreamHub};
        let found = |folder: &Path| {
            let mut findings = DoctorFindings::default();
            generations(folder, SystemTime::now(), &mut findings);
            findings.0.iter().map(|found| (found.verdict.name(), found.said.clone())).next()
        };
        for (years, is_told) in [(0, false), (27, true)] {
            let folder = tempfile::tempdir().unwrap();
            let (clock, level) = (HubClock::system(), Level::Disk);
            clock.step(years * 365 * 86_400_000);
            let (path, retention) = (folder.path().to_owned(), Retention::default());
            let config = HubConfig { folder: path, level, retention };
            let hub = StreamHub::open_by(config, clock).unwrap();
            hub.configure(&"a".parse().unwrap(), Default::default()).await.unwrap();
            let told = found(folder.path());
            let is_right = |(verdict, said): &(&str, String)| {
                *verdict == "ok" && said.contains("ahead of the clock")
            };
            assert_eq!(told.as_ref().is_some_and(is_right), is_told, "{told:?}");
        }
    }

    #[test]
    fn a_file_of_a_time_to_come_is_bad() {
        let folder = tempfile::tempdir().unwrap();
        let mut empty = DoctorFindings::default();
        of_this_machine(folder.path(), &mut empty);
        assert!(empty.0.is_empty());
        let file = fs::File::create(folder.path().join("lock")).unwrap();
        for (ahead, verdict) in [(0, "ok"), (50, "ok"), (7200, "bad")] {
            file.set_modified(SystemTime::now() + Duration::from_secs(ahead)).unwrap();
            let mut findings = DoctorFindings::default();
            of_this_machine(folder.path(), &mut findings);
            let [found] = findings.0.as_slice() else { panic!("{} findings", findings.0.len()) };
            assert_eq!((found.what, found.verdict.name()), ("clock", verdict), "{}", found.said);
            let is_named = found.said.contains("lock is 1h 59m");
            assert_eq!(is_named, found.verdict == DoctorVerdict::Bad, "{}", found.said);
        }
    }
}
