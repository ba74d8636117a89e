//! What a machine has to know of a group's notices to keep them and to pass them on: who has signed
//! them, and their numbers. `spec/group.md` says what else is in them; no machine needs it here.

use std::fmt;

use sealane_frame::GroupTag;
use sealane_seal::limits::SIGNATURE_BYTES;
use sealane_seal::{Epoch, GroupId, Slot, verifies_open};

use crate::MeshError;
use crate::limits::MAX_NOTICE_BYTES;

/// A group whose orders a machine keeps, and gives to neighbours that lack them. The machine needs
/// no secret of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeptGroup {
    /// Its tag.
    pub tag: GroupTag,
    /// Its identity, which no notice of another group is signed for.
    pub id: GroupId,
    /// What verifies the authority's Ed25519 signatures.
    pub authority: [u8; 32],
    /// From which order on they are kept: how many the machine's member of the group has obeyed, or
    /// how many were given when a relay was told of the group.
    pub orders: u64,
    /// A member of the group on this machine obeys them, so that none may be missing between them.
    /// A machine without one may begin later, where nobody holds the first ones any more.
    pub has_member: bool,
}

impl fmt::Debug for KeptGroup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeptGroup").field("tag", &self.tag).field("orders", &self.orders).finish()
    }
}

/// What a notice says of itself, once the authority's signature verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// An order, or one that does not begin anew.
    Order {
        /// Its number.
        number: u64,
        /// The orders below it that did not come were never given, or are of no use any more.
        is_anew: bool,
    },
    /// Somebody is about to be removed.
    Removal {
        /// By which order.
        order: u64,
        /// Who.
        slot: Slot,
    },
}

const ORDER: u8 = 1;
const RENEWAL: u8 = 2;
const HEARTBEAT: u8 = 3;
const REMOVAL: u8 = 4;
const ORDER_LABEL: &[u8] = b"Sealane 1.0 order ";
const RENEWAL_LABEL: &[u8] = b"Sealane 1.0 renewal ";
const REMOVAL_LABEL: &[u8] = b"Sealane 1.0 removal ";
/// What a renewal begins with: four letters and its version.
const RENEWAL_HEAD: &[u8; 5] = b"SLRN\x02";
/// The bit of a renewal's flags that says that it begins anew.
const ANEW: u8 = 1;
/// Bytes of the ML-DSA-65 signature behind that of Ed25519: members check it, too.
const LATTICE_SIGNATURE_BYTES: usize = 3309;
/// Bytes of a notice of removal.
pub const REMOVAL_NOTICE_BYTES: usize = 1 + 8 + 8 + 2 + 8 + SIGNATURE_BYTES;

/// Whether a message of a group's control stream is a heartbeat, which is no order.
pub fn is_heartbeat(notice: &[u8]) -> bool {
    notice.first() == Some(&HEARTBEAT)
}

impl KeptGroup {
    /// Whether both are of one group and one authority.
    pub fn is_same_group(&self, other: &Self) -> bool {
        (self.tag, self.id, self.authority) == (other.tag, other.id, other.authority)
    }

    /// What a notice says of itself, if the authority has signed it.
    ///
    /// # Errors
    ///
    /// [`MeshError::TooLong`], [`MeshError::Truncated`], [`MeshError::Range`],
    /// [`MeshError::NotOurs`] for the renewal of another group, and what the seal says of the
    /// signature.
    pub fn verify(&self, notice: &[u8]) -> Result<Told, MeshError> {
        if notice.len() > MAX_NOTICE_BYTES {
            return Err(MeshError::TooLong);
        }
        let (kind, rest) = notice.split_first().ok_or(MeshError::Truncated)?;
        match *kind {
            ORDER => {
                let number = word(rest, 0)?;
                self.check(ORDER_LABEL, notice).map(|()| Told::Order { number, is_anew: false })
            }
            RENEWAL => self.renewal(rest),
            REMOVAL if notice.len() == REMOVAL_NOTICE_BYTES => {
                let [high, low] = part(rest, 16)?;
                let slot = crate::bytes::slot(u16::from_be_bytes([high, low]))?;
                let order = word(rest, 0)?;
                self.check(REMOVAL_LABEL, notice).map(|()| Told::Removal { order, slot })
            }
            _ => Err(MeshError::Range),
        }
    }

    fn renewal(&self, renewal: &[u8]) -> Result<Told, MeshError> {
        let group: [u8; 32] = part(renewal, RENEWAL_HEAD.len())?;
        if !renewal.starts_with(RENEWAL_HEAD) || group != self.id.0 {
            return Err(MeshError::NotOurs);
        }
        let (number, [flags]) = (word(renewal, 37)?, part(renewal, 53)?);
        let signed = renewal.len().checked_sub(LATTICE_SIGNATURE_BYTES);
        let signed = signed.and_then(|end| renewal.get(..end)).ok_or(MeshError::Truncated)?;
        let (bytes, signature) = signed.split_last_chunk().ok_or(MeshError::Truncated)?;
        self.signed(&[RENEWAL_LABEL, bytes].concat(), signature)?;
        Ok(Told::Order { number, is_anew: flags & ANEW != 0 })
    }

    fn check(&self, label: &[u8], notice: &[u8]) -> Result<(), MeshError> {
        let (bytes, signature) = notice.split_last_chunk().ok_or(MeshError::Truncated)?;
        self.signed(&[label, &self.id.0, bytes].concat(), signature)
    }

    fn signed(&self, labelled: &[u8], by: &[u8; SIGNATURE_BYTES]) -> Result<(), MeshError> {
        let is_its = verifies_open(&self.authority, labelled, by);
        if is_its { Ok(()) } else { Err(sealane_seal::Error::Signature.into()) }
    }
}

/// The notice of a removal, for simulations and tests: `sealane-group` makes those of people.
pub(crate) struct RemovalFields {
    pub(crate) order: u64,
    pub(crate) epoch: Epoch,
    pub(crate) slot: Slot,
}

impl RemovalFields {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![REMOVAL];
        bytes.extend(self.order.to_be_bytes());
        bytes.extend(self.epoch.0.to_be_bytes());
        bytes.extend(self.slot.number().to_be_bytes());
        bytes.extend([0; 8]);
        bytes
    }
}

/// An order's bytes before its signature, likewise.
pub(crate) fn order_bytes(number: u64, frame: &[u8]) -> Vec<u8> {
    [&[ORDER], &number.to_be_bytes()[..], frame].concat()
}

/// What a notice of simulations is signed with.
pub(crate) fn label_of(notice: &[u8], group: GroupId) -> Vec<u8> {
    let label = if notice.first() == Some(&REMOVAL) { REMOVAL_LABEL } else { ORDER_LABEL };
    [label, &group.0].concat()
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], MeshError> {
    let part = bytes.get(at..).and_then(<[u8]>::first_chunk);
    part.copied().ok_or(MeshError::Truncated)
}

fn word(bytes: &[u8], at: usize) -> Result<u64, MeshError> {
    part(bytes, at).map(u64::from_be_bytes)
}
