//! A body on its way into a frame, sealed where it stands.

use std::ops::Range;

use sealane_seal::{Binding, Class, Form, KeyId, Sealer, limits};

use crate::compact::{CompactPrefix, header_bytes_max};
use crate::header::{HEADER_BYTES, Header};
use crate::{FrameError, HeaderFields, LinkContext};

/// A buffer for one frame after the other, with room around the body for everything else.
///
/// A body is written once and never moves: headers grow before it, signature and tag behind it.
/// Used again, it allocates nothing for frames that are not longer than earlier ones.
#[derive(Debug, Default)]
pub struct FrameBuf {
    bytes: Vec<u8>,
}

/// A body that is being written. To seal it uses it up, so that nothing is sealed twice.
#[derive(Debug)]
pub struct FrameDraft<'a> {
    bytes: &'a mut Vec<u8>,
}

/// The bytes before a body: the full header and the longest SFrame header.
pub const HEAD_ROOM_BYTES: usize = HEADER_BYTES + limits::MAX_HEADER_BYTES;

impl FrameBuf {
    /// Without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a frame; what the buffer held is forgotten.
    pub fn draft(&mut self) -> FrameDraft<'_> {
        self.bytes.clear();
        self.bytes.resize(HEAD_ROOM_BYTES, 0);
        FrameDraft { bytes: &mut self.bytes }
    }
}

impl<'a> FrameDraft<'a> {
    /// Where the body is written: at the end, behind [`HEAD_ROOM_BYTES`] of room that stay. A
    /// `Writer` of `sealane-codec` does so.
    pub fn body(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// Seals the body, bound to where it is to be read, and gives the frame in the full form.
    ///
    /// # Errors
    ///
    /// [`FrameError::BodyTooLong`], [`FrameError::NoRoom`] if the room before the body is gone,
    /// and what the sealer refuses. The body is zeroed then.
    pub fn seal(
        self,
        sealer: &mut Sealer,
        fields: &HeaderFields,
        binding: &Binding,
    ) -> Result<&'a mut [u8], FrameError> {
        self.or_zero(|bytes| {
            let header = header(sealer, fields, bytes)?;
            let sealed = seal(sealer, Form::Full, &header, binding, bytes)?;
            let start = sealed.start.checked_sub(HEADER_BYTES).ok_or(FrameError::NoRoom)?;
            put(bytes, start, header.as_bytes())?;
            Ok(start..sealed.end)
        })
    }

    /// Seals the body and gives the frame in the compact form of a link. It is sealed under the
    /// same full header; next and previous hop are the link's.
    ///
    /// # Errors
    ///
    /// As [`FrameDraft::seal`], and [`FrameError::NoCompactForm`].
    pub fn seal_compact(
        self,
        sealer: &mut Sealer,
        fields: &HeaderFields,
        binding: &Binding,
        link: &LinkContext<'_>,
    ) -> Result<&'a mut [u8], FrameError> {
        self.or_zero(|bytes| {
            let header = header(sealer, fields, bytes)?;
            let prefix = CompactPrefix::of(&header, sealer.slot(), link)?;
            let key = KeyId::new(sealer.slot(), fields.class, sealer.epoch());
            let counter = header.sequence();
            let head = sealane_seal::SframeHeader { key, counter }.encode(Form::Compact).len();
            if prefix.bytes() + head > header_bytes_max(fields.class) {
                return Err(FrameError::NoCompactForm);
            }
            let sealed = seal(sealer, Form::Compact, &header, binding, bytes)?;
            if fields.class == Class::Authenticated {
                let clear = bytes.get_mut(sealed.start..sealed.end - limits::TAG_BYTES);
                clear.ok_or(FrameError::NoRoom)?.rotate_right(head);
            }
            let (prefix, len) = prefix.encode();
            let start = sealed.start.checked_sub(len).ok_or(FrameError::NoRoom)?;
            put(bytes, start, prefix.get(..len).unwrap_or_default())?;
            Ok(start..sealed.end)
        })
    }

    /// The frame that `work` made, or nothing of the body.
    fn or_zero(
        self,
        work: impl FnOnce(&mut Vec<u8>) -> Result<Range<usize>, FrameError>,
    ) -> Result<&'a mut [u8], FrameError> {
        match work(self.bytes) {
            Ok(frame) => self.bytes.get_mut(frame).ok_or(FrameError::NoRoom),
            Err(error) => {
                self.bytes.fill(0);
                Err(error)
            }
        }
    }
}

/// Seals a body and gives the frame in the full form: [`FrameDraft::seal`] for a body that exists
/// already, which is copied into `buf`.
///
/// # Errors
///
/// As [`FrameDraft::seal`].
pub fn seal_frame<'a>(
    sealer: &mut Sealer,
    fields: &HeaderFields,
    binding: &Binding,
    body: &[u8],
    buf: &'a mut FrameBuf,
) -> Result<&'a mut [u8], FrameError> {
    let mut draft = buf.draft();
    draft.body().extend_from_slice(body);
    draft.seal(sealer, fields, binding)
}

/// Seals a body and gives the frame in the compact form of a link: [`FrameDraft::seal_compact`] for
/// a body that exists already, which is copied into `buf`.
///
/// # Errors
///
/// As [`FrameDraft::seal_compact`].
pub fn seal_compact<'a>(
    sealer: &mut Sealer,
    fields: &HeaderFields,
    binding: &Binding,
    body: &[u8],
    link: &LinkContext<'_>,
    buf: &'a mut FrameBuf,
) -> Result<&'a mut [u8], FrameError> {
    let mut draft = buf.draft();
    draft.body().extend_from_slice(body);
    draft.seal_compact(sealer, fields, binding, link)
}

/// The header of the message that the sealer makes next.
fn header(sealer: &Sealer, fields: &HeaderFields, bytes: &[u8]) -> Result<Header, FrameError> {
    let body_bytes = bytes.len().checked_sub(HEAD_ROOM_BYTES).ok_or(FrameError::NoRoom)?;
    Header::new(fields, body_bytes, sealer.next_counter()?, sealer.context())
}

/// Seals the body behind the room, and gives the place of the sealed bytes.
fn seal(
    sealer: &mut Sealer,
    form: Form,
    header: &Header,
    binding: &Binding,
    bytes: &mut Vec<u8>,
) -> Result<Range<usize>, FrameError> {
    let class = header.class();
    let body = HEAD_ROOM_BYTES..bytes.len();
    bytes.resize(body.end + class.tail_bytes(), 0);
    Ok(sealer.seal_in_place(class, form, binding, header.authenticated(), bytes, body)?)
}

fn put(bytes: &mut [u8], at: usize, part: &[u8]) -> Result<(), FrameError> {
    let target = bytes.get_mut(at..at + part.len()).ok_or(FrameError::NoRoom)?;
    target.copy_from_slice(part);
    Ok(())
}
