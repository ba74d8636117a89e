//! The bounds of this step, which stand in the one table of `sealane-message`, and the sizes that
//! its formats fix.

pub use sealane_message::limits::{
    MAX_CARDS_WAITING, MAX_GROUP_FILE_BYTES, MAX_NAME_BYTES, MAX_ORDER_WRAPS, MAX_ROSTER_MEMBERS,
};

/// Bytes of an ML-DSA-65 public key (FIPS 204).
pub const LATTICE_KEY_BYTES: usize = 1952;
/// Bytes of an ML-DSA-65 signature (FIPS 204).
pub const LATTICE_SIGNATURE_BYTES: usize = 3309;
/// Bytes of an authority's two signatures: Ed25519, then ML-DSA-65.
pub const AUTHORITY_SIGNATURE_BYTES: usize = 64 + LATTICE_SIGNATURE_BYTES;
/// Bytes of an X-Wing public key: 1,184 of ML-KEM-768, 32 of X25519.
pub const WRAPPING_KEY_BYTES: usize = 1216;
