use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::live::{Kept, LiveChunks};
use super::plan::{PackMarks, PrunePlan, RewrittenPacks};
use super::retain::{
    RetentionCandidate, RetentionGroupBy, RetentionPlan, RetentionRules, SnapshotGroup,
};
use super::watch::ChainWatch;
use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::read_index;
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::snapshot::snapshot_key;
use crate::get::{ChunkReader, roots};
use crate::limits::{MAX_INDEX_BYTES, MAX_MARK_BYTES, PRUNE_GRACE_HOURS};
use crate::listing::listing_key;
use crate::put::{IdHash, SkippedItem, now_ns, repack};
use crate::vault::{ChainHead, LedgerLink, Snapshot, SnapshotLedger, Vault, hash_of};
use crate::wire::{VaultFieldReader, hex};

/// How to prune.
#[derive(Debug, Clone, Default)]
pub struct PruneOptions {
    /// Which snapshots to keep of each group.
    pub keep: RetentionRules,
    /// The properties that make a group.
    pub group_by: RetentionGroupBy,
    /// Removes no snapshot but these, as far as the rules do not keep them: what somebody has seen
    /// and agreed to. None agrees to all.
    pub approved: Option<BTreeSet<u64>>,
    /// Removes these snapshots and no others, whatever the rules say of them.
    pub forget: Option<BTreeSet<u64>>,
    /// Removes what is not needed at once. Only where nobody puts at the same time: a put that
    /// relies on data that is removed meanwhile would lose it.
    pub now: bool,
    /// Finds out what would be removed, and writes nothing.
    pub dry_run: bool,
    /// Snapshots that cannot be read, or not wholly, and that are given up with all that only they
    /// need. Without this a prune refuses while there is one.
    pub give_up: BTreeSet<u64>,
}

/// The outcome of a prune.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The verdict on each snapshot, and why.
    pub groups: Vec<RetentionPlan>,
    /// Snapshots that are kept.
    pub kept: u64,
    /// Snapshots that were removed.
    pub removed: u64,
    /// The items given up, and why they could not be had.
    pub given_up: Vec<SkippedItem>,
    /// Links of writers that were removed, which nobody believes: they go, too.
    pub unbelieved: u64,
    /// Packs that hold nothing that is needed and will be removed by a later prune.
    pub condemned: u64,
    /// Packs that were removed.
    pub removed_packs: u64,
    /// Their bytes.
    pub removed_bytes: u64,
    /// Packs of which only what is needed was written anew.
    pub repacked: u64,
    /// Packs of which something is needed that opens nowhere: they stay, and warnings name them.
    pub stuck: u64,
    /// Packs that are due, and wait for the next prune: others have added snapshots meanwhile.
    pub waiting: u64,
}

impl Vault {
    /// Removes the snapshots that no rule keeps, and in two steps the packs that no snapshot needs:
    /// a pack is condemned first and removed by a prune a day later, so that a put at the same time
    /// loses nothing.
    ///
    /// # Errors
    /// [`Error::NotOwner`]; [`Error::Unread`] while anything that may name data is missing or
    /// cannot be read and was not given up, and then nothing is removed; and what the store fails
    /// for. A prune that is interrupted is completed by the next.
    pub fn prune(&self, options: &PruneOptions) -> Result<PruneReport, Error> {
        self.owner("prune")?;
        if !options.dry_run {
            // A listing from before may lack objects that need what would go.
            self.store().stop_looking();
            self.check_writable()?;
            self.store().check_condition()?;
        }
        let ledger = self.ledger(&options.give_up)?;
        let groups = self.judge(&ledger, options)?;
        let verdicts = groups.iter().flat_map(|group| &group.verdicts);
        let staying = verdicts.filter(|verdict| verdict.stays).map(|verdict| verdict.snapshot);
        let keep: HashSet<u64> = staying.collect();
        let kept = keep.len() as u64;
        let mut report = PruneReport {
            groups,
            kept,
            removed: ledger.snapshots().count() as u64 - kept,
            given_up: ledger.given_up.clone(),
            unbelieved: ledger.chain.ended.len() as u64,
            ..PruneReport::default()
        };
        // The packs come first: what a put adds from here on is not among them.
        let packs = self.all_packs()?;
        let live = self.live(&ledger, &keep, &packs)?;
        let own = match options.dry_run {
            true => None,
            false => self.remove_snapshots(&ledger, &keep)?,
        };
        let marks = self.marks(options.now)?;
        let mut plan = self.plan(&packs, &live, &marks)?;
        if options.dry_run {
            report.repacked = plan.repack.len() as u64;
            report.condemned = plan.needless.len() as u64;
            report.stuck = plan.stuck.len() as u64;
            return Ok(report);
        }
        match self.rewrite(&packs, &plan) {
            Ok(rewritten) => plan.keep(&rewritten),
            // Work that needs no room is done first. It frees room for the next prune.
            Err(Error::StoreFull { .. }) => plan.repack.clear(),
            Err(error) => return Err(error),
        }
        report.repacked = plan.repack.len() as u64;
        report.stuck = plan.stuck.len() as u64;
        let removal = PackRemoval { packs: &packs, plan: &plan, marks: &marks };
        self.let_go(&removal, ChainWatch::new(self, &ledger, own), &mut report)?;
        self.remove_empty_indexes()?;
        self.sync()?;
        Ok(report)
    }

    /// A prune's verdict with these options on each snapshot, and why. Nothing is written.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and as [`Vault::prune`].
    pub fn retention(&self, options: &PruneOptions) -> Result<Vec<RetentionPlan>, Error> {
        self.judge(&self.ledger(&options.give_up)?, options)
    }

    fn judge(
        &self,
        ledger: &SnapshotLedger,
        options: &PruneOptions,
    ) -> Result<Vec<RetentionPlan>, Error> {
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let candidate = |snapshot: &Snapshot| -> Result<RetentionCandidate, Error> {
            Ok(RetentionCandidate {
                number: snapshot.number,
                time_ns: snapshot.time_ns,
                group: self.group(snapshot, options.group_by, &mut chunks)?,
                tags: snapshot.tags.clone(),
            })
        };
        let stays = |snapshot: &&Snapshot| !ledger.gives_up(snapshot.number);
        let candidates = ledger.snapshots().filter(stays).map(candidate);
        let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
        let mut groups = options.keep.judge(&candidates, now_ns());
        if let Some(named) = &options.forget {
            let is_there = |number: &u64| candidates.iter().any(|one| one.number == *number);
            if let Some(missing) = named.iter().find(|number| !is_there(number)) {
                return Err(Error::NoSnapshot(missing.to_string()));
            }
            for verdict in groups.iter_mut().flat_map(|group| &mut group.verdicts) {
                verdict.stays = !named.contains(&verdict.snapshot);
                let reason = if verdict.stays { "was not named" } else { "was named" };
                verdict.reasons = vec![reason.to_owned()];
            }
        }
        if let Some(approved) = &options.approved {
            let verdicts = groups.iter_mut().flat_map(|group| &mut group.verdicts);
            for verdict in verdicts.filter(|one| !one.stays && !approved.contains(&one.snapshot)) {
                verdict.stays = true;
                verdict.reasons = vec!["was not shown as one that goes".to_owned()];
            }
        }
        Ok(groups)
    }

    fn group(
        &self,
        snapshot: &Snapshot,
        by: RetentionGroupBy,
        chunks: &mut ChunkReader<'_>,
    ) -> Result<SnapshotGroup, Error> {
        let paths = match (by.paths, snapshot.paths.is_empty()) {
            (false, _) => None,
            (true, false) => Some(snapshot.paths.clone()),
            (true, true) => match roots(chunks, &snapshot.body.pages) {
                Ok(roots) => Some(roots),
                // A writer may name pages that nobody ever kept: that stops no prune. Those that
                // somebody kept are looked for before anything is removed.
                Err(error) if error.is_damage() && snapshot.by_writer => {
                    let path = format!("snapshot {}", snapshot.number);
                    self.warn([SkippedItem { path, reason: error.named() }]);
                    Some(Vec::new())
                }
                Err(error) if error.is_damage() => {
                    return Err(Error::unread(&[snapshot.unread(&error)]));
                }
                Err(error) => return Err(error),
            },
        };
        let signer = || snapshot.signer.clone().unwrap_or_else(|| "owner".to_owned());
        Ok(SnapshotGroup {
            signer: by.signer.then(signer),
            host: by.host.then(|| snapshot.source.clone()),
            paths,
            tags: by.tags.then(|| snapshot.tags.clone()),
        })
    }

    /// Names the removed in the chain first, and removes them then. Gives the link that names them.
    fn remove_snapshots(
        &self,
        ledger: &SnapshotLedger,
        keep: &HashSet<u64>,
    ) -> Result<Option<ChainHead>, Error> {
        let newest = ledger.snapshots().last().map_or(0, |snapshot| snapshot.number);
        let goes = |link: &&LedgerLink| match &link.snapshot {
            _ if link.is_handover => false,
            Some(_) => !keep.contains(&link.number),
            // An older prune, or what nobody can read.
            None => link.number <= newest,
        };
        let gone: Vec<&LedgerLink> = ledger.links.iter().filter(goes).collect();
        let mut named = gone.iter().map(|link| (link.number, link.hash)).collect::<Vec<_>>();
        // Behind the next number a name would only keep the chain from going on.
        let next = self.next_number()?;
        let (lost, beyond): (Vec<_>, Vec<_>) =
            ledger.lost.iter().chain(&ledger.chain.ended).partition(|(number, _)| *number < next);
        named.extend(lost);
        let keys = named.iter().chain(beyond).map(|(number, _)| snapshot_key(*number));
        let keys: Vec<String> = keys.collect();
        // A lost link in whose place a whole one stands is named, and nothing goes with it.
        named.extend(&ledger.replaced);
        if named.is_empty() && keys.is_empty() {
            return Ok(None);
        }
        // The prunes before it are named again by the one that is being written.
        let mut removed = ledger.chain.removed.clone();
        let before: HashSet<u64> = removed.iter().map(|(number, _)| *number).collect();
        removed.extend(named.iter().filter(|(number, _)| !before.contains(number)));
        let own = self.append(&self.remark(), removed)?;
        let listing = |snapshot: &Snapshot| snapshot.body.listing;
        let gone = gone.iter().filter_map(|link| link.snapshot.as_ref());
        let mut listings: HashSet<ObjectHash> = gone.filter_map(listing).collect();
        let staying = ledger.snapshots().filter(|snapshot| keep.contains(&snapshot.number));
        for hash in staying.filter_map(listing) {
            listings.remove(&hash);
        }
        keys.iter().try_for_each(|key| self.store().delete(key))?;
        listings.iter().try_for_each(|hash| self.store().delete(&listing_key(hash)))?;
        Ok(Some(own))
    }

    pub(super) fn all_packs(&self) -> Result<Vec<PackRecord>, Error> {
        let mut packs = Vec::new();
        self.read_trailers(self.pack_objects()?, &mut |hash, pack| match pack {
            Ok(pack) => {
                packs.push(pack);
                Ok(())
            }
            // The content of this pack is unknown. So the pack stays.
            Err(error) if error.is_damage() => {
                self.warn([SkippedItem { path: pack_key(&hash), reason: error.named() }]);
                Ok(())
            }
            Err(error) => Err(error),
        })?;
        Ok(packs)
    }

    /// All chunks that the snapshots need that stay. A page that cannot be read could name any.
    fn live(
        &self,
        ledger: &SnapshotLedger,
        keep: &HashSet<u64>,
        packs: &[PackRecord],
    ) -> Result<LiveChunks, Error> {
        self.sync()?;
        let of_chain = ledger.snapshots().filter(|snapshot| keep.contains(&snapshot.number));
        let loose = ledger.loose.iter().filter_map(|link| link.snapshot.as_ref());
        let loose = loose.filter(|snapshot| !ledger.gives_up(snapshot.number));
        self.live_chunks(of_chain.chain(loose), &mut Kept::new(self, packs))
    }

    /// The condemned packs, and since when.
    fn marks(&self, at_once: bool) -> Result<PackMarks, Error> {
        let grace = Duration::from_secs(3600 * PRUNE_GRACE_HOURS).as_nanos();
        let grace = if at_once { 0 } else { i64::try_from(grace).unwrap_or(i64::MAX) };
        let mut marks = HashMap::new();
        let mut objects = self.store().list("condemned/")?;
        objects.retain(|object| hash_of(object).is_some());
        self.store().get_each(&objects, MAX_MARK_BYTES, &mut |object, bytes| {
            match bytes.and_then(|bytes| self.parse_mark(&object.key, &bytes)) {
                Ok(since) => marks.extend(hash_of(object).map(|hash| (hash, since))),
                Err(error) if error.is_damage() => {
                    self.warn([SkippedItem { path: object.key.clone(), reason: error.named() }]);
                }
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(PackMarks { since: marks, grace, now: now_ns() })
    }

    /// Since when a pack is condemned, if the owner says so.
    pub(super) fn read_mark(&self, key: &str) -> Result<i64, Error> {
        self.parse_mark(key, &self.store().get(key, MAX_MARK_BYTES)?)
    }

    fn parse_mark(&self, key: &str, bytes: &[u8]) -> Result<i64, Error> {
        let mut reader = VaultFieldReader::new("a mark", bytes);
        let header =
            ObjectHeader::read(&mut reader, key, ObjectKind::Condemned, Some(self.vault_id()))?;
        self.verify_owners(&header, key, bytes)?;
        reader.i64()
    }

    fn mark(&self, hash: &ObjectHash) -> Result<(), Error> {
        let mut object = ObjectHeader { kind: ObjectKind::Condemned, ..self.header() }.write();
        object.extend_from_slice(&now_ns().to_le_bytes());
        self.signer().sign(&mut object)?;
        self.store().put(&mark_key(hash), &object).map(|_| ())
    }

    /// Writes what is needed of packs that are mostly needless into new ones.
    fn rewrite(&self, packs: &[PackRecord], plan: &PrunePlan) -> Result<RewrittenPacks, Error> {
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let wanted = packs.iter().filter(|pack| plan.repack.contains(&pack.hash));
        // Another pack may claim the chunk as one of another kind.
        let wanted: Vec<(ChunkId, ChunkKind)> = wanted
            .flat_map(|pack| pack.chunks.iter().map(|head| (pack.hash, head)))
            .filter(|(pack, head)| plan.homes.get(&head.id) == Some(pack))
            .map(|(_, head)| (head.id, head.descriptor.kind))
            .collect();
        let mut done = HashSet::<ChunkId, IdHash>::default();
        let mut next = wanted.iter().filter(|(id, _)| done.insert(*id));
        let mut unreadable = HashSet::new();
        let packs = repack(self, &mut || {
            for (id, kind) in next.by_ref() {
                match chunks.seal_again(id, *kind) {
                    Ok(sealed) => return Ok(Some(sealed)),
                    Err(error) if error.is_damage() => {
                        if let Some(home) = plan.homes.get(id) {
                            self.warn_of_stuck(home, id);
                            unreadable.insert(*home);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        })?;
        self.keep_packs(&packs)?;
        let written = packs.iter().map(|pack| pack.hash).collect();
        Ok(RewrittenPacks { written, unreadable })
    }

    fn let_go(
        &self,
        removal: &PackRemoval<'_>,
        mut watch: ChainWatch<'_>,
        report: &mut PruneReport,
    ) -> Result<(), Error> {
        let PackRemoval { packs, plan, marks } = removal;
        for pack in packs.iter().filter(|pack| !plan.stuck.contains(&pack.hash)) {
            let needless = plan.needless.contains(&pack.hash) || plan.repack.contains(&pack.hash);
            if !needless {
                if marks.has(&pack.hash) {
                    self.store().delete(&mark_key(&pack.hash))?;
                }
                continue;
            }
            if !marks.has(&pack.hash) {
                self.mark(&pack.hash)?;
                report.condemned += 1;
            }
            if !marks.is_due(&pack.hash) {
                continue;
            }
            // A put writes a condemned pack again where it keeps the same, and relies on it then.
            if watch.has_moved()? {
                report.waiting += 1;
                continue;
            }
            self.store().delete(&pack_key(&pack.hash))?;
            self.store().delete(&mark_key(&pack.hash))?;
            report.removed_packs += 1;
            report.removed_bytes += pack.size;
        }
        // Marks of packs that an interrupted prune removed already.
        let there: HashSet<&ObjectHash> = packs.iter().map(|pack| &pack.hash).collect();
        let stray = marks.since.keys().filter(|hash| !there.contains(hash));
        stray.into_iter().try_for_each(|hash| self.store().delete(&mark_key(hash)))
    }

    fn remove_empty_indexes(&self) -> Result<(), Error> {
        // The packs of an index that is there now are all older than it.
        let indexes = self.store().list("index/")?;
        let there: HashSet<ObjectHash> =
            self.pack_objects()?.into_iter().map(|(hash, _)| hash).collect();
        for object in indexes {
            let open = |header: &ObjectHeader| self.sealing_of(header);
            let bytes = match self.store().get(&object.key, MAX_INDEX_BYTES) {
                Ok(bytes) => bytes,
                // Another prune has removed it.
                Err(Error::Missing(_)) => continue,
                Err(error) => return Err(error),
            };
            if self.is_of_next_key(&object.key, &bytes) {
                continue;
            }
            let packs = match read_index(&object.key, &bytes, self.vault_id(), open) {
                Ok(packs) => packs,
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error),
            };
            if packs.iter().all(|pack| !there.contains(&pack.hash)) {
                self.store().delete(&object.key)?;
            }
        }
        Ok(())
    }
}

/// The packs, and which of them go when.
struct PackRemoval<'a> {
    packs: &'a [PackRecord],
    plan: &'a PrunePlan,
    marks: &'a PackMarks,
}

fn mark_key(hash: &ObjectHash) -> String {
    format!("condemned/{}", hex(hash))
}
