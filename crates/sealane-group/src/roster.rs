use std::collections::HashSet;

use sealane_frame::{GroupTag, PeerTag};
use sealane_message::hex;
use sealane_seal::{Epoch, GroupId, Slot, Term};

use crate::Error;
use crate::limits::{MAX_FRESH_KEYS, MAX_ROSTER_MEMBERS};
use crate::names::are_alike;
use crate::wire::{GroupFieldReader, put_name};

const REMOVED: u8 = 1;
/// Stands for the epoch of the next new beginning, which is not decided yet.
const NEXT_BEGINNING: Epoch = Epoch(u64::MAX);
/// Bytes of an entry with the shortest name.
const LEAST_ENTRY_BYTES: usize = 2 + 1 + 8 + 8 + 32 + 32 + 2 + 1;

/// A member, or one that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterEntry {
    pub(crate) slot: Slot,
    pub(crate) verifying: [u8; 32],
    pub(crate) certificate: [u8; 32],
    pub(crate) since: Epoch,
    pub(crate) removed: Option<Epoch>,
    pub(crate) name: String,
    /// The keys that its fresh cards have brought, in the order of their epochs.
    pub(crate) fresh: Vec<FreshSigningKey>,
}

/// A key that verifies a member's class S from an epoch on: whoever has a copy of the key before
/// it signs for the member no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreshSigningKey {
    pub(crate) since: Epoch,
    pub(crate) verifying: [u8; 32],
}

impl RosterEntry {
    /// Its place, which nobody else is given.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The key of its identity. It verifies the member's class S until a fresh card brings another.
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

    /// The first epoch that it is no part of, if it was removed or has taken another slot. In the
    /// folder of an authority that has to begin anew, `u64::MAX` is the epoch in which it will.
    pub fn removed(&self) -> Option<Epoch> {
        self.removed
    }

    /// Its time in the group, for readers: a term for each of its keys.
    pub(crate) fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        let fresh = self.fresh.iter().map(|key| (key.since, key.verifying));
        let keys = std::iter::once((self.since, self.verifying)).chain(fresh);
        let ends = self.fresh.iter().map(|key| Some(key.since)).chain([self.removed]);
        let term = |((since, verifying_key), until): (_, Option<Epoch>)| {
            let until = [until, self.removed].into_iter().flatten().min();
            Term { slot: self.slot, since, until, verifying_key }
        };
        let has_time = |term: &Term| term.until.is_none_or(|until| term.since < until);
        keys.zip(ends).map(term).filter(has_time)
    }

    /// Whether it is a member in that epoch.
    pub(crate) fn holds(&self, epoch: Epoch) -> bool {
        self.since <= epoch && self.removed.is_none_or(|until| epoch < until)
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

    /// A member of another key than that one whose name is that one, or looks like it; also a
    /// former member, so that nobody takes the name of one that people remember.
    pub(crate) fn alike(&self, name: &str, key: &[u8; 32]) -> Option<&RosterEntry> {
        let mut others = self.entries.iter().filter(|entry| entry.verifying != *key);
        others.find(|entry| are_alike(&entry.name, name))
    }

    /// The entry of a slot.
    pub fn entry(&self, slot: Slot) -> Option<&RosterEntry> {
        let found = self.entries.binary_search_by_key(&slot, |entry| entry.slot).ok()?;
        self.entries.get(found)
    }

    /// The member of that name, or beginning of its verifying key in hexadecimal digits (eight or
    /// more), if it is the only one. A number is no slot here: a member chooses its name.
    pub fn find(&self, text: &str) -> Option<&RosterEntry> {
        let digits = text.to_ascii_lowercase();
        let is_key = |entry: &&RosterEntry| {
            digits.len() >= 8 && hex::encode(&entry.verifying).starts_with(&digits)
        };
        let mut named = self.members().filter(|entry| entry.name == text || is_key(entry));
        let first = named.next();
        first.filter(|_| named.next().is_none())
    }

    /// The next slot that nobody was given, here or elsewhere.
    pub(crate) fn free_slot(&self, is_pair: bool, elsewhere: u16) -> Result<Slot, Error> {
        let next = self.given().max(elsewhere);
        let is_free = usize::from(next) < slots(is_pair);
        is_free.then(|| Slot::new(next)).flatten().ok_or(Error::RosterFull)
    }

    /// How many slots nobody was given yet. No slot is given again.
    pub(crate) fn slots_left(&self, is_pair: bool) -> usize {
        slots(is_pair).saturating_sub(usize::from(self.given()))
    }

    /// How many slots were given.
    pub(crate) fn given(&self) -> u16 {
        self.entries.last().map_or(0, |last| last.slot.number() + 1)
    }

    /// This roster, and what another one knows of the past: a slot that this one does not list was
    /// given elsewhere, and is a member's no more from `epoch` on.
    pub(crate) fn with_past(mut self, past: &GroupRoster, epoch: Epoch) -> Result<Self, Error> {
        for known in &past.entries {
            match self.entries.binary_search_by_key(&known.slot, |entry| entry.slot) {
                Ok(found) => {
                    let Some(entry) = self.entries.get_mut(found) else { continue };
                    if let (Some(ended), Some(earlier)) = (entry.removed.as_mut(), known.removed) {
                        *ended = earlier.min(*ended);
                    }
                    // An authority that was put back does not know the keys of later fresh cards.
                    // Messages that they have signed until the end stay readable.
                    let is_same = entry.certificate == known.certificate;
                    if is_same && known.fresh.starts_with(&entry.fresh) {
                        entry.fresh.clone_from(&known.fresh);
                    }
                }
                Err(place) => {
                    let removed = Some(known.removed.unwrap_or(epoch));
                    self.entries.insert(place, RosterEntry { removed, ..known.clone() });
                }
            }
        }
        if self.entries.len() > MAX_ROSTER_MEMBERS { Err(Error::RosterFull) } else { Ok(self) }
    }

    /// The epochs in which the keys of somebody ended: by a removal, or by a fresh card.
    pub(crate) fn ends(&self) -> HashSet<Epoch> {
        let fresh =
            |entry: &RosterEntry| entry.fresh.iter().map(|key| key.since).collect::<Vec<_>>();
        self.entries.iter().flat_map(|one| one.removed.into_iter().chain(fresh(one))).collect()
    }

    /// Adds an entry behind all others.
    pub(crate) fn admit(&mut self, entry: RosterEntry) {
        self.entries.push(entry);
    }

    /// Takes the key that a member's fresh card has brought.
    pub(crate) fn renew_key(
        &mut self,
        slot: Slot,
        since: Epoch,
        verifying: [u8; 32],
    ) -> Result<(), Error> {
        let entry = self.entries.iter_mut().find(|entry| entry.slot == slot);
        let entry = entry.ok_or_else(|| Error::UnknownMember(slot.number().to_string()))?;
        if entry.fresh.len() >= MAX_FRESH_KEYS {
            return Err(Error::Refused("the member had too many fresh keys: invite it again"));
        }
        entry.fresh.push(FreshSigningKey { since, verifying });
        Ok(())
    }

    pub(crate) fn remove(&mut self, slot: Slot, from: Epoch) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.slot == slot) {
            let known = entry.removed.filter(|known| *known != NEXT_BEGINNING);
            entry.removed = known.or(Some(from));
        }
    }

    /// Removes a member from the next new beginning on. Until then its messages count.
    pub(crate) fn retire(&mut self, slot: Slot) {
        self.remove(slot, NEXT_BEGINNING);
    }

    /// Says in which epoch that beginning is.
    pub(crate) fn begin(&mut self, epoch: Epoch) {
        let ends = self.entries.iter_mut().filter_map(|entry| entry.removed.as_mut());
        ends.filter(|ended| **ended == NEXT_BEGINNING).for_each(|ended| *ended = epoch);
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
            out.push(entry.fresh.len() as u8);
            for key in &entry.fresh {
                out.extend(key.since.0.to_be_bytes());
                out.extend(key.verifying);
            }
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
            let fresh = read_fresh(reader, since)?;
            entries.push(RosterEntry { slot, verifying, certificate, since, removed, name, fresh });
        }
        GroupRoster::new(entries).ok_or_else(|| reader.malformed())
    }
}

/// The fresh keys of an entry, each of a later epoch than the one before.
fn read_fresh(
    reader: &mut GroupFieldReader<'_>,
    since: Epoch,
) -> Result<Vec<FreshSigningKey>, Error> {
    let count = usize::from(reader.u8()?);
    if count > MAX_FRESH_KEYS || count * 40 > reader.left() {
        return Err(reader.malformed());
    }
    let mut fresh: Vec<FreshSigningKey> = Vec::with_capacity(count);
    for _ in 0..count {
        let key = FreshSigningKey { since: Epoch(reader.u64()?), verifying: reader.array()? };
        if key.since <= fresh.last().map_or(since, |last| last.since) {
            return Err(reader.malformed());
        }
        fresh.push(key);
    }
    Ok(fresh)
}

/// The slots of a group, or of a pair.
fn slots(is_pair: bool) -> usize {
    if is_pair { 2 } else { MAX_ROSTER_MEMBERS }
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
            fresh: Vec::new(),
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
    fn a_member_is_found_by_its_name_or_eight_digits_of_its_key_and_by_no_slot() {
        let mut roster = roster();
        // Names of digits are refused today, and a group may have one from before.
        roster.admit(entry(6, 0x77, "1", None));
        let found = |text: &str| roster.find(text).map(|entry| entry.slot.number());
        assert_eq!([found("0"), found("1"), found("5")], [None, Some(6), None]);
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
    fn a_name_stays_taken_and_slots_are_counted() {
        let mut roster = roster();
        let alike = |name, key| roster.alike(name, &[key; 32]).map(|one| one.slot.number());
        assert_eq!(alike("Car 2", 0x99), Some(2), "a removed member's");
        assert_eq!(alike("car 2", 0x34), None, "its own");
        assert_eq!(alike("car 3", 0x99), None);
        assert_eq!((roster.slots_left(false), roster.slots_left(true)), (1018, 0));
        assert_eq!(roster.free_slot(false, 0).unwrap().number(), 6);
        roster.admit(entry(1023, 0x55, "last", None));
        assert_eq!(roster.slots_left(false), 0);
        assert!(matches!(roster.free_slot(false, 0), Err(Error::RosterFull)));
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
