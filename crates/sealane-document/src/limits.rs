//! The bounds of documents that are kept and exchanged.

use sealane_message::DataType;

sealane_message::limits! {
    /// A frame that carries a document, in the full form without the relay's bytes. A longer one is
    /// refused.
    MAX_DOCUMENT_BYTES: usize = 1024, "bytes";
    /// Lines of chat of one member. The oldest leaves.
    MAX_CHAT_KEPT: usize = 32, "frames";
    /// Acknowledgements of one member, and calls that it has cleared. The oldest leaves.
    MAX_ANSWERS_KEPT: usize = 64, "frames";
}

/// The data types of applications, of which the newest frame is kept.
pub const APPLICATION_TYPES: std::ops::RangeInclusive<u16> = 64..=79;

/// How many frames of a data type are kept of each origin; 0: they are no documents.
pub fn kept(data_type: DataType) -> usize {
    match data_type {
        DataType::COUNTER
        | DataType::HEARTBEAT
        | DataType::VITALS
        | DataType::LOCATION
        | DataType::EMERGENCY => 1,
        DataType::CHAT => MAX_CHAT_KEPT,
        DataType::ACKNOWLEDGEMENT | DataType::CLEAR => MAX_ANSWERS_KEPT,
        other if APPLICATION_TYPES.contains(&other.number()) => 1,
        _ => 0,
    }
}
