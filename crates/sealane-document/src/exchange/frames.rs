//! Frames that are handed on, in one message.

use sealane_frame::{PeerTag, RELAY_BYTES};

use super::bytes::{Input, leb128};
use super::sort;
use crate::ExchangeError;
use crate::limits::MAX_DOCUMENT_BYTES;

/// The group tag in front, which says nothing here, and the sort.
pub(crate) const FRAMES_HEAD_BYTES: usize = 5;

/// The beginning of a message of frames.
pub(crate) fn frames_message() -> Vec<u8> {
    vec![0, 0, 0, 0, sort::FRAMES]
}

/// Appends a frame, without the bytes that relays write.
pub(crate) fn put_frame(frame: &[u8], message: &mut Vec<u8>) {
    let frame = frame.get(RELAY_BYTES..).unwrap_or_default();
    leb128(frame.len() as u64, message);
    message.extend(frame);
}

/// The frames of a message, from its sort on, each in the full form.
///
/// # Errors
/// [`ExchangeError`] where it is no message of frames.
pub fn read_frames(message: &[u8]) -> Result<Vec<Vec<u8>>, ExchangeError> {
    let mut input = Input::of(message, sort::FRAMES)?;
    let mut frames = vec![];
    while !input.is_empty() {
        let bytes = usize::try_from(input.leb128()?).map_err(|_| ExchangeError::Order)?;
        if bytes > MAX_DOCUMENT_BYTES - RELAY_BYTES {
            return Err(ExchangeError::Order);
        }
        let mut frame = relay_bytes().to_vec();
        frame.extend(input.bytes(bytes)?);
        frames.push(frame);
    }
    Ok(frames)
}

/// To everybody, from nobody, no hops: as a frame is kept.
pub(crate) fn relay_bytes() -> [u8; RELAY_BYTES] {
    let all = PeerTag::BROADCAST.to_bytes().into_iter().chain(PeerTag::NOBODY.to_bytes());
    let mut bytes = [0; RELAY_BYTES];
    bytes.iter_mut().zip(all).for_each(|(byte, value)| *byte = value);
    bytes
}
