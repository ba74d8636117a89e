use sealane_frame::{GroupTag, PeerTag};
use sealane_message::hex;
use sealane_seal::{Epoch, GroupId, Slot, Term};

use crate::Error;
use crate::limits::MAX_ROSTER_MEMBERS;
use crate::names::are_alike;
use crate::wire::{GroupFieldReader, put_name};

const REMOVED: u8 = 1;
/// Bytes of an entry with the shortest name.
const LEAST_ENTRY_BYTES: usize = 2 + 1 + 8 + 8 + 32 + 32 + 2;

/// A member, or one that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterEntry {
    pub(crate) slot: Slot,
    pub(crate) verifying: [u8; 32],
    pub(crate) certificate: [u8; 32],
    pub(crate) since: Epoch,
    pub(crate) removed: Option<Epoch>,
    pub(crate) name: String,
}

impl RosterEntry {
    /// Its place, which nobody else is given.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The key that verifies its class S.
    pub fn verifying_key(&self) -> &[u8; 32] {
        &self.verifying
    }

    /// The BLAKE3 hash of its certificate.
    pub fn certificate(&self) -> &[u8; 32] {
        &self.certificate
    }

    /// The epoch in which it was admitted.
    pub fn since(&self) -> Epoch {
        self.since
    }

    /// The first epoch that it is no part of, if it was removed or has taken another slot.
    pub fn removed(&self) -> Option<Epoch> {
        self.removed
    }

    /// Its time in the group, for readers.
    pub(crate) fn term(&self) -> Term {
        Term {
            slot: self.slot,
            since: self.since,
            until: self.removed,
            verifying_key: self.verifying,
        }
    }

    /// The name on its card.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The members of a group, by slot. Who was removed stays listed, so that no slot is given again
/// and signatures of the past verify.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupRoster {
    entries: Vec<RosterEntry>,
}

impl GroupRoster {
    pub(crate) fn new(entries: Vec<RosterEntry>) -> Option<GroupRoster> {
        let is_sorted = entries.is_sorted_by(|a, b| a.slot < b.slot);
        (is_sorted && entries.len() <= MAX_ROSTER_MEMBERS).then_some(GroupRoster { entries })
    }

    /// All entries, removed ones too.
    pub fn entries(&self) -> &[RosterEntry] {
        &self.entries
    }

    /// The members of today.
    pub fn members(&self) -> impl Iterator<Item = &RosterEntry> {
        self.entries.iter().filter(|entry| entry.removed.is_none())
    }

    /// A member whose name is that one, or looks like it.
    pub(crate) fn alike(&self, name: &str) -> Option<&RosterEntry> {
        self.members().find(|entry| are_alike(&entry.name, name))
    }

    /// The entry of a slot.
    pub fn entry(&self, slot: Slot) -> Option<&RosterEntry> {
        let found = self.entries.binary_search_by_key(&slot, |entry| entry.slot).ok()?;
        self.entries.get(found)
    }

    /// The member of that slot number, name, or beginning of its verifying key in hexadecimal
    /// digits (eight or more), if it is the only one.
    pub fn find(&self, text: &str) -> Option<&RosterEntry> {
        let of_slot = text.parse().ok().and_then(Slot::new).and_then(|slot| self.entry(slot));
        let digits = text.to_ascii_lowercase();
        let is_key = |entry: &&RosterEntry| {
            digits.len() >= 8 && hex::encode(&entry.verifying).starts_with(&digits)
        };
        let mut named = self.members().filter(|entry| entry.name == text || is_key(entry));
        let first = named.next();
        let only = first.filter(|_| named.next().is_none());
        of_slot.filter(|entry| entry.removed.is_none()).or(only)
    }

    /// The next slot that nobody was given.
    pub(crate) fn free_slot(&self, is_pair: bool) -> Result<Slot, Error> {
        let next = self.entries.last().map_or(0, |last| last.slot.number() + 1);
        let bound = if is_pair { 2 } else { MAX_ROSTER_MEMBERS };
        let fits = usize::from(next) < bound;
        Slot::new(next).filter(|_| fits).ok_or(Error::RosterFull)
    }

    /// Adds an entry behind all others.
    pub(crate) fn admit(&mut self, entry: RosterEntry) {
        self.entries.push(entry);
    }

    pub(crate) fn remove(&mut self, slot: Slot, from: Epoch) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.slot == slot) {
            entry.removed.get_or_insert(from);
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend((self.entries.len() as u16).to_be_bytes());
        for entry in &self.entries {
            out.extend(entry.slot.number().to_be_bytes());
            out.push(if entry.removed.is_some() { REMOVED } else { 0 });
            out.extend(entry.since.0.to_be_bytes());
            out.extend(entry.removed.unwrap_or_default().0.to_be_bytes());
            out.extend(entry.verifying);
            out.extend(entry.certificate);
            put_name(out, &entry.name);
        }
    }

    pub(crate) fn read(reader: &mut GroupFieldReader<'_>) -> Result<GroupRoster, Error> {
        let count = reader.count(MAX_ROSTER_MEMBERS, LEAST_ENTRY_BYTES)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
            let flags = reader.u8()?;
            let since = Epoch(reader.u64()?);
            let removed = Epoch(reader.u64()?);
            if flags > REMOVED || (flags == 0 && removed.0 != 0) {
                return Err(reader.malformed());
            }
            let removed = (flags == REMOVED).then_some(removed);
            let (verifying, certificate) = (reader.array()?, reader.array()?);
            let name = reader.name()?;
            entries.push(RosterEntry { slot, verifying, certificate, since, removed, name });
        }
        GroupRoster::new(entries).ok_or_else(|| reader.malformed())
    }
}

/// How members and groups are named in frames: `spec/frame.md`, section *Tags*.
pub(crate) fn peer_tag(routing: &[u8; 32], entry: &RosterEntry) -> PeerTag {
    let mut hasher = blake3::Hasher::new_keyed(routing);
    hasher.update(b"Sealane 1.0 peer tag ");
    hasher.update(&entry.slot.number().to_be_bytes());
    hasher.update(&entry.verifying);
    let mut tag = [0; 8];
    hasher.finalize_xof().fill(&mut tag);
    PeerTag::from_hash(tag)
}

pub(crate) fn group_tag(routing: &[u8; 32], group: GroupId) -> GroupTag {
    let mut hasher = blake3::Hasher::new_keyed(routing);
    hasher.update(b"Sealane 1.0 group tag ");
    hasher.update(&group.0);
    let mut tag = [0; 4];
    hasher.finalize_xof().fill(&mut tag);
    GroupTag::from_bytes(tag)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn entry(slot: u16, key: u8, name: &str, removed: Option<Epoch>) -> RosterEntry {
        let slot = Slot::new(slot).unwrap();
        let (verifying, certificate) = ([key; 32], [key ^ 0xff; 32]);
        RosterEntry {
            slot,
            verifying,
            certificate,
            since: Epoch(3),
            removed,
            name: name.to_owned(),
        }
    }

    /// Two members, a third who has the first one's name, and one who was removed.
    pub(crate) fn roster() -> GroupRoster {
        let entries = vec![
            entry(0, 0xab, "base", None),
            entry(1, 0x12, "car 1", None),
            entry(2, 0x34, "car 2", Some(Epoch(7))),
            entry(5, 0xac, "base", None),
        ];
        GroupRoster::new(entries).unwrap()
    }

    #[test]
    fn a_member_is_found_by_slot_name_or_eight_digits_of_its_key() {
        let roster = roster();
        let found = |text: &str| roster.find(text).map(|entry| entry.slot.number());
        assert_eq!([found("0"), found("1"), found("5")], [Some(0), Some(1), Some(5)]);
        assert_eq!(found("car 1"), Some(1));
        let key = "12".repeat(32);
        for digits in [8, 9, 63, 64] {
            assert_eq!(found(&key[..digits]), Some(1), "{digits} digits");
        }
        assert_eq!(found("ABABABAB"), Some(0), "capitals, too");
        assert_eq!(found(&key[..7]), None, "seven digits are too few");
        assert_eq!(found("ab"), None);
        assert_eq!(found(&format!("{key}1")), None);
        assert_eq!(found("12121213"), None);
    }

    #[test]
    fn nobody_is_found_who_was_removed_or_is_not_the_only_one() {
        let mut roster = roster();
        for text in ["2", "car 2", "34343434", "3", "4096", "", "nobody"] {
            assert_eq!(roster.find(text), None, "{text}");
        }
        assert_eq!(roster.find("base"), None, "two have the name");
        roster.remove(Slot::new(5).unwrap(), Epoch(8));
        assert_eq!(roster.find("base").unwrap().slot.number(), 0);
        // The key of one who was removed does not stand in the way of a member's.
        roster.admit(entry(6, 0x34, "car 2", None));
        assert_eq!(roster.find("34343434").unwrap().slot.number(), 6);
    }
}
