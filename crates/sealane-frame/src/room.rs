//! A body sealed in a place that its frame fills exactly, so that frames of one length lie one
//! behind the other as a link takes them.

use sealane_seal::{Binding, Class, Form, Sealer, limits};

use crate::header::{HEADER_BYTES, Header};
use crate::{FrameError, HeaderFields};

/// The room around the body of a sealer's next frame in the full form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRoom {
    /// The bytes before the body.
    pub before: usize,
    /// The bytes behind the body.
    pub behind: usize,
}

impl FrameRoom {
    /// The room of the next frame of a class.
    ///
    /// # Errors
    ///
    /// As [`Sealer::next_counter`].
    #[inline]
    pub fn of_next(sealer: &Sealer, class: Class) -> Result<Self, FrameError> {
        let head = sealer.next_header_bytes(class)?;
        let tail = match class {
            Class::Signed => limits::SIGNATURE_BYTES + limits::TAG_BYTES,
            Class::Authenticated | Class::Group | Class::Peer => limits::TAG_BYTES,
        };
        Ok(match class {
            Class::Authenticated => Self { before: HEADER_BYTES, behind: head + tail },
            _ => Self { before: HEADER_BYTES + head, behind: tail },
        })
    }

    /// The bytes of a frame with a body of that length.
    #[inline]
    pub fn frame_bytes(self, body_bytes: usize) -> usize {
        self.before + body_bytes + self.behind
    }
}

/// Seals the body that stands within its room: all of `frame` but [`FrameRoom`]. It becomes the
/// frame in the full form.
///
/// # Errors
///
/// [`FrameError::NoRoom`], [`FrameError::BodyTooLong`], and what the sealer refuses. The body is
/// zeroed then.
#[inline]
pub fn seal_in_room(
    sealer: &mut Sealer,
    fields: &HeaderFields,
    binding: &Binding,
    frame: &mut [u8],
) -> Result<(), FrameError> {
    let sealed = try_seal(sealer, fields, binding, frame);
    if sealed.is_err() {
        frame.fill(0);
    }
    sealed
}

fn try_seal(
    sealer: &mut Sealer,
    fields: &HeaderFields,
    binding: &Binding,
    frame: &mut [u8],
) -> Result<(), FrameError> {
    let FrameRoom { before, behind } = FrameRoom::of_next(sealer, fields.class)?;
    let end = frame.len().checked_sub(behind).filter(|end| *end >= before);
    let body = before..end.ok_or(FrameError::NoRoom)?;
    let header = Header::new(fields, body.len(), sealer.next_counter()?, sealer.context())?;
    let meta = header.authenticated();
    let sealed = sealer.seal_in_place(fields.class, Form::Full, binding, meta, frame, body)?;
    debug_assert_eq!(sealed, HEADER_BYTES..frame.len(), "a frame fills its place");
    let target = frame.get_mut(..HEADER_BYTES).ok_or(FrameError::NoRoom)?;
    target.copy_from_slice(header.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use sealane_seal::{
        Epoch, EpochSecret, Epochs, Group, GroupId, History, SenderContext, SigningKey, Slot, Suite,
    };

    use super::*;
    use crate::{FrameBuf, GroupTag, PeerTag, seal_frame};

    fn sealer(next: u64) -> Sealer {
        let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]));
        let slot = Slot::new(3).unwrap();
        let mut sealer = Sealer::new(group, slot, SenderContext([3; 8]), &epochs, next).unwrap();
        sealer.set_signing_key(SigningKey::from_seed(&[3; 32]).unwrap());
        sealer
    }

    #[test]
    fn a_frame_in_its_room_is_the_one_that_a_draft_gives() {
        let tag = PeerTag::from_hash([9; 8]);
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            let fields = HeaderFields { class, ..HeaderFields::new(GroupTag::default(), tag, 1) };
            for next in [0, 7, 8, 255, 256, 70_000, (1 << 40) - 1] {
                for body in [&[][..], b"x", &[5; 1400]] {
                    let (mut one, mut other) = (sealer(next), sealer(next));
                    let (link, mut buf) = (Binding::link(), FrameBuf::new());
                    let expected = seal_frame(&mut one, &fields, &link, body, &mut buf).unwrap();
                    let room = FrameRoom::of_next(&other, class).unwrap();
                    let mut frame = vec![0xee; room.frame_bytes(body.len())];
                    frame[room.before..room.before + body.len()].copy_from_slice(body);
                    seal_in_room(&mut other, &fields, &link, &mut frame).unwrap();
                    assert_eq!(frame, expected, "{class:?} {next}");
                }
            }
        }
    }

    #[test]
    fn what_is_refused_leaves_nothing_of_the_body() {
        let tag = PeerTag::from_hash([9; 8]);
        let fields = HeaderFields::new(GroupTag::default(), tag, 1);
        let mut short = [7; 80];
        let refused = seal_in_room(&mut sealer(0), &fields, &Binding::link(), &mut short);
        assert_eq!((refused, short), (Err(FrameError::NoRoom), [0; 80]));
    }
}
