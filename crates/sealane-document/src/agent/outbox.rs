//! What waits to be told: urgent frames first, and frames for the same neighbours in one message.

use std::collections::VecDeque;

use sealane_frame::GroupTag;
use sealane_seal::Slot;

use super::{Audience, Telling};
use crate::Store;
use crate::exchange::{FRAMES_HEAD_BYTES, frames_message, put_frame};
use crate::shelf::Cursor;

/// What waits.
#[derive(Debug)]
pub(super) struct Outbox {
    message_bytes: usize,
    /// Overviews and inventories.
    said: VecDeque<Said>,
    gifts: Vec<Gift>,
    dropped: u64,
}

#[derive(Debug)]
struct Said {
    to: Slot,
    message: Vec<u8>,
}

/// A frame that waits to be handed on.
#[derive(Debug, Clone, Copy)]
struct Gift {
    at: Cursor,
    to: Audience,
    is_urgent: bool,
    /// How many neighbours were heard handing it on meanwhile.
    heard: u8,
}

/// Messages that wait at most.
const SAID_MAX: usize = 64;
/// Frames that wait at most. Others are asked for again.
const GIFTS_MAX: usize = 1024;
/// So many neighbours that were heard handing a frame on are enough.
const HEARD_ENOUGH: u8 = 2;
/// The tag of the group in front of each message.
const GROUP_BYTES: usize = 4;

impl Outbox {
    pub(super) fn new(message_bytes: usize) -> Self {
        Self { message_bytes, said: VecDeque::new(), gifts: vec![], dropped: 0 }
    }

    pub(super) fn message_bytes(&self) -> usize {
        self.message_bytes.saturating_sub(GROUP_BYTES)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Has a message wait. One that says the same to the same neighbour already does for both.
    pub(super) fn tell(&mut self, to: Slot, group: GroupTag, part: Vec<u8>) {
        let mut message = group.to_bytes().to_vec();
        message.extend(part);
        if self.said.iter().any(|said| said.to == to && said.message == message) {
            return;
        }
        if self.said.len() == SAID_MAX {
            self.dropped += 1;
            return;
        }
        self.said.push_back(Said { to, message });
    }

    /// Has a frame wait. One that waits for all need not wait for one.
    pub(super) fn give(&mut self, at: Cursor, to: Audience, is_urgent: bool) {
        let is_same = |gift: &Gift| {
            let for_all = gift.to == Audience::All { but: None };
            gift.at == at && (gift.to == to || for_all)
        };
        if self.gifts.iter().any(is_same) {
            return;
        }
        if self.gifts.len() == GIFTS_MAX {
            self.dropped += 1;
            return;
        }
        self.gifts.push(Gift { at, to, is_urgent, heard: 0 });
    }

    /// A neighbour was heard handing a frame on.
    pub(super) fn heard(&mut self, at: Cursor) {
        self.gifts.retain_mut(|gift| {
            if gift.at != at || !matches!(gift.to, Audience::All { .. }) {
                return true;
            }
            gift.heard += 1;
            gift.heard < HEARD_ENOUGH
        });
    }

    /// The next message, and how many frames are in it.
    pub(super) fn next(&mut self, store: &Store) -> Option<(Telling, usize)> {
        // What left the store meanwhile is not handed on.
        self.gifts.retain(|gift| store.frame_at(gift.at).is_some());
        let first = self.gifts.iter().min_by_key(|gift| !gift.is_urgent).copied();
        if first.is_some_and(|gift| gift.is_urgent) || self.said.is_empty() {
            return self.next_gifts(store, first?);
        }
        let Said { to, message } = self.said.pop_front()?;
        Some((Telling { to: Audience::One(to), is_urgent: false, message }, 0))
    }

    fn next_gifts(&mut self, store: &Store, first: Gift) -> Option<(Telling, usize)> {
        let mut message = frames_message();
        debug_assert!(message.len() == FRAMES_HEAD_BYTES, "the head of a message of frames");
        let (mut given, most) = (0, self.message_bytes);
        self.gifts.retain(|gift| {
            let is_alike = gift.to == first.to && gift.is_urgent == first.is_urgent;
            let Some(frame) = store.frame_at(gift.at).filter(|_| is_alike) else { return true };
            let before = message.len();
            put_frame(frame, &mut message);
            if given > 0 && message.len() > most {
                message.truncate(before);
                return true;
            }
            given += 1;
            false
        });
        let telling = Telling { to: first.to, is_urgent: first.is_urgent, message };
        (given > 0).then_some((telling, given))
    }
}
