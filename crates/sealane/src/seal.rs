//! The seals of messages, as programs are told of them.

use sealane_frame::GroupTag;
use sealane_message::DataType;
use sealane_seal::{Class, SenderContext};

use crate::limits::MAX_URGENT_AGE_MS;

/// The content of a message's seal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seal {
    /// The group.
    pub group: GroupTag,
    /// The name that the sender's certificate gives. Only in class S, or in a pair, is it proven
    /// against other members.
    pub sender: String,
    /// The sender's slot.
    pub slot: u16,
    /// The protection that the seal gives.
    pub class: Class,
    /// The type of the body, by the sender's word.
    pub data_type: DataType,
    /// The epoch of the keys.
    pub epoch: u64,
    /// The start of the sender that made it.
    pub context: SenderContext,
    /// The sender's counter: group, epoch, slot, context and counter name the message.
    pub counter: u64,
    /// When an urgent message was made, in Unix milliseconds of its sender's clock. No other
    /// message says when.
    pub time_ms: Option<u64>,
}

impl Seal {
    /// How old an urgent message is, in milliseconds; 0 where the sender's clock is ahead.
    pub fn age_ms(&self, now_ms: u64) -> Option<u64> {
        self.time_ms.map(|time_ms| now_ms.saturating_sub(time_ms))
    }

    /// Whether an urgent message is too old to act on. It is still to be shown.
    pub fn is_old(&self, now_ms: u64) -> bool {
        self.age_ms(now_ms).is_some_and(|age_ms| age_ms > MAX_URGENT_AGE_MS)
    }
}

/// The counts of a subscription to sealed streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SealCounts {
    /// Messages that were opened and given.
    pub opened: u64,
    /// Messages that came again at another place: a hub that replays, or a sender that repeated.
    pub repeated: u64,
    /// Messages in a class below the floor of their type.
    pub below_floor: u64,
    /// Frames of an epoch whose secret is not held, or of a signer who is not known.
    pub keys_unknown: u64,
    /// Messages of epochs before a removal that stand behind it.
    pub behind_removal: u64,
    /// Frames that did not open, or opened to no message.
    pub refused: u64,
    /// Counters of senders between the least and the greatest that came, and that did not come. A
    /// sender uses one counter for all its streams, and loses some when it restarts.
    pub skipped: u64,
}
