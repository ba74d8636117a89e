use std::fmt;
use std::str::FromStr;

use sealane_seal::SigningKey;
use zeroize::{Zeroize, Zeroizing};

use crate::crypto::{AuthoritySigner, MemberSigner, WrappingKey, WrappingSecret, random, wrap};
use crate::limits::WRAPPING_KEY_BYTES;
use crate::wire::{GroupFieldReader, begin, is_name};
use crate::{Error, GroupDocument};

const CURVE: &str = "Sealane 1.0 identity Ed25519";
const WRAPPING: &str = "Sealane 1.0 identity X-Wing";
const LATTICE: &str = "Sealane 1.0 identity ML-DSA-65";
const LETTER_INFO: &[u8] = b"Sealane 1.0 letter ";

/// Somebody's secret keys: Ed25519 and ML-DSA-65 to sign, X-Wing (X25519 with ML-KEM-768) to be
/// written to. All derive from one seed of 32 bytes, which is erased when this is dropped.
///
/// Its text form names the public key only.
pub struct Identity {
    name: String,
    seed: Zeroizing<[u8; 32]>,
    wrapping: WrappingSecret,
    public: PublicKey,
}

impl Identity {
    /// Makes new keys.
    ///
    /// # Errors
    ///
    /// [`Error::Name`] for a name that is none; [`Error::Cipher`] without randomness.
    pub fn generate(name: &str) -> Result<Identity, Error> {
        Identity::from_seed(name, Zeroizing::new(random()?))
    }

    /// The keys of a seed.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::Cipher`].
    pub fn from_seed(name: &str, seed: Zeroizing<[u8; 32]>) -> Result<Identity, Error> {
        if !is_name(name) {
            return Err(Error::Name(name.to_owned()));
        }
        let wrapping = WrappingSecret::from_seed(&derive(WRAPPING, &seed))?;
        let verifying = MemberSigner::from_seed(&derive(CURVE, &seed))?.verifying_key();
        let public = PublicKey { verifying, wrapping: wrapping.public() };
        Ok(Identity { name: name.to_owned(), seed, wrapping, public })
    }

    /// The name on its cards.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys that others need to write to it and to check its signatures.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The seed that everything derives from, for a backup. A holder of the seed is this identity.
    pub fn expose_seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Opens what [`seal_to`] encrypted to [`Identity::public`] under the same `info`.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for bytes that are no such thing, [`Error::NotForUs`] if it was made
    /// for another identity or another `info`, or changed.
    pub fn open(&self, info: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let sealed = GroupFieldReader::open(GroupDocument::Letter, sealed)?.rest();
        let opened = self.wrapping.open(&[LETTER_INFO, info].concat(), &[], sealed);
        opened.map(|opened| opened.plaintext).ok_or(Error::NotForUs(GroupDocument::Letter))
    }

    /// The key of class S.
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses.
    pub fn signing_key(&self) -> Result<SigningKey, Error> {
        Ok(SigningKey::from_seed(&derive(CURVE, &self.seed))?)
    }

    /// The keys that certify members.
    pub(crate) fn authority(&self) -> Result<AuthoritySigner, Error> {
        AuthoritySigner::from_seeds(&derive(CURVE, &self.seed), &derive(LATTICE, &self.seed))
    }

    pub(crate) fn signer(&self) -> Result<MemberSigner, Error> {
        MemberSigner::from_seed(&derive(CURVE, &self.seed))
    }
}

fn derive(context: &str, seed: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(context, seed))
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Identity");
        out.field("name", &self.name).field("public", &self.public.fingerprint());
        out.finish_non_exhaustive()
    }
}

/// Somebody's public keys: Ed25519 and X-Wing.
///
/// Its text form is one line, `sealane1` and base64url of the keys with a checksum; [`FromStr`]
/// reads it back.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    verifying: [u8; 32],
    wrapping: WrappingKey,
}

const TEXT_PREFIX: &str = "sealane1";
const CHECKSUM_BYTES: usize = 4;

impl PublicKey {
    /// Bytes of a public key: 32 of Ed25519, 1,216 of X-Wing.
    pub const BYTES: usize = 32 + WRAPPING_KEY_BYTES;

    /// Ed25519, then X-Wing.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.verifying.as_slice(), &self.wrapping.to_bytes()].concat()
    }

    /// Reads the two keys.
    ///
    /// # Errors
    ///
    /// [`Error::KeyText`] for a wrong length or an X-Wing key that is none (FIPS 203 §7.2).
    pub fn from_bytes(bytes: &[u8]) -> Result<PublicKey, Error> {
        let (verifying, wrapping) = bytes.split_first_chunk().ok_or(Error::KeyText)?;
        let wrapping = WrappingKey::from_bytes(wrapping).ok_or(Error::KeyText)?;
        Ok(PublicKey { verifying: *verifying, wrapping })
    }

    /// The key that verifies class S of this identity.
    pub fn verifying_key(&self) -> &[u8; 32] {
        &self.verifying
    }

    /// A hash of both keys that people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of("Sealane 1.0 fingerprint of an identity", &[&self.to_bytes()])
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.to_bytes();
        bytes.extend(checksum(&bytes));
        write!(f, "{TEXT_PREFIX}{}", base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<PublicKey, Error> {
        let text = text.trim().strip_prefix(TEXT_PREFIX).ok_or(Error::KeyText)?;
        let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text);
        let bytes = bytes.map_err(|_| Error::KeyText)?;
        let (key, sum) = bytes.split_last_chunk().ok_or(Error::KeyText)?;
        if checksum(key) != *sum {
            return Err(Error::KeyText);
        }
        PublicKey::from_bytes(key)
    }
}

fn checksum(key: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let [a, b, c, d, ..] = blake3::derive_key("Sealane 1.0 checksum of a public key", key);
    [a, b, c, d]
}

/// 16 bytes of a hash, which people compare: four letters and digits at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    pub(crate) fn of(context: &str, parts: &[&[u8]]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        Fingerprint(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.as_chunks::<2>().0;
        pairs.iter().enumerate().try_for_each(|(at, [a, b])| {
            let gap = if at == 0 { "" } else { "-" };
            write!(f, "{gap}{a:02x}{b:02x}")
        })
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    /// Reads 32 hexadecimal digits; hyphens, colons and blanks between them are skipped.
    fn from_str(text: &str) -> Result<Fingerprint, Error> {
        let is_gap = |c: &char| !matches!(c, '-' | ':' | ' ');
        let digits: Option<Vec<u8>> =
            text.trim().chars().filter(is_gap).map(|c| Some(c.to_digit(16)? as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 32).ok_or(Error::KeyText)?;
        let mut bytes = [0; 16];
        let pairs = digits.as_chunks::<2>().0;
        bytes.iter_mut().zip(pairs).for_each(|(byte, [high, low])| *byte = high << 4 | low);
        Ok(Fingerprint(bytes))
    }
}

/// Encrypts to an identity with HPKE (RFC 9180, base mode; X-Wing, HKDF-SHA256,
/// ChaCha20-Poly1305): 1,141 bytes more than the plaintext. `info` says what for, and whoever opens
/// must say the same.
///
/// # Errors
///
/// [`Error::Cipher`] without randomness.
pub fn seal_to(to: &PublicKey, info: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut sealed, mut exported) =
        wrap(&to.wrapping, &[LETTER_INFO, info].concat(), &[], plaintext)?;
    exported.zeroize();
    let mut letter = begin(GroupDocument::Letter);
    letter.append(&mut sealed);
    Ok(letter)
}

#[cfg(test)]
mod tests;
