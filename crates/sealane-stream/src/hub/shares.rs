//! The shares of a hub, as its node sets and shows them.

use sealane_message::Topic;

use super::StreamHub;
use crate::shares::{ShareHeld, ShareKind, ShareRules};

impl StreamHub {
    /// How many consumers a stream has; none where it is not there.
    pub fn count_consumers(&self, topic: &Topic) -> usize {
        self.registry.find(topic).map_or(0, |stream| stream.state.lock().consumers.len())
    }

    /// Has these rules of shares hold from now on. What an owner has beyond its share it keeps, but
    /// for keys and sessions, of which its oldest go.
    pub fn set_shares(&self, rules: ShareRules) {
        self.registry.shares.set_rules(rules);
    }

    /// The shares of which anything is held, or was refused.
    pub fn shares(&self) -> Vec<ShareHeld> {
        self.registry.shares.all()
    }

    /// How much all owners hold together.
    pub fn share_sum(&self, kind: ShareKind) -> u64 {
        self.registry.shares.sum(kind)
    }
}
