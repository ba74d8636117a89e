//! What is yet to happen, in the order in which it does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// What is to be done at a time. What is due at one time is done in the order in which it was put
/// here, so that a run repeats.
///
/// The heap has places of events, so that little is moved in it.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    events: Vec<E>,
    free: Vec<u32>,
}

/// The order of fields is that of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    sequence: u64,
    event: u32,
}

impl<E: Copy> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0, events: vec![], free: vec![] }
    }

    /// Puts an event there.
    pub(crate) fn put(&mut self, at: Time, event: E) {
        self.sequence += 1;
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(free) = self.events.get_mut(place as usize) {
                    *free = event;
                }
                place
            }
            None => {
                self.events.push(event);
                (self.events.len() - 1) as u32
            }
        };
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event: place }));
    }

    /// The next event that is due at `until` or before.
    pub(crate) fn take(&mut self, until: Time) -> Option<(Time, E)> {
        self.heap.peek().filter(|Reverse(next)| next.at <= until)?;
        let Reverse(Entry { at, event, .. }) = self.heap.pop()?;
        self.free.push(event);
        self.events.get(event as usize).map(|event| (at, *event))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

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
