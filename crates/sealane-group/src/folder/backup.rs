//! A backup: the identity and the groups that keep their history.

use std::path::Path;

use zeroize::Zeroizing;

use super::{KeyFolder, passphrase, read_identity};
use crate::limits::MAX_GROUP_FILE_BYTES;
use crate::state::GroupState;
use crate::wire::{GroupFieldReader, put_name, put_part};
use crate::{Error, GroupDocument};

impl KeyFolder {
    /// Everything that must not be lost, as one document: the identity, and what groups that keep
    /// their history hold. Secrets of forward-secret groups stay out of it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn backup(&self, passphrase: Option<&[u8]>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let lock = self.keys.lock()?;
        let groups = self.keys.kept_groups(&lock)?;
        let states: Vec<_> = groups.iter().map(|(name, state)| (name, state.to_bytes())).collect();
        let len: usize = states.iter().map(|(_, state)| state.len() + 128).sum();
        let mut payload = Zeroizing::new(Vec::with_capacity(256 + len));
        let mut identity = Zeroizing::new(self.identity().expose_seed().to_vec());
        put_name(&mut identity, self.identity().name());
        put_part(&mut payload, &identity);
        payload.extend((states.len() as u16).to_be_bytes());
        for (name, state) in states {
            put_name(&mut payload, name);
            put_part(&mut payload, &state);
        }
        Ok(passphrase::seal(GroupDocument::Backup, passphrase, &payload)?.0)
    }

    /// Whether [`KeyFolder::restore`] needs a passphrase.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], [`Error::NewerVersion`].
    pub fn is_protected_backup(bytes: &[u8]) -> Result<bool, Error> {
        passphrase::is_protected(GroupDocument::Backup, bytes)
    }

    /// Makes a folder of a backup, under the backup's passphrase. Its groups read their history;
    /// to send, each needs a new slot, since nobody knows which counters were used meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::IdentityExists`], [`Error::Malformed`], [`Error::PassphraseMissing`],
    /// [`Error::PassphraseWrong`], [`Error::Io`].
    pub fn restore(
        root: &Path,
        bytes: &[u8],
        passphrase: Option<&[u8]>,
    ) -> Result<KeyFolder, Error> {
        let (payload, _) = passphrase::open(GroupDocument::Backup, bytes, passphrase)?;
        let malformed = |_| Error::Malformed(GroupDocument::Backup);
        let mut reader = GroupFieldReader::new(GroupDocument::Backup, &payload);
        let identity = read_identity(reader.part()?).map_err(malformed)?;
        let count = reader.count(usize::from(u16::MAX), 6)?;
        let mut groups = Vec::with_capacity(count);
        for _ in 0..count {
            let name = reader.name()?;
            super::check_group_name(&name).map_err(malformed)?;
            let state = reader.part()?;
            if state.len() > MAX_GROUP_FILE_BYTES {
                return Err(Error::Malformed(GroupDocument::Backup));
            }
            groups.push((name, GroupState::from_bytes(state).map_err(malformed)?));
        }
        reader.end()?;
        let folder = KeyFolder::with(root, identity, passphrase)?;
        let lock = folder.keys.lock()?;
        for (name, mut state) in groups {
            state.is_copied = true;
            folder.keys.make_group(&lock, &name)?;
            folder.keys.save(&lock, &name, &state)?;
        }
        Ok(folder)
    }
}
