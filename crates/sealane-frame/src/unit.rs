//! The units that a link carries at once: a frame, a part of one, or several.

use crate::limits::MAX_BATCHED_BYTES;
use crate::{Fragment, FrameError, fragment};

/// A unit of a link, told by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnit<'a> {
    /// A frame, in the form of the link.
    Frame(&'a [u8]),
    /// A part of a frame.
    Fragment(Fragment<'a>),
    /// Several frames or fragments.
    Batch(FrameBatch<'a>),
}

impl<'a> FrameUnit<'a> {
    /// Tells what `bytes` are.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooShort`] for nothing at all; what [`Fragment::parse`] and
    /// [`FrameBatch::parse`] refuse. A frame is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match bytes.first() {
            None => Err(FrameError::TooShort),
            Some(&fragment::MARK) => Fragment::parse(bytes).map(FrameUnit::Fragment),
            Some(&MARK) => FrameBatch::parse(bytes).map(FrameUnit::Batch),
            Some(_) => Ok(FrameUnit::Frame(bytes)),
        }
    }
}

/// Several frames or fragments in one unit, each behind its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBatch<'a> {
    rest: &'a [u8],
}

impl<'a> FrameBatch<'a> {
    /// Reads a batch and checks that its lengths fill it exactly.
    ///
    /// # Errors
    ///
    /// [`FrameError::BadBatch`] for an empty batch, a length that is zero, not in its shortest form
    /// or beyond the end, and for a batch within a batch.
    pub fn parse(unit: &'a [u8]) -> Result<Self, FrameError> {
        let batch = match unit.split_first() {
            Some((&MARK, rest)) if !rest.is_empty() => Self { rest },
            _ => return Err(FrameError::BadBatch),
        };
        let mut rest = batch.rest;
        while !rest.is_empty() {
            let (item, after) = split_item(rest).ok_or(FrameError::BadBatch)?;
            if matches!(item, [] | [MARK, ..]) {
                return Err(FrameError::BadBatch);
            }
            rest = after;
        }
        Ok(batch)
    }

    /// Appends `item`, a frame or fragment, to the batch that `unit` holds; an empty `unit` begins
    /// one.
    ///
    /// # Errors
    ///
    /// [`FrameError::BadBatch`] for an item that is empty, a batch itself, or longer than
    /// [`MAX_BATCHED_BYTES`]. `unit` is left as it was.
    pub fn append(unit: &mut Vec<u8>, item: &[u8]) -> Result<(), FrameError> {
        if item.len() > MAX_BATCHED_BYTES || matches!(item, [] | [MARK, ..]) {
            return Err(FrameError::BadBatch);
        }
        if unit.is_empty() {
            unit.push(MARK);
        }
        match u8::try_from(item.len()) {
            Ok(short @ ..LONG) => unit.push(short),
            _ => {
                let [low, high] = (item.len() as u16).to_le_bytes();
                unit.extend([high | LONG, low]);
            }
        }
        unit.extend_from_slice(item);
        Ok(())
    }

    /// The bytes that an item of `item_bytes` takes in a batch.
    pub const fn cost(item_bytes: usize) -> usize {
        item_bytes + if item_bytes < LONG as usize { 1 } else { 2 }
    }
}

impl<'a> Iterator for FrameBatch<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (item, rest) = split_item(self.rest)?;
        self.rest = rest;
        Some(item)
    }
}

/// Splits off the first item. A length takes one byte below 128, else two, high byte first, with
/// the highest bit set.
fn split_item(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < LONG {
        return rest.split_at_checked(first.into());
    }
    let (&second, rest) = rest.split_first()?;
    let length = usize::from(u16::from_be_bytes([first & !LONG, second]));
    if length < LONG.into() {
        return None;
    }
    rest.split_at_checked(length)
}

/// The first byte of a batch.
pub(crate) const MARK: u8 = 1;
/// The bit of a length that marks its long form.
const LONG: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_read_back() {
        let items: Vec<Vec<u8>> =
            [1, 2, 127, 128, 129, 300, MAX_BATCHED_BYTES].map(|len| vec![7; len]).into();
        let (mut unit, mut cost) = (vec![], 1);
        for item in &items {
            FrameBatch::append(&mut unit, item).unwrap();
            cost += FrameBatch::cost(item.len());
            assert_eq!(unit.len(), cost);
        }
        let Ok(FrameUnit::Batch(batch)) = FrameUnit::parse(&unit) else { panic!() };
        assert!(batch.eq(items.iter().map(Vec::as_slice)));
        for len in 0..unit.len() {
            if let Ok(batch) = FrameBatch::parse(&unit[..len]) {
                assert!(batch.zip(&items).all(|(read, item)| read == item));
            }
        }
    }

    #[test]
    fn odd_batches_are_refused() {
        for unit in [&[1][..], &[1, 0], &[1, 2, 9], &[1, 1, 1], &[1, 0x80, 1, 9], &[2, 1, 9]] {
            assert_eq!(FrameBatch::parse(unit), Err(FrameError::BadBatch), "{unit:?}");
        }
        let mut unit = vec![];
        for item in [&[][..], &[1, 2], &[7; MAX_BATCHED_BYTES + 1]] {
            assert_eq!(FrameBatch::append(&mut unit, item), Err(FrameError::BadBatch));
        }
        assert_eq!(unit, []);
    }

    #[test]
    fn the_first_byte_tells_frames_from_parts() {
        assert_eq!(FrameUnit::parse(&[]), Err(FrameError::TooShort));
        assert_eq!(FrameUnit::parse(&[2]), Ok(FrameUnit::Frame(&[2])));
        assert_eq!(FrameUnit::parse(&[0]), Err(FrameError::TooShort));
        let unit = [0, 1, 0, 0, 0, 3, 0, 0, 9];
        assert!(matches!(FrameUnit::parse(&unit), Ok(FrameUnit::Fragment(_))));
    }
}
