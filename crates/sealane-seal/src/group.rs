use crate::Error;
use crate::limits::{MAX_HEADER_BYTES, MAX_SLOT, SIGNATURE_BYTES, TAG_BYTES};

/// The cipher of a group, for as long as the group lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suite {
    /// SFrame suite 5, `AES_256_GCM_SHA512_128` (RFC 9605 §4.5): where the CPU has AES.
    Aes256Gcm,
    /// ChaCha20-Poly1305 with SHA-512, number 0xf001 of SFrame's private range.
    ChaCha20Poly1305,
}

impl Suite {
    /// Both suites.
    pub const ALL: [Suite; 2] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

    /// The SFrame suite number, which enters every key derivation.
    pub fn number(self) -> u16 {
        match self {
            Suite::Aes256Gcm => 0x0005,
            Suite::ChaCha20Poly1305 => 0xf001,
        }
    }

    /// Its name, as RFC 9605 forms them.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes256Gcm => "AES_256_GCM_SHA512_128",
            Suite::ChaCha20Poly1305 => "CHACHA20_POLY1305_SHA512_128",
        }
    }

    /// The suite of that name.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// The suite of that number.
    pub fn from_number(number: u16) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.number() == number)
    }
}

/// The protection of a seal.
///
/// The classes have no total order, and so no `<`: C covers A, S and P cover C, and neither of
/// those two covers the other. See [`Class::covers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A: integrity and origin in the group; the body travels in clear before the header.
    Authenticated,
    /// C: A and confidentiality.
    Group,
    /// S: C and the sender's Ed25519 signature.
    Signed,
    /// P: what C is, in a group of two.
    Peer,
}

impl Class {
    /// All classes, by their number.
    pub const ALL: [Class; 4] = [Class::Authenticated, Class::Group, Class::Signed, Class::Peer];

    /// The two bits in the key id.
    pub fn number(self) -> u8 {
        match self {
            Class::Authenticated => 0,
            Class::Group => 1,
            Class::Signed => 2,
            Class::Peer => 3,
        }
    }

    /// The class of the two low bits.
    pub fn from_bits(bits: u8) -> Class {
        match bits & 3 {
            0 => Class::Authenticated,
            1 => Class::Group,
            2 => Class::Signed,
            _ => Class::Peer,
        }
    }

    /// Room that sealing needs before a body, at most: the header; none in class A.
    pub const fn head_bytes(self) -> usize {
        match self {
            Class::Authenticated => 0,
            _ => MAX_HEADER_BYTES,
        }
    }

    /// Room that sealing needs behind a body, at most: tag, and signature or header.
    pub const fn tail_bytes(self) -> usize {
        match self {
            Class::Authenticated => MAX_HEADER_BYTES + TAG_BYTES,
            _ => self.signature_bytes() + TAG_BYTES,
        }
    }

    pub(crate) const fn signature_bytes(self) -> usize {
        match self {
            Class::Signed => SIGNATURE_BYTES,
            _ => 0,
        }
    }

    /// The letter that documents and tables use.
    pub fn letter(self) -> char {
        match self {
            Class::Authenticated => 'A',
            Class::Group => 'C',
            Class::Signed => 'S',
            Class::Peer => 'P',
        }
    }

    /// The class of that letter.
    pub fn from_letter(letter: &str) -> Option<Class> {
        let mut chars = letter.chars();
        let class = chars.next().and_then(|c| Class::ALL.into_iter().find(|k| k.letter() == c));
        class.filter(|_| chars.next().is_none())
    }

    /// Whether it protects at least what `other` does.
    pub fn covers(self, other: Class) -> bool {
        match other {
            Class::Authenticated => true,
            Class::Group => self != Class::Authenticated,
            Class::Signed | Class::Peer => self == other,
        }
    }

    /// The strongest class that both cover.
    #[must_use]
    pub fn meet(self, other: Class) -> Class {
        match (self.covers(other), other.covers(self)) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => Class::Group,
        }
    }
}

/// A sender's place in the roster of a group: 0 to [`MAX_SLOT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u16);

impl Slot {
    /// A slot within [`MAX_SLOT`].
    #[inline]
    pub const fn new(slot: u16) -> Option<Slot> {
        if slot <= MAX_SLOT { Some(Slot(slot)) } else { None }
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// The number of an epoch of keys. It only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch whose low `bits` are `low` and that lies nearest: from 2^(bits-1) - 1 below `self`
    /// to 2^(bits-1) above.
    pub(crate) fn nearest(self, low: u64, bits: u32) -> Epoch {
        let span = 1_u64 << bits;
        let least = self.0.saturating_sub(span / 2 - 1);
        let step = low.wrapping_sub(least) & (span - 1);
        Epoch(least.saturating_add(step))
    }
}

/// Which group: 32 bytes that no other group has. Bound into every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub [u8; 32]);

/// The properties that all members of a group agree on for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    id: GroupId,
    suite: Suite,
    is_pair: bool,
}

impl Group {
    /// A group of any number of members: classes A, C and S.
    pub fn new(id: GroupId, suite: Suite) -> Group {
        Group { id, suite, is_pair: false }
    }

    /// A group of two, in slots 0 and 1: classes A, P and S.
    pub fn pair(id: GroupId, suite: Suite) -> Group {
        Group { id, suite, is_pair: true }
    }

    /// The group's identity.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// The group's cipher.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Whether the group is one of two.
    pub fn is_pair(&self) -> bool {
        self.is_pair
    }

    /// The class by which a message is sealed here that needs `class`: in a pair C is P. None for
    /// P in a group of more.
    pub fn class_for(&self, class: Class) -> Option<Class> {
        let class = if self.is_pair && class == Class::Group { Class::Peer } else { class };
        self.allows(class).then_some(class)
    }

    /// Whether what is sealed here in `class` is protected as much as `floor` asks. In a pair class
    /// S meets P too: only the two hold the keys.
    pub fn meets(&self, class: Class, floor: Class) -> bool {
        class.covers(floor) || (self.is_pair && class == Class::Signed && floor == Class::Peer)
    }

    /// Whether a message of that class may be sent or read in this group.
    pub fn allows(&self, class: Class) -> bool {
        match class {
            Class::Authenticated | Class::Signed => true,
            Class::Group => !self.is_pair,
            Class::Peer => self.is_pair,
        }
    }

    pub(crate) fn check(&self, class: Class, slot: Slot) -> Result<(), Error> {
        let fits = self.allows(class) && (!self.is_pair || slot.number() < 2);
        if fits { Ok(()) } else { Err(Error::Class) }
    }
}
