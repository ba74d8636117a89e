//! The events that are yet to happen, in the order in which they happen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::SimTime;

/// The events to come, each with its time. Events due at one time happen in the order in which they
/// were put here, so that a run repeats.
///
/// The heap has places of events, so that little is moved in it.
#[derive(Debug)]
pub(crate) struct SimAgenda<E> {
    heap: BinaryHeap<Reverse<u128>>,
    sequence: u64,
    events: Vec<E>,
    free: Vec<u32>,
}

/// When an event is due, the how manieth it is, and its place: one number, which is compared at
/// once. 2^40 events take days, and `MAX_SIM_PENDING` are under way at most.
#[derive(Debug, Clone, Copy)]
struct AgendaEntry(u128);

const SEQUENCE_BITS: u32 = 40;
const PLACE_BITS: u32 = u64::BITS - SEQUENCE_BITS;

impl AgendaEntry {
    fn new(at: SimTime, sequence: u64, place: u32) -> Self {
        debug_assert!(sequence >> SEQUENCE_BITS == 0 && place >> PLACE_BITS == 0);
        Self(u128::from(at.0) << u64::BITS | u128::from(sequence << PLACE_BITS | u64::from(place)))
    }

    fn at(self) -> SimTime {
        SimTime((self.0 >> u64::BITS) as u64)
    }

    fn place(self) -> usize {
        (self.0 as usize) & ((1 << PLACE_BITS) - 1)
    }
}

impl<E: Copy> SimAgenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0, events: vec![], free: vec![] }
    }

    /// Puts an event there.
    pub(crate) fn put(&mut self, at: SimTime, event: E) {
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
        self.heap.push(Reverse(AgendaEntry::new(at, self.sequence, place).0));
    }

    /// The next event that is due at `until` or before.
    pub(crate) fn take(&mut self, until: SimTime) -> Option<(SimTime, E)> {
        let next = AgendaEntry(self.heap.peek()?.0);
        if next.at() > until {
            return None;
        }
        self.heap.pop();
        self.free.push(next.place() as u32);
        self.events.get(next.place()).map(|event| (next.at(), *event))
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(next)| AgendaEntry(*next).at())
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
        let mut agenda = SimAgenda::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (1, 'd'), (5, 'e'), (9, 'f')] {
            agenda.put(SimTime(at), event);
        }
        let mut order = String::new();
        while let Some((_, event)) = agenda.take(SimTime(5)) {
            order.push(event);
        }
        assert_eq!((order.as_str(), agenda.len()), ("dbace", 1));
    }
}
