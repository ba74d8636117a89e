//! The messages that a consumer was given and has not finished: a state machine without I/O or
//! clock.
//!
//! A consumer reads a stream once, in order, on behalf of its members. Its state has two parts. The
//! *cursor* is the next offset that no member was given yet. The *pending* messages are those below
//! it that are not done. Everything below the cursor that is not pending is done.

mod changes;
mod live;
mod steer;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use crate::ConsumerSettings;
use crate::limits::CLOCK_STEP_MS;
use changes::{ConsumerImage, TouchedOffsets, write_varint};
pub(crate) use changes::{DeadCounts, pieces, write_counts, write_piece};
use live::LiveMessages;
pub(crate) use steer::{ConsumerSteer, ConsumerSteered};

/// A connection that belongs to a consumer; unique within the process.
pub(crate) type ConsumerMember = u64;

/// A message that a member is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandedMessage {
    pub(crate) offset: u64,
    pub(crate) attempt: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingState {
    InFlight {
        member: ConsumerMember,
        since_ms: u64,
        deadline_ms: u64,
    },
    Delayed {
        due_ms: u64,
    },
    Ready,
    /// Out of attempts; waits for its dead letter to be stored.
    Dead,
    Done,
}

#[derive(Debug, Clone, Copy)]
struct PendingEntry {
    offset: u64,
    attempt: u32,
    state: PendingState,
}

/// The stored state of a message that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingKept {
    attempt: u32,
    /// 0: at once.
    due_ms: u64,
}

impl PendingEntry {
    fn is_held_by(&self, member: ConsumerMember) -> bool {
        matches!(self.state, PendingState::InFlight { member: holder, .. } if holder == member)
    }

    /// The state that is stored; none where the message is done.
    fn kept(&self, buried: &[u64]) -> Option<PendingKept> {
        let due_ms = match self.state {
            PendingState::Done => return None,
            PendingState::Dead if buried.binary_search(&self.offset).is_ok() => return None,
            PendingState::Delayed { due_ms } => due_ms,
            PendingState::InFlight { .. } | PendingState::Ready | PendingState::Dead => 0,
        };
        Some(PendingKept { attempt: self.attempt, due_ms })
    }
}

/// The state of one consumer of one stream.
#[derive(Debug)]
pub(crate) struct ConsumerProgress {
    pub(crate) settings: ConsumerSettings,
    /// Since when nothing is given out, in Unix milliseconds; 0: it is.
    pub(crate) paused_ms: u64,
    cursor: u64,
    /// By ascending offset; done entries go when they reach the front or outnumber the others.
    pending: VecDeque<PendingEntry>,
    /// Entries that are not done.
    live: LiveMessages,
    ready: BTreeSet<u64>,
    delayed: BTreeSet<(u64, u64)>,
    dead: BTreeSet<u64>,
    next_scan_ms: u64,
    /// Offsets that nobody was given and nobody will be, until somebody is told.
    skipped: Option<(u64, u64)>,
    /// How far the time of day is ahead of the time that passes, by which everything here is.
    ahead_ms: i64,
    /// Redeliveries handed out so far, for the stream's state.
    pub(crate) redelivered: u64,
    /// The changes since the last call of `changes`, to be stored.
    touched: TouchedOffsets,
}

impl ConsumerProgress {
    pub(crate) fn new(cursor: u64, settings: ConsumerSettings) -> Self {
        Self {
            settings,
            paused_ms: 0,
            cursor,
            pending: VecDeque::new(),
            live: LiveMessages::default(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            dead: BTreeSet::new(),
            next_scan_ms: 0,
            skipped: None,
            ahead_ms: 0,
            redelivered: 0,
            touched: TouchedOffsets::new(cursor),
        }
    }

    /// Says how far the time of day is ahead. Returns whether it has stepped while messages are
    /// held back.
    pub(crate) fn set_ahead(&mut self, ahead_ms: i64) -> bool {
        let has_stepped = self.ahead_ms.abs_diff(ahead_ms) > CLOCK_STEP_MS;
        self.ahead_ms = if has_stepped { ahead_ms } else { self.ahead_ms };
        has_stepped && !self.delayed.is_empty()
    }

    /// The next offset that nobody was given yet.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Messages that were given out and are not done.
    pub(crate) fn in_flight(&self) -> usize {
        self.live.count()
    }

    /// Adds what each member has in flight.
    pub(crate) fn count_in_flight(&self, counts: &mut HashMap<ConsumerMember, usize>) {
        for entry in &self.pending {
            if let PendingState::InFlight { member, .. } = entry.state {
                *counts.entry(member).or_default() += 1;
            }
        }
    }

    /// The invariants of every consumer between two calls. The entries are checked one by one only
    /// if they are few.
    fn holds_together(&self) -> bool {
        const SHORT: usize = 64;
        let waiting = self.ready.len() + self.delayed.len() + self.dead.len();
        let is_below = |offset: &u64| *offset < self.cursor;
        let is_counted = || {
            let live =
                self.pending.iter().filter(|entry| entry.state != PendingState::Done).count();
            let ascends = self.pending.iter().is_sorted_by(|a, b| a.offset < b.offset);
            live == self.live.count() && ascends
        };
        self.live.count() <= self.pending.len()
            && waiting <= self.live.count()
            && self.pending.back().is_none_or(|last| is_below(&last.offset))
            && self.ready.last().is_none_or(is_below)
            && self.dead.last().is_none_or(is_below)
            && (self.pending.len() > SHORT || is_counted())
    }

    /// Whether nothing waits for time to pass.
    pub(crate) fn is_settled(&self) -> bool {
        self.live.count() == 0
    }

    /// The offset that is given out next: the first that comes again, else the first of `visible`,
    /// the offsets that can be read, that nobody was given yet.
    pub(crate) fn next(&mut self, visible: &Range<u64>) -> Option<u64> {
        // Retention may have taken messages that nobody was given. The skip is told to a member as
        // a gap.
        self.skip_to(visible.start);
        match self.ready.first() {
            // A paused consumer still skips, so that its place stays within the stream.
            _ if self.is_paused() => None,
            Some(offset) => Some(*offset),
            None => (!self.is_full() && self.cursor < visible.end).then_some(self.cursor),
        }
    }

    /// Gives `member` what comes next of `offsets`, at most `max` messages, as long as `fits` says
    /// so of them: first those to be delivered again, then new ones. They are in flight from now
    /// on. Nothing is taken that is not given, so that first deliveries stay in order.
    pub(crate) fn take(
        &mut self,
        member: ConsumerMember,
        offsets: Range<u64>,
        max: usize,
        now_ms: u64,
        mut fits: impl FnMut(u64) -> bool,
    ) -> Vec<HandedMessage> {
        let deadline_ms = now_ms.saturating_add(self.settings.ack_wait_ms);
        let state = PendingState::InFlight { member, since_ms: now_ms, deadline_ms };
        let max = if self.is_paused() { 0 } else { max };
        let mut out = Vec::new();
        while out.len() < max
            && let Some(offset) = self.ready.first().copied()
            && offsets.contains(&offset)
            && fits(offset)
        {
            // Messages that come again go first: they are the oldest, and keep the list of pending
            // messages long.
            self.ready.pop_first();
            if let Some(entry) = self.entry_mut(offset) {
                // The attempt counts when a message is handed out. A member that dies on it has
                // used one.
                entry.attempt = entry.attempt.saturating_add(1);
                entry.state = state;
                out.push(HandedMessage { offset, attempt: entry.attempt });
                self.redelivered += 1;
                self.touched.note(offset);
            }
        }
        // New messages wait until the returned ones are taken, or those could be overtaken for
        // ever.
        let most = if self.ready.is_empty() { max - out.len() } else { 0 };
        self.take_new(most, offsets, state, fits, &mut out);
        // The scan's time moves only to earlier here. The scan itself finds the next deadline.
        if !out.is_empty() {
            self.next_scan_ms = self.next_scan_ms.min(deadline_ms);
        }
        debug_assert!(out.len() <= max && self.holds_together());
        out
    }

    /// Gives up to so many messages that nobody was given yet, as far as the consumer and its
    /// owner's share have room.
    fn take_new(
        &mut self,
        most: usize,
        offsets: Range<u64>,
        state: PendingState,
        mut fits: impl FnMut(u64) -> bool,
        out: &mut Vec<HandedMessage>,
    ) {
        let room = (self.settings.max_in_flight as usize).saturating_sub(self.live.count());
        // The share is one for many consumers, so that room is taken before it is used.
        let reserved = self.live.reserve(most.min(room));
        let mut count = 0;
        while count < reserved && offsets.contains(&self.cursor) && fits(self.cursor) {
            out.push(HandedMessage { offset: self.cursor, attempt: 1 });
            self.pending.push_back(PendingEntry { offset: self.cursor, attempt: 1, state });
            self.cursor += 1;
            count += 1;
        }
        self.live.add(count, reserved);
    }

    /// Whether [`ConsumerProgress::take`] would give something.
    pub(crate) fn has_work(&self, visible: &Range<u64>) -> bool {
        !self.is_paused()
            && (!self.ready.is_empty()
                || (!self.is_full() && self.cursor.max(visible.start) < visible.end))
    }

    /// Whether nothing more is given until something is acknowledged.
    pub(crate) fn is_full(&self) -> bool {
        self.live.count() >= self.settings.max_in_flight as usize || self.is_starved()
    }

    /// Marks what `member` has in flight of `from..=to` as done; returns how many that were.
    pub(crate) fn ack(&mut self, member: ConsumerMember, from: u64, to: u64) -> u64 {
        self.each_in_flight(member, from, to, |_| PendingState::Done)
    }

    /// Sets what `member` has in flight of `from..=to` back, to come again at `due_ms`; returns
    /// how many that were.
    pub(crate) fn nack(
        &mut self,
        member: ConsumerMember,
        from: u64,
        to: u64,
        due_ms: u64,
        now: u64,
    ) -> u64 {
        let max = self.settings.max_attempts;
        self.each_in_flight(member, from, to, |entry| again(entry, max, due_ms, now))
    }

    /// When `member` was given the first message from `from` on that it has in flight, if that one
    /// is among the next few.
    pub(crate) fn given_ms(&self, member: ConsumerMember, from: u64) -> Option<u64> {
        // The time is for a metric alone. Looking further would cost more than the figure is worth.
        const LOOKS: usize = 16;
        let near = self.pending.iter().skip(self.start_of(from)).take(LOOKS);
        near.filter(|entry| entry.is_held_by(member)).find_map(|entry| {
            let PendingState::InFlight { since_ms, .. } = entry.state else { return None };
            Some(since_ms)
        })
    }

    /// Whether `offset` is in flight to `member`.
    pub(crate) fn holds(&self, member: ConsumerMember, offset: u64) -> bool {
        self.index(offset)
            .and_then(|i| self.pending.get(i))
            .is_some_and(|entry| entry.is_held_by(member))
    }

    /// Drops what can no longer be read since retention took it; returns how many of them were
    /// given out.
    pub(crate) fn forget(&mut self, offsets: Range<u64>) -> u64 {
        // Offsets behind the cursor were given to nobody, and the cursor has to pass them.
        if offsets.start <= self.cursor {
            self.skip_to(offsets.end);
        }
        self.finish(offsets)
    }

    /// Drops what cannot be read, and of which a member is told where it is found.
    pub(crate) fn pass_over(&mut self, offsets: Range<u64>) {
        if offsets.contains(&self.cursor) {
            self.cursor = offsets.end;
        }
        self.finish(offsets);
    }

    fn finish(&mut self, offsets: Range<u64>) -> u64 {
        let start = self.pending.partition_point(|entry| entry.offset < offsets.start);
        let mut count = 0;
        for index in start..self.pending.len() {
            match self.pending.get(index) {
                Some(entry) if entry.offset < offsets.end => {
                    count += u64::from(entry.state != PendingState::Done);
                }
                _ => break,
            }
            self.set(index, PendingState::Done);
        }
        self.shrink();
        count
    }

    /// The offsets that were skipped since this was last asked, both ends included.
    pub(crate) fn take_skipped(&mut self) -> Option<(u64, u64)> {
        self.skipped.take()
    }

    /// Sets back everything that `member` had in flight; it comes again at once.
    pub(crate) fn leave(&mut self, member: ConsumerMember, now_ms: u64) -> u64 {
        let max = self.settings.max_attempts;
        self.each_in_flight(member, 0, u64::MAX, |entry| again(entry, max, now_ms, now_ms))
    }

    /// Lets time pass: what is due, or was not acknowledged in time, comes again. Returns whether
    /// there is something new to take.
    pub(crate) fn expire(&mut self, now_ms: u64) -> bool {
        let before = self.ready.len();
        // The set is ordered by time, so that this ends at the first that is not due.
        while let Some((due_ms, offset)) = self.delayed.first().copied()
            && due_ms <= now_ms
        {
            self.delayed.pop_first();
            if let Some(entry) = self.entry_mut(offset) {
                entry.state = PendingState::Ready;
                self.ready.insert(offset);
            }
        }
        if now_ms >= self.next_scan_ms {
            self.scan(now_ms);
        }
        debug_assert!(self.holds_together());
        self.ready.len() > before
    }

    /// Up to `max` messages that are out of attempts, with their attempts, by offset; they stay
    /// until [`ConsumerProgress::bury`].
    pub(crate) fn dead(&self, max: usize) -> Vec<HandedMessage> {
        let entry = |offset: &u64| self.index(*offset).and_then(|i| self.pending.get(i));
        let dead = self.dead.iter().take(max).filter_map(entry);
        dead.map(|entry| HandedMessage { offset: entry.offset, attempt: entry.attempt }).collect()
    }

    /// Whether messages wait to be buried.
    pub(crate) fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// The dead letters of `offsets` are stored: they are done.
    pub(crate) fn bury(&mut self, offsets: &[u64]) {
        for offset in offsets {
            // A message may have been skipped or reset since the plan. This commit must not finish
            // it then.
            if self.dead.remove(offset)
                && let Some(index) = self.index(*offset)
            {
                self.set(index, PendingState::Done);
            }
        }
        self.shrink();
    }

    /// Everything that must survive a restart: the cursor, then each message that is not done as
    /// offset, attempt and due time, in LEB128 (spec/store.md §5). Those of `buried`, which
    /// ascends, count as done.
    pub(crate) fn snapshot(&self, buried: &[u64]) -> Vec<u8> {
        self.write_state(self.cursor, |entry| entry.kept(buried))
    }

    /// The same of a consumer whose next offset is `cursor`, with what `keep` says of each message.
    fn write_state(
        &self,
        cursor: u64,
        keep: impl Fn(&PendingEntry) -> Option<PendingKept>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.live.count() * 4);
        write_varint(cursor, &mut out);
        let mut previous = 0;
        for entry in &self.pending {
            let Some(PendingKept { attempt, due_ms }) = keep(entry) else { continue };
            write_varint(entry.offset - previous, &mut out);
            write_varint(u64::from(attempt), &mut out);
            write_varint(self.day_of(due_ms), &mut out);
            previous = entry.offset;
        }
        out
    }

    /// The time of day of a moment of the time that passes; 0 stays 0.
    fn day_of(&self, due_ms: u64) -> u64 {
        if due_ms == 0 { 0 } else { due_ms.saturating_add_signed(self.ahead_ms).max(1) }
    }

    /// The changes since the last call. None where they are longer than a snapshot, or where the
    /// last answer was not stored.
    pub(crate) fn changes(&mut self, buried: &[u64]) -> Option<Vec<u8>> {
        // The record begins anew with the plan. If the commit fails, `is_unstored` has all of it
        // written.
        let touched = std::mem::replace(&mut self.touched, TouchedOffsets::new(self.cursor));
        changes::write(self, touched, buried)
    }

    /// The answer of the last call is not stored: the next time it has to be a snapshot.
    pub(crate) fn is_unstored(&mut self) {
        self.touched.all = true;
    }

    /// The consumer that [`ConsumerProgress::snapshot`] described, with the changes that came after
    /// it; what was in flight comes again. `counts` becomes how many messages are dead letters, and
    /// how many could not be, as the last change says.
    pub(crate) fn restore(
        settings: ConsumerSettings,
        snapshot: &[u8],
        changes: &[Vec<u8>],
        counts: &mut DeadCounts,
    ) -> Option<Self> {
        let mut image = ConsumerImage::read(snapshot)?;
        for piece in changes {
            *counts = image.apply(piece)?;
        }
        let mut consumer = ConsumerProgress::new(image.cursor, settings);
        for (offset, PendingKept { attempt, due_ms }) in image.pending {
            let max = settings.max_attempts;
            // After a start nobody holds anything. Messages that were in flight come again at once.
            let state = again(
                &PendingEntry { offset, attempt, state: PendingState::Ready },
                max,
                due_ms,
                0,
            );
            consumer.pending.push_back(PendingEntry { offset, attempt, state: PendingState::Done });
            consumer.set(consumer.pending.len() - 1, state);
        }
        consumer.touched = TouchedOffsets::new(image.cursor);
        // Whatever the store gave, nothing is pending that nobody was given.
        consumer.holds_together().then_some(consumer)
    }

    fn skip_to(&mut self, offset: u64) {
        if offset > self.cursor {
            // Skips that were not told yet join, so that a member sees one gap.
            let from = self.skipped.map_or(self.cursor, |(from, _)| from);
            self.skipped = Some((from, offset - 1));
            self.cursor = offset;
        }
    }

    fn each_in_flight(
        &mut self,
        member: ConsumerMember,
        from: u64,
        to: u64,
        next: impl Fn(&PendingEntry) -> PendingState,
    ) -> u64 {
        let start = self.start_of(from);
        let mut count = 0;
        for index in start..self.pending.len() {
            // Entries ascend, so that the walk ends with the range and not with the list.
            let Some(entry) = self.pending.get(index).filter(|entry| entry.offset <= to) else {
                break;
            };
            if entry.is_held_by(member) {
                let state = next(entry);
                self.set(index, state);
                count += 1;
            }
        }
        self.shrink();
        count
    }

    fn scan(&mut self, now_ms: u64) {
        self.next_scan_ms = u64::MAX;
        let max = self.settings.max_attempts;
        for index in 0..self.pending.len() {
            let Some(entry) = self.pending.get(index) else { break };
            let PendingState::InFlight { deadline_ms, .. } = entry.state else { continue };
            if deadline_ms <= now_ms {
                let state = again(entry, max, now_ms, now_ms);
                self.set(index, state);
            } else {
                self.next_scan_ms = self.next_scan_ms.min(deadline_ms);
            }
        }
        // A scan walks all that is pending: at most forty a second, whatever the deadlines are.
        self.next_scan_ms = self.next_scan_ms.max(now_ms.saturating_add(25));
    }

    fn set(&mut self, index: usize, state: PendingState) {
        let Some(entry) = self.pending.get_mut(index) else { return };
        let (offset, old) = (entry.offset, std::mem::replace(&mut entry.state, state));
        match old {
            // Each set holds exactly the messages in its state. A stale entry would hand a message
            // out twice.
            PendingState::Delayed { due_ms } => drop(self.delayed.remove(&(due_ms, offset))),
            PendingState::Ready => drop(self.ready.remove(&offset)),
            PendingState::Dead => drop(self.dead.remove(&offset)),
            PendingState::InFlight { .. } | PendingState::Done => {}
        }
        match state {
            PendingState::Delayed { due_ms } => drop(self.delayed.insert((due_ms, offset))),
            PendingState::Ready => drop(self.ready.insert(offset)),
            PendingState::Dead => drop(self.dead.insert(offset)),
            PendingState::InFlight { .. } | PendingState::Done => {}
        }
        self.touched.note(offset);
        self.live.change(old != PendingState::Done, state != PendingState::Done);
    }

    fn shrink(&mut self) {
        while self.pending.front().is_some_and(|entry| entry.state == PendingState::Done) {
            self.pending.pop_front();
        }
        // One old message that stays open keeps those done behind it. They go when they are half of
        // all.
        if self.pending.len() > 64 && self.pending.len() > 2 * self.live.count() {
            self.pending.retain(|entry| entry.state != PendingState::Done);
        }
        self.live.settle();
        debug_assert!(self.holds_together());
    }

    /// The index of the first entry at or after `offset`: without holes it is where it should be.
    fn start_of(&self, offset: u64) -> usize {
        let front = self.pending.front().map_or(0, |entry| entry.offset);
        // Offsets mostly follow each other, so that the distance is the index. A search is the
        // exception.
        let guess = usize::try_from(offset.saturating_sub(front)).unwrap_or(usize::MAX);
        match self.pending.get(guess) {
            Some(entry) if entry.offset == offset => guess,
            _ => self.pending.partition_point(|entry| entry.offset < offset),
        }
    }

    fn index(&self, offset: u64) -> Option<usize> {
        let index = self.start_of(offset);
        self.pending.get(index).filter(|entry| entry.offset == offset).map(|_| index)
    }

    fn entry_mut(&mut self, offset: u64) -> Option<&mut PendingEntry> {
        let index = self.index(offset)?;
        self.pending.get_mut(index)
    }
}

/// The next state of a message that was not acknowledged.
fn again(entry: &PendingEntry, max_attempts: u32, due_ms: u64, now_ms: u64) -> PendingState {
    // A message that killed every member so far must not go round for ever.
    if max_attempts > 0 && entry.attempt >= max_attempts {
        PendingState::Dead
    } else if due_ms > now_ms {
        PendingState::Delayed { due_ms }
    } else {
        PendingState::Ready
    }
}

#[cfg(test)]
mod tests;
