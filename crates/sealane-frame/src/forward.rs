//! What a relay does: check the header, overwrite the hops, send the same bytes on.

use zerocopy::FromBytes;

use crate::header::{HEADER_BYTES, Header};
use crate::limits::MAX_HOP_LIMIT;
use crate::{FrameError, PeerTag, SlotRing};

/// Sends a frame on in the buffer it arrived in: next hop, previous hop and hop limit are
/// overwritten, and nothing behind the header is touched or read.
///
/// `own` is who takes the frame here; it becomes the previous hop.
///
/// # Errors
///
/// What the header alone shows to be no frame; [`FrameError::NotForUs`] for one that another hop
/// was to take; [`FrameError::HopLimitSpent`]. The frame is left as it was.
#[inline]
pub fn forward_in_place(
    frame: &mut [u8],
    next_hop: PeerTag,
    own: PeerTag,
) -> Result<(), FrameError> {
    let frame_bytes = frame.len();
    let header = checked(frame, frame_bytes, own)?;
    pass_on(header, next_hop, own);
    Ok(())
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
            let why = match checked(slot, *length, own) {
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

/// The header of a frame that this hop may send on. The frame is the first `frame_bytes` of `slot`.
#[inline]
fn checked(slot: &mut [u8], frame_bytes: usize, own: PeerTag) -> Result<&mut Header, FrameError> {
    let header = slot.first_chunk_mut::<HEADER_BYTES>().ok_or(FrameError::TooShort)?;
    let header = Header::mut_from_bytes(header).map_err(|_| FrameError::TooShort)?;
    header.check(frame_bytes)?;
    if header.next_hop() != own && header.next_hop() != PeerTag::BROADCAST {
        return Err(FrameError::NotForUs);
    }
    if header.hop_limit() == 0 {
        return Err(FrameError::HopLimitSpent);
    }
    Ok(header)
}

#[inline]
fn pass_on(header: &mut Header, next_hop: PeerTag, own: PeerTag) {
    let hops = header.hops_mut();
    hops.next = next_hop;
    hops.previous = own;
    hops.limit = hops.limit.min(MAX_HOP_LIMIT).saturating_sub(1);
}
