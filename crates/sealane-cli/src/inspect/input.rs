//! The captured input: one unit, hexadecimal text, or packets.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::account::{CaptureSource, InspectOrigin};
use super::capture::CaptureError;
use super::form::InspectInputKind;
use super::packet;
use super::pcap::PcapCapture;
use crate::limits::{MAX_INSPECT_LINE_BYTES, MAX_INSPECT_RECORD_BYTES};

/// The next item of the input.
#[derive(Debug)]
pub(super) enum InspectItem {
    /// A unit.
    Unit(InspectOrigin, Vec<u8>),
    /// A packet that carries none, and why.
    Skipped(&'static str),
}

/// The input, read as it comes.
pub(super) enum InspectInput {
    Whole(Option<InspectSource>),
    Hex { source: InspectSource, line: u64 },
    Pcap(Box<PcapCapture<InspectSource>>),
}

type InspectSource = BufReader<Box<dyn Read>>;

impl InspectInput {
    /// Opens a file, or standard input for `-`, and tells what it holds unless that is said.
    pub(super) fn open(
        path: &Path,
        holding: Option<InspectInputKind>,
    ) -> Result<(InspectInput, InspectInputKind), CaptureError> {
        let source: Box<dyn Read> = if path == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
        let mut source = BufReader::with_capacity(64 << 10, source);
        let holding = match holding {
            Some(holding) => holding,
            None => tell(source.fill_buf()?),
        };
        let input = match holding {
            InspectInputKind::Full | InspectInputKind::Unit => InspectInput::Whole(Some(source)),
            InspectInputKind::Hex => InspectInput::Hex { source, line: 0 },
            InspectInputKind::Pcap => InspectInput::Pcap(Box::new(PcapCapture::open(source)?)),
        };
        Ok((input, holding))
    }

    /// The next item, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<InspectItem>, CaptureError> {
        match self {
            InspectInput::Whole(source) => {
                let Some(source) = source.take() else { return Ok(None) };
                let bytes = read_bounded(source)?;
                Ok(Some(InspectItem::Unit(origin(CaptureSource::Whole), bytes)))
            }
            InspectInput::Hex { source, line } => next_line(source, line),
            InspectInput::Pcap(capture) => {
                let Some(record) = capture.next()? else { return Ok(None) };
                Ok(Some(match packet::read(&record) {
                    Ok((origin, payload)) => InspectItem::Unit(origin, payload),
                    Err(reason) => InspectItem::Skipped(reason),
                }))
            }
        }
    }
}

pub(super) fn origin(captured: CaptureSource) -> InspectOrigin {
    InspectOrigin { captured, item: None, parts: None, whole_bytes: None }
}

/// Told by the first bytes: packets by their mark, text by its characters.
fn tell(start: &[u8]) -> InspectInputKind {
    if PcapCapture::<InspectSource>::is_begun_by(start) {
        return InspectInputKind::Pcap;
    }
    let is_text = |line: &[u8]| {
        let digits = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        digits.iter().all(|&byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace())
    };
    let is_hex = !start.is_empty() && start.split(|&byte| byte == b'\n').all(is_text);
    if is_hex { InspectInputKind::Hex } else { InspectInputKind::Unit }
}

fn read_bounded(source: InspectSource) -> Result<Vec<u8>, CaptureError> {
    let mut bytes = Vec::new();
    source.take(MAX_INSPECT_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_INSPECT_RECORD_BYTES {
        let what = "longer than any unit, and neither pcap nor hexadecimal text";
        return Err(CaptureError::Damaged { offset: MAX_INSPECT_RECORD_BYTES as u64, what });
    }
    Ok(bytes)
}

fn next_line(
    source: &mut InspectSource,
    line: &mut u64,
) -> Result<Option<InspectItem>, CaptureError> {
    loop {
        *line += 1;
        let fault = |what| CaptureError::Hex { line: *line, what };
        let mut text = Vec::new();
        let read =
            source.by_ref().take(MAX_INSPECT_LINE_BYTES as u64).read_until(b'\n', &mut text)?;
        if read == 0 {
            return Ok(None);
        }
        if read == MAX_INSPECT_LINE_BYTES {
            return Err(fault("longer than any unit"));
        }
        let digits = text.split(|&byte| byte == b'#').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits).map_err(|_| fault("this is not UTF-8"))?;
        let bytes = super::hex::decode(digits).map_err(fault)?;
        if !bytes.is_empty() {
            return Ok(Some(InspectItem::Unit(origin(CaptureSource::Line(*line)), bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_input_holds_is_told_by_its_first_bytes() {
        assert_eq!(tell(b"# a frame\n53 53 ff\n"), InspectInputKind::Hex);
        assert_eq!(tell(b"53\r\n"), InspectInputKind::Hex);
        assert_eq!(tell(&[0x53, 0x53, 1]), InspectInputKind::Unit);
        assert_eq!(tell(&[]), InspectInputKind::Unit);
        assert_eq!(tell(&[0xd4, 0xc3, 0xb2, 0xa1, 2]), InspectInputKind::Pcap);
        assert_eq!(tell(&[0x0a, 0x0d, 0x0d, 0x0a, 9]), InspectInputKind::Pcap);
    }
}
