use std::fmt;

use sealane_message::hex;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a keyed hash that stand in headers as they are: their text, and the bytes as they
/// travel.
macro_rules! tag {
    ($(#[$doc:meta])* $Tag:ident, $BYTES:literal, $digits:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes,
            KnownLayout, Immutable, Unaligned,
        )]
        #[repr(transparent)]
        pub struct $Tag([u8; $BYTES]);

        impl $Tag {
            /// A tag as it travels.
            pub const fn from_bytes(bytes: [u8; $BYTES]) -> Self {
                Self(bytes)
            }

            /// The bytes as they travel.
            pub const fn to_bytes(self) -> [u8; $BYTES] {
                self.0
            }
        }

        #[doc = $digits]
        impl fmt::Display for $Tag {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex::write(&self.0, f)
            }
        }
    };
}

tag! {
    /// A member's address in its group: eight bytes of a keyed hash, not an identity.
    ///
    /// `spec/frame.md`, section *Tags*, says how it is made. Tags are byte strings: no byte order
    /// applies to them.
    PeerTag, 8, "16 lower-case hexadecimal digits."
}

tag! {
    /// A group's address: four bytes of a keyed hash.
    GroupTag, 4, "8 lower-case hexadecimal digits."
}

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
}

impl GroupTag {
    /// A tag as topics, streams and people write it: 8 lower-case hexadecimal digits, as
    /// `Display` shows it. `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
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
