//! Links that may name data and cannot be read just now: nothing is removed while there is one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Vault;
use super::chain::{ChainHead, snapshot_of};
use super::ledger::SnapshotChain;
use super::trust::SignerKey;
use crate::Error;
use crate::format::header::{ObjectHeader, ObjectKind, VaultId};
use crate::format::pack::ObjectHash;
use crate::format::roster::roster_key;
use crate::format::snapshot::{HANDOVER, SealedSnapshotLink, SignerId};
use crate::limits::MAX_CHAIN_READINGS;
use crate::put::SkippedItem;
use crate::wire::VaultFieldReader;

/// How many places an error names.
const NAMED: usize = 8;
/// In the place of a hash: the number was given up, and its hash is not known.
pub(crate) const GIVEN_UP: ObjectHash = [0; 32];

/// Numbers under which snapshots may stand that nobody can read just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadLink {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: String,
    /// The hash of the last of them, where another link names it.
    pub(crate) hash: Option<ObjectHash>,
    /// Whether only a link tells of it that the chain does not lead to. A writer can make one.
    pub(crate) is_hearsay: bool,
    /// Whether another link stands under the number, which is whole. It is not given up with this.
    pub(crate) is_replaced: bool,
}

impl UnreadLink {
    pub(super) fn at(number: u64, reason: String) -> UnreadLink {
        UnreadLink {
            from: number,
            to: number,
            reason,
            hash: None,
            is_hearsay: false,
            is_replaced: false,
        }
    }

    pub(super) fn has(&self, number: u64) -> bool {
        (self.from..=self.to).contains(&number)
    }

    /// Whether every number of it was given up.
    fn is_in(&self, give_up: &BTreeSet<u64>) -> bool {
        let mut numbers = (self.from..=self.to).take(give_up.len() + 1);
        numbers.all(|number| give_up.contains(&number))
    }

    pub(super) fn shown(&self) -> String {
        match self.from == self.to {
            true => format!("{} ({})", self.from, self.reason),
            false => format!("{} to {} ({})", self.from, self.to, self.reason),
        }
    }
}

/// A link of the chain that is believed.
pub(crate) struct LedgerLink {
    pub(crate) number: u64,
    pub(crate) hash: ObjectHash,
    pub(crate) is_handover: bool,
    /// The number of the list of slots that it names, if it is the owner's.
    roster: u64,
    /// None for a prune, and for a writer's link whose record opens for nobody.
    pub(crate) snapshot: Option<super::Snapshot>,
}

/// Every link of the store that may name data, read without passing over any.
pub(crate) struct SnapshotLedger {
    pub(crate) links: Vec<LedgerLink>,
    pub(crate) loose: Vec<LedgerLink>,
    /// Numbers that were given up and are none of the chain, each with its hash as far as known.
    pub(crate) lost: Vec<ChainHead>,
    /// Lost links that were given up, under whose numbers other links stand that are whole.
    pub(crate) replaced: Vec<ChainHead>,
    /// The numbers that were given up, without those of the links that stay.
    numbers: BTreeSet<u64>,
    /// The items given up, and why they could not be had.
    pub(crate) given_up: Vec<SkippedItem>,
    pub(crate) chain: SnapshotChain,
}

impl SnapshotLedger {
    /// The snapshots of the chain, oldest first.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &super::Snapshot> {
        self.links.iter().filter_map(|link| link.snapshot.as_ref())
    }

    /// Whether the snapshot of a number was given up.
    pub(crate) fn gives_up(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }
}

impl Vault {
    /// Reads every link, and refuses while one of them may name data and cannot be read, unless
    /// its number is one of `give_up`.
    pub(crate) fn ledger(&self, give_up: &BTreeSet<u64>) -> Result<SnapshotLedger, Error> {
        let mut read = self.try_ledger(give_up);
        for _ in 1..MAX_CHAIN_READINGS {
            match &read {
                Err(Error::Missing(_) | Error::Unread(_)) => self.store.look_anew(),
                _ => break,
            }
            match &read {
                // Another prune has removed a link since the list: the next walk knows of it.
                Err(Error::Missing(_)) => read = self.try_ledger(give_up),
                // The owner has signed a newer list since this one was read.
                Err(Error::Unread(_)) if self.newest_roster()? > self.roster().number => {
                    read = self.try_ledger(give_up);
                }
                _ => break,
            }
        }
        read
    }

    fn try_ledger(&self, give_up: &BTreeSet<u64>) -> Result<SnapshotLedger, Error> {
        let _look = self.store.look();
        // A writer that another machine has added since is a stranger to an older list.
        self.renew_roster()?;
        let mut seen = Vec::new();
        // That the newest is missing tells only who has seen it.
        if self.state.is_some() {
            seen.extend(self.known_head()?);
            seen.extend(self.behind()?.standing);
        }
        let mut chain = self.walk(None)?;
        seen.into_iter().for_each(|seen| chain.name_seen(seen));
        self.warn(chain.problems.drain(..));
        if chain.rotated {
            return Err(Error::Rotated);
        }
        let signers = self.signers()?;
        let (mut links, mut loose) = (Vec::new(), Vec::new());
        let mut unread = std::mem::take(&mut chain.unread);
        for (numbers, list) in [(&chain.links, &mut links), (&chain.loose, &mut loose)] {
            for &number in numbers {
                match self.ledger_link(number, &signers) {
                    Ok(link) => list.push(link),
                    Err(error @ Error::Missing(_)) => return Err(error),
                    Err(error) if error.is_damage() => {
                        let hash = chain.vouched.iter().find(|(at, _)| *at == number);
                        let hash = hash.map(|(_, hash)| *hash);
                        unread.push(UnreadLink { hash, ..UnreadLink::at(number, error.named()) });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.check_named_roster(links.iter().chain(&loose))?;
        let kept: Vec<String> =
            unread.iter().filter(|one| !one.is_in(give_up)).map(UnreadLink::shown).collect();
        if !kept.is_empty() {
            return Err(Error::unread(&kept));
        }
        let mut ledger = SnapshotLedger {
            links,
            loose,
            lost: Vec::new(),
            replaced: Vec::new(),
            numbers: give_up.clone(),
            given_up: Vec::new(),
            chain,
        };
        self.name_given_up(&unread, give_up, &mut ledger)?;
        Ok(ledger)
    }

    /// Refuses a list of slots that is older than one that the owner's links name: it may lack a
    /// writer, whose snapshots would count as a stranger's.
    fn check_named_roster<'l>(
        &self,
        links: impl Iterator<Item = &'l LedgerLink>,
    ) -> Result<(), Error> {
        let named = links.map(|link| link.roster).max().unwrap_or_default();
        if named <= self.roster().number {
            return Ok(());
        }
        let reason = "missing, or rolled back: `sealane vault repair` signs a new one";
        Err(Error::Unread(format!("the owner's list of slots `{}` ({reason})", roster_key(named))))
    }

    fn ledger_link(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<LedgerLink, Error> {
        let sealed = self.load(number, signers)?;
        let is_handover = sealed.link.signer == HANDOVER;
        let hash = sealed.hash;
        let (mut roster, mut snapshot) = (0, None);
        match self.open_body(&sealed) {
            Ok(body) => {
                roster = if sealed.link.signer == SignerId::default() { body.roster } else { 0 };
                snapshot = (!body.prune).then(|| snapshot_of(&sealed, body));
            }
            // The writer signed it so: there is nothing that a whole object would tell.
            Err(error) if error.is_damage() && !sealed.link.is_owners() => {
                let path = format!("snapshot {number}");
                self.warn([SkippedItem { path, reason: error.named() }]);
            }
            Err(error) => return Err(error),
        }
        Ok(LedgerLink { number, hash, is_handover, roster, snapshot })
    }

    /// Tells of each number that was given up what is lost with it.
    fn name_given_up(
        &self,
        unread: &[UnreadLink],
        give_up: &BTreeSet<u64>,
        ledger: &mut SnapshotLedger,
    ) -> Result<(), Error> {
        let seen = self.seen_head()?;
        for &number in give_up {
            let path = format!("snapshot {number}");
            let place = unread.iter().find(|one| one.has(number));
            if let Some(place) = place {
                let last = place.hash.filter(|_| place.to == number);
                let seen = seen.filter(|seen| seen.0 == number).map(|seen| seen.1);
                let head = (number, last.or(seen).unwrap_or(GIVEN_UP));
                if place.is_replaced {
                    ledger.numbers.remove(&number);
                    ledger.replaced.push(head);
                } else {
                    ledger.lost.push(head);
                }
                ledger.given_up.push(SkippedItem { path, reason: place.reason.clone() });
                continue;
            }
            let all = ledger.links.iter().chain(&ledger.loose);
            let found = all.filter(|link| link.number == number).find_map(|link| {
                let snapshot = link.snapshot.as_ref()?;
                let files = snapshot.counts.files;
                Some(format!("{files} files of {}", snapshot.source.escape_debug()))
            });
            let reason = found.ok_or_else(|| Error::NoSnapshot(number.to_string()))?;
            if ledger.loose.iter().any(|link| link.number == number) {
                ledger.lost.push((number, GIVEN_UP));
            }
            ledger.given_up.push(SkippedItem { path, reason });
        }
        Ok(())
    }
}

impl Error {
    /// Names the places that cannot be read, not more of them than a person reads.
    pub(crate) fn unread(places: &[String]) -> Error {
        let mut what = places.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        if places.len() > NAMED {
            what.push_str(&format!(" and {} more", places.len() - NAMED));
        }
        Error::Unread(format!("snapshot {what}"))
    }
}

/// Whether bytes that are no whole link say of themselves that they are one of this vault.
pub(super) fn claims_vault(number: u64, bytes: &[u8], vault: &VaultId) -> bool {
    let key = crate::format::snapshot::snapshot_key(number);
    let mut reader = VaultFieldReader::new("a snapshot", bytes);
    ObjectHeader::read(&mut reader, &key, ObjectKind::Snapshot, Some(vault)).is_ok()
}

/// Whether a link of an unknown signer is one of a known signer whose name in it was changed: it
/// verifies once that name is put back.
pub(super) fn is_signed_by_another(
    sealed: &SealedSnapshotLink,
    owner: &[u8; 32],
    signers: &HashMap<SignerId, SignerKey>,
) -> bool {
    let owners = [SignerId::default(), HANDOVER].map(|id| (id, *owner));
    let writers = signers.iter().map(|(id, signer)| (*id, signer.verifying));
    owners.into_iter().chain(writers).any(|(id, key)| sealed.verifies_as(id, &key))
}

/// The hash of each link that another one names as the one before it.
pub(super) fn is_known(previous: &ObjectHash, hashes: &BTreeMap<ObjectHash, u64>) -> bool {
    *previous == GIVEN_UP || hashes.contains_key(previous)
}
