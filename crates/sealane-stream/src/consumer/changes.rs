//! The changes of a consumer between two commits, as the store keeps them (spec/store.md §5).
//!
//! A consumer may have 65,536 messages in flight, and acknowledge a few of them in each commit. The
//! store then gets the changes alone, in runs of offsets.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sealane_protocol::limits::MAX_IN_FLIGHT;

use super::{ConsumerProgress, PendingEntry, PendingKept};
use crate::limits::MAX_CHANGED_RANGES;

/// The offsets whose stored state is not what it was.
#[derive(Debug)]
pub(super) struct TouchedOffsets {
    /// The cursor as it was stored: everything from here on is new.
    stored_cursor: u64,
    /// Both ends included.
    ranges: Vec<(u64, u64)>,
    /// More than can be said, or nothing is stored yet.
    pub(super) all: bool,
}

impl TouchedOffsets {
    pub(super) fn new(stored_cursor: u64) -> Self {
        Self { stored_cursor, ranges: Vec::new(), all: false }
    }

    pub(super) fn note(&mut self, offset: u64) {
        // Offsets behind the stored cursor are written as new ones anyway.
        if self.all || offset >= self.stored_cursor {
            return;
        }
        match self.ranges.last_mut() {
            Some((from, to)) if (*from..=*to).contains(&offset) => {}
            Some((_, to)) if *to + 1 == offset => *to = offset,
            _ => self.ranges.push((offset, offset)),
        }
        if self.ranges.len() > MAX_CHANGED_RANGES {
            self.merge();
            // A list that stays long after merging costs more than the whole state.
            self.all = self.ranges.len() > MAX_CHANGED_RANGES / 2;
        }
    }

    fn merge(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1.saturating_add(1);
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }
}

/// Offsets that follow each other and are in the same state; none: they are done.
struct OffsetRun {
    from: u64,
    to: u64,
    state: Option<PendingKept>,
}

/// A message that was given out for the first time, which is what most are.
const FIRST: Option<PendingKept> = Some(PendingKept { attempt: 1, due_ms: 0 });

/// Writes what `touched` has of `consumer`; none where that cannot be said.
pub(super) fn write(
    consumer: &ConsumerProgress,
    mut touched: TouchedOffsets,
    buried: &[u64],
) -> Option<Vec<u8>> {
    if touched.all {
        return None;
    }
    let old = touched.stored_cursor;
    // Buried messages are done by this commit, and in memory only once it stands.
    let dead = buried.iter().filter(|offset| **offset < old).map(|offset| (*offset, *offset));
    touched.ranges.extend(dead);
    touched.merge();
    let mut runs = Vec::new();
    for (from, to) in touched.ranges {
        walk(consumer, from..=to, buried, &mut runs);
    }
    let changed = runs.len();
    if consumer.cursor > old {
        walk(consumer, old..=consumer.cursor - 1, buried, &mut runs);
    }
    let mut index = 0;
    runs.retain(|run| {
        index += 1;
        // New messages that were given once are the usual case, so that a reader fills them in by
        // itself.
        index <= changed || run.state != FIRST
    });
    let mut out = Vec::with_capacity(8 + runs.len() * 4);
    write_varint(consumer.cursor, &mut out);
    let mut at = 0;
    for OffsetRun { from, to, state } in runs {
        let PendingKept { attempt, due_ms } =
            state.unwrap_or(PendingKept { attempt: 0, due_ms: 0 });
        write_varint(from - at, &mut out);
        write_varint(to - from, &mut out);
        write_varint(u64::from(attempt), &mut out);
        if attempt > 0 {
            write_varint(consumer.day_of(due_ms), &mut out);
        }
        at = to + 1;
    }
    Some(out)
}

/// Appends the runs of `offsets`.
fn walk(
    consumer: &ConsumerProgress,
    offsets: RangeInclusive<u64>,
    buried: &[u64],
    runs: &mut Vec<OffsetRun>,
) {
    let (from, to) = offsets.into_inner();
    let first = runs.len();
    let mut add = |from: u64, to: u64, state: Option<PendingKept>| match runs.get_mut(first..) {
        Some([.., last]) if last.state == state && last.to + 1 == from => last.to = to,
        _ => runs.push(OffsetRun { from, to, state }),
    };
    let mut at = from;
    let entries = consumer.pending.iter().skip(consumer.start_of(from));
    for entry in entries.take_while(|entry: &&PendingEntry| entry.offset <= to) {
        if entry.offset > at {
            add(at, entry.offset - 1, None);
        }
        add(entry.offset, entry.offset, entry.kept(buried));
        at = entry.offset + 1;
    }
    if at <= to {
        add(at, to, None);
    }
}

/// A consumer as it is put together from what is stored.
pub(super) struct ConsumerImage {
    pub(super) cursor: u64,
    pub(super) pending: BTreeMap<u64, PendingKept>,
}

impl ConsumerImage {
    /// Reads a snapshot.
    pub(super) fn read(mut rest: &[u8]) -> Option<Self> {
        let cursor = read_varint(&mut rest)?;
        let (mut pending, mut offset) = (BTreeMap::new(), 0_u64);
        while !rest.is_empty() {
            offset = offset.checked_add(read_varint(&mut rest)?)?;
            let attempt = u32::try_from(read_varint(&mut rest)?).ok()?;
            pending.insert(offset, PendingKept { attempt, due_ms: read_varint(&mut rest)? });
        }
        (pending.len() <= MAX_IN_FLIGHT).then_some(Self { cursor, pending })
    }

    /// Applies what [`write`] wrote, behind its counts, which are returned; none where that is not
    /// its form.
    pub(super) fn apply(&mut self, mut rest: &[u8]) -> Option<DeadCounts> {
        let (lettered, dropped) = (read_varint(&mut rest)?, read_varint(&mut rest)?);
        let cursor = read_varint(&mut rest)?;
        let (mut at, mut new) = (0_u64, self.cursor);
        while !rest.is_empty() {
            let from = at.checked_add(read_varint(&mut rest)?)?;
            let to = from.checked_add(read_varint(&mut rest)?)?;
            let attempt = u32::try_from(read_varint(&mut rest)?).ok()?;
            let kept = match attempt {
                0 => None,
                attempt => Some(PendingKept { attempt, due_ms: read_varint(&mut rest)? }),
            };
            // A run beyond the old cursor leaves those before it as given once: that is how they
            // were left out.
            if to >= self.cursor {
                self.fill(new..from, FIRST)?;
                new = new.max(to.checked_add(1)?);
            }
            self.fill(from..to.checked_add(1)?, kept)?;
            at = to.checked_add(1)?;
        }
        self.fill(new..cursor, FIRST)?;
        self.cursor = cursor;
        Some(DeadCounts { lettered, dropped })
    }

    fn fill(&mut self, offsets: std::ops::Range<u64>, kept: Option<PendingKept>) -> Option<()> {
        match kept {
            Some(kept) => {
                // The row may be damaged. A range of 2^60 must not be allocated before it is
                // refused.
                let count = usize::try_from(offsets.end.saturating_sub(offsets.start)).ok()?;
                // Messages that this very change marks as done later may stand beside it for a
                // moment.
                (count <= 2 * MAX_IN_FLIGHT).then_some(())?;
                self.pending.extend(offsets.map(|offset| (offset, kept)));
            }
            None => {
                // `BTreeMap::range` panics on a range that ends before it begins, which a damaged
                // row can have.
                let done: Vec<u64> = match offsets.is_empty() {
                    true => Vec::new(),
                    false => self.pending.range(offsets).map(|(offset, _)| *offset).collect(),
                };
                for offset in done {
                    self.pending.remove(&offset);
                }
            }
        }
        (self.pending.len() <= 2 * MAX_IN_FLIGHT).then_some(())
    }
}

/// The fate of a consumer's messages that ran out of attempts, counted from its first message on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeadCounts {
    /// They are dead letters.
    pub(crate) lettered: u64,
    /// They could be made no dead letter.
    pub(crate) dropped: u64,
}

/// Begins what one consumer did with what became of its dead messages.
pub(crate) fn write_counts(counts: DeadCounts, piece: &mut Vec<u8>) {
    write_varint(counts.lettered, piece);
    write_varint(counts.dropped, piece);
}

/// Appends what one consumer did to a row of `progress`.
pub(crate) fn write_piece(consumer: u64, piece: &[u8], row: &mut Vec<u8>) {
    write_varint(consumer, row);
    write_varint(piece.len() as u64, row);
    row.extend_from_slice(piece);
}

/// The content of a row of `progress`: consumers and their changes.
pub(crate) fn pieces(mut row: &[u8]) -> Vec<(u64, &[u8])> {
    let mut all = Vec::new();
    while let Some(consumer) = read_varint(&mut row)
        && let Some(size) = read_varint(&mut row).and_then(|size| usize::try_from(size).ok())
        && let Some((piece, rest)) = row.split_at_checked(size)
    {
        all.push((consumer, piece));
        row = rest;
    }
    all
}

pub(super) fn write_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        n |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}
