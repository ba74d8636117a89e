//! Words of the page: how old something is, and what others wrote.

use sealane::Value;

use crate::limits::MAX_CLOCK_AHEAD_MS;

/// How old a document is, to stand beside what it says, and whether it can be believed. Where it
/// says no time itself, it is as old as it is here.
pub(super) fn note(document: &Value, now: u64) -> String {
    let number = |key: &str| document.field(key).and_then(Value::as_u64);
    let age = match (number("timeMs"), number("heardMs")) {
        (Some(said), _) => age(said, now),
        (None, Some(heard)) => format!("came {}", age(heard, now)),
        (None, None) => "from before this machine started".to_owned(),
    };
    let conflict = number("conflicts").map(|frames| {
        format!("<b class=\"bad conflict\">conflict: authentic frames that differ: {frames}</b>")
    });
    format!("<small>{age}</small>{}", conflict.unwrap_or_default())
}

/// How long ago something was, by the clock of who said it. One that is ahead tells nothing: what
/// comes from it would look new for as long.
pub(super) fn age(then: u64, now: u64) -> String {
    let ahead = then.saturating_sub(now);
    match ahead > MAX_CLOCK_AHEAD_MS {
        true => format!("unknown when: a clock is {} ahead", span(ahead)),
        false => format!("{} ago", span(now.saturating_sub(then))),
    }
}

/// So many milliseconds, as people say it.
pub(super) fn span(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::map;

    #[test]
    fn a_clock_that_is_ahead_makes_nothing_look_new() {
        const YEAR_MS: u64 = 365 * 24 * 3_600_000;
        let now = 60 * YEAR_MS;
        assert_eq!(age(now - 5_000, now), "5 s ago");
        assert_eq!(age(now + 30_000, now), "0 s ago");
        assert_eq!(age(now + 300_000, now), "unknown when: a clock is 5 min ahead");
        assert_eq!(age(now + 10 * YEAR_MS, now), "unknown when: a clock is 87600 h ahead");
        assert_eq!(age(now - 10 * YEAR_MS, now), "87600 h ago");
    }

    #[test]
    fn what_says_no_time_is_as_old_as_it_is_here_and_a_conflict_stands_beside_it() {
        let heard = map(vec![("heardMs", 1000_u64.into()), ("conflicts", 2_u64.into())]);
        let note = note(&heard, 61_000);
        assert!(note.contains("came 60 s ago") && note.contains("that differ: 2<"), "{note}");
        assert!(super::note(&map(vec![]), 61_000).contains("before this machine started"));
    }
}
