//! A machine's part in the exchange: what it takes, what it tells its neighbours and what it hands
//! on.

mod open;
mod outbox;
mod peer;
mod scarce;
mod words;

use std::collections::{BTreeMap, VecDeque};

use sealane_frame::machine::DocumentAudience;
use sealane_frame::{GroupTag, PeerTag};
use sealane_message::DataType;
use sealane_message::document::EmergencyCall;
use sealane_seal::policy::{Policy, Sending};
use sealane_seal::{Epoch, Epochs, Group, Opener, Slot, Term};

use crate::entry::{FrameDigest, RegisterEntry};
use crate::exchange::{self, ExchangeKind};
use crate::limits::MAX_DOCUMENT_PEERS;
use crate::registers::{RegisterSet, TakeOutcome};
use crate::shelf::{DocumentCursor, DocumentShelf, RegisterName, ShelfKeeper};
use crate::store::DocumentDelivery;
use crate::{DocumentStore, StoreError};
use open::{DocumentFrameOpener, ended_by};
use outbox::{DocumentOutbox, ForwardReason, OutboxMessage};
use peer::ExchangePeer;
use scarce::OverviewTrickle;

/// A neighbour in the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentNeighbour {
    /// Its slot in the mesh's group.
    pub slot: Slot,
    /// Its address.
    pub tag: PeerTag,
    /// Whether it is known to be there now. If not, somebody may repeat what it has sent before
    /// this machine started.
    pub is_proven: bool,
}

/// A message for neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeMessage {
    /// The receivers.
    pub to: DocumentAudience,
    /// Whether frames of urgent types are in it.
    pub is_urgent: bool,
    /// The message.
    pub message: Vec<u8>,
}

/// The messages that a link has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxScope {
    /// Messages with frames of urgent types.
    Urgent,
    /// All messages.
    All,
}

/// The keys and the place of a member in a group.
pub struct DocumentGroupKeys {
    /// The group.
    pub group: Group,
    /// Its tag.
    pub tag: GroupTag,
    /// The member's own slot.
    pub own: Slot,
    /// The secrets that are held.
    pub epochs: Epochs,
    /// The members by slot, with the epochs of each.
    pub terms: Vec<Term>,
}

/// A member that is about to be removed, as the authority has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLeaver {
    /// Its slot.
    pub slot: Slot,
    /// The epoch that its removal ends.
    pub epoch: Epoch,
    /// Messages that it sealed in that epoch with a counter below this were sent before.
    pub mark: u64,
}

impl DocumentLeaver {
    /// Whether a frame is of this member, and was not sealed before.
    fn has_sealed(&self, entry: &RegisterEntry) -> bool {
        let is_before = entry.stamp.epoch == self.epoch && entry.stamp.counter < self.mark;
        entry.origin == self.slot && !is_before
    }
}

/// A machine's knowledge of a group of which it has no keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangerGroup {
    /// Its tag.
    pub group: GroupTag,
    /// The newest epoch: frames say the lowest byte of theirs alone.
    pub newest: Epoch,
    /// The addresses of its members.
    pub members: BTreeMap<Slot, PeerTag>,
}

/// A task of the origin on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginDuty {
    /// Go on sealing behind this counter: an own frame has it that was sealed before the state was
    /// lost.
    GoOn {
        /// The group.
        group: GroupTag,
        /// The counter.
        counter: u64,
    },
    /// Seal an own frame again in the newest epoch.
    Reseal {
        /// The group.
        group: GroupTag,
        /// The frame as it was sealed.
        entry: RegisterEntry,
    },
}

/// The counts since the start. Refused frames are counted by the reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCounters {
    /// Frames that were taken as news.
    pub taken: u64,
    /// Frames that came again.
    pub repeats: u64,
    /// Frames whose seal was tried: each frame once.
    pub opened: u64,
    /// Frames that were handed on.
    pub given: u64,
    /// Messages for neighbours.
    pub messages: u64,
    /// Frames in this member's name, ahead of all of its own that were here: it goes on behind
    /// them. Its state was lost, or a member has written in its name.
    pub ahead: u64,
    /// Refused: messages that cannot be read.
    pub malformed: u64,
    /// Refused: messages of neighbours that may not be there now, but for frames to a member.
    pub unproven: u64,
    /// Refused: of a group whose keys are not here.
    pub strange_group: u64,
    /// Refused: sealed in an epoch that is not known yet.
    pub unknown_epoch: u64,
    /// Refused: sealed by who is no member, or was none then.
    pub no_member: u64,
    /// Refused: sealed in an epoch that is over, by a class that a removed member could write.
    pub stale_epoch: u64,
    /// Refused: sealed by who is about to be removed, and not before.
    pub leaving: u64,
    /// Refused: of a class below the floor of its type.
    pub below_floor: u64,
    /// Refused: a seal that does not open.
    pub forged: u64,
    /// Refused: a header that no document has.
    pub no_document: u64,
    /// Refused: a body that is out of its form or range.
    pub malformed_body: u64,
    /// Refused: an own frame too far ahead of the own counter.
    pub too_far_ahead: u64,
    /// Refused: there was no room to remember what to tell.
    pub no_room: u64,
}

/// A machine's documents: its store, its keys if it has any, and what it knows of its neighbours.
pub struct DocumentAgent {
    own: Slot,
    store: DocumentStore,
    policy: Policy,
    readers: BTreeMap<GroupTag, DocumentFrameOpener>,
    leaving: BTreeMap<GroupTag, Vec<DocumentLeaver>>,
    /// The members of groups whose keys are not here.
    strangers: BTreeMap<GroupTag, BTreeMap<Slot, PeerTag>>,
    peers: BTreeMap<Slot, ExchangePeer>,
    outbox: DocumentOutbox,
    duties: VecDeque<OriginDuty>,
    /// Frames that were refused for good, so that no signature is verified twice.
    refused: VecDeque<FrameDigest>,
    digest: Option<[u8; 8]>,
    /// Hellos of neighbours that said what they hold.
    hellos: u64,
    trickle: OverviewTrickle,
    salt: u8,
    message_bytes: usize,
    /// For how long what is not urgent is gathered, and until when that lasts.
    batch_ms: u64,
    gathered_ms: Option<u64>,
    counters: AgentCounters,
}

/// The group tag of an overview of one that holds nothing at all.
const NO_GROUP: GroupTag = GroupTag::from_bytes([0; 4]);

impl DocumentAgent {
    /// An agent of the machine with that slot in the mesh. Messages have `message_bytes` where they
    /// can.
    pub fn new(own: Slot, store: DocumentStore, message_bytes: usize) -> Self {
        Self {
            own,
            store,
            policy: Policy::default(),
            readers: BTreeMap::new(),
            leaving: BTreeMap::new(),
            strangers: BTreeMap::new(),
            peers: BTreeMap::new(),
            outbox: DocumentOutbox::new(message_bytes),
            duties: VecDeque::new(),
            refused: VecDeque::new(),
            digest: None,
            hellos: 0,
            trickle: OverviewTrickle::default(),
            salt: 0,
            message_bytes,
            batch_ms: 0,
            gathered_ms: None,
            counters: AgentCounters::default(),
        }
    }

    /// Sends as a policy has decided: how long messages are gathered, and how much goes at once.
    pub fn set_sending(&mut self, sending: &Sending) {
        self.batch_ms = sending.batch_ms.into();
        let bytes = self.message_bytes.min(sending.fragment_bytes.into());
        self.outbox.set_message_bytes(bytes);
    }

    /// Judges frames by these floors.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Takes over what is known of the groups that this machine has no keys of. It keeps frames of
    /// these groups and of their members, and of nobody else.
    pub fn set_strangers(&mut self, groups: Vec<StrangerGroup>) {
        for one in groups.iter().filter(|one| !self.readers.contains_key(&one.group)) {
            self.store.set_epoch(one.group, one.newest);
        }
        self.strangers = groups.into_iter().map(|one| (one.group, one.members)).collect();
    }

    /// Takes over what a member holds of a group now: at the start, and when orders have changed
    /// it. What members sealed that are members no longer is forgotten, and the own registers are
    /// to be sealed anew.
    ///
    /// # Errors
    ///
    /// [`StoreError`], [`sealane_seal::Error`] as a fault of the store.
    pub fn set_group(&mut self, keys: DocumentGroupKeys) -> Result<(), StoreError> {
        let (group, newest) = (keys.tag, keys.epochs.newest());
        let failed = |cause: sealane_seal::Error| StoreError::Failed(cause.to_string());
        let mut reader = DocumentFrameOpener::new(keys).map_err(failed)?;
        self.store.set_epoch(group, newest);
        let held = self.store.registers(group).into_iter().flat_map(RegisterSet::iter);
        let gone: Vec<FrameDigest> =
            held.filter(|entry| !reader.keeps(entry)).map(RegisterEntry::mark).collect();
        let ended_by = |shelf: &DocumentShelf, group, clear: &RegisterEntry| {
            reader.ended_by(shelf, group, clear)
        };
        self.store.drop_all(group, &gone, ended_by)?;
        self.store.keep_over(group, |origin| reader.is_member(origin, newest))?;
        let ours = self.store.registers(group).into_iter().flat_map(RegisterSet::iter);
        let again: Vec<RegisterEntry> =
            ours.filter(|entry| reader.is_to_reseal(entry)).cloned().collect();
        for entry in again {
            // A neighbour that lacks the clear of a call need not hear of the call.
            let is_call = entry.data_type == DataType::EMERGENCY;
            let call = if is_call { reader.call_of(&entry) } else { None };
            if !call.is_some_and(|call| self.store.is_over(group, call)) {
                self.duties.push_back(OriginDuty::Reseal { group, entry });
            }
        }
        self.readers.insert(group, reader);
        self.refused.clear();
        self.digest = None;
        Ok(())
    }

    /// Takes nothing new of these members of a group from now on, but what they have sealed before;
    /// of others it takes what it has refused. What is held stays until the order comes that
    /// removes them.
    pub fn set_leaving(&mut self, group: GroupTag, leaving: Vec<DocumentLeaver>) {
        self.leaving.insert(group, leaving);
        self.refused.clear();
        self.readers.values_mut().for_each(DocumentFrameOpener::forget_refused);
    }

    /// Keeps a frame that was sealed on this machine, and hands it to all neighbours.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub fn write(&mut self, frame: &[u8], own: PeerTag) -> Result<TakeOutcome, StoreError> {
        // If a hub gave a frame to a machine without keys, the frame is no better than those of
        // neighbours.
        if self.store.keeper() == ShelfKeeper::Relay
            && let Err(refusal) = self.admit(frame)
        {
            self.refuse(refusal, frame);
            return Ok(TakeOutcome::Refused);
        }
        let ended_by = ended_by(&mut self.readers);
        let mut taken = self.store.take_with(&[DocumentDelivery { frame, from: own }], ended_by)?;
        let taken = taken.pop().unwrap_or(Ok(TakeOutcome::Refused))?;
        if let Some(Ok(at)) = taken.is_news().then(|| self.store.place_of(frame)) {
            self.news(at, None);
        }
        Ok(taken)
    }

    /// An own frame was sealed anew, and the new one is kept: the old one leaves.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub fn resealed(&mut self, group: GroupTag, entry: &RegisterEntry) -> Result<(), StoreError> {
        self.digest = None;
        self.store.drop_all(group, &[entry.mark()], ended_by(&mut self.readers))
    }

    /// Whether a call is over though what cleared it is not kept any more: it gave way to later
    /// ones, or its member was removed.
    pub fn stays_over(&self, group: GroupTag, call: EmergencyCall) -> bool {
        self.store.is_over(group, call)
    }

    /// The body of an own frame, to be sealed anew.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] where it does not open.
    pub fn body(&mut self, group: GroupTag, entry: &RegisterEntry) -> Result<Vec<u8>, StoreError> {
        let reader = self.readers.get_mut(&group);
        let reader = reader.ok_or_else(|| StoreError::Failed("no keys of the group".to_owned()))?;
        reader.body(entry).map_err(|cause| StoreError::Failed(cause.to_string()))
    }

    /// A neighbour's hello, and what it says that the neighbour holds.
    pub fn hear_digest(&mut self, by: Slot, digest: Option<[u8; 8]>) {
        let ours = self.digest();
        let is_first = self.own < by;
        if self.peers.len() >= MAX_DOCUMENT_PEERS && !self.peers.contains_key(&by) {
            self.peers.pop_first();
        }
        self.hellos += 1;
        let peer = self.peers.entry(by).or_default();
        peer.heard_at = self.hellos;
        let Some(digest) = digest else { return };
        if self.outbox.is_scarce {
            return self.hear_other(by, ours, digest);
        }
        if peer.is_due(ours, digest, is_first) {
            for group in self.told_groups() {
                self.outbox.say(OutboxMessage::Overview { to: DocumentAudience::One(by), group });
            }
        }
    }

    /// Takes a message of a neighbour.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of the own store. What is wrong with the message is counted.
    pub fn hear(&mut self, by: DocumentNeighbour, message: &[u8]) -> Result<(), StoreError> {
        let Some((group, rest)) = message.split_first_chunk() else {
            self.counters.malformed += 1;
            return Ok(());
        };
        let group = GroupTag::from_bytes(*group);
        let sort = exchange::sort_of(rest);
        // A member opens each frame, so that nothing follows from one that was repeated.
        let is_safe =
            sort == Some(ExchangeKind::Frames) && self.store.keeper() == ShelfKeeper::Member;
        if !(by.is_proven || is_safe) {
            self.counters.unproven += 1;
            return Ok(());
        }
        match sort {
            Some(ExchangeKind::Overview) => self.hear_overview(by, group, rest),
            Some(ExchangeKind::Inventory { is_opened }) => {
                self.hear_inventory(by, group, rest, is_opened);
            }
            Some(ExchangeKind::Frames) => return self.hear_frames(by, group, rest),
            None => self.counters.malformed += 1,
        }
        Ok(())
    }

    /// Hands on what a neighbour lacks, and asks for what it has.
    fn hear_inventory(
        &mut self,
        by: DocumentNeighbour,
        group: GroupTag,
        theirs: &[u8],
        is_opened: bool,
    ) {
        let none = RegisterSet::new();
        let registers = self.store.registers(group).unwrap_or(&none);
        let (lacks, shown) = match (exchange::lacks(registers, theirs), exchange::shown(theirs)) {
            (Ok(lacks), Ok(shown)) => (lacks, shown),
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        let mut giving: Vec<FrameDigest> = lacks.into_iter().map(RegisterEntry::mark).collect();
        let origins = exchange::origins_of(&shown);
        // A neighbour that has opened its frames can tell which of several is true. A neighbour
        // that has not keeps the frames that somebody else has opened.
        for origin in &origins {
            let beside = self.store.beside(group, *origin);
            let lacking = beside.filter(|entry| !exchange::is_shown(&shown, entry));
            giving.extend(
                lacking
                    .filter(|entry| is_opened || self.store.is_vouched(group, entry.mark()))
                    .map(RegisterEntry::mark),
            );
        }
        let wanted = exchange::wanted(registers, &shown);
        let own = self.readers.get(&group);
        let wanted: Vec<Slot> = wanted
            .into_iter()
            .filter(|one| own.is_none_or(|reader| !reader.has_refused(one)))
            .map(|one| one.origin)
            .collect();
        if is_opened {
            for one in &shown {
                let name = RegisterName { group, origin: one.origin, data_type: one.data_type };
                self.store.vouch(name, &one.stamps, by.tag);
            }
        }
        self.give(by.slot, group, giving);
        let mut wanted = wanted;
        wanted.dedup();
        self.ask(by.slot, group, wanted);
    }

    fn hear_frames(
        &mut self,
        by: DocumentNeighbour,
        group: GroupTag,
        message: &[u8],
    ) -> Result<(), StoreError> {
        let Ok(frames) = exchange::read_frames(group, message) else {
            self.counters.malformed += 1;
            return Ok(());
        };
        let mut admitted = vec![];
        for frame in &frames {
            match self.admit(frame) {
                Ok(true) => admitted.push(DocumentDelivery { frame, from: by.tag }),
                Ok(false) => self.hear_again(by.slot, frame),
                Err(refusal) => self.refuse(refusal, frame),
            }
        }
        if admitted.is_empty() {
            return Ok(());
        }
        let taken = self.store.take_with(&admitted, ended_by(&mut self.readers))?;
        for (one, taken) in admitted.iter().zip(taken) {
            if !taken.is_ok_and(TakeOutcome::is_news) {
                continue;
            }
            self.counters.taken += 1;
            if let Ok(at) = self.store.place_of(one.frame) {
                self.news(at, Some(by.slot));
            }
        }
        Ok(())
    }

    /// A frame came that is here: who brought it, and who heard it, need not be given it.
    fn hear_again(&mut self, by: Slot, frame: &[u8]) {
        self.counters.repeats += 1;
        if let Ok(at) = self.store.place_of(frame) {
            let all_have = self.are_all_near();
            self.outbox.heard(at, by, all_have);
        }
    }

    fn news(&mut self, at: DocumentCursor, by: Option<Slot>) {
        self.digest = None;
        let is_urgent = self.store.is_urgent(at);
        self.outbox.give(at, DocumentAudience::All { but: by }, is_urgent, ForwardReason::News);
    }

    /// The digest for hellos: a hash of all frames that are held.
    pub fn digest(&mut self) -> [u8; 8] {
        let store = &self.store;
        *self.digest.get_or_insert_with(|| exchange::digest_of(store))
    }

    /// The next task of the origin on this machine.
    pub fn next_duty(&mut self) -> Option<OriginDuty> {
        self.duties.pop_front()
    }

    /// The store.
    pub fn store(&self) -> &DocumentStore {
        &self.store
    }

    /// The counts.
    pub fn counters(&self) -> AgentCounters {
        AgentCounters { no_room: self.outbox.dropped(), ..self.counters }
    }

    /// The newest epoch of a group whose keys are here.
    pub fn newest(&self, group: GroupTag) -> Option<Epoch> {
        self.readers.get(&group).map(DocumentFrameOpener::newest)
    }
}

impl std::fmt::Debug for DocumentAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("own", &self.own).finish_non_exhaustive()
    }
}

/// An opener of all epochs that are held, which also opens what its own member has sealed.
fn opener(group: Group, epochs: Epochs, terms: &[Term]) -> Result<Opener, sealane_seal::Error> {
    let mut opener = Opener::new(group, None, epochs)?;
    opener.set_terms(terms.iter().copied())?;
    Ok(opener)
}
