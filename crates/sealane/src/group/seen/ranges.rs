//! The counters that came of each start of a sender, as ranges.

use std::cmp::Ordering;

use super::*;

/// The counters of signed messages, or of unsigned ones.
#[derive(Debug, Default)]
pub(super) struct SeenRanges {
    slots: BTreeMap<Slot, SlotRanges>,
}

/// Those of one slot, within its share.
#[derive(Debug, Default)]
struct SlotRanges {
    starts: BTreeMap<(Epoch, SenderContext), StartRanges>,
    ranges: usize,
    /// The newest of the starts that were let go, by epoch and counter. Nothing that lies beyond
    /// it has come in any of them.
    forgotten: Option<(Epoch, u64)>,
    /// Counts the messages, to find the start that was quiet for longest.
    messages: u64,
}

#[derive(Debug, Default)]
struct StartRanges {
    of: BTreeMap<u64, u64>,
    /// The counters up to this one may have come.
    doubtful: Option<u64>,
    last: u64,
}

/// Whether a counter came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterVerdict {
    New,
    Seen,
    Doubtful,
}

impl SeenRanges {
    /// Looks at a counter and remembers it.
    pub(super) fn see(&mut self, sender: SenderStart, counter: u64) -> CounterVerdict {
        let SenderStart { slot, epoch, context } = sender;
        let slots = self.slots.len() + usize::from(!self.slots.contains_key(&slot));
        // A slot that has more than its share gives it back with its own next message, so that
        // nothing of another slot takes its room.
        let share = (MAX_SEEN_RANGES / slots.max(1)).clamp(1, MAX_SEEN_RANGES_OF_SLOT);
        let own = self.slots.entry(slot).or_default();
        let verdict = own.see((epoch, context), counter);
        while own.ranges > share {
            own.forget(counter);
        }
        verdict
    }

    /// All ranges, with their ends.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (SenderStart, (u64, u64))> + '_ {
        self.slots.iter().flat_map(|(slot, own)| {
            own.starts.iter().flat_map(|((epoch, context), start)| {
                let sender = SenderStart { slot: *slot, epoch: *epoch, context: *context };
                start.of.iter().map(move |(from, to)| (sender, (*from, *to)))
            })
        })
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.slots.values().map(|own| own.ranges).sum()
    }
}

impl SlotRanges {
    fn see(&mut self, name: (Epoch, SenderContext), counter: u64) -> CounterVerdict {
        self.messages += 1;
        let doubtful = self.forgotten.and_then(|(epoch, counter)| match name.0.cmp(&epoch) {
            Ordering::Less => Some(u64::MAX),
            Ordering::Equal => Some(counter),
            Ordering::Greater => None,
        });
        let start = self
            .starts
            .entry(name)
            .or_insert_with(|| StartRanges { doubtful, ..StartRanges::default() });
        start.last = self.messages;
        let before = start.of.len();
        let verdict = start.see(counter);
        self.ranges = self.ranges + start.of.len() - before;
        verdict
    }

    /// Forgets the oldest range of the start that was quiet for longest, but not that of the
    /// counter that has just come. The last range of a start leaves with the start.
    fn forget(&mut self, counter: u64) {
        let quiet = self.starts.iter_mut().min_by_key(|(_, start)| start.last);
        let Some((name, start)) = quiet else { return };
        let just_came = (start.last == self.messages).then_some(counter);
        let is_other = |(from, to): &(&u64, &u64)| {
            just_came.is_none_or(|counter| !(**from..=**to).contains(&counter))
        };
        let oldest = start.of.iter().find(is_other).map(|(from, to)| (*from, *to));
        self.ranges -= 1;
        match oldest {
            Some((from, to)) if start.of.len() > 1 => {
                start.of.remove(&from);
                start.doubtful = start.doubtful.max(Some(to));
            }
            _ => {
                let (name, ranges) = (*name, start.of.len());
                let newest = start.of.last_key_value().map(|(_, to)| *to).max(start.doubtful);
                self.ranges = (self.ranges + 1).saturating_sub(ranges);
                self.forgotten = self.forgotten.max(newest.map(|counter| (name.0, counter)));
                self.starts.remove(&name);
            }
        }
    }
}

impl StartRanges {
    fn see(&mut self, counter: u64) -> CounterVerdict {
        let below = self.of.range(..=counter).next_back().map(|(from, to)| (*from, *to));
        if below.is_some_and(|(_, to)| counter <= to) {
            return CounterVerdict::Seen;
        }
        let joins_below = below.filter(|(_, to)| to + 1 == counter);
        let above = self.of.remove(&(counter + 1));
        let from = joins_below.map_or(counter, |(from, _)| from);
        self.of.insert(from, above.unwrap_or(counter));
        if self.doubtful >= Some(counter) { CounterVerdict::Doubtful } else { CounterVerdict::New }
    }
}
