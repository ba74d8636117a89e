//! Members of a group who send to each other, with fixed keys.
#![allow(dead_code, reason = "each test file that includes this one uses a part of it")]

use sealane_frame::{
    ANNOUNCEMENT_TYPE, DictionaryEntry, FrameAnnouncement, FrameBuf, FrameDictionary, FrameKind,
    FrameRoster, GroupTag, HeaderFields, LinkContext, PeerTag, seal_frame,
};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Opener,
    Sealer, SenderContext, SessionState, SigningKey, Slot, Suite, Term,
};

pub(crate) const CLASSES: [Class; 4] = Class::ALL;
pub(crate) const GROUP_TAG: GroupTag = GroupTag::from_bytes([0xa1, 0xa2, 0xa3, 0xa4]);
pub(crate) const SENDER: PeerTag = PeerTag::from_hash([0x51; 8]);
pub(crate) const RELAY: PeerTag = PeerTag::from_hash([0x52; 8]);
pub(crate) const READER: PeerTag = PeerTag::from_hash([0x53; 8]);
pub(crate) const EPOCH: Epoch = Epoch(20);
/// The announced context of the sender.
pub(crate) const CONTEXT: SenderContext = SenderContext(*b"start 01");
pub(crate) const ORDERS: u8 = 7;
/// The stream that frames are made for.
pub(crate) const TOPIC: &str = "fleet/7";

/// The sender and the reader of frames of one class.
pub(crate) struct Members {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    pub(crate) fields: HeaderFields,
    pub(crate) dictionary: FrameDictionary,
    pub(crate) roster: FrameRoster,
}

impl Members {
    /// With AES-256-GCM, from counter 0 on.
    pub(crate) fn new(class: Class) -> Self {
        Self::starting_at(class, Suite::Aes256Gcm, 0)
    }

    /// Members whose sender has announced itself before.
    pub(crate) fn starting_at(class: Class, suite: Suite, counter: u64) -> Self {
        let mut members = Self::strangers(class, suite, counter);
        let own = members.sealer.slot();
        members.opener.restore(&session(own, CONTEXT));
        let announced = FrameAnnouncement { context: CONTEXT, orders: ORDERS };
        members.roster.announce(GROUP_TAG, own, announced).unwrap();
        members
    }

    /// Members whose sender has not.
    pub(crate) fn strangers(class: Class, suite: Suite, counter: u64) -> Self {
        let is_pair = class == Class::Peer;
        let group = group(is_pair, suite);
        let (own, other) = if is_pair { (slot(1), slot(0)) } else { (slot(700), slot(2)) };
        let epochs = epochs(group);
        let mut opener = Opener::new(group, Some(other), epochs.clone()).unwrap();
        opener.set_terms([term(own)]).unwrap();
        let sealer = sealer(group, own, &epochs, CONTEXT, counter);
        let fields = HeaderFields {
            next_hop: RELAY,
            destination: READER,
            class,
            orders: ORDERS,
            ..HeaderFields::new(GROUP_TAG, SENDER, 0x21)
        };
        let (mut dictionary, mut roster) = (FrameDictionary::new(), FrameRoster::new());
        dictionary.define(4, DictionaryEntry::of(&fields)).unwrap();
        roster.insert(GROUP_TAG, own, SENDER).unwrap();
        roster.set_epoch(GROUP_TAG, EPOCH);
        Self { sealer, opener, fields, dictionary, roster }
    }

    /// The sender starts again, under another context.
    pub(crate) fn start_again(&mut self, context: SenderContext) {
        let group = group(self.fields.class == Class::Peer, Suite::Aes256Gcm);
        let next = self.sealer.next_counter().unwrap();
        self.sealer = sealer(group, self.sealer.slot(), &epochs(group), context, next);
    }

    /// A frame in which the sender announces itself.
    pub(crate) fn announcement(&mut self, announcement: Announcement) -> Vec<u8> {
        let [orders, ..] = announcement.orders.to_le_bytes();
        let fields = HeaderFields { orders, ..announcing(&self.fields) };
        let mut buf = FrameBuf::new();
        let (binding, body) = (Binding::link(), announcement.to_bytes());
        seal_frame(&mut self.sealer, &fields, &binding, &body, &mut buf).unwrap().to_vec()
    }
}

/// The fields of an announcement by who sends `fields`.
pub(crate) fn announcing(fields: &HeaderFields) -> HeaderFields {
    let (kind, class, data_type) = (FrameKind::Control, Class::Signed, ANNOUNCEMENT_TYPE);
    HeaderFields { kind, class, data_type, codec: 0, ..*fields }
}

/// The link from the sender to the relay.
pub(crate) fn link<'a>(
    dictionary: &'a FrameDictionary,
    roster: &'a FrameRoster,
) -> LinkContext<'a> {
    LinkContext { dictionary, roster, next_hop: RELAY, previous_hop: SENDER }
}

/// Where frames belong.
pub(crate) fn binding() -> Binding {
    Binding::stream(TOPIC)
}

fn group(is_pair: bool, suite: Suite) -> Group {
    let make = if is_pair { Group::pair } else { Group::new };
    make(GroupId([7; 32]), suite)
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn epochs(group: Group) -> Epochs {
    Epochs::new(group.id(), History::Kept, EPOCH, EpochSecret::new([1; 32]))
}

fn sealer(
    group: Group,
    slot: Slot,
    epochs: &Epochs,
    context: SenderContext,
    counter: u64,
) -> Sealer {
    let mut sealer = Sealer::new(group, slot, context, epochs, counter).unwrap();
    sealer.set_signing_key(signing_key());
    sealer
}

/// The sender's time in its slot.
pub(crate) fn term(slot: Slot) -> Term {
    let verifying_key = signing_key().verifying_key();
    Term { slot, since: Epoch(0), until: None, verifying_key }
}

/// A session of which nothing was accepted yet: `spec/seal.md`, section *Session at rest*.
pub(crate) fn session(slot: Slot, context: SenderContext) -> SessionState {
    let mut state = [0; SessionState::BYTES];
    state[0] = 1;
    state[1..3].copy_from_slice(&slot.number().to_be_bytes());
    state[3..11].copy_from_slice(&EPOCH.0.to_be_bytes());
    state[11..19].copy_from_slice(&context.0);
    SessionState::from_bytes(&state).unwrap()
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed(&[3; 32]).unwrap()
}
