//! The frames that a member takes for a document: those that open, by sender, epoch and class.

use std::collections::{BTreeMap, BTreeSet};

use sealane_codec::document::decode;
use sealane_frame::{FrameError, FrameView, GroupTag, Kind, PeerTag, open_stored};
use sealane_message::DataType;
use sealane_message::document::{Call, Document};
use sealane_seal::{Binding, Class, Epoch, Error, Group, Opener, Slot, Term};

use super::{Agent, Duty, GroupKeys, REFUSED_MAX, opener};
use crate::entry::{Entry, Stamp};
use crate::exchange::Wanted;
use crate::limits::{MAX_AHEAD, is_register, kept};
use crate::shelf::Shelf;
use crate::{Keeper, stream_name};

/// Opens the frames of a group.
pub(super) struct Reader {
    group: Group,
    own: Slot,
    opener: Opener,
    newest: Epoch,
    terms: Vec<Term>,
    /// Frames that neighbours show and this machine cannot take, so that they are not asked for
    /// again.
    refused: BTreeSet<(Slot, DataType, Stamp)>,
}

/// Why a frame is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
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

impl Reader {
    pub(super) fn new(keys: GroupKeys) -> Result<Self, Error> {
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

    pub(super) fn has_refused(&self, one: &Wanted) -> bool {
        self.refused.contains(&(one.origin, one.data_type, one.stamp))
    }

    /// The body of a frame.
    pub(super) fn body(&mut self, entry: &Entry) -> Result<Vec<u8>, FrameError> {
        let mut frame = entry.frame().to_vec();
        let group = FrameView::parse(&frame)?.header().group();
        let binding = Binding::stream(&stream_name(group, entry.data_type));
        let stored = open_stored(&mut self.opener, self.newest, &binding, &mut frame)?;
        Ok(stored.body.to_vec())
    }

    /// The call that a frame raises or clears.
    pub(super) fn call_of(&mut self, entry: &Entry) -> Option<Call> {
        let body = self.body(entry).ok()?;
        match decode(entry.data_type, body.get(URGENT_TIME_BYTES..)?).ok()? {
            Document::Emergency(raised) => {
                Some(Call { slot: entry.origin.number(), number: raised.number })
            }
            Document::Clear(call) => Some(call),
            _ => None,
        }
    }

    /// The call that a clear that leaves is about, if that call is kept.
    pub(super) fn ended_by(
        &mut self,
        shelf: &Shelf,
        group: GroupTag,
        clear: &Entry,
    ) -> Option<Call> {
        let call = self.call_of(clear)?;
        let mut raised = shelf.registers(group)?.of(Slot::new(call.slot)?, DataType::EMERGENCY);
        (self.call_of(raised.next()?)? == call).then_some(call)
    }

    /// Whether a frame may be looked into at all: asked before any key is used.
    fn check(&self, entry: &Entry, class: Class) -> Result<(), Refusal> {
        if entry.stamp.epoch > self.newest {
            return Err(Refusal::UnknownEpoch);
        }
        if !self.is_member(entry.origin, entry.stamp.epoch) {
            return Err(Refusal::NoMember);
        }
        if self.is_stale(entry.stamp.epoch, class) {
            return Err(Refusal::StaleEpoch);
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
    pub(super) fn keeps(&self, entry: &Entry) -> bool {
        let is_stale =
            entry.origin != self.own && self.is_stale(entry.stamp.epoch, class_of(entry));
        self.is_member(entry.origin, entry.stamp.epoch) && !is_stale
    }

    /// Whether the origin on this machine seals an own frame anew: one that others would not take
    /// any more, and what tells its present state, for those who do not have older secrets.
    pub(super) fn is_to_reseal(&self, entry: &Entry) -> bool {
        let (epoch, class) = (entry.stamp.epoch, class_of(entry));
        let is_own = entry.origin == self.own && epoch < self.newest;
        is_own && (is_register(entry.data_type) || self.is_stale(epoch, class))
    }
}

/// Which call was over by a clear that leaves, as the reader of its group finds out.
pub(super) fn ended_by(
    readers: &mut BTreeMap<GroupTag, Reader>,
) -> impl FnMut(&Shelf, GroupTag, &Entry) -> Option<Call> {
    |shelf, group, clear| readers.get_mut(&group)?.ended_by(shelf, group, clear)
}

/// The class of a frame that is kept, which is a frame.
fn class_of(entry: &Entry) -> Class {
    let view = FrameView::parse(entry.frame());
    view.map_or(Class::Authenticated, |view| view.header().class())
}

impl Agent {
    /// Whether a frame is to be taken; `false` if it is here already.
    pub(super) fn admit(&mut self, frame: &[u8]) -> Result<bool, Refusal> {
        let view = FrameView::parse(frame).map_err(|_| Refusal::NoDocument)?;
        let (header, class) = (*view.header(), view.header().class());
        let group = header.group();
        let newest = self.readers.get(&group).map_or(Epoch(0), |reader| reader.newest);
        let entry = self.store.entry_of(frame).map_err(|_| Refusal::NoDocument)?.1;
        if self.store.place(group, entry.mark()).is_some() {
            return Ok(false);
        }
        let to = (header.kind(), header.destination());
        if to != (Kind::Message, PeerTag::BROADCAST) || kept(entry.data_type) == 0 {
            return Err(Refusal::NoDocument);
        }
        if self.store.keeper() == Keeper::Relay {
            return self.check_stranger(&entry, group, header.source()).map(|()| true);
        }
        if self.refused.contains(&entry.mark()) {
            return Err(Refusal::Again);
        }
        let reader = self.readers.get_mut(&group).ok_or(Refusal::StrangeGroup)?;
        reader.check(&entry, class)?;
        if self.leaving.get(&group).into_iter().flatten().any(|one| one.has_sealed(&entry)) {
            return Err(Refusal::Leaving);
        }
        let admitted = self.policy.admits(entry.data_type, class, &reader.group);
        admitted.map_err(|_| Refusal::BelowFloor)?;
        self.counters.opened += 1;
        let body = reader.body(&entry).map_err(|_| Refusal::Forged)?;
        check_body(entry.data_type, &body)?;
        if entry.origin == reader.own && entry.stamp.epoch == newest {
            let known = self.store.registers(group).into_iter().flat_map(|all| all.iter());
            let ours = known.filter(|one| one.origin == entry.origin);
            let last = ours.filter(|one| one.stamp.epoch == newest).map(|one| one.stamp.counter);
            let next = last.max().map_or(0, |last| last + 1);
            if entry.stamp.counter.saturating_sub(next) > MAX_AHEAD {
                return Err(Refusal::TooFarAhead);
            }
            self.counters.ahead += u64::from(entry.stamp.counter >= next);
            self.duties.push_back(Duty::GoOn { group, counter: entry.stamp.counter });
        }
        Ok(true)
    }

    /// Whether a frame says that it is of a member of a group that this machine keeps for. It may
    /// be a lie; but who makes up groups and members takes nobody's room.
    fn check_stranger(
        &self,
        entry: &Entry,
        group: GroupTag,
        source: PeerTag,
    ) -> Result<(), Refusal> {
        let members = self.strangers.get(&group).ok_or(Refusal::StrangeGroup)?;
        let is_member = members.get(&entry.origin) == Some(&source);
        if is_member { Ok(()) } else { Err(Refusal::NoMember) }
    }

    /// Counts what is refused by its reason, and remembers what no later order can change.
    pub(super) fn refuse(&mut self, refusal: Refusal, frame: &[u8]) {
        let counters = &mut self.counters;
        let counter = match refusal {
            Refusal::StrangeGroup => &mut counters.strange_group,
            Refusal::UnknownEpoch => &mut counters.unknown_epoch,
            Refusal::NoMember => &mut counters.no_member,
            Refusal::StaleEpoch => &mut counters.stale_epoch,
            Refusal::Leaving => &mut counters.leaving,
            Refusal::BelowFloor => &mut counters.below_floor,
            Refusal::Forged => &mut counters.forged,
            Refusal::NoDocument => &mut counters.no_document,
            Refusal::MalformedBody => &mut counters.malformed_body,
            Refusal::TooFarAhead => &mut counters.too_far_ahead,
            Refusal::Again => &mut counters.repeats,
        };
        *counter += 1;
        let may_change = self.store.keeper() == Keeper::Relay;
        let is_open =
            matches!(refusal, Refusal::UnknownEpoch | Refusal::Again | Refusal::StrangeGroup);
        if is_open || may_change {
            return;
        }
        let Ok((group, entry)) = self.store.entry_of(frame) else { return };
        if self.refused.len() == REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back(entry.mark());
        if let Some(reader) = self.readers.get_mut(&group) {
            if reader.refused.len() == REFUSED_MAX {
                reader.refused.pop_first();
            }
            reader.refused.insert((entry.origin, entry.data_type, entry.stamp));
        }
    }
}

/// Whether a body has the form of its type. Those of applications and chat have their own.
fn check_body(data_type: DataType, body: &[u8]) -> Result<(), Refusal> {
    if data_type == DataType::CHAT || data_type.number() >= 64 {
        return Ok(());
    }
    let body = match data_type.is_urgent() {
        true => body.get(URGENT_TIME_BYTES..).ok_or(Refusal::MalformedBody)?,
        false => body,
    };
    decode(data_type, body).map(|_| ()).map_err(|_| Refusal::MalformedBody)
}

/// The time that stands before the body of an urgent message: `spec/frame.md`.
const URGENT_TIME_BYTES: usize = 8;
