//! The bytes of an input, as numbers, choices and topics.

use sealane_message::Topic;

use super::TOPICS;

/// The rest of the input; zeros behind its end.
pub(super) struct Steps<'a>(pub(super) &'a [u8]);

impl<'a> Steps<'a> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// Bytes behind their length.
    pub(super) fn part(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        let (part, rest) = self.0.split_at(self.0.len().min(len));
        self.0 = rest;
        part
    }

    pub(super) fn topic(&mut self) -> Topic {
        self.pick(&TOPICS).parse().expect("a topic")
    }
}
