use super::header::{ObjectHeader, ObjectKind, VaultId};
use super::pack::ObjectHash;
use super::snapshot::SignerId;
use crate::Error;
use crate::keys::{SlotKind, VaultSigner, verify};
use crate::limits::{MAX_ROSTER_BYTES, MAX_VAULT_SLOTS};
use crate::wire::VaultFieldReader;

pub(crate) const ROSTER_PREFIX: &str = "roster/";
/// The number that a key of `roster/` names.
pub(crate) fn roster_number(key: &str) -> Option<u64> {
    let digits = key.strip_prefix(ROSTER_PREFIX).filter(|digits| digits.len() == 10)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The number up to which a writer is believed while nothing says that it ended.
pub(crate) const NO_END: u64 = u64::MAX;

pub(crate) fn roster_key(number: u64) -> String {
    format!("{ROSTER_PREFIX}{number:010}")
}

/// The owner's signed list of the key slots: which there are, and how long writers are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct VaultRoster {
    /// Rises with each list; 0 where there is none yet.
    pub(crate) number: u64,
    /// The main key whose owner signed it.
    pub(crate) generation: u8,
    pub(crate) slots: Vec<VaultRosterSlot>,
    /// The links with which the owners before handed over, one for each generation but the first.
    pub(crate) handovers: Vec<(u64, ObjectHash)>,
}

/// A slot of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultRosterSlot {
    pub(crate) id: SignerId,
    pub(crate) kind: SlotKind,
    /// BLAKE3 of the slot's object.
    pub(crate) hash: ObjectHash,
    /// The verifying key of a writer; zeros for others.
    pub(crate) writer: [u8; 32],
    /// The number of the last link that is believed of a writer.
    pub(crate) until: u64,
}

impl VaultRoster {
    pub(crate) fn listed(&self, id: &SignerId) -> Option<&VaultRosterSlot> {
        self.slots.iter().find(|listed| listed.id == *id)
    }

    pub(crate) fn write(&self, vault: &VaultId, owner: &VaultSigner) -> Result<Vec<u8>, Error> {
        let mut out = ObjectHeader::owners(ObjectKind::Roster, vault, self.generation).write();
        out.extend_from_slice(&self.number.to_le_bytes());
        write_slots(&mut out, &self.slots);
        for (number, hash) in &self.handovers {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(hash);
        }
        owner.sign(&mut out)?;
        if out.len() > MAX_ROSTER_BYTES || self.slots.len() > MAX_VAULT_SLOTS {
            return Err(Error::TooLarge { what: roster_key(self.number) });
        }
        Ok(out)
    }

    /// Whether it replaces `other`.
    pub(crate) fn is_newer(&self, other: &VaultRoster) -> bool {
        (self.generation, self.number) > (other.generation, other.number)
    }

    /// Reads a list that one of `owners` signed, each the owner of a generation.
    pub(crate) fn read(
        key: &str,
        bytes: &[u8],
        vault: &VaultId,
        owners: &[[u8; 32]],
    ) -> Result<VaultRoster, Error> {
        let mut reader = VaultFieldReader::new("a list of slots", bytes);
        let header = ObjectHeader::read(&mut reader, key, ObjectKind::Roster, Some(vault))?;
        let number = reader.u64()?;
        let named = number > 0 && roster_key(number) == key;
        if header.wrapped.is_some() || !named {
            return Err(reader.malformed());
        }
        let generation = header.generation;
        let slots = read_slots(&mut reader)?;
        let mut handovers = Vec::new();
        for _ in 0..generation {
            handovers.push((reader.u64()?, reader.array()?));
        }
        reader.take(64)?;
        reader.end()?;
        let unknown = || Error::Signature(key.to_owned());
        verify(owners.get(usize::from(generation)).ok_or_else(unknown)?, key, bytes)?;
        Ok(VaultRoster { number, generation, slots, handovers })
    }
}

pub(crate) fn write_slots(out: &mut Vec<u8>, slots: &[VaultRosterSlot]) {
    out.extend_from_slice(&(slots.len() as u16).to_le_bytes());
    for slot in slots {
        out.extend_from_slice(&slot.id);
        out.push(slot.kind.to_byte());
        out.extend_from_slice(&slot.hash);
        out.extend_from_slice(&slot.writer);
        out.extend_from_slice(&slot.until.to_le_bytes());
    }
}

pub(crate) fn read_slots(reader: &mut VaultFieldReader<'_>) -> Result<Vec<VaultRosterSlot>, Error> {
    let count = usize::from(reader.u16()?);
    if count > MAX_VAULT_SLOTS {
        return Err(reader.malformed());
    }
    let mut slots = Vec::with_capacity(count);
    for _ in 0..count {
        slots.push(VaultRosterSlot {
            id: reader.array()?,
            kind: SlotKind::from_byte(reader.u8()?).ok_or(reader.malformed())?,
            hash: reader.array()?,
            writer: reader.array()?,
            until: reader.u64()?,
        });
    }
    Ok(slots)
}
