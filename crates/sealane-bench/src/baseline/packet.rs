//! The packet of the vehicular network's simulator.

/// As many bytes as a frame may have, however many it has.
#[derive(Clone, Copy)]
pub(crate) struct BaselineFixedPacket {
    bytes: [u8; 9000],
    length: usize,
}

impl BaselineFixedPacket {
    pub(crate) fn new(length: usize) -> Self {
        Self { bytes: [7; 9000], length }
    }

    /// The last byte that is used, so that somebody has looked.
    pub(crate) fn last(&self) -> u64 {
        let last = self.length.checked_sub(1).and_then(|last| self.bytes.get(last));
        last.copied().unwrap_or_default().into()
    }
}
