//! How many messages of a consumer are not done, counted for its owner too.

use std::ops::Range;
use std::sync::Arc;

use super::ConsumerProgress;
use crate::shares::{OwnerTally, ShareKind};

/// The count of one consumer, and the part of it that its owner's share knows.
#[derive(Debug, Default)]
pub(super) struct LiveMessages {
    count: usize,
    noted: usize,
    share: Option<Arc<OwnerTally>>,
}

impl LiveMessages {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Counts for a share from now on.
    pub(super) fn belong_to(&mut self, share: Arc<OwnerTally>) {
        self.leave();
        self.share = Some(share);
        self.settle();
    }

    /// Counts for no share any more.
    pub(super) fn leave(&mut self) {
        let noted = std::mem::take(&mut self.noted);
        if let Some(share) = self.share.take() {
            share.remove(ShareKind::InFlight, noted as u64);
        }
    }

    /// The share that it counts for, to be handed on.
    pub(super) fn take_share(&mut self) -> Option<Arc<OwnerTally>> {
        let share = self.share.clone();
        self.leave();
        share
    }

    /// Counts one message more or less, which the share is told of when the change is whole.
    pub(super) fn change(&mut self, was_live: bool, is_live: bool) {
        self.count += usize::from(is_live);
        self.count -= usize::from(was_live);
    }

    /// Tells the share. Once for each change, and not for each message: an acknowledgement may
    /// finish thousands.
    pub(super) fn settle(&mut self) {
        let Some(share) = &self.share else { return };
        match self.count.checked_sub(self.noted) {
            Some(0) => {}
            Some(more) => share.add(ShareKind::InFlight, more as u64),
            None => share.remove(ShareKind::InFlight, (self.noted - self.count) as u64),
        }
        self.noted = self.count;
    }

    pub(super) fn has_room(&self) -> bool {
        self.share.as_ref().is_none_or(|share| share.has_in_flight_room())
    }

    /// Takes room for up to so many messages more.
    pub(super) fn reserve(&self, most: usize) -> usize {
        self.share.as_ref().map_or(most, |share| share.take_in_flight(most))
    }

    /// So many messages came, of those that there was room for.
    pub(super) fn add(&mut self, count: usize, reserved: usize) {
        self.count += count;
        if let Some(share) = &self.share {
            self.noted += count;
            share.remove(ShareKind::InFlight, (reserved - count) as u64);
        }
    }
}

impl Drop for LiveMessages {
    fn drop(&mut self) {
        self.leave();
    }
}

impl ConsumerProgress {
    /// Has these messages count for a share, now and from now on.
    pub(crate) fn belong_to(&mut self, share: Arc<OwnerTally>) {
        self.live.belong_to(share);
    }

    /// Has them count for no share any more: the consumer is removed.
    pub(crate) fn leave_share(&mut self) {
        self.live.leave();
    }

    /// Whether nothing new is given since the owner's share is taken.
    pub(crate) fn is_starved(&self) -> bool {
        !self.live.has_room()
    }

    /// Whether something new would be given if the owner's share had room.
    pub(crate) fn wants_more(&self, visible: &Range<u64>) -> bool {
        !self.is_paused()
            && self.live.count() < self.settings.max_in_flight as usize
            && self.cursor.max(visible.start) < visible.end
    }
}
