//! Bytes as text, and the time of day.

use std::time::UNIX_EPOCH;

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal text.
pub fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    u64::try_from(UNIX_EPOCH.elapsed().expect("after 1970").as_millis()).expect("it fits")
}
