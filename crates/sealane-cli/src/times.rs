//! Durations, times, places and sizes as people write them.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealane::StartPosition;
pub use sealane_group::now_ms;
use sealane_message::InputError;

/// `5s`, `1h 30m`, `250ms`.
///
/// # Errors
/// A sentence that says what was expected.
pub fn duration(text: &str) -> Result<Duration, InputError> {
    humantime::parse_duration(text).map_err(|_| "a time is like 5s, 250ms or 1h30m".into())
}

/// `first`, `new`, an offset, a time, or `-10m` for ten minutes ago.
///
/// # Errors
/// A sentence that says what was expected.
pub fn start(text: &str) -> Result<StartPosition, InputError> {
    if let Ok(offset) = text.parse() {
        return Ok(StartPosition::Offset(offset));
    }
    match text {
        "first" => return Ok(StartPosition::First),
        "new" => return Ok(StartPosition::New),
        _ => {}
    }
    if let Some(ago) = text.strip_prefix('-') {
        let since = SystemTime::now().checked_sub(duration(ago)?);
        return Ok(StartPosition::Time(since.unwrap_or(UNIX_EPOCH)));
    }
    if let Some(ms) = text.strip_prefix('@').and_then(|ms| ms.parse().ok()) {
        return Ok(StartPosition::Time(UNIX_EPOCH + Duration::from_millis(ms)));
    }
    rfc3339(text)
        .map(StartPosition::Time)
        .ok_or_else(|| "a place is first, new, an offset, a time (RFC 3339, @MS) or -10m".into())
}

/// `12`, or `12-15`: both ends are meant.
///
/// # Errors
/// A sentence that says what was expected.
pub fn offsets(text: &str) -> Result<RangeInclusive<u64>, InputError> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if from <= to => Ok(from..=to),
        _ => Err("offsets are like 12, or 12-15".into()),
    }
}

/// `64MiB`, `10kB`, `1000`.
///
/// # Errors
/// A sentence that says what was expected.
pub fn bytes(text: &str) -> Result<u64, InputError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("a size is like 1000, 10kB or 64MiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a size begins with a number")?;
    number.checked_mul(factor).ok_or_else(|| "the size is beyond 64 bits".into())
}

/// A number of bytes for people.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{scaled:.1} {unit}") }
}

/// A number of things, of which one is named without the `s`.
pub fn count(number: u64, things: &str) -> String {
    match number {
        1 => format!("1 {}", things.strip_suffix('s').unwrap_or(things)),
        _ => format!("{number} {things}"),
    }
}

/// Milliseconds as people say them: the two greatest units, from seconds on.
pub fn show_duration(ms: u64) -> String {
    let seconds = Duration::from_secs(ms / 1000);
    let text = humantime::format_duration(seconds).to_string();
    spaced(&text.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

/// A duration as people say it: `7 days`, `1h 30m`.
pub fn show_span(span: Duration) -> String {
    spaced(&humantime::format_duration(span).to_string())
}

/// Puts a blank between a number and a whole word: `7days` becomes `7 days`.
fn spaced(text: &str) -> String {
    let part = |part: &str| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (number, unit) = part.split_at(digits);
        let blank = if unit.len() > 2 { " " } else { "" };
        format!("{number}{blank}{unit}")
    };
    text.split(' ').map(part).collect::<Vec<_>>().join(" ")
}

/// Unix milliseconds as RFC 3339 in UTC; `-` for 0, which means never.
pub fn show_time(ms: u64) -> String {
    if ms == 0 {
        return "-".into();
    }
    if ms > LAST_MS {
        return format!("@{ms}");
    }
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// The end of the year 9999, behind which RFC 3339 has no times.
const LAST_MS: u64 = 253_402_300_799_999;

/// RFC 3339, with `Z` or an offset of hours and minutes.
fn rfc3339(text: &str) -> Option<SystemTime> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Some(time);
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let time = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let offset_by = Duration::from_secs(minutes * 60);
    match offset.get(..1)? {
        "+" => time.checked_sub(offset_by),
        "-" => time.checked_add(offset_by),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> StartPosition {
        StartPosition::Time(UNIX_EPOCH + Duration::from_millis(ms))
    }

    #[test]
    fn places_are_read_in_every_form() {
        assert_eq!(start("first"), Ok(StartPosition::First));
        assert_eq!(start("17"), Ok(StartPosition::Offset(17)));
        assert_eq!(start("@1500"), Ok(at(1500)));
        assert_eq!(start("1970-01-01T00:00:02Z"), Ok(at(2000)));
        assert_eq!(start("1970-01-01T01:00:02+01:00"), Ok(at(2000)));
        assert_eq!(start("1970-01-01T00:00:02-00:01"), Ok(at(62_000)));
        assert!(matches!(start("-10m"), Ok(StartPosition::Time(_))));
        assert!(start("yesterday").is_err());
        assert!(start("-x").is_err());
    }

    #[test]
    fn offsets_are_one_or_a_range() {
        assert_eq!(offsets("12"), Ok(12..=12));
        assert_eq!(offsets("12-15"), Ok(12..=15));
        for wrong in ["", "-1", "15-12", "1-2-3", "x"] {
            assert!(offsets(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_are_said_as_people_say_them() {
        let of = |seconds| show_span(Duration::from_secs(seconds));
        assert_eq!(of(7 * 86_400), "7 days");
        assert_eq!(of(86_400 + 5400), "1 day 1h 30m");
        assert_eq!(of(90), "1m 30s");
        assert_eq!(show_span(Duration::from_millis(250)), "250ms");
        assert_eq!(show_duration(8 * 86_400_000 + 60_000), "8 days 1m");
    }

    #[test]
    fn one_thing_is_no_things() {
        assert_eq!(count(0, "members"), "0 members");
        assert_eq!(count(1, "members"), "1 member");
        assert_eq!(count(2, "members"), "2 members");
    }

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("7"), Ok(7));
        assert!(bytes("7 parsecs").is_err());
        assert!(bytes("99999999999GiB").is_err());
        assert_eq!(show_bytes(1536), "1.5 KiB");
        assert_eq!(show_time(0), "-");
        assert_eq!(show_time(LAST_MS), "9999-12-31T23:59:59.999Z");
        assert_eq!(show_time(u64::MAX), format!("@{}", u64::MAX));
    }
}
