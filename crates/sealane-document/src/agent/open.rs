//! The frames that a member takes for a document: those that open, by sender, epoch and class.

use std::collections::{BTreeMap, BTreeSet};

use sealane_codec::document::decode;
use sealane_frame::{FrameError, FrameKind, FrameView, GroupTag, PeerTag, open_stored};
use sealane_message::DataType;
use sealane_message::document::{Document, EmergencyCall};
use sealane_seal::{Binding, Class, Epoch, Error, Group, Opener, Slot, Term};

use super::{DocumentAgent, DocumentGroupKeys, OriginDuty, opener};
use crate::entry::{DocumentStamp, RegisterEntry};
use crate::exchange::WantedFrame;
use crate::limits::{MAX_AHEAD, MAX_REFUSED_FRAMES, is_register, kept};
use crate::shelf::DocumentShelf;
use crate::{ShelfKeeper, stream_name};

/// Opens the frames of a group.
pub(super) struct DocumentFrameOpener {
    group: Group,
    own: Slot,
    opener: Opener,
    newest: Epoch,
    terms: Vec<Term>,
    /// Frames that neighbours show and this machine cannot take, so that they are not asked for
    /// again.
    refused: BTreeSet<(Slot, DataType, DocumentStamp)>,
}

/// Why a frame is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentFrameRefusal {
    StrangeGroup,
    UnknownEpoch,
    NoMember,
    StaleEpoch,
    Leaving,
    BelowFloor,
    Forged,
    NoDocument,
    MalformedBody,
    TooFarAhead,
    /// It was refused before.
    Again,
}

impl DocumentFrameOpener {
    pub(super) fn new(keys: DocumentGroupKeys) -> Result<Self, Error> {
        let newest = keys.epochs.newest();
        let opener = opener(keys.group, keys.epochs, &keys.terms)?;
        let (group, own, terms) = (keys.group, keys.own, keys.terms);
        Ok(Self { group, own, opener, newest, terms, refused: BTreeSet::new() })
    }

    pub(super) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    pub(super) fn newest(&self) -> Epoch {
        self.newest
    }

    /// Whether who has a slot now had it in that epoch.
    pub(super) fn is_member(&self, origin: Slot, epoch: Epoch) -> bool {
        let mut now = self.terms.iter().filter(|one| one.slot == origin && one.holds(self.newest));
        now.any(|term| term.since <= epoch)
    }

    pub(super) fn has_refused(&self, one: &WantedFrame) -> bool {
        self.refused.contains(&(one.origin, one.data_type, one.stamp))
    }

    /// The body of a frame.
    pub(super) fn body(&mut self, entry: &RegisterEntry) -> Result<Vec<u8>, FrameError> {
        let mut frame = entry.frame().to_vec();
        let group = FrameView::parse(&frame)?.header().group();
        let binding = Binding::stream(&stream_name(group, entry.data_type));
        let stored = open_stored(&mut self.opener, self.newest, &binding, &mut frame)?;
        Ok(stored.body.to_vec())
    }

    /// The call that a frame raises or clears.
    pub(super) fn call_of(&mut self, entry: &RegisterEntry) -> Option<EmergencyCall> {
        let body = self.body(entry).ok()?;
        match decode(entry.data_type, body.get(URGENT_TIME_BYTES..)?).ok()? {
            Document::Emergency(raised) => {
                Some(EmergencyCall { slot: entry.origin.number(), number: raised.number })
            }
            Document::Clear(call) => Some(call),
            _ => None,
        }
    }

    /// The call that a clear that leaves is about, if that call is kept.
    pub(super) fn ended_by(
        &mut self,
        shelf: &DocumentShelf,
        group: GroupTag,
        clear: &RegisterEntry,
    ) -> Option<EmergencyCall> {
        let call = self.call_of(clear)?;
        let mut raised = shelf.registers(group)?.of(Slot::new(call.slot)?, DataType::EMERGENCY);
        (self.call_of(raised.next()?)? == call).then_some(call)
    }

    /// Whether a frame may be looked into at all: asked before any key is used.
    fn check(&self, entry: &RegisterEntry, class: Class) -> Result<(), DocumentFrameRefusal> {
        if entry.stamp.epoch > self.newest {
            return Err(DocumentFrameRefusal::UnknownEpoch);
        }
        if !self.is_member(entry.origin, entry.stamp.epoch) {
            return Err(DocumentFrameRefusal::NoMember);
        }
        if self.is_stale(entry.stamp.epoch, class) {
            return Err(DocumentFrameRefusal::StaleEpoch);
        }
        Ok(())
    }

    /// Whether somebody who is a member no longer could have written that in another's name: who
    /// was removed still has the secrets of the epochs before, and no signing key but the own one.
    fn is_stale(&self, epoch: Epoch, class: Class) -> bool {
        let removals = self.terms.iter().filter_map(|term| term.until);
        let last = removals.filter(|until| *until <= self.newest).max();
        class != Class::Signed && last.is_some_and(|last| epoch < last)
    }

    /// Whether what was kept before orders were obeyed is kept on.
    pub(super) fn keeps(&self, entry: &RegisterEntry) -> bool {
        let is_stale =
            entry.origin != self.own && self.is_stale(entry.stamp.epoch, class_of(entry));
        self.is_member(entry.origin, entry.stamp.epoch) && !is_stale
    }

    /// Whether the origin on this machine seals an own frame anew: one that others would not take
    /// any more, and what tells its present state, for those who do not have older secrets.
    pub(super) fn is_to_reseal(&self, entry: &RegisterEntry) -> bool {
        let (epoch, class) = (entry.stamp.epoch, class_of(entry));
        let is_own = entry.origin == self.own && epoch < self.newest;
        is_own && (is_register(entry.data_type) || self.is_stale(epoch, class))
    }
}

/// Which call was over by a clear that leaves, as the reader of its group finds out.
pub(super) fn ended_by(
    readers: &mut BTreeMap<GroupTag, DocumentFrameOpener>,
) -> impl FnMut(&DocumentShelf, GroupTag, &RegisterEntry) -> Option<EmergencyCall> {
    |shelf, group, clear| readers.get_mut(&group)?.ended_by(shelf, group, clear)
}

/// The class of a frame that is kept, which is a frame.
fn class_of(entry: &RegisterEntry) -> Class {
    let view = FrameView::parse(entry.frame());
    view.map_or(Class::Authenticated, |view| view.header().class())
}

impl DocumentAgent {
    /// Whether a frame is to be taken; `false` if it is here already.
    pub(super) fn admit(&mut self, frame: &[u8]) -> Result<bool, DocumentFrameRefusal> {
        let view = FrameView::parse(frame).map_err(|_| DocumentFrameRefusal::NoDocument)?;
        let (header, class) = (*view.header(), view.header().class());
        let group = header.group();
        let newest = self.readers.get(&group).map_or(Epoch(0), |reader| reader.newest);
        let entry = self.store.entry_of(frame).map_err(|_| DocumentFrameRefusal::NoDocument)?.1;
        if self.store.place(group, entry.mark()).is_some() {
            return Ok(false);
        }
        let to = (header.kind(), header.destination());
        if to != (FrameKind::Message, PeerTag::BROADCAST) || kept(entry.data_type) == 0 {
            return Err(DocumentFrameRefusal::NoDocument);
        }
        if self.store.keeper() == ShelfKeeper::Relay {
            return self.check_stranger(&entry, group, header.source()).map(|()| true);
        }
        if self.refused.contains(&entry.mark()) {
            return Err(DocumentFrameRefusal::Again);
        }
        let reader = self.readers.get_mut(&group).ok_or(DocumentFrameRefusal::StrangeGroup)?;
        reader.check(&entry, class)?;
        if self.leaving.get(&group).into_iter().flatten().any(|one| one.has_sealed(&entry)) {
            return Err(DocumentFrameRefusal::Leaving);
        }
        let admitted = self.policy.admits(entry.data_type, class, &reader.group);
        admitted.map_err(|_| DocumentFrameRefusal::BelowFloor)?;
        self.counters.opened += 1;
        let body = reader.body(&entry).map_err(|_| DocumentFrameRefusal::Forged)?;
        check_body(entry.data_type, &body)?;
        if entry.origin == reader.own && entry.stamp.epoch == newest {
            let known = self.store.registers(group).into_iter().flat_map(|all| all.iter());
            let ours = known.filter(|one| one.origin == entry.origin);
            let last = ours.filter(|one| one.stamp.epoch == newest).map(|one| one.stamp.counter);
            let next = last.max().map_or(0, |last| last + 1);
            if entry.stamp.counter.saturating_sub(next) > MAX_AHEAD {
                return Err(DocumentFrameRefusal::TooFarAhead);
            }
            self.counters.ahead += u64::from(entry.stamp.counter >= next);
            self.duties.push_back(OriginDuty::GoOn { group, counter: entry.stamp.counter });
        }
        Ok(true)
    }

    /// Whether a frame says that it is of a member of a group that this machine keeps for. It may
    /// be a lie; but who makes up groups and members takes nobody's room.
    fn check_stranger(
        &self,
        entry: &RegisterEntry,
        group: GroupTag,
        source: PeerTag,
    ) -> Result<(), DocumentFrameRefusal> {
        let members = self.strangers.get(&group).ok_or(DocumentFrameRefusal::StrangeGroup)?;
        let is_member = members.get(&entry.origin) == Some(&source);
        if is_member { Ok(()) } else { Err(DocumentFrameRefusal::NoMember) }
    }

    /// Counts what is refused by its reason, and remembers what no later order can change.
    pub(super) fn refuse(&mut self, refusal: DocumentFrameRefusal, frame: &[u8]) {
        let counters = &mut self.counters;
        let counter = match refusal {
            DocumentFrameRefusal::StrangeGroup => &mut counters.strange_group,
            DocumentFrameRefusal::UnknownEpoch => &mut counters.unknown_epoch,
            DocumentFrameRefusal::NoMember => &mut counters.no_member,
            DocumentFrameRefusal::StaleEpoch => &mut counters.stale_epoch,
            DocumentFrameRefusal::Leaving => &mut counters.leaving,
            DocumentFrameRefusal::BelowFloor => &mut counters.below_floor,
            DocumentFrameRefusal::Forged => &mut counters.forged,
            DocumentFrameRefusal::NoDocument => &mut counters.no_document,
            DocumentFrameRefusal::MalformedBody => &mut counters.malformed_body,
            DocumentFrameRefusal::TooFarAhead => &mut counters.too_far_ahead,
            DocumentFrameRefusal::Again => &mut counters.repeats,
        };
        *counter += 1;
        let may_change = self.store.keeper() == ShelfKeeper::Relay;
        let is_open = matches!(
            refusal,
            DocumentFrameRefusal::UnknownEpoch
                | DocumentFrameRefusal::Again
                | DocumentFrameRefusal::StrangeGroup
        );
        if is_open || may_change {
            return;
        }
        let Ok((group, entry)) = self.store.entry_of(frame) else { return };
        if self.refused.len() == MAX_REFUSED_FRAMES {
            self.refused.pop_front();
        }
        self.refused.push_back(entry.mark());
        if let Some(reader) = self.readers.get_mut(&group) {
            if reader.refused.len() == MAX_REFUSED_FRAMES {
                reader.refused.pop_first();
            }
            reader.refused.insert((entry.origin, entry.data_type, entry.stamp));
        }
    }
}

/// Whether a body has the form of its type. Those of applications and chat have their own.
fn check_body(data_type: DataType, body: &[u8]) -> Result<(), DocumentFrameRefusal> {
    if data_type == DataType::CHAT || data_type.number() >= 64 {
        return Ok(());
    }
    let body = match data_type.is_urgent() {
        true => body.get(URGENT_TIME_BYTES..).ok_or(DocumentFrameRefusal::MalformedBody)?,
        false => body,
    };
    decode(data_type, body).map(|_| ()).map_err(|_| DocumentFrameRefusal::MalformedBody)
}

/// The time that stands before the body of an urgent message: `spec/frame.md`.
const URGENT_TIME_BYTES: usize = 8;
