use std::fmt;

use zeroize::Zeroize;

use crate::aead::Key;
use crate::associated::Associated;
use crate::header::{Form, Header, KeyId};
use crate::limits::{MAX_LIVE_EPOCHS_BEHIND, SIGNATURE_BYTES};
use crate::sign::VerifyingKey;
use crate::window::{Window, WindowState};
use crate::{Advance, Class, Epoch, EpochSecret, Epochs, Error, Group, Slot, derive};

mod place;
mod slots;

pub use place::Opened;
use place::Place;
use slots::{Keys, Slots};

/// A member of a group that reads, live or from a store.
pub struct Opener {
    group: Group,
    own: Option<Slot>,
    epochs: Epochs,
    live_floor: Epoch,
    windows: Slots<Window>,
    keys: Keys,
    signers: Slots<VerifyingKey>,
    associated: Associated,
    /// Plaintext of a trial that is not yet known to be the right one.
    trial: Vec<u8>,
}

impl Opener {
    /// A reader. `own` is the slot that it sends in, if it sends: live messages of that slot are
    /// refused, since only a reflection or a clone can send them.
    ///
    /// # Errors
    ///
    /// [`Error::EpochUnknown`] if the epochs are another group's.
    pub fn new(group: Group, own: Option<Slot>, epochs: Epochs) -> Result<Opener, Error> {
        if epochs.group() != group.id() {
            return Err(Error::EpochUnknown);
        }
        Ok(Opener {
            group,
            own,
            epochs,
            live_floor: Epoch(0),
            windows: Slots::default(),
            keys: Keys::default(),
            signers: Slots::default(),
            associated: Associated::default(),
            trial: Vec::new(),
        })
    }

    /// The epochs.
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// Takes the secret of an epoch; see [`Epochs::insert`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn insert(&mut self, epoch: Epoch, secret: EpochSecret) -> Result<(), Error> {
        self.epochs.insert(epoch, secret)
    }

    /// Ratchets ahead without having heard of the epoch; see [`Epochs::advance`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn advance(&mut self, to: Epoch) -> Result<(), Error> {
        self.epochs.advance(to)
    }

    /// Obeys a control order: advances the epoch if `opened` is a class S message of `authority`
    /// and `body`, its plaintext, is an [`Advance`].
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthorized`], [`Error::Malformed`], and those of [`Epochs::advance`].
    pub fn obey(&mut self, opened: &Opened, body: &[u8], authority: Slot) -> Result<Epoch, Error> {
        let given_by = (opened.group(), opened.class(), opened.slot());
        if given_by != (self.group.id(), Class::Signed, authority) {
            return Err(Error::NotAuthorized);
        }
        let order = Advance::from_bytes(body)?;
        self.epochs.advance(order.to)?;
        Ok(order.to)
    }

    /// The reader's cursor stands in `epoch`: a forward-secret group erases the secrets and keys
    /// before it.
    pub fn passed(&mut self, epoch: Epoch) {
        self.epochs.passed(epoch);
        self.keys.retain(|epoch| self.epochs.secret(epoch).is_some());
    }

    /// Erases the secrets and keys of the epochs before `epoch`, whatever the group's history.
    pub fn forget(&mut self, epoch: Epoch) {
        self.epochs.forget(epoch);
        self.keys.retain(|epoch| self.epochs.secret(epoch).is_some());
    }

    /// Sets the key that verifies class S of a slot, as the roster has it.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if it is no Ed25519 public key.
    pub fn set_signer(&mut self, slot: Slot, verifying_key: &[u8; 32]) -> Result<(), Error> {
        self.signers.set(slot, VerifyingKey::new(verifying_key)?);
        Ok(())
    }

    /// Forgets the key that verifies class S of a slot: the member is excluded.
    pub fn remove_signer(&mut self, slot: Slot) {
        self.signers.remove(slot);
    }

    /// Refuses live messages of earlier epochs. A reader whose windows were lost calls it with the
    /// epoch after the newest, since any message of the present one may be a replay.
    pub fn set_live_floor(&mut self, epoch: Epoch) {
        self.live_floor = epoch;
    }

    /// The replay windows, to be stored.
    pub fn windows(&self) -> impl Iterator<Item = WindowState> {
        self.windows.iter().map(|(slot, window)| WindowState { slot, window: *window })
    }

    /// Puts a stored window back: after a restart, or when the transaction of an accepted message
    /// was rolled back.
    pub fn restore(&mut self, state: &WindowState) {
        self.windows.set(state.slot, state.window);
    }

    /// Opens a message from a link, where it stands in `sealed`. `meta` is the authenticated header
    /// that the frame rebuilt; `clear` the length of the body before the SFrame header in class A,
    /// 0 in the others.
    ///
    /// Nothing moves until [`Pending::accept`] is called on the result; nothing moves on an error.
    ///
    /// # Errors
    ///
    /// All faults of a peer. If a key was applied, the body is zeroed.
    pub fn open_live(
        &mut self,
        form: Form,
        meta: &[u8],
        sealed: &mut [u8],
        clear: usize,
    ) -> Result<Pending<'_>, Error> {
        let place = Place::find(self.group, form, self.epochs.newest(), sealed, clear)?;
        let slot = place.header.key.slot;
        if Some(slot) == self.own {
            return Err(Error::Reflected);
        }
        let (epoch, window) = self.open_in_some_epoch(form, meta, sealed, &place)?;
        let opened = place.opened(self.group.id(), epoch);
        Ok(Pending { opener: self, opened, window })
    }

    /// Opens a message from a store, where it stands in `sealed`; the arguments are those of
    /// [`Opener::open_live`]. There is no window and nothing moves: whether it was read before
    /// is for the reader's own store to say, by [`Opened`]'s group, epoch, slot and counter.
    ///
    /// `near` is the epoch that the reader's cursor stands in.
    ///
    /// # Errors
    ///
    /// All faults of a peer but replay. If a key was applied, the body is zeroed.
    pub fn open_stored(
        &mut self,
        near: Epoch,
        form: Form,
        meta: &[u8],
        sealed: &mut [u8],
        clear: usize,
    ) -> Result<Opened, Error> {
        let place = Place::find(self.group, form, near, sealed, clear)?;
        let epoch = place.header.key.epoch(near);
        self.fill(meta, sealed, &place)?;
        self.apply(epoch, sealed, &place, false)?;
        Ok(place.opened(self.group.id(), epoch))
    }

    /// Opens in the epoch that the header means most likely, else on trial in a later one that it
    /// may mean as well. Gives that epoch, and the sender's window as it is once accepted.
    fn open_in_some_epoch(
        &mut self,
        form: Form,
        meta: &[u8],
        sealed: &mut [u8],
        place: &Place,
    ) -> Result<(Epoch, Window), Error> {
        let Header { key, counter } = place.header;
        let likely = key.epoch(self.epochs.newest());
        let is_known = self.windows.get(key.slot).is_some_and(|window| window.epoch() == likely);
        let trials = if is_known { 1 } else { self.epochs.trials(likely, form) };
        let mut refusal = Error::EpochUnknown;
        let mut is_filled = false;
        for trial in 0..trials {
            let epoch = Epoch(likely.0.saturating_add(trial << Form::Full.epoch_bits()));
            let attempt = self.live_window(epoch, key, counter).and_then(|window| {
                if !is_filled {
                    self.fill(meta, sealed, place)?;
                    is_filled = true;
                }
                self.apply(epoch, sealed, place, trials > 1)?;
                Ok((epoch, window))
            });
            match attempt {
                Ok(opened) => return Ok(opened),
                Err(error) if refusal == Error::EpochUnknown => refusal = error,
                Err(_) => {}
            }
        }
        if is_filled {
            place.zero(sealed);
        }
        Err(refusal)
    }

    /// The sender's window with that counter accepted, if it may be.
    fn live_window(&self, epoch: Epoch, key: KeyId, counter: u64) -> Result<Window, Error> {
        let oldest = self.epochs.newest().0.saturating_sub(MAX_LIVE_EPOCHS_BEHIND);
        let window = self.windows.get(key.slot).filter(|window| window.epoch() >= epoch);
        let mut window = window.copied().unwrap_or_else(|| Window::new(epoch));
        if epoch.0 < oldest || epoch < self.live_floor || window.epoch() > epoch {
            return Err(Error::EpochPast);
        }
        if epoch > self.epochs.newest() && !self.epochs.has_room(epoch) {
            return Err(Error::TooManyEpochs);
        }
        window.check(counter)?;
        window.accept(counter);
        Ok(window)
    }

    /// Lays out the associated data.
    fn fill(&mut self, meta: &[u8], sealed: &[u8], place: &Place) -> Result<(), Error> {
        let is_clear = place.header.key.class == Class::Authenticated;
        let clear = sealed.get(..place.clear).filter(|_| is_clear);
        self.associated.fill(&place.header, self.group.id(), meta, clear)
    }

    /// Applies the key of an epoch. On trial the ciphertext stays what it was if that is the wrong
    /// key; else it is zeroed.
    fn apply(
        &mut self,
        epoch: Epoch,
        sealed: &mut [u8],
        place: &Place,
        is_trial: bool,
    ) -> Result<(), Error> {
        let id = place.header.key;
        let mut derived = None;
        if self.keys.get(id, epoch).is_none() {
            derived = Some(self.derive(id, epoch)?);
        }
        let key = self.keys.get(id, epoch).or(derived.as_ref()).ok_or(Error::EpochUnknown)?;
        let associated = self.associated.bytes();
        let (text, tag) = place.parts(sealed)?;
        if is_trial {
            self.trial.resize(text.len(), 0);
            key.open_into(place.header.counter, associated, (text, tag), &mut self.trial)?;
            text.copy_from_slice(&self.trial);
            self.trial.as_mut_slice().zeroize();
        } else if let Err(error) = key.open(place.header.counter, associated, text, tag) {
            place.zero(sealed);
            return Err(error);
        }
        if let Err(error) = self.verify(epoch, sealed, place) {
            place.zero(sealed);
            return Err(error);
        }
        if let Some(derived) = derived {
            self.keys.set(id, epoch, derived);
        }
        Ok(())
    }

    /// Derives a key from a secret that is held or lies ahead.
    fn derive(&mut self, id: KeyId, epoch: Epoch) -> Result<Key, Error> {
        let suite = self.group.suite();
        let secret = if epoch > self.epochs.newest() {
            self.epochs.ahead(epoch).map_err(|_| Error::EpochUnknown)?
        } else {
            self.epochs.secret(epoch).ok_or(Error::EpochUnknown)?
        };
        derive::key(suite, secret.expose(), id)
    }

    /// Verifies the signature behind the plaintext of class S.
    fn verify(&mut self, epoch: Epoch, sealed: &mut [u8], place: &Place) -> Result<(), Error> {
        if place.header.key.class != Class::Signed {
            return Ok(());
        }
        let signer = self.signers.get(place.header.key.slot).ok_or(Error::UnknownSigner)?;
        let (text, _) = place.parts(sealed)?;
        let (body, signature) =
            text.split_last_chunk::<SIGNATURE_BYTES>().ok_or(Error::Truncated)?;
        self.associated.signed(epoch, body, |signed| signer.verify(signed, signature))
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Opener");
        out.field("group", &self.group).field("own", &self.own).field("epochs", &self.epochs);
        out.finish_non_exhaustive()
    }
}

/// An authentic live message that has not been accepted yet.
///
/// Store [`Pending::window`] in the transaction of the message's effect, then
/// [`accept`](Pending::accept). Dropped instead, the message may come again.
#[must_use = "the replay window moves only when the message is accepted"]
pub struct Pending<'a> {
    opener: &'a mut Opener,
    opened: Opened,
    window: Window,
}

impl Pending<'_> {
    /// The message.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The sender's window as it will be.
    pub fn window(&self) -> WindowState {
        WindowState { slot: self.opened.slot(), window: self.window }
    }

    /// Moves the sender's window, and the group's epoch if the message was of a later one.
    pub fn accept(self) -> Opened {
        let epochs = &mut self.opener.epochs;
        if self.opened.epoch() > epochs.newest() {
            // The trial has found room and the secret, so that this cannot fail.
            let advanced = epochs.advance(self.opened.epoch());
            debug_assert_eq!(advanced, Ok(()));
        }
        self.opener.windows.set(self.opened.slot(), self.window);
        self.opened
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pending").field("opened", &self.opened).finish_non_exhaustive()
    }
}
