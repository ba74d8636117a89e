//! Which counters of a sender were accepted.

use crate::limits::WINDOW_BITS;
use crate::{Epoch, Error, Slot};

const WORDS: usize = 16;
const _: () = assert!(WORDS as u64 * 64 == WINDOW_BITS);

/// The newest [`WINDOW_BITS`] counters of one sender in its newest epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    epoch: Epoch,
    /// One more than the highest counter accepted.
    next: u64,
    /// Bit `counter % WINDOW_BITS` of those below `next`.
    bits: [u64; WORDS],
}

impl Window {
    pub(crate) fn new(epoch: Epoch) -> Window {
        Window { epoch, next: 0, bits: [0; WORDS] }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether the counter may be accepted.
    pub(crate) fn check(&self, counter: u64) -> Result<(), Error> {
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > WINDOW_BITS {
            return Err(Error::Stale);
        }
        let (word, bit) = bit_of(counter);
        let is_taken = self.bits.get(word).is_none_or(|word| word & bit != 0);
        if is_taken { Err(Error::Replayed) } else { Ok(()) }
    }

    /// Marks a counter that [`Window::check`] let pass.
    pub(crate) fn accept(&mut self, counter: u64) {
        debug_assert_eq!(self.check(counter), Ok(()), "a counter is accepted once");
        if counter >= self.next {
            if counter - self.next >= WINDOW_BITS {
                self.bits = [0; WORDS];
            } else {
                (self.next..counter).for_each(|skipped| self.clear(skipped));
            }
            self.next = counter + 1;
        }
        let (word, bit) = bit_of(counter);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
        debug_assert_eq!(self.check(counter), Err(Error::Replayed), "what was accepted is marked");
    }

    fn clear(&mut self, counter: u64) {
        let (word, bit) = bit_of(counter);
        if let Some(word) = self.bits.get_mut(word) {
            *word &= !bit;
        }
    }
}

fn bit_of(counter: u64) -> (usize, u64) {
    let index = counter % WINDOW_BITS;
    ((index / 64) as usize, 1 << (index % 64))
}

/// A sender's replay window at rest: to be stored in the same transaction as the effect of the
/// message that moved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    pub(crate) slot: Slot,
    pub(crate) window: Window,
}

const VERSION: u8 = 1;

impl WindowState {
    /// Bytes of a state at rest.
    pub const BYTES: usize = 1 + 2 + 8 + 8 + 8 * WORDS;

    /// The sender.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The newest epoch that was accepted of the sender.
    pub fn epoch(&self) -> Epoch {
        self.window.epoch
    }

    /// Version 1, slot, epoch, next counter, 16 words of bits; integers big-endian.
    pub fn to_bytes(&self) -> [u8; WindowState::BYTES] {
        let mut bytes = [VERSION; WindowState::BYTES];
        let slot = self.slot.number().to_be_bytes();
        let words = [self.window.epoch.0, self.window.next].into_iter().chain(self.window.bits);
        let parts = slot.into_iter().chain(words.flat_map(u64::to_be_bytes));
        bytes.iter_mut().skip(1).zip(parts).for_each(|(target, byte)| *target = byte);
        bytes
    }

    /// Reads a state.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for a wrong length, version, slot or counter.
    pub fn from_bytes(bytes: &[u8]) -> Result<WindowState, Error> {
        let (version, rest) = bytes.split_first().ok_or(Error::Malformed)?;
        let (slot, rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        let slot = Slot::new(u16::from_be_bytes(*slot)).ok_or(Error::Malformed)?;
        if *version != VERSION || bytes.len() != WindowState::BYTES {
            return Err(Error::Malformed);
        }
        let mut words = rest.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word));
        let epoch = Epoch(words.next().ok_or(Error::Malformed)?);
        let next = words.next().ok_or(Error::Malformed)?;
        let mut bits = [0; WORDS];
        bits.iter_mut().zip(words).for_each(|(target, word)| *target = word);
        if next > crate::limits::MAX_COUNTER + 1 {
            return Err(Error::Malformed);
        }
        Ok(WindowState { slot, window: Window { epoch, next, bits } })
    }
}

#[cfg(test)]
mod tests;
