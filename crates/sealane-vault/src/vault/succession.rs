//! The owners of a vault, one after the other: whose signature counts from which link on.

use super::chain::ChainHead;
use super::{Vault, trust};
use crate::Error;
use crate::format::config::VaultConfig;
use crate::format::header::VaultId;
use crate::format::roster::VaultRoster;
use crate::format::rotation::{ROTATION_PREFIX, SealedRotation, VaultRotation, rotation_key};
use crate::format::snapshot::{HANDOVER, SealedSnapshotLink, snapshot_key, snapshot_number};
use crate::keys::{SlotSecret, VaultSealingKeys, VaultSecretKey, VaultSigner, derive};
use crate::limits::{MAX_ROTATION_BYTES, MAX_ROTATIONS, MAX_SNAPSHOT_BYTES};
use crate::put::SkippedItem;
use crate::store::VaultStore;

/// The owners of a vault.
#[derive(Debug, Clone)]
pub(crate) struct OwnerSuccession {
    /// The first is the config's.
    owners: Vec<[u8; 32]>,
    /// The link with which each but the first began.
    handovers: Vec<ChainHead>,
    /// Of these changes.
    rotations: Vec<SealedRotation>,
}

/// The keys that may sign in a vault, according to its store and this machine.
pub(super) struct VaultTrust {
    pub(super) succession: OwnerSuccession,
    pub(super) roster: VaultRoster,
    pub(super) foreign: Vec<SkippedItem>,
}

impl OwnerSuccession {
    pub(super) fn of_one(owner: [u8; 32]) -> OwnerSuccession {
        OwnerSuccession { owners: vec![owner], handovers: Vec::new(), rotations: Vec::new() }
    }

    /// How often the main key was changed.
    pub(crate) fn generation(&self) -> u8 {
        u8::try_from(self.handovers.len()).unwrap_or(u8::MAX)
    }

    /// All owners, oldest first.
    pub(crate) fn owners(&self) -> &[[u8; 32]] {
        &self.owners
    }

    pub(crate) fn current(&self) -> [u8; 32] {
        self.owners.last().copied().unwrap_or_default()
    }

    /// The owner of a generation.
    pub(crate) fn of(&self, generation: u8) -> Option<&[u8; 32]> {
        self.owners.get(usize::from(generation))
    }

    /// The newest change of the main key.
    pub(crate) fn rotation(&self) -> Option<&SealedRotation> {
        self.rotations.last()
    }

    /// All changes of the main key, oldest first.
    pub(super) fn rotations(&self) -> &[SealedRotation] {
        &self.rotations
    }

    /// The links with which owners handed over, oldest first.
    pub(crate) fn handovers(&self) -> &[ChainHead] {
        &self.handovers
    }

    /// The owner whose signature counts under a number of the chain.
    pub(crate) fn owner_at(&self, number: u64) -> [u8; 32] {
        let passed = self.handovers.iter().filter(|(handover, _)| *handover < number).count();
        self.owners.get(passed).copied().unwrap_or_default()
    }

    /// The owners, and the newest list of slots, as `store` and what is remembered here tell.
    ///
    /// A change of the main key holds once a link of the chain hands over to the new owner. Which
    /// link that was stands in every list that the new owner signs; until there is one, the chain
    /// is searched.
    pub(super) fn read(
        store: &VaultStore,
        config: &VaultConfig,
        remembered: Option<&[u8]>,
    ) -> Result<VaultTrust, Error> {
        let mut foreign = Vec::new();
        let mut proposed = rotations(store, config, &mut foreign)?.into_iter();
        let mut owners = vec![config.owner];
        owners.extend(proposed.as_slice().iter().map(|next| next.rotation.after));
        let newest = trust::newest(store, &config.vault, &owners, remembered)?;
        foreign.extend(newest.foreign);
        let mut succession = OwnerSuccession::of_one(config.owner);
        for &head in &newest.roster.handovers {
            proposed.next().into_iter().for_each(|next| succession.push(next, head));
        }
        for next in proposed {
            let from = succession.handovers.last().map_or(0, |(number, _)| *number);
            let Some(head) = find_handover(store, &config.vault, &next, from)? else { break };
            succession.push(next, head);
        }
        Ok(VaultTrust { succession, roster: newest.roster, foreign })
    }

    fn push(&mut self, next: SealedRotation, head: ChainHead) {
        self.owners.push(next.rotation.after);
        self.handovers.push(head);
        self.rotations.push(next);
    }

    /// The main keys of all generations, oldest first, for who has the newest.
    pub(super) fn mains(
        &self,
        main: &VaultSecretKey,
        vault: &VaultId,
    ) -> Result<Vec<VaultSecretKey>, Error> {
        let mut mains = match self.rotation() {
            Some(rotation) => rotation.open(&VaultSealingKeys::derive(main, vault)?)?,
            None => Vec::new(),
        };
        mains.push(main.clone());
        for (main, owner) in mains.iter().zip(&self.owners) {
            if owner_of(main, vault)? != *owner {
                return Err(Error::Signature(rotation_key(self.generation())));
            }
        }
        Ok(mains)
    }
}

/// The verifying key of the owner whose main key this is.
pub(super) fn owner_of(main: &VaultSecretKey, vault: &VaultId) -> Result<[u8; 32], Error> {
    Ok(VaultSigner::from_seed(&derive("signing", main, vault))?.verifying_key())
}

/// The owner of a vault's config, for who has a main key of it and no config.
pub(super) fn first_owner(
    store: &VaultStore,
    vault: &VaultId,
    main: &VaultSecretKey,
) -> Result<[u8; 32], Error> {
    let owner = owner_of(main, vault)?;
    for object in store.list(ROTATION_PREFIX)? {
        let read = store.get_listed(&object, MAX_ROTATION_BYTES);
        let read = read.and_then(|bytes| SealedRotation::read(&object.key, bytes, vault));
        let Ok(rotation) = read else { continue };
        if rotation.rotation.after == owner {
            let mains = rotation.open(&VaultSealingKeys::derive(main, vault)?)?;
            return mains.first().map_or(Ok(owner), |first| owner_of(first, vault));
        }
    }
    Ok(owner)
}

/// The changes that follow each other from the config's owner on, in force or not.
fn rotations(
    store: &VaultStore,
    config: &VaultConfig,
    foreign: &mut Vec<SkippedItem>,
) -> Result<Vec<SealedRotation>, Error> {
    let mut found: Vec<SealedRotation> = Vec::new();
    for object in store.list(ROTATION_PREFIX)? {
        let owner = found.last().map_or(config.owner, |last| last.rotation.after);
        let next = u8::try_from(found.len() + 1).unwrap_or(u8::MAX);
        let read = store.get_listed(&object, MAX_ROTATION_BYTES);
        match read.and_then(|bytes| SealedRotation::read(&object.key, bytes, &config.vault)) {
            Ok(one) if one.rotation.before == owner && one.rotation.generation == next => {
                found.push(one);
            }
            Ok(_) => {
                let reason = "it follows no owner of this vault".to_owned();
                foreign.push(SkippedItem { path: object.key, reason });
            }
            Err(error) if error.is_damage() => {
                store.doubt(&object.key);
                foreign.push(SkippedItem { path: object.key, reason: error.named() });
            }
            Err(error) => return Err(error),
        }
        if found.len() >= usize::from(MAX_ROTATIONS) {
            break;
        }
    }
    Ok(found)
}

/// The first link behind `from` that puts a change into force.
fn find_handover(
    store: &VaultStore,
    vault: &VaultId,
    next: &SealedRotation,
    from: u64,
) -> Result<Option<ChainHead>, Error> {
    for object in store.list("snapshots/")? {
        let Some(number) = snapshot_number(&object.key).filter(|number| *number > from) else {
            continue;
        };
        let read = store.get_listed(&object, MAX_SNAPSHOT_BYTES);
        let sealed = match read.and_then(|bytes| SealedSnapshotLink::read(number, bytes, vault)) {
            Ok(sealed) => sealed,
            Err(error) if error.is_damage() => continue,
            Err(error) => return Err(error),
        };
        let link = &sealed.link;
        if link.signer == HANDOVER
            && link.removed.first() == Some(&(0, next.hash))
            && sealed.check_signature(&next.rotation.before).is_ok()
        {
            return Ok(Some((number, sealed.hash)));
        }
    }
    Ok(None)
}

/// Writes changes again that the store has lost: hand-overs hold copies, which the new main key
/// opens. Gives whether there were any.
pub(super) fn mend_rotations(
    store: &VaultStore,
    config: &VaultConfig,
    secret: &SlotSecret<'_>,
    roster: &VaultRoster,
) -> Result<bool, Error> {
    let mut mains = Vec::new();
    let mut collect = |main: &VaultSecretKey| {
        mains.push(main.clone());
        Ok(false)
    };
    match super::unlock(store, &config.vault, secret, roster, &mut collect) {
        Ok(_) | Err(Error::WrongKey | Error::SlotsDamaged(_)) => {}
        Err(error) => return Err(error),
    }
    for object in store.list("snapshots/")?.iter().rev() {
        let Some(number) = snapshot_number(&object.key) else { continue };
        let read = store.get_listed(object, MAX_SNAPSHOT_BYTES);
        let Ok(sealed) =
            read.and_then(|bytes| SealedSnapshotLink::read(number, bytes, &config.vault))
        else {
            continue;
        };
        for main in mains.iter().filter(|_| sealed.link.signer == HANDOVER) {
            if let Some(copies) = copies(config, &sealed, main)? {
                return write_again(store, &copies);
            }
        }
    }
    Ok(false)
}

/// The changes from the config's owner on to that of `main`, as a hand-over has them.
fn copies(
    config: &VaultConfig,
    sealed: &SealedSnapshotLink,
    main: &VaultSecretKey,
) -> Result<Option<Vec<SealedRotation>>, Error> {
    let vault = &config.vault;
    let Ok(body) = sealed.open(&VaultSealingKeys::derive(main, vault)?) else { return Ok(None) };
    let mut owner = config.owner;
    let mut copies = Vec::new();
    for (generation, copy) in (1..=MAX_ROTATIONS).zip(body.rotations) {
        match SealedRotation::read(&rotation_key(generation), copy, vault) {
            Ok(copy) if copy.rotation.before == owner => {
                owner = copy.rotation.after;
                copies.push(copy);
            }
            _ => return Ok(None),
        }
    }
    Ok((owner == owner_of(main, vault)?).then_some(copies))
}

fn write_again(store: &VaultStore, copies: &[SealedRotation]) -> Result<bool, Error> {
    let mut written = false;
    for copy in copies {
        let key = rotation_key(copy.rotation.generation);
        if store.get(&key, MAX_ROTATION_BYTES).is_ok_and(|bytes| bytes == copy.bytes()) {
            continue;
        }
        store.delete(&key)?;
        store.put_and_read(&key, copy.bytes())?;
        written = true;
    }
    Ok(written)
}

impl Vault {
    /// All changes of the main key, oldest first.
    pub(crate) fn rotations(&self) -> impl Iterator<Item = &VaultRotation> {
        self.succession.rotations.iter().map(|change| &change.rotation)
    }

    /// The problems with the changes of the main key.
    pub(crate) fn check_rotations(&self) -> Result<Vec<SkippedItem>, Error> {
        let mut problems = Vec::new();
        let there = rotations(&self.store, &self.config, &mut problems)?;
        for known in &self.succession.rotations {
            if !there.iter().any(|found| found.hash == known.hash) {
                let path = rotation_key(known.rotation.generation);
                if !problems.iter().any(|problem| problem.path == path) {
                    problems
                        .push(SkippedItem { reason: Error::Missing(path.clone()).named(), path });
                }
            }
        }
        Ok(problems)
    }
}

/// The snapshot links that the newest hand-over names: nothing else that an owner before signed is
/// believed any more.
pub(super) struct TakenOver {
    pub(super) upto: u64,
    pub(super) links: std::collections::HashMap<u64, [u8; 32]>,
}

impl TakenOver {
    /// Reads the list of a hand-over; none if the link is lost.
    pub(super) fn read(
        store: &VaultStore,
        vault: &VaultId,
        head: ChainHead,
    ) -> Result<Option<TakenOver>, Error> {
        let (upto, hash) = head;
        let read = store.get_seen(&snapshot_key(upto), MAX_SNAPSHOT_BYTES);
        let sealed = match read.and_then(|bytes| SealedSnapshotLink::read(upto, bytes, vault)) {
            Ok(sealed) => sealed,
            Err(error) if error.is_damage() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut links: std::collections::HashMap<_, _> = sealed.link.removed.into_iter().collect();
        links.insert(upto, hash);
        Ok((sealed.hash == hash).then_some(TakenOver { upto, links }))
    }

    /// Whether the link of this number and hash is one of those.
    pub(super) fn lacks(&self, number: u64, hash: Option<&[u8; 32]>) -> bool {
        let named = self.links.get(&number);
        number <= self.upto && (named.is_none() || hash.is_some_and(|hash| named != Some(hash)))
    }
}
