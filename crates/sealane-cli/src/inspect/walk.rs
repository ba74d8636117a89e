//! Bytes taken apart from the front, one row after the other.

use sealane::Value;

use super::account::{InspectRow, SealCoverage};

/// The explained part of a frame, and the rest.
pub(super) struct FrameWalk<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) rows: Vec<InspectRow>,
}

impl<'a> FrameWalk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, rows: Vec::new() }
    }

    /// Begins behind bytes that are explained elsewhere.
    pub(super) fn behind(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, rows: Vec::new() }
    }

    /// The bytes that are not explained yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Explains the next `len` bytes. If the frame ends before, says so, and gives nothing.
    pub(super) fn take(
        &mut self,
        part: SealCoverage,
        len: usize,
        field: &'static str,
        explain: impl FnOnce(&'a [u8]) -> (Value, String),
    ) -> Option<&'a [u8]> {
        let Some((bytes, _)) = self.rest().split_at_checked(len) else {
            let rest = self.rest();
            if !rest.is_empty() {
                let meaning = format!("cut off: {} of {len} bytes", rest.len());
                self.push(part, rest, field, Value::Null, meaning);
            }
            return None;
        };
        let (value, meaning) = explain(bytes);
        self.push(part, bytes, field, value, meaning);
        Some(bytes)
    }

    /// Explains the next number of `N` bytes, lowest first.
    pub(super) fn number<const N: usize>(
        &mut self,
        part: SealCoverage,
        field: &'static str,
        explain: impl FnOnce(u64) -> (Value, String),
    ) -> Option<u64> {
        let bytes = self.take(part, N, field, |bytes| explain(little_endian(bytes)))?;
        Some(little_endian(bytes))
    }

    /// Says something about the byte before, or about what stands in no byte of its own.
    pub(super) fn note(
        &mut self,
        part: SealCoverage,
        at: Option<usize>,
        field: &'static str,
        value: Value,
        meaning: String,
    ) {
        self.rows.push(InspectRow { part, at, bytes: Vec::new(), field, value, meaning });
    }

    /// Explains the same bytes once more, in other words.
    pub(super) fn again(
        &mut self,
        part: SealCoverage,
        len: usize,
        field: &'static str,
        value: Value,
        meaning: String,
    ) {
        let at = self.at.saturating_sub(len);
        let bytes = self.bytes.get(at..self.at).unwrap_or_default().to_vec();
        self.rows.push(InspectRow { part, at: Some(at), bytes, field, value, meaning });
    }

    /// All that is left, in one row, if anything is.
    pub(super) fn remainder(&mut self, part: SealCoverage, field: &'static str, meaning: String) {
        let rest = self.rest();
        if !rest.is_empty() {
            self.push(part, rest, field, Value::Null, meaning);
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn push(
        &mut self,
        part: SealCoverage,
        bytes: &[u8],
        field: &'static str,
        value: Value,
        meaning: String,
    ) {
        let row =
            InspectRow { part, at: Some(self.at), bytes: bytes.to_vec(), field, value, meaning };
        self.rows.push(row);
        self.at += bytes.len();
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// `n` of something, in the right number.
pub(super) fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}
