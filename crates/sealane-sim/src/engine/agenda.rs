//! What is yet to happen, in the order in which it does.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Time;

/// What is to be done at a time. What is due at one time is done in the order in which it was put
/// here, so that a run repeats.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// Puts an event there.
    pub(crate) fn put(&mut self, at: Time, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    /// The next event that is due at `until` or before.
    pub(crate) fn take(&mut self, until: Time) -> Option<(Time, E)> {
        self.heap.peek().filter(|Reverse(next)| next.at <= until)?;
        self.heap.pop().map(|Reverse(Entry { at, event, .. })| (at, event))
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(next)| next.at)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_at_one_time_the_oldest() {
        let mut agenda = Agenda::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (1, 'd'), (5, 'e'), (9, 'f')] {
            agenda.put(Time(at), event);
        }
        let mut order = String::new();
        while let Some((_, event)) = agenda.take(Time(5)) {
            order.push(event);
        }
        assert_eq!((order.as_str(), agenda.len()), ("dbace", 1));
    }
}
