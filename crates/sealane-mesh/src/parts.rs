//! Frames in parts: which were sent, and can be sent again, and of which parts are missing.

use std::collections::VecDeque;

use crate::limits::{MAX_PART_ROUNDS, MAX_SENT_PARTS, MAX_WANTED_PARTS};
use crate::{Address, Span, Time, To};

/// Parts that were sent lately.
#[derive(Debug, Default)]
pub(crate) struct SentParts(VecDeque<SentFrame>);

/// A frame that was sent in parts.
#[derive(Debug)]
pub(crate) struct SentFrame {
    pub(crate) id: u16,
    pub(crate) to: To,
    pub(crate) units: Vec<std::sync::Arc<[u8]>>,
}

impl SentParts {
    pub(crate) fn keep(&mut self, frame: SentFrame) {
        if self.0.len() == MAX_SENT_PARTS {
            self.0.pop_front();
        }
        self.0.push_back(frame);
    }

    pub(crate) fn get(&self, id: u16) -> Option<&SentFrame> {
        self.0.iter().rev().find(|frame| frame.id == id)
    }
}

/// A part as its header tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartAt {
    pub(crate) from: Address,
    pub(crate) id: u16,
    pub(crate) index: u16,
    pub(crate) is_last: bool,
}

/// Frames of which parts have come.
#[derive(Debug, Default)]
pub(crate) struct WantedParts(VecDeque<Wanted>);

#[derive(Debug)]
struct Wanted {
    from: Address,
    id: u16,
    came: u64,
    /// How many parts there are, if the last has come.
    count: Option<u16>,
    rounds: u8,
    ask_at: Time,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) from: Address,
    pub(crate) id: u16,
    pub(crate) parts: u64,
}

impl WantedParts {
    /// Notes a part that came. `pause` is how long its sender may be silent between two parts.
    pub(crate) fn came(&mut self, now: Time, part: PartAt, pause: Span) {
        if part.index >= 64 {
            return;
        }
        let ask_at = now + pause;
        let known = self.0.iter_mut().find(|one| (one.from, one.id) == (part.from, part.id));
        let fresh =
            Wanted { from: part.from, id: part.id, came: 0, count: None, rounds: 0, ask_at };
        let wanted = match known {
            Some(known) => known,
            None => {
                if self.0.len() == MAX_WANTED_PARTS {
                    self.0.pop_front();
                }
                self.0.push_back(fresh);
                let Some(last) = self.0.back_mut() else { return };
                last
            }
        };
        wanted.came |= 1 << part.index;
        wanted.ask_at = ask_at;
        if part.is_last {
            wanted.count = Some(part.index + 1);
        }
    }

    /// The frame is whole, or nothing any more.
    pub(crate) fn forget(&mut self, from: Address, id: u16) {
        self.0.retain(|one| (one.from, one.id) != (from, id));
    }

    /// What is asked for now.
    pub(crate) fn ask(&mut self, now: Time, pause: Span) -> Vec<Lack> {
        self.0.retain(|one| one.rounds < MAX_PART_ROUNDS || one.ask_at > now);
        let mut lacks = vec![];
        for one in self.0.iter_mut().filter(|one| one.ask_at <= now) {
            one.rounds += 1;
            one.ask_at = now + pause.times(2);
            if one.came >> FEW_PARTS == 0 {
                continue;
            }
            let all = match one.count {
                Some(count) if count < 64 => (1 << count) - 1,
                _ => u64::MAX,
            };
            lacks.push(Lack { from: one.from, id: one.id, parts: all & !one.came });
        }
        lacks
    }

    /// When something is to be asked for.
    pub(crate) fn due(&self) -> Option<Time> {
        self.0.iter().map(|one| one.ask_at).min()
    }
}

/// Of frames that have no more parts, none is asked for: a question may itself have so many, and
/// questions about questions would never end.
const FEW_PARTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: u16, is_last: bool) -> PartAt {
        PartAt { from: Address(1), id: 7, index, is_last }
    }

    #[test]
    fn what_is_missing_is_asked_for_a_few_times() {
        let (mut wanted, pause) = (WantedParts::default(), Span(100));
        wanted.came(Time(0), part(0, false), pause);
        wanted.came(Time(50), part(3, false), pause);
        assert_eq!(wanted.ask(Time(149), pause), []);
        assert_eq!(wanted.due(), Some(Time(150)));
        let lack = |parts| vec![Lack { from: Address(1), id: 7, parts }];
        assert_eq!(wanted.ask(Time(150), pause), lack(!0b1001), "the end is not known");
        wanted.came(Time(160), part(4, true), pause);
        for round in 1..MAX_PART_ROUNDS {
            let at = wanted.due().unwrap();
            assert_eq!(wanted.ask(at, pause), lack(0b00110), "{round}");
        }
        assert_eq!(wanted.ask(wanted.due().unwrap(), pause), []);
        assert_eq!(wanted.due(), None, "given up");
        wanted.came(Time(999), part(0, false), pause);
        wanted.forget(Address(1), 7);
        assert_eq!(wanted.due(), None);
        (0..1000).for_each(|id| wanted.came(Time(0), PartAt { id, ..part(0, false) }, pause));
        assert_eq!(wanted.0.len(), MAX_WANTED_PARTS);
    }
}
