//! Frames in slots of one size, oldest first, in memory that is asked for once.

use crate::FrameError;

/// A queue of frames in slots of one size. It allocates when it is made and never again.
///
/// The stride between slots is an odd number of cache lines. With a power of two the first lines
/// of all slots, the only ones that a relay touches, would fall into the same few sets of the
/// cache and evict each other: measured, that doubles the time of a rewrite.
#[derive(Debug)]
pub struct SlotRing {
    bytes: Vec<u8>,
    /// Where the first slot begins in `bytes`: at a cache line.
    start: usize,
    stride: usize,
    slot_bytes: usize,
    lengths: Vec<usize>,
    head: usize,
    len: usize,
}

impl SlotRing {
    /// A ring of `slots` frames of at most `slot_bytes` bytes each.
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        let (slots, stride) = (slots.max(1), stride(slot_bytes));
        let bytes = vec![0; slots * stride + LINE_BYTES];
        // Where alignment cannot be had, it is slower and still right.
        let start = bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        Self { bytes, start, stride, slot_bytes, lengths: vec![0; slots], head: 0, len: 0 }
    }

    /// How many frames wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many frames fit.
    pub fn capacity(&self) -> usize {
        self.lengths.len()
    }

    /// The bytes between the starts of two slots.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Has `fill` write a frame into the next free slot, for example from a socket; it returns the
    /// frame's length.
    ///
    /// # Errors
    ///
    /// [`FrameError::NoRoom`] when all slots are taken, or when `fill` claims more than the slot.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), FrameError> {
        if self.len == self.capacity() {
            return Err(FrameError::NoRoom);
        }
        let index = (self.head + self.len) % self.capacity();
        let at = self.start + index * self.stride;
        let slot = self.bytes.get_mut(at..at + self.slot_bytes).ok_or(FrameError::NoRoom)?;
        let length = fill(slot);
        if length > self.slot_bytes {
            return Err(FrameError::NoRoom);
        }
        *self.lengths.get_mut(index).ok_or(FrameError::NoRoom)? = length;
        self.len += 1;
        Ok(())
    }

    /// Copies a frame into the next free slot.
    ///
    /// # Errors
    ///
    /// [`FrameError::NoRoom`] when all slots are taken, or the frame is larger than a slot.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), FrameError> {
        if frame.len() > self.slot_bytes {
            return Err(FrameError::NoRoom);
        }
        self.push_with(|slot| {
            if let Some(slot) = slot.get_mut(..frame.len()) {
                slot.copy_from_slice(frame);
            }
            frame.len()
        })
    }

    /// The oldest frame.
    pub fn front_mut(&mut self) -> Option<&mut [u8]> {
        self.frames_mut().next()
    }

    /// Frees the slots of the oldest `count` frames, or of all.
    pub fn release(&mut self, count: usize) {
        let count = count.min(self.len);
        self.head = (self.head + count) % self.capacity();
        self.len -= count;
    }

    /// All frames, oldest first, in place.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let slots = self.runs_mut().into_iter().flatten();
        slots.map(|(slot, length)| slot.get_mut(..*length).unwrap_or_default())
    }

    /// All taken slots with the lengths of their frames, oldest first, in two runs, each of which
    /// lies in one piece.
    pub(crate) fn runs_mut(
        &mut self,
    ) -> [impl Iterator<Item = (&mut [u8], &mut usize)> + use<'_>; 2] {
        let slots = self.bytes.get_mut(self.start..).unwrap_or_default();
        let (wrapped, first) = slots.split_at_mut(self.head * self.stride);
        let (wrapped_lengths, first_lengths) = self.lengths.split_at_mut(self.head);
        let count = self.len.min(first_lengths.len());
        let stride = self.stride;
        [
            run_of(first, first_lengths, stride, count),
            run_of(wrapped, wrapped_lengths, stride, self.len - count),
        ]
    }
}

/// The first `count` of slots that lie in one piece.
#[inline]
fn run_of<'a>(
    slots: &'a mut [u8],
    lengths: &'a mut [usize],
    stride: usize,
    count: usize,
) -> impl Iterator<Item = (&'a mut [u8], &'a mut usize)> {
    let lengths = lengths.get_mut(..count).unwrap_or_default();
    slots.chunks_exact_mut(stride).zip(lengths)
}

/// The smallest odd number of cache lines that holds `slot_bytes`.
fn stride(slot_bytes: usize) -> usize {
    (slot_bytes.div_ceil(LINE_BYTES) | 1) * LINE_BYTES
}

/// The usual size of a cache line. On a machine with another one, slots are merely larger.
const LINE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stride_is_a_power_of_two_above_a_line() {
        for slot_bytes in 0..10_000 {
            let stride = stride(slot_bytes);
            assert!(stride >= slot_bytes && stride <= slot_bytes + 2 * LINE_BYTES);
            assert!(stride == LINE_BYTES || !stride.is_power_of_two());
        }
    }

    #[test]
    fn frames_come_out_in_the_order_in_which_they_came() {
        let mut ring = SlotRing::new(3, 100);
        let (mut written, mut read) = (0_u8, 0_u8);
        for _ in 0..10 {
            while ring.push(&[written; 10]).is_ok() {
                written += 1;
            }
            assert_eq!(ring.len(), 3);
            assert_eq!(ring.front_mut().unwrap(), [read; 10]);
            for (index, frame) in ring.frames_mut().enumerate() {
                assert_eq!(frame, [read + index as u8; 10]);
            }
            ring.release(2);
            read += 2;
        }
        ring.release(9);
        assert!(ring.is_empty() && ring.front_mut().is_none());
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_the_ring_alone() {
        let mut ring = SlotRing::new(1, 100);
        assert_eq!(ring.push(&[0; 101]), Err(FrameError::NoRoom));
        assert_eq!(ring.push_with(|slot| slot.len() + 1), Err(FrameError::NoRoom));
        assert!(ring.is_empty());
        ring.push(&[0; 100]).unwrap();
        assert_eq!(ring.push(&[]), Err(FrameError::NoRoom));
    }

    #[test]
    fn slots_begin_at_cache_lines() {
        let mut ring = SlotRing::new(4, 1500);
        (0..4).for_each(|_| ring.push(&[1; 64]).unwrap());
        assert!(ring.frames_mut().all(|frame| frame.as_ptr().align_offset(LINE_BYTES) == 0));
    }
}
