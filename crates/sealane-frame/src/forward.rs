//! The work of a relay: check the header, overwrite the hops, send the same bytes on.

use zerocopy::FromBytes;

use crate::header::{HEADER_BYTES, Header};
use crate::limits::MAX_HOP_LIMIT;
use crate::{FrameError, PeerTag, SlotRing};

/// Sends a frame on in the buffer it arrived in: next hop, previous hop and hop limit are
/// overwritten, and nothing behind the header is touched or read.
///
/// `own` is the machine that takes the frame here; it becomes the previous hop.
///
/// # Errors
///
/// Any error that the header alone shows; [`FrameError::NotForUs`] for a frame that another hop was
/// to take; [`FrameError::HopLimitSpent`]. The frame is left as it was.
#[inline]
pub fn forward_in_place(
    frame: &mut [u8],
    next_hop: PeerTag,
    own: PeerTag,
) -> Result<(), FrameError> {
    FrameAtHop::parse(frame, own)?.pass_on(next_hop)
}

/// A frame that came to a hop, checked as far as a relay checks it: for those who look at the
/// header before they know where it goes.
#[derive(Debug)]
pub struct FrameAtHop<'a> {
    header: &'a mut Header,
    own: PeerTag,
}

impl<'a> FrameAtHop<'a> {
    /// Reads the header of a frame that `own` is to take, or everybody.
    ///
    /// # Errors
    ///
    /// Any error that the header alone shows, and [`FrameError::NotForUs`].
    #[inline]
    pub fn parse(frame: &'a mut [u8], own: PeerTag) -> Result<Self, FrameError> {
        let frame_bytes = frame.len();
        checked(frame, frame_bytes, own).map(|header| Self { header, own })
    }

    /// The header.
    #[inline]
    pub fn header(&self) -> &Header {
        self.header
    }

    /// Makes it a frame for the next hop, in its buffer: [`forward_in_place`].
    ///
    /// # Errors
    ///
    /// [`FrameError::HopLimitSpent`]. The frame is left as it was.
    #[inline]
    pub fn pass_on(self, next_hop: PeerTag) -> Result<(), FrameError> {
        may_go_on(self.header)?;
        pass_on(self.header, next_hop, self.own);
        Ok(())
    }
}

/// Sends all frames of a ring on, oldest first, each in its slot.
///
/// `route` gives the next hop for a header, or none for a frame that is not to be sent on.
/// `refused` hears why a frame was not, as [`forward_in_place`] says it, or `None` for `route`'s
/// own decision; the frame of such a slot is emptied. Returns how many go on.
pub fn forward_batch(
    ring: &mut SlotRing,
    own: PeerTag,
    mut route: impl FnMut(&Header) -> Option<PeerTag>,
    mut refused: impl FnMut(Option<FrameError>),
) -> usize {
    let mut forwarded = 0;
    for run in ring.runs_mut() {
        for (slot, length) in run {
            let header = checked(slot, *length, own);
            let why = match header.and_then(|header| may_go_on(header).map(|()| header)) {
                Ok(header) => match route(header) {
                    Some(next_hop) => {
                        pass_on(header, next_hop, own);
                        forwarded += 1;
                        continue;
                    }
                    None => None,
                },
                Err(error) => Some(error),
            };
            *length = 0;
            refused(why);
        }
    }
    forwarded
}

/// The header of a frame that this hop is to take. The frame is the first `frame_bytes` of `slot`.
#[inline]
fn checked(slot: &mut [u8], frame_bytes: usize, own: PeerTag) -> Result<&mut Header, FrameError> {
    let header = slot.first_chunk_mut::<HEADER_BYTES>().ok_or(FrameError::TooShort)?;
    let header = Header::mut_from_bytes(header).map_err(|_| FrameError::TooShort)?;
    header.check(frame_bytes)?;
    if header.next_hop() != own && header.next_hop() != PeerTag::BROADCAST {
        return Err(FrameError::NotForUs);
    }
    Ok(header)
}

#[inline]
fn may_go_on(header: &Header) -> Result<(), FrameError> {
    if header.hop_limit() == 0 { Err(FrameError::HopLimitSpent) } else { Ok(()) }
}

#[inline]
fn pass_on(header: &mut Header, next_hop: PeerTag, own: PeerTag) {
    let hops = header.hops_mut();
    hops.next = next_hop;
    hops.previous = own;
    hops.limit = hops.limit.min(MAX_HOP_LIMIT).saturating_sub(1);
}
