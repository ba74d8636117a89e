//! The shares: how much of what a hub has each owner holds, and may hold.
//!
//! An owner is a token, by its name. All clients of a hub without tokens are one owner, whose name
//! is empty. The hub counts from its store when it is opened, and by each commit from then on. So
//! no request looks for what an owner has.

mod rules;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Error;
pub use rules::{OwnShares, ShareKind, ShareRules};

const KINDS: usize = ShareKind::ALL.len();

/// Before the name of an owner, where the store keeps a key that the hub made of a message. No
/// token has such a name.
const MESSAGE_KEY: char = '\u{1}';

/// The tallies of all owners.
pub(crate) struct ShareBook {
    owners: Mutex<HashMap<Arc<str>, Arc<OwnerTally>>>,
    rules: Mutex<ShareRules>,
    /// The sum of all owners, and the limits of the hub.
    sum: Arc<OwnerTally>,
}

/// The holdings of one owner and their limits, by the kind of share.
#[derive(Debug)]
pub(crate) struct OwnerTally {
    pub(crate) owner: Arc<str>,
    held: [AtomicU64; KINDS],
    limits: [AtomicU64; KINDS],
    /// How often something was refused for want of a share.
    refused: [AtomicU64; KINDS],
    /// None: this is the sum.
    sum: Option<Arc<OwnerTally>>,
}

/// One share of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareHeld {
    /// The token; empty: no token was needed.
    pub owner: String,
    /// Its kind.
    pub kind: ShareKind,
    /// How much it holds.
    pub held: u64,
    /// How much it may hold.
    pub limit: u64,
    /// How often it was refused more.
    pub refused: u64,
}

/// A change of what owners hold, of one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShareChanges(HashMap<(Arc<str>, ShareKind), i64>);

impl ShareChanges {
    pub(crate) fn add(&mut self, owner: &str, kind: ShareKind, count: u64) {
        *self.0.entry((owner.into(), kind)).or_default() += count as i64;
    }

    pub(crate) fn remove(&mut self, owner: &str, kind: ShareKind, count: u64) {
        *self.0.entry((owner.into(), kind)).or_default() -= count as i64;
    }

    /// The same of a key, whose owner is given as the store has it.
    pub(crate) fn add_key(&mut self, stored_owner: &str) {
        self.add_keys(stored_owner, 1);
    }

    pub(crate) fn add_keys(&mut self, stored_owner: &str, count: u64) {
        let (owner, kind) = key_owner(stored_owner);
        self.add(owner, kind, count);
    }

    pub(crate) fn remove_key(&mut self, stored_owner: &str) {
        let (owner, kind) = key_owner(stored_owner);
        self.remove(owner, kind, 1);
    }

    /// The keys that an owner, as the store has it, lost so far.
    pub(crate) fn lost_keys(&self, stored_owner: &str) -> u64 {
        let (owner, kind) = key_owner(stored_owner);
        self.lost(owner, kind)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, ShareKind, u64)> {
        let each = self.0.iter();
        each.map(|((owner, kind), count)| (owner.to_string(), *kind, count.unsigned_abs()))
    }

    /// How much more an owner has by now.
    pub(crate) fn of(&self, owner: &str, kind: ShareKind) -> i64 {
        self.0.get(&(Arc::from(owner), kind)).copied().unwrap_or_default()
    }

    /// The same of all owners together.
    pub(crate) fn of_all(&self, kind: ShareKind) -> i64 {
        self.0.iter().filter(|((_, of), _)| *of == kind).map(|(_, change)| change).sum()
    }

    /// How much an owner lost so far.
    pub(crate) fn lost(&self, owner: &str, kind: ShareKind) -> u64 {
        self.of(owner, kind).min(0).unsigned_abs()
    }
}

/// The owner and the kind of a key, by what the store has as its owner.
fn key_owner(stored: &str) -> (&str, ShareKind) {
    match stored.strip_prefix(MESSAGE_KEY) {
        Some(owner) => (owner, ShareKind::MessageKeys),
        None => (stored, ShareKind::Keys),
    }
}

/// The owner of a key as the store has it.
pub(crate) fn stored_key_owner(owner: &Arc<str>, kind: ShareKind) -> Arc<str> {
    match kind {
        ShareKind::MessageKeys => format!("{MESSAGE_KEY}{owner}").into(),
        _ => owner.clone(),
    }
}

impl Default for ShareBook {
    fn default() -> Self {
        let rules = ShareRules::default();
        let sum = OwnerTally::new("".into(), |kind| kind.limit(), None);
        Self { owners: Mutex::default(), rules: Mutex::new(rules), sum: Arc::new(sum) }
    }
}

impl ShareBook {
    /// The entry of an owner, which stays: there are few tokens.
    pub(crate) fn of(&self, owner: &str) -> Arc<OwnerTally> {
        let mut owners = self.owners.lock();
        if let Some(tally) = owners.get(owner) {
            return tally.clone();
        }
        let name: Arc<str> = owner.into();
        let rules = self.rules.lock();
        let limit = |kind| rules.limit(owner, kind);
        let tally = Arc::new(OwnerTally::new(name.clone(), limit, Some(self.sum.clone())));
        owners.insert(name, tally.clone());
        tally
    }

    /// The rules of retention that one maker may make.
    pub(crate) fn rules_of_a_maker(&self) -> usize {
        self.rules.lock().rules_of_a_maker()
    }

    /// Has these rules hold from now on. What an owner has beyond them it keeps.
    pub(crate) fn set_rules(&self, rules: ShareRules) {
        // Both locks in the order of `of`: an owner that comes meanwhile has the new rules.
        let owners = self.owners.lock();
        let mut current = self.rules.lock();
        for (owner, tally) in &*owners {
            ShareKind::ALL.into_iter().for_each(|kind| {
                tally.limits(kind).store(rules.limit(owner, kind), Ordering::Relaxed);
            });
        }
        *current = rules;
    }

    /// Notes what a commit has changed.
    pub(crate) fn apply(&self, changes: &ShareChanges) {
        for ((owner, kind), change) in &changes.0 {
            let tally = self.of(owner);
            match change {
                0 => {}
                1.. => tally.add(*kind, change.unsigned_abs()),
                _ => tally.remove(*kind, change.unsigned_abs()),
            }
        }
    }

    /// How much all owners hold together.
    pub(crate) fn sum(&self, kind: ShareKind) -> u64 {
        self.sum.held(kind)
    }

    /// The shares of which anything is held, or was refused.
    pub(crate) fn all(&self) -> Vec<ShareHeld> {
        let owners: Vec<_> = self.owners.lock().values().cloned().collect();
        let each = owners.iter().flat_map(|tally| {
            ShareKind::ALL.into_iter().map(|kind| ShareHeld {
                owner: tally.owner.to_string(),
                kind,
                held: tally.held(kind),
                limit: tally.limit(kind),
                refused: tally.refused(kind).load(Ordering::Relaxed),
            })
        });
        each.filter(|share| share.held > 0 || share.refused > 0).collect()
    }

    /// The owners that have more of a kind than they may, and by how much: what ages out by number
    /// is their own. If all have more than the hub may, the largest gives it.
    pub(crate) fn beyond(&self, kind: ShareKind) -> Vec<(Arc<str>, u64)> {
        let owners: Vec<_> = self.owners.lock().values().cloned().collect();
        let has_tokens = self.rules.lock().has_tokens();
        let excess = |tally: &Arc<OwnerTally>| {
            let excess = tally.held(kind).saturating_sub(tally.limit(kind));
            // Rows from before there were owners are no token's, and so within no token's part.
            let has_part = !has_tokens || !tally.owner.is_empty();
            (excess > 0 && has_part).then(|| (tally.owner.clone(), excess))
        };
        let own: Vec<_> = owners.iter().filter_map(excess).collect();
        let of_all = self.sum.held(kind).saturating_sub(self.sum.limit(kind));
        if own.is_empty() && of_all > 0 {
            let largest = owners.iter().max_by_key(|tally| tally.held(kind));
            return largest.map(|tally| (tally.owner.clone(), of_all)).into_iter().collect();
        }
        own
    }
}

impl OwnerTally {
    fn new(
        owner: Arc<str>,
        limit: impl Fn(ShareKind) -> u64,
        sum: Option<Arc<OwnerTally>>,
    ) -> Self {
        let limits = ShareKind::ALL.map(|kind| AtomicU64::new(limit(kind)));
        Self { owner, held: Default::default(), limits, refused: Default::default(), sum }
    }

    fn held_of(&self, kind: ShareKind) -> &AtomicU64 {
        of(&self.held, kind)
    }

    fn limits(&self, kind: ShareKind) -> &AtomicU64 {
        of(&self.limits, kind)
    }

    fn refused(&self, kind: ShareKind) -> &AtomicU64 {
        of(&self.refused, kind)
    }

    pub(crate) fn held(&self, kind: ShareKind) -> u64 {
        self.held_of(kind).load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self, kind: ShareKind) -> u64 {
        self.limits(kind).load(Ordering::Relaxed)
    }

    /// Whether the owner may have so many more, where all owners together get `all` more.
    ///
    /// # Errors
    /// [`Error::ShareTaken`] where that is more than its share, [`Error::TooMany`] where it is more
    /// than the hub has, and more than the owner's floor.
    pub(crate) fn check(&self, kind: ShareKind, more: i64, all: i64) -> Result<(), Error> {
        let held = self.held(kind).saturating_add_signed(more);
        let is_full = |sum: &Arc<Self>| sum.held(kind).saturating_add_signed(all) > sum.limit(kind);
        // Four owners that each have a quarter would otherwise leave a fifth nothing.
        if held > kind.floor() && self.sum.as_ref().is_some_and(is_full) {
            return Err(self.refuse(kind, Self::full(kind)));
        }
        if held > self.limit(kind) {
            return Err(self.refuse(kind, self.taken(kind)));
        }
        Ok(())
    }

    /// Counts a refusal.
    fn refuse(&self, kind: ShareKind, error: Error) -> Error {
        self.refused(kind).fetch_add(1, Ordering::Relaxed);
        error
    }

    /// The refusal of a hub that is full.
    fn full(kind: ShareKind) -> Error {
        Error::TooMany { what: kind.what(), limit: kind.limit() }
    }

    /// The refusal of an owner that has its share.
    fn taken(&self, kind: ShareKind) -> Error {
        let (owner, limit) = (self.owner.to_string(), self.limit(kind));
        Error::ShareTaken { owner, what: kind.what(), limit }
    }

    pub(crate) fn add(&self, kind: ShareKind, count: u64) {
        self.held_of(kind).fetch_add(count, Ordering::Relaxed);
        if let Some(sum) = &self.sum {
            sum.add(kind, count);
        }
    }

    pub(crate) fn remove(&self, kind: ShareKind, count: u64) {
        let less = |held: u64| Some(held.saturating_sub(count));
        // A count that went below 0 would refuse the owner everything from then on.
        let before = self.held_of(kind).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        debug_assert!(before >= Ok(count), "{kind:?}: more is given back than was held");
        if let Some(sum) = &self.sum {
            sum.remove(kind, count);
        }
    }

    /// Takes one, in one step with the check: others may take of the same share meanwhile.
    ///
    /// # Errors
    /// As [`OwnerTally::check`].
    pub(crate) fn take(self: &Arc<Self>, kind: ShareKind) -> Result<SharePlace, Error> {
        let Some(held) = self.take_one(kind) else {
            return Err(self.refuse(kind, self.taken(kind)));
        };
        let is_assured = held < kind.floor();
        let is_full = |sum: &Arc<Self>| match is_assured {
            true => {
                sum.add(kind, 1);
                false
            }
            false => sum.take_one(kind).is_none(),
        };
        if self.sum.as_ref().is_some_and(is_full) {
            self.held_of(kind).fetch_sub(1, Ordering::Relaxed);
            return Err(self.refuse(kind, Self::full(kind)));
        }
        Ok(SharePlace { tally: self.clone(), kind, is_left: AtomicBool::new(false) })
    }

    /// Takes one of this tally alone, where it is within its limit; returns how many there were.
    fn take_one(&self, kind: ShareKind) -> Option<u64> {
        let limit = self.limit(kind);
        let more = |held: u64| (held < limit).then_some(held + 1);
        self.held_of(kind).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    /// The same for what is there, whatever the share is.
    pub(crate) fn keep(self: &Arc<Self>, kind: ShareKind) -> SharePlace {
        self.add(kind, 1);
        SharePlace { tally: self.clone(), kind, is_left: AtomicBool::new(false) }
    }

    /// How many messages more may be in flight.
    fn in_flight_room(&self) -> u64 {
        let kind = ShareKind::InFlight;
        let held = self.held(kind);
        let own = self.limit(kind).saturating_sub(held);
        let left = |sum: &Arc<Self>| sum.limit(kind).saturating_sub(sum.held(kind));
        let of_all = self.sum.as_ref().map_or(u64::MAX, left);
        // The others' messages never keep an owner from a few of its own.
        own.min(of_all.max(kind.floor().saturating_sub(held)))
    }

    pub(crate) fn has_in_flight_room(&self) -> bool {
        self.in_flight_room() > 0
    }

    /// Takes room for up to so many messages in flight; returns for how many.
    pub(crate) fn take_in_flight(&self, most: usize) -> usize {
        let room = usize::try_from(self.in_flight_room()).unwrap_or(usize::MAX).min(most);
        self.add(ShareKind::InFlight, room as u64);
        room
    }
}

fn of<T>(all: &[T; KINDS], kind: ShareKind) -> &T {
    let [streams, groups, delayed, keys, messages, sessions, consumers, in_flight] = all;
    match kind {
        ShareKind::Streams => streams,
        ShareKind::GroupStreams => groups,
        ShareKind::Delayed => delayed,
        ShareKind::Keys => keys,
        ShareKind::MessageKeys => messages,
        ShareKind::Sessions => sessions,
        ShareKind::Consumers => consumers,
        ShareKind::InFlight => in_flight,
    }
}

/// One of what an owner holds, given back once: when it is left, at the latest when it is dropped.
#[derive(Debug)]
pub(crate) struct SharePlace {
    tally: Arc<OwnerTally>,
    kind: ShareKind,
    is_left: AtomicBool,
}

impl SharePlace {
    pub(crate) fn leave(&self) {
        if !self.is_left.swap(true, Ordering::Relaxed) {
            self.tally.remove(self.kind, 1);
        }
    }
}

impl Drop for SharePlace {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MIN_OWNER_IN_FLIGHT;

    #[test]
    fn an_owner_has_a_part_and_an_only_one_has_all() {
        let book = ShareBook::default();
        let limit = |owner, kind| book.of(owner).limit(kind);
        assert_eq!(limit("a", ShareKind::Streams), ShareKind::Streams.limit());
        book.set_rules(ShareRules::new(2, HashMap::new()));
        assert_eq!(limit("a", ShareKind::Streams), ShareKind::Streams.limit() / 4);
        let own = OwnShares::default().with(ShareKind::Streams, 7);
        book.set_rules(ShareRules::new(2, HashMap::from([("a".to_owned(), own)])));
        assert_eq!(limit("a", ShareKind::Streams), 7);
        assert_eq!(limit("a", ShareKind::Keys), ShareKind::Keys.limit() / 4);
        assert_eq!(limit("b", ShareKind::Streams), ShareKind::Streams.limit() / 4);
    }

    #[test]
    fn a_refusal_names_whose_share_it_was_and_touches_no_other() {
        let book = ShareBook::default();
        let own = OwnShares::default().with(ShareKind::Consumers, 2);
        book.set_rules(ShareRules::new(2, HashMap::from([("a".to_owned(), own)])));
        let a = book.of("a");
        let places: Vec<_> = (0..2).map(|_| a.take(ShareKind::Consumers).unwrap()).collect();
        let refused = a.take(ShareKind::Consumers).unwrap_err();
        let said = Error::ShareTaken { owner: "a".into(), what: "consumers", limit: 2 };
        assert_eq!((refused, a.held(ShareKind::Consumers)), (said, 2));
        assert!(book.of("b").take(ShareKind::Consumers).is_ok());
        places.iter().for_each(SharePlace::leave);
        drop(places);
        assert_eq!((book.sum(ShareKind::Consumers), a.held(ShareKind::Consumers)), (0, 0));
        assert_eq!(book.all().iter().map(|share| share.refused).sum::<u64>(), 1);
    }

    #[test]
    fn what_is_in_flight_leaves_every_owner_a_few() {
        let book = ShareBook::default();
        book.set_rules(ShareRules::new(9, HashMap::new()));
        let all = ShareKind::InFlight.limit() as usize;
        let mut taken = 0;
        for owner in ["a", "b", "c", "d"] {
            let of_owner = book.of(owner).take_in_flight(usize::MAX);
            assert_eq!(of_owner, all / 4, "{owner}");
            taken += of_owner;
        }
        assert_eq!(taken, all);
        assert_eq!(book.of("e").take_in_flight(usize::MAX), MIN_OWNER_IN_FLIGHT as usize);
        assert!(!book.of("e").has_in_flight_room() && !book.of("a").has_in_flight_room());
        book.of("a").remove(ShareKind::InFlight, 2 * MIN_OWNER_IN_FLIGHT);
        assert_eq!(book.of("a").take_in_flight(1), 1);
    }

    #[test]
    fn four_owners_that_fill_the_hub_leave_a_fifth_its_floor() {
        for kind in
            [ShareKind::Streams, ShareKind::GroupStreams, ShareKind::Delayed, ShareKind::Consumers]
        {
            let book = ShareBook::default();
            let none = OwnShares::default().with(kind, 0);
            book.set_rules(ShareRules::new(9, HashMap::from([("none".to_owned(), none)])));
            for owner in ["a", "b", "c", "d"] {
                let part = (kind.limit() / 4) as i64;
                book.of(owner).check(kind, part, part).unwrap();
                book.of(owner).add(kind, kind.limit() / 4);
            }
            let (fifth, floor, all) = (book.of("e"), kind.floor(), kind.limit());
            assert!((1..=all / 1000).contains(&floor), "{kind:?}: {floor}");
            let by_floor = floor as i64;
            assert_eq!(fifth.check(kind, by_floor, by_floor), Ok(()), "{kind:?}");
            let places: Vec<_> = (0..floor).map(|_| fifth.take(kind).unwrap()).collect();
            let full = Error::TooMany { what: kind.what(), limit: all };
            assert_eq!(fifth.check(kind, 1, 1), Err(full.clone()));
            assert_eq!(fifth.take(kind).unwrap_err(), full);
            assert_eq!((fifth.held(kind), book.sum(kind)), (floor, all + floor));
            drop(places);
            assert_eq!((fifth.held(kind), book.sum(kind)), (0, all));
            let given_back = fifth.check(kind, by_floor + 1, 0);
            assert_eq!(given_back, Ok(()), "another one gives so many back by the same commit");
            // A share that was chosen holds below the floor too.
            let said = Error::ShareTaken { owner: "none".into(), what: kind.what(), limit: 0 };
            assert_eq!(book.of("none").check(kind, 1, 1), Err(said));
        }
    }

    #[test]
    fn what_is_too_much_is_its_owners_and_of_all_the_largest_ones() {
        let book = ShareBook::default();
        let kind = ShareKind::Keys;
        let own = OwnShares::default().with(kind, 5);
        book.set_rules(ShareRules::new(2, HashMap::from([("a".to_owned(), own)])));
        let mut changes = ShareChanges::default();
        (0..8).for_each(|_| changes.add_key("a"));
        (0..9).for_each(|_| changes.add_key("b"));
        changes.add_key(&stored_key_owner(&"a".into(), ShareKind::MessageKeys));
        book.apply(&changes);
        assert_eq!(book.beyond(kind), [("a".into(), 3)]);
        assert_eq!(book.of("a").held(ShareKind::MessageKeys), 1);
        let mut changes = ShareChanges::default();
        (0..3).for_each(|_| changes.remove_key("a"));
        assert_eq!((changes.lost("a", kind), changes.lost("b", kind)), (3, 0));
        book.apply(&changes);
        assert_eq!(book.beyond(kind), []);
        book.of("b").add(kind, kind.limit() / 5);
        book.of("c").add(kind, kind.limit() / 5 * 4);
        book.of("c").limits(kind).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(book.beyond(kind), [("c".into(), 14)]);
    }

    #[test]
    fn what_was_nobodys_before_there_were_tokens_has_no_part_to_pass() {
        let (book, kind) = (ShareBook::default(), ShareKind::MessageKeys);
        book.of("").add(kind, kind.limit());
        book.set_rules(ShareRules::new(2, HashMap::new()));
        assert_eq!(book.beyond(kind), [], "it is more than a token's part");
        book.of("a").add(kind, 3);
        assert_eq!(book.beyond(kind), [("".into(), 3)], "it goes where the hub has too much");
    }
}
