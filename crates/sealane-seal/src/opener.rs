use std::fmt;

use crate::aead::Key;
use crate::associated::Associated;
use crate::header::{Form, KeyId, SframeHeader};
use crate::limits::{MAX_LIVE_EPOCHS_BEHIND, MAX_TRIALS, SIGNATURE_BYTES};
use crate::session::{SenderSession, SessionState};
use crate::{
    Announcement, Attached, Class, Epoch, EpochSecret, Epochs, Error, Group, SenderContext, Slot,
    derive,
};

mod layout;
mod live;
mod slots;
mod terms;

pub use layout::OpenedMessage;
use layout::SealLayout;
pub use live::{PendingAnnouncement, PendingOpen};
use slots::{KeyOf, SlotKeys, SlotTable};
pub use terms::Term;
use terms::Terms;

/// A member of a group that reads, live or from a store.
pub struct Opener {
    group: Group,
    own: Option<Slot>,
    epochs: Epochs,
    live_floor: Epoch,
    sessions: SlotTable<SenderSession>,
    keys: SlotKeys,
    terms: Terms,
    associated: Associated,
    /// Announcements of unknown contexts that may still be tried.
    trials: u32,
}

impl Opener {
    /// A reader. `own` is the slot that it sends in, if it sends: live messages of that slot are
    /// refused, since only a reflection or a copy can send them.
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
            sessions: SlotTable::default(),
            keys: SlotKeys::default(),
            terms: Terms::default(),
            associated: Associated::new(group.id()),
            trials: MAX_TRIALS,
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

    /// Tells who the members are and were, in place of what was told before. From then on nothing
    /// opens of a slot in an epoch in which nobody had it. Class S opens only of members.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if a key is no Ed25519 public key.
    pub fn set_terms(&mut self, terms: impl IntoIterator<Item = Term>) -> Result<(), Error> {
        self.terms.set(terms)
    }

    /// Opens a message from a store, where it stands in `sealed`. `clear` is the length of the body
    /// before the SFrame header in class A, 0 in the others. Nothing is remembered: whether it was
    /// read before is for the reader's own store to say, by the name of [`OpenedMessage`].
    ///
    /// `near` is the epoch that the reader's cursor stands in.
    ///
    /// # Errors
    ///
    /// All faults of a peer but those of live messages. If a key was applied, the body is zeroed.
    pub fn open_stored(
        &mut self,
        near: Epoch,
        form: Form,
        attached: &Attached<'_>,
        sealed: &mut [u8],
        clear: usize,
    ) -> Result<OpenedMessage, Error> {
        let layout = SealLayout::find(self.group, form, near, sealed, clear)?;
        let epoch = layout.header.key.epoch(near);
        self.admit(layout.header.key.slot, epoch)?;
        self.open(epoch, attached, sealed, &layout)?;
        Ok(layout.opened(self.group.id(), epoch, attached.context))
    }

    /// Whether a message of that slot and epoch can open at all: asked before anything is derived.
    fn admit(&self, slot: Slot, epoch: Epoch) -> Result<(), Error> {
        self.epochs.secret(epoch).ok_or(Error::EpochUnknown)?;
        self.terms.check(slot, epoch)
    }

    /// Opens what stands at `layout`, in an epoch that is admitted.
    fn open(
        &mut self,
        epoch: Epoch,
        attached: &Attached<'_>,
        sealed: &mut [u8],
        layout: &SealLayout,
    ) -> Result<(), Error> {
        let is_clear = layout.header.key.class == Class::Authenticated;
        let clear = sealed.get(..layout.clear).filter(|_| is_clear);
        self.associated.fill(&layout.header, attached, clear)?;
        self.apply(KeyOf { epoch, context: attached.context }, sealed, layout)
    }

    /// Applies the key of an epoch and a context.
    #[inline]
    fn apply(&mut self, of: KeyOf, sealed: &mut [u8], layout: &SealLayout) -> Result<(), Error> {
        let id = layout.header.key;
        let associated = self.associated.bytes();
        let mut derived = None;
        let opened = match self.keys.get(id, of) {
            Some(key) => unlock(key, associated, sealed, layout),
            None => {
                let key = derive_key(&self.epochs, self.group, id, of)?;
                unlock(derived.insert(key), associated, sealed, layout)
            }
        };
        let opened = opened.and_then(|()| self.verify(of.epoch, sealed, layout));
        opened.inspect_err(|_| layout.zero(sealed))?;
        if let Some(key) = derived {
            self.keys.set(id, of, key);
        }
        Ok(())
    }

    /// Verifies the signature behind the plaintext of class S.
    fn verify(
        &mut self,
        epoch: Epoch,
        sealed: &mut [u8],
        layout: &SealLayout,
    ) -> Result<(), Error> {
        if layout.header.key.class != Class::Signed {
            return Ok(());
        }
        let signer = self.terms.key(layout.header.key.slot, epoch).ok_or(Error::NotMember)?;
        let (text, _) = layout.parts(sealed)?;
        let (body, signature) =
            text.split_last_chunk::<SIGNATURE_BYTES>().ok_or(Error::Truncated)?;
        self.associated.signed(epoch, body, |signed| signer.verify(signed, signature))
    }
}

fn derive_key(epochs: &Epochs, group: Group, id: KeyId, of: KeyOf) -> Result<Key, Error> {
    let secret = epochs.secret(of.epoch).ok_or(Error::EpochUnknown)?;
    derive::key(group.suite(), secret.expose(), of.context, id)
}

/// Decrypts in place.
#[inline]
fn unlock(
    key: &Key,
    associated: &[u8],
    sealed: &mut [u8],
    layout: &SealLayout,
) -> Result<(), Error> {
    let (text, tag) = layout.parts(sealed)?;
    key.open(layout.header.counter, associated, text, tag)
}

impl fmt::Debug for Opener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Opener");
        out.field("group", &self.group).field("own", &self.own).field("epochs", &self.epochs);
        out.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
