//! Why a capture cannot be read to its end.

use std::io;

/// A fault of a capture, with its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The capture ends within something.
    #[error("byte {offset}: the capture ends within {within}")]
    Ends {
        /// Where the capture ends.
        offset: u64,
        /// The structure that it ends within.
        within: &'static str,
    },
    /// The capture says what cannot be.
    #[error("byte {offset}: {what}")]
    Damaged {
        /// Where.
        offset: u64,
        /// The fault.
        what: &'static str,
    },
    /// Hexadecimal text that is none.
    #[error("line {line}: {what}")]
    Hex {
        /// The line, from 1.
        line: u64,
        /// The fault.
        what: &'static str,
    },
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}
