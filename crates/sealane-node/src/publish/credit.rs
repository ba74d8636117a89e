//! The credit that a client may still publish.

use std::time::Duration;

use sealane_protocol::{Error, NumberRange};
use sealane_stream::SessionItem;
use tokio::time::Instant;

use crate::fair::ReservedCredit;
use crate::limits::{
    FIRST_PUBLISH_CREDIT, FIRST_PUBLISH_CREDIT_BYTES, MAX_PUBLISH_CREDIT, MAX_PUBLISH_CREDIT_BYTES,
    PUBLISHED_MESSAGE_BYTES,
};

/// The credit of one connection: exact in messages. In bytes the last message may go beyond it,
/// however large it is, so that a small credit holds up no large message.
///
/// Each connection has its first credit. Whatever is more has its room among all connections before
/// it is granted, and gives it back when others need theirs.
pub(super) struct PublishCredit {
    size: CreditSize,
    /// Messages and bytes that the client may still send.
    left: u64,
    left_bytes: i64,
    /// The credit that has come back or was added, and that is not granted yet.
    back: u64,
    back_bytes: u64,
    /// Whether the client has used more than half of its messages, or of its bytes, since it was
    /// granted any.
    is_pressed: CreditPressed,
    /// Until then nothing is granted.
    again: Option<Instant>,
    /// The reserved memory for all credit beyond the first, and for any overdraft.
    room: ReservedCredit,
}

/// How much a client may have under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CreditSize {
    /// Messages that may be unanswered.
    messages: u64,
    /// Bytes that may wait for the writer.
    bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct CreditPressed {
    messages: bool,
    bytes: bool,
}

impl CreditSize {
    const FIRST: Self = Self { messages: FIRST_PUBLISH_CREDIT, bytes: FIRST_PUBLISH_CREDIT_BYTES };

    /// The memory that it may take, beyond the first credit.
    fn room(self) -> u64 {
        let messages = self.messages - FIRST_PUBLISH_CREDIT;
        messages * PUBLISHED_MESSAGE_BYTES + self.bytes - FIRST_PUBLISH_CREDIT_BYTES
    }

    /// Twice as much of what was pressed.
    fn grown(self, pressed: CreditPressed) -> Self {
        let Self { mut messages, mut bytes } = self;
        if pressed.messages {
            messages = MAX_PUBLISH_CREDIT.min(messages * 2);
        }
        if pressed.bytes {
            bytes = MAX_PUBLISH_CREDIT_BYTES.min(bytes * 2);
        }
        Self { messages, bytes }
    }
}

impl PublishCredit {
    pub(super) fn new(room: ReservedCredit) -> Self {
        Self {
            size: CreditSize::FIRST,
            left: 0,
            left_bytes: 0,
            back: CreditSize::FIRST.messages,
            back_bytes: CreditSize::FIRST.bytes,
            is_pressed: CreditPressed::default(),
            again: None,
            room,
        }
    }

    /// Messages that may be unanswered.
    pub(super) fn window(&self) -> u64 {
        self.size.messages
    }

    /// One message came, with so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Error> {
        if self.left == 0 {
            return Err(Error::CreditExceeded { what: "messages" });
        }
        // Only a debt refuses. The last message may go beyond, or a large one could never be sent
        // on a small credit.
        if self.left_bytes <= 0 {
            return Err(Error::CreditExceeded { what: "bytes" });
        }
        self.left -= 1;
        self.left_bytes -= bytes as i64;
        // Use of more than half says that the client waits for answers. Only then more credit makes
        // it faster.
        self.is_pressed.messages |= self.left < self.size.messages / 2;
        self.is_pressed.bytes |= self.left_bytes < self.size.bytes as i64 / 2;
        self.reserve();
        Ok(())
    }

    /// These messages were answered.
    pub(super) fn answered(&mut self, numbers: NumberRange) {
        self.back += numbers.to - numbers.from + 1;
        // More would mean that a message was answered twice.
        debug_assert!(self.left + self.back <= self.size.messages);
    }

    /// So many bytes do not wait for the writer any more.
    pub(super) fn let_go(&mut self, bytes: u64) {
        self.back_bytes += bytes;
    }

    /// Whether there may be something to grant.
    pub(super) fn has_more(&self) -> bool {
        self.back > 0 || self.is_pressed.messages || self.is_pressed.bytes
    }

    /// When there may be something to grant, where that is a matter of time.
    pub(super) fn wait_until(&self) -> Option<Instant> {
        self.again
    }

    /// The credit to be granted now, in messages and bytes, where it is worth a frame. The
    /// connection shares with all `connections`. It is given nothing for as long as `wait`.
    pub(super) fn grant(
        &mut self,
        connections: usize,
        wait: Option<Duration>,
    ) -> Option<(u64, u64)> {
        self.again = wait.map(|wait| Instant::now() + wait);
        // A token beyond its rate keeps its credit. New credit comes when the rate allows.
        if wait.is_some() {
            return None;
        }
        // The size is settled before anything is granted, since a grant cannot be taken back.
        self.resize(self.room.part(connections));
        let is_short = self.left_bytes <= self.size.bytes as i64 / 2;
        // Each credit is a frame and a system call. A quarter at a time keeps the client busy with
        // few frames.
        let is_due = self.back >= self.size.messages / 4
            || (is_short && self.back_bytes >= self.size.bytes / 4);
        if !is_due || (self.back, self.back_bytes) == (0, 0) {
            return None;
        }
        let (messages, bytes) = (self.back, self.back_bytes);
        (self.back, self.back_bytes) = (0, 0);
        self.left += messages;
        self.left_bytes += bytes as i64;
        self.reserve();
        Some((messages, bytes))
    }

    /// Grows where the client has used much of what it has, there is room for more, and that is
    /// within its part of what there is for all. What goes beyond its part it gives back, as far as
    /// that has come back: what was granted cannot be taken back.
    fn resize(&mut self, part: u64) {
        let before = self.size;
        let grown = before.grown(std::mem::take(&mut self.is_pressed));
        // The room is reserved before the client is told. Otherwise many clients could be promised
        // the same memory.
        if grown != before && grown.room() <= part && self.room.grow(grown.room() - before.room()) {
            self.back += grown.messages - before.messages;
            self.back_bytes += grown.bytes - before.bytes;
            self.size = grown;
        }
        if self.size.room() > part {
            self.shrink(part);
            self.reserve();
        }
    }

    /// Gives back what goes beyond `part`, as far as it can: messages first.
    fn shrink(&mut self, part: u64) {
        let over = self.size.room() - part;
        let spare = self.size.messages - FIRST_PUBLISH_CREDIT;
        // Only credit that has come back can be kept. The rest shrinks with later answers.
        let less = over.div_ceil(PUBLISHED_MESSAGE_BYTES).min(spare).min(self.back);
        self.back -= less;
        self.size.messages -= less;
        let over = self.size.room().saturating_sub(part);
        let spare = self.size.bytes - FIRST_PUBLISH_CREDIT_BYTES;
        let less = over.min(spare).min(self.back_bytes);
        self.back_bytes -= less;
        self.size.bytes -= less;
    }

    /// Brings what is reserved to what is needed: a message that went beyond its credit counts,
    /// though nobody was asked.
    fn reserve(&mut self) {
        // A debt is memory that is in use already, so that it counts though it was never granted.
        let owed = self.left_bytes.min(0).unsigned_abs();
        self.room.set(self.size.room() + owed);
    }
}

/// A message as it waits, in a list that is twice as long as it has to be, leaves half of that for
/// its texts' own allocations.
const _: () = assert!(size_of::<SessionItem>() as u64 * 2 <= PUBLISHED_MESSAGE_BYTES);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fair::CreditReserve;
    use crate::limits::MAX_ASKED_BYTES;

    fn credit() -> (Arc<CreditReserve>, PublishCredit) {
        let asked = CreditReserve::new(MAX_ASKED_BYTES);
        let credit = PublishCredit::new(asked.room());
        (asked, credit)
    }

    fn answer(credit: &mut PublishCredit, count: u64) {
        credit.answered(NumberRange { from: 1, to: count });
    }

    /// Sends all that there is credit for, each message with so many bytes, and has it answered.
    fn flood(credit: &mut PublishCredit, bytes: u64, connections: usize) {
        let mut sent = 0;
        while credit.take(bytes as usize).is_ok() {
            sent += 1;
        }
        credit.let_go(sent * bytes);
        answer(credit, sent);
        credit.grant(connections, None).unwrap();
    }

    #[test]
    fn what_was_granted_is_exact() {
        let (_, mut credit) = credit();
        assert!(credit.take(1).is_err(), "nothing was granted yet");
        let first = Some((FIRST_PUBLISH_CREDIT, FIRST_PUBLISH_CREDIT_BYTES));
        assert_eq!(credit.grant(1, None), first);
        for _ in 0..FIRST_PUBLISH_CREDIT {
            credit.take(1).unwrap();
        }
        assert_eq!(credit.take(1), Err(Error::CreditExceeded { what: "messages" }));
    }

    #[test]
    fn one_at_a_time_keeps_a_small_window_and_many_at_once_get_a_large_one() {
        let (asked, mut credit) = credit();
        credit.grant(1, None).unwrap();
        let mut grants = 0;
        for _ in 0..1000 {
            credit.take(10).unwrap();
            credit.let_go(10);
            answer(&mut credit, 1);
            grants += usize::from(credit.grant(1, None).is_some());
        }
        assert_eq!((credit.size, grants, asked.held()), (CreditSize::FIRST, 125, 0));
        (0..10).for_each(|_| flood(&mut credit, 300, 1));
        let most = CreditSize { messages: MAX_PUBLISH_CREDIT, bytes: MAX_PUBLISH_CREDIT_BYTES };
        assert_eq!((credit.size, asked.held()), (most, most.room()));
        assert_eq!((credit.left, credit.back), (MAX_PUBLISH_CREDIT, 0));
        drop(credit);
        assert_eq!(asked.held(), 0, "it goes with its connection");
    }

    #[test]
    fn a_client_of_longer_messages_is_granted_as_seldom() {
        let (_, mut credit) = credit();
        credit.grant(1, None).unwrap();
        let mut grants = 0;
        for _ in 0..1000 {
            credit.take(300).unwrap();
            credit.let_go(300);
            answer(&mut credit, 1);
            grants += usize::from(credit.grant(1, None).is_some());
        }
        let CreditSize { messages, bytes } = credit.size;
        assert_eq!((messages, bytes), (FIRST_PUBLISH_CREDIT, FIRST_PUBLISH_CREDIT_BYTES * 2));
        assert!((125..130).contains(&grants), "{grants}");
    }

    #[test]
    fn all_together_are_asked_for_no_more_than_there_is_room_for() {
        let asked = CreditReserve::new(MAX_ASKED_BYTES);
        let mut all: Vec<PublishCredit> = Vec::new();
        // A client that comes early may be asked for much, and uses nothing of it.
        for connections in 1..=200 {
            let mut credit = PublishCredit::new(asked.room());
            credit.grant(connections, None).unwrap();
            (0..12).for_each(|_| flood(&mut credit, 300, connections));
            all.push(credit);
            assert!(asked.held() <= MAX_ASKED_BYTES, "{connections}: {}", asked.held());
        }
        assert!(asked.held() > MAX_ASKED_BYTES / 2, "{}", asked.held());
        let held: u64 = all.iter().map(|credit| credit.size.room()).sum();
        assert_eq!(asked.held(), held);
        let last = all.last().unwrap();
        assert!(last.left >= FIRST_PUBLISH_CREDIT, "whoever comes late has what all have at first");
        // As they go on, connections above their part give the excess back, and all come to theirs.
        // Credit that was granted and not used goes first, which takes a while.
        let part = MAX_ASKED_BYTES / 200;
        (0..100).for_each(|_| all.iter_mut().for_each(|credit| flood(credit, 300, 200)));
        assert!(all.iter().all(|credit| (part / 4..=part).contains(&credit.size.room())));
        assert!(asked.held() <= MAX_ASKED_BYTES);
    }

    #[test]
    fn bytes_come_back_when_the_writer_has_them_and_a_large_message_may_owe() {
        let (asked, mut credit) = credit();
        let crowd = MAX_ASKED_BYTES as usize;
        let first = Some((FIRST_PUBLISH_CREDIT, FIRST_PUBLISH_CREDIT_BYTES));
        assert_eq!(credit.grant(crowd, None), first);
        let large = FIRST_PUBLISH_CREDIT_BYTES * 3;
        credit.take(large as usize).unwrap();
        assert_eq!(credit.take(1), Err(Error::CreditExceeded { what: "bytes" }));
        assert_eq!(asked.held(), large - FIRST_PUBLISH_CREDIT_BYTES, "what it owes is counted");
        assert_eq!(credit.grant(crowd, None), None);
        credit.let_go(large);
        assert_eq!(credit.grant(crowd, None), Some((0, large)));
        assert_eq!(asked.held(), 0);
        credit.take(1).unwrap();
    }

    #[test]
    fn whoever_is_too_fast_is_asked_later() {
        let (_, mut credit) = credit();
        assert_eq!(credit.grant(1, Some(Duration::from_secs(1))), None);
        assert!(credit.wait_until().is_some());
        assert!(credit.grant(1, None).is_some() && credit.wait_until().is_none());
    }
}
