//! A group of a few members, and frames that they seal.

use sealane_document::stream_name;
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_message::DataType;
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext, Slot,
    Suite,
};

pub(crate) const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);

pub(crate) fn epochs() -> Epochs {
    let secret = EpochSecret::new([1; 32]);
    Epochs::new(group().id(), History::Kept, Epoch(0), secret)
}

pub(crate) fn group() -> Group {
    Group::new(GroupId([7; 32]), Suite::ChaCha20Poly1305)
}

pub(crate) fn peer(number: u16) -> PeerTag {
    let [low, high] = number.to_le_bytes();
    PeerTag::from_hash([8, low, high, 1, 1, 1, 1, 1])
}

/// A member that seals.
pub(crate) struct Origin {
    sealer: Sealer,
    slot: u16,
}

impl Origin {
    pub(crate) fn new(slot: u16) -> Self {
        let [low, high] = slot.to_le_bytes();
        let context = SenderContext([low, high, 1, 1, 1, 1, 1, 1]);
        let of = Slot::new(slot).unwrap();
        let sealer = Sealer::new(group(), of, context, &epochs(), 0).unwrap();
        Self { sealer, slot }
    }

    pub(crate) fn skip_to(&mut self, counter: u64) {
        self.sealer.go_on_at(counter);
    }

    pub(crate) fn seal(&mut self, data_type: u16, body: &[u8]) -> Vec<u8> {
        let binding = Binding::stream(&stream_name(GROUP, DataType::from_number(data_type)));
        let fields = HeaderFields::new(GROUP, peer(self.slot), data_type);
        let mut buf = FrameBuf::new();
        seal_frame(&mut self.sealer, &fields, &binding, body, &mut buf).unwrap().to_vec()
    }

    /// As somebody without keys writes it.
    pub(crate) fn forge(&mut self, data_type: u16) -> Vec<u8> {
        let mut frame = self.seal(data_type, b"forged");
        let end = frame.len() - 20;
        frame[end..].fill(0xee);
        frame
    }
}
