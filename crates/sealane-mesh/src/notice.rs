//! The part of a group's notices that a machine needs to keep them and to pass them on: their
//! signers and numbers. `spec/group.md` gives the rest of their content; no machine needs it here.

use sealane_frame::machine::KeptGroup;
use sealane_seal::limits::SIGNATURE_BYTES;
use sealane_seal::{Epoch, GroupId, Slot, verifies_open};

use crate::MeshError;
use crate::limits::MAX_NOTICE_BYTES;

/// The content of a notice, once the authority's signature verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeContent {
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
        /// The member.
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
/// The head of a renewal: four letters and its version.
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

impl NoticeContent {
    /// The content of a notice, if the authority of that group has signed it.
    ///
    /// # Errors
    ///
    /// [`MeshError::TooLong`], [`MeshError::Truncated`], [`MeshError::Range`],
    /// [`MeshError::NotOurs`] for the renewal of another group, and the seal's errors for the
    /// signature.
    pub fn verify(of: &KeptGroup, notice: &[u8]) -> Result<Self, MeshError> {
        if notice.len() > MAX_NOTICE_BYTES {
            return Err(MeshError::TooLong);
        }
        let (kind, rest) = notice.split_first().ok_or(MeshError::Truncated)?;
        match *kind {
            ORDER => {
                let number = word(rest, 0)?;
                check(of, ORDER_LABEL, notice).map(|()| Self::Order { number, is_anew: false })
            }
            RENEWAL => Self::renewal(of, rest),
            REMOVAL if notice.len() == REMOVAL_NOTICE_BYTES => {
                let [high, low] = part(rest, 16)?;
                let slot = crate::bytes::slot(u16::from_be_bytes([high, low]))?;
                let order = word(rest, 0)?;
                check(of, REMOVAL_LABEL, notice).map(|()| Self::Removal { order, slot })
            }
            _ => Err(MeshError::Range),
        }
    }

    fn renewal(of: &KeptGroup, renewal: &[u8]) -> Result<Self, MeshError> {
        let group: [u8; 32] = part(renewal, RENEWAL_HEAD.len())?;
        if !renewal.starts_with(RENEWAL_HEAD) || group != of.id.0 {
            return Err(MeshError::NotOurs);
        }
        let (number, [flags]) = (word(renewal, 37)?, part(renewal, 53)?);
        let signed = renewal.len().checked_sub(LATTICE_SIGNATURE_BYTES);
        let signed = signed.and_then(|end| renewal.get(..end)).ok_or(MeshError::Truncated)?;
        let (bytes, signature) = signed.split_last_chunk().ok_or(MeshError::Truncated)?;
        check_signed(of, &[RENEWAL_LABEL, bytes].concat(), signature)?;
        Ok(Self::Order { number, is_anew: flags & ANEW != 0 })
    }
}

fn check(of: &KeptGroup, label: &[u8], notice: &[u8]) -> Result<(), MeshError> {
    let (bytes, signature) = notice.split_last_chunk().ok_or(MeshError::Truncated)?;
    check_signed(of, &[label, &of.id.0, bytes].concat(), signature)
}

fn check_signed(
    of: &KeptGroup,
    labelled: &[u8],
    by: &[u8; SIGNATURE_BYTES],
) -> Result<(), MeshError> {
    let is_its = verifies_open(&of.authority, labelled, by);
    if is_its { Ok(()) } else { Err(sealane_seal::Error::Signature.into()) }
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

/// The label under which a notice of simulations is signed.
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
