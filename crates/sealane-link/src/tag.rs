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

/// What TOML did not like of a text, and in which line.
pub(crate) fn said(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}
