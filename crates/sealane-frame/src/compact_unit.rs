//! The units that a compact link carries at once.

use crate::header::HEADER_BYTES;
use crate::unit;
use crate::{
    DictionaryEntry, ENTRY_BYTES, Fragment, FrameBatch, FrameError, PeerTag, RELAY_BYTES,
    ShortFragment, fragment, hop_bytes,
};

/// A unit of a compact link, told by its first byte: `spec/frame.md`, section *Units of compact
/// links*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactUnit<'a> {
    /// A frame in the compact form.
    Frame(&'a [u8]),
    /// A frame in the full form.
    Long(LongFrame<'a>),
    /// A part of a frame.
    Fragment(Fragment<'a>),
    /// A part of a frame, on a link below 64 bytes.
    Short(ShortFragment<'a>),
    /// Several frames or fragments.
    Batch(FrameBatch<'a>),
    /// The definition of a dictionary byte.
    Definition(Definition),
    /// Somebody asks what that dictionary byte stands for.
    Ask(u8),
}

/// A dictionary byte and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// The byte.
    pub byte: u8,
    /// The entry that it stands for.
    pub entry: DictionaryEntry,
}

/// A frame of the full form without its hops, which the link knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongFrame<'a> {
    hop_limit: u8,
    /// From byte 17 of the full form on.
    rest: &'a [u8],
}

impl<'a> CompactUnit<'a> {
    /// Tells what `bytes` are.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooShort`], [`FrameError::UnknownVersion`] for a unit of a later version, and
    /// what the parsers of fragments, batches and entries refuse. Frames are not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match bytes {
            [] => Err(FrameError::TooShort),
            [0x80..=0xff, ..] => Ok(Self::Frame(bytes)),
            [0x40..=0x7f, ..] => ShortFragment::parse(bytes).map(Self::Short),
            [fragment::MARK, ..] => Fragment::parse(bytes).map(Self::Fragment),
            [unit::MARK, ..] => FrameBatch::parse(bytes).map(Self::Batch),
            [LONG, rest @ ..] => LongFrame::parse(rest).map(Self::Long),
            [DEFINITION, rest @ ..] => Definition::parse(rest).map(Self::Definition),
            [ASK, byte] => Ok(Self::Ask(*byte)),
            [ASK] => Err(FrameError::TooShort),
            [ASK, ..] => Err(FrameError::LengthMismatch),
            _ => Err(FrameError::UnknownVersion),
        }
    }

    /// The unit that asks what a dictionary byte stands for.
    pub const fn ask(byte: u8) -> [u8; 2] {
        [ASK, byte]
    }
}

impl Definition {
    /// The bytes of the unit.
    pub const BYTES: usize = 2 + ENTRY_BYTES;

    fn parse(rest: &[u8]) -> Result<Self, FrameError> {
        let (byte, entry) = rest.split_first().ok_or(FrameError::TooShort)?;
        if entry.len() < ENTRY_BYTES {
            return Err(FrameError::TooShort);
        }
        let entry = entry.try_into().map_err(|_| FrameError::LengthMismatch)?;
        Ok(Self { byte: *byte, entry: DictionaryEntry::from_bytes(entry)? })
    }

    /// The unit.
    pub fn to_bytes(&self) -> [u8; Definition::BYTES] {
        let mut unit = [0; Self::BYTES];
        let bytes = [DEFINITION, self.byte].into_iter().chain(self.entry.to_bytes());
        unit.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        unit
    }
}

impl<'a> LongFrame<'a> {
    /// Takes a frame of the full form.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooShort`] if it ends within its header.
    pub fn of(frame: &'a [u8]) -> Result<Self, FrameError> {
        match frame.split_at_checked(RELAY_BYTES) {
            Some(([.., hop_limit], rest)) if frame.len() >= HEADER_BYTES => {
                Ok(Self { hop_limit: *hop_limit, rest })
            }
            _ => Err(FrameError::TooShort),
        }
    }

    fn parse(rest: &'a [u8]) -> Result<Self, FrameError> {
        match rest.split_first() {
            Some((&hop_limit, rest)) if rest.len() >= HEADER_BYTES - RELAY_BYTES => {
                Ok(Self { hop_limit, rest })
            }
            _ => Err(FrameError::TooShort),
        }
    }

    /// Appends the unit to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend([LONG, self.hop_limit]);
        out.extend_from_slice(self.rest);
    }

    /// Appends the frame in the full form to `out`, with the hops of the link.
    pub fn expand(&self, next_hop: PeerTag, previous_hop: PeerTag, out: &mut Vec<u8>) {
        out.extend(hop_bytes(next_hop, previous_hop, self.hop_limit));
        out.extend_from_slice(self.rest);
    }
}

/// The first bytes of units that only compact links have.
const LONG: u8 = 2;
const DEFINITION: u8 = 3;
const ASK: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupTag, HeaderFields};

    #[test]
    fn every_unit_is_told_by_its_first_byte() {
        let fields = HeaderFields::new(GroupTag::from_bytes([7; 4]), PeerTag::NOBODY, 1);
        let definition = Definition { byte: 9, entry: DictionaryEntry::of(&fields) };
        let bytes = definition.to_bytes();
        assert_eq!(CompactUnit::parse(&bytes), Ok(CompactUnit::Definition(definition)));
        assert_eq!(CompactUnit::parse(&CompactUnit::ask(9)), Ok(CompactUnit::Ask(9)));
        assert_eq!(CompactUnit::parse(&[0x80]), Ok(CompactUnit::Frame(&[0x80])));
        assert!(matches!(CompactUnit::parse(&[0x40, 0, 1]), Ok(CompactUnit::Short(_))));
        assert!(matches!(CompactUnit::parse(&[1, 1, 9]), Ok(CompactUnit::Batch(_))));
        let part = [0, 1, 0, 0, 0, 3, 0, 0, 9];
        assert!(matches!(CompactUnit::parse(&part), Ok(CompactUnit::Fragment(_))));
        let mut odd = bytes;
        odd[15] = 0x40;
        for (unit, error) in [
            (&[][..], FrameError::TooShort),
            (&[5, 1], FrameError::UnknownVersion),
            (&[0x3f, 1, 1], FrameError::UnknownVersion),
            (&[4], FrameError::TooShort),
            (&[4, 1, 1], FrameError::LengthMismatch),
            (&bytes[..15], FrameError::TooShort),
            (&[&bytes[..], &[0]].concat(), FrameError::LengthMismatch),
            (&odd, FrameError::ReservedBits),
            (&[2; 48], FrameError::TooShort),
        ] {
            assert_eq!(CompactUnit::parse(unit), Err(error), "{unit:?}");
        }
    }

    #[test]
    fn a_long_frame_has_all_but_its_hops() {
        let frame: Vec<u8> = (0..90).collect();
        let mut unit = vec![];
        LongFrame::of(&frame).unwrap().write(&mut unit);
        assert_eq!(unit.len(), frame.len() - 15);
        let Ok(CompactUnit::Long(long)) = CompactUnit::parse(&unit) else { panic!() };
        let mut full = vec![];
        let hops = [8, 16].map(|end| PeerTag::from_bytes(frame[end - 8..end].try_into().unwrap()));
        long.expand(hops[0], hops[1], &mut full);
        assert_eq!(full, frame);
        assert_eq!(LongFrame::of(&frame[..63]), Err(FrameError::TooShort));
    }
}
