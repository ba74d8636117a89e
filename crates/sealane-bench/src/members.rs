//! Two members of a group, and the link between them, with fixed keys: what is measured is work,
//! and nothing here is secret.

use sealane_frame::{
    Compression, Dictionary, Entry, FrameError, GroupTag, HeaderFields, LinkContext, PeerTag,
    Roster,
};
use sealane_seal::{
    Class, EpochSecret, Epochs, Group, GroupId, History, Opener, Sealer, SigningKey, Slot, Suite,
    Witness,
};

/// The tag of the group in every frame that the bench makes.
pub(crate) const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);
pub(crate) const SENDER: PeerTag = PeerTag::from_hash([0x51; 8]);
pub(crate) const RELAY: PeerTag = PeerTag::from_hash([0x52; 8]);
pub(crate) const READER: PeerTag = PeerTag::from_hash([0x53; 8]);

/// A sender and a reader of one class.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    pub(crate) fields: HeaderFields,
    pub(crate) dictionary: Dictionary,
    pub(crate) roster: Roster,
}

impl Members {
    pub(crate) fn new(class: Class, suite: Suite, codec: u8) -> Result<Self, FrameError> {
        let is_pair = class == Class::Peer;
        let make = if is_pair { Group::pair } else { Group::new };
        let group = make(GroupId([7; 32]), suite);
        let no_slot = FrameError::UnknownSource;
        let (own, other) = (Slot::new(1).ok_or(no_slot)?, Slot::new(0).ok_or(no_slot)?);
        let secret = EpochSecret::new([1; 32]);
        let epochs = Epochs::provisioned(group.id(), History::Kept, &secret)?;
        let signing = SigningKey::from_seed(&[3; 32])?;
        let mut opener = Opener::new(group, Some(other), epochs.clone())?;
        opener.set_signer(own, &signing.verifying_key())?;
        let mut sealer = Sealer::fresh(group, own, &epochs, Witness([0; 32]))?;
        sealer.set_signing_key(signing);
        let fields = HeaderFields {
            next_hop: RELAY,
            destination: READER,
            class,
            codec,
            ..HeaderFields::new(GROUP, SENDER, 0x21)
        };
        let (mut dictionary, mut roster) = (Dictionary::new(), Roster::new());
        for (byte, compression) in
            (0..).zip([Compression::None, Compression::Lz4, Compression::Zstd])
        {
            dictionary.define(byte, Entry::of(&HeaderFields { compression, ..fields }))?;
        }
        roster.insert(GROUP, own, SENDER)?;
        let mut members = Self { sealer, opener, fields, dictionary, roster };
        members.reserve(1)?;
        Ok(members)
    }

    /// Sees to it that so many messages can be sealed. A sender stores the reservation first; here
    /// there is nothing to store it for.
    pub(crate) fn reserve(&mut self, messages: u64) -> Result<(), FrameError> {
        while self.sealer.remaining() < messages {
            let block = self.sealer.reserve(1 << 20)?;
            self.sealer.confirm(block)?;
        }
        Ok(())
    }

    pub(crate) fn link(&self) -> LinkContext<'_> {
        LinkContext {
            dictionary: &self.dictionary,
            roster: &self.roster,
            next_hop: RELAY,
            previous_hop: SENDER,
        }
    }
}
