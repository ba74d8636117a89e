//! A live reader with a disk, which stops and starts again, and what neighbours send it.

use std::collections::{BTreeMap, BTreeSet};

use super::world::*;
use sealane_seal::*;

/// A message or an announcement that comes over a link.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) sealed: Sealed,
    pub(crate) is_announcement: bool,
}

/// The fate of a message that opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The state that it asks to store is stored, then it is accepted.
    Accept,
    /// The state that it asks to store is stored, and then the reader goes on without it.
    Drop,
    /// The state that it asks to store is stored, and then the reader stops and starts again.
    Crash,
    /// The reader stops before anything is stored, and starts again.
    CrashEarly,
}

/// The name of a message: no two accepted messages share it.
type Name = (Epoch, Slot, SenderContext, u64);

pub(crate) struct Node {
    group: Group,
    epochs: Epochs,
    opener: Opener,
    /// The newest state of each slot, as it was stored.
    disk: BTreeMap<Slot, [u8; SessionState::BYTES]>,
    pub(crate) now_ms: u64,
    accepted: BTreeSet<Name>,
    /// How often something was stored for a message that waited.
    pub(crate) stored: usize,
    /// The state that is being stored before a message needs it, and how many messages come
    /// meanwhile.
    ahead: Option<(SessionState, usize)>,
    /// How many messages come until such a state is stored.
    pub(crate) slowness: usize,
    /// How often such a state was asked for.
    pub(crate) asked: usize,
}

impl Node {
    pub(crate) fn new(group: Group, epochs: Epochs) -> Node {
        let opener = opener(group, &epochs);
        let (disk, accepted) = (BTreeMap::new(), BTreeSet::new());
        let (now_ms, ahead) = (1_000_000, None);
        let [stored, slowness, asked] = [0; 3];
        Node { group, epochs, opener, disk, now_ms, accepted, stored, ahead, slowness, asked }
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
        self.write_on();
        let (state, opened) = if sent.is_announcement {
            let mut announced = self.opener.open_announcement(&attached, &mut bytes)?;
            let state = announced.to_store(self.now_ms);
            if state.is_some() {
                write(&mut self.disk, &mut self.ahead);
            }
            (state, is_accepted.then(|| announced.accept()))
        } else {
            let form = sent.sealed.form;
            let mut pending = self.opener.open_live(form, &attached, &mut bytes, clear)?;
            if pending.waits_for_store(self.now_ms)
                && let Some(state) = write(&mut self.disk, &mut self.ahead)
            {
                pending.stored_ahead(&state);
            }
            let state = pending.to_store(self.now_ms);
            (state, is_accepted.then(|| pending.accept()))
        };
        if let Some(state) = state.filter(|_| fate != Fate::CrashEarly) {
            self.disk.insert(state.slot(), state.to_bytes());
            self.stored += 1;
        }
        if fate == Fate::Crash {
            write(&mut self.disk, &mut self.ahead);
        }
        if matches!(fate, Fate::Crash | Fate::CrashEarly) {
            self.restart();
        }
        if let (Some(opened), None) = (&opened, &self.ahead) {
            let state = self.opener.to_store_ahead(opened.slot(), self.now_ms);
            self.asked += usize::from(state.is_some());
            self.ahead = state.map(|state| (state, self.slowness));
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

    /// One more message comes while a state is stored ahead.
    fn write_on(&mut self) {
        match &mut self.ahead {
            Some((_, left @ 1..)) => *left -= 1,
            _ => {
                if let Some(state) = write(&mut self.disk, &mut self.ahead) {
                    self.opener.stored_ahead(&state);
                }
            }
        }
    }

    /// Starts again with what is on the disk; what was to be stored ahead is lost.
    pub(crate) fn restart(&mut self) {
        self.ahead = None;
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

/// Stores what was to be stored ahead, and gives it.
fn write(
    disk: &mut BTreeMap<Slot, [u8; SessionState::BYTES]>,
    ahead: &mut Option<(SessionState, usize)>,
) -> Option<SessionState> {
    let (state, _) = ahead.take()?;
    disk.insert(state.slot(), state.to_bytes());
    Some(state)
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
