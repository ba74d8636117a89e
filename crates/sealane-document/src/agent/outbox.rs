//! The outbox: urgent frames first, and frames for the same neighbours in one message.

use std::collections::VecDeque;

use sealane_frame::GroupTag;
use sealane_seal::Slot;

use super::{DocumentAudience, ExchangeMessage, OutboxScope};
use crate::DocumentStore;
use crate::exchange::{FRAMES_HEAD_BYTES, frames_message, put_frame};
use crate::limits::{MAX_GIFTS_WAITING, MAX_WORDS_WAITING};
use crate::shelf::DocumentCursor;

/// Frames and messages that wait to be sent.
#[derive(Debug)]
pub(super) struct DocumentOutbox {
    message_bytes: usize,
    /// Air time is scarce: all is told to all in reach, and frames go before words.
    pub(super) is_scarce: bool,
    /// Messages that are written only when their turn has come.
    words: VecDeque<OutboxMessage>,
    /// Parts of what was written.
    said: VecDeque<ExchangeMessage>,
    gifts: Vec<OutboxFrame>,
    /// Messages of frames since the last of words.
    frames: u32,
    /// Messages of words since the last of frames.
    spoken: u32,
    dropped: u64,
}

/// A message that is still to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutboxMessage {
    /// Checks of all that is held.
    Overview { to: DocumentAudience, group: GroupTag },
    /// All that is held of some origins.
    Inventory { to: Slot, group: GroupTag, origins: Vec<Slot> },
}

impl OutboxMessage {
    /// Says what others would say too, if that goes together.
    fn take_in(&mut self, others: &OutboxMessage) -> bool {
        if let (
            OutboxMessage::Inventory { to, group, origins },
            OutboxMessage::Inventory { to: other_to, group: other_group, origins: more },
        ) = (&mut *self, others)
            && (*to, *group) == (*other_to, *other_group)
        {
            origins.extend(more);
            origins.sort_unstable();
            origins.dedup();
            return true;
        }
        self == others
    }
}

/// A frame that waits to be handed on.
#[derive(Debug, Clone)]
struct OutboxFrame {
    at: DocumentCursor,
    to: DocumentAudience,
    is_urgent: bool,
    why: ForwardReason,
    /// Neighbours that were heard handing it on meanwhile, and who brought it.
    has: Vec<Slot>,
}

/// Why a frame is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardReason {
    /// It is new here.
    News,
    /// A neighbour lacks it.
    Lacking,
}

/// The next thing to send.
pub(super) enum OutboxStep {
    /// A message, with so many frames.
    Tell(ExchangeMessage, usize),
    /// Words, which are to be written now.
    Write(OutboxMessage),
}

/// So many neighbours that were heard handing a frame on are enough.
const HEARD_ENOUGH: usize = 2;
/// Where air time is scarce, words come after so many messages of frames.
const FRAMES_FIRST: u32 = 3;
/// Elsewhere frames come after so many messages of words: a neighbour that asks without end does
/// not keep them back.
const WORDS_FIRST: u32 = 8;
/// The tag of the group in front of each message.
const GROUP_BYTES: usize = 4;

impl DocumentOutbox {
    pub(super) fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            is_scarce: false,
            words: VecDeque::new(),
            said: VecDeque::new(),
            gifts: vec![],
            frames: 0,
            spoken: 0,
            dropped: 0,
        }
    }

    pub(super) fn set_message_bytes(&mut self, message_bytes: usize) {
        self.message_bytes = message_bytes;
    }

    /// The bytes of a message behind the tag of its group.
    pub(super) fn message_bytes(&self) -> usize {
        self.message_bytes.saturating_sub(GROUP_BYTES)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.gifts.is_empty() && self.words.is_empty() && self.said.is_empty()
    }

    /// Whether frames wait.
    pub(super) fn has_gifts(&self) -> bool {
        !self.gifts.is_empty()
    }

    /// Has words wait. Inventories for one neighbour go together.
    pub(super) fn say(&mut self, words: OutboxMessage) {
        if self.words.iter_mut().any(|waiting| waiting.take_in(&words)) {
            return;
        }
        if self.words.len() == MAX_WORDS_WAITING {
            self.dropped += 1;
            return;
        }
        self.words.push_back(words);
    }

    /// Whether an overview for all waits.
    pub(super) fn has_overview(&self) -> bool {
        let is_overview = |words: &OutboxMessage| matches!(words, OutboxMessage::Overview { .. });
        self.words.iter().any(is_overview) || !self.said.is_empty()
    }

    /// Has overviews not said: a neighbour that holds the same has said one.
    pub(super) fn drop_overviews(&mut self) {
        self.words.retain(|words| !matches!(words, OutboxMessage::Overview { .. }));
    }

    /// Puts parts of what was written in front of all that waits but urgent frames.
    pub(super) fn put_said(&mut self, to: DocumentAudience, group: GroupTag, parts: Vec<Vec<u8>>) {
        for part in parts {
            let message = [&group.to_bytes()[..], &part].concat();
            self.said.push_back(ExchangeMessage { to, is_urgent: false, message });
        }
    }

    /// Has a frame wait. One that waits for all need not wait for one.
    pub(super) fn give(
        &mut self,
        at: DocumentCursor,
        to: DocumentAudience,
        is_urgent: bool,
        why: ForwardReason,
    ) {
        let is_scarce = self.is_scarce;
        let is_same = |gift: &OutboxFrame| {
            let for_all = gift.to == DocumentAudience::All { but: None };
            let is_heard = is_scarce && matches!(gift.to, DocumentAudience::All { .. });
            gift.at == at && (gift.to == to || for_all || is_heard)
        };
        if self.gifts.iter().any(is_same) {
            return;
        }
        if self.gifts.len() == MAX_GIFTS_WAITING {
            self.dropped += 1;
            return;
        }
        let has = match to {
            DocumentAudience::All { but } if self.is_scarce => but.into_iter().collect(),
            _ => vec![],
        };
        self.gifts.push(OutboxFrame { at, to, is_urgent, why, has });
    }

    /// A neighbour was heard handing a frame on. It need not be handed on again if all in reach
    /// have it; where air time is not scarce, two that were heard are enough.
    pub(super) fn heard(
        &mut self,
        at: DocumentCursor,
        by: Slot,
        all_have: impl Fn(&[Slot]) -> bool,
    ) {
        let is_scarce = self.is_scarce;
        self.gifts.retain_mut(|gift| {
            if gift.at != at || !matches!(gift.to, DocumentAudience::All { .. }) {
                return true;
            }
            gift.has.push(by);
            let is_done = match (is_scarce, gift.why) {
                (false, _) => gift.has.len() >= HEARD_ENOUGH,
                (true, ForwardReason::Lacking) => true,
                (true, ForwardReason::News) => all_have(&gift.has),
            };
            !is_done
        });
    }

    /// The next message for a link with this room.
    pub(super) fn next(&mut self, store: &DocumentStore, lot: OutboxScope) -> Option<OutboxStep> {
        // A frame that left the store meanwhile is not handed on.
        self.gifts.retain(|gift| store.frame_at(gift.at).is_some());
        let first = self.gifts.iter().min_by_key(|gift| !gift.is_urgent).cloned();
        let is_urgent = first.as_ref().is_some_and(|gift| gift.is_urgent);
        if lot == OutboxScope::Urgent && !is_urgent {
            return None;
        }
        let has_words = !(self.words.is_empty() && self.said.is_empty());
        let is_their_turn = match self.is_scarce {
            true => self.frames < FRAMES_FIRST,
            false => self.spoken >= WORDS_FIRST,
        };
        if is_urgent || !has_words || is_their_turn && first.is_some() {
            self.frames += 1;
            self.spoken = 0;
            return self.next_gifts(store, &first?);
        }
        self.frames = 0;
        self.spoken += 1;
        if let Some(telling) = self.said.pop_front() {
            return Some(OutboxStep::Tell(telling, 0));
        }
        self.words.pop_front().map(OutboxStep::Write)
    }

    fn next_gifts(&mut self, store: &DocumentStore, first: &OutboxFrame) -> Option<OutboxStep> {
        let group = store.group_at(first.at)?;
        let mut message = frames_message(group);
        debug_assert!(message.len() == FRAMES_HEAD_BYTES, "the head of a message of frames");
        let (mut given, most, mut to) = (0, self.message_bytes, first.to);
        let is_scarce = self.is_scarce;
        self.gifts.retain(|gift| {
            // Frames that all neighbours hear may go together, whatever neighbour brought them.
            let is_for_all =
                |to: DocumentAudience| is_scarce && matches!(to, DocumentAudience::All { .. });
            let is_alike = gift.to == first.to || is_for_all(gift.to) && is_for_all(first.to);
            let is_alike = is_alike && gift.is_urgent == first.is_urgent;
            let is_ours = store.group_at(gift.at) == Some(group);
            let frame = store.frame_at(gift.at).filter(|_| is_alike && is_ours);
            let Some(frame) = frame else { return true };
            let before = message.len();
            put_frame(group, frame, &mut message);
            if given > 0 && message.len() > most {
                message.truncate(before);
                return true;
            }
            if gift.to != to {
                to = DocumentAudience::All { but: None };
            }
            given += 1;
            false
        });
        let telling = ExchangeMessage { to, is_urgent: first.is_urgent, message };
        (given > 0).then_some(OutboxStep::Tell(telling, given))
    }
}
