//! The bytes that the incomplete frames of all links may take together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MAX_RELAY_PARTIAL_BYTES;

/// The room for incomplete frames: each link has its share, and what all of them hold is known.
#[derive(Debug)]
pub(crate) struct PartialRoom {
    share_bytes: usize,
    held_bytes: AtomicUsize,
}

impl PartialRoom {
    pub(crate) fn new(links: usize) -> Self {
        let share_bytes = MAX_RELAY_PARTIAL_BYTES / links.max(1);
        Self { share_bytes, held_bytes: AtomicUsize::new(0) }
    }

    /// The bytes that the incomplete frames of one link may take.
    pub(crate) fn share_bytes(&self) -> usize {
        self.share_bytes
    }

    /// Counts what a link holds now, instead of what it held.
    pub(crate) fn change(&self, before: &mut usize, now: usize) {
        // The sum is never below nothing: what is taken away was added by the same thread.
        self.held_bytes.fetch_add(now, Ordering::Relaxed);
        self.held_bytes.fetch_sub(std::mem::replace(before, now), Ordering::Relaxed);
    }

    pub(crate) fn held(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}
