//! Where contents are cut.

use fastcdc::v2020::cut_gear;

use crate::format::config::CHUNK_SIZES;
use crate::keys::VaultSecretKey;

/// Of normalisation level 1 around 1 MiB: 21 bits before the average size, 19 behind it.
const BEFORE: u64 = 0x0000_d917_6753_7000;
const BEHIND: u64 = 0x0000_d917_0753_7000;

/// Cuts by content, under a keyed table.
pub(crate) struct Chunker {
    gear: Vec<u64>,
    gear_shifted: Vec<u64>,
}

impl Chunker {
    pub(crate) fn new(key: &VaultSecretKey) -> Chunker {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(b"gear");
        let mut bytes = [0; 2048];
        hasher.finalize_xof().fill(&mut bytes);
        let numbers = bytes.as_chunks::<8>().0.iter();
        let gear: Vec<u64> = numbers.map(|number| u64::from_le_bytes(*number)).collect();
        let gear_shifted = gear.iter().map(|number| number << 1).collect();
        Chunker { gear, gear_shifted }
    }

    /// The length of the first chunk of `data`, which is all that is left or at least as long as
    /// the greatest chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let [least, average, greatest] = CHUNK_SIZES.map(|size| size as usize);
        if data.len() < least {
            return data.len();
        }
        let (_, cut) = cut_gear(
            data,
            least,
            average,
            greatest,
            BEFORE,
            BEHIND,
            BEFORE << 1,
            BEHIND << 1,
            &self.gear,
            &self.gear_shifted,
        );
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(chunker: &Chunker, mut data: &[u8]) -> Vec<usize> {
        let mut cuts = Vec::new();
        while !data.is_empty() {
            let (_, rest) = data.split_at(chunker.cut(data));
            cuts.push(data.len() - rest.len());
            data = rest;
        }
        cuts
    }

    #[test]
    fn cuts_depend_on_content_and_key() {
        let mut data = vec![0; 24 << 20];
        blake3::Hasher::new().finalize_xof().fill(&mut data);
        let chunker = Chunker::new(&VaultSecretKey::new([1; 32]));
        let whole = cuts(&chunker, &data);
        assert!(whole[..whole.len() - 1].iter().all(|cut| (256 << 10..=4 << 20).contains(cut)));
        let moved = cuts(&chunker, &data[1..]);
        let same = whole.iter().filter(|cut| moved.contains(cut)).count();
        assert!(same + 3 >= whole.len(), "{whole:?} {moved:?}");
        assert_ne!(whole, cuts(&Chunker::new(&VaultSecretKey::new([2; 32])), &data));
    }
}
