//! Where each chunk that is needed is to be kept from now on, and what becomes of each pack.

use std::collections::{HashMap, HashSet};

use super::live::LiveChunks;
use crate::Error;
use crate::format::chunk::ChunkId;
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::get::ChunkReader;
use crate::put::{IdHash, SkippedItem};
use crate::vault::Vault;

/// Packs smaller than this are put together when there are many of them.
const SMALL_BYTES: u64 = 8 << 20;
/// How many are many.
const SMALL_PACKS: usize = 16;

/// The work of a prune, pack by pack.
#[derive(Default)]
pub(super) struct PrunePlan {
    /// Where each chunk that is needed is to be read from.
    pub(super) homes: HashMap<ChunkId, ObjectHash, IdHash>,
    /// Packs from which nothing is needed.
    pub(super) needless: HashSet<ObjectHash>,
    /// Packs of which only a part is needed, or that are small and many.
    pub(super) repack: HashSet<ObjectHash>,
    /// Packs of which something is needed that cannot be read: they stay as they are.
    pub(super) stuck: HashSet<ObjectHash>,
}

/// The outcome of writing chunks anew.
pub(super) struct RewrittenPacks {
    pub(super) written: HashSet<ObjectHash>,
    /// Packs of which something is needed that could not be read.
    pub(super) unreadable: HashSet<ObjectHash>,
}

/// The condemned packs, and when they go.
pub(super) struct PackMarks {
    /// Since when each is condemned, in nanoseconds since 1970.
    pub(super) since: HashMap<ObjectHash, i64>,
    /// How long a pack is condemned before it goes, in nanoseconds; 0 removes it at once.
    pub(super) grace: i64,
    pub(super) now: i64,
}

impl PackMarks {
    pub(super) fn has(&self, pack: &ObjectHash) -> bool {
        self.since.contains_key(pack)
    }

    /// Whether a pack that nothing needs goes now. If it is not condemned yet, that is so only
    /// where removal at once was asked for.
    pub(super) fn is_due(&self, pack: &ObjectHash) -> bool {
        let waited = self.since.get(pack).map(|since| self.now.saturating_sub(*since));
        self.grace == 0 || waited.is_some_and(|waited| waited >= self.grace)
    }
}

/// The packs of one pass over those that claim a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanPass {
    /// Places of which nothing bad is known.
    Likely,
    /// Places where the chunk did not open before. It may open now.
    Bad,
}

impl Vault {
    /// Decides where each chunk that is needed is to be kept from now on.
    ///
    /// A writer can claim to have any chunk, and a copy may be damaged that this machine has never
    /// read. So where several packs claim a chunk, its home is the first in which it opens. If it
    /// opens in none, all of them stay.
    pub(super) fn plan(
        &self,
        packs: &[PackRecord],
        live: &LiveChunks,
        marks: &PackMarks,
    ) -> Result<PrunePlan, Error> {
        let mut sorted: Vec<&PackRecord> = packs.iter().collect();
        let own = self.manifest().own_packs()?;
        sorted.sort_by_key(|pack| (marks.has(&pack.hash), !own.contains(&pack.hash)));
        let needed = |pack: &&PackRecord| {
            let ids = pack.chunks.iter().map(|head| head.id);
            ids.filter(|id| live.ids.contains(id)).collect::<Vec<ChunkId>>()
        };
        // A pack that is condemned and not due goes nowhere yet. The prune that is to remove it
        // opens the other copy, so that this one need not.
        let contends = |pack: &&&PackRecord| !marks.has(&pack.hash) || marks.is_due(&pack.hash);
        let mut claims: HashMap<ChunkId, u32, IdHash> = HashMap::default();
        for id in sorted.iter().filter(contends).flat_map(needed) {
            *claims.entry(id).or_default() += 1;
        }
        let bad = self.manifest().bad_places()?;
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let mut homes: HashMap<ChunkId, ObjectHash, IdHash> = HashMap::default();
        // Chunks are opened in the order of their packs, so that a pack is read from front to back.
        for pass in [PlanPass::Likely, PlanPass::Bad] {
            for pack in sorted.iter().filter(|_| pass == PlanPass::Likely || !bad.is_empty()) {
                for id in needed(pack) {
                    let is_bad = bad.contains(&(id, pack.hash));
                    if homes.contains_key(&id) || is_bad != (pass == PlanPass::Bad) {
                        continue;
                    }
                    let is_alone = claims.get(&id).is_none_or(|claims| *claims == 1);
                    if is_alone || chunks.opens_in(&id, &pack.hash)? {
                        homes.insert(id, pack.hash);
                    }
                }
            }
        }
        let mut stuck = HashSet::new();
        for pack in &sorted {
            if let Some(id) = needed(pack).iter().find(|id| !homes.contains_key(*id)) {
                self.warn_of_stuck(&pack.hash, id);
                stuck.insert(pack.hash);
            }
        }
        Ok(PrunePlan::new(packs, homes, stuck, self.generation()))
    }

    /// Names a pack that stays for a chunk that cannot be read.
    pub(super) fn warn_of_stuck(&self, pack: &ObjectHash, id: &ChunkId) {
        let error = Error::NotAuthentic { what: format!("chunk {id}") };
        let reason = format!("it stays, since it may be whole again: {}", error.named());
        self.warn([SkippedItem { path: pack_key(pack), reason }]);
    }
}

impl PrunePlan {
    fn new(
        packs: &[PackRecord],
        homes: HashMap<ChunkId, ObjectHash, IdHash>,
        stuck: HashSet<ObjectHash>,
        generation: u8,
    ) -> PrunePlan {
        let mut plan = PrunePlan { homes, stuck, ..PrunePlan::default() };
        let mut small = Vec::new();
        for pack in packs.iter().filter(|pack| !plan.stuck.contains(&pack.hash)) {
            let sealed = |needed: bool| -> u64 {
                let at_home = |id: &ChunkId| plan.homes.get(id) == Some(&pack.hash);
                let heads = pack.chunks.iter().filter(|head| !needed || at_home(&head.id));
                heads.map(|head| u64::from(head.sealed_bytes)).sum()
            };
            match (sealed(true), sealed(false)) {
                (0, _) => {
                    plan.needless.insert(pack.hash);
                }
                // A holder of an earlier main key reads every pack that it sealed. So the prune
                // repacks it.
                (needed, all) if needed * 2 < all || pack.generation() < generation => {
                    plan.repack.insert(pack.hash);
                }
                _ if pack.size < SMALL_BYTES => small.push(pack.hash),
                _ => {}
            }
        }
        if small.len() >= SMALL_PACKS {
            plan.repack.extend(small);
        }
        plan
    }

    /// Takes packs out of what goes: those that were written just now, since equal chunks make an
    /// equal pack, and those that could not be read wholly.
    pub(super) fn keep(&mut self, rewritten: &RewrittenPacks) {
        for pack in rewritten.written.iter().chain(&rewritten.unreadable) {
            self.needless.remove(pack);
            self.repack.remove(pack);
        }
        self.stuck.extend(&rewritten.unreadable);
    }
}
