//! Counters that are never used twice, whatever is restarted, copied or restored.

use crate::group::GroupId;
use crate::limits::{MAX_COUNTER, MAX_RESERVED_COUNTERS};
use crate::{Epoch, Error, Slot};

/// What identifies the place that a counter state lives in, made of what a copy or backup of it
/// does *not* carry along: a hash over, say, machine id, device and inode of the state's file.
///
/// A state is resumed only where its witness is the same as when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness(pub [u8; 32]);

/// What a sender keeps on disk: below which counter everything may be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterState {
    pub(crate) group: GroupId,
    pub(crate) slot: Slot,
    pub(crate) epoch: Epoch,
    pub(crate) until: u64,
    pub(crate) witness: Witness,
}

const VERSION: u8 = 1;

impl CounterState {
    /// Bytes of a state at rest.
    pub const BYTES: usize = 1 + 32 + 2 + 8 + 8 + 32;

    /// The epoch that its counters are of.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// All counters of that epoch below it may be used up.
    pub fn bound(&self) -> u64 {
        self.until
    }

    /// Version 1, group, slot, epoch, bound and witness; integers big-endian.
    pub fn to_bytes(&self) -> [u8; CounterState::BYTES] {
        let mut bytes = [VERSION; CounterState::BYTES];
        let parts: [&[u8]; 5] = [
            &self.group.0,
            &self.slot.number().to_be_bytes(),
            &self.epoch.0.to_be_bytes(),
            &self.until.to_be_bytes(),
            &self.witness.0,
        ];
        let targets = bytes.iter_mut().skip(1);
        targets.zip(parts.into_iter().flatten()).for_each(|(target, byte)| *target = *byte);
        bytes
    }

    /// Reads a state.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for a wrong length, version, slot or bound.
    pub fn from_bytes(bytes: &[u8]) -> Result<CounterState, Error> {
        let (version, rest) = bytes.split_first().ok_or(Error::Malformed)?;
        let (group, rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        let (slot, rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        let (epoch, rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        let (until, rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        let witness = rest.try_into().map_err(|_| Error::Malformed)?;
        let slot = Slot::new(u16::from_be_bytes(*slot)).ok_or(Error::Malformed)?;
        let until = u64::from_be_bytes(*until);
        if *version != VERSION || until > MAX_COUNTER + 1 {
            return Err(Error::Malformed);
        }
        let epoch = Epoch(u64::from_be_bytes(*epoch));
        Ok(CounterState { group: GroupId(*group), slot, epoch, until, witness: Witness(witness) })
    }
}

/// A block of counters that is asked for: store [`Reservation::state`] durably, then give the
/// reservation back to `Sealer::confirm`.
#[derive(Debug)]
#[must_use = "counters are usable only once the reservation is stored and confirmed"]
pub struct Reservation {
    pub(crate) state: CounterState,
    pub(crate) is_first: bool,
}

impl Reservation {
    /// What to store.
    pub fn state(&self) -> &CounterState {
        &self.state
    }

    /// Whether no state may exist yet for this group and slot: the store must *create* it and treat
    /// an existing one as a cloned state.
    pub fn is_first(&self) -> bool {
        self.is_first
    }
}

/// The counters of one sender in one epoch: `next` is free, all below `bound` are reserved.
#[derive(Debug)]
pub(crate) struct Lease {
    next: u64,
    bound: u64,
}

impl Lease {
    /// Everything below `next` may be used up.
    pub(crate) fn starting_at(next: u64) -> Lease {
        Lease { next, bound: next }
    }

    pub(crate) fn peek(&self) -> Result<u64, Error> {
        if self.next < self.bound {
            return Ok(self.next);
        }
        Err(if self.next > MAX_COUNTER { Error::CountersUsedUp } else { Error::NotReserved })
    }

    /// Uses up the counter that [`Lease::peek`] gave.
    pub(crate) fn take(&mut self) {
        self.next += 1;
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.bound - self.next
    }

    /// The bound that a reservation of so many more counters asks for.
    pub(crate) fn extended(&self, count: u64) -> Result<u64, Error> {
        let until = self.bound.saturating_add(count.min(MAX_RESERVED_COUNTERS));
        let until = until.min(MAX_COUNTER + 1);
        if until > self.bound { Ok(until) } else { Err(Error::CountersUsedUp) }
    }

    pub(crate) fn confirm(&mut self, until: u64) {
        self.bound = self.bound.max(until);
    }
}
