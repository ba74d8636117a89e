use std::sync::Arc;

use sealane_message::DataType;
use sealane_seal::{Epoch, Slot};

/// Which message of its origin a frame is: later ones have a later epoch, or a higher counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentStamp {
    /// The epoch under which it was sealed.
    pub epoch: Epoch,
    /// The counter of its seal.
    pub counter: u64,
}

/// A hash of a frame without the bytes that relays change: BLAKE3.
///
/// Two frames with one stamp can only be of an origin that runs twice, or of a member that writes
/// in another's name; the greater mark decides which is kept, so that all keep the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameDigest(pub [u8; 32]);

/// A frame that was opened, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterEntry {
    /// The origin of the document.
    pub origin: Slot,
    /// The data type.
    pub data_type: DataType,
    /// Which message of the origin it is.
    pub stamp: DocumentStamp,
    mark: FrameDigest,
    frame: Arc<[u8]>,
}

impl RegisterEntry {
    /// A frame whose seal has opened for that origin, epoch and counter, in the full form without
    /// the relay's bytes.
    pub fn new(origin: Slot, data_type: DataType, stamp: DocumentStamp, frame: Arc<[u8]>) -> Self {
        let mark = FrameDigest(*blake3::hash(&frame).as_bytes());
        Self { origin, data_type, stamp, mark, frame }
    }

    /// Tells it from every other frame.
    pub fn mark(&self) -> FrameDigest {
        self.mark
    }

    /// The frame, without the relay's bytes.
    pub fn frame(&self) -> &Arc<[u8]> {
        &self.frame
    }
}
