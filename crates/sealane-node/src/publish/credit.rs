//! What a client may still publish.

use std::time::Duration;

use sealane_protocol::{Error, Numbers};
use tokio::time::Instant;

use crate::limits::{
    MAX_ASKED_BYTES, MAX_PUBLISH_CREDIT, MAX_PUBLISH_CREDIT_BYTES, MIN_PUBLISH_CREDIT_BYTES,
};

/// Messages that a client may have unanswered at first. Who sends more than one at a time is soon
/// given more; who does not needs no more, and what the hub keeps of its session stays short.
const FIRST_MESSAGES: u64 = 32;

/// The credit of one connection: exact in messages. In bytes the last message may go beyond it,
/// however large it is, so that a small credit holds up no large message.
pub(super) struct Credit {
    /// Messages that may be unanswered.
    window: u64,
    /// Bytes that may wait for the writer.
    bytes: u64,
    /// Messages and bytes that the client may still send.
    left: u64,
    left_bytes: i64,
    /// What it has sent and may send again, and has not been told of.
    back: u64,
    back_bytes: u64,
    /// Whether the client has used more than half of the window since it was granted any.
    is_pressed: bool,
    /// Until then nothing is granted.
    again: Option<Instant>,
}

impl Credit {
    pub(super) fn new() -> Self {
        Self {
            window: FIRST_MESSAGES,
            bytes: 0,
            left: 0,
            left_bytes: 0,
            back: FIRST_MESSAGES,
            back_bytes: 0,
            is_pressed: false,
            again: None,
        }
    }

    /// Messages that may be unanswered.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// One message came, with so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Error> {
        if self.left == 0 {
            return Err(Error::CreditExceeded { what: "messages" });
        }
        if self.left_bytes <= 0 {
            return Err(Error::CreditExceeded { what: "bytes" });
        }
        self.left -= 1;
        self.left_bytes -= bytes as i64;
        self.is_pressed |= self.left < self.window / 2;
        Ok(())
    }

    /// These messages were answered.
    pub(super) fn answered(&mut self, numbers: Numbers) {
        self.back += numbers.to - numbers.from + 1;
        debug_assert!(self.left + self.back <= self.window);
    }

    /// So many bytes do not wait for the writer any more.
    pub(super) fn let_go(&mut self, bytes: u64) {
        self.back_bytes += bytes;
    }

    /// Whether there may be something to grant.
    pub(super) fn has_more(&self) -> bool {
        self.back > 0 || self.is_pressed
    }

    /// When there may be something to grant, where that is a matter of time.
    pub(super) fn wait_until(&self) -> Option<Instant> {
        self.again
    }

    /// What is to be granted now, in messages and bytes, where it is worth a frame: one of so many
    /// connections, which is given nothing for as long as `wait`.
    pub(super) fn grant(
        &mut self,
        connections: usize,
        wait: Option<Duration>,
    ) -> Option<(u64, u64)> {
        self.again = wait.map(|wait| Instant::now() + wait);
        if wait.is_some() {
            return None;
        }
        self.part(connections);
        if std::mem::take(&mut self.is_pressed) {
            let more = self.window.min(MAX_PUBLISH_CREDIT - self.window);
            self.window += more;
            self.back += more;
        }
        let is_due = self.back >= self.window / 4 || self.back_bytes >= self.bytes / 4;
        if !is_due || (self.back, self.back_bytes) == (0, 0) {
            return None;
        }
        let (messages, bytes) = (self.back, self.back_bytes);
        (self.back, self.back_bytes) = (0, 0);
        self.left += messages;
        self.left_bytes += bytes as i64;
        Some((messages, bytes))
    }

    /// Brings the bytes to this connection's part of those that all are asked for. What was granted
    /// is not taken back.
    fn part(&mut self, connections: usize) {
        let part = MAX_ASKED_BYTES / connections.max(1) as u64;
        let part = part.clamp(MIN_PUBLISH_CREDIT_BYTES, MAX_PUBLISH_CREDIT_BYTES);
        if part >= self.bytes {
            self.back_bytes += part - self.bytes;
            self.bytes = part;
        } else {
            let less = (self.bytes - part).min(self.back_bytes);
            self.back_bytes -= less;
            self.bytes -= less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(credit: &mut Credit, count: u64) {
        credit.answered(Numbers { from: 1, to: count });
    }

    #[test]
    fn what_was_granted_is_exact() {
        let mut credit = Credit::new();
        assert!(credit.take(1).is_err(), "nothing was granted yet");
        assert_eq!(credit.grant(1, None), Some((FIRST_MESSAGES, MAX_PUBLISH_CREDIT_BYTES)));
        for _ in 0..FIRST_MESSAGES {
            credit.take(1).unwrap();
        }
        assert_eq!(credit.take(1), Err(Error::CreditExceeded { what: "messages" }));
    }

    #[test]
    fn one_at_a_time_keeps_a_small_window_and_many_at_once_get_a_large_one() {
        let mut credit = Credit::new();
        credit.grant(1, None).unwrap();
        let mut grants = 0;
        for _ in 0..1000 {
            credit.take(10).unwrap();
            credit.let_go(10);
            answer(&mut credit, 1);
            grants += usize::from(credit.grant(1, None).is_some());
        }
        assert_eq!((credit.window(), grants), (FIRST_MESSAGES, 125));
        for _ in 0..10 {
            while credit.take(10).is_ok() {
                credit.let_go(10);
            }
            let sent = credit.window() - credit.left - credit.back;
            answer(&mut credit, sent);
            credit.grant(1, None).unwrap();
        }
        assert_eq!(credit.window(), MAX_PUBLISH_CREDIT);
        assert_eq!((credit.left, credit.back), (MAX_PUBLISH_CREDIT, 0));
    }

    #[test]
    fn bytes_come_back_when_the_writer_has_them_and_a_large_message_may_owe() {
        let mut credit = Credit::new();
        let crowd = (MAX_ASKED_BYTES / MIN_PUBLISH_CREDIT_BYTES) as usize * 2;
        assert_eq!(credit.grant(crowd, None), Some((FIRST_MESSAGES, MIN_PUBLISH_CREDIT_BYTES)));
        let large = MIN_PUBLISH_CREDIT_BYTES as usize * 3;
        credit.take(large).unwrap();
        assert_eq!(credit.take(1), Err(Error::CreditExceeded { what: "bytes" }));
        assert_eq!(credit.grant(crowd, None), None);
        credit.let_go(large as u64);
        assert_eq!(credit.grant(crowd, None), Some((0, large as u64)));
        credit.take(1).unwrap();
    }

    #[test]
    fn whoever_is_too_fast_is_asked_later() {
        let mut credit = Credit::new();
        assert_eq!(credit.grant(1, Some(Duration::from_secs(1))), None);
        assert!(credit.wait_until().is_some());
        assert!(credit.grant(1, None).is_some() && credit.wait_until().is_none());
    }
}
