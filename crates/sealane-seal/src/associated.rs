//! The associated data of a message, and what a signature covers.

use zeroize::Zeroize;

use crate::header::{Form, SframeHeader};
use crate::limits::{MAX_HEADER_BYTES, MAX_META_BYTES, MAX_SEALED_BODY_BYTES};
use crate::{Attached, Binding, Epoch, Error, GroupId, SenderContext};

pub(crate) const SIGNATURE_LABEL: &[u8; 22] = b"Sealane 1.0 signature ";
const PREFIX_BYTES: usize = SIGNATURE_LABEL.len() + 8 + SenderContext::BYTES + 4;
const GROUP_AT: usize = PREFIX_BYTES + MAX_HEADER_BYTES;
const BINDING_AT: usize = GROUP_AT + 32;
const META_AT: usize = BINDING_AT + Binding::BYTES + 2;

/// Room for one message's associated data at a time, behind the prefix of what is signed:
///
/// ```text
/// label ‖ epoch u64 ‖ context ‖ length of the associated data u32 ‖ associated data ‖ plaintext
/// ```
///
/// The group stays where it is from message to message; what stands before it ends there.
pub(crate) struct Associated {
    bytes: Vec<u8>,
    start: usize,
    context: SenderContext,
}

impl Associated {
    pub(crate) fn new(group: GroupId) -> Associated {
        let mut bytes = vec![0; META_AT];
        bytes.splice(GROUP_AT..GROUP_AT + group.0.len(), group.0);
        Associated { bytes, start: GROUP_AT, context: SenderContext([0; SenderContext::BYTES]) }
    }

    /// Header in the full form ‖ group ‖ binding ‖ u16 length ‖ meta, and in class A ‖ u32 length ‖
    /// body.
    pub(crate) fn fill(
        &mut self,
        header: &SframeHeader,
        attached: &Attached<'_>,
        clear: Option<&[u8]>,
    ) -> Result<(), Error> {
        let meta = attached.meta;
        let meta_len = u16::try_from(meta.len()).map_err(|_| Error::TooLarge)?;
        if meta.len() > MAX_META_BYTES {
            return Err(Error::TooLarge);
        }
        self.bytes.truncate(META_AT);
        let header = header.encode(Form::Full);
        self.start = GROUP_AT - header.len();
        // With zeros before it, where a signature's prefix would stand: one store of fixed size.
        let before = self.bytes.get_mut(..GROUP_AT).and_then(<[u8]>::last_chunk_mut);
        if let Some(target) = before {
            *target = *header.right_aligned();
        }
        let behind = self.bytes.get_mut(BINDING_AT..).and_then(<[u8]>::split_first_chunk_mut);
        if let Some((binding, length)) = behind {
            *binding = *attached.binding.as_bytes();
            length.copy_from_slice(&meta_len.to_be_bytes());
        }
        self.context = attached.context;
        self.bytes.extend_from_slice(meta);
        if let Some(body) = clear {
            let body_len = u32::try_from(body.len()).map_err(|_| Error::TooLarge)?;
            if body.len() > MAX_SEALED_BODY_BYTES {
                return Err(Error::TooLarge);
            }
            self.bytes.extend_from_slice(&body_len.to_be_bytes());
            self.bytes.extend_from_slice(body);
        }
        Ok(())
    }

    /// The associated data that was filled in.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Calls `with` on what a signature covers, and forgets the plaintext.
    pub(crate) fn signed<T>(
        &mut self,
        epoch: Epoch,
        plaintext: &[u8],
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let (len, start) = (self.bytes.len(), self.start);
        let associated_len = u32::try_from(len - start).unwrap_or(u32::MAX);
        self.put_before(&associated_len.to_be_bytes());
        let context = self.context;
        self.put_before(&context.0);
        self.put_before(&epoch.0.to_be_bytes());
        self.put_before(SIGNATURE_LABEL);
        self.bytes.extend_from_slice(plaintext);
        let result = with(self.bytes());
        if let Some(plaintext) = self.bytes.get_mut(len..) {
            plaintext.zeroize();
        }
        self.bytes.truncate(len);
        self.start = start;
        result
    }

    /// Writes `part` so that it ends where everything begins.
    fn put_before(&mut self, part: &[u8]) {
        let end = self.start;
        self.start = end.saturating_sub(part.len());
        if let Some(target) = self.bytes.get_mut(self.start..end) {
            target.copy_from_slice(part);
        }
    }
}
