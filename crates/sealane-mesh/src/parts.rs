//! Frames in parts: which were sent, and can be sent again, and of which parts are missing.

use std::collections::VecDeque;

use std::sync::Arc;

use sealane_frame::{
    CompactUnit, FrameError, PeerTag, Reassembly, ReassemblyProgress, ShortReassembly,
};

use crate::limits::{MAX_PART_ROUNDS, MAX_PARTS_AGAIN, MAX_SENT_PARTS, MAX_WANTED_PARTS};
use crate::{MeshAddress, MeshSpan, MeshTime, UnitReceiver};

/// Frames that are put together from parts of either kind.
#[derive(Debug)]
pub(crate) struct FrameParts {
    long: Reassembly,
    short: ShortReassembly,
}

impl FrameParts {
    /// With room for so many bytes.
    pub(crate) fn within(bytes: usize) -> Self {
        Self { long: Reassembly::within(bytes), short: ShortReassembly::new() }
    }

    /// Takes a part, and gives the frame if it was the last one.
    pub(crate) fn take(
        &mut self,
        now: MeshTime,
        from: PeerTag,
        part: &CompactUnit<'_>,
    ) -> Result<Option<Vec<u8>>, FrameError> {
        let progress = match part {
            CompactUnit::Short(part) => self.short.push(from, now.as_millis(), part)?,
            CompactUnit::Fragment(part) => self.long.push(from, now.as_millis(), part)?,
            _ => return Err(FrameError::BadFragment),
        };
        Ok(match progress {
            ReassemblyProgress::Whole(frame) => Some(frame.to_vec()),
            ReassemblyProgress::Waiting | ReassemblyProgress::Repeated => None,
        })
    }
}

/// Parts that were sent lately.
#[derive(Debug, Default)]
pub(crate) struct SentParts(VecDeque<SentFrame>);

/// A frame that was sent in parts.
#[derive(Debug)]
pub(crate) struct SentFrame {
    pub(crate) id: u16,
    pub(crate) to: UnitReceiver,
    pub(crate) units: Vec<Arc<[u8]>>,
    /// Parts that may still be sent again.
    again: usize,
}

impl SentFrame {
    pub(crate) fn new(id: u16, to: UnitReceiver, units: Vec<Arc<[u8]>>) -> Self {
        let again = units.len() * MAX_PARTS_AGAIN;
        Self { id, to, units, again }
    }

    /// The parts of a bit map that may be sent again.
    pub(crate) fn lacking(&mut self, parts: u64) -> Vec<Arc<[u8]>> {
        let all = self.units.iter().take(64).enumerate();
        let lacks = all.filter(|(at, _)| parts >> at & 1 == 1).map(|(_, unit)| Arc::clone(unit));
        let lacks: Vec<_> = lacks.take(self.again).collect();
        self.again -= lacks.len();
        lacks
    }
}

impl SentParts {
    pub(crate) fn keep(&mut self, frame: SentFrame) {
        if self.0.len() == MAX_SENT_PARTS {
            self.0.pop_front();
        }
        self.0.push_back(frame);
    }

    pub(crate) fn get(&mut self, id: u16) -> Option<&mut SentFrame> {
        self.0.iter_mut().rev().find(|frame| frame.id == id)
    }
}

/// A part as its header tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartAt {
    pub(crate) from: MeshAddress,
    pub(crate) id: u16,
    pub(crate) index: u16,
    pub(crate) is_last: bool,
}

/// Frames of which parts have come.
#[derive(Debug, Default)]
pub(crate) struct WantedParts {
    waiting: VecDeque<PartsWanted>,
    /// Those that are whole: parts of them that come now are for others who have asked.
    whole: VecDeque<WholeFrame>,
}

#[derive(Debug)]
struct WholeFrame {
    from: MeshAddress,
    id: u16,
    /// As long as somebody may ask for its parts.
    until: MeshTime,
}

#[derive(Debug)]
struct PartsWanted {
    from: MeshAddress,
    id: u16,
    came: u64,
    /// How many parts there are, if the last has come.
    count: Option<u16>,
    rounds: u8,
    ask_at: MeshTime,
}

/// The parts that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartsLack {
    pub(crate) from: MeshAddress,
    pub(crate) id: u16,
    pub(crate) parts: u64,
}

impl WantedParts {
    /// Notes a part that came. `pause` is how long its sender may be silent between two parts.
    pub(crate) fn came(&mut self, now: MeshTime, part: PartAt, pause: MeshSpan) {
        if part.index >= 64 {
            return;
        }
        let ask_at = now + pause;
        let known = self.waiting.iter_mut().find(|one| (one.from, one.id) == (part.from, part.id));
        let fresh =
            PartsWanted { from: part.from, id: part.id, came: 0, count: None, rounds: 0, ask_at };
        let wanted = match known {
            Some(known) => known,
            None => {
                if self.waiting.len() == MAX_WANTED_PARTS {
                    self.waiting.pop_front();
                }
                self.waiting.push_back(fresh);
                let Some(last) = self.waiting.back_mut() else { return };
                last
            }
        };
        wanted.came |= 1 << part.index;
        wanted.ask_at = ask_at;
        if part.is_last {
            wanted.count = Some(part.index + 1);
        }
    }

    /// The frame is whole.
    pub(crate) fn ends(&mut self, now: MeshTime, from: MeshAddress, id: u16, pause: MeshSpan) {
        self.waiting.retain(|one| (one.from, one.id) != (from, id));
        if self.whole.len() == MAX_WANTED_PARTS {
            self.whole.pop_front();
        }
        let until = now + pause.times(2 * u64::from(MAX_PART_ROUNDS));
        self.whole.push_back(WholeFrame { from, id, until });
    }

    /// Whether that frame was whole a moment ago. Who took its parts for those of another one would
    /// ask for the rest, and those who hear that would do the same, without end.
    pub(crate) fn has_ended(&self, now: MeshTime, from: MeshAddress, id: u16) -> bool {
        self.whole.iter().any(|one| (one.from, one.id) == (from, id) && now < one.until)
    }

    /// The parts to ask for now.
    pub(crate) fn ask(&mut self, now: MeshTime, pause: MeshSpan) -> Vec<PartsLack> {
        self.waiting.retain(|one| one.rounds < MAX_PART_ROUNDS || one.ask_at > now);
        let mut lacks = vec![];
        for one in self.waiting.iter_mut().filter(|one| one.ask_at <= now) {
            one.rounds += 1;
            one.ask_at = now + pause.times(2);
            if one.came >> FEW_PARTS == 0 {
                continue;
            }
            let all = match one.count {
                Some(count) if count < 64 => (1 << count) - 1,
                _ => u64::MAX,
            };
            lacks.push(PartsLack { from: one.from, id: one.id, parts: all & !one.came });
        }
        lacks
    }

    /// When something is to be asked for.
    pub(crate) fn due(&self) -> Option<MeshTime> {
        self.waiting.iter().map(|one| one.ask_at).min()
    }
}

/// Of frames that have no more parts, none is asked for: a question may itself have so many, and
/// questions about questions would never end.
const FEW_PARTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: u16, is_last: bool) -> PartAt {
        PartAt { from: MeshAddress(1), id: 7, index, is_last }
    }

    #[test]
    fn what_is_missing_is_asked_for_a_few_times() {
        let (mut wanted, pause) = (WantedParts::default(), MeshSpan(100));
        wanted.came(MeshTime(0), part(0, false), pause);
        wanted.came(MeshTime(50), part(3, false), pause);
        assert_eq!(wanted.ask(MeshTime(149), pause), []);
        assert_eq!(wanted.due(), Some(MeshTime(150)));
        let lack = |parts| vec![PartsLack { from: MeshAddress(1), id: 7, parts }];
        assert_eq!(wanted.ask(MeshTime(150), pause), lack(!0b1001), "the end is not known");
        wanted.came(MeshTime(160), part(4, true), pause);
        for round in 1..MAX_PART_ROUNDS {
            let at = wanted.due().unwrap();
            assert_eq!(wanted.ask(at, pause), lack(0b00110), "{round}");
        }
        assert_eq!(wanted.ask(wanted.due().unwrap(), pause), []);
        assert_eq!(wanted.due(), None, "given up");
        wanted.came(MeshTime(999), part(0, false), pause);
        wanted.ends(MeshTime(1000), MeshAddress(1), 7, pause);
        assert_eq!(wanted.due(), None);
        (0..1000).for_each(|id| wanted.came(MeshTime(0), PartAt { id, ..part(0, false) }, pause));
        assert_eq!(wanted.waiting.len(), MAX_WANTED_PARTS);
    }

    #[test]
    fn parts_are_sent_again_so_often_and_no_more() {
        let units: Vec<Arc<[u8]>> = (0..3).map(|part| Arc::from([part])).collect();
        let mut sent = SentFrame::new(7, UnitReceiver::Everybody, units);
        assert_eq!(sent.lacking(0b101).concat(), [0, 2]);
        assert_eq!(sent.lacking(0), Vec::<Arc<[u8]>>::new());
        let rest: usize = (0..1000).map(|_| sent.lacking(u64::MAX).len()).sum();
        assert_eq!(2 + rest, 3 * MAX_PARTS_AGAIN);
    }

    #[test]
    fn parts_of_what_is_whole_are_for_others_while_those_may_ask() {
        let (mut wanted, pause) = (WantedParts::default(), MeshSpan(100));
        wanted.came(MeshTime(0), part(0, false), pause);
        assert!(!wanted.has_ended(MeshTime(10), MeshAddress(1), 7));
        wanted.ends(MeshTime(10), MeshAddress(1), 7, pause);
        let last = 10 + 200 * u64::from(MAX_PART_ROUNDS);
        for (at, has_ended) in [(11, true), (last - 1, true), (last, false)] {
            assert_eq!(wanted.has_ended(MeshTime(at), MeshAddress(1), 7), has_ended, "{at}");
        }
        assert!(
            !wanted.has_ended(MeshTime(11), MeshAddress(1), 8)
                && !wanted.has_ended(MeshTime(11), MeshAddress(2), 7)
        );
        (0..1000).for_each(|id| wanted.ends(MeshTime(0), MeshAddress(1), id, pause));
        assert_eq!(wanted.whole.len(), MAX_WANTED_PARTS);
    }
}
