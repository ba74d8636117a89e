//! The values that are derived from secrets: keys and salts of SFrame, and the next epoch's secret.

use aws_lc_rs::hkdf::{HKDF_SHA512, KeyType, Salt};
use zeroize::Zeroizing;

use crate::aead::{KEY_BYTES, Key, SALT_BYTES};
use crate::header::{Form, KeyId};
use crate::{Epoch, Error, GroupId, SenderContext, Suite};

/// Bytes of an epoch secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// The key and salt of a key id under an epoch secret, for one start of a sender: RFC 9605 §4.4.2
/// under a base key of that start's own.
pub(crate) fn key(
    suite: Suite,
    secret: &[u8; SECRET_BYTES],
    context: SenderContext,
    id: KeyId,
) -> Result<Key, Error> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let salt = of_context(suite, secret, context, id, &mut key)?;
    Key::new(suite, &key, salt)
}

/// Fills in the key of a context and gives the salt.
fn of_context(
    suite: Suite,
    secret: &[u8; SECRET_BYTES],
    context: SenderContext,
    id: KeyId,
    key: &mut [u8; KEY_BYTES],
) -> Result<[u8; SALT_BYTES], Error> {
    let mut base = Zeroizing::new([0; SECRET_BYTES]);
    expand(b"", secret, &[b"Sealane 1.0 sender context ", &context.0], base.as_mut_slice())?;
    schedule(suite, base.as_slice(), id, key)
}

/// Fills in the key of a base key and gives the salt.
fn schedule(
    suite: Suite,
    secret: &[u8],
    id: KeyId,
    key: &mut [u8; KEY_BYTES],
) -> Result<[u8; SALT_BYTES], Error> {
    let id = u64::from(id.value(Form::Full)).to_be_bytes();
    let number = suite.number().to_be_bytes();
    let mut salt = [0; SALT_BYTES];
    expand(b"", secret, &[b"SFrame 1.0 Secret key ", &id, &number], key)?;
    expand(b"", secret, &[b"SFrame 1.0 Secret salt ", &id, &number], &mut salt)?;
    Ok(salt)
}

/// The secret of `next` from the secret of the epoch before it.
pub(crate) fn step(
    group: GroupId,
    secret: &[u8; SECRET_BYTES],
    next: Epoch,
    out: &mut [u8; SECRET_BYTES],
) -> Result<(), Error> {
    expand(&group.0, secret, &[b"Sealane 1.0 next epoch ", &next.0.to_be_bytes()], out)
}

/// HKDF-SHA512 (RFC 5869): extract with `salt`, expand with `info` to the length of `out`.
pub(crate) fn expand(
    salt: &[u8],
    secret: &[u8],
    info: &[&[u8]],
    out: &mut [u8],
) -> Result<(), Error> {
    let prk = Salt::new(HKDF_SHA512, salt).extract(secret);
    let okm = prk.expand(info, KdfLength(out.len())).map_err(|_| Error::Cipher)?;
    okm.fill(out).map_err(|_| Error::Cipher)
}

#[derive(Clone, Copy)]
struct KdfLength(usize);

impl KeyType for KdfLength {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests;
