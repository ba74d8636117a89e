//! All that a machine keeps, of all groups, within its quotas: what a store has in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use sealane_frame::{GroupTag, PeerTag};
use sealane_message::DataType;
use sealane_message::document::EmergencyCall;
use sealane_seal::Slot;

use crate::entry::{DocumentStamp, FrameDigest, RegisterEntry};
use crate::limits::{
    MAX_DOCUMENT_GROUPS, MAX_ORIGIN_BYTES, MAX_STORE_BYTES, MAX_VOUCHERS, kept, kept_beside,
};
use crate::registers::{RegisterSet, TakeOutcome};

/// The kind of machine that keeps the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShelfKeeper {
    /// A member of the groups. It opens each frame before it is kept.
    Member,
    /// A machine without keys. It cannot tell a forged frame from a true one, and keeps some beside
    /// each other.
    Relay,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentQuota {
    /// Bytes of frames of one member of a group.
    pub origin_bytes: u64,
    /// Bytes of frames of all.
    pub total_bytes: u64,
}

impl Default for DocumentQuota {
    fn default() -> Self {
        Self { origin_bytes: MAX_ORIGIN_BYTES, total_bytes: MAX_STORE_BYTES }
    }
}

/// A place in the order in which frames were taken. Later frames have greater ones.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentCursor(pub u64);

impl DocumentCursor {
    /// Before all frames.
    pub const START: DocumentCursor = DocumentCursor(0);
}

/// A frame that is kept, and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfFrame {
    /// Its place in the order of coming.
    pub at: DocumentCursor,
    /// The group that it is of.
    pub group: GroupTag,
    /// The neighbour that brought it.
    pub from: PeerTag,
    /// The frame.
    pub entry: RegisterEntry,
}

/// The counts of a machine's documents since it started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCounters {
    /// Frames that were news.
    pub new: u64,
    /// Frames that are kept beside others, since nobody here can tell which are true.
    pub beside: u64,
    /// Frames that were here already.
    pub known: u64,
    /// Frames of which newer ones were here.
    pub older: u64,
    /// Frames that had the stamp of another one.
    pub conflicts: u64,
    /// Frames that are no documents, are too long, or are of one group too many.
    pub refused: u64,
    /// Frames that had no room.
    pub full: u64,
    /// Frames that left for want of room.
    pub evicted: u64,
}

/// A change that has to be written to disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShelfChange {
    Add(DocumentCursor),
    Drop(DocumentCursor),
    Floor {
        of: RegisterName,
        stamp: DocumentStamp,
    },
    /// The call of that number of a member is over, or nothing is known of any of its calls.
    Over {
        group: GroupTag,
        origin: Slot,
        number: Option<u32>,
    },
}

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterName {
    /// The group.
    pub group: GroupTag,
    /// The origin.
    pub origin: Slot,
    /// The data type.
    pub data_type: DataType,
}

/// The documents of a group.
#[derive(Debug, Default)]
struct ShelfGroup {
    registers: RegisterSet,
    /// Frames that are kept beside the registers, in order of arrival.
    beside: BTreeMap<(Slot, DataType), Vec<DocumentCursor>>,
    bytes: BTreeMap<Slot, u64>,
}

/// A row of the store.
#[derive(Debug)]
struct ShelfRow {
    fresh: ShelfFrame,
    /// Neighbours that say they have opened the frame, at most [`MAX_VOUCHERS`].
    vouchers: Vec<PeerTag>,
}

impl ShelfRow {
    /// The neighbour that brought the frame, and those that say they have opened it.
    fn speakers(&self) -> impl Iterator<Item = PeerTag> + '_ {
        let from = self.fresh.from;
        std::iter::once(from).chain(self.vouchers.iter().copied().filter(move |by| *by != from))
    }

    /// Notes whether a neighbour says to have opened the frame.
    fn vouch(&mut self, by: PeerTag, has_opened: bool) {
        let known = self.vouchers.iter().position(|one| *one == by);
        match known {
            Some(at) if !has_opened => drop(self.vouchers.remove(at)),
            None if has_opened && self.vouchers.len() < MAX_VOUCHERS => self.vouchers.push(by),
            _ => {}
        }
    }
}

/// The part of a store that is in memory.
#[derive(Debug)]
pub(crate) struct DocumentShelf {
    keeper: ShelfKeeper,
    quota: DocumentQuota,
    groups: BTreeMap<GroupTag, ShelfGroup>,
    rows: BTreeMap<DocumentCursor, ShelfRow>,
    places: HashMap<(GroupTag, FrameDigest), DocumentCursor>,
    /// Nothing with one of these stamps, or an earlier one, is taken again.
    floors: BTreeMap<RegisterName, DocumentStamp>,
    /// Of each member the number of the call that is over though what cleared it has left.
    over: BTreeMap<(GroupTag, Slot), u32>,
    /// Clears that have left a member's store, of which that is still to be found out.
    pub(crate) left: Vec<(GroupTag, RegisterEntry)>,
    total_bytes: u64,
    last: DocumentCursor,
    pub(crate) changes: Vec<ShelfChange>,
    pub(crate) counters: StoreCounters,
}

impl DocumentShelf {
    /// An empty one, which goes on counting behind a place.
    pub(crate) fn new(keeper: ShelfKeeper, quota: DocumentQuota, last: DocumentCursor) -> Self {
        Self {
            keeper,
            quota,
            groups: BTreeMap::new(),
            rows: BTreeMap::new(),
            places: HashMap::new(),
            floors: BTreeMap::new(),
            over: BTreeMap::new(),
            left: vec![],
            total_bytes: 0,
            last,
            changes: vec![],
            counters: StoreCounters::default(),
        }
    }

    /// Puts back what was written down: floors first, then frames as they came.
    pub(crate) fn set_floor(&mut self, of: RegisterName, stamp: DocumentStamp) {
        self.floors.insert(of, stamp);
    }

    /// Puts back that a call is over.
    pub(crate) fn put_over(&mut self, group: GroupTag, origin: Slot, number: u32) {
        self.over.insert((group, origin), number);
    }

    /// The number of a member's call that is over though what cleared it has left.
    pub(crate) fn over(&self, group: GroupTag, origin: Slot) -> Option<u32> {
        self.over.get(&(group, origin)).copied()
    }

    /// If the clear of a call has left, the call stays over.
    pub(crate) fn set_over(&mut self, group: GroupTag, call: EmergencyCall) {
        let (Some(origin), number) = (Slot::new(call.slot), call.number) else { return };
        if self.over.insert((group, origin), number) != Some(number) {
            self.changes.push(ShelfChange::Over { group, origin, number: Some(number) });
        }
    }

    /// Forgets of all but these members of a group which of their calls are over.
    pub(crate) fn keep_over(&mut self, group: GroupTag, is_member: impl Fn(Slot) -> bool) {
        let all = self.over.keys().filter(|(of, origin)| *of == group && !is_member(*origin));
        let gone: Vec<Slot> = all.map(|(_, origin)| *origin).collect();
        for origin in gone {
            self.over.remove(&(group, origin));
            self.changes.push(ShelfChange::Over { group, origin, number: None });
        }
    }

    /// Puts a frame back that was written down. What does not fit any more leaves.
    pub(crate) fn put_back(&mut self, fresh: ShelfFrame) {
        let at = fresh.at;
        let put = self.groups.entry(fresh.group).or_default().registers.put(fresh.entry.clone());
        if matches!(put.taken, TakeOutcome::Refused | TakeOutcome::Known) {
            return self.changes.push(ShelfChange::Drop(at));
        }
        let (group, of) = (fresh.group, (fresh.entry.origin, fresh.entry.data_type));
        self.add_row(fresh);
        self.settle(group, of, put.out);
    }

    /// Takes a frame that has opened, or that nobody here can open.
    pub(crate) fn take(
        &mut self,
        group: GroupTag,
        entry: RegisterEntry,
        from: PeerTag,
    ) -> TakeOutcome {
        let taken = self.put(group, entry, from);
        let counter = match taken {
            TakeOutcome::New => &mut self.counters.new,
            TakeOutcome::Beside => &mut self.counters.beside,
            TakeOutcome::Known => &mut self.counters.known,
            TakeOutcome::Older => &mut self.counters.older,
            TakeOutcome::Conflict { .. } => &mut self.counters.conflicts,
            TakeOutcome::Refused => &mut self.counters.refused,
            TakeOutcome::Full => &mut self.counters.full,
        };
        *counter += 1;
        debug_assert!(self.total_bytes <= self.quota.total_bytes, "quotas hold");
        taken
    }

    fn put(&mut self, group: GroupTag, entry: RegisterEntry, from: PeerTag) -> TakeOutcome {
        let has_room = self.groups.len() < MAX_DOCUMENT_GROUPS || self.groups.contains_key(&group);
        let bytes = entry.frame().len() as u64;
        if !has_room || bytes > self.quota.origin_bytes.min(self.quota.total_bytes) {
            return TakeOutcome::Refused;
        }
        let of = (entry.origin, entry.data_type);
        let name = RegisterName { group, origin: entry.origin, data_type: entry.data_type };
        if self.floors.get(&name).is_some_and(|floor| entry.stamp <= *floor) {
            return TakeOutcome::Older;
        }
        let mark = entry.mark();
        if self.places.contains_key(&(group, mark)) {
            return TakeOutcome::Known;
        }
        if kept(entry.data_type) == 0 {
            return TakeOutcome::Refused;
        }
        let put = self.groups.entry(group).or_default().registers.put(entry.clone());
        let is_out = put.out.as_ref().is_some_and(|out| out.mark() == mark);
        if put.taken == TakeOutcome::Refused || is_out && self.keeper == ShelfKeeper::Member {
            return put.taken;
        }
        self.last = DocumentCursor(self.last.0 + 1);
        let at = self.last;
        self.add_row(ShelfFrame { at, group, from, entry });
        self.changes.push(ShelfChange::Add(at));
        self.settle(group, of, put.out);
        self.keep_quotas(name, at);
        if !self.rows.contains_key(&at) {
            return TakeOutcome::Full;
        }
        match put.taken {
            TakeOutcome::Older => TakeOutcome::Beside,
            TakeOutcome::Conflict { is_kept: false } if self.keeper == ShelfKeeper::Relay => {
                TakeOutcome::Beside
            }
            taken => taken,
        }
    }

    /// A neighbour says which frames of a register it has opened: these, and no others. They are
    /// kept as long as they may be.
    pub(crate) fn vouch(&mut self, of: RegisterName, stamps: &[DocumentStamp], by: PeerTag) {
        let Some(held) = self.groups.get(&of.group) else { return };
        let beside = held.beside.get(&(of.origin, of.data_type));
        let beside = beside.into_iter().flatten().copied();
        let kept = held.registers.of(of.origin, of.data_type);
        let kept = kept.filter_map(|entry| self.places.get(&(of.group, entry.mark())).copied());
        let all: Vec<DocumentCursor> = beside.chain(kept).collect();
        for at in all {
            let Some(row) = self.rows.get_mut(&at) else { continue };
            let has_opened = stamps.contains(&row.fresh.entry.stamp);
            row.vouch(by, has_opened);
        }
    }

    pub(crate) fn is_vouched(&self, group: GroupTag, mark: FrameDigest) -> bool {
        let row = self.place(group, mark).and_then(|at| self.rows.get(&at));
        row.is_some_and(|row| !row.vouchers.is_empty())
    }

    pub(crate) fn drop_all(&mut self, group: GroupTag, marks: &[FrameDigest]) {
        let gone: Vec<DocumentCursor> =
            marks.iter().filter_map(|mark| self.place(group, *mark)).collect();
        gone.into_iter().for_each(|at| self.drop_row(at));
    }

    /// Forgets a member of a group.
    pub(crate) fn forget(&mut self, group: GroupTag, origin: Slot) {
        let rows = self.rows.values();
        let of = rows.filter(|row| row.fresh.group == group && row.fresh.entry.origin == origin);
        let gone: Vec<DocumentCursor> = of.map(|row| row.fresh.at).collect();
        gone.into_iter().for_each(|at| self.drop_row(at));
    }

    /// The frames taken after a cursor.
    pub(crate) fn since(&self, after: DocumentCursor, most: usize) -> Vec<ShelfFrame> {
        let behind =
            self.rows.range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
        behind.take(most).map(|(_, row)| row.fresh.clone()).collect()
    }

    /// The groups of which something is kept.
    pub(crate) fn groups(&self) -> impl Iterator<Item = GroupTag> {
        self.groups.keys().copied()
    }

    /// The registers of a group, which count.
    pub(crate) fn registers(&self, group: GroupTag) -> Option<&RegisterSet> {
        self.groups.get(&group).map(|held| &held.registers)
    }

    /// The frames that are kept beside the registers of an origin.
    pub(crate) fn beside(
        &self,
        group: GroupTag,
        origin: Slot,
    ) -> impl Iterator<Item = &RegisterEntry> {
        let held = self.groups.get(&group).into_iter();
        let all = held
            .flat_map(move |held| held.beside.iter().filter(move |((slot, _), _)| *slot == origin));
        let rows = all.flat_map(|(_, rows)| rows).filter_map(|at| self.rows.get(at));
        rows.map(|row| &row.fresh.entry)
    }

    pub(crate) fn row(&self, at: DocumentCursor) -> Option<&ShelfFrame> {
        self.rows.get(&at).map(|row| &row.fresh)
    }

    /// The place of a frame.
    pub(crate) fn place(&self, group: GroupTag, mark: FrameDigest) -> Option<DocumentCursor> {
        self.places.get(&(group, mark)).copied()
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn add_row(&mut self, fresh: ShelfFrame) {
        let bytes = fresh.entry.frame().len() as u64;
        self.total_bytes += bytes;
        self.last = self.last.max(fresh.at);
        if let Some(held) = self.groups.get_mut(&fresh.group) {
            *held.bytes.entry(fresh.entry.origin).or_default() += bytes;
        }
        self.places.insert((fresh.group, fresh.entry.mark()), fresh.at);
        self.rows.insert(fresh.at, ShelfRow { fresh, vouchers: vec![] });
    }

    /// Keeps what has left a register beside it, where nobody can tell what is true.
    fn settle(&mut self, group: GroupTag, of: (Slot, DataType), out: Option<RegisterEntry>) {
        let Some(out) = out else { return };
        let Some(at) = self.place(group, out.mark()) else { return };
        if self.keeper == ShelfKeeper::Member {
            return self.drop_row(at);
        }
        let Some(held) = self.groups.get_mut(&group) else { return };
        let beside = held.beside.entry(of).or_default();
        beside.push(at);
        beside.sort_unstable();
        if beside.len() > kept_beside(of.1)
            && let Some(victim) = surplus(&self.rows, beside)
        {
            self.drop_row(victim);
        }
    }

    /// Has frames leave until all quotas hold again.
    fn keep_quotas(&mut self, of: RegisterName, newest: DocumentCursor) {
        loop {
            let held = self.groups.get(&of.group);
            let of_origin = held.and_then(|held| held.bytes.get(&of.origin));
            let victim = if of_origin.is_some_and(|bytes| *bytes > self.quota.origin_bytes) {
                self.least(of.group, of.origin)
            } else if self.total_bytes > self.quota.total_bytes {
                let all = self.groups.iter().flat_map(|(group, held)| {
                    held.bytes.iter().map(move |(origin, bytes)| (*bytes, *group, *origin))
                });
                all.max().and_then(|(_, group, origin)| self.least(group, origin))
            } else {
                return;
            };
            let Some(victim) = victim else { return };
            if victim != newest {
                self.counters.evicted += 1;
            }
            self.raise_floor(victim);
            self.drop_row(victim);
        }
    }

    /// The frame that an origin can miss first. Frames beside the registers go first, then frames
    /// that are not urgent. Of these, frames of logs go first, and the oldest of them.
    fn least(&self, group: GroupTag, origin: Slot) -> Option<DocumentCursor> {
        let held = self.groups.get(&group)?;
        let place = |entry: &RegisterEntry| self.place(group, entry.mark());
        let beside: Vec<DocumentCursor> = self.beside(group, origin).filter_map(place).collect();
        let entries = held.registers.iter().filter(|entry| entry.origin == origin);
        let rank = |entry: &&RegisterEntry| {
            let of = entry.data_type;
            (of.is_urgent(), kept(of) == 1, entry.stamp, of)
        };
        surplus(&self.rows, &beside).or_else(|| entries.min_by_key(rank).and_then(place))
    }

    /// A frame that a member had to let go is not taken again: it would not be new to a reader.
    fn raise_floor(&mut self, at: DocumentCursor) {
        let Some(fresh) = self.row(at).filter(|_| self.keeper == ShelfKeeper::Member) else {
            return;
        };
        let (entry, group) = (&fresh.entry, fresh.group);
        let (of, stamp) =
            (RegisterName { group, origin: entry.origin, data_type: entry.data_type }, entry.stamp);
        if self.floors.get(&of).is_none_or(|floor| *floor < stamp) {
            self.floors.insert(of, stamp);
            self.changes.push(ShelfChange::Floor { of, stamp });
        }
    }

    fn drop_row(&mut self, at: DocumentCursor) {
        let Some(ShelfRow { fresh, .. }) = self.rows.remove(&at) else { return };
        if self.keeper == ShelfKeeper::Member && fresh.entry.data_type == DataType::CLEAR {
            self.left.push((fresh.group, fresh.entry.clone()));
        }
        let (entry, bytes) = (&fresh.entry, fresh.entry.frame().len() as u64);
        self.places.remove(&(fresh.group, entry.mark()));
        self.total_bytes -= bytes;
        self.changes.push(ShelfChange::Drop(at));
        let Some(held) = self.groups.get_mut(&fresh.group) else { return };
        held.registers.remove(entry);
        if let Some(of_origin) = held.bytes.get_mut(&entry.origin) {
            *of_origin -= bytes;
            if *of_origin == 0 {
                held.bytes.remove(&entry.origin);
            }
        }
        let of = (entry.origin, entry.data_type);
        if let Some(beside) = held.beside.get_mut(&of) {
            beside.retain(|other| *other != at);
            if beside.is_empty() {
                held.beside.remove(&of);
            }
        }
        if held.bytes.is_empty() {
            self.groups.remove(&fresh.group);
        }
    }
}

/// Which of several frames that nobody here can tell apart leaves: one that only those neighbours
/// brought, or say they have opened, who speak for the most of them; of these one that nobody has
/// opened, and the one that came first. So nobody's frames are driven out by what another one
/// brings or says.
fn surplus(
    rows: &BTreeMap<DocumentCursor, ShelfRow>,
    beside: &[DocumentCursor],
) -> Option<DocumentCursor> {
    let all = || beside.iter().filter_map(|at| rows.get(at));
    let mut counts: BTreeMap<PeerTag, usize> = BTreeMap::new();
    for by in all().flat_map(ShelfRow::speakers) {
        *counts.entry(by).or_default() += 1;
    }
    let weight = |row: &ShelfRow| row.speakers().filter_map(|by| counts.get(&by).copied()).min();
    let rank = |row: &&ShelfRow| (weight(row), row.vouchers.is_empty(), Reverse(row.fresh.at));
    all().max_by_key(rank).map(|row| row.fresh.at)
}
