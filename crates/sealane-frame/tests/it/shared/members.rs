//! Members of a group who send to each other, with fixed keys.
#![allow(dead_code, reason = "each test file that includes this one uses a part of it")]

use sealane_frame::{Dictionary, Entry, GroupTag, HeaderFields, LinkContext, PeerTag, Roster};
use sealane_seal::{
    Class, CounterState, EpochSecret, Epochs, Group, GroupId, History, Opener, Sealer, SigningKey,
    Slot, Suite, Witness,
};

pub(crate) const CLASSES: [Class; 4] = Class::ALL;
pub(crate) const GROUP_TAG: GroupTag = GroupTag::from_bytes([0xa1, 0xa2, 0xa3, 0xa4]);
pub(crate) const SENDER: PeerTag = PeerTag::from_hash([0x51; 8]);
pub(crate) const RELAY: PeerTag = PeerTag::from_hash([0x52; 8]);
pub(crate) const READER: PeerTag = PeerTag::from_hash([0x53; 8]);

/// The sender and the reader of frames of one class.
pub(crate) struct Members {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    pub(crate) fields: HeaderFields,
    pub(crate) dictionary: Dictionary,
    pub(crate) roster: Roster,
}

impl Members {
    /// With AES-256-GCM, from counter 0 on.
    pub(crate) fn new(class: Class) -> Self {
        Self::starting_at(class, Suite::Aes256Gcm, 0)
    }

    pub(crate) fn starting_at(class: Class, suite: Suite, counter: u64) -> Self {
        let is_pair = class == Class::Peer;
        let make = if is_pair { Group::pair } else { Group::new };
        let group = make(GroupId([7; 32]), suite);
        let [own, other] = if is_pair { [1, 0] } else { [700, 2] };
        let [own, other] = [own, other].map(|slot| Slot::new(slot).unwrap());
        let secret = EpochSecret::new([1; 32]);
        let epochs = Epochs::provisioned(group.id(), History::Kept, &secret).unwrap();
        let signing = SigningKey::from_seed(&[3; 32]).unwrap();
        let mut opener = Opener::new(group, Some(other), epochs.clone()).unwrap();
        opener.set_signer(own, &signing.verifying_key()).unwrap();
        let mut sealer = sealer(group, own, &epochs, counter);
        sealer.set_signing_key(signing);
        let fields = HeaderFields {
            next_hop: RELAY,
            destination: READER,
            class,
            ..HeaderFields::new(GROUP_TAG, SENDER, 0x21)
        };
        let (mut dictionary, mut roster) = (Dictionary::new(), Roster::new());
        dictionary.define(4, Entry::of(&fields)).unwrap();
        roster.insert(GROUP_TAG, own, SENDER).unwrap();
        Self { sealer, opener, fields, dictionary, roster }
    }
}

/// The link from the sender to the relay.
pub(crate) fn link<'a>(dictionary: &'a Dictionary, roster: &'a Roster) -> LinkContext<'a> {
    LinkContext { dictionary, roster, next_hop: RELAY, previous_hop: SENDER }
}

/// A sealer that goes on at `counter`, as after a restart.
fn sealer(group: Group, slot: Slot, epochs: &Epochs, counter: u64) -> Sealer {
    let fresh = Sealer::fresh(group, slot, epochs, Witness([0; 32])).unwrap();
    let mut state = fresh.reserve(1).unwrap().state().to_bytes();
    // The bound of a stored state: `spec/seal.md`, section *Counters*.
    state[43..51].copy_from_slice(&counter.to_be_bytes());
    let state = CounterState::from_bytes(&state).unwrap();
    let mut sealer = Sealer::resume(group, &state, epochs, Witness([0; 32])).unwrap();
    let block = sealer.reserve(1 << 20).unwrap();
    sealer.confirm(block).unwrap();
    sealer
}

/// What verifies class S of the sender.
pub(crate) fn verifying_key() -> [u8; 32] {
    SigningKey::from_seed(&[3; 32]).unwrap().verifying_key()
}
