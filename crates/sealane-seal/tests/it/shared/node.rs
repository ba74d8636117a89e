//! A live reader that stops and starts again, and the neighbours that send to it.

use std::collections::BTreeSet;

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
    Accept,
    /// The reader goes on without it.
    Drop,
    /// The reader stops before it accepts it, and starts again.
    Crash,
}

/// The name of a message: no two accepted messages share it.
type Name = (Epoch, Slot, SenderContext, bool, u64);

pub(crate) struct Node {
    group: Group,
    epochs: Epochs,
    opener: Opener,
    accepted: BTreeSet<Name>,
    /// How many questions it has drawn.
    drawn: u64,
    /// A forged frame was accepted. A forger of unsigned frames can have any of them accepted once
    /// more, and gains nothing by that: it can make them.
    is_forged: bool,
}

impl Node {
    pub(crate) fn new(group: Group, epochs: Epochs) -> Node {
        let (opener, accepted) = (opener(group, &epochs), BTreeSet::new());
        let mut node = Node { group, epochs, opener, accepted, drawn: 0, is_forged: false };
        node.opener.require_answers();
        node.ask();
        node
    }

    /// The question that senders hear of it at present.
    pub(crate) fn question(&self) -> ReaderQuestion {
        ReaderQuestion(self.drawn.to_be_bytes())
    }

    pub(crate) fn ask(&mut self) {
        self.drawn += 1;
        self.opener.ask(self.question());
    }

    pub(crate) fn lacks_answers(&self) -> bool {
        self.opener.lacks_answers()
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
        let opened = if sent.is_announcement {
            let announced = self.opener.open_announcement(&attached, &mut bytes)?;
            is_accepted.then(|| announced.accept())
        } else {
            let form = sent.sealed.form;
            let pending = self.opener.open_live(form, &attached, &mut bytes, clear)?;
            is_accepted.then(|| pending.accept())
        };
        if fate == Fate::Crash {
            self.restart();
        }
        if let Some(opened) = opened {
            let is_signed = opened.class() == Class::Signed;
            let sender = (opened.epoch(), opened.slot(), opened.context());
            let name = (sender.0, sender.1, sender.2, is_signed, opened.counter());
            let is_new = self.accepted.insert(name) || self.is_forged && !is_signed;
            assert!(is_new, "accepted twice: {name:?}");
        }
        Ok(is_accepted)
    }

    /// Opens a frame that a member has forged, and accepts it: it is no message of its sender.
    pub(crate) fn forged(&mut self, forged: &Sealed) {
        self.is_forged |= forged.live(&mut self.opener).is_ok();
    }

    pub(crate) fn newest(&self) -> Epoch {
        self.epochs.newest()
    }

    /// How many of these it accepts, one after the other.
    pub(crate) fn play<'a>(&mut self, recorded: impl IntoIterator<Item = &'a Sent>) -> usize {
        let taken = recorded.into_iter().filter(|sent| self.take(sent, Fate::Accept).is_ok());
        taken.count()
    }

    /// Starts again with nothing but its keys.
    pub(crate) fn restart(&mut self) {
        self.opener = opener(self.group, &self.epochs);
        self.opener.require_answers();
        self.ask();
    }

    pub(crate) fn enter(&mut self, epoch: Epoch, secret: &EpochSecret) {
        // Epochs never go back, and one that is entered twice is the same.
        if self.epochs.newest() < epoch {
            self.epochs.insert(epoch, secret.clone()).unwrap();
            self.opener.insert(epoch, secret.clone()).unwrap();
        }
    }
}

/// One start of a sender, as it is heard on a link.
pub(crate) struct Start {
    sealer: Sealer,
    start: u64,
    group: Group,
    epochs: Epochs,
}

impl Start {
    pub(crate) fn new(group: Group, slot: Slot, epochs: &Epochs, start: u64) -> Start {
        let context = SenderContext((start << 8 | u64::from(slot.number())).to_be_bytes());
        let sealer = sealer_of(group, slot, epochs, context, 0);
        Start { sealer, start, group, epochs: epochs.clone() }
    }

    /// Its announcement, which answers that question.
    pub(crate) fn announcement(&mut self, question: ReaderQuestion) -> Sent {
        let sealed = answer(&mut self.sealer, self.start, question);
        Sent { sealed, is_announcement: true }
    }

    pub(crate) fn message(&mut self, class: Class) -> Sent {
        let sealed = seal(&mut self.sealer, class, Form::Full, META, BODY);
        Sent { sealed, is_announcement: false }
    }

    /// The counter of its next message.
    pub(crate) fn next(&self) -> u64 {
        self.sealer.next_counter().unwrap()
    }

    /// A frame in its name, as all who have the group's key can make it.
    pub(crate) fn forged(&self, counter: u64) -> Sealed {
        let (slot, context) = (self.sealer.slot(), self.sealer.context());
        let mut forger = sealer_of(self.group, slot, &self.epochs, context, counter);
        seal(&mut forger, Class::Group, Form::Full, META, b"forged")
    }

    /// An announcement, and messages of all classes of a group, with an announcement again for a
    /// neighbour that came later.
    pub(crate) fn record(&mut self, messages: usize, question: ReaderQuestion) -> Vec<Sent> {
        let mut all = vec![self.announcement(question)];
        for index in 0..messages {
            all.push(self.message(Class::ALL[index % 3]));
            if index == messages / 2 {
                all.push(self.announcement(question));
            }
        }
        all
    }
}
