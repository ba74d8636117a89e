//! The shared knowledge of two ends of a link, so that compact frames need not say it.

use std::collections::BTreeMap;

use sealane_seal::{Class, Epoch, SenderContext, Slot};

use crate::limits::MAX_ROSTER_SLOTS;
use crate::{FrameError, GroupTag, HeaderFields, PeerTag};

/// The entry that one dictionary byte stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DictionaryEntry {
    group: GroupTag,
    destination: PeerTag,
    codec: u8,
    flags: u8,
}

/// The bytes of an entry: `spec/frame.md`, section *Dictionary*.
pub const ENTRY_BYTES: usize = 14;

impl DictionaryEntry {
    /// The entry that a message needs. Those of class P name no group: it travels in the frame.
    pub fn of(fields: &HeaderFields) -> Self {
        let group = match fields.class {
            Class::Peer => GroupTag::default(),
            _ => fields.group,
        };
        Self { group, destination: fields.destination, codec: fields.codec, flags: fields.flags() }
    }

    /// The entry as it travels when it is defined.
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let [a, b, c, d] = self.group.to_bytes();
        let [e, f, g, h, i, j, k, l] = self.destination.to_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, self.codec, self.flags]
    }

    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// [`FrameError::ReservedBits`] for flags without meaning, and for a group where class P has
    /// none.
    pub fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Result<Self, FrameError> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, codec, flags] = bytes;
        let entry = Self {
            group: GroupTag::from_bytes([a, b, c, d]),
            destination: PeerTag::from_bytes([e, f, g, h, i, j, k, l]),
            codec,
            flags,
        };
        let is_nameless = entry.class() != Class::Peer || entry.group == GroupTag::default();
        let is_known = crate::header::are_flags(flags) && is_nameless;
        is_known.then_some(entry).ok_or(FrameError::ReservedBits)
    }

    /// The group of all classes but P.
    pub fn group(&self) -> GroupTag {
        self.group
    }

    /// Whom the message is for.
    pub fn destination(&self) -> PeerTag {
        self.destination
    }

    /// The protection of the seal.
    pub fn class(&self) -> Class {
        Class::from_bits(self.flags)
    }

    pub(crate) fn codec(&self) -> u8 {
        self.codec
    }

    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }
}

/// The dictionary of one connection: up to 256 entries, each defined once.
#[derive(Debug, Clone, Default)]
pub struct FrameDictionary {
    entries: Vec<Option<DictionaryEntry>>,
}

impl FrameDictionary {
    /// Without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `byte` its meaning for as long as the connection lives.
    ///
    /// # Errors
    ///
    /// [`FrameError::EntryConflict`] if it has another one.
    pub fn define(&mut self, byte: u8, entry: DictionaryEntry) -> Result<(), FrameError> {
        if self.entries.len() <= byte.into() {
            self.entries.resize(usize::from(byte) + 1, None);
        }
        let known = self.entries.get_mut(usize::from(byte)).ok_or(FrameError::EntryConflict)?;
        match known {
            Some(other) if *other != entry => Err(FrameError::EntryConflict),
            known => {
                *known = Some(entry);
                Ok(())
            }
        }
    }

    /// Gives `byte` another meaning, on a medium where all decide alike.
    pub(crate) fn replace(&mut self, byte: u8, entry: DictionaryEntry) {
        if self.entries.len() <= byte.into() {
            self.entries.resize(usize::from(byte) + 1, None);
        }
        if let Some(place) = self.entries.get_mut(usize::from(byte)) {
            *place = Some(entry);
        }
    }

    /// The entry that `byte` stands for.
    pub fn entry(&self, byte: u8) -> Option<&DictionaryEntry> {
        self.entries.get(usize::from(byte))?.as_ref()
    }

    /// The byte that stands for `entry`.
    pub fn byte(&self, entry: &DictionaryEntry) -> Option<u8> {
        let index = self.entries.iter().position(|other| other.as_ref() == Some(entry))?;
        u8::try_from(index).ok()
    }

    /// A byte that stands for nothing yet.
    pub fn free_byte(&self) -> Option<u8> {
        let index = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        u8::try_from(index).ok()
    }
}

/// The members of groups as a link knows them: which tag a slot has, what it announced, and near
/// which epoch a group is.
#[derive(Debug, Clone, Default)]
pub struct FrameRoster {
    groups: BTreeMap<GroupTag, FrameRosterMembers>,
    slots: usize,
}

#[derive(Debug, Clone, Default)]
struct FrameRosterMembers {
    epoch: Epoch,
    slots: BTreeMap<Slot, RosterSlot>,
}

/// The knowledge of a link about a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RosterSlot {
    pub(crate) tag: PeerTag,
    pub(crate) announced: Option<FrameAnnouncement>,
}

/// The announcement of a sender on a link: it holds for all its compact frames there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAnnouncement {
    /// The context of its present start.
    pub context: SenderContext,
    /// The low byte of how many orders it has obeyed.
    pub orders: u8,
}

impl FrameRoster {
    /// Without groups.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the tag of a slot.
    ///
    /// # Errors
    ///
    /// [`FrameError::NoRoom`] beyond [`MAX_ROSTER_SLOTS`].
    pub fn insert(&mut self, group: GroupTag, slot: Slot, tag: PeerTag) -> Result<(), FrameError> {
        let is_new = self.tag(group, slot).is_none();
        if is_new && self.slots >= MAX_ROSTER_SLOTS {
            return Err(FrameError::NoRoom);
        }
        let slots = &mut self.groups.entry(group).or_default().slots;
        slots.entry(slot).or_insert(RosterSlot { tag, announced: None }).tag = tag;
        self.slots += usize::from(is_new);
        Ok(())
    }

    /// Takes what a slot has announced in a frame that opened.
    ///
    /// # Errors
    ///
    /// [`FrameError::UnknownSource`] if the slot has no tag.
    pub fn announce(
        &mut self,
        group: GroupTag,
        slot: Slot,
        announced: FrameAnnouncement,
    ) -> Result<(), FrameError> {
        let known = self.groups.get_mut(&group).and_then(|members| members.slots.get_mut(&slot));
        known.ok_or(FrameError::UnknownSource)?.announced = Some(announced);
        Ok(())
    }

    /// Says that a known group is in `epoch`, or near it. Compact frames name the epoch mod 16 and
    /// mean the nearest.
    pub fn set_epoch(&mut self, group: GroupTag, epoch: Epoch) {
        if let Some(members) = self.groups.get_mut(&group) {
            members.epoch = epoch;
        }
    }

    /// Forgets a group.
    pub fn remove(&mut self, group: GroupTag) {
        let gone = self.groups.remove(&group).map_or(0, |members| members.slots.len());
        self.slots -= gone;
    }

    /// The tag of a slot.
    pub fn tag(&self, group: GroupTag, slot: Slot) -> Option<PeerTag> {
        self.known(group, slot).map(|known| known.tag)
    }

    /// The announcement of a slot.
    pub fn announced(&self, group: GroupTag, slot: Slot) -> Option<FrameAnnouncement> {
        self.known(group, slot)?.announced
    }

    pub(crate) fn known(&self, group: GroupTag, slot: Slot) -> Option<RosterSlot> {
        self.groups.get(&group)?.slots.get(&slot).copied()
    }

    pub(crate) fn epoch(&self, group: GroupTag) -> Epoch {
        self.groups.get(&group).map_or(Epoch(0), |members| members.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_defined_once() {
        let mut fields = HeaderFields::new(GroupTag::from_bytes([1; 4]), PeerTag::NOBODY, 1);
        let first = DictionaryEntry::of(&fields);
        fields.codec = 1;
        let second = DictionaryEntry::of(&fields);
        let mut dictionary = FrameDictionary::new();
        assert_eq!(dictionary.free_byte(), Some(0));
        dictionary.define(255, first).unwrap();
        dictionary.define(255, first).unwrap();
        assert_eq!(dictionary.define(255, second), Err(FrameError::EntryConflict));
        assert_eq!(dictionary.entry(255), Some(&first));
        assert_eq!((dictionary.byte(&first), dictionary.byte(&second)), (Some(255), None));
        for byte in 0..255 {
            assert_eq!(dictionary.free_byte(), Some(byte));
            dictionary.define(byte, second).unwrap();
        }
        assert_eq!(dictionary.free_byte(), None);
    }

    #[test]
    fn entries_read_back_and_odd_ones_are_refused() {
        for flags in 0..=u8::MAX {
            let mut bytes = [7; ENTRY_BYTES];
            bytes[13] = flags;
            let named = DictionaryEntry::from_bytes(bytes);
            bytes[..4].fill(0);
            let nameless = DictionaryEntry::from_bytes(bytes);
            assert_eq!(nameless.is_ok(), flags < 0x30);
            assert_eq!(named.is_ok(), flags < 0x30 && flags & 3 != 3);
            if let Ok(entry) = nameless {
                assert_eq!(entry.to_bytes(), bytes);
            }
        }
    }
}
