//! Times and spans as numbers. Clocks are their callers'.

use std::time::Duration;

/// A span in whole milliseconds; the greatest number if it has more.
pub fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
