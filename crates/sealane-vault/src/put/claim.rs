use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::IdHash;
use crate::format::chunk::ChunkId;

/// Which chunks need not be sealed.
///
/// Within a run, the first occurrence in the reader's order is the one that is written, so that the
/// packs do not depend on which thread was faster: a chunk is left out only for one before it.
pub(crate) struct ChunkClaims {
    kept: HashSet<ChunkId, IdHash>,
    claimed: Mutex<HashMap<ChunkId, u64, IdHash>>,
}

impl ChunkClaims {
    pub(crate) fn new(kept: HashSet<ChunkId, IdHash>) -> ChunkClaims {
        ChunkClaims { kept, claimed: Mutex::default() }
    }

    /// Whether the vault had it before this run.
    pub(crate) fn is_kept(&self, id: &ChunkId) -> bool {
        self.kept.contains(id)
    }

    /// Whether job `number` must seal this chunk.
    pub(super) fn claim(&self, id: &ChunkId, number: u64) -> bool {
        if self.is_kept(id) {
            return false;
        }
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        match claimed.get_mut(id) {
            Some(first) if *first <= number => false,
            Some(first) => {
                *first = number;
                true
            }
            None => {
                claimed.insert(*id, number);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_order_is_sealed_whoever_comes_first() {
        let id = ChunkId([3; 24]);
        let claims = ChunkClaims::new(HashSet::default());
        assert!(claims.claim(&id, 5));
        assert!(!claims.claim(&id, 5));
        assert!(!claims.claim(&id, 7));
        assert!(claims.claim(&id, 2));
        assert!(!claims.claim(&id, 5));
        let kept = ChunkClaims::new(HashSet::from_iter([id]));
        assert!(!kept.claim(&id, 0));
    }
}
