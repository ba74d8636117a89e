use super::header::{Kind, ObjectHeader, VaultId};
use super::pack::Hash;
use super::snapshot::SignerId;
use crate::Error;
use crate::keys::{Signer, SlotKind, verify};
use crate::limits::{MAX_ROSTER_BYTES, MAX_VAULT_SLOTS};
use crate::wire::Reader;

pub(crate) const ROSTER_PREFIX: &str = "roster/";
/// The number that a key of `roster/` names.
pub(crate) fn roster_number(key: &str) -> Option<u64> {
    let digits = key.strip_prefix(ROSTER_PREFIX).filter(|digits| digits.len() == 10)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// What a writer is believed up to while nothing says that it ended.
pub(crate) const NO_END: u64 = u64::MAX;

pub(crate) fn roster_key(number: u64) -> String {
    format!("{ROSTER_PREFIX}{number:010}")
}

/// The owner's signed list of the key slots: which there are, and how long writers are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Roster {
    /// Rises with each list; 0 where there is none yet.
    pub(crate) number: u64,
    pub(crate) slots: Vec<Listed>,
}

/// A slot of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: SignerId,
    pub(crate) kind: SlotKind,
    /// BLAKE3 of the slot's object.
    pub(crate) hash: Hash,
    /// The verifying key of a writer; zeros for others.
    pub(crate) writer: [u8; 32],
    /// The number of the last link that is believed of a writer.
    pub(crate) until: u64,
}

impl Roster {
    pub(crate) fn listed(&self, id: &SignerId) -> Option<&Listed> {
        self.slots.iter().find(|listed| listed.id == *id)
    }

    pub(crate) fn write(&self, vault: &VaultId, owner: &Signer) -> Result<Vec<u8>, Error> {
        let mut out = ObjectHeader { kind: Kind::Roster, vault: *vault, wrapped: None }.write();
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&(self.slots.len() as u16).to_le_bytes());
        for slot in &self.slots {
            out.extend_from_slice(&slot.id);
            out.push(slot.kind.to_byte());
            out.extend_from_slice(&slot.hash);
            out.extend_from_slice(&slot.writer);
            out.extend_from_slice(&slot.until.to_le_bytes());
        }
        owner.sign(&mut out)?;
        if out.len() > MAX_ROSTER_BYTES || self.slots.len() > MAX_VAULT_SLOTS {
            return Err(Error::TooLarge { what: roster_key(self.number) });
        }
        Ok(out)
    }

    /// Reads a list that `owner` signed.
    pub(crate) fn read(
        key: &str,
        bytes: &[u8],
        vault: &VaultId,
        owner: &[u8; 32],
    ) -> Result<Roster, Error> {
        let mut reader = Reader::new("a list of slots", bytes);
        let header = ObjectHeader::read(&mut reader, key, Kind::Roster, Some(vault))?;
        let number = reader.u64()?;
        let count = usize::from(reader.u16()?);
        let named = number > 0 && roster_key(number) == key;
        if header.wrapped.is_some() || !named || count > MAX_VAULT_SLOTS {
            return Err(reader.malformed());
        }
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            slots.push(Listed {
                id: reader.array()?,
                kind: SlotKind::from_byte(reader.u8()?).ok_or(reader.malformed())?,
                hash: reader.array()?,
                writer: reader.array()?,
                until: reader.u64()?,
            });
        }
        reader.take(64)?;
        reader.end()?;
        verify(owner, key, bytes)?;
        Ok(Roster { number, slots })
    }
}
