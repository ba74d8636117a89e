//! Frames that were here before.

use std::collections::HashSet;

use crate::gateway::frame::FrameName;
use crate::limits::MAX_FRAMES_KNOWN;

/// The last frames, by their names. It forgets the older half at once, so that it is bounded.
#[derive(Debug, Default)]
pub(crate) struct KnownFrames {
    newer: HashSet<FrameName>,
    older: HashSet<FrameName>,
}

const HALF: usize = MAX_FRAMES_KNOWN / 2;

impl KnownFrames {
    /// Whether a frame was here before, as far as is remembered.
    pub(crate) fn has(&self, name: FrameName) -> bool {
        self.newer.contains(&name) || self.older.contains(&name)
    }

    /// Remembers a frame, and says whether it was new.
    pub(crate) fn add(&mut self, name: FrameName) -> bool {
        if self.has(name) {
            return false;
        }
        self.newer.insert(name);
        // Half of the memory is dropped at once. An exact order of age would cost a list beside the
        // set.
        if self.newer.len() >= HALF {
            self.older = std::mem::take(&mut self.newer);
        }
        true
    }

    /// Forgets a frame that was not kept after all.
    pub(crate) fn forget(&mut self, name: FrameName) {
        // The frame may have moved to the older set since it was added.
        self.newer.remove(&name);
        self.older.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_new_once_and_memory_is_bounded() {
        let name = |number: usize| {
            let mut name = FrameName([0; 16]);
            name.0[..8].copy_from_slice(&number.to_le_bytes());
            name
        };
        let mut known = KnownFrames::default();
        for number in 0..4 * MAX_FRAMES_KNOWN {
            assert!(known.add(name(number)) && !known.add(name(number)));
            assert!(known.newer.len() + known.older.len() <= MAX_FRAMES_KNOWN);
        }
        assert!(!known.has(name(0)) && known.has(name(4 * MAX_FRAMES_KNOWN - HALF)));
        known.forget(name(4 * MAX_FRAMES_KNOWN - 1));
        assert!(known.add(name(4 * MAX_FRAMES_KNOWN - 1)));
    }
}
