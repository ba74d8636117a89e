//! A frame in parts with two bytes before each, for compact links that carry little at once.

use crate::limits::{
    MAX_PARTIAL_AGE_MS, MAX_PARTIAL_FRAMES, MAX_SHORT_PARTIALS, MAX_SHORT_PARTS,
    MAX_SHORT_UNIT_BYTES,
};
use crate::{FrameError, Losses, PeerTag, ReassemblyProgress};

/// The bytes before each short part: `spec/frame.md`, section *Short fragments*.
pub const SHORT_FRAGMENT_HEADER_BYTES: usize = 2;

/// One part of a frame, for links below 64 bytes.
///
/// Its header tells neither the length of the frame nor that of its parts: all but the last have
/// the length of the first that comes, and the last one says how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortFragment<'a> {
    /// Tells the frames of one sender apart, in 7 bits; it counts up and wraps.
    pub id: u8,
    index: u8,
    is_last: bool,
    part: &'a [u8],
}

impl<'a> ShortFragment<'a> {
    /// Splits a frame, in either form, into fragments of at most `unit_bytes` each, their headers
    /// included.
    ///
    /// # Errors
    ///
    /// [`FrameError::Unsplittable`] for a frame that fits whole or would need more than
    /// [`MAX_SHORT_PARTS`] parts, and for a link that carries more than [`MAX_SHORT_UNIT_BYTES`].
    pub fn split(
        frame: &'a [u8],
        id: u8,
        unit_bytes: usize,
    ) -> Result<impl ExactSizeIterator<Item = ShortFragment<'a>> + Clone, FrameError> {
        let stride = unit_bytes.saturating_sub(SHORT_FRAGMENT_HEADER_BYTES);
        let fits = frame.len() <= unit_bytes;
        let count = frame.len().div_ceil(stride.max(1));
        if stride == 0 || fits || unit_bytes > MAX_SHORT_UNIT_BYTES || count > MAX_SHORT_PARTS {
            return Err(FrameError::Unsplittable);
        }
        let parts = frame.chunks(stride).enumerate();
        Ok(parts.map(move |(index, part)| Self {
            id: id & ID_MASK,
            index: index as u8,
            is_last: index + 1 == count,
            part,
        }))
    }

    /// Reads a fragment.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooShort`] for less than a header and one byte, [`FrameError::UnknownVersion`]
    /// for another unit, and [`FrameError::BadFragment`] for one that is longer than a short link
    /// carries, or the last and only one.
    pub fn parse(unit: &'a [u8]) -> Result<Self, FrameError> {
        let [first, second, part @ ..] = unit else { return Err(FrameError::TooShort) };
        if first & !(ID_MASK >> 1) != MARK {
            return Err(FrameError::UnknownVersion);
        }
        let fragment = Self {
            id: (first << 1 | second >> 7) & ID_MASK,
            index: second & INDEX_MASK,
            is_last: second & LAST != 0,
            part,
        };
        match part {
            [] => Err(FrameError::TooShort),
            _ if unit.len() > MAX_SHORT_UNIT_BYTES => Err(FrameError::BadFragment),
            _ if fragment.is_last && fragment.index == 0 => Err(FrameError::BadFragment),
            _ => Ok(fragment),
        }
    }

    /// The header of this fragment. [`ShortFragment::part`] follows it.
    pub fn header(&self) -> [u8; SHORT_FRAGMENT_HEADER_BYTES] {
        let last = if self.is_last { LAST } else { 0 };
        [MARK | self.id >> 1, self.id << 7 | last | self.index]
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
}

/// Puts frames together from short fragments, in whatever order they come.
///
/// It holds at most [`MAX_SHORT_PARTIALS`] frames of at most 4 KiB, and
/// [`MAX_PARTIAL_FRAMES`] of each peer. On a medium whose frames do not name their senders, all
/// of them are one peer.
#[derive(Debug, Default)]
pub struct ShortReassembly {
    /// Incomplete frames, the oldest first.
    partials: Vec<ShortPartial>,
    whole: Vec<u8>,
    losses: Losses,
}

/// A frame of which parts are missing.
#[derive(Debug)]
struct ShortPartial {
    peer: PeerTag,
    id: u8,
    begun_ms: u64,
    /// The length of all parts but the last.
    stride: Option<usize>,
    last: Option<ShortLastPart>,
    /// One bit for each part: whether it has come.
    came: u64,
    /// The parts, each at the place where it would be if all had the greatest length.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct ShortLastPart {
    index: usize,
    bytes: usize,
}

impl ShortReassembly {
    /// Without any frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a fragment that came from a peer.
    ///
    /// # Errors
    ///
    /// [`FrameError::FragmentConflict`] when its part had come with other bytes, and
    /// [`FrameError::MixedFragments`] when it does not fit the others of its id. What was gathered
    /// stays as it was.
    pub fn push(
        &mut self,
        peer: PeerTag,
        now_ms: u64,
        fragment: &ShortFragment<'_>,
    ) -> Result<ReassemblyProgress<'_>, FrameError> {
        self.expire(now_ms);
        let is_own = |one: &ShortPartial| (one.peer, one.id) == (peer, fragment.id);
        let at = match self.partials.iter().position(is_own) {
            Some(at) => at,
            None => self.begin(peer, now_ms, fragment.id),
        };
        let partial = self.partials.get_mut(at).ok_or(FrameError::BadFragment)?;
        if !partial.add(fragment)? {
            return Ok(ReassemblyProgress::Repeated);
        }
        if !partial.is_whole() {
            return Ok(ReassemblyProgress::Waiting);
        }
        partial.join(&mut self.whole);
        self.partials.remove(at);
        Ok(ReassemblyProgress::Whole(&mut self.whole))
    }

    /// The counts of frames that were given up so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// How many frames are incomplete.
    pub fn held(&self) -> usize {
        self.partials.len()
    }

    fn expire(&mut self, now_ms: u64) {
        let before = self.partials.len();
        let is_young =
            |one: &ShortPartial| now_ms.saturating_sub(one.begun_ms) < MAX_PARTIAL_AGE_MS;
        self.partials.retain(is_young);
        self.losses.expired += (before - self.partials.len()) as u64;
    }

    /// Begins a frame, and gives up those that are in its way: ids come again soon, so that what
    /// is far behind it never comes whole.
    fn begin(&mut self, peer: PeerTag, now_ms: u64, id: u8) -> usize {
        let before = self.partials.len();
        let is_behind = |one: &ShortPartial| {
            let behind = id.wrapping_sub(one.id) & ID_MASK;
            one.peer == peer && (STALE_IDS..HALF_OF_IDS).contains(&behind)
        };
        self.partials.retain(|one| !is_behind(one));
        let own = self.partials.iter().filter(|one| one.peer == peer).count();
        let oldest = match () {
            () if own >= MAX_PARTIAL_FRAMES => self.partials.iter().position(|o| o.peer == peer),
            () if self.partials.len() >= MAX_SHORT_PARTIALS => Some(0),
            () => None,
        };
        if let Some(oldest) = oldest {
            self.partials.remove(oldest);
        }
        self.losses.crowded_out += (before - self.partials.len()) as u64;
        let (stride, last, bytes) = (None, None, Vec::new());
        self.partials.push(ShortPartial {
            peer,
            id,
            begun_ms: now_ms,
            stride,
            last,
            came: 0,
            bytes,
        });
        self.partials.len() - 1
    }
}

impl ShortPartial {
    /// Puts a part into its place; false when it had come before.
    fn add(&mut self, fragment: &ShortFragment<'_>) -> Result<bool, FrameError> {
        let (index, bytes) = (usize::from(fragment.index), fragment.part.len());
        let at = index * PLACE_BYTES;
        let bit = 1_u64 << index;
        if self.came & bit != 0 {
            let is_last = self.last.is_some_and(|last| last.index == index);
            let known_bytes = match self.last {
                Some(last) if is_last => last.bytes,
                _ => self.stride.unwrap_or(0),
            };
            let is_same = is_last == fragment.is_last
                && known_bytes == bytes
                && self.bytes.get(at..at + bytes) == Some(fragment.part);
            return if is_same { Ok(false) } else { Err(FrameError::FragmentConflict) };
        }
        let last = if fragment.is_last { Some(ShortLastPart { index, bytes }) } else { self.last };
        let stride = if fragment.is_last { self.stride } else { self.stride.or(Some(bytes)) };
        let fits = match (fragment.is_last, self.last) {
            (true, Some(_)) => false,
            // Nothing has come from behind it.
            (true, None) => self.came < bit,
            (false, known) => stride == Some(bytes) && known.is_none_or(|last| index < last.index),
        };
        let is_stride = stride.zip(last).is_none_or(|(stride, last)| last.bytes <= stride);
        if !fits || !is_stride {
            return Err(FrameError::MixedFragments);
        }
        (self.last, self.stride) = (last, stride);
        if self.bytes.len() < at + bytes {
            self.bytes.resize(at + bytes, 0);
        }
        let place = self.bytes.get_mut(at..at + bytes).ok_or(FrameError::BadFragment)?;
        place.copy_from_slice(fragment.part);
        self.came |= bit;
        Ok(true)
    }

    fn is_whole(&self) -> bool {
        self.last.is_some_and(|last| self.came.count_ones() as usize == last.index + 1)
    }

    fn join(&self, whole: &mut Vec<u8>) {
        whole.clear();
        let (Some(last), Some(stride)) = (self.last, self.stride) else { return };
        for index in 0..=last.index {
            let bytes = if index == last.index { last.bytes } else { stride };
            let at = index * PLACE_BYTES;
            whole.extend_from_slice(self.bytes.get(at..at + bytes).unwrap_or_default());
        }
    }
}

/// The first two bits of a short fragment.
const MARK: u8 = 0x40;
const ID_MASK: u8 = 0x7f;
const LAST: u8 = 0x40;
const INDEX_MASK: u8 = 0x3f;
/// An incomplete frame so many ids behind the newest is given up.
const STALE_IDS: u8 = 16;
/// Ids further behind are ahead: they came out of order.
const HALF_OF_IDS: u8 = 64;
const PLACE_BYTES: usize = MAX_SHORT_UNIT_BYTES - SHORT_FRAGMENT_HEADER_BYTES;
const _: () = assert!(MAX_SHORT_PARTS == INDEX_MASK as usize + 1);

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerTag = PeerTag::from_bytes([9; 8]);

    fn frame(bytes: usize, seed: u8) -> Vec<u8> {
        (0..bytes).map(|at| (at as u8).wrapping_mul(37).wrapping_add(seed)).collect()
    }

    fn units(frame: &[u8], id: u8, unit_bytes: usize) -> Vec<Vec<u8>> {
        let split = ShortFragment::split(frame, id, unit_bytes).unwrap();
        let write = |part: ShortFragment<'_>| [&part.header()[..], part.part()].concat();
        split.map(write).collect()
    }

    fn push<'a>(
        all: &'a mut ShortReassembly,
        now_ms: u64,
        unit: &[u8],
    ) -> Result<ReassemblyProgress<'a>, FrameError> {
        all.push(PEER, now_ms, &ShortFragment::parse(unit).unwrap())
    }

    #[test]
    fn every_split_comes_together_in_order_and_backwards() {
        for unit_bytes in 3..=MAX_SHORT_UNIT_BYTES {
            for bytes in unit_bytes + 1..=(64 * (unit_bytes - 2)).min(400) {
                let sent = frame(bytes, unit_bytes as u8);
                let units = units(&sent, 77, unit_bytes);
                assert!(units.iter().all(|unit| unit.len() <= unit_bytes));
                let mut backwards = units.clone();
                backwards.reverse();
                for order in [units, backwards] {
                    let mut all = ShortReassembly::new();
                    let (end, before) = order.split_last().unwrap();
                    for unit in before {
                        assert_eq!(push(&mut all, 0, unit), Ok(ReassemblyProgress::Waiting));
                        assert_eq!(push(&mut all, 0, unit), Ok(ReassemblyProgress::Repeated));
                    }
                    assert_eq!(
                        push(&mut all, 0, end),
                        Ok(ReassemblyProgress::Whole(&mut sent.clone()))
                    );
                    assert_eq!(all.held(), 0);
                }
            }
        }
    }

    #[test]
    fn what_no_short_link_splits_is_refused() {
        let bytes = frame(5000, 1);
        for (frame_bytes, unit_bytes) in [(20, 20), (100, 2), (100, 64), (64 * 18 + 1, 20)] {
            let split = ShortFragment::split(&bytes[..frame_bytes], 0, unit_bytes).map(|_| ());
            assert_eq!(split, Err(FrameError::Unsplittable), "{frame_bytes} {unit_bytes}");
        }
        assert_eq!(units(&bytes[..64 * 18], 0, 20).len(), 64);
        assert_eq!(ShortFragment::parse(&[0x40]), Err(FrameError::TooShort));
        assert_eq!(ShortFragment::parse(&[0x40, 0]), Err(FrameError::TooShort));
        assert_eq!(ShortFragment::parse(&[0x80, 0, 7]), Err(FrameError::UnknownVersion));
        assert_eq!(ShortFragment::parse(&[0x40, LAST, 7]), Err(FrameError::BadFragment));
        let long = [&[0x40, 0][..], &[7; 62]].concat();
        assert_eq!(ShortFragment::parse(&long), Err(FrameError::BadFragment));
    }

    #[test]
    fn parts_that_do_not_fit_change_nothing() {
        let (sent, other) = (frame(60, 1), frame(60, 2));
        let units = units(&sent, 5, 20);
        let others = self::units(&other, 5, 20);
        let narrow = self::units(&other, 5, 12);
        let mut all = ShortReassembly::new();
        push(&mut all, 0, &units[1]).unwrap();
        push(&mut all, 0, &units[3]).unwrap();
        for (unit, error) in [
            (&others[1], FrameError::FragmentConflict),
            (&others[3], FrameError::FragmentConflict),
            (&narrow[0], FrameError::MixedFragments),
            (&narrow[5], FrameError::MixedFragments),
            (&vec![0x42, 0x80 | 4, 1], FrameError::MixedFragments),
            (&vec![0x42, 0x80 | LAST | 2, 1], FrameError::MixedFragments),
        ] {
            assert_eq!(push(&mut all, 0, unit), Err(error), "{unit:?}");
        }
        push(&mut all, 0, &units[0]).unwrap();
        assert_eq!(push(&mut all, 0, &units[2]), Ok(ReassemblyProgress::Whole(&mut sent.clone())));
        // A last part that is longer than the others are.
        push(&mut all, 0, &narrow[0]).unwrap();
        let long = vec![0x42, 0x80 | LAST | 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(push(&mut all, 0, &long), Err(FrameError::MixedFragments));
    }

    #[test]
    fn what_stays_incomplete_never_mixes_with_the_same_id_again() {
        let (old, new) = (frame(60, 1), frame(60, 2));
        let mut all = ShortReassembly::new();
        push(&mut all, 0, &units(&old, 3, 20)[0]).unwrap();
        for id in 4..131_u8 {
            for unit in units(&frame(30, id), id & ID_MASK, 20) {
                push(&mut all, 1, &unit).unwrap();
            }
        }
        assert_eq!((all.held(), all.losses().crowded_out), (0, 1));
        let units = units(&new, 3, 20);
        for unit in &units[..3] {
            assert_eq!(push(&mut all, 2, unit), Ok(ReassemblyProgress::Waiting));
        }
        assert_eq!(push(&mut all, 2, &units[3]), Ok(ReassemblyProgress::Whole(&mut new.clone())));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let first = |id: u8| units(&frame(60, 1), id, 20).swap_remove(0);
        let mut all = ShortReassembly::new();
        for id in 0..100 {
            push(&mut all, 0, &first(id)).unwrap();
            assert!(all.held() <= MAX_PARTIAL_FRAMES);
        }
        for peer in 0..=u8::MAX {
            let tag = PeerTag::from_bytes([5, peer, 0, 0, 0, 0, 0, 0]);
            let unit = first(1);
            all.push(tag, 0, &ShortFragment::parse(&unit).unwrap()).unwrap();
            assert!(all.held() <= MAX_SHORT_PARTIALS);
        }
        push(&mut all, MAX_PARTIAL_AGE_MS, &first(9)).unwrap();
        assert_eq!(all.held(), 1);
    }
}
