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

/// Smaller first bytes of a unit mean that it is no frame: [`crate::Unit`].
const FIRST_BYTE_MIN: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_a_hash_never_looks_like_a_fragment_a_batch_or_everybody() {
        for first in 0..=u8::MAX {
            let tag = PeerTag::from_hash([first, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
            assert!((FIRST_BYTE_MIN..0xff).contains(&tag.to_bytes()[0]), "{first}");
            assert_eq!(tag.to_bytes()[1..], [0xff; 7]);
        }
    }
}
