//! The ledger of a vault's chain: objects in, verdicts out.
//!
//! ```text
//!  number, bytes ─► is it a link, and whose? ─► which follow each other? ─► SnapshotChain
//!                   ChainLedger::add            ChainLedger::chain
//! ```
//!
//! Nothing here reads a store, a clock or a file, so that equal objects make an equal chain. How a
//! store is read stands in [`super::walk`]; what is done about a store that is behind, in
//! [`super::lag`].

mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::steps::ChainWalk;
use super::chain::ChainHead;
use super::succession::{OwnerSuccession, TakenOver};
use super::trust::SignerKey;
use super::unread::{GIVEN_UP, UnreadLink, claims_vault, is_known, is_signed_by_another};
use crate::Error;
use crate::format::header::VaultId;
use crate::format::pack::ObjectHash;
use crate::format::snapshot::{HANDOVER, SealedSnapshotLink, SignerId, snapshot_key};
use crate::put::SkippedItem;

/// The right by which a link is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainStanding {
    Owner,
    Writer,
    /// A writer's that the owner has removed, behind the last link that is believed of it.
    Ended,
    /// Nobody's who is believed: it holds its place in the chain, and is no snapshot.
    Nobody,
}

/// A link, without its sealed part.
#[derive(Debug, Clone)]
struct ChainLink {
    hash: ObjectHash,
    previous: ObjectHash,
    standing: ChainStanding,
}

/// The kind of an object that is no link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForeignKind {
    /// An owner before signed it, whose word does not count there: it was never a link.
    Forged,
    /// It says that it is a link of this vault, and is damaged.
    Claims,
    /// Neither.
    Stray,
}

/// The objects of the chain by their numbers.
type ChainPositions = BTreeMap<u64, ChainPosition>;

/// The object under a number.
enum ChainPosition {
    Link(ChainLink),
    /// An object that is no link of this vault, or damaged.
    Foreign(ForeignKind),
    /// Nothing that holds a place: the owner did not take it over.
    Nothing,
    /// The owner removed it, and said so.
    Removed(ObjectHash),
}

/// The chain as a walk found it.
#[derive(Debug, Default)]
pub(crate) struct SnapshotChain {
    pub(crate) head: Option<ChainHead>,
    /// The newest link that a key of the vault signed, or the one that the walk began with; none
    /// if that is lost and only its hash is known.
    pub(crate) standing: Option<ChainHead>,
    /// The first number behind the head that nothing takes.
    pub(crate) next: u64,
    /// Numbers of the links that are believed, oldest first.
    pub(crate) links: Vec<u64>,
    /// Numbers of links that are believed and that no link of the chain leads to.
    pub(crate) loose: Vec<u64>,
    /// Where a snapshot may stand that cannot be read: missing, short or damaged.
    pub(crate) unread: Vec<UnreadLink>,
    /// Links of writers that were removed, behind the last that is believed of each.
    pub(crate) ended: Vec<ChainHead>,
    /// Whether the owner's links name some that are not there.
    pub(crate) broken: Option<u64>,
    /// Whether the owner has handed over to a main key that this handle does not know.
    pub(crate) rotated: bool,
    /// Every link that the store has whole, whoever signed it.
    whole: Vec<ChainHead>,
    /// Every link that belongs to the chain or may come to, with its hash: what a hand-over names.
    pub(crate) vouched: Vec<ChainHead>,
    /// The snapshots that the owner has removed, as the newest link that names them has it.
    pub(crate) removed: Vec<(u64, ObjectHash)>,
    /// The link that says so.
    removed_by: u64,
    /// Objects that are not part of the chain, and links that are missing.
    pub(crate) problems: Vec<SkippedItem>,
}

/// The keys by which links are judged.
pub(super) struct LedgerTrust<'a> {
    pub(super) vault: &'a VaultId,
    pub(super) succession: &'a OwnerSuccession,
    pub(super) signers: &'a HashMap<SignerId, SignerKey>,
}

impl LedgerTrust<'_> {
    /// A link and the right by which it is believed.
    pub(super) fn judge(
        &self,
        number: u64,
        bytes: Vec<u8>,
    ) -> Result<(SealedSnapshotLink, ChainStanding), Error> {
        let sealed = SealedSnapshotLink::read(number, bytes, self.vault)?;
        let standing = self.standing(&sealed)?;
        Ok((sealed, standing))
    }

    fn standing(&self, sealed: &SealedSnapshotLink) -> Result<ChainStanding, Error> {
        let number = sealed.link.number;
        let owner = self.succession.owner_at(number);
        if sealed.link.is_owners() {
            sealed.check_signature(&owner)?;
            self.check_handover(sealed)?;
            return Ok(ChainStanding::Owner);
        }
        let Some(signer) = self.signers.get(&sealed.link.signer) else {
            // A flipped bit in the signer's name must not make a snapshot a stranger's.
            return match is_signed_by_another(sealed, &owner, self.signers) {
                true => Err(Error::Signature(snapshot_key(number))),
                false => Ok(ChainStanding::Nobody),
            };
        };
        sealed.check_signature(&signer.verifying)?;
        let is_believed = number <= signer.until;
        Ok(if is_believed { ChainStanding::Writer } else { ChainStanding::Ended })
    }

    /// Refuses a hand-over that an owner signed beside the one with which it went.
    fn check_handover(&self, sealed: &SealedSnapshotLink) -> Result<(), Error> {
        let handovers = self.succession.handovers();
        let number = sealed.link.number;
        let past = handovers.last().is_some_and(|(last, _)| number <= *last);
        if sealed.link.signer == HANDOVER && past && !handovers.contains(&(number, sealed.hash)) {
            return Err(Error::Signature(snapshot_key(number)));
        }
        Ok(())
    }

    /// Whether one of the owners signed a link, now or before.
    fn is_an_owners(&self, sealed: &SealedSnapshotLink) -> bool {
        self.succession.owners().iter().any(|key| sealed.check_signature(key).is_ok())
    }
}

/// The objects of `snapshots/`, judged one by one.
pub(super) struct ChainLedger<'a> {
    trust: LedgerTrust<'a>,
    /// The links that the newest hand-over names.
    taken_over: Option<TakenOver>,
    /// The head that was seen, from which on the chain is judged.
    from: Option<ChainHead>,
    there: ChainPositions,
    chain: SnapshotChain,
}

impl<'a> ChainLedger<'a> {
    pub(super) fn new(
        trust: LedgerTrust<'a>,
        taken_over: Option<TakenOver>,
        from: Option<ChainHead>,
    ) -> ChainLedger<'a> {
        let (there, chain) = (ChainPositions::new(), SnapshotChain::default());
        ChainLedger { trust, taken_over, from, there, chain }
    }

    /// The first number that is judged.
    pub(super) fn first(&self) -> u64 {
        self.from.map_or(1, |(number, _)| number)
    }

    /// Whether the object of a number was judged.
    pub(super) fn has(&self, number: u64) -> bool {
        self.there.contains_key(&number)
    }

    /// Forgets the objects that a newer listing does not show.
    pub(super) fn retain(&mut self, listed: &BTreeSet<u64>) {
        let gone: Vec<u64> = self.there.keys().copied().filter(|at| !listed.contains(at)).collect();
        self.there.retain(|number, _| listed.contains(number));
        let gone: Vec<String> = gone.into_iter().map(snapshot_key).collect();
        self.chain.problems.retain(|problem| !gone.contains(&problem.path));
    }

    /// Names an object that has no number.
    pub(super) fn strange(&mut self, key: &str) {
        self.chain.problem(key, "it is no link of the chain");
    }

    /// Judges the object of a number: its bytes, or why they cannot be had. Gives whether it is a
    /// link.
    pub(super) fn add(&mut self, number: u64, bytes: Result<Vec<u8>, Error>) -> bool {
        let lacks = |hash| self.taken_over.as_ref().is_some_and(|taken| taken.lacks(number, hash));
        let claims =
            bytes.as_ref().is_ok_and(|bytes| claims_vault(number, bytes, self.trust.vault));
        let read =
            bytes.and_then(|bytes| SealedSnapshotLink::read(number, bytes, self.trust.vault));
        let judged = match read {
            Ok(sealed) => match self.trust.standing(&sealed) {
                Ok(standing) => Ok((sealed, standing)),
                Err(error) => Err((error, self.trust.is_an_owners(&sealed))),
            },
            Err(error) => Err((error, false)),
        };
        let at = match judged {
            Ok((sealed, _)) if lacks(Some(&sealed.hash)) => {
                self.chain.problem(&snapshot_key(number), NOT_TAKEN_OVER);
                ChainPosition::Nothing
            }
            Ok((sealed, standing)) => ChainPosition::Link(self.link(&sealed, standing)),
            Err((error, is_an_owners)) => {
                let is_nothing = lacks(None);
                self.chain.problem(&snapshot_key(number), &error.named());
                match is_an_owners {
                    _ if is_nothing => ChainPosition::Nothing,
                    true => ChainPosition::Foreign(ForeignKind::Forged),
                    false if claims => ChainPosition::Foreign(ForeignKind::Claims),
                    false => ChainPosition::Foreign(ForeignKind::Stray),
                }
            }
        };
        let is_link = matches!(at, ChainPosition::Link(_));
        self.there.insert(number, at);
        is_link
    }

    fn link(&mut self, sealed: &SealedSnapshotLink, standing: ChainStanding) -> ChainLink {
        let link = &sealed.link;
        let key = snapshot_key(link.number);
        let chain = &mut self.chain;
        if standing == ChainStanding::Nobody {
            chain.problem(&key, "its signer is not believed: it is no snapshot");
        }
        if standing == ChainStanding::Ended {
            chain.ended.push((link.number, sealed.hash));
        }
        if link.signer == HANDOVER {
            let handovers = self.trust.succession.handovers();
            chain.rotated |= !handovers.contains(&(link.number, sealed.hash));
        } else if standing == ChainStanding::Owner {
            if !link.removed.is_empty() && link.number >= chain.removed_by {
                chain.removed_by = link.number;
                chain.removed.clone_from(&link.removed);
            }
        } else if !link.removed.is_empty() {
            chain.problem(&key, "it names removed snapshots, which only the owner may");
        }
        ChainLink { hash: sealed.hash, previous: link.previous, standing }
    }

    /// The chain that the objects make.
    ///
    /// A link belongs to the chain if it names the hash of the one before it and nothing free lies
    /// between them. The owner's links vouch for what they name. Everything else is skipped: it
    /// costs nobody anything but a name in [`SnapshotChain::problems`].
    ///
    /// # Errors
    /// [`Error::RolledBack`] and [`Error::Forked`] of the head that was seen.
    pub(super) fn chain(self) -> Result<SnapshotChain, Error> {
        let first = self.first();
        let ChainLedger { trust, from, mut there, mut chain, .. } = self;
        there.retain(|_, at| !matches!(at, ChainPosition::Nothing));
        if let Some(seen) = from {
            start(seen, &there, &mut chain)?;
        }
        for (number, hash) in &chain.removed {
            if *number >= first {
                there.entry(*number).or_insert(ChainPosition::Removed(*hash));
            }
        }
        let lost = lost_handover(trust.succession, first, &mut there, &mut chain);
        let positions = ChainWalk::new(from.unwrap_or_default()).run(&there, &mut chain);
        chain.head = positions.last().copied().filter(|(number, _)| *number > 0);
        // A link that nobody of the vault signed may be taken away again by anybody.
        let is_signed = |(number, _): &&ChainHead| match there.get(number) {
            Some(ChainPosition::Link(found)) => found.standing != ChainStanding::Nobody,
            _ => true,
        };
        let signed = positions.iter().rev().find(is_signed).or(positions.first()).copied();
        chain.standing = signed.filter(|(number, _)| *number > 0 && lost != Some(*number));
        name_unread(&there, &positions, &mut chain);
        let believed = |number: &u64| match there.get(number) {
            Some(ChainPosition::Link(found)) => found.standing.is_believed(),
            _ => false,
        };
        let numbers = positions.iter().map(|(number, _)| *number);
        chain.links = numbers.filter(|number| believed(number)).collect();
        chain.loose.retain(|number| believed(number));
        // If the chain does not lead to a link, that link holds no place in it when it goes.
        for ended in chain.ended.iter_mut().filter(|ended| !positions.contains(ended)) {
            ended.1 = GIVEN_UP;
        }
        chain.vouched = vouched(&positions, &chain.loose, &there);
        let whole = there.iter().filter_map(|(number, at)| match at {
            ChainPosition::Link(found) => Some((*number, found.hash)),
            _ => None,
        });
        chain.whole = whole.collect();
        Ok(chain)
    }
}

/// Gives each hand-over its place, and the number of the last one that is lost. The list of slots
/// tells of it, and nothing may take its place: what the new owner signs does not count there.
fn lost_handover(
    succession: &OwnerSuccession,
    first: u64,
    there: &mut ChainPositions,
    chain: &mut SnapshotChain,
) -> Option<u64> {
    let mut lost = None;
    for &(number, hash) in succession.handovers().iter().filter(|(at, _)| *at >= first) {
        let held = there.get(&number);
        if held.is_none() {
            chain.missing_link(number, Some(hash));
            chain.broken.get_or_insert(number);
            lost = Some(number);
        }
        // A prune that gave it up may have known its number alone.
        if matches!(held, None | Some(ChainPosition::Removed(_))) {
            there.insert(number, ChainPosition::Removed(hash));
        }
    }
    lost
}

const NOT_TAKEN_OVER: &str =
    "the owner did not name it when the main key was changed: it is no link";

/// The links of a chain and those that are loose. Of a link that is lost the hash stands in the one
/// behind it.
fn vouched(positions: &[ChainHead], loose: &[u64], there: &ChainPositions) -> Vec<ChainHead> {
    let mut vouched: BTreeMap<u64, ObjectHash> = BTreeMap::new();
    let mut before = ChainHead::default();
    for &(number, hash) in positions.iter().filter(|(number, _)| *number > 0) {
        if let Some(ChainPosition::Link(found)) = there.get(&number)
            && found.previous != before.1
        {
            vouched.entry(number - 1).or_insert(found.previous);
        }
        vouched.insert(number, hash);
        before = (number, hash);
    }
    for number in loose {
        if let Some(ChainPosition::Link(found)) = there.get(number) {
            vouched.insert(*number, found.hash);
        }
    }
    vouched.into_iter().collect()
}

/// Compares the store with a head that was seen.
fn start(seen: ChainHead, there: &ChainPositions, chain: &mut SnapshotChain) -> Result<(), Error> {
    let (number, hash) = seen;
    let follows =
        |at: &ChainPosition| matches!(at, ChainPosition::Link(found) if found.previous == hash);
    match there.get(&number) {
        Some(ChainPosition::Link(found)) if found.hash == hash => Ok(()),
        // It was given up, and the other one stands in its place.
        Some(ChainPosition::Link(_)) if is_removed(&chain.removed, seen) => Ok(()),
        Some(ChainPosition::Link(found)) if found.standing.is_believed() => {
            Err(Error::Forked(number))
        }
        // Its place in the chain is known; what it held is lost, and named already.
        Some(_) => Ok(()),
        None if is_removed(&chain.removed, seen) => Ok(()),
        None if there.values().any(follows) => {
            chain.broken = Some(number);
            chain.missing_link(number, Some(hash));
            Ok(())
        }
        None => {
            // The caller of the walk says what is there instead.
            Err(Error::RolledBack { seen: number, found: 0, head: String::new() })
        }
    }
}

/// Whether the owner has removed a link, or given its number up.
fn is_removed(removed: &[ChainHead], (number, hash): ChainHead) -> bool {
    removed.contains(&(number, hash)) || removed.contains(&(number, GIVEN_UP))
}

/// Names the numbers under which a snapshot may stand that cannot be read.
///
/// An object that nobody can read may be one if it stands where the chain has a place for it, or
/// says that it is a link of this vault. A link that is missing may be one if another that is
/// believed names its hash.
fn name_unread(there: &ChainPositions, positions: &[ChainHead], chain: &mut SnapshotChain) {
    let mut hashes: BTreeMap<ObjectHash, u64> =
        positions.iter().map(|(number, hash)| (*hash, *number)).collect();
    for (number, at) in there {
        if let ChainPosition::Link(found) = at {
            hashes.insert(found.hash, *number);
        }
    }
    let given_up: BTreeSet<u64> = chain.removed.iter().map(|(number, _)| *number).collect();
    for (&number, at) in there {
        let is_here = match at {
            ChainPosition::Foreign(ForeignKind::Claims) => true,
            ChainPosition::Foreign(ForeignKind::Stray) => number < chain.next,
            _ => false,
        };
        if is_here && !given_up.contains(&number) {
            let key = snapshot_key(number);
            let named = chain.problems.iter().find(|problem| problem.path == key);
            let reason = named.map(|problem| problem.reason.clone()).unwrap_or_default();
            let position = positions.iter().find(|(at, _)| *at == number);
            let hash = position.map(|(_, hash)| *hash);
            chain.unread.push(UnreadLink { hash, ..UnreadLink::at(number, reason) });
        }
        let ChainPosition::Link(found) = at else { continue };
        let before = number.saturating_sub(1);
        let is_free = match there.get(&before) {
            // A stranger can lay a whole link over one that has gone.
            Some(ChainPosition::Link(held)) => held.standing == ChainStanding::Nobody,
            Some(ChainPosition::Removed(_)) => false,
            _ => true,
        };
        let is_named = chain.unread.iter().any(|one| one.has(before));
        let is_behind = positions.first().is_none_or(|(first, _)| before > *first);
        if is_free && is_behind && found.standing.is_believed() && !given_up.contains(&before) {
            if is_known(&found.previous, &hashes) {
                continue;
            }
            match is_named {
                true => chain.unread.iter_mut().filter(|one| one.to == before).for_each(|one| {
                    one.hash = one.hash.or(Some(found.previous));
                }),
                false => chain.unread.push(UnreadLink {
                    hash: Some(found.previous),
                    is_hearsay: true,
                    ..UnreadLink::at(before, Error::Chain(before).named())
                }),
            }
        }
    }
}

impl ChainStanding {
    fn is_believed(self) -> bool {
        matches!(self, ChainStanding::Owner | ChainStanding::Writer)
    }
}

impl SnapshotChain {
    fn problem(&mut self, key: &str, reason: &str) {
        self.problems.push(SkippedItem { path: key.to_owned(), reason: reason.to_owned() });
    }

    /// Names one link that is missing.
    fn missing_link(&mut self, number: u64, hash: Option<ObjectHash>) {
        self.missing(number, number);
        if let Some(named) = self.unread.last_mut() {
            named.hash = hash;
        }
    }

    /// Names a lost link in whose place another one stands that is whole.
    fn replaced(&mut self, number: u64, hash: ObjectHash) {
        let reason = format!("{}; another link stands in its place", Error::Chain(number).named());
        self.problem(&snapshot_key(number), &reason);
        let hash = Some(hash);
        self.unread.push(UnreadLink { hash, is_replaced: true, ..UnreadLink::at(number, reason) });
    }

    /// Names a link that was seen here, unless it belongs to the chain or was removed.
    pub(super) fn name_seen(&mut self, seen: ChainHead) {
        let (number, hash) = seen;
        if number == 0 || self.whole.contains(&seen) || is_removed(&self.removed, seen) {
            return;
        }
        match self.unread.iter_mut().find(|one| one.has(number)) {
            Some(named) => {
                named.is_hearsay = false;
                if named.to == number {
                    named.hash = named.hash.or(Some(hash));
                }
            }
            None => {
                let hash = Some(hash);
                let reason = Error::Chain(number).named();
                self.unread.push(UnreadLink { hash, ..UnreadLink::at(number, reason) });
            }
        }
    }

    /// Names what is missing between two numbers, as one.
    fn missing(&mut self, from: u64, to: u64) {
        let path = if from == to {
            snapshot_key(from)
        } else {
            format!("{} to {to:010}", snapshot_key(from))
        };
        let reason = Error::Chain(from).named();
        self.problem(&path, &reason);
        self.unread.push(UnreadLink { from, ..UnreadLink::at(to, reason) });
    }
}
