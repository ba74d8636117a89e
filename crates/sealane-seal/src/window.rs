//! Which counters of a sender were accepted.

use crate::limits::WINDOW_BITS;
use crate::{Epoch, Error};

const WORDS: usize = 16;
const _: () = assert!(WORDS as u64 * 64 == WINDOW_BITS);

/// The newest [`WINDOW_BITS`] counters of one sender in its newest epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplayWindow {
    epoch: Epoch,
    /// One more than the highest counter accepted.
    next: u64,
    /// Bit `counter % WINDOW_BITS` of those below `next`.
    bits: [u64; WORDS],
}

impl ReplayWindow {
    /// Nothing was accepted yet.
    pub(crate) fn new(epoch: Epoch) -> ReplayWindow {
        ReplayWindow { epoch, next: 0, bits: [0; WORDS] }
    }

    /// All counters below `next` count as accepted.
    pub(crate) fn closed_below(epoch: Epoch, next: u64) -> ReplayWindow {
        ReplayWindow { epoch, next, bits: [u64::MAX; WORDS] }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// One more than the highest counter accepted.
    pub(crate) fn next(&self) -> u64 {
        self.next
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

    /// Marks a counter that [`ReplayWindow::check`] let pass.
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

#[cfg(test)]
mod tests;
