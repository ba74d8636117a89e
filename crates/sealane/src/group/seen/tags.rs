//! Which unsigned frames came under each name, as far as is remembered.

use super::*;

/// The frames of the latest names. Of a name that left, nothing is known but that it came.
#[derive(Debug, Default)]
pub(super) struct SeenTags {
    of: HashMap<MessageIdentity, NamedFrames>,
    /// A name for each frame, the oldest first.
    order: VecDeque<MessageIdentity>,
}

#[derive(Debug)]
struct NamedFrames {
    first: FrameHash,
    others: Vec<FrameHash>,
}

impl SeenTags {
    /// Whether a name is remembered, and the frame is none of those that came under it.
    pub(super) fn is_other(&self, identity: MessageIdentity, hash: FrameHash) -> bool {
        let known = self.of.get(&identity);
        known.is_some_and(|known| known.first != hash && !known.others.contains(&hash))
    }

    pub(super) fn remember(&mut self, identity: MessageIdentity, hash: FrameHash) {
        if self.order.len() >= MAX_SEEN_TAGS
            && let Some(oldest) = self.order.pop_front()
        {
            // All frames of a name leave together. Otherwise the first one would be shown again as
            // one that contradicts the second.
            self.of.remove(&oldest);
        }
        self.order.push_back(identity);
        match self.of.get_mut(&identity) {
            Some(known) => known.others.push(hash),
            None => drop(self.of.insert(identity, NamedFrames { first: hash, others: Vec::new() })),
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }
}
