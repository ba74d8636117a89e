//! Where the parts of a sealed message stand, and what it turned out to be.

use std::ops::Range;

use crate::header::{Form, SframeHeader};
use crate::limits::{MAX_SEALED_BODY_BYTES, SIGNATURE_BYTES, TAG_BYTES};
use crate::{Class, Epoch, Error, Group, GroupId, SenderContext, Slot};

/// The parts of sealed bytes.
pub(super) struct SealLayout {
    pub(super) header: SframeHeader,
    /// The length of the body before the header.
    pub(super) clear: usize,
    /// Ciphertext, signature included.
    text: Range<usize>,
}

impl SealLayout {
    #[inline]
    pub(super) fn find(
        group: Group,
        form: Form,
        near: Epoch,
        sealed: &[u8],
        clear: usize,
    ) -> Result<SealLayout, Error> {
        let after = sealed.get(clear..).ok_or(Error::Truncated)?;
        let (header, len) = SframeHeader::parse(after, form, near)?;
        let class = header.key.class;
        group.check(class, header.key.slot)?;
        let start = clear + len;
        let end = sealed.len().checked_sub(TAG_BYTES).ok_or(Error::Truncated)?;
        let least = start + class.signature_bytes();
        if end < least {
            return Err(Error::Truncated);
        }
        let fits = if class == Class::Authenticated { end == start } else { clear == 0 };
        if !fits {
            return Err(Error::Class);
        }
        if clear.max(end - least) > MAX_SEALED_BODY_BYTES {
            return Err(Error::TooLarge);
        }
        Ok(SealLayout { header, clear, text: start..end })
    }

    /// Ciphertext and tag.
    pub(super) fn parts<'a>(
        &self,
        sealed: &'a mut [u8],
    ) -> Result<(&'a mut [u8], &'a mut [u8]), Error> {
        let (before, tag) = sealed.split_at_mut_checked(self.text.end).ok_or(Error::Truncated)?;
        Ok((before.get_mut(self.text.start..).ok_or(Error::Truncated)?, tag))
    }

    /// Leaves nothing of the body.
    pub(super) fn zero(&self, sealed: &mut [u8]) {
        sealed.get_mut(self.body()).unwrap_or_default().fill(0);
        sealed.get_mut(self.text.clone()).unwrap_or_default().fill(0);
    }

    pub(super) fn opened(
        &self,
        group: GroupId,
        epoch: Epoch,
        context: SenderContext,
    ) -> OpenedMessage {
        OpenedMessage { group, epoch, context, header: self.header, body: self.body() }
    }

    fn body(&self) -> Range<usize> {
        match self.header.key.class {
            Class::Authenticated => 0..self.clear,
            Class::Signed => self.text.start..self.text.end.saturating_sub(SIGNATURE_BYTES),
            Class::Group | Class::Peer => self.text.clone(),
        }
    }
}

/// An authentic message: who sent it, which one it is, and where its body stands.
///
/// Group, epoch, slot, context and counter together name it: no two messages share all five.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedMessage {
    group: GroupId,
    epoch: Epoch,
    context: SenderContext,
    header: SframeHeader,
    body: Range<usize>,
}

impl OpenedMessage {
    /// The group.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The epoch of its keys.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The sender's slot. Only class S, and class P in the eyes of the other of the two, show that
    /// no other member sent it.
    pub fn slot(&self) -> Slot {
        self.header.key.slot
    }

    /// The start of the sender that made it.
    pub fn context(&self) -> SenderContext {
        self.context
    }

    /// The class that protected it.
    pub fn class(&self) -> Class {
        self.header.key.class
    }

    /// The sender's counter.
    pub fn counter(&self) -> u64 {
        self.header.counter
    }

    /// Where the plaintext stands in the bytes that were given.
    pub fn body(&self) -> Range<usize> {
        self.body.clone()
    }
}
