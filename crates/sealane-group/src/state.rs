//! A member's state of a group.

use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::limits::MAX_EPOCHS_HELD;
use sealane_seal::{Epoch, EpochSecret, Epochs, GroupId, History, Slot};
use zeroize::Zeroizing;

use crate::charter::GroupCharter;
use crate::limits::{MAX_CARDS_SPENT, MAX_CERTIFICATES_WAITING, MAX_ROSTER_MEMBERS};
use crate::marks::{MARK_BYTES, RemovalMarks};
use crate::roster::{group_tag, peer_tag};
use crate::wire::{GroupFieldReader, put_part};
use crate::{Error, GroupDocument, GroupRoster};

const REMOVED: u8 = 1;
const COPIED: u8 = 2;
const EPOCH_BYTES: usize = 8 + 32;
const WRAP_KEY_BYTES: usize = 2 + 32;

/// A pairwise key, by the member's slot.
pub(crate) type WrapKeys = Vec<(Slot, Zeroizing<[u8; 32]>)>;

/// A group, as one of its members knows it.
#[derive(Clone)]
pub(crate) struct GroupState {
    pub(crate) charter: GroupCharter,
    pub(crate) routing: Zeroizing<[u8; 32]>,
    pub(crate) slot: Slot,
    pub(crate) is_removed: bool,
    /// Whether it was copied or restored: an authority may not go on from it.
    pub(crate) is_copied: bool,
    /// Agreed with the authority when this member joined; unused by the authority itself.
    pub(crate) wrap_key: Zeroizing<[u8; 32]>,
    /// Before it nothing is taken live: somebody was removed then.
    pub(crate) live_from: Epoch,
    pub(crate) roster: GroupRoster,
    pub(crate) epochs: Epochs,
    /// The authority's: what it agreed on with each member.
    pub(crate) wraps: WrapKeys,
    pub(crate) certificates: Vec<Vec<u8>>,
    /// How many orders were obeyed: the number of the next one. The authority's: given.
    pub(crate) orders: u64,
    /// How many orders were given, by what the authority has signed.
    pub(crate) known: u64,
    /// The same, by the beater's word alone: forgotten when it is dismissed.
    pub(crate) claimed: u64,
    /// An epoch whose secret this member is still to be told, or its newest.
    pub(crate) awaited: Epoch,
    pub(crate) marks: RemovalMarks,
    /// The authority's: for which removal the members were told marks.
    pub(crate) marked: Epoch,
    /// The beater whose heartbeats count beside the authority's.
    pub(crate) beater: Option<[u8; 32]>,
    pub(crate) beat: NewestHeartbeat,
    /// The authority's: hashes of the cards that were invited.
    pub(crate) spent: Vec<[u8; 32]>,
}

/// The newest heartbeat that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NewestHeartbeat {
    /// When it was made, by its signer's clock.
    pub(crate) time_ms: u64,
    /// When it came, by the clock here. A clock that goes wrong is noticed by one of the two.
    pub(crate) came_ms: u64,
}

impl NewestHeartbeat {
    /// How old it is, by the worse of the two clocks. A clock here that was put back since it came
    /// makes it as old as the clock was put back.
    pub(crate) fn age_ms(self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.time_ms).max(now_ms.abs_diff(self.came_ms))
    }
}

impl GroupState {
    pub(crate) fn id(&self) -> GroupId {
        self.charter.id()
    }

    pub(crate) fn tag(&self) -> GroupTag {
        group_tag(&self.routing, self.id())
    }

    /// The tag of a slot, if somebody was given it.
    pub(crate) fn peer_tag(&self, slot: Slot) -> Option<PeerTag> {
        self.roster.entry(slot).map(|entry| peer_tag(&self.routing, entry))
    }

    /// Whether orders are known that were not obeyed, or an epoch whose secret has not come.
    pub(crate) fn is_behind(&self) -> bool {
        self.all_known() > self.orders || self.awaited > self.epochs.newest()
    }

    /// How many orders were given, by whoever may say so.
    fn all_known(&self) -> u64 {
        self.known.max(self.claimed)
    }

    /// Forgets what the beater alone has said, which may have been wrong.
    pub(crate) fn dismiss_beater(&mut self) {
        self.claimed = 0;
        // A time that lies ahead would turn away all heartbeats until then.
        self.beat.time_ms = self.beat.time_ms.min(self.beat.came_ms);
    }

    /// Why nothing may be sealed, if that is so.
    pub(crate) fn check_sealing(&self) -> Result<(), Error> {
        if self.is_removed {
            return Err(Error::Removed);
        }
        if self.is_behind() {
            return Err(Error::Behind { missing: self.orders, known: self.all_known() });
        }
        Ok(())
    }

    /// Remembers that a card was used.
    pub(crate) fn spend(&mut self, card: [u8; 32]) {
        self.spent.push(card);
        let old = self.spent.len().saturating_sub(MAX_CARDS_SPENT);
        self.spent.drain(..old);
    }

    /// Keeps a certificate until its admission comes; the oldest goes first.
    pub(crate) fn keep_certificate(&mut self, bytes: &[u8]) {
        if self.certificates.iter().any(|kept| kept == bytes) {
            return;
        }
        if self.certificates.len() >= MAX_CERTIFICATES_WAITING {
            self.certificates.remove(0);
        }
        self.certificates.push(bytes.to_vec());
    }

    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.capacity()));
        put_part(&mut bytes, &self.charter.to_bytes());
        bytes.extend_from_slice(self.routing.as_slice());
        bytes.extend(self.slot.number().to_be_bytes());
        let removed = if self.is_removed { REMOVED } else { 0 };
        bytes.push(removed | if self.is_copied { COPIED } else { 0 });
        bytes.extend_from_slice(self.wrap_key.as_slice());
        bytes.extend(self.live_from.0.to_be_bytes());
        self.roster.put(&mut bytes);
        put_epochs(&mut bytes, &self.epochs.held().collect::<Vec<_>>());
        bytes.extend((self.wraps.len() as u16).to_be_bytes());
        for (slot, key) in &self.wraps {
            bytes.extend(slot.number().to_be_bytes());
            bytes.extend_from_slice(key.as_slice());
        }
        bytes.extend((self.certificates.len() as u16).to_be_bytes());
        self.certificates.iter().for_each(|certificate| put_part(&mut bytes, certificate));
        let words = [self.orders, self.known, self.claimed, self.awaited.0, self.marked.0];
        bytes.extend(words.into_iter().flat_map(u64::to_be_bytes));
        self.marks.put(&mut bytes);
        bytes.extend(self.beater.unwrap_or_default());
        bytes.extend(self.beat.time_ms.to_be_bytes());
        bytes.extend(self.beat.came_ms.to_be_bytes());
        bytes.extend((self.spent.len() as u16).to_be_bytes());
        bytes.extend(self.spent.iter().flatten());
        bytes
    }

    /// Room for all of it, so that no growth leaves copies of secrets behind.
    pub(crate) fn capacity(&self) -> usize {
        let certificates: usize = self.certificates.iter().map(|one| 4 + one.len()).sum();
        4096 + self.roster.entries().len() * 160
            + self.epochs.held().count() * EPOCH_BYTES
            + self.wraps.len() * WRAP_KEY_BYTES
            + self.marks.len() * (MARK_BYTES + 8)
            + self.spent.len() * 32
            + certificates
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<GroupState, Error> {
        let document = GroupDocument::GroupFile;
        let mut reader = GroupFieldReader::new(document, bytes);
        let charter = GroupCharter::from_bytes(document, reader.part()?)?;
        let routing = Zeroizing::new(reader.array()?);
        let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let flags = reader.u8()?;
        if flags & !(REMOVED | COPIED) != 0 {
            return Err(reader.malformed());
        }
        let wrap_key = Zeroizing::new(reader.array()?);
        let live_from = Epoch(reader.u64()?);
        let roster = GroupRoster::read(&mut reader)?;
        let epochs = read_epochs(&mut reader, charter.id(), charter.history)?;
        let count = reader.count(MAX_ROSTER_MEMBERS, WRAP_KEY_BYTES)?;
        let mut wraps = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
            wraps.push((slot, Zeroizing::new(reader.array()?)));
        }
        let count = reader.count(MAX_CERTIFICATES_WAITING, 4)?;
        let mut certificates = Vec::with_capacity(count);
        for _ in 0..count {
            certificates.push(reader.part()?.to_vec());
        }
        let (orders, known, claimed) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (awaited, marked) = (Epoch(reader.u64()?), Epoch(reader.u64()?));
        let marks = RemovalMarks::read(&mut reader)?;
        let beater: [u8; 32] = reader.array()?;
        let beat = NewestHeartbeat { time_ms: reader.u64()?, came_ms: reader.u64()? };
        let count = reader.count(MAX_CARDS_SPENT, 32)?;
        let spent = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(GroupState {
            charter,
            routing,
            slot,
            is_removed: flags & REMOVED != 0,
            is_copied: flags & COPIED != 0,
            wrap_key,
            live_from,
            roster,
            epochs,
            wraps,
            certificates,
            orders,
            known,
            claimed,
            awaited,
            marks,
            marked,
            beater: (beater != [0; 32]).then_some(beater),
            beat,
            spent,
        })
    }
}

/// Appends epochs and secrets behind their count.
pub(crate) fn put_epochs(out: &mut Vec<u8>, held: &[(Epoch, &EpochSecret)]) {
    out.extend((held.len() as u16).to_be_bytes());
    for (epoch, secret) in held {
        out.extend(epoch.0.to_be_bytes());
        out.extend_from_slice(secret.expose());
    }
}

/// Reads at least one epoch, the oldest first and each once.
pub(crate) fn read_epochs(
    reader: &mut GroupFieldReader<'_>,
    group: GroupId,
    history: History,
) -> Result<Epochs, Error> {
    let count = reader.count(MAX_EPOCHS_HELD, EPOCH_BYTES)?;
    let mut epochs: Option<Epochs> = None;
    for _ in 0..count {
        let (epoch, secret) = (Epoch(reader.u64()?), EpochSecret::new(reader.array()?));
        match &mut epochs {
            Some(epochs) if epochs.newest() >= epoch => return Err(reader.malformed()),
            Some(epochs) => epochs.insert(epoch, secret).map_err(|_| reader.malformed())?,
            None => epochs = Some(Epochs::new(group, history, epoch, secret)),
        }
    }
    epochs.ok_or_else(|| reader.malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(order: &[u64]) -> Result<Vec<u64>, Error> {
        let secret = EpochSecret::new([7; 32]);
        let held: Vec<_> = order.iter().map(|epoch| (Epoch(*epoch), &secret)).collect();
        let mut bytes = Vec::new();
        put_epochs(&mut bytes, &held);
        let mut reader = GroupFieldReader::new(GroupDocument::GroupFile, &bytes);
        let epochs = read_epochs(&mut reader, GroupId([1; 32]), History::Kept)?;
        Ok(epochs.held().map(|(epoch, _)| epoch.0).collect())
    }

    #[test]
    fn epochs_are_read_in_order_and_once() {
        assert_eq!(read(&[1, 2, 9]).unwrap(), [1, 2, 9]);
        for order in [[2, 1].as_slice(), &[1, 1], &[1, 3, 2], &[]] {
            assert!(matches!(read(order), Err(Error::Malformed(_))), "{order:?}");
        }
    }
}
