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
    let bytes = sealane_message::hex::decode(text)?;
    // A tag must not begin as a fragment, a note or a batch does. `from_hash` changes exactly
    // those.
    let is_address = PeerTag::from_hash(bytes).to_bytes() == bytes;
    is_address.then_some(PeerTag::from_bytes(bytes))
}

/// The fault that TOML found in a text, and its line.
pub(crate) fn said(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}
