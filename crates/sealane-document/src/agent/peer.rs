//! The memory about a neighbour: how often the same was tried.

use std::collections::VecDeque;

use crate::entry::FrameDigest;
use crate::limits::{MAX_FREE_GIVES, MAX_GIVE_WAITS, MAX_GIVEN_FRAMES};

/// The memory of a machine about a neighbour.
#[derive(Debug, Default)]
pub(super) struct ExchangePeer {
    /// The digests of both when an exchange was begun last.
    tried: Option<([u8; 8], [u8; 8])>,
    tries: u32,
    /// Hellos that pass before the next one.
    waits: u32,
    /// Frames that were given and have not shown since.
    given: VecDeque<ForwardedFrame>,
    /// The digests of both at its last hello.
    seen: Option<([u8; 8], [u8; 8])>,
    /// How many hellos of all had been heard at its last one.
    pub(super) heard_at: u64,
}

#[derive(Debug)]
struct ForwardedFrame {
    mark: FrameDigest,
    times: u32,
    waits: u32,
}

impl ExchangePeer {
    /// Whether an exchange is to be begun, at a hello of the neighbour. Where both hold something
    /// else, and that does not change, it is tried more and more seldom: one of them holds what the
    /// other refuses.
    pub(super) fn is_due(&mut self, ours: [u8; 8], theirs: [u8; 8], is_first: bool) -> bool {
        if ours == theirs {
            (self.tried, self.tries, self.waits) = (None, 0, 0);
            return false;
        }
        if self.tried != Some((ours, theirs)) {
            self.tried = Some((ours, theirs));
            self.tries = 0;
            // One of the two begins; the other only if that one does not.
            self.waits = u32::from(!is_first);
        }
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        self.tries += 1;
        self.waits = waits(self.tries);
        true
    }

    /// Whether both hold what they held at its last hello.
    pub(super) fn last_seen(&mut self, ours: [u8; 8], theirs: [u8; 8]) -> bool {
        self.seen.replace((ours, theirs)) == Some((ours, theirs))
    }

    /// The digest of its last hello.
    pub(super) fn digest(&self) -> Option<[u8; 8]> {
        self.seen.map(|(_, theirs)| theirs)
    }

    /// Whether a frame that the neighbour does not show is to be given now. Nothing counts as given
    /// before it is shown, and what never shows is given more and more seldom.
    pub(super) fn may_give(&mut self, mark: FrameDigest) -> bool {
        if let Some(known) = self.given.iter_mut().find(|one| one.mark == mark) {
            if known.waits > 0 {
                known.waits -= 1;
                return false;
            }
            known.times += 1;
            known.waits = waits(known.times);
            return true;
        }
        if self.given.len() == MAX_GIVEN_FRAMES {
            self.given.pop_front();
        }
        self.given.push_back(ForwardedFrame { mark, times: 1, waits: 0 });
        true
    }
}

fn waits(times: u32) -> u32 {
    match times.checked_sub(MAX_FREE_GIVES) {
        None => 0,
        Some(more) => 1_u32.checked_shl(more).unwrap_or(MAX_GIVE_WAITS).min(MAX_GIVE_WAITS),
    }
}
