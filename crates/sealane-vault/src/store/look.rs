//! The listings of a bucket that count for a while: one command asks for the same ones many times.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ListedObject;
use crate::limits::MAX_LOOK_MS;

/// Objects that are listed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ListingGroup {
    Condemned,
    Index,
    Keys,
    Packs,
    /// Everything behind the packs in the order of keys: few objects of many kinds.
    Tail,
}

/// The kinds of objects of the tail. A server gives keys in their order.
const TAIL: [&str; 5] = ["probe/", "reports/", "roster/", "rotations/", "snapshots/"];
/// The first key that may come behind all packs.
pub(super) const TAIL_FROM: &str = "packs0";

impl ListingGroup {
    /// The group of a key or of a prefix.
    pub(super) fn of(key: &str) -> Option<ListingGroup> {
        let (kind, _) = key.split_at_checked(key.find('/')? + 1)?;
        match kind {
            "condemned/" => Some(ListingGroup::Condemned),
            "index/" => Some(ListingGroup::Index),
            "keys/" => Some(ListingGroup::Keys),
            "packs/" => Some(ListingGroup::Packs),
            _ => TAIL.contains(&kind).then_some(ListingGroup::Tail),
        }
    }
}

/// One group as it was listed.
#[derive(Debug)]
struct ListedGroup {
    at: Instant,
    objects: Vec<ListedObject>,
}

#[derive(Debug, Default)]
struct StoreLookState {
    /// Looks that have begun and not ended.
    open: usize,
    groups: BTreeMap<ListingGroup, ListedGroup>,
    /// Whether the tail is too long to be listed at once.
    is_long: bool,
}

/// The listings of one bucket.
#[derive(Debug, Default)]
pub(crate) struct StoreLook(Mutex<StoreLookState>);

impl StoreLook {
    fn state(&self) -> MutexGuard<'_, StoreLookState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        self.state().open += 1;
    }

    pub(super) fn end(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            state.groups.clear();
        }
    }

    pub(super) fn forget(&self) {
        self.state().groups.clear();
    }

    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.open = 0;
        state.groups.clear();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().open > 0
    }

    /// Whether the tail is listed at once.
    pub(super) fn takes_tail(&self) -> bool {
        !self.state().is_long
    }

    /// The tail has too many objects: from now on each kind is listed by itself.
    pub(super) fn tail_is_long(&self) {
        self.state().is_long = true;
    }

    /// Forgets the listing that lacks what this store has written under a key.
    pub(super) fn wrote(&self, key: &str) {
        // The objects that test a server are looked for once, before they are written.
        if key.starts_with("probe/") {
            return;
        }
        if let Some(group) = ListingGroup::of(key) {
            self.state().groups.remove(&group);
        }
    }

    /// Keeps a listing as long as a look lasts.
    pub(super) fn keep(&self, group: ListingGroup, objects: &[ListedObject]) {
        let mut state = self.state();
        if state.open > 0 {
            let (at, objects) = (Instant::now(), objects.to_vec());
            state.groups.insert(group, ListedGroup { at, objects });
        }
    }

    /// The objects below a prefix, if they were listed within this look.
    pub(super) fn below(&self, prefix: &str) -> Option<Vec<ListedObject>> {
        self.with(ListingGroup::of(prefix)?, |objects| {
            objects.iter().filter(|object| object.key.starts_with(prefix)).cloned().collect()
        })
    }

    /// An object, if it was listed within this look.
    pub(super) fn object(&self, key: &str) -> Option<ListedObject> {
        self.with(ListingGroup::of(key)?, |objects| {
            let found = objects.binary_search_by(|object| object.key.as_str().cmp(key)).ok()?;
            objects.get(found).cloned()
        })?
    }

    /// Whether an object is there; none if its kind was not listed within this look.
    pub(super) fn has(&self, key: &str) -> Option<bool> {
        self.with(ListingGroup::of(key)?, |objects| {
            objects.binary_search_by(|object| object.key.as_str().cmp(key)).is_ok()
        })
    }

    fn with<T>(&self, group: ListingGroup, take: impl Fn(&[ListedObject]) -> T) -> Option<T> {
        let state = self.state();
        let listed = state.groups.get(&group)?;
        let is_new = listed.at.elapsed() < Duration::from_millis(MAX_LOOK_MS);
        is_new.then(|| take(&listed.objects))
    }
}
