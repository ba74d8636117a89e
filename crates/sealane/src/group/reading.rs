//! A subscription's deliveries, opened.

use sealane_frame::FrameError;
use sealane_protocol::Sealed;
use sealane_seal::policy::Refusal as PolicyRefusal;
use sealane_seal::{Epoch, Error as SealError};

use super::Group;
use super::seen::{Origin, Seen, Sight};
use crate::error::Unshown;
use crate::{Message, Seal, SealCounts};

/// The reader of one subscription.
#[derive(Debug)]
pub(crate) struct Reading {
    group: Group,
    /// The epoch of the last message that opened.
    cursor: Epoch,
    seen: Seen,
    counts: SealCounts,
}

impl Reading {
    /// A reader for itself, or one member of a consumer, to whom the same message may come again.
    pub(crate) fn new(group: Group, is_consumer: bool) -> Self {
        let cursor = group.keys().newest();
        Self { group, cursor, seen: Seen::new(is_consumer), counts: SealCounts::default() }
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) fn counts(&self) -> SealCounts {
        SealCounts { skipped: self.seen.skipped(), ..self.counts }
    }

    /// Opens a message as it came.
    pub(crate) fn open(&mut self, message: &Message) -> Result<Message, Unshown> {
        let sealed = Sealed::read(message.codec, &message.envelope).ok().flatten();
        let frame = sealed.ok_or(Unshown::NotSealed)?.frame.into_owned();
        let shown = self.group.keys().open(self.cursor, frame)?;
        let (epoch, slot) = (shown.opened.epoch(), shown.opened.slot());
        self.cursor = epoch;
        if let Some(removed) = shown.removed {
            // In the epoch itself a slot may have been retired for a new one of its owner.
            let is_late = epoch < removed && self.seen.newest(&message.stream) >= Some(removed);
            if is_late || epoch > removed {
                return Err(Unshown::Posthumous);
            }
        }
        let origin = Origin::of(message);
        let sight = self.seen.see((epoch, slot, shown.opened.counter()), &message.stream, origin);
        if sight == Sight::Elsewhere {
            return Err(Unshown::Repeated);
        }
        self.counts.opened += 1;
        let seal = Seal {
            group: self.group.tag(),
            sender: shown.sender,
            slot: slot.number(),
            class: shown.opened.class(),
            data_type: shown.data_type,
            epoch: epoch.0,
            counter: shown.opened.counter(),
        };
        Ok(message.opened(shown.codec, shown.envelope, seal))
    }

    /// Counts a delivery that is not shown.
    pub(crate) fn count(&mut self, refusal: &Unshown) {
        let count = match refusal {
            Unshown::Repeated => &mut self.counts.repeated,
            Unshown::Early(_) | Unshown::Frame(FrameError::Seal(SealError::EpochUnknown)) => {
                &mut self.counts.keys_unknown
            }
            Unshown::Policy(PolicyRefusal::BelowFloor { .. }) => &mut self.counts.below_floor,
            _ => &mut self.counts.refused,
        };
        *count += 1;
    }
}
