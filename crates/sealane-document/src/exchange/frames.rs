//! Frames that are handed on, in one message.

use sealane_frame::{GroupTag, PeerTag, RELAY_BYTES, hop_bytes};
use sealane_message::bytes::put_leb128;

use super::brief::{brief, whole_form};
use super::bytes::ExchangeFieldReader;
use super::sort;
use crate::ExchangeError;
use crate::limits::MAX_DOCUMENT_BYTES;

/// The group tag in front, and the sort.
pub(crate) const FRAMES_HEAD_BYTES: usize = 5;

/// The beginning of a message of frames, which are of that group.
pub(crate) fn frames_message(group: GroupTag) -> Vec<u8> {
    let mut message = group.to_bytes().to_vec();
    message.push(sort::FRAMES);
    message
}

/// Appends a frame, without the bytes that relays write: in the brief form, if it has one.
pub(crate) fn put_frame(group: GroupTag, frame: &[u8], message: &mut Vec<u8>) {
    let brief = brief(group, frame);
    let whole = frame.get(RELAY_BYTES..).unwrap_or_default();
    let (bytes, is_whole) = (brief.as_deref().unwrap_or(whole), brief.is_none());
    put_leb128((bytes.len() as u64) << 1 | u64::from(is_whole), message);
    message.extend(bytes);
}

/// The frames of a message of a group, from its sort on, each in the full form.
///
/// # Errors
/// [`ExchangeError`] where it is no message of frames.
pub fn read_frames(group: GroupTag, message: &[u8]) -> Result<Vec<Vec<u8>>, ExchangeError> {
    let mut input = ExchangeFieldReader::of(message, sort::FRAMES)?;
    let mut frames = vec![];
    while !input.is_empty() {
        let head = input.leb128()?;
        let bytes = usize::try_from(head >> 1).map_err(|_| ExchangeError::Order)?;
        if bytes > MAX_DOCUMENT_BYTES - RELAY_BYTES {
            return Err(ExchangeError::Order);
        }
        let bytes = input.bytes(bytes)?;
        let mut frame = KEPT_HOPS.to_vec();
        match head & 1 == 1 {
            true => frame.extend(bytes),
            false => frame.extend(whole_form(group, bytes)?),
        }
        frames.push(frame);
    }
    Ok(frames)
}

/// To everybody, from nobody, no hops: as a frame is kept.
pub(crate) const KEPT_HOPS: [u8; RELAY_BYTES] = hop_bytes(PeerTag::BROADCAST, PeerTag::NOBODY, 0);
