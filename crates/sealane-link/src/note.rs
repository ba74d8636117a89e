//! The notes between the two ends of a link: units that are neither frame, fragment nor batch.

/// A note of a link: `spec/link.md`, section *Notes*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkNote {
    /// Asks the neighbour for the announcements of senders that it holds.
    Ask,
}

/// The bytes that a note begins with: the first one is a batch's, and no batch has a length of 0.
const MARK: [u8; 2] = [1, 0];
const ASK: u8 = 1;

impl LinkNote {
    /// The note that a unit holds; none if it holds something else, or a note of a later version.
    pub fn parse(unit: &[u8]) -> Option<LinkNote> {
        (unit == LinkNote::Ask.to_bytes()).then_some(LinkNote::Ask)
    }

    /// The note as it travels.
    pub(crate) const fn to_bytes(self) -> [u8; 3] {
        match self {
            LinkNote::Ask => [MARK[0], MARK[1], ASK],
        }
    }
}

#[cfg(test)]
mod tests {
    use sealane_frame::FrameBatch;

    use super::*;

    #[test]
    fn a_note_is_no_batch_and_reads_back() {
        let bytes = LinkNote::Ask.to_bytes();
        assert!(FrameBatch::parse(&bytes).is_err());
        assert_eq!(LinkNote::parse(&bytes), Some(LinkNote::Ask));
        for other in [&[1, 0][..], &[1, 0, 0], &[1, 0, 2], &[1, 0, 1, 0], &[1, 1, 1], &[]] {
            assert_eq!(LinkNote::parse(other), None, "{other:?}");
        }
    }
}
