use std::fmt;
use std::str::FromStr;

use sealane_group::PublicKey;
use zeroize::Zeroizing;

use super::{VaultNamingKeys, VaultSecretKey};
use crate::Error;
use crate::format::header::VaultId;
use crate::wire::VaultFieldReader;

const PREFIX: &str = "sealane-vault-writer1";

/// The key of a host that adds to a vault and cannot read it.
///
/// It names contents and seals to the owner; none of it opens anything.
pub struct WriterKey {
    pub(crate) vault: VaultId,
    pub(crate) slot: [u8; 8],
    pub(crate) seed: VaultSecretKey,
    pub(crate) naming: VaultNamingKeys,
    pub(crate) owner_verifying: [u8; 32],
    pub(crate) owner: PublicKey,
}

impl WriterKey {
    /// The one line that stands in the host's key file.
    pub fn expose(&self) -> Zeroizing<String> {
        let naming = &self.naming;
        let parts: [&[u8]; 10] = [
            &self.vault,
            &self.slot,
            self.seed.as_slice(),
            naming.data.as_slice(),
            naming.page.as_slice(),
            naming.list.as_slice(),
            naming.chunker.as_slice(),
            naming.page_cuts.as_slice(),
            &self.owner_verifying,
            &self.owner.to_bytes(),
        ];
        let mut bytes = Zeroizing::new(parts.concat());
        let check = checksum(&bytes);
        bytes.extend_from_slice(&check);
        let text = base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes.as_slice());
        Zeroizing::new(format!("{PREFIX}{text}"))
    }
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = blake3::derive_key("sealane vault v1 writer check", bytes);
    [a, b, c, d]
}

impl FromStr for WriterKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<WriterKey, Error> {
        let malformed = || Error::Malformed { what: "the writer's key" };
        let text = text.trim().strip_prefix(PREFIX).ok_or_else(malformed)?;
        let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text).map_err(|_| malformed())?;
        let bytes = Zeroizing::new(bytes);
        let (body, sum) = bytes.split_last_chunk().ok_or_else(malformed)?;
        if checksum(body) != *sum {
            return Err(malformed());
        }
        let mut reader = VaultFieldReader::new("the writer's key", body);
        let vault = reader.array()?;
        let slot = reader.array()?;
        let mut key = || reader.array().map(Zeroizing::new);
        let seed = key()?;
        let naming = VaultNamingKeys {
            data: key()?,
            page: key()?,
            list: key()?,
            chunker: key()?,
            page_cuts: key()?,
        };
        let owner_verifying = reader.array()?;
        let owner = PublicKey::from_bytes(reader.rest()).map_err(|_| malformed())?;
        Ok(WriterKey { vault, slot, seed, naming, owner_verifying, owner })
    }
}

impl fmt::Debug for WriterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterKey").finish_non_exhaustive()
    }
}
