//! The lines that the demo prints while it runs. Each thing that happens has a line, in 100 columns
//! or as many as the terminal has.

use std::fmt::Display;
use std::time::Instant;

use sealane::{Codec, Value};

use super::report::DemoClaim;
use crate::limits::{MAX_DEMO_COLUMNS, MIN_DEMO_COLUMNS};
use crate::terminal::{cut, wrap};
use crate::{CliFailure, Terminal};

/// Bytes that are no text are shown so far.
const HEX_BYTES: usize = 24;
/// Columns of what is claimed, beside what was measured.
const CLAIM: usize = 38;

/// Where the demo tells what happens. It says nothing where output is JSON.
pub(super) struct DemoOutput<'a> {
    terminal: &'a mut Terminal,
    width: usize,
    began: Instant,
    parts: u32,
}

impl<'a> DemoOutput<'a> {
    pub(super) fn new(terminal: &'a mut Terminal) -> Self {
        let columns = terminal.size().map_or(MAX_DEMO_COLUMNS, |size| size.columns);
        let width = columns.clamp(MIN_DEMO_COLUMNS, MAX_DEMO_COLUMNS);
        Self { terminal, width, began: Instant::now(), parts: 0 }
    }

    /// Begins a part.
    pub(super) fn part(&mut self, title: &str) -> Result<(), CliFailure> {
        self.parts += 1;
        let gap = if self.parts == 1 { "" } else { "\n" };
        self.tell(&format!("{gap}{}  {title}", self.parts))
    }

    /// Tells something of the part.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), CliFailure> {
        self.tell(&cut(&format!("   {text}"), self.width))
    }

    /// Tells what happens now, with the time since the beginning.
    pub(super) fn now(&mut self, text: impl Display) -> Result<(), CliFailure> {
        let seconds = self.began.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:>5.1} s  {text}"))
    }

    /// A table of what was claimed and what was measured.
    pub(super) fn claims(&mut self, claims: &[DemoClaim]) -> Result<(), CliFailure> {
        self.tell(&format!("\n{:<CLAIM$}  MEASURED JUST NOW", "CLAIM"))?;
        for DemoClaim { claim, measured } in claims {
            let mut left = wrap(claim, CLAIM);
            let mut right = wrap(measured, self.width - CLAIM - 2);
            let rows = left.len().max(right.len());
            left.resize(rows, String::new());
            right.resize(rows, String::new());
            for (left, right) in left.iter().zip(&right) {
                self.tell(format!("{left:<CLAIM$}  {right}").trim_end())?;
            }
        }
        Ok(())
    }

    /// Tells the lines as they are.
    pub(super) fn tell(&mut self, text: &str) -> Result<(), CliFailure> {
        if self.terminal.json() {
            return Ok(());
        }
        self.terminal.line(text)?;
        self.terminal.flush()
    }
}

/// How bytes look: JSON as it is, all else in hexadecimal digits.
pub(super) fn bytes(codec: Codec, bytes: &[u8]) -> String {
    match codec {
        Codec::Json => String::from_utf8_lossy(bytes).into_owned(),
        _ => hex(bytes),
    }
}

/// The first bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().take(HEX_BYTES).map(|byte| format!("{byte:02x}"));
    let more = if bytes.len() > HEX_BYTES { " …" } else { "" };
    digits.collect::<Vec<_>>().join(" ") + more
}

/// A value as JSON.
pub(super) fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    sealane_codec::encode(Codec::Json, value, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", count(thousands), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 12, 999, 1000, 12_345, 1_234_567].map(count);
        assert_eq!(shown, ["0", "12", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_digits() {
        assert_eq!(bytes(Codec::Json, b"{}"), "{}");
        assert_eq!(bytes(Codec::Cbor, &[0xa0, 1]), "a0 01");
        assert!(hex(&[7; 40]).ends_with("07 …"));
    }
}
