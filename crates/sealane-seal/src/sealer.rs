use std::fmt;
use std::ops::Range;

use crate::aead::Key;
use crate::associated::Associated;
use crate::counter::{CounterState, Lease, Reservation, Witness};
use crate::header::{Form, KeyId, SframeHeader};
use crate::limits::{MAX_SEALED_BODY_BYTES, SIGNATURE_BYTES, TAG_BYTES};
use crate::opener::Opened;
use crate::sign::SigningKey;
use crate::{Class, Epoch, Epochs, Error, Group, Slot, derive};

/// A member of a group that sends: one slot, one counter, the keys of one epoch.
///
/// A counter is used only below a bound that was stored durably: [`Sealer::reserve`] a block, store
/// its state, [`Sealer::confirm`] it. After a restart [`Sealer::resume`] goes on at the bound.
pub struct Sealer {
    group: Group,
    slot: Slot,
    epoch: Epoch,
    keys: [Option<Key>; 4],
    lease: Lease,
    /// Whether a state of this slot has been stored before.
    is_stored: bool,
    is_cloned: bool,
    witness: Witness,
    signing: Option<SigningKey>,
    associated: Associated,
}

impl Sealer {
    /// A sender in a slot that nobody has used in the newest epoch: the roster has just given it.
    /// Its first reservation must *create* the stored state ([`Reservation::is_first`]).
    ///
    /// # Errors
    ///
    /// [`Error::EpochUnknown`] if the epochs are another group's, [`Error::Class`] for a slot
    /// beyond 1 in a pair.
    pub fn fresh(
        group: Group,
        slot: Slot,
        epochs: &Epochs,
        witness: Witness,
    ) -> Result<Sealer, Error> {
        Sealer::starting_at(group, slot, epochs, witness, 0)
    }

    /// A sender that goes on after a restart, from the state that it stored last and at the place
    /// where it stored it. In an epoch after the state's, counters start anew.
    ///
    /// # Errors
    ///
    /// [`Error::ClonedState`] if the state is another group's or was written at another place: take
    /// a new slot. [`Error::EpochUnknown`] if the epochs have not come as far as the state.
    pub fn resume(
        group: Group,
        state: &CounterState,
        epochs: &Epochs,
        witness: Witness,
    ) -> Result<Sealer, Error> {
        if state.group != group.id() || state.witness != witness {
            return Err(Error::ClonedState);
        }
        if state.epoch > epochs.newest() {
            return Err(Error::EpochUnknown);
        }
        let next = if state.epoch == epochs.newest() { state.until } else { 0 };
        let sealer = Sealer::starting_at(group, state.slot, epochs, witness, next)?;
        Ok(Sealer { is_stored: true, ..sealer })
    }

    fn starting_at(
        group: Group,
        slot: Slot,
        epochs: &Epochs,
        witness: Witness,
        next: u64,
    ) -> Result<Sealer, Error> {
        group.check(Class::Authenticated, slot)?;
        let epoch = epochs.newest();
        Ok(Sealer {
            group,
            slot,
            epoch,
            keys: keys(group, slot, epochs)?,
            lease: Lease::starting_at(next),
            is_stored: false,
            is_cloned: false,
            witness,
            signing: None,
            associated: Associated::new(group.id()),
        })
    }

    /// Sets the key of class S.
    pub fn set_signing_key(&mut self, key: SigningKey) {
        self.signing = Some(key);
    }

    /// The own slot.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The epoch that is sealed in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Counters that are reserved and not used.
    pub fn remaining(&self) -> u64 {
        self.lease.remaining()
    }

    /// The counter of the next message, for a frame that names it in its authenticated part.
    ///
    /// # Errors
    ///
    /// Why no message can be sealed now: [`Error::NotReserved`], [`Error::CountersUsedUp`],
    /// [`Error::ClonedState`].
    pub fn next_counter(&self) -> Result<u64, Error> {
        if self.is_cloned { Err(Error::ClonedState) } else { self.lease.peek() }
    }

    /// Asks for `count` more counters. They are usable once the reservation is stored durably and
    /// given to [`Sealer::confirm`]. Messages may be sealed meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::CountersUsedUp`] at the end of the epoch's counters; [`Error::ClonedState`].
    pub fn reserve(&self, count: u64) -> Result<Reservation, Error> {
        if self.is_cloned {
            return Err(Error::ClonedState);
        }
        let state = CounterState {
            group: self.group.id(),
            slot: self.slot,
            epoch: self.epoch,
            until: self.lease.extended(count)?,
            witness: self.witness,
        };
        Ok(Reservation { state, is_first: !self.is_stored })
    }

    /// Takes a reservation whose state has been stored durably.
    ///
    /// # Errors
    ///
    /// [`Error::EpochStep`] if the epoch has changed since: reserve again.
    pub fn confirm(&mut self, stored: Reservation) -> Result<(), Error> {
        let state = stored.state;
        if (state.group, state.slot, state.epoch) != (self.group.id(), self.slot, self.epoch) {
            return Err(Error::EpochStep);
        }
        self.is_stored = true;
        self.lease.confirm(state.until);
        Ok(())
    }

    /// Moves on to the newest epoch. Its counters start at 0 and must be reserved.
    ///
    /// # Errors
    ///
    /// [`Error::EpochStep`] if it is not newer than the present one.
    pub fn enter_newest(&mut self, epochs: &Epochs) -> Result<(), Error> {
        if epochs.newest() <= self.epoch {
            return Err(Error::EpochStep);
        }
        self.keys = keys(self.group, self.slot, epochs)?;
        self.epoch = epochs.newest();
        self.lease = Lease::starting_at(0);
        Ok(())
    }

    /// Tells of a message that was opened anywhere, from the own stream for example. If it is of
    /// this slot and epoch and was not sealed here, somebody else has this state, and nothing is
    /// sealed any more.
    ///
    /// # Errors
    ///
    /// [`Error::ClonedState`] then.
    pub fn heard(&mut self, opened: &Opened) -> Result<(), Error> {
        let same = opened.group() == self.group.id() && opened.slot() == self.slot;
        let elsewhere = (opened.epoch(), opened.counter()) >= (self.epoch, self.lease.next());
        self.is_cloned |= same && elsewhere;
        if self.is_cloned { Err(Error::ClonedState) } else { Ok(()) }
    }

    /// Seals the body that stands in `buf` without moving it, and gives the place of the sealed
    /// bytes. `meta` is authenticated with it and does not become part of them.
    ///
    /// The header goes right before the body ([`Class::head_bytes`]), signature and tag right
    /// behind it ([`Class::tail_bytes`]); in class A header and tag go behind.
    ///
    /// # Errors
    ///
    /// The body is zeroed then, so that it cannot be sent by mistake. [`Error::NoRoom`],
    /// [`Error::TooLarge`], [`Error::Class`], [`Error::NoSigningKey`], and those of
    /// [`Sealer::next_counter`].
    pub fn seal_in_place(
        &mut self,
        class: Class,
        form: Form,
        meta: &[u8],
        buf: &mut [u8],
        body: Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let sealed = self.try_seal(class, form, meta, buf, &body);
        if sealed.is_err() {
            let end = body.end.min(buf.len());
            buf.get_mut(body.start..end).unwrap_or_default().fill(0);
        }
        sealed
    }

    /// Appends the sealed form of `body` to `out` and gives its place there.
    ///
    /// # Errors
    ///
    /// As [`Sealer::seal_in_place`]; nothing is appended then.
    pub fn append(
        &mut self,
        class: Class,
        form: Form,
        meta: &[u8],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Range<usize>, Error> {
        let header = self.header(class, self.next_counter()?).encode(form);
        let head = if class == Class::Authenticated { 0 } else { header.len() };
        let start = out.len();
        let body_start = start + head;
        out.extend_from_slice(header.get(..head).unwrap_or_default());
        out.extend_from_slice(body);
        let body_end = out.len();
        out.extend(std::iter::repeat_n(0, class.tail_bytes()));
        let sealed = self.seal_in_place(class, form, meta, out, body_start..body_end);
        out.truncate(sealed.as_ref().map_or(start, |sealed| sealed.end));
        sealed
    }

    fn header(&self, class: Class, counter: u64) -> SframeHeader {
        SframeHeader { key: KeyId::new(self.slot, class, self.epoch), counter }
    }

    fn try_seal(
        &mut self,
        class: Class,
        form: Form,
        meta: &[u8],
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        self.group.check(class, self.slot)?;
        let is_in_buf = body.start <= body.end && body.end <= buf.len();
        if !is_in_buf {
            return Err(Error::NoRoom);
        }
        if body.len() > MAX_SEALED_BODY_BYTES {
            return Err(Error::TooLarge);
        }
        let header = self.header(class, self.next_counter()?);
        let encoded = header.encode(form);
        if class == Class::Authenticated {
            self.seal_clear(&header, &encoded, meta, buf, body)
        } else {
            self.seal_secret(&header, &encoded, meta, buf, body)
        }
    }

    /// Body, header, tag.
    fn seal_clear(
        &mut self,
        header: &SframeHeader,
        encoded: &[u8],
        meta: &[u8],
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let (text, tail) = buf.split_at_mut_checked(body.end).ok_or(Error::NoRoom)?;
        let (head, tail) = tail.split_at_mut_checked(encoded.len()).ok_or(Error::NoRoom)?;
        let tag = tail.first_chunk_mut().ok_or(Error::NoRoom)?;
        let text = text.get(body.start..).ok_or(Error::NoRoom)?;
        self.associated.fill(header, meta, Some(text))?;
        *tag = self.protect(header, &mut [])?;
        head.copy_from_slice(encoded);
        Ok(body.start..body.end + encoded.len() + TAG_BYTES)
    }

    /// Header, ciphertext of body and signature, tag.
    #[inline]
    fn seal_secret(
        &mut self,
        header: &SframeHeader,
        encoded: &[u8],
        meta: &[u8],
        buf: &mut [u8],
        body: &Range<usize>,
    ) -> Result<Range<usize>, Error> {
        let class = header.key.class;
        let start = body.start.checked_sub(encoded.len()).ok_or(Error::NoRoom)?;
        let text_end = body.end + class.signature_bytes();
        let (before, tail) = buf.split_at_mut_checked(text_end).ok_or(Error::NoRoom)?;
        let tag = tail.first_chunk_mut().ok_or(Error::NoRoom)?;
        let (before, text) = before.split_at_mut_checked(body.start).ok_or(Error::NoRoom)?;
        self.associated.fill(header, meta, None)?;
        if class == Class::Signed {
            let signing = self.signing.as_ref().ok_or(Error::NoSigningKey)?;
            let (plain, target) =
                text.split_last_chunk_mut::<SIGNATURE_BYTES>().ok_or(Error::NoRoom)?;
            *target = self.associated.signed(self.epoch, plain, |all| signing.sign(all))?;
        }
        *tag = self.protect(header, text)?;
        before.get_mut(start..).ok_or(Error::NoRoom)?.copy_from_slice(encoded);
        Ok(start..text_end + TAG_BYTES)
    }

    /// Uses the counter up and applies the key.
    #[inline]
    fn protect(
        &mut self,
        header: &SframeHeader,
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let key = self.keys.get(usize::from(header.key.class.number()));
        let key = key.and_then(Option::as_ref).ok_or(Error::Class)?;
        self.lease.take();
        key.seal(header.counter, self.associated.bytes(), text)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Sealer");
        out.field("group", &self.group).field("slot", &self.slot).field("epoch", &self.epoch);
        out.field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// The keys of the classes that the group allows.
fn keys(group: Group, slot: Slot, epochs: &Epochs) -> Result<[Option<Key>; 4], Error> {
    if epochs.group() != group.id() {
        return Err(Error::EpochUnknown);
    }
    let secret = epochs.secret(epochs.newest()).ok_or(Error::EpochUnknown)?;
    let mut keys = [const { None }; 4];
    for (target, class) in keys.iter_mut().zip(Class::ALL) {
        if group.allows(class) {
            let id = KeyId::new(slot, class, epochs.newest());
            *target = Some(derive::key(group.suite(), secret.expose(), id)?);
        }
    }
    Ok(keys)
}
