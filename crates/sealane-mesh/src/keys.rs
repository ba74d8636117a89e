//! The mesh's group, as one of its members holds it.

use std::sync::Arc;

use sealane_frame::machine::{KeptGroup, Keys, Member, Rekeyed};
use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::{
    Epoch, EpochSecret, Epochs, Group, GroupId, History, SenderContext, SigningKey, Slot, Suite,
    Term,
};

use crate::MeshError;

/// The member that has a slot in an epoch.
pub(crate) fn member_at(members: &[Member], slot: Slot, epoch: Epoch) -> Option<&Member> {
    let mut terms = members.iter().filter(|one| one.term.slot == slot);
    terms.find(|one| one.term.holds(epoch))
}

/// A closed group made out of one seed: for simulations and tests. A group of people is made by
/// its authority (`spec/group.md`).
#[derive(Debug, Clone)]
pub struct MeshProvision {
    seed: [u8; 32],
    group: Group,
    tag: GroupTag,
    members: Arc<[Member]>,
}

impl MeshProvision {
    /// A group of so many members, up to 1,024.
    ///
    /// # Errors
    ///
    /// [`MeshError::Range`] for more of them; what the cipher library refuses.
    pub fn new(seed: [u8; 32], members: u16) -> Result<Self, MeshError> {
        let id = GroupId(blake3::derive_key("Sealane 1.0 provisioned mesh: group", &seed));
        let [a, b, c, d, ..] = id.0;
        let member = |number: u16| -> Result<Member, MeshError> {
            let slot = Slot::new(number).ok_or(MeshError::Range)?;
            let verifying_key = SigningKey::from_seed(&key(&seed, slot))?.verifying_key();
            let hash = blake3::hash(&verifying_key);
            let tag = hash.as_bytes().first_chunk().copied().unwrap_or_default();
            let term = Term { slot, since: Epoch(0), until: None, verifying_key };
            Ok(Member { tag: PeerTag::from_hash(tag), term })
        };
        let members = (0..members).map(member).collect::<Result<Vec<_>, _>>()?;
        let tag = GroupTag::from_bytes([a, b, c, d]);
        let group = Group::new(id, Suite::ChaCha20Poly1305);
        Ok(Self { seed, group, tag, members: members.into() })
    }

    /// The keys of one member. Each start has another context and a later `start_ms`.
    ///
    /// # Errors
    ///
    /// [`MeshError::Range`] for a slot that nobody has; what the cipher library refuses.
    pub fn keys(&self, slot: u16, context: [u8; 8], start_ms: u64) -> Result<Keys, MeshError> {
        let member = self.members.get(usize::from(slot)).ok_or(MeshError::Range)?;
        let slot = member.term.slot;
        let secret = self.secret(Epoch(0));
        Ok(Keys {
            group: self.group,
            tag: self.tag,
            slot,
            context: SenderContext(context),
            start_ms,
            orders: 0,
            epochs: Epochs::new(self.group.id(), History::Kept, Epoch(0), secret),
            members: Arc::clone(&self.members),
            signing: SigningKey::from_seed(&key(&self.seed, slot))?,
        })
    }

    /// The changes for a member that stays, when others are removed with a new epoch.
    ///
    /// # Errors
    ///
    /// [`MeshError::Range`] for a slot that nobody has; the errors of the epochs.
    pub fn without(&self, removed: &[u16], epoch: u64, member: u16) -> Result<Rekeyed, MeshError> {
        let slot = Slot::new(member).ok_or(MeshError::Range)?;
        let signing = SigningKey::from_seed(&key(&self.seed, slot))?;
        let mut epochs =
            Epochs::new(self.group.id(), History::Kept, Epoch(0), self.secret(Epoch(0)));
        epochs.insert(Epoch(epoch), self.secret(Epoch(epoch)))?;
        let end = |mut member: Member| {
            if removed.contains(&member.term.slot.number()) {
                member.term.until = Some(Epoch(epoch));
            }
            member
        };
        let members = self.members.iter().copied().map(end).collect();
        Ok(Rekeyed { epochs, members, orders: epoch, signing })
    }

    /// An order of this group's authority, slot 0, around any bytes.
    ///
    /// # Errors
    ///
    /// The errors of the cipher library.
    pub fn order(&self, number: u64, frame: &[u8]) -> Result<Vec<u8>, MeshError> {
        self.signed(crate::notice::order_bytes(number, frame), 0)
    }

    /// A notice of removal that a member signs: it counts if that is slot 0.
    ///
    /// # Errors
    ///
    /// [`MeshError::Range`] for a slot that nobody can have; what the cipher library refuses.
    pub fn removal(&self, order: u64, removed: u16, by: u16) -> Result<Vec<u8>, MeshError> {
        let slot = Slot::new(removed).ok_or(MeshError::Range)?;
        let fields = crate::notice::RemovalFields { order, epoch: Epoch(order), slot };
        self.signed(fields.to_bytes(), by)
    }

    fn signed(&self, mut notice: Vec<u8>, by: u16) -> Result<Vec<u8>, MeshError> {
        let slot = Slot::new(by).ok_or(MeshError::Range)?;
        let signing = SigningKey::from_seed(&key(&self.seed, slot))?;
        let label = crate::notice::label_of(&notice, self.group.id());
        notice.extend(signing.sign_open(&[&label, &notice[..]].concat())?);
        Ok(notice)
    }

    /// The group, as machines keep its orders that are no members.
    pub fn kept(&self, orders: u64) -> Option<KeptGroup> {
        let authority = self.members.first()?.term.verifying_key;
        let (tag, id) = (self.tag, self.group.id());
        Some(KeptGroup { tag, id, authority, orders, has_member: false })
    }

    /// The address of a member; of a slot that nobody has, nobody's.
    pub fn tag(&self, slot: u16) -> PeerTag {
        self.members.get(usize::from(slot)).map_or(PeerTag::NOBODY, |member| member.tag)
    }

    /// The group's tag.
    pub fn group_tag(&self) -> GroupTag {
        self.tag
    }

    fn secret(&self, epoch: Epoch) -> EpochSecret {
        let of = [&self.seed[..], &epoch.0.to_le_bytes()].concat();
        EpochSecret::new(blake3::derive_key("Sealane 1.0 provisioned mesh: secret", &of))
    }
}

fn key(seed: &[u8; 32], slot: Slot) -> [u8; 32] {
    let of = [&seed[..], &slot.number().to_le_bytes()].concat();
    blake3::derive_key("Sealane 1.0 provisioned mesh: member", &of)
}
