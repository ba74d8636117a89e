//! HPKE (RFC 9180) with X-Wing (X25519 and ML-KEM-768), HKDF-SHA256 and ChaCha20-Poly1305.

use std::convert::Infallible;

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::XWing;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use zeroize::{Zeroize, Zeroizing};

use super::random;
use crate::Error;

/// Bytes of an X-Wing public key.
pub(crate) const PUBLIC_BYTES: usize = 1216;
/// Bytes of an X-Wing encapsulation: 1,088 of ML-KEM-768, 32 of X25519.
pub(crate) const ENCAPSULATED_BYTES: usize = 1120;
/// Bytes that an encapsulation draws.
const COINS: usize = 64;

/// The random bytes of one encapsulation, drawn beforehand so that a failing source of randomness
/// is an error and no panic.
struct EncapsulationCoins {
    bytes: [u8; COINS],
    used: usize,
}

impl TryRng for EncapsulationCoins {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        let drawn = self.bytes.iter().skip(self.used);
        self.used = self.used.saturating_add(out.len());
        out.iter_mut().zip(drawn).for_each(|(target, byte)| *target = *byte);
        Ok(())
    }
}

impl TryCryptoRng for EncapsulationCoins {}

impl Drop for EncapsulationCoins {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

/// Somebody's public key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WrappingKey(<XWing as Kem>::PublicKey);

impl WrappingKey {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<WrappingKey> {
        <XWing as Kem>::PublicKey::from_bytes(bytes).ok().map(WrappingKey)
    }

    pub(crate) fn to_bytes(&self) -> [u8; PUBLIC_BYTES] {
        let mut bytes = [0; PUBLIC_BYTES];
        bytes.iter_mut().zip(self.0.to_bytes()).for_each(|(target, byte)| *target = byte);
        bytes
    }
}

impl std::fmt::Debug for WrappingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WrappingKey(…)")
    }
}

/// The own secret key.
pub(crate) struct WrappingSecret(<XWing as Kem>::PrivateKey);

/// The plaintext, and the key that both sides have agreed on besides.
pub(crate) struct OpenedWrap {
    pub(crate) plaintext: Zeroizing<Vec<u8>>,
    pub(crate) exported: Zeroizing<[u8; 32]>,
}

impl WrappingSecret {
    /// The key of a seed (X-Wing §5.2: 32 bytes are the secret key).
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Result<WrappingSecret, Error> {
        <XWing as Kem>::PrivateKey::from_bytes(seed).map(WrappingSecret).map_err(|_| Error::Cipher)
    }

    pub(crate) fn public(&self) -> WrappingKey {
        WrappingKey(XWing::sk_to_pk(&self.0))
    }

    /// Opens encapsulation ‖ ciphertext ‖ tag; nothing if anything differs.
    pub(crate) fn open(&self, info: &[u8], associated: &[u8], sealed: &[u8]) -> Option<OpenedWrap> {
        let (encapsulated, text) = sealed.split_at_checked(ENCAPSULATED_BYTES)?;
        let encapsulated = <XWing as Kem>::EncappedKey::from_bytes(encapsulated).ok()?;
        let mut context = hpke::setup_receiver::<ChaCha20Poly1305, HkdfSha256, XWing>(
            &OpModeR::Base,
            &self.0,
            &encapsulated,
            info,
        )
        .ok()?;
        let plaintext = Zeroizing::new(context.open(text, associated).ok()?);
        let mut exported = Zeroizing::new([0; 32]);
        context.export(EXPORT_LABEL, &mut *exported).ok()?;
        Some(OpenedWrap { plaintext, exported })
    }
}

/// The label of the key that both sides export, for later re-keys.
const EXPORT_LABEL: &[u8] = b"Sealane 1.0 pairwise wrap key";

/// Encrypts to a public key: encapsulation ‖ ciphertext ‖ tag, and the exported key.
pub(crate) fn wrap(
    to: &WrappingKey,
    info: &[u8],
    associated: &[u8],
    plaintext: &[u8],
) -> Result<(Vec<u8>, Zeroizing<[u8; 32]>), Error> {
    wrap_with(EncapsulationCoins { bytes: random()?, used: 0 }, to, info, associated, plaintext)
}

fn wrap_with(
    mut coins: EncapsulationCoins,
    to: &WrappingKey,
    info: &[u8],
    associated: &[u8],
    plaintext: &[u8],
) -> Result<(Vec<u8>, Zeroizing<[u8; 32]>), Error> {
    let (encapsulated, mut context) = hpke::setup_sender_with_rng::<
        ChaCha20Poly1305,
        HkdfSha256,
        XWing,
    >(&OpModeS::Base, &to.0, info, &mut coins)
    .map_err(|_| Error::Cipher)?;
    let mut sealed = encapsulated.to_bytes().to_vec();
    sealed.extend(context.seal(plaintext, associated).map_err(|_| Error::Cipher)?);
    let mut exported = Zeroizing::new([0; 32]);
    context.export(EXPORT_LABEL, &mut *exported).map_err(|_| Error::Cipher)?;
    Ok((sealed, exported))
}

#[cfg(test)]
mod tests;
