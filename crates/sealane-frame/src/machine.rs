//! The plain data of a group as a machine that routes holds it.
//!
//! A member of a group makes these values out of its folder, and the mesh consumes them. Both sides
//! see this crate and neither needs the other: the rules of membership stay out of the machine that
//! routes, and routing stays out of the folder.

use std::fmt;
use std::sync::Arc;

use sealane_seal::{Epochs, Group, GroupId, SenderContext, SigningKey, Slot, Term};

use crate::{GroupTag, PeerTag};

/// Which neighbours are to take a message about documents. The documents decide it, and the mesh
/// sends by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentAudience {
    /// One, where it is heard best.
    One(Slot),
    /// All, or all but the one that has brought what the message is about.
    All {
        /// That one.
        but: Option<Slot>,
    },
}

/// A member of the mesh's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub tag: PeerTag,
    /// Its slot, when it had it, and what verifies its signatures.
    pub term: Term,
}

/// All that a machine holds of the mesh's group.
#[derive(Debug)]
pub struct Keys {
    /// The group.
    pub group: Group,
    /// Its tag.
    pub tag: GroupTag,
    /// The machine's slot.
    pub slot: Slot,
    /// 8 random bytes, drawn at each start.
    pub context: SenderContext,
    /// Milliseconds since 1970-01-01 UTC when the machine started, above those of earlier starts.
    pub start_ms: u64,
    /// How many orders of the group were obeyed.
    pub orders: u64,
    /// The secrets that are held.
    pub epochs: Epochs,
    /// All members, this machine too.
    pub members: Arc<[Member]>,
    /// The key that signs for this machine.
    pub signing: SigningKey,
}

/// The changes that come with an order of the group's authority.
#[derive(Debug)]
pub struct Rekeyed {
    /// The secrets that are held from now on.
    pub epochs: Epochs,
    /// All members from now on.
    pub members: Arc<[Member]>,
    /// How many orders were obeyed.
    pub orders: u64,
    /// The key that signs for this machine.
    pub signing: SigningKey,
}

/// A group whose orders a machine keeps, and gives to neighbours that lack them. The machine needs
/// no secret of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeptGroup {
    /// Its tag.
    pub tag: GroupTag,
    /// Its identity, which no notice of another group is signed for.
    pub id: GroupId,
    /// The key that verifies the authority's Ed25519 signatures.
    pub authority: [u8; 32],
    /// From which order on they are kept: how many the machine's member of the group has obeyed, or
    /// how many were given when a relay was told of the group.
    pub orders: u64,
    /// A member of the group on this machine obeys them, so that none may be missing between them.
    /// A machine without one may begin later, where nobody holds the first ones any more.
    pub has_member: bool,
}

impl KeptGroup {
    /// Whether both are of one group and one authority.
    pub fn is_same_group(&self, other: &Self) -> bool {
        (self.tag, self.id, self.authority) == (other.tag, other.id, other.authority)
    }
}

impl fmt::Debug for KeptGroup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeptGroup").field("tag", &self.tag).field("orders", &self.orders).finish()
    }
}
