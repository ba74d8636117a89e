//! Tags as people write them.

use sealane_frame::PeerTag;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// A tag of 16 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagText(pub(crate) PeerTag);

impl<'de> Deserialize<'de> for TagText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let tag = from_hex(&text);
        tag.map(TagText).ok_or_else(|| D::Error::custom(format!("`{text}` is no tag")))
    }
}

/// The tag of 16 lower-case hexadecimal digits, but for those that begin like another unit or stand
/// for everybody.
pub(crate) fn from_hex(text: &str) -> Option<PeerTag> {
    let is_lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let number = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16 && is_lower)?;
    let bytes = number.to_be_bytes();
    let is_address = PeerTag::from_hash(bytes).to_bytes() == bytes;
    is_address.then_some(PeerTag::from_bytes(bytes))
}

/// A key of 64 lower-case hexadecimal digits.
pub(crate) fn key_from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut key = [0; 32];
    for (byte, [high, low]) in key.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(key)
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What TOML did not like of a text, and in which line.
pub(crate) fn said(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}
