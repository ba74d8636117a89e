//! Files of secrets: written whole or not at all, for their owner only, and bound to the very
//! place that they were written at.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sealane_message::hex::encode as hex;
use zeroize::Zeroizing;

use crate::crypto::{NONCE_BYTES, open_box, random, seal_box};
use crate::limits::MAX_GROUP_FILE_BYTES;
use crate::wire::{GroupFieldReader, begin};
use crate::{Error, GroupDocument};

const CLEAR: u8 = 0;
const SEALED: u8 = 1;
pub(crate) const CHECKSUM_BYTES: usize = 16;

/// A folder's key, if a passphrase protects it.
pub(crate) type FolderKey = Zeroizing<[u8; 32]>;

/// The treatment of a file of that name that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileWriteMode {
    /// It is replaced.
    Replace,
    /// It stays, and the call fails with [`ErrorKind::AlreadyExists`].
    Create,
}

/// The content of a file.
pub(crate) struct KeyFileContent {
    pub(crate) payload: Zeroizing<Vec<u8>>,
    /// Whether it is the file that was written here: no copy, and none that a backup brought back.
    pub(crate) is_here: bool,
}

/// Writes a file by way of another: the temporary file is made first, so that its witness can
/// stand within it.
pub(crate) fn write(
    path: &Path,
    document: GroupDocument,
    key: Option<&FolderKey>,
    payload: &[u8],
    how: FileWriteMode,
) -> Result<(), Error> {
    write_with(path, how, |file, temporary| {
        let written_at = witness(file, temporary)?;
        contents(document, key, &written_at, payload)
    })
}

/// Writes bytes as they are, for files that a copy of may be read.
pub(crate) fn write_raw(path: &Path, bytes: &[u8], how: FileWriteMode) -> Result<(), Error> {
    write_with(path, how, |_, _| Ok(Zeroizing::new(bytes.to_vec())))
}

fn write_with(
    path: &Path,
    how: FileWriteMode,
    contents: impl FnOnce(&File, &Path) -> Result<Zeroizing<Vec<u8>>, Error>,
) -> Result<(), Error> {
    let (temporary, mut file) = create_beside(path)?;
    let outcome = contents(&file, &temporary).and_then(|bytes| {
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(Error::io(&temporary))?;
        rename_into(&temporary, path, how)
    });
    if outcome.is_err() || how == FileWriteMode::Create {
        let _ = fs::remove_file(&temporary);
    }
    outcome.and_then(|()| sync_folder(path))
}

fn create_beside(path: &Path) -> Result<(PathBuf, File), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = folder.join(format!(".new-{}", hex(&random::<8>()?)));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let file = file.map_err(Error::io(&temporary))?;
    Ok((temporary, file))
}

fn contents(
    document: GroupDocument,
    key: Option<&FolderKey>,
    written_at: &[u8; 32],
    payload: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let room = HEAD_BYTES + NONCE_BYTES + payload.len() + CHECKSUM_BYTES;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    bytes.extend(begin(document));
    bytes.push(if key.is_some() { SEALED } else { CLEAR });
    bytes.extend(written_at);
    match key {
        Some(key) => {
            let nonce = random::<NONCE_BYTES>()?;
            let sealed = seal_box(key, nonce, &bytes, payload)?;
            bytes.extend(nonce);
            bytes.extend(sealed);
        }
        None => {
            bytes.extend_from_slice(payload);
            let sum = checksum(&bytes);
            bytes.extend(sum);
        }
    }
    debug_assert!(bytes.len() <= room, "growth leaves copies of secrets behind");
    if bytes.len() > MAX_GROUP_FILE_BYTES {
        return Err(Error::Refused("the group is too large for its file: forget old epochs"));
    }
    Ok(bytes)
}

fn rename_into(temporary: &Path, path: &Path, how: FileWriteMode) -> Result<(), Error> {
    let renamed = match how {
        FileWriteMode::Replace => fs::rename(temporary, path),
        FileWriteMode::Create => fs::hard_link(temporary, path),
    };
    renamed.map_err(Error::io(path))
}

pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))
}

/// Reads a file; none if there is none.
pub(crate) fn read(
    path: &Path,
    document: GroupDocument,
    key: Option<&FolderKey>,
) -> Result<Option<KeyFileContent>, Error> {
    let Some((bytes, file)) = read_private(path)? else { return Ok(None) };
    let damaged = || Error::Damaged(path.to_owned());
    let named = |error| match error {
        Error::Malformed(_) => damaged(),
        other => other,
    };
    let mut reader = GroupFieldReader::open(document, &bytes).map_err(named)?;
    let flags = reader.u8().map_err(named)?;
    let written_at: [u8; 32] = reader.array().map_err(named)?;
    let (head, body) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
    let payload = match (flags, key) {
        (SEALED, Some(key)) => {
            let (nonce, sealed) = body.split_first_chunk().ok_or_else(damaged)?;
            open_box(key, *nonce, head, sealed).ok_or_else(damaged)?
        }
        (SEALED, None) => return Err(Error::PassphraseMissing),
        // A file in clear within a protected folder was not written by us.
        (CLEAR, None) => {
            let (all, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(damaged)?;
            if checksum(all) != *sum {
                return Err(damaged());
            }
            Zeroizing::new(all.get(HEAD_BYTES..).ok_or_else(damaged)?.to_vec())
        }
        _ => return Err(damaged()),
    };
    let is_here = witness(&file, path)? == written_at;
    Ok(Some(KeyFileContent { payload, is_here }))
}

const HEAD_BYTES: usize = 4 + 1 + 1 + 32;

/// A file's bytes, and the file itself, still open.
type PrivateFile = (Zeroizing<Vec<u8>>, File);

/// Reads a file that only its owner may read.
pub(crate) fn read_private(path: &Path) -> Result<Option<PrivateFile>, Error> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    let about = file.metadata().map_err(Error::io(path))?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(Error::Exposed(path.to_owned()));
    }
    if about.len() > MAX_GROUP_FILE_BYTES as u64 || !about.is_file() {
        return Err(Error::Damaged(path.to_owned()));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(about.len() as usize + 1));
    let mut bounded = (&mut file).take(MAX_GROUP_FILE_BYTES as u64);
    bounded.read_to_end(&mut bytes).map_err(Error::io(path))?;
    Ok(Some((bytes, file)))
}

pub(crate) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut sum);
    sum
}

/// The witness of a file. It tells the file from every copy of it, and from every file that stood
/// here before or after. It consists of the machine, the inode and the moment the file was made,
/// which no copy brings along.
fn witness(file: &File, path: &Path) -> Result<[u8; 32], Error> {
    let about = file.metadata().map_err(Error::io(path))?;
    let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.ok_or_else(|| Error::NoWitness(path.to_owned()))?;
    let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 witness");
    hasher.update(&machine());
    hasher.update(&about.ino().to_be_bytes());
    hasher.update(&made.as_nanos().to_be_bytes());
    Ok(*hasher.finalize().as_bytes())
}

/// The ids that tell this machine from others, if there are any. Its name is not one of them: a
/// container has another name each time that it is deployed.
fn machine() -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 machine");
    let read = |path: &&str| fs::read(path).ok().filter(|id| !id.is_empty());
    let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(read);
    hasher.update(&id.unwrap_or_default());
    *hasher.finalize().as_bytes()
}
