//! A passphrase for a folder that has none yet.
//!
//! The protected identity is written first, under a name of its own. From then on the folder opens
//! by the passphrase alone, and whoever opens it encrypts the files that are still in clear. In the
//! end the protected identity takes the place of the one in clear. So a cut at any point leaves a
//! folder that opens.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::files::{self, FileWriteMode, FolderKey};
use super::{IdentityKeys, KeyFolderLock, identity_payload, passphrase};
use crate::state::GroupState;
use crate::{Error, GroupDocument};

/// Where the protected identity of a folder waits until all its files are encrypted.
pub(super) fn pending(root: &Path) -> PathBuf {
    root.join("identity.protected")
}

/// Encrypts all secrets of a folder in clear under a new key, and the key under a passphrase.
pub(super) fn protect(keys: &IdentityKeys, phrase: &[u8]) -> Result<(), Error> {
    let lock = keys.lock()?;
    // A group that cannot be read would stop it halfway.
    for name in keys.groups()? {
        keys.load(&lock, &name)?;
    }
    keys.cards(&lock)?;
    let payload = identity_payload(&keys.identity);
    let (bytes, key) = passphrase::seal(GroupDocument::IdentityFile, Some(phrase), &payload)?;
    files::write_raw(&pending(&keys.root), &bytes, FileWriteMode::Replace)?;
    finish(keys, &lock, &key.ok_or(Error::Cipher)?)
}

/// Goes on where [`protect`] was cut off: `payload` is the protected identity's.
pub(super) fn go_on(keys: &IdentityKeys, payload: &[u8]) -> Result<(), Error> {
    let lock = keys.lock()?;
    let path = pending(&keys.root);
    if !path.exists() {
        // Another process has finished it meanwhile.
        return Ok(());
    }
    // Somebody else can bring neither: a copy of the protected identity beside a true one of the
    // same seed in clear is what a cut leaves, and nothing else.
    let clear = files::read_private(&keys.root.join("identity"))?;
    let clear = clear.and_then(|(bytes, _)| {
        let opened = passphrase::open(GroupDocument::IdentityFile, &bytes, None);
        opened.ok().map(|(payload, _)| payload)
    });
    if clear.is_none_or(|clear| clear.as_slice() != payload) {
        return Err(Error::Damaged(path));
    }
    finish(keys, &lock, keys.key.as_ref().ok_or(Error::PassphraseMissing)?)
}

fn finish(keys: &IdentityKeys, lock: &KeyFolderLock, key: &FolderKey) -> Result<(), Error> {
    let cards = keys.root.join("cards");
    encrypt(&cards, GroupDocument::CardsFile, key, |kept, is_here| {
        // Cards that were made elsewhere are good for nothing, and stay so.
        Ok(if is_here { kept } else { Zeroizing::new(Vec::new()) })
    })?;
    for name in keys.groups()? {
        let group = keys.group_folder(&name)?.join("group");
        encrypt(&group, GroupDocument::GroupFile, key, |kept, is_here| {
            let mut state = GroupState::from_bytes(&kept)?;
            state.is_copied |= !is_here;
            Ok(state.to_bytes())
        })?;
    }
    keys.take_pending(lock)
}

/// Writes a file in clear anew, under the key. One that is encrypted already stays.
fn encrypt(
    path: &Path,
    document: GroupDocument,
    key: &FolderKey,
    change: impl FnOnce(Zeroizing<Vec<u8>>, bool) -> Result<Zeroizing<Vec<u8>>, Error>,
) -> Result<(), Error> {
    match files::read(path, document, None) {
        Ok(Some(kept)) => {
            let payload = change(kept.payload, kept.is_here)?;
            files::write(path, document, Some(key), &payload, FileWriteMode::Replace)
        }
        Ok(None) | Err(Error::PassphraseMissing) => Ok(()),
        Err(error) => Err(error),
    }
}

impl IdentityKeys {
    /// Puts the protected identity in the place of the one in clear.
    fn take_pending(&self, _: &KeyFolderLock) -> Result<(), Error> {
        let (from, to) = (pending(&self.root), self.root.join("identity"));
        std::fs::rename(&from, &to).map_err(Error::io(&to))?;
        files::sync_folder(&to)
    }
}
