//! A live reader with a disk, which stops and starts again, and what neighbours send it.

use std::collections::{BTreeMap, BTreeSet};

use super::world::*;
use sealane_seal::*;

/// What comes over a link: a message, or an announcement.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) sealed: Sealed,
    pub(crate) is_announcement: bool,
}

/// What becomes of a message that opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// What it asks to store is stored, then it is accepted.
    Accept,
    /// What it asks to store is stored, and then the reader goes on without it.
    Drop,
    /// What it asks to store is stored, and then the reader stops and starts again.
    Crash,
    /// The reader stops before anything is stored, and starts again.
    CrashEarly,
}

/// What no two accepted messages share.
type Name = (Epoch, Slot, SenderContext, u64);

pub(crate) struct Node {
    group: Group,
    epochs: Epochs,
    opener: Opener,
    /// The newest state of each slot, as it was stored.
    disk: BTreeMap<Slot, [u8; SessionState::BYTES]>,
    pub(crate) now_ms: u64,
    accepted: BTreeSet<Name>,
    /// How often something was stored.
    pub(crate) stored: usize,
}

impl Node {
    pub(crate) fn new(group: Group, epochs: Epochs) -> Node {
        let opener = opener(group, &epochs);
        let (disk, accepted) = (BTreeMap::new(), BTreeSet::new());
        Node { group, epochs, opener, disk, now_ms: 1_000_000, accepted, stored: 0 }
    }

    /// Opens what came and does as `fate` says. Gives whether it was accepted.
    ///
    /// # Panics
    ///
    /// If it accepts what it has accepted before, through all its starts.
    pub(crate) fn take(&mut self, sent: &Sent, fate: Fate) -> Result<bool, Error> {
        self.opener.allow_trials();
        let mut bytes = sent.sealed.bytes.clone();
        let (attached, clear) = (sent.sealed.attached(), sent.sealed.clear);
        let is_accepted = fate == Fate::Accept;
        let (state, opened) = if sent.is_announcement {
            let mut announced = self.opener.open_announcement(&attached, &mut bytes)?;
            let state = announced.to_store(self.now_ms);
            (state, is_accepted.then(|| announced.accept()))
        } else {
            let form = sent.sealed.form;
            let mut pending = self.opener.open_live(form, &attached, &mut bytes, clear)?;
            let state = pending.to_store(self.now_ms);
            (state, is_accepted.then(|| pending.accept()))
        };
        if let Some(state) = state.filter(|_| fate != Fate::CrashEarly) {
            self.disk.insert(state.slot(), state.to_bytes());
            self.stored += 1;
        }
        if matches!(fate, Fate::Crash | Fate::CrashEarly) {
            self.restart();
        }
        if let Some(opened) = opened {
            let name = (opened.epoch(), opened.slot(), opened.context(), opened.counter());
            assert!(self.accepted.insert(name), "accepted twice: {name:?}");
        }
        Ok(is_accepted)
    }

    /// How many of these it accepts, one after the other.
    pub(crate) fn play<'a>(&mut self, recorded: impl IntoIterator<Item = &'a Sent>) -> usize {
        let taken = recorded.into_iter().filter(|sent| self.take(sent, Fate::Accept).is_ok());
        taken.count()
    }

    /// Starts again with what is on the disk.
    pub(crate) fn restart(&mut self) {
        self.opener = opener(self.group, &self.epochs);
        for state in self.disk.values() {
            self.opener.restore(&SessionState::from_bytes(state).unwrap());
        }
    }

    /// The ceiling of a slot's session, as it is stored.
    pub(crate) fn ceiling(&self, slot: Slot) -> u64 {
        SessionState::from_bytes(&self.disk[&slot]).unwrap().ceiling()
    }

    pub(crate) fn enter(&mut self, epoch: Epoch, secret: &EpochSecret) {
        self.epochs.insert(epoch, secret.clone()).unwrap();
        self.opener.insert(epoch, secret.clone()).unwrap();
    }
}

/// One start of a sender, as it is heard on a link.
pub(crate) struct Start {
    sealer: Sealer,
    start: u64,
}

impl Start {
    pub(crate) fn new(group: Group, slot: Slot, epochs: &Epochs, start: u64) -> Start {
        let context = SenderContext((start << 8 | u64::from(slot.number())).to_be_bytes());
        Start { sealer: sealer_of(group, slot, epochs, context, 0), start }
    }

    pub(crate) fn announcement(&mut self) -> Sent {
        Sent { sealed: announcement(&mut self.sealer, self.start), is_announcement: true }
    }

    pub(crate) fn message(&mut self, class: Class) -> Sent {
        let sealed = seal(&mut self.sealer, class, Form::Full, META, BODY);
        Sent { sealed, is_announcement: false }
    }

    /// An announcement, and messages of all classes of a group, with an announcement again for a
    /// neighbour that came later.
    pub(crate) fn record(mut self, messages: usize) -> Vec<Sent> {
        let mut all = vec![self.announcement()];
        for index in 0..messages {
            all.push(self.message(Class::ALL[index % 3]));
            if index == messages / 2 {
                all.push(self.announcement());
            }
        }
        all
    }
}
