use std::collections::HashMap;

use sealane_message::Topic;
use sealane_protocol::{Deliver, Op, StreamJoined};

use crate::subscribe::StartPosition;

/// How far a reader has come in each of its streams: what it resumes from.
#[derive(Debug)]
pub(super) struct SubscriptionCursors {
    start: StartPosition,
    single: bool,
    streams: HashMap<Topic, SubscriptionCursor>,
}

#[derive(Debug, Clone, Copy)]
struct SubscriptionCursor {
    generation: u64,
    next: u64,
    /// The last delivery, as (generation, offset).
    last: Option<(u64, u64)>,
}

impl SubscriptionCursors {
    /// For a reader from `start`, of one stream or of a pattern.
    pub(super) fn new(start: StartPosition, single: bool) -> Self {
        Self { start, single, streams: HashMap::new() }
    }

    /// Where a new connection begins. A pattern begins where it began at first, so that a stream
    /// of which nothing has come yet is read whole; the others are put in place by
    /// [`SubscriptionCursors::seeks`].
    pub(super) fn start(&self) -> StartPosition {
        match self.streams.values().next() {
            // No stream was there yet: generation 0 is none.
            Some(SubscriptionCursor { generation: 0, .. }) if self.single => StartPosition::First,
            Some(cursor) if self.single => {
                StartPosition::Resume { offset: cursor.next, generation: cursor.generation }
            }
            _ => self.start,
        }
    }

    /// The operations that a new connection of a pattern sends before its first credit.
    pub(super) fn seeks(&self) -> Vec<Op> {
        if self.single {
            return Vec::new();
        }
        let seek = |(stream, cursor): (&Topic, &SubscriptionCursor)| Op::Seek {
            stream: Some(stream.clone()),
            offset: cursor.next,
            generation: Some(cursor.generation),
        };
        self.streams.iter().map(seek).collect()
    }

    /// The hub's clock when the subscription was first made: what "new" means from then on.
    pub(super) fn began(&mut self, time_ms: u64) {
        if self.start == StartPosition::New {
            let since = std::time::Duration::from_millis(time_ms);
            self.start = StartPosition::Time(std::time::UNIX_EPOCH + since);
        }
    }

    pub(super) fn joined(&mut self, joined: &StreamJoined) {
        let last = self.streams.get(&joined.stream).and_then(|cursor| cursor.last);
        let cursor = SubscriptionCursor {
            generation: joined.generation,
            next: joined.offset,
            last: last.filter(|_| joined.recovered),
        };
        self.streams.insert(joined.stream.clone(), cursor);
    }

    /// Goes on behind a gap.
    pub(super) fn skipped(&mut self, stream: &Topic, to: u64) {
        if let Some(cursor) = self.streams.get_mut(stream) {
            cursor.next = cursor.next.max(to.saturating_add(1));
        }
    }

    /// Whether this delivery is new here, and if so, goes on behind it.
    pub(super) fn advance(&mut self, deliver: &Deliver) -> bool {
        let at = (deliver.generation, deliver.offset);
        let cursor = SubscriptionCursor {
            generation: deliver.generation,
            next: deliver.offset.saturating_add(1),
            last: Some(at),
        };
        match self.streams.get_mut(&deliver.stream) {
            Some(known) if known.last.is_some_and(|last| at <= last) => return false,
            Some(known) => *known = cursor,
            None => drop(self.streams.insert(deliver.stream.clone(), cursor)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use sealane_protocol::HubLevel;

    use super::*;

    fn deliver(stream: &str, generation: u64, offset: u64) -> Deliver {
        let (stream, envelope) = (stream.parse().unwrap(), bytes::Bytes::new());
        Deliver { stream, offset, generation, attempt: 1, stored_ms: 0, envelope }
    }

    #[test]
    fn one_stream_resumes_behind_its_last_message() {
        let mut cursors = SubscriptionCursors::new(StartPosition::First, true);
        assert_eq!(cursors.start(), StartPosition::First);
        assert!(cursors.advance(&deliver("a", 1, 4)));
        assert!(!cursors.advance(&deliver("a", 1, 4)));
        assert!(!cursors.advance(&deliver("a", 1, 2)));
        assert_eq!(cursors.start(), StartPosition::Resume { offset: 5, generation: 1 });
        assert!(cursors.advance(&deliver("a", 2, 3)), "a new generation may begin lower");
        assert!(cursors.seeks().is_empty());
    }

    #[test]
    fn a_stream_that_was_not_there_is_read_whole() {
        let mut cursors = SubscriptionCursors::new(StartPosition::New, true);
        let stream = "a".parse().unwrap();
        let (generation, offset, recovered, level) = (0, 0, true, HubLevel::Other(String::new()));
        cursors.joined(&StreamJoined {
            stream,
            generation,
            offset,
            recovered,
            level,
            sealed: None,
        });
        assert_eq!(cursors.start(), StartPosition::First);
    }

    #[test]
    fn a_pattern_begins_again_where_it_began_and_seeks_what_it_knows() {
        let mut cursors = SubscriptionCursors::new(StartPosition::New, false);
        cursors.began(7);
        cursors.advance(&deliver("a", 1, 4));
        assert_eq!(cursors.start().asked().to_string(), "@7");
        let stream: Option<Topic> = Some("a".parse().unwrap());
        assert_eq!(cursors.seeks(), [Op::Seek { stream, offset: 5, generation: Some(1) }]);
    }
}
