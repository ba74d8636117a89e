use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use super::live::Kept;
use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::config::CONFIG_KEY;
use crate::format::header::ObjectHeader;
use crate::format::index::read_index;
use crate::format::pack::{ObjectHash, pack_key};
use crate::format::roster::{VaultRosterSlot, roster_key};
use crate::get::ChunkReader;
use crate::keys::SlotKind;
use crate::limits::MAX_INDEX_BYTES;
use crate::put::{PutOptions, PutReport, SkippedItem, repack};
use crate::vault::{Vault, read_config};

/// The outcome of a repair, and the damage that it could not mend.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairReport {
    /// Problems that there were.
    pub found: u64,
    /// Objects that were written anew or cleared away, by key.
    pub mended: Vec<String>,
    /// Chunks that were brought back from what is left of damaged packs.
    pub rescued: u64,
    /// The put from sources; none without sources.
    pub put: Option<PutReport>,
    /// The damage that is left. Only a copy of the objects or the sources repair it.
    pub lost: Vec<SkippedItem>,
}

impl Vault {
    /// Brings back what can be brought back: from `sources`, which are put again as a snapshot,
    /// from second copies, and from the whole chunks of damaged packs. What is damaged is removed
    /// once no snapshot needs it.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for. What stays lost is in
    /// [`RepairReport::lost`].
    pub fn repair(&self, sources: &[PathBuf], options: &PutOptions) -> Result<RepairReport, Error> {
        self.owner("repair")?;
        self.store().stop_looking();
        self.check_writable()?;
        self.store().check_condition()?;
        let mut mended = Vec::new();
        if self.mend_config()? {
            mended.push(CONFIG_KEY.to_owned());
        }
        let found = self.verify(true)?;
        self.mend_slots(&mut mended)?;
        let put = match sources {
            [] => None,
            sources => Some(self.put_paths(sources, options)?),
        };
        let bad = self.still_bad(found.bad_packs, &mut mended)?;
        let rescued = self.rescue(&bad)?;
        let bad = self.still_bad(bad, &mut mended)?;
        if !bad.is_empty() && self.is_spare(&bad)? {
            for pack in bad {
                self.store().delete(&pack_key(&pack))?;
                mended.push(pack_key(&pack));
            }
        }
        self.clear_indexes(&mut mended)?;
        self.sync()?;
        let lost = self.verify(true)?.problems;
        Ok(RepairReport { found: found.problems.len() as u64, mended, rescued, put, lost })
    }

    /// Whether all that the snapshots need can be read without these packs. What cannot be read
    /// now may be whole in an hour, and its pack stays until then.
    fn is_spare(&self, packs: &[ObjectHash]) -> Result<bool, Error> {
        let ledger = match self.ledger(&BTreeSet::new()) {
            Err(Error::Unread(_)) => return Ok(false),
            ledger => ledger?,
        };
        let all = self.all_packs()?;
        let mut kept = Kept::new(self, &all);
        let loose = ledger.loose.iter().filter_map(|link| link.snapshot.as_ref());
        let live = match self.live_chunks(ledger.snapshots().chain(loose), &mut kept) {
            Err(Error::Unread(_)) => return Ok(false),
            live => live?,
        };
        let is_there = |id: &ChunkId| -> Result<bool, Error> {
            let places = match self.manifest().places(id) {
                Err(Error::Missing(_)) => return Ok(false),
                places => places?,
            };
            Ok(places.iter().any(|place| !place.bad && !packs.contains(&place.pack)))
        };
        for id in &live.ids {
            // Chunks that nobody ever kept lie in none of these packs.
            if !is_there(id)? && kept.was_kept(id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Those of the packs that are still damaged. The same chunks make the same pack, so that what
    /// was kept again may lie in its old place.
    fn still_bad(
        &self,
        packs: Vec<ObjectHash>,
        mended: &mut Vec<String>,
    ) -> Result<Vec<ObjectHash>, Error> {
        let mut bad = Vec::new();
        for pack in packs {
            let key = pack_key(&pack);
            if self.store().has(&key, &pack)? {
                mended.push(key);
            } else {
                bad.push(pack);
            }
        }
        Ok(bad)
    }

    /// Writes the config again if it is lost: the main key and the vault's id tell all of it but
    /// the time, and whether names were to be readable, which they are not from then on.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for.
    pub fn mend_config(&self) -> Result<bool, Error> {
        self.owner("repair")?;
        match read_config(self.store()) {
            Ok(_) => return Ok(false),
            Err(error) if error.is_damage() => self.store().delete(CONFIG_KEY)?,
            Err(Error::NoVault(_)) => {}
            Err(error) => return Err(error),
        }
        self.store().put_and_read(CONFIG_KEY, &self.config().write(&self.first_signer()?)?)?;
        Ok(true)
    }

    /// Signs a new list of the slots that are whole. Writers stay in it, since it holds their keys.
    /// Where a newer list is lost, nobody knows which writers it ended, so that all end.
    fn mend_slots(&self, mended: &mut Vec<String>) -> Result<(), Error> {
        if self.check_roster()?.is_empty() && self.named_roster()? <= self.roster().number {
            return Ok(());
        }
        let slots = self.all_slots()?;
        let whole: HashSet<([u8; 8], ObjectHash)> =
            slots.iter().map(|slot| (slot.id, slot.hash())).collect();
        let keeps = |slot: &VaultRosterSlot| {
            slot.kind == SlotKind::Writer || whole.contains(&(slot.id, slot.hash))
        };
        let before = self.roster();
        let known = before.number >= self.named_roster()?;
        if known && before.slots.iter().all(keeps) && self.newest_roster()? == before.number {
            // Only foreign objects are left, and they are skipped.
            return Ok(());
        }
        let head = self.head()?.map_or(0, |(number, _)| number);
        let unlisted: Vec<VaultRosterSlot> =
            slots.iter().filter_map(|slot| self.listed(slot)).collect();
        self.list_slots(&mut |slots| {
            slots.retain(keeps);
            if !known {
                let new = unlisted.iter().filter(|new| before.listed(&new.id).is_none());
                slots.extend(new.cloned());
                // Which of them had been removed stood in the list that is lost.
                let writers = slots.iter_mut().filter(|slot| slot.kind == SlotKind::Writer);
                writers.for_each(|writer| writer.until = writer.until.min(head));
            }
        })?;
        let key = roster_key(self.roster().number);
        if !known {
            let reason = "the newest list is lost: no writer is believed from here on; add them \
                          anew";
            self.warn([SkippedItem { path: key.clone(), reason: reason.to_owned() }]);
        }
        mended.push(key);
        Ok(())
    }

    /// Writes the chunks of damaged packs that still open, and that no other pack has, into new
    /// packs. Gives how many those are.
    fn rescue(&self, bad: &[ObjectHash]) -> Result<u64, Error> {
        let mut wanted: Vec<(ChunkId, ChunkKind)> = Vec::new();
        for pack in bad {
            for (id, kind) in self.manifest().chunks_of(pack)? {
                let places = self.manifest().places(&id)?;
                if places.iter().all(|place| place.bad || bad.contains(&place.pack)) {
                    wanted.push((id, kind));
                }
            }
        }
        wanted.sort_unstable_by_key(|(id, _)| *id);
        wanted.dedup_by_key(|(id, _)| *id);
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let mut wanted = wanted.iter();
        let mut rescued = 0;
        let packs = repack(self, &mut || {
            for (id, kind) in wanted.by_ref() {
                match chunks.seal_again(id, *kind) {
                    Ok(sealed) => {
                        rescued += 1;
                        return Ok(Some(sealed));
                    }
                    Err(error) if error.is_damage() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        })?;
        self.keep_packs(&packs)?;
        Ok(rescued)
    }

    /// Removes indexes that cannot be read: they are shortcuts to what stands in the packs.
    pub(crate) fn clear_indexes(&self, mended: &mut Vec<String>) -> Result<(), Error> {
        for object in self.store().list("index/")? {
            let open = |header: &ObjectHeader| self.sealing_of(header);
            let read = self.store().get(&object.key, MAX_INDEX_BYTES);
            if read.as_ref().is_ok_and(|bytes| self.is_of_next_key(&object.key, bytes)) {
                continue;
            }
            match read.and_then(|bytes| read_index(&object.key, &bytes, self.vault_id(), open)) {
                Ok(_) => {}
                Err(error) if error.is_damage() => {
                    self.store().delete(&object.key)?;
                    mended.push(object.key);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
