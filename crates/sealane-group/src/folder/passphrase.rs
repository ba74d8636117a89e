//! A passphrase over the key of a folder or a backup: Argon2id (RFC 9106), ChaCha20-Poly1305.

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::files::{CHECKSUM_BYTES, FolderKey, checksum};
use crate::crypto::{NONCE_BYTES, TAG_BYTES, open_box, random, seal_box};
use crate::limits::{MAX_FOLDER_KDF_LANES, MAX_FOLDER_KDF_MEMORY_KIB, MAX_FOLDER_KDF_PASSES};
use crate::wire::{GroupFieldReader, begin};
use crate::{Error, GroupDocument};

/// Memory in KiB, passes and lanes: 64 MiB, the second choice of RFC 9106 §4.
const COST: [u32; 3] = [64 << 10, 3, 4];
const SALT_BYTES: usize = 16;

/// Derives a key from a passphrase and wraps a folder key with it.
fn protect(passphrase: &[u8], key: &FolderKey) -> Result<Vec<u8>, Error> {
    let salt = random::<SALT_BYTES>()?;
    let mut bytes = salt.to_vec();
    bytes.extend(COST.iter().flat_map(|cost| cost.to_be_bytes()));
    let wrapping = derive(passphrase, &salt, COST)?;
    // The salt makes the wrapping key unique, so that it needs no nonce.
    let wrapped = seal_box(&wrapping, [0; NONCE_BYTES], &bytes, key.as_slice())?;
    bytes.extend(wrapped);
    Ok(bytes)
}

/// Reads what [`protect`] wrote.
fn unprotect(
    document: GroupDocument,
    reader: &mut GroupFieldReader<'_>,
    passphrase: Option<&[u8]>,
) -> Result<FolderKey, Error> {
    let head = reader.bytes(SALT_BYTES + 12)?;
    let mut fields = GroupFieldReader::new(document, head);
    let salt: [u8; SALT_BYTES] = fields.array()?;
    let cost = [fields.u32()?, fields.u32()?, fields.u32()?];
    // A forged file may ask for a cost that stops the machine.
    let most = [MAX_FOLDER_KDF_MEMORY_KIB, MAX_FOLDER_KDF_PASSES, MAX_FOLDER_KDF_LANES];
    if cost.iter().zip(most).any(|(cost, most)| *cost > most) {
        return Err(reader.malformed());
    }
    let wrapped = reader.bytes(32 + TAG_BYTES)?;
    let passphrase = passphrase.ok_or(Error::PassphraseMissing)?;
    let wrapping = derive(passphrase, &salt, cost).map_err(|_| reader.malformed())?;
    let key = open_box(&wrapping, [0; NONCE_BYTES], head, wrapped);
    let key = key.ok_or(Error::PassphraseWrong)?;
    let key: [u8; 32] = key.as_slice().try_into().map_err(|_| Error::PassphraseWrong)?;
    Ok(Zeroizing::new(key))
}

fn derive(
    passphrase: &[u8],
    salt: &[u8],
    [memory, passes, lanes]: [u32; 3],
) -> Result<FolderKey, Error> {
    let params = Params::new(memory, passes, lanes, Some(32)).map_err(|_| Error::Cipher)?;
    let mut key = Zeroizing::new([0; 32]);
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(passphrase, salt, &mut *key).map_err(|_| Error::Cipher)?;
    Ok(key)
}

const CLEAR: u8 = 0;
const PROTECTED: u8 = 1;

/// A document that holds secrets by itself: behind a passphrase, or in clear with a checksum.
/// Gives the key that it made for the passphrase.
pub(crate) fn seal(
    document: GroupDocument,
    passphrase: Option<&[u8]>,
    payload: &[u8],
) -> Result<(Zeroizing<Vec<u8>>, Option<FolderKey>), Error> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(256 + payload.len()));
    bytes.extend(begin(document));
    let Some(passphrase) = passphrase else {
        bytes.push(CLEAR);
        bytes.extend_from_slice(payload);
        let sum = checksum(&bytes);
        bytes.extend(sum);
        return Ok((bytes, None));
    };
    let key = Zeroizing::new(random()?);
    let bytes = seal_with(document, passphrase, &key, payload)?;
    Ok((bytes, Some(key)))
}

/// The same behind a passphrase, under a folder key that is there already.
pub(crate) fn seal_with(
    document: GroupDocument,
    passphrase: &[u8],
    key: &FolderKey,
    payload: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(256 + payload.len()));
    bytes.extend(begin(document));
    bytes.push(PROTECTED);
    bytes.extend(protect(passphrase, key)?);
    let nonce = random::<NONCE_BYTES>()?;
    let sealed = seal_box(key, nonce, &bytes, payload)?;
    bytes.extend(nonce);
    bytes.extend(sealed);
    Ok(bytes)
}

/// Whether [`open`] needs a passphrase.
pub(crate) fn is_protected(document: GroupDocument, bytes: &[u8]) -> Result<bool, Error> {
    Ok(GroupFieldReader::open(document, bytes)?.u8()? == PROTECTED)
}

/// Opens what [`seal`] made.
pub(crate) fn open(
    document: GroupDocument,
    bytes: &[u8],
    passphrase: Option<&[u8]>,
) -> Result<(Zeroizing<Vec<u8>>, Option<FolderKey>), Error> {
    let mut reader = GroupFieldReader::open(document, bytes)?;
    let malformed = || Error::Malformed(document);
    match reader.u8()? {
        CLEAR => {
            let (all, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(malformed)?;
            let payload = reader.rest();
            let payload = payload.get(..payload.len().saturating_sub(CHECKSUM_BYTES));
            let is_whole = checksum(all) == *sum;
            let payload = payload.filter(|_| is_whole).ok_or_else(malformed)?;
            Ok((Zeroizing::new(payload.to_vec()), None))
        }
        PROTECTED => {
            let key = unprotect(document, &mut reader, passphrase)?;
            let head = bytes.get(..bytes.len() - reader.left()).ok_or_else(malformed)?;
            let nonce = reader.array()?;
            let opened = open_box(&key, nonce, head, reader.rest());
            Ok((opened.ok_or(Error::PassphraseWrong)?, Some(key)))
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests;
