//! What is told of the seals of messages.

use sealane_frame::GroupTag;
use sealane_message::DataType;
use sealane_seal::Class;

/// What the seal of a message says.
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
    /// What the seal protects.
    pub class: Class,
    /// What the body is, by the sender's word.
    pub data_type: DataType,
    /// The epoch of the keys.
    pub epoch: u64,
    /// The sender's counter in that epoch: with group, epoch and slot the message's identity.
    pub counter: u64,
}

/// What a subscription has met in sealed streams.
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
    /// What did not open, or was no message.
    pub refused: u64,
    /// Counters of senders between the least and the greatest that came, and that did not come. A
    /// sender uses one counter for all its streams, and loses some when it restarts.
    pub skipped: u64,
}
