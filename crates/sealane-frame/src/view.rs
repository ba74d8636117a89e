//! A frame in the full form, read where it lies.

use sealane_seal::{self as seal, Class, Epoch, Form};
use zerocopy::FromBytes;

use crate::header::{HEADER_BYTES, Header};
use crate::limits::MAX_FRAME_BODY_BYTES;
use crate::{FrameError, PeerTag};

/// A frame in the full form, in the buffer it arrived in.
///
/// It is well-formed, which says nothing about who made it: that shows when it is opened.
#[derive(Debug, Clone, Copy)]
pub struct FrameView<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    layout: FrameLayout,
}

/// The same, for whoever sends it on.
#[derive(Debug)]
pub struct FrameMut<'a> {
    bytes: &'a mut [u8],
    layout: FrameLayout,
}

/// Where the parts behind the header lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameLayout {
    seal: seal::SframeHeader,
    /// The SFrame header.
    seal_at: usize,
    seal_end: usize,
}

impl<'a> FrameView<'a> {
    /// Reads a frame: version, kind, flags, the exact length, and that the SFrame
    /// header agrees with the header.
    ///
    /// # Errors
    ///
    /// The first that does not hold, from [`FrameError::TooShort`] to
    /// [`FrameError::HeadersDisagree`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (header, _) = Header::ref_from_prefix(bytes).map_err(|_| FrameError::TooShort)?;
        header.check(bytes.len())?;
        if header.body_bytes() > MAX_FRAME_BODY_BYTES {
            return Err(FrameError::BodyTooLong);
        }
        let layout = FrameLayout::find(header, bytes)?;
        Ok(Self { bytes, header, layout })
    }

    /// The header that a unit begins with, of which nothing is checked: a relay chooses the part of
    /// the program that takes a unit before any part has looked at it. A unit that is shorter than
    /// a header has none.
    #[inline]
    pub fn peek(unit: &'a [u8]) -> Option<&'a Header> {
        Header::ref_from_prefix(unit).ok().map(|(header, _)| header)
    }

    /// The header.
    pub fn header(&self) -> &'a Header {
        self.header
    }

    /// The SFrame header: key and counter.
    pub fn seal_header(&self) -> seal::SframeHeader {
        self.layout.seal
    }

    /// The whole frame.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All behind the header: what the seal gave.
    pub fn sealed(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The body of class A, which travels in clear. It is not to be trusted before the frame is
    /// opened.
    pub fn clear_body(&self) -> Option<&'a [u8]> {
        let is_clear = self.header.class() == Class::Authenticated;
        is_clear.then(|| self.bytes.get(HEADER_BYTES..self.layout.seal_at).unwrap_or_default())
    }

    /// The tag, by whose first bytes relays know a duplicate.
    pub fn tag(&self) -> &'a [u8] {
        self.bytes.split_last_chunk::<{ seal::limits::TAG_BYTES }>().map_or(&[], |(_, tag)| tag)
    }

    /// The bytes of the SFrame header, and those behind it.
    pub(crate) fn seal_parts(&self) -> (&'a [u8], &'a [u8]) {
        let head = self.bytes.get(self.layout.seal_at..self.layout.seal_end);
        let rest = self.bytes.get(self.layout.seal_end..);
        (head.unwrap_or_default(), rest.unwrap_or_default())
    }
}

impl<'a> FrameMut<'a> {
    /// Reads a frame, as [`FrameView::parse`] does.
    ///
    /// # Errors
    ///
    /// As [`FrameView::parse`].
    pub fn parse(bytes: &'a mut [u8]) -> Result<Self, FrameError> {
        let layout = FrameView::parse(bytes)?.layout;
        Ok(Self { bytes, layout })
    }

    /// The frame to read.
    pub fn view(&self) -> Result<FrameView<'_>, FrameError> {
        let (header, _) = Header::ref_from_prefix(self.bytes).map_err(|_| FrameError::TooShort)?;
        Ok(FrameView { bytes: self.bytes, header, layout: self.layout })
    }

    /// Sends the frame on: [`crate::forward_in_place`].
    ///
    /// # Errors
    ///
    /// As [`crate::forward_in_place`].
    pub fn forward(&mut self, next_hop: PeerTag, own: PeerTag) -> Result<(), FrameError> {
        crate::forward_in_place(self.bytes, next_hop, own)
    }
}

impl FrameLayout {
    fn find(header: &Header, bytes: &[u8]) -> Result<Self, FrameError> {
        let clear = match header.class() {
            Class::Authenticated => header.body_bytes(),
            _ => 0,
        };
        let seal_at = HEADER_BYTES + clear;
        let rest = bytes.get(seal_at..).ok_or(FrameError::LengthMismatch)?;
        // The key id of the full form needs no epoch to be completed by.
        let (seal, seal_bytes) = seal::SframeHeader::parse(rest, Form::Full, Epoch(0))
            .map_err(|_| FrameError::BadSealHeader)?;
        if header.room() + seal_bytes != bytes.len() {
            return Err(FrameError::LengthMismatch);
        }
        if seal.key.class != header.class() || seal.counter != header.sequence() {
            return Err(FrameError::HeadersDisagree);
        }
        Ok(Self { seal, seal_at, seal_end: seal_at + seal_bytes })
    }
}
