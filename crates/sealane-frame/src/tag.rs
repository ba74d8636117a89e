use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A member's address in its group: eight bytes of a keyed hash, not an identity.
///
/// `spec/frame.md`, section *Tags*, says how it is made. Tags are byte strings: no byte order
/// applies to them.
#[derive(
    Debug,
    Default,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct PeerTag([u8; 8]);

impl PeerTag {
    /// Every member in reach, as a next hop, or every member of the group, as a destination.
    pub const BROADCAST: Self = Self([0xff; 8]);
    /// Nobody: a hop that has not been chosen yet.
    pub const NOBODY: Self = Self([0; 8]);

    /// The tag of a keyed hash. Its first byte is lifted out of the values that begin a fragment
    /// or a batch, and out of [`PeerTag::BROADCAST`].
    pub const fn from_hash(hash: [u8; 8]) -> Self {
        let [first, rest @ ..] = hash;
        let first = match first {
            ..FIRST_BYTE_MIN => first + FIRST_BYTE_MIN,
            0xff => 0xfe,
            _ => first,
        };
        let [b, c, d, e, f, g, h] = rest;
        Self([first, b, c, d, e, f, g, h])
    }

    /// A tag as it travels.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The bytes as they travel.
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

/// A group's address: four bytes of a keyed hash.
#[derive(
    Debug,
    Default,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct GroupTag([u8; 4]);

impl GroupTag {
    /// A tag as it travels.
    pub const fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }

    /// The bytes as they travel.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0
    }
}

impl GroupTag {
    /// A tag as topics, streams and people write it: 8 lower-case hexadecimal digits, as
    /// `Display` shows it. `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: &[u8; 8] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 4];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            let [high, low] = pair.map(|digit| match digit {
                b'0'..=b'9' => Some(digit - b'0'),
                b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            });
            *byte = high? << 4 | low?;
        }
        Some(Self(bytes))
    }
}

/// 8 lower-case hexadecimal digits.
impl fmt::Display for GroupTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// 16 lower-case hexadecimal digits.
impl fmt::Display for PeerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Smaller first bytes of a unit mean that it is no frame: [`crate::FrameUnit`].
const FIRST_BYTE_MIN: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_tag_has_one_text() {
        let tag = GroupTag::from_bytes([0x00, 0x9f, 0xa0, 0xff]);
        assert_eq!(tag.to_string(), "009fa0ff");
        assert_eq!(GroupTag::from_hex("009fa0ff"), Some(tag));
        for other in ["009FA0FF", "009fa0f", "009fa0ff0", "009fa0fg", "+09fa0ff", ""] {
            assert_eq!(GroupTag::from_hex(other), None, "{other}");
        }
    }

    #[test]
    fn a_tag_of_a_hash_never_looks_like_a_fragment_a_batch_or_everybody() {
        for first in 0..=u8::MAX {
            let tag = PeerTag::from_hash([first, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
            assert!((FIRST_BYTE_MIN..0xff).contains(&tag.to_bytes()[0]), "{first}");
            assert_eq!(tag.to_bytes()[1..], [0xff; 7]);
        }
    }
}
