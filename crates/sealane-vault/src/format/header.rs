use crate::Error;
use crate::wire::VaultFieldReader;

pub(crate) const MAGIC: &[u8; 4] = b"SLVT";
pub(crate) const VERSION: u8 = 1;
/// The header's length under the vault's own key.
pub(crate) const HEADER_BYTES: usize = 24;

/// A vault's random identity.
pub(crate) type VaultId = [u8; 16];

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ObjectKind {
    Config = 1,
    Slot = 2,
    Pack = 3,
    Index = 4,
    Snapshot = 5,
    Report = 6,
    Condemned = 7,
    Roster = 8,
    Rotation = 9,
}

/// The first bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectHeader {
    pub(crate) kind: ObjectKind,
    pub(crate) vault: VaultId,
    /// How often the main key had been changed when this was written.
    pub(crate) generation: u8,
    /// The session secret, sealed to the owner; none under the vault's own key.
    pub(crate) wrapped: Option<Vec<u8>>,
}

impl ObjectHeader {
    /// The header of what the owner writes.
    pub(crate) fn owners(kind: ObjectKind, vault: &VaultId, generation: u8) -> ObjectHeader {
        ObjectHeader { kind, vault: *vault, generation, wrapped: None }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(MAGIC);
        let session = u8::from(self.wrapped.is_some());
        out.extend_from_slice(&[VERSION, self.kind as u8, session, self.generation]);
        out.extend_from_slice(&self.vault);
        if let Some(wrapped) = &self.wrapped {
            out.extend_from_slice(&(wrapped.len() as u16).to_le_bytes());
            out.extend_from_slice(wrapped);
        }
        out
    }

    /// Takes a header of `kind`, and of the vault `vault` if that is known.
    pub(crate) fn read(
        bytes: &mut VaultFieldReader<'_>,
        key: &str,
        kind: ObjectKind,
        vault: Option<&VaultId>,
    ) -> Result<ObjectHeader, Error> {
        if bytes.array()? != *MAGIC {
            return Err(bytes.malformed());
        }
        if bytes.u8()? != VERSION {
            return Err(Error::Version(key.to_owned()));
        }
        let [found, session, generation] = bytes.array()?;
        let id: VaultId = bytes.array()?;
        // A config is of the first main key, and a slot is opened by whoever holds its secret.
        let first = matches!(kind, ObjectKind::Config | ObjectKind::Slot) && generation != 0;
        if found != kind as u8 || first || vault.is_some_and(|vault| *vault != id) {
            return Err(bytes.malformed());
        }
        let wrapped = match session {
            0 => None,
            1 => {
                let length = usize::from(bytes.u16()?);
                Some(bytes.take(length)?.to_vec())
            }
            _ => return Err(bytes.malformed()),
        };
        Ok(ObjectHeader { kind, vault: id, generation, wrapped })
    }
}
