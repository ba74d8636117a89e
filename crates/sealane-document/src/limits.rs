//! The bounds of documents that are kept and exchanged.

use sealane_message::DataType;

sealane_message::limits! {
    /// A frame that carries a document, in the full form without the relay's bytes. A longer one is
    /// refused.
    MAX_DOCUMENT_BYTES: usize = 1024, "bytes";
    /// The text of a line of chat. A longer one is refused: its frame would be no document.
    MAX_SAID_BYTES: usize = 768, "bytes";
    /// Lines of chat of one member. The oldest leaves.
    MAX_CHAT_KEPT: usize = 32, "frames";
    /// Acknowledgements of one member, and calls that it has cleared. The oldest leaves.
    MAX_ANSWERS_KEPT: usize = 64, "frames";
    /// Frames of one member and one of the types 72 to 79, logs of applications. The oldest leaves.
    MAX_LOG_KEPT: usize = 64, "frames";
    /// Frames of one member and type beside those that are kept, where the keys are missing that
    /// would tell the true ones. The neighbour that brought the most loses its oldest; of a log
    /// there are as many as the log has.
    MAX_BESIDE: usize = 3, "frames";
    /// Groups of which a machine keeps documents. Frames of a further one are refused.
    MAX_DOCUMENT_GROUPS: usize = 16, "groups";
    /// Bytes that are kept of one member of a group, unless a store is opened with less. The least
    /// urgent and oldest frames leave.
    MAX_ORIGIN_BYTES: u64 = 1 << 20, "bytes";
    /// Bytes that a store keeps in all, unless it is opened with less. The member that has the most
    /// loses its least urgent and oldest frames.
    MAX_STORE_BYTES: u64 = 1 << 26, "bytes";
    /// Registers with conflicts that are told by name. Those of further ones count in the whole.
    MAX_CONFLICTING_TOLD: usize = 256, "registers";
    /// How far ahead of its own counter an origin follows a frame that it finds in its name.
    MAX_AHEAD: u64 = 1 << 20, "messages";
    /// Frames that an agent remembers as refused, and one reader of it. The oldest is forgotten.
    MAX_REFUSED_FRAMES: usize = 1024, "frames";
    /// Neighbours of which an agent remembers something. The one of the lowest slot is forgotten.
    MAX_DOCUMENT_PEERS: usize = 128, "neighbours";
    /// Messages without frames that wait to be written. A further one is dropped and counted.
    MAX_WORDS_WAITING: usize = 64, "messages";
    /// Frames that wait for neighbours. A further one is dropped and counted, and asked for again.
    MAX_GIFTS_WAITING: usize = 1024, "frames";
    /// How often a neighbour gets a frame without a pause. Then the pauses double.
    MAX_FREE_GIVES: u32 = 3, "times";
    /// The longest such pause. It grows no further.
    MAX_GIVE_WAITS: u32 = 64, "occasions";
    /// Frames of which an agent remembers that it gave them to one neighbour. The oldest is
    /// forgotten.
    MAX_GIVEN_FRAMES: usize = 256, "frames";
    /// How often the pause between two equal overviews doubles. Then it stays as it is.
    MAX_OVERVIEW_DOUBLINGS: u32 = 6, "times";
    /// Neighbours of which a shelf remembers that they opened a frame. Further ones are not noted.
    MAX_VOUCHERS: usize = 4, "neighbours";
    /// How long opening a store waits for another process to close it. Then opening fails.
    MAX_DOCUMENT_STORE_WAIT_MS: u64 = 500, "milliseconds";
}

/// The data types of applications of which the newest frame is kept.
pub const APPLICATION_TYPES: std::ops::RangeInclusive<u16> = 64..=71;
/// The data types of applications that are logs.
pub const APPLICATION_LOGS: std::ops::RangeInclusive<u16> = 72..=79;

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
        other if APPLICATION_LOGS.contains(&other.number()) => MAX_LOG_KEPT,
        _ => 0,
    }
}

/// Whether an origin seals what it has of that type anew in a new epoch: what tells its present
/// state, and not what it has said or measured.
pub fn is_register(data_type: DataType) -> bool {
    kept(data_type) == 1 || [DataType::ACKNOWLEDGEMENT, DataType::CLEAR].contains(&data_type)
}

/// How many frames are kept beside them where nobody can tell which are true.
pub fn kept_beside(data_type: DataType) -> usize {
    match kept(data_type) {
        0 => 0,
        1 => MAX_BESIDE,
        log => log,
    }
}
