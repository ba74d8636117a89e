//! A frame in parts, for links that carry less than a frame at once.

use crate::FrameError;
use crate::limits::{MAX_FRAGMENTS, MAX_FRAME_BYTES};

/// The bytes before each part: `spec/frame.md`, section *Fragments*.
pub const FRAGMENT_HEADER_BYTES: usize = 8;

/// One part of a frame.
///
/// Parts are not authenticated: the frame that they make is. All but the last have one length, the
/// *stride*, so that the place of each follows from its own header and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Tells the frames of one sender apart; it counts up and wraps.
    pub id: u16,
    index: u16,
    is_last: bool,
    frame_bytes: u32,
    part: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Splits a frame, in either form, into fragments of at most `unit_bytes` each, their headers
    /// included.
    ///
    /// # Errors
    ///
    /// [`FrameError::Unsplittable`] for a frame that fits whole, is longer than a frame may be,
    /// or would need more than [`MAX_FRAGMENTS`](crate::limits::MAX_FRAGMENTS) parts.
    pub fn split(
        frame: &'a [u8],
        id: u16,
        unit_bytes: usize,
    ) -> Result<impl ExactSizeIterator<Item = Fragment<'a>> + Clone, FrameError> {
        let stride = unit_bytes.saturating_sub(FRAGMENT_HEADER_BYTES);
        let fits = frame.len() <= unit_bytes;
        if stride == 0 || fits || frame.len() > MAX_FRAME_BYTES {
            return Err(FrameError::Unsplittable);
        }
        let count = frame.len().div_ceil(stride);
        let last = u16::try_from(count - 1).map_err(|_| FrameError::Unsplittable)?;
        if count > MAX_FRAGMENTS {
            return Err(FrameError::Unsplittable);
        }
        let frame_bytes = u32::try_from(frame.len()).map_err(|_| FrameError::Unsplittable)?;
        let parts = frame.chunks(stride).enumerate().map(move |(index, part)| {
            let index = u16::try_from(index).unwrap_or(last);
            Fragment { id, index, is_last: index == last, frame_bytes, part }
        });
        Ok(parts)
    }

    /// Reads a fragment.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooShort`] for less than a header and one byte, and
    /// [`FrameError::BadFragment`] for a place that no split gives.
    pub fn parse(unit: &'a [u8]) -> Result<Self, FrameError> {
        let Some((header, part)) = unit.split_first_chunk::<FRAGMENT_HEADER_BYTES>() else {
            return Err(FrameError::TooShort);
        };
        let [MARK, id_0, id_1, index_0, index_1, len_0, len_1, len_2] = *header else {
            return Err(FrameError::BadFragment);
        };
        let index_field = u16::from_le_bytes([index_0, index_1]);
        let fragment = Self {
            id: u16::from_le_bytes([id_0, id_1]),
            index: index_field & !LAST,
            is_last: index_field & LAST != 0,
            frame_bytes: u32::from_le_bytes([len_0, len_1, len_2, 0]),
            part,
        };
        fragment.layout().map(|_| fragment)
    }

    /// The header of this fragment. [`Fragment::part`] follows it.
    pub fn header(&self) -> [u8; FRAGMENT_HEADER_BYTES] {
        let [id_0, id_1] = self.id.to_le_bytes();
        let index_field = if self.is_last { self.index | LAST } else { self.index };
        let [index_0, index_1] = index_field.to_le_bytes();
        let [len_0, len_1, len_2, _] = self.frame_bytes.to_le_bytes();
        [MARK, id_0, id_1, index_0, index_1, len_0, len_1, len_2]
    }

    /// Its part of the frame.
    pub fn part(&self) -> &'a [u8] {
        self.part
    }

    /// Appends header and part to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header());
        out.extend_from_slice(self.part);
    }

    /// Where the part belongs, and how the frame is split.
    pub(crate) fn layout(&self) -> Result<FragmentLayout, FrameError> {
        if self.part.is_empty() {
            return Err(FrameError::TooShort);
        }
        let (index, frame_bytes) = (usize::from(self.index), self.frame_bytes as usize);
        let before = frame_bytes.checked_sub(self.part.len()).ok_or(FrameError::BadFragment)?;
        let stride = if self.is_last {
            let divides = index > 0 && before.checked_rem(index) == Some(0);
            divides.then(|| before / index).ok_or(FrameError::BadFragment)?
        } else {
            self.part.len()
        };
        let at = index.checked_mul(stride).ok_or(FrameError::BadFragment)?;
        // A part that is not the last leaves at least one byte for those behind it.
        let fits = if self.is_last { self.part.len() <= stride } else { at < before };
        let count = frame_bytes.div_ceil(stride.max(1));
        if !fits || frame_bytes > MAX_FRAME_BYTES || count > MAX_FRAGMENTS {
            return Err(FrameError::BadFragment);
        }
        Ok(FragmentLayout { frame_bytes, stride, count, index, at })
    }
}

/// How a frame is split, and where one part of it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentLayout {
    pub(crate) frame_bytes: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) index: usize,
    pub(crate) at: usize,
}

/// The first byte of a fragment.
pub(crate) const MARK: u8 = 0;
/// The bit of the index that marks the last part.
const LAST: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fragment_reads_back() {
        let frame: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
        for unit_bytes in 9..1000 {
            let fragments = Fragment::split(&frame, 0xabcd, unit_bytes).unwrap();
            let count = fragments.len();
            let mut at = 0;
            for (index, fragment) in fragments.enumerate() {
                let mut unit = vec![];
                fragment.write(&mut unit);
                assert!(unit.len() <= unit_bytes);
                assert_eq!(Fragment::parse(&unit), Ok(fragment));
                let layout = fragment.layout().unwrap();
                let stride = unit_bytes - FRAGMENT_HEADER_BYTES;
                assert_eq!(layout, FragmentLayout { frame_bytes: 1000, stride, count, index, at });
                at += fragment.part().len();
            }
            assert_eq!(at, frame.len());
        }
    }

    #[test]
    fn what_fits_or_never_fits_is_not_split() {
        let frame = vec![0; MAX_FRAME_BYTES + 1];
        for (bytes, unit_bytes) in [(100, 100), (100, 8), (100, 0), (0, 20), (10_000, 9)] {
            let split = Fragment::split(&frame[..bytes], 0, unit_bytes).map(|_| ());
            assert_eq!(split, Err(FrameError::Unsplittable), "{bytes} {unit_bytes}");
        }
        assert!(Fragment::split(&frame[..MAX_FRAME_BYTES], 0, 1400).is_ok());
        assert!(Fragment::split(&frame, 0, 1400).is_err());
    }
}
