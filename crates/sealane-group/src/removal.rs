//! The notice of a removal, which goes ahead of the re-key, and what a member keeps of it.

use sealane_seal::{Epoch, OpenedMessage, Slot};

use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_ROSTER_MEMBERS;
use crate::wire::GroupFieldReader;
use crate::{EpochSource, Error, GroupDocument};

/// That a member is about to be removed. The order that removes it is long, and may take hours on a
/// slow radio; a notice is one short frame, so that everybody stops taking the member's frames at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalNotice {
    /// The number of the order that removes the member.
    pub order: u64,
    /// The epoch which that order ends.
    pub epoch: Epoch,
    /// The member that is removed.
    pub slot: Slot,
    /// Messages that the member sealed in that epoch with a counter below this were sent before the
    /// removal. With 0 there are none.
    pub mark: u64,
}

/// Bytes of a removal: those of a notice before its signature, without the first.
pub(crate) const REMOVAL_BYTES: usize = 8 + 8 + 2 + 8;

/// A member that the authority removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRemoval {
    /// The slot of the member.
    pub slot: Slot,
    /// As [`RemovalNotice::mark`].
    pub mark: u64,
}

/// A member whose removal was announced, and not ordered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnouncedRemoval {
    /// The announcement that the authority has signed.
    pub removal: RemovalNotice,
    /// When it came: milliseconds since 1970-01-01 UTC by the clock here.
    pub came_ms: u64,
}

impl RemovalNotice {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.order.to_be_bytes());
        out.extend(self.epoch.0.to_be_bytes());
        out.extend(self.slot.number().to_be_bytes());
        out.extend(self.mark.to_be_bytes());
    }

    pub(crate) fn read(reader: &mut GroupFieldReader<'_>) -> Result<RemovalNotice, Error> {
        let (order, epoch) = (reader.u64()?, Epoch(reader.u64()?));
        let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        Ok(RemovalNotice { order, epoch, slot, mark: reader.u64()? })
    }

    /// Whether something of a slot is taken nevertheless: it is of somebody else, or was sent
    /// before the removal, as far as the authority has said.
    pub(crate) fn allows(&self, slot: Slot, epoch: Epoch, counter: u64) -> bool {
        slot != self.slot || epoch == self.epoch && counter < self.mark
    }
}

/// The members who leave, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AnnouncedRemovals(pub(crate) Vec<AnnouncedRemoval>);

impl AnnouncedRemovals {
    pub(crate) fn of(source: &impl EpochSource) -> AnnouncedRemovals {
        AnnouncedRemovals(source.leaving().to_vec())
    }

    /// Takes a removal unless a later one of the same slot is known.
    pub(crate) fn add(&mut self, leaving: AnnouncedRemoval) -> bool {
        let slot = leaving.removal.slot;
        let known = self.0.iter().find(|one| one.removal.slot == slot);
        if known.is_some_and(|known| known.removal.order >= leaving.removal.order) {
            return false;
        }
        self.0.retain(|one| one.removal.slot != slot);
        self.0.push(leaving);
        debug_assert!(self.0.len() <= MAX_ROSTER_MEMBERS, "each slot stands here once");
        true
    }

    /// Takes out those whose order was obeyed.
    pub(crate) fn take_ordered(&mut self, orders: u64) -> Vec<AnnouncedRemoval> {
        let (ordered, wait) = self.0.iter().partition(|one| one.removal.order < orders);
        self.0 = wait;
        ordered
    }

    /// Why an opened message is not taken, if that is so.
    pub(crate) fn check(&self, opened: &OpenedMessage) -> Result<(), Error> {
        let (slot, epoch, counter) = (opened.slot(), opened.epoch(), opened.counter());
        let refused = self.0.iter().find(|one| !one.removal.allows(slot, epoch, counter));
        let refused = refused.map(|one| one.removal);
        refused.map_or(Ok(()), |removal| {
            Err(Error::Leaving { slot: slot.number(), order: removal.order })
        })
    }
}

impl IdentityKeys {
    /// The announced removals that were kept. If the file is lost, the mesh tells them again.
    pub(crate) fn leavers(
        &self,
        _: &KeyFolderLock,
        name: &str,
    ) -> Result<AnnouncedRemovals, Error> {
        let payload = self.read_plain(name, "leaving", GroupDocument::LeavingFile)?;
        let mut reader = GroupFieldReader::new(GroupDocument::LeavingFile, &payload);
        let mut leavers = AnnouncedRemovals::default();
        while reader.left() >= REMOVAL_BYTES + 8 && leavers.0.len() < MAX_ROSTER_MEMBERS {
            let Ok(removal) = RemovalNotice::read(&mut reader) else { break };
            leavers.add(AnnouncedRemoval { removal, came_ms: reader.u64()? });
        }
        Ok(leavers)
    }

    pub(crate) fn save_leavers(
        &self,
        _: &KeyFolderLock,
        name: &str,
        leavers: &AnnouncedRemovals,
    ) -> Result<(), Error> {
        let mut payload = Vec::with_capacity(leavers.0.len() * (REMOVAL_BYTES + 8));
        for one in &leavers.0 {
            one.removal.put(&mut payload);
            payload.extend(one.came_ms.to_be_bytes());
        }
        self.write_plain(name, "leaving", GroupDocument::LeavingFile, &payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaving(slot: u16, order: u64) -> AnnouncedRemoval {
        let slot = Slot::new(slot).unwrap();
        let removal = RemovalNotice { order, epoch: Epoch(3), slot, mark: 7 };
        AnnouncedRemoval { removal, came_ms: 9 }
    }

    #[test]
    fn each_slot_leaves_once_and_until_its_order() {
        let mut leavers = AnnouncedRemovals::default();
        assert!(leavers.add(leaving(1, 5)) && leavers.add(leaving(2, 5)));
        assert!(!leavers.add(leaving(1, 5)) && !leavers.add(leaving(1, 4)));
        assert!(leavers.add(leaving(1, 8)));
        assert_eq!(leavers.take_ordered(5), []);
        assert_eq!(leavers.take_ordered(6), [leaving(2, 5)]);
        assert_eq!(leavers.0, [leaving(1, 8)]);
    }

    #[test]
    fn only_what_lies_below_the_mark_in_the_epoch_that_ends_is_taken() {
        let removal = leaving(1, 5).removal;
        let allows =
            |slot, epoch, counter| removal.allows(Slot::new(slot).unwrap(), Epoch(epoch), counter);
        assert!(allows(1, 3, 6) && allows(2, 3, 7));
        assert!(!allows(1, 3, 7) && !allows(1, 2, 0) && !allows(1, 4, 0));
    }
}
