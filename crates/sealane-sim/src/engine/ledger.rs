//! The messages of a run: who was to get each, who has, and how long it took.

use crate::limits::MAX_SIM_DELIVERIES;
use crate::{SimSpan, SimTime};

/// The messages, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SimLedger {
    messages: Vec<SimMessage>,
    /// One bit for each machine and message to everybody, and one for each other message.
    reserved: u64,
    pub(crate) latencies: LatencyHistogram,
    pub(crate) tally: SimMessageTally,
}

/// The fates of all messages together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SimMessageTally {
    pub(crate) messages: u64,
    pub(crate) expected: u64,
    pub(crate) delivered: u64,
    /// To who had them already, or was not there when they were sent.
    pub(crate) again: u64,
    /// Deliveries to machines that the message was not for.
    pub(crate) astray: u64,
}

/// A message, to be told later who has got it.
#[derive(Debug)]
struct SimMessage {
    sent: SimTime,
    from: u32,
    to: ExpectedReceivers,
    /// The answer that each receiver is asked for.
    asked: Option<AnswerTerms>,
    is_urgent: bool,
}

#[derive(Debug)]
enum ExpectedReceivers {
    One {
        node: u32,
        has_it: bool,
    },
    /// A bit for each machine that was there; those who have it are cleared.
    Many(Vec<u64>),
}

/// A message that is offered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimLedgerEntry {
    pub(crate) from: u32,
    pub(crate) to: Option<u32>,
    pub(crate) asked: Option<AnswerTerms>,
    pub(crate) is_urgent: bool,
}

/// How receivers are to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerTerms {
    pub(crate) bytes: usize,
    /// At a moment of chance within this time.
    pub(crate) within: SimSpan,
}

/// The result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimDelivery {
    pub(crate) took: SimSpan,
    /// Whom to answer, how and how urgently.
    pub(crate) answer: Option<SimAnswer>,
}

/// An answer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimAnswer {
    pub(crate) to: u32,
    pub(crate) asked: AnswerTerms,
    pub(crate) is_urgent: bool,
}

impl SimLedger {
    /// Enters a message for one or for all of these; nothing if there is no room.
    pub(crate) fn enter(
        &mut self,
        now: SimTime,
        entry: SimLedgerEntry,
        there: impl Iterator<Item = u32>,
    ) -> Option<u64> {
        let SimLedgerEntry { from, to, asked, is_urgent } = entry;
        let mut expected = 1;
        let to = match to {
            Some(node) => ExpectedReceivers::One { node, has_it: false },
            None => {
                expected = 0;
                let mut bits = vec![];
                for node in there.filter(|node| *node != from) {
                    let word = node as usize / 64;
                    bits.resize(bits.len().max(word + 1), 0_u64);
                    if let Some(word) = bits.get_mut(word) {
                        *word |= 1 << (node % 64);
                        expected += 1;
                    }
                }
                ExpectedReceivers::Many(bits)
            }
        };
        self.reserved += expected + 64;
        if self.reserved > MAX_SIM_DELIVERIES {
            return None;
        }
        self.messages.push(SimMessage { sent: now, from, to, asked, is_urgent });
        self.tally.messages += 1;
        self.tally.expected += expected;
        Some(self.messages.len() as u64 - 1)
    }

    /// A machine has got a message. What comes again, or to somebody else, is only counted.
    pub(crate) fn deliver(&mut self, now: SimTime, message: u64, node: u32) -> Option<SimDelivery> {
        let entered = usize::try_from(message).ok().and_then(|at| self.messages.get_mut(at));
        let Some(message) = entered else {
            self.tally.astray += 1;
            return None;
        };
        let is_first = match &mut message.to {
            ExpectedReceivers::One { node: expected, has_it } if *expected == node => {
                !std::mem::replace(has_it, true)
            }
            ExpectedReceivers::One { .. } => {
                self.tally.astray += 1;
                return None;
            }
            ExpectedReceivers::Many(bits) => {
                let bit = 1 << (node % 64);
                let word = bits.get_mut(node as usize / 64);
                word.is_some_and(|word| {
                    let was = *word & bit != 0;
                    *word &= !bit;
                    was
                })
            }
        };
        if !is_first {
            self.tally.again += 1;
            return None;
        }
        let took = now - message.sent;
        self.tally.delivered += 1;
        self.latencies.put(took);
        let (to, is_urgent) = (message.from, message.is_urgent);
        let answer = message.asked.map(|asked| SimAnswer { to, asked, is_urgent });
        Some(SimDelivery { took, answer })
    }
}

/// How often each latency was met, to a sixteenth of it: bounded, whatever comes.
#[derive(Debug)]
pub(crate) struct LatencyHistogram {
    counts: Vec<u64>,
    all: u64,
    most: SimSpan,
}

/// Sixteen steps for each doubling.
const STEPS: u32 = 16;

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: vec![0; 64 * STEPS as usize], all: 0, most: SimSpan(0) }
    }
}

impl LatencyHistogram {
    pub(crate) fn put(&mut self, took: SimSpan) {
        self.all += 1;
        self.most = self.most.max(took);
        if let Some(count) = self.counts.get_mut(step_of(took.0)) {
            *count += 1;
        }
    }

    /// The latency that this part of all stays within, to a sixteenth of it.
    pub(crate) fn within(&self, part: f64) -> SimSpan {
        let rank = (self.all as f64 * part).ceil() as u64;
        let mut passed = 0;
        for (step, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= rank && passed > 0 {
                return SimSpan(end_of(step)).min(self.most);
            }
        }
        self.most
    }

    pub(crate) fn most(&self) -> SimSpan {
        self.most
    }
}

/// The step of a number: its highest bit, and the four below it.
fn step_of(value: u64) -> usize {
    let doubling = value.max(1).ilog2();
    if doubling < 4 {
        return value as usize;
    }
    let below = (value >> (doubling - 4)) as u32 - STEPS;
    ((doubling - 3) * STEPS + below) as usize
}

/// The greatest number of a step.
fn end_of(step: usize) -> u64 {
    let (doubling, below) = (step as u32 / STEPS, step as u64 % u64::from(STEPS));
    match doubling.checked_sub(1) {
        None => below,
        Some(shift) => ((u64::from(STEPS) + below + 1) << shift) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(to: Option<u32>) -> SimLedgerEntry {
        SimLedgerEntry { from: 7, to, asked: None, is_urgent: false }
    }

    #[test]
    fn each_receiver_counts_once_and_others_are_astray() {
        let mut ledger = SimLedger::default();
        let one = ledger.enter(SimTime(10), entry(Some(3)), 0..0).unwrap();
        let all = ledger.enter(SimTime(10), entry(None), [3, 7, 100].into_iter()).unwrap();
        for (message, node) in [(one, 3), (one, 3), (one, 4), (all, 100), (all, 100), (all, 8)] {
            ledger.deliver(SimTime(30), message, node);
        }
        assert!(ledger.deliver(SimTime(30), 99, 3).is_none());
        let tally = ledger.tally;
        assert_eq!((tally.messages, tally.expected, tally.delivered), (2, 3, 2));
        assert_eq!((tally.again, tally.astray), (3, 2));
        assert_eq!(ledger.latencies.most(), SimSpan(20));
    }

    #[test]
    fn latencies_are_right_to_a_sixteenth() {
        for value in (0..4000).chain([1 << 20, (1 << 40) + 12345, u64::MAX / 2]) {
            let end = end_of(step_of(value));
            assert!(end >= value && end - value <= value / 16, "{value}: {end}");
        }
        let mut latencies = LatencyHistogram::default();
        (1..=1000).for_each(|us| latencies.put(SimSpan(us)));
        let half = latencies.within(0.5).0;
        assert!((500..=532).contains(&half), "{half}");
        assert_eq!((latencies.within(1.0), latencies.most()), (SimSpan(1000), SimSpan(1000)));
        assert_eq!(LatencyHistogram::default().within(0.95), SimSpan(0));
    }
}
