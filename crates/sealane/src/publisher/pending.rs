use std::collections::VecDeque;

use bytes::Bytes;
use sealane_protocol::{Malformed, NumberRange};
use tokio::sync::OwnedSemaphorePermit;

use crate::group::SentEnvelopes;

/// A message that is not answered yet.
#[derive(Debug)]
pub(super) struct UnansweredMessage {
    pub(super) envelope: Bytes,
    /// The sealed envelope for the group, once the message was sealed.
    pub(super) sealed: Option<PendingSealedEnvelope>,
    /// Whether the hub may have it.
    was_sent: bool,
    /// Its share of the queue's bytes.
    _room: OwnedSemaphorePermit,
}

/// A sealed envelope, and what the group remembers of it.
#[derive(Debug)]
pub(super) struct PendingSealedEnvelope {
    pub(super) envelope: Bytes,
    pub(super) sent: SentEnvelopes,
}

/// The messages that wait or are under way, in the order of their numbers, and what the hub has
/// asked for.
#[derive(Debug)]
pub(super) struct PublisherBacklog {
    queue: VecDeque<UnansweredMessage>,
    /// The number of the first.
    first: u64,
    /// How many of them were sent on this connection.
    sent: usize,
    /// Messages that this connection is still to answer.
    unanswered: u64,
    credit: u64,
    bytes: i64,
    /// Something was refused: all that was sent behind it will be, and is then sent again.
    is_draining: bool,
    /// How many there have been in all.
    pushed: u64,
}

impl PublisherBacklog {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            first: 1,
            sent: 0,
            unanswered: 0,
            credit: 0,
            bytes: 0,
            is_draining: false,
            pushed: 0,
        }
    }

    pub(super) fn push(&mut self, envelope: Bytes, room: OwnedSemaphorePermit) {
        let message = UnansweredMessage { envelope, sealed: None, was_sent: false, _room: room };
        self.queue.push_back(message);
        self.pushed += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the hub may have messages that it has not answered.
    pub(super) fn was_sent(&self) -> bool {
        self.queue.front().is_some_and(|message| message.was_sent)
    }

    /// How many there have been in all, answered or not.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// How many of them were answered.
    pub(super) fn answered(&self) -> u64 {
        self.pushed - self.queue.len() as u64
    }

    /// The number of the first that is not answered.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Another connection begins: all that was not answered is sent again.
    pub(super) fn connected(&mut self) {
        (self.sent, self.unanswered, self.is_draining) = (0, 0, false);
        (self.credit, self.bytes) = (0, 0);
    }

    /// Another session begins, in which they count from 1.
    pub(super) fn renumber(&mut self) {
        self.first = 1;
    }

    pub(super) fn granted(&mut self, messages: u64, bytes: u64) {
        self.credit = self.credit.saturating_add(messages);
        self.bytes = self.bytes.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The next one that may be sent, and its number.
    pub(super) fn next(&mut self) -> Option<(u64, &mut UnansweredMessage)> {
        if self.is_draining && self.unanswered == 0 {
            (self.sent, self.is_draining) = (0, false);
        }
        if self.is_draining || self.credit == 0 || self.bytes <= 0 {
            return None;
        }
        let n = self.first + self.sent as u64;
        self.queue.get_mut(self.sent).map(|message| (n, message))
    }

    /// The next one was sent as an item of so many bytes.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        if let Some(message) = self.queue.get_mut(self.sent) {
            message.was_sent = true;
        }
        self.sent += 1;
        self.unanswered += 1;
        self.credit = self.credit.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub_unsigned(bytes as u64);
    }

    /// These are stored.
    ///
    /// # Errors
    /// [`Malformed`] where they are not the first of those that were sent.
    pub(super) fn stored(
        &mut self,
        numbers: NumberRange,
    ) -> Result<Vec<UnansweredMessage>, Malformed> {
        let count = self.count(numbers)?;
        let is_next = numbers.from == self.first && count <= self.sent as u64;
        if !is_next {
            return Err(Malformed::Field("published".into()));
        }
        self.unanswered -= count;
        self.first += count;
        self.sent -= count as usize;
        Ok(self.queue.drain(..count as usize).collect())
    }

    /// These are not.
    ///
    /// # Errors
    /// [`Malformed`] where they were not sent.
    pub(super) fn refused(&mut self, numbers: NumberRange) -> Result<(), Malformed> {
        let count = self.count(numbers)?;
        self.unanswered -= count;
        self.is_draining = true;
        Ok(())
    }

    fn count(&self, numbers: NumberRange) -> Result<u64, Malformed> {
        let count = numbers.to.checked_sub(numbers.from).and_then(|more| more.checked_add(1));
        count.filter(|count| *count <= self.unanswered).ok_or(Malformed::Field("n".into()))
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    fn with(count: u64, credit: u64) -> PublisherBacklog {
        let mut pending = PublisherBacklog::new();
        let bytes = Arc::new(Semaphore::new(100));
        for _ in 0..count {
            pending.push(Bytes::new(), bytes.clone().try_acquire_owned().unwrap());
        }
        pending.granted(credit, 1 << 20);
        pending
    }

    fn send(pending: &mut PublisherBacklog) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some((n, _)) = pending.next() {
            sent.push(n);
            pending.note_sent(10);
        }
        sent
    }

    fn numbers(from: u64, to: u64) -> NumberRange {
        NumberRange { from, to }
    }

    #[test]
    fn no_more_is_sent_than_was_asked_for() {
        let mut pending = with(10, 3);
        assert_eq!(send(&mut pending), [1, 2, 3]);
        pending.granted(2, 0);
        assert_eq!(send(&mut pending), [4, 5]);
        let mut pending = with(10, 8);
        pending.bytes = 15;
        assert_eq!(send(&mut pending), [1, 2], "the last may go beyond");
    }

    #[test]
    fn what_was_not_answered_is_sent_again_on_the_next_connection() {
        let mut pending = with(10, 5);
        send(&mut pending);
        assert_eq!(pending.stored(numbers(1, 2)).unwrap().len(), 2);
        pending.connected();
        assert_eq!(send(&mut pending), [0_u64; 0], "nothing was asked for yet");
        pending.granted(20, 1 << 20);
        assert_eq!(send(&mut pending), (3..=10).collect::<Vec<_>>());
        assert_eq!((pending.answered(), pending.pushed()), (2, 10));
    }

    #[test]
    fn behind_a_refusal_all_is_sent_again_in_order() {
        let mut pending = with(6, 20);
        send(&mut pending);
        pending.stored(numbers(1, 2)).unwrap();
        pending.refused(numbers(3, 3)).unwrap();
        assert_eq!(send(&mut pending), [0_u64; 0], "the others are still to be answered");
        pending.refused(numbers(4, 6)).unwrap();
        assert_eq!(send(&mut pending), [3, 4, 5, 6]);
    }

    #[test]
    fn a_hub_that_answers_what_it_was_not_sent_is_not_believed() {
        let mut pending = with(5, 3);
        send(&mut pending);
        assert!(pending.stored(numbers(2, 3)).is_err(), "1 is still missing");
        assert!(pending.stored(numbers(1, 4)).is_err(), "4 was not sent");
        assert!(pending.refused(numbers(0, u64::MAX)).is_err());
        assert!(pending.stored(numbers(1, 3)).is_ok() && pending.refused(numbers(4, 4)).is_err());
    }
}
