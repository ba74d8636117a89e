//! The orders of the authority to the members: the body of a class S frame.

use sealane_seal::{Epoch, EpochSecret, GroupId, Slot};
use zeroize::Zeroizing;

use crate::certificate::{read_slot, slot_bytes};
use crate::crypto::{NONCE_BYTES, TAG_BYTES, open_box, seal_box};
use crate::limits::{MAX_ORDER_MARKS, MAX_ORDER_WRAPS, MAX_ROSTER_MEMBERS};
use crate::marks::{MARK_BYTES, RemovalMark};
use crate::wire::GroupFieldReader;
use crate::{Error, GroupDocument};

/// The data type of the control frame that carries each order: `spec/group.md`, section *Orders*.
/// 3 is an announcement.
const CERTIFY: u16 = 1;
const ADVANCE: u16 = 4;
const ADMIT: u16 = 5;
pub(crate) const REKEY: u16 = 6;
const MARK: u16 = 7;
const BEATER: u16 = 8;

/// Bytes of an epoch secret that is wrapped for one member.
pub(crate) const WRAPPED_BYTES: usize = 32 + TAG_BYTES;
/// Bytes of a wrap in an order: slot and wrapped secret.
pub(crate) const WRAP_BYTES: usize = 2 + WRAPPED_BYTES;

/// An order, as its frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupOrder {
    /// A certificate, to be named by an admission.
    Certify(Vec<u8>),
    /// The secret of that epoch follows from the present one.
    Advance(Epoch),
    /// There is a new member, whose certificate has this hash.
    Admit { slot: Slot, certificate: [u8; 32], replaces: Option<Slot> },
    /// A fresh secret for all members but those who are removed.
    Rekey(RekeyOrder),
    /// Where the removal that began that epoch holds.
    Mark { epoch: Epoch, marks: Vec<RemovalMark> },
    /// The beater whose heartbeats count beside the authority's own, if there is one.
    Beater(Option<[u8; 32]>),
}

/// A fresh secret, or one part of the members' wraps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RekeyOrder {
    pub(crate) epoch: Epoch,
    pub(crate) removed: Vec<Slot>,
    pub(crate) wraps: SecretWraps,
}

/// An epoch secret, wrapped for each of the members from the slot `first` to `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretWraps {
    pub(crate) first: Slot,
    pub(crate) last: Slot,
    /// Makes the wrapping keys of two orders differ, whatever was copied or restored.
    pub(crate) salt: [u8; 32],
    pub(crate) wraps: Vec<(Slot, [u8; WRAPPED_BYTES])>,
}

impl GroupOrder {
    /// The data type of its frame.
    pub(crate) fn data_type(&self) -> u16 {
        match self {
            GroupOrder::Certify(_) => CERTIFY,
            GroupOrder::Advance(_) => ADVANCE,
            GroupOrder::Admit { .. } => ADMIT,
            GroupOrder::Rekey(_) => REKEY,
            GroupOrder::Mark { .. } => MARK,
            GroupOrder::Beater(_) => BEATER,
        }
    }

    /// The body of its frame: the order's number, then its fields.
    pub(crate) fn to_bytes(&self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_be_bytes().to_vec();
        match self {
            GroupOrder::Certify(certificate) => bytes.extend_from_slice(certificate),
            GroupOrder::Advance(epoch) => bytes.extend(epoch.0.to_be_bytes()),
            GroupOrder::Admit { slot, certificate, replaces } => {
                bytes.extend(slot.number().to_be_bytes());
                bytes.extend(certificate);
                bytes.extend(slot_bytes(*replaces));
            }
            GroupOrder::Rekey(rekey) => rekey.put(&mut bytes),
            GroupOrder::Mark { epoch, marks } => {
                bytes.extend(epoch.0.to_be_bytes());
                bytes.extend((marks.len() as u16).to_be_bytes());
                marks.iter().for_each(|mark| mark.put(&mut bytes));
            }
            GroupOrder::Beater(key) => bytes.extend(key.unwrap_or_default()),
        }
        bytes
    }

    /// Reads the body of a control frame: the order and its number.
    pub(crate) fn from_bytes(data_type: u16, bytes: &[u8]) -> Result<NumberedOrder, Error> {
        let mut reader = GroupFieldReader::new(GroupDocument::Order, bytes);
        let number = reader.u64()?;
        let order = match data_type {
            CERTIFY => {
                return Ok(NumberedOrder {
                    number,
                    order: GroupOrder::Certify(reader.rest().to_vec()),
                });
            }
            ADVANCE => GroupOrder::Advance(Epoch(reader.u64()?)),
            ADMIT => GroupOrder::Admit {
                slot: read_slot(&mut reader)?.ok_or_else(|| reader.malformed())?,
                certificate: reader.array()?,
                replaces: read_slot(&mut reader)?,
            },
            REKEY => GroupOrder::Rekey(RekeyOrder::read(&mut reader)?),
            MARK => {
                let epoch = Epoch(reader.u64()?);
                let count = reader.count(MAX_ORDER_MARKS, MARK_BYTES)?;
                let marks = (0..count).map(|_| RemovalMark::read(&mut reader));
                GroupOrder::Mark { epoch, marks: marks.collect::<Result<_, _>>()? }
            }
            BEATER => {
                let key: [u8; 32] = reader.array()?;
                GroupOrder::Beater((key != [0; 32]).then_some(key))
            }
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        Ok(NumberedOrder { number, order })
    }
}

/// An order and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberedOrder {
    pub(crate) number: u64,
    pub(crate) order: GroupOrder,
}

impl RekeyOrder {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.epoch.0.to_be_bytes());
        out.extend((self.removed.len() as u16).to_be_bytes());
        out.extend(self.removed.iter().flat_map(|slot| slot.number().to_be_bytes()));
        self.wraps.put(out);
    }

    fn read(reader: &mut GroupFieldReader<'_>) -> Result<RekeyOrder, Error> {
        let epoch = Epoch(reader.u64()?);
        let count = reader.count(MAX_ROSTER_MEMBERS, 2)?;
        let mut removed = Vec::with_capacity(count);
        for _ in 0..count {
            removed.push(Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?);
        }
        let wraps = SecretWraps::read(reader)?;
        Ok(RekeyOrder { epoch, removed, wraps })
    }
}

impl SecretWraps {
    /// Wraps a secret for members of whom `keys` has slot and pairwise key, in the order of slots,
    /// split into as many parts as the limit asks for.
    pub(crate) fn make(
        secret: &EpochSecret,
        group: GroupId,
        epoch: Epoch,
        keys: &[(Slot, Zeroizing<[u8; 32]>)],
        salt: [u8; 32],
    ) -> Result<Vec<SecretWraps>, Error> {
        let mut parts = Vec::new();
        let mut first = Slot::new(0).ok_or(Error::Cipher)?;
        let chunks = keys.chunks(MAX_ORDER_WRAPS);
        let count = chunks.len();
        for (at, chunk) in chunks.enumerate() {
            let end = chunk.last().map_or(first, |(slot, _)| *slot);
            let last = if at + 1 == count { last_slot()? } else { end };
            let wraps = chunk.iter().map(|(slot, key)| {
                let whose = WrapId { group, epoch, slot: *slot };
                let sealed = wrap(secret, whose, key, &salt)?;
                Ok((*slot, sealed))
            });
            parts.push(SecretWraps {
                first,
                last,
                salt,
                wraps: wraps.collect::<Result<_, Error>>()?,
            });
            first = Slot::new(last.number() + 1).unwrap_or(last);
        }
        if parts.is_empty() {
            parts.push(SecretWraps { first, last: last_slot()?, salt, wraps: Vec::new() });
        }
        Ok(parts)
    }

    /// All parts as one.
    pub(crate) fn join(parts: Vec<SecretWraps>) -> Option<SecretWraps> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for part in parts {
            whole.last = part.last;
            whole.wraps.extend(part.wraps);
        }
        Some(whole)
    }

    /// Whether this part would hold that slot's wrap.
    pub(crate) fn covers(&self, slot: Slot) -> bool {
        (self.first..=self.last).contains(&slot)
    }

    /// The secret, if it is wrapped for that slot with that key.
    pub(crate) fn unwrap(&self, whose: WrapId, key: &[u8; 32]) -> Option<EpochSecret> {
        let found = self.wraps.binary_search_by_key(&whose.slot, |(slot, _)| *slot).ok()?;
        let (_, sealed) = self.wraps.get(found)?;
        let (key, associated) = wrapping_key(whose, key, &self.salt);
        let secret = open_box(&key, [0; NONCE_BYTES], &associated, sealed)?;
        Some(EpochSecret::new(secret.as_slice().try_into().ok()?))
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.first.number().to_be_bytes());
        out.extend(self.last.number().to_be_bytes());
        out.extend(self.salt);
        out.extend((self.wraps.len() as u16).to_be_bytes());
        for (slot, sealed) in &self.wraps {
            out.extend(slot.number().to_be_bytes());
            out.extend(sealed);
        }
    }

    pub(crate) fn read(reader: &mut GroupFieldReader<'_>) -> Result<SecretWraps, Error> {
        let first = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let last = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let salt = reader.array()?;
        let count = reader.count(MAX_ROSTER_MEMBERS, WRAP_BYTES)?;
        let mut wraps = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
            wraps.push((slot, reader.array()?));
        }
        let is_sorted = wraps.is_sorted_by(|(a, _), (b, _)| a < b);
        let is_inside = wraps.iter().all(|(slot, _)| (first..=last).contains(slot));
        if !is_sorted || !is_inside {
            return Err(reader.malformed());
        }
        Ok(SecretWraps { first, last, salt, wraps })
    }
}

/// Which wrap it is: no two wraps share all three.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrapId {
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
    pub(crate) slot: Slot,
}

fn last_slot() -> Result<Slot, Error> {
    Slot::new(sealane_seal::limits::MAX_SLOT).ok_or(Error::Cipher)
}

fn wrap(
    secret: &EpochSecret,
    whose: WrapId,
    key: &[u8; 32],
    salt: &[u8; 32],
) -> Result<[u8; WRAPPED_BYTES], Error> {
    let (key, associated) = wrapping_key(whose, key, salt);
    let sealed = seal_box(&key, [0; NONCE_BYTES], &associated, secret.expose())?;
    sealed.try_into().map_err(|_| Error::Cipher)
}

/// The key of one wrap, which the random salt makes unique, and what it is bound to.
fn wrapping_key(
    WrapId { group, epoch, slot }: WrapId,
    key: &[u8; 32],
    salt: &[u8; 32],
) -> (Zeroizing<[u8; 32]>, Vec<u8>) {
    let mut associated = group.0.to_vec();
    associated.extend(epoch.0.to_be_bytes());
    associated.extend(slot.number().to_be_bytes());
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"Sealane 1.0 wrapped epoch secret ");
    hasher.update(salt);
    hasher.update(&associated);
    (Zeroizing::new(*hasher.finalize().as_bytes()), associated)
}

#[cfg(test)]
pub(crate) mod tests;
