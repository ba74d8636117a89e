//! The streams of a hub that hold a mesh's frames.

use std::fmt;

use sealane_frame::{GroupTag, Header};
use sealane_message::DataType;

/// A stream of the hub that holds what one group of a mesh sends of one data type:
/// `mesh/<group tag>/<data type>`. Frames are sealed for it by their origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MeshStream {
    /// The group.
    pub group: GroupTag,
    /// The data type of its frames.
    pub data_type: DataType,
}

/// The order in which frames go to the hub, and in which they are dropped last. The data type alone
/// decides, so that frames of one origin and stream never overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GatewayUrgency {
    /// Frames that the next frame of their kind makes worthless.
    Low,
    /// All that nobody has named otherwise.
    Normal,
    /// Frames that people write, and the answers to them.
    High,
    /// Frames that lose their force with age.
    Urgent,
}

impl MeshStream {
    /// The stream of a frame with that header.
    pub fn of(header: &Header) -> Self {
        let data_type = DataType::from_number(header.data_type());
        Self { group: header.group(), data_type }
    }

    /// How urgent its frames are.
    pub fn urgency(&self) -> GatewayUrgency {
        match self.data_type {
            urgent if urgent.is_urgent() => GatewayUrgency::Urgent,
            DataType::CHAT | DataType::RECEIPT | DataType::SENSITIVE_CHAT => GatewayUrgency::High,
            DataType::COUNTER | DataType::HEARTBEAT => GatewayUrgency::Low,
            _ => GatewayUrgency::Normal,
        }
    }

    /// One number for it, as a queue stores it.
    pub(crate) fn number(self) -> i64 {
        let group = u32::from_be_bytes(self.group.to_bytes());
        i64::from(group) << 16 | i64::from(self.data_type.number())
    }

    /// The stream of a number.
    pub(crate) fn numbered(number: i64) -> Self {
        let group = (number >> 16) as u32;
        let data_type = DataType::from_number(number as u16);
        Self { group: GroupTag::from_bytes(group.to_be_bytes()), data_type }
    }
}

impl fmt::Display for MeshStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mesh/{}/{}", self.group, self.data_type.number())
    }
}

impl GatewayUrgency {
    /// All, the least urgent first.
    pub const ALL: [GatewayUrgency; 4] =
        [GatewayUrgency::Low, GatewayUrgency::Normal, GatewayUrgency::High, GatewayUrgency::Urgent];

    /// Its name in metrics and status.
    pub fn name(self) -> &'static str {
        match self {
            GatewayUrgency::Low => "low",
            GatewayUrgency::Normal => "normal",
            GatewayUrgency::High => "high",
            GatewayUrgency::Urgent => "urgent",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_one_number_and_one_name() {
        for (group, data_type) in [([0, 0, 0, 0], 0), ([0xff; 4], 0xffff), ([0x1f, 0, 0xb, 9], 72)]
        {
            let group = GroupTag::from_bytes(group);
            let stream = MeshStream { group, data_type: DataType::from_number(data_type) };
            assert_eq!(MeshStream::numbered(stream.number()), stream);
            assert_eq!(stream.to_string(), format!("mesh/{group}/{data_type}"));
            assert!(stream.to_string().parse::<sealane_message::Topic>().is_ok());
        }
    }

    #[test]
    fn calls_for_help_go_before_all_others() {
        let urgency = |data_type| {
            MeshStream { group: GroupTag::default(), data_type: DataType::from_number(data_type) }
                .urgency()
        };
        assert_eq!([7, 8, 9, 11].map(urgency), [GatewayUrgency::Urgent; 4]);
        assert_eq!(
            [2, 72, 5].map(urgency),
            [GatewayUrgency::Low, GatewayUrgency::Normal, GatewayUrgency::High]
        );
    }
}
