use std::fmt;
use std::sync::Arc;

use sealane_message::Topic;

type TopicLaw = dyn Fn(&Topic) -> bool + Send + Sync;

/// The topics on which a member may change what others have made.
#[derive(Clone, Default)]
pub struct SteeredTopics(Option<Arc<TopicLaw>>);

impl SteeredTopics {
    /// Those of which `may` says so; the default is none.
    pub fn new(may: impl Fn(&Topic) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(may)))
    }

    /// Whether a topic is one of them, now.
    pub fn may(&self, topic: &Topic) -> bool {
        self.0.as_ref().is_some_and(|may| may(topic))
    }
}

impl fmt::Debug for SteeredTopics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteeredTopics").finish_non_exhaustive()
    }
}
