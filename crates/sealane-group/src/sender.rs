use std::ops::Range;
use std::sync::Arc;

use sealane_frame::{Draft, FrameBuf, GroupTag, HeaderFields, LinkContext, PeerTag};
use sealane_seal::limits::MAX_RESERVED_COUNTERS;
use sealane_seal::{Class, Epoch, Epochs, GroupId, Opened, Sealer, Slot};

use crate::Error;
use crate::folder::{IdentityKeys, Lock};
use crate::state::GroupState;

/// Counters of a sender's first block. Each further block has twice as many, so that a sender that
/// goes on waits for the disk less and less often, and one that ends soon wastes little.
const FIRST_BLOCK: u64 = 1 << 10;

/// A member that sends: it seals nothing before the counter is reserved durably.
///
/// Several processes of one folder may each have one; each uses blocks of its own. The folder's
/// lock is held only while a block is reserved.
pub struct Sender {
    keys: Arc<IdentityKeys>,
    name: String,
    group: GroupId,
    sealer: Sealer,
    tag: GroupTag,
    source: PeerTag,
    /// The counters of the present block.
    block: Range<u64>,
    next_block: u64,
    is_cloned: bool,
}

impl Sender {
    pub(crate) fn open(keys: &Arc<IdentityKeys>, name: &str) -> Result<Sender, Error> {
        let lock = keys.lock()?;
        let state = keys.load(&lock, name)?;
        Sender::reserve(keys, name, &lock, &state, FIRST_BLOCK)
    }

    /// A sender with a block of counters behind all that were ever reserved.
    pub(crate) fn reserve(
        keys: &Arc<IdentityKeys>,
        name: &str,
        lock: &Lock,
        state: &GroupState,
        count: u64,
    ) -> Result<Sender, Error> {
        if state.is_removed {
            return Err(Error::Removed);
        }
        let counters = keys.counters(lock, name, state.slot)?;
        let epoch = state.epochs.newest();
        let secret = state.epochs.secret(epoch).ok_or(Error::OrderMissing)?.clone();
        let epochs = Epochs::agreed(state.id(), state.charter.history, epoch, secret);
        let mut sealer = Sealer::resume(state.charter.group(), &counters, &epochs, keys.witness())?;
        sealer.set_signing_key(keys.identity().signing_key()?);
        let reservation = sealer.reserve(count)?;
        let until = reservation.state().bound();
        keys.save_counters(lock, name, state.slot, reservation.state(), false)?;
        sealer.confirm(reservation)?;
        let block = sealer.next_counter()?..until;
        debug_assert!(
            counters.epoch() < epoch || counters.bound() <= block.start,
            "a counter that was reserved before"
        );
        debug_assert_eq!(block.end - block.start, sealer.remaining());
        Ok(Sender {
            keys: Arc::clone(keys),
            name: name.to_owned(),
            block,
            group: state.id(),
            sealer,
            tag: state.tag(),
            source: state.peer_tag(state.slot).ok_or(Error::Removed)?,
            next_block: count.saturating_mul(2).clamp(FIRST_BLOCK, MAX_RESERVED_COUNTERS),
            is_cloned: false,
        })
    }

    /// The own slot.
    pub fn slot(&self) -> Slot {
        self.sealer.slot()
    }

    /// The epoch that it seals in.
    pub fn epoch(&self) -> Epoch {
        self.sealer.epoch()
    }

    /// A header of that class to all of the group, from this member.
    pub fn fields(&self, class: Class, data_type: u16) -> HeaderFields {
        HeaderFields { class, ..HeaderFields::new(self.tag, self.source, data_type) }
    }

    /// Seals a body into a frame of the full form. Nothing is allocated once `buf` is warm, but
    /// when a block of counters is used up: then the next one is reserved on disk.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`] if the folder was copied or restored, [`Error::Removed`], and what
    /// [`sealane_frame::seal_frame`] refuses.
    pub fn seal<'a>(
        &mut self,
        fields: &HeaderFields,
        body: &[u8],
        buf: &'a mut FrameBuf,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(sealane_frame::seal_frame(&mut self.sealer, fields, body, buf)?)
    }

    /// Seals a body where it was written: [`Sender::seal`] without a copy.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn seal_draft<'a>(
        &mut self,
        fields: &HeaderFields,
        draft: Draft<'a>,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(draft.seal(&mut self.sealer, fields)?)
    }

    /// Seals a body into a frame of the compact form of a link.
    ///
    /// # Errors
    ///
    /// As [`Sender::seal`], and what [`sealane_frame::seal_compact`] refuses.
    pub fn seal_compact<'a>(
        &mut self,
        fields: &HeaderFields,
        body: &[u8],
        link: &LinkContext<'_>,
        buf: &'a mut FrameBuf,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(sealane_frame::seal_compact(&mut self.sealer, fields, body, link, buf)?)
    }

    /// Goes on in the group's newest epoch, which another call or process may have come to.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`], [`Error::Removed`], [`Error::Io`].
    pub fn follow(&mut self) -> Result<(), Error> {
        if self.is_cloned {
            return Err(Error::Elsewhere(self.keys.path().to_owned()));
        }
        let lock = self.keys.lock()?;
        let state = self.keys.load(&lock, &self.name)?;
        if (state.epochs.newest(), state.slot) == (self.epoch(), self.slot()) && !state.is_removed {
            return Ok(());
        }
        *self = Sender::reserve(&self.keys, &self.name, &lock, &state, self.next_block)?;
        Ok(())
    }

    /// Tells of a message that was opened anywhere. If it is of this slot and nobody in this folder
    /// can have sealed it, a copy of the folder is at work, and this slot seals nothing any more.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`] then.
    pub fn heard(&mut self, opened: &Opened) -> Result<(), Error> {
        if (opened.group(), opened.slot()) != (self.group, self.slot()) {
            return Ok(());
        }
        let is_block = opened.epoch() == self.epoch() && self.block.contains(&opened.counter());
        let is_ours = if is_block {
            opened.counter() < self.block.end - self.sealer.remaining()
        } else {
            self.is_reserved(opened)?
        };
        if is_ours {
            return Ok(());
        }
        let lock = self.keys.lock()?;
        self.is_cloned = true;
        self.keys.give_up_counters(&lock, &self.name, self.slot())?;
        Err(Error::Elsewhere(self.keys.path().to_owned()))
    }

    /// Whether another process of this folder may have sealed it.
    fn is_reserved(&self, opened: &Opened) -> Result<bool, Error> {
        let lock = self.keys.lock()?;
        let counters = self.keys.counters(&lock, &self.name, self.slot())?;
        Ok((opened.epoch(), opened.counter()) < (counters.epoch(), counters.bound()))
    }

    /// Sees to it that a counter is reserved.
    #[inline]
    fn ready(&mut self) -> Result<(), Error> {
        if self.is_cloned {
            return Err(Error::Elsewhere(self.keys.path().to_owned()));
        }
        if self.sealer.remaining() == 0 {
            self.refill()?;
        }
        debug_assert!(
            self.sealer.next_counter().ok().is_none_or(|counter| self.block.contains(&counter)),
            "a counter below its reservation"
        );
        Ok(())
    }

    #[cold]
    fn refill(&mut self) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        let state = self.keys.load(&lock, &self.name)?;
        *self = Sender::reserve(&self.keys, &self.name, &lock, &state, self.next_block)?;
        Ok(())
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("sealer", &self.sealer).finish_non_exhaustive()
    }
}
