use std::time::{SystemTime, UNIX_EPOCH};

use sealane_message::time::whole_ms;

/// Milliseconds since 1970-01-01 UTC, by this machine's clock. It is a time of day: it steps, and
/// spans are measured by another one.
pub fn now_ms() -> u64 {
    whole_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
