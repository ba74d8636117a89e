//! The row of a stream that a commit makes.

use sealane_frame::GroupTag;
use sealane_message::Topic;

use crate::store::{StreamRow, StreamSettings, of_clock};

/// The known properties of a stream before it is made.
pub(super) struct StreamMade<'a> {
    pub(super) topic: &'a Topic,
    pub(super) owner: &'a str,
    pub(super) sealed: Option<GroupTag>,
    pub(super) now_ms: u64,
}

impl StreamRow {
    /// A new stream, as it is before it has anything.
    pub(super) fn new(
        number: u32,
        generation: u64,
        defaults: StreamSettings,
        made: StreamMade<'_>,
    ) -> Self {
        Self {
            number,
            topic: made.topic.clone(),
            owner: made.owner.to_owned(),
            settings: defaults,
            created_ms: made.now_ms,
            sealed: made.sealed,
            first: 0,
            next: 0,
            last_ms: 0,
            bytes: 0,
            generations: vec![(0, generation.max(of_clock(made.now_ms)))],
            damaged: Vec::new(),
            has_purged: false,
            consumers: Vec::new(),
        }
    }
}
