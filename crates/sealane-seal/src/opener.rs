use std::fmt;

use zeroize::Zeroize;

use crate::aead::Key;
use crate::associated::Associated;
use crate::header::{Form, KeyId, SframeHeader};
use crate::limits::{MAX_LIVE_EPOCHS_BEHIND, SIGNATURE_BYTES};
use crate::sign::VerifyingKey;
use crate::window::{Window, WindowState};
use crate::{Advance, Class, Epoch, EpochSecret, Epochs, Error, Group, Slot, derive};

mod layout;
mod slots;

use layout::Layout;
pub use layout::Opened;
use slots::{SlotKeys, Slots};

/// A member of a group that reads, live or from a store.
pub struct Opener {
    group: Group,
    own: Option<Slot>,
    epochs: Epochs,
    live_floor: Epoch,
    windows: Slots<Window>,
    keys: SlotKeys,
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
            keys: SlotKeys::default(),
            signers: Slots::default(),
            associated: Associated::new(group.id()),
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
        let layout = Layout::find(self.group, form, self.epochs.newest(), sealed, clear)?;
        let slot = layout.header.key.slot;
        if Some(slot) == self.own {
            return Err(Error::Reflected);
        }
        let likely = layout.header.key.epoch(self.epochs.newest());
        let window = self.windows.get(slot).filter(|window| window.epoch() == likely);
        let epoch = if window.is_some() {
            self.may_take(likely, &layout.header)?;
            self.fill(meta, sealed, &layout)?;
            self.apply(likely, sealed, &layout, false)?;
            likely
        } else {
            self.open_on_trial(likely, form, meta, sealed, &layout)?
        };
        let opened = layout.opened(self.group.id(), epoch);
        Ok(Pending { opener: self, opened })
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
        let layout = Layout::find(self.group, form, near, sealed, clear)?;
        let epoch = layout.header.key.epoch(near);
        self.fill(meta, sealed, &layout)?;
        self.apply(epoch, sealed, &layout, false)?;
        Ok(layout.opened(self.group.id(), epoch))
    }

    /// Opens the first message of a sender in an epoch: in the epoch that the header means most
    /// likely, else in a later one that it may mean as well. Gives that epoch.
    fn open_on_trial(
        &mut self,
        likely: Epoch,
        form: Form,
        meta: &[u8],
        sealed: &mut [u8],
        layout: &Layout,
    ) -> Result<Epoch, Error> {
        let trials = self.epochs.trials(likely, form);
        let mut refusal = Error::EpochUnknown;
        let mut is_tried = false;
        for trial in 0..trials {
            let epoch = Epoch(likely.0.saturating_add(trial << Form::Full.epoch_bits()));
            let attempt = self.may_take(epoch, &layout.header).and_then(|()| {
                self.fill(meta, sealed, layout)?;
                is_tried = true;
                self.apply(epoch, sealed, layout, trials > 1)
            });
            match attempt {
                Ok(()) => return Ok(epoch),
                Err(error) if refusal == Error::EpochUnknown => refusal = error,
                Err(_) => {}
            }
        }
        if is_tried {
            layout.zero(sealed);
        }
        Err(refusal)
    }

    /// Whether a live message may be accepted, if it is authentic in that epoch.
    fn may_take(&self, epoch: Epoch, header: &SframeHeader) -> Result<(), Error> {
        let newest = self.epochs.newest();
        let is_late = epoch.0.saturating_add(MAX_LIVE_EPOCHS_BEHIND) < newest.0;
        if is_late || epoch < self.live_floor {
            return Err(Error::EpochPast);
        }
        if epoch > newest && !self.epochs.has_room(epoch) {
            return Err(Error::TooManyEpochs);
        }
        match self.windows.get(header.key.slot) {
            Some(window) if window.epoch() > epoch => Err(Error::EpochPast),
            Some(window) if window.epoch() == epoch => window.check(header.counter),
            _ => Ok(()),
        }
    }

    /// Lays out the associated data.
    fn fill(&mut self, meta: &[u8], sealed: &[u8], layout: &Layout) -> Result<(), Error> {
        let is_clear = layout.header.key.class == Class::Authenticated;
        let clear = sealed.get(..layout.clear).filter(|_| is_clear);
        self.associated.fill(&layout.header, meta, clear)
    }

    /// Applies the key of an epoch. On trial the ciphertext stays what it was if that is the wrong
    /// key; else it is zeroed.
    #[inline]
    fn apply(
        &mut self,
        epoch: Epoch,
        sealed: &mut [u8],
        layout: &Layout,
        is_trial: bool,
    ) -> Result<(), Error> {
        let id = layout.header.key;
        let associated = self.associated.bytes();
        let trial = is_trial.then_some(&mut self.trial);
        let mut derived = None;
        let opened = match self.keys.get(id, epoch) {
            Some(key) => unlock(key, associated, sealed, layout, trial),
            None => {
                let key = derive_key(&mut self.epochs, self.group, id, epoch)?;
                unlock(derived.insert(key), associated, sealed, layout, trial)
            }
        };
        opened.and_then(|()| {
            self.verify(epoch, sealed, layout).inspect_err(|_| layout.zero(sealed))
        })?;
        if let Some(key) = derived {
            self.keys.set(id, epoch, key);
        }
        Ok(())
    }

    /// Verifies the signature behind the plaintext of class S.
    fn verify(&mut self, epoch: Epoch, sealed: &mut [u8], layout: &Layout) -> Result<(), Error> {
        if layout.header.key.class != Class::Signed {
            return Ok(());
        }
        let signer = self.signers.get(layout.header.key.slot).ok_or(Error::UnknownSigner)?;
        let (text, _) = layout.parts(sealed)?;
        let (body, signature) =
            text.split_last_chunk::<SIGNATURE_BYTES>().ok_or(Error::Truncated)?;
        self.associated.signed(epoch, body, |signed| signer.verify(signed, signature))
    }
}

/// Derives a key from a secret that is held or lies ahead.
fn derive_key(epochs: &mut Epochs, group: Group, id: KeyId, epoch: Epoch) -> Result<Key, Error> {
    let secret = if epoch > epochs.newest() {
        epochs.ahead(epoch).map_err(|_| Error::EpochUnknown)?
    } else {
        epochs.secret(epoch).ok_or(Error::EpochUnknown)?
    };
    derive::key(group.suite(), secret.expose(), id)
}

/// Decrypts in place; on trial, by way of a buffer that spares the ciphertext if the key is wrong.
#[inline]
fn unlock(
    key: &Key,
    associated: &[u8],
    sealed: &mut [u8],
    layout: &Layout,
    trial: Option<&mut Vec<u8>>,
) -> Result<(), Error> {
    let counter = layout.header.counter;
    let (text, tag) = layout.parts(sealed)?;
    let Some(trial) = trial else {
        return key.open(counter, associated, text, tag).inspect_err(|_| layout.zero(sealed));
    };
    trial.resize(text.len(), 0);
    key.open_into(counter, associated, text, tag, trial)?;
    text.copy_from_slice(trial);
    trial.as_mut_slice().zeroize();
    Ok(())
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
}

impl Pending<'_> {
    /// The message.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The sender's window as it will be.
    pub fn window(&self) -> WindowState {
        let (slot, epoch) = (self.opened.slot(), self.opened.epoch());
        let present = self.opener.windows.get(slot).filter(|window| window.epoch() == epoch);
        let mut window = present.copied().unwrap_or_else(|| Window::new(epoch));
        window.accept(self.opened.counter());
        WindowState { slot, window }
    }

    /// Moves the sender's window, and the group's epoch if the message was of a later one.
    pub fn accept(self) -> Opened {
        let Opener { epochs, windows, .. } = self.opener;
        let (slot, epoch) = (self.opened.slot(), self.opened.epoch());
        if epoch > epochs.newest() {
            // The trial has found room and the secret, so that this cannot fail.
            let advanced = epochs.advance(epoch);
            debug_assert_eq!(advanced, Ok(()));
        }
        let window = windows.get_or_insert_with(slot, || Window::new(epoch));
        if window.epoch() != epoch {
            *window = Window::new(epoch);
        }
        window.accept(self.opened.counter());
        self.opened
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pending").field("opened", &self.opened).finish_non_exhaustive()
    }
}
