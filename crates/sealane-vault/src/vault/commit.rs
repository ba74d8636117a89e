use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::Vault;
use super::chain::{ChainHead, head_text};
use crate::Error;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::{index_key, write_indexes};
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::snapshot::{self, SnapshotBody, SnapshotLink, snapshot_key};
use crate::limits::{MAX_COMMIT_RACES, MAX_RELIANCE_MS};
use crate::manifest::PackOrigin;
use crate::put::{PackerOutput, PutOptions, now_ns};
use crate::store::CreateOutcome;

impl Vault {
    /// Makes what was packed the next snapshot. All packs are durable.
    pub(crate) fn commit(
        &self,
        packed: &PackerOutput,
        packs: &[PackRecord],
        listing: Option<ObjectHash>,
        paths: Vec<Vec<u8>>,
        options: &PutOptions,
    ) -> Result<(u64, String), Error> {
        // The link relies on what is there now. The slots were seen when the vault was opened, and
        // the list of slots tells of newer ones.
        self.store.look_anew_at(&["packs/", "condemned/", "snapshots/"]);
        // The owner may have removed this writer since the put began.
        self.check_writer()?;
        self.keep_packs(packs)?;
        self.check_relied(packed, packs)?;
        let begun = Instant::now();
        let body = SnapshotBody {
            prune: false,
            time_ns: options.time_ns.unwrap_or_else(now_ns),
            source: options.host.clone().unwrap_or_else(host),
            note: options.note.clone(),
            counts: packed.counts,
            compression: options.compression,
            listing,
            pages: packed.pages.clone(),
            roster: self.roster().number,
            paths,
            tags: options.tags.clone(),
            rotations: Vec::new(),
        };
        let head = self.append(&body, Vec::new())?;
        // An outage may have lasted longer than a prune waits for what was relied on.
        if begun.elapsed() > Duration::from_millis(MAX_RELIANCE_MS) {
            self.store.look_anew_at(&["packs/", "condemned/"]);
            self.check_relied(packed, packs)?;
        }
        // Or while the link was on its way: then nobody believes it.
        self.check_believed(head.0)?;
        Ok((head.0, head_text(head)))
    }

    /// Writes the index of new packs, and tells the manifest of them.
    pub(crate) fn keep_packs(&self, packs: &[PackRecord]) -> Result<(), Error> {
        let indexes = write_indexes(&self.sealing, &self.header(), packs)?;
        let mut hashes = Vec::new();
        for object in indexes {
            let hash = *blake3::hash(&object).as_bytes();
            self.store.put(&index_key(&hash), &object)?;
            hashes.push(hash);
        }
        self.manifest.transaction(|manifest| {
            for pack in packs {
                manifest.add_pack(pack, PackOrigin::Owner)?;
                manifest.trust_pack(&pack.hash)?;
            }
            hashes.iter().try_for_each(|hash| manifest.index_read(hash))
        })
    }

    /// Refuses to refer to chunks whose pack a prune will remove, and to `new` packs that the store
    /// took and does not have. A new pack may have the name of one that was condemned meanwhile.
    fn check_relied(&self, packed: &PackerOutput, new: &[PackRecord]) -> Result<(), Error> {
        let condemned = self.condemned()?;
        let there: HashMap<ObjectHash, u64> = self.pack_objects()?.into_iter().collect();
        let lost = new.iter().find(|pack| there.get(&pack.hash) != Some(&pack.size));
        let gone: Vec<ObjectHash> =
            self.manifest.packs()?.into_iter().filter(|hash| !there.contains_key(hash)).collect();
        if condemned.is_empty() && gone.is_empty() && lost.is_none() {
            return Ok(());
        }
        self.manifest.transaction(|manifest| {
            gone.iter().try_for_each(|gone| manifest.forget_pack(gone))?;
            manifest.condemn(&condemned)
        })?;
        if let Some(lost) = lost {
            return Err(Error::Forgot(pack_key(&lost.hash)));
        }
        let stays = self.manifest.kept_ids(self.reads())?;
        let all_stay = packed.relied.iter().all(|id| stays.contains(id))
            && !new.iter().any(|pack| condemned.contains(&pack.hash));
        if all_stay { Ok(()) } else { Err(Error::Pruned) }
    }

    /// The number that the next link gets, unless somebody is faster.
    pub(crate) fn next_number(&self) -> Result<u64, Error> {
        Ok(self.behind()?.next)
    }

    /// Appends a link to the chain, behind whatever others append at the same time. One of the
    /// owner that names what was `removed` names what others have removed meanwhile, too: what the
    /// newest such link does not name counts as lost.
    pub(crate) fn append(
        &self,
        body: &SnapshotBody,
        removed: Vec<(u64, ObjectHash)>,
    ) -> Result<ChainHead, Error> {
        self.check_writable()?;
        let header = ObjectHeader { kind: ObjectKind::Snapshot, ..self.header() };
        let mut link =
            SnapshotLink { number: 0, previous: [0; 32], signer: self.signer_id, removed };
        let mut named: HashSet<u64> = link.removed.iter().map(|(number, _)| *number).collect();
        for _ in 0..MAX_COMMIT_RACES {
            let _look = self.store.look();
            let mut behind = self.behind()?;
            if self.is_rotating()? {
                // The head that was seen here may lie behind the hand-over, where another run on
                // this machine saw it.
                behind = self.walk(None)?;
            }
            if behind.rotated {
                return Err(Error::Rotated);
            }
            if body.prune {
                let of_others = behind.removed.iter();
                link.removed.extend(of_others.filter(|(number, _)| named.insert(*number)));
            }
            link.number = behind.next;
            link.previous = behind.head.unwrap_or_default().1;
            let object = snapshot::write(&header, &link, body, &self.sealing, &self.signer)?;
            if self.put_link(&snapshot_key(link.number), &object, body)? == CreateOutcome::Created {
                let head = (link.number, *blake3::hash(&object).as_bytes());
                self.remember_head(head)?;
                return Ok(head);
            }
        }
        Err(Error::Raced)
    }
}

impl Vault {
    /// Creates a link. A prune may take the room that the store keeps in reserve, since it makes
    /// more room than that.
    fn put_link(
        &self,
        key: &str,
        object: &[u8],
        body: &SnapshotBody,
    ) -> Result<CreateOutcome, Error> {
        match self.store.put_and_read(key, object) {
            Err(Error::StoreFull { .. }) if body.prune && self.store.use_reserve()? => {
                self.store.put_and_read(key, object)
            }
            other => other,
        }
    }
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
