use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use sealane_protocol::limits::MAX_IN_FLIGHT;

use super::*;

fn take(
    consumer: &mut ConsumerProgress,
    member: ConsumerMember,
    max: usize,
    end: u64,
) -> Vec<(u64, u32)> {
    let out = take_at(consumer, member, max, 0..end, 0);
    out.iter().map(|handed| (handed.offset, handed.attempt)).collect()
}

/// Takes as a subscription does, from blocks of seven messages.
fn take_at(
    consumer: &mut ConsumerProgress,
    member: ConsumerMember,
    max: usize,
    visible: Range<u64>,
    now: u64,
) -> Vec<HandedMessage> {
    let mut out = Vec::new();
    while out.len() < max
        && let Some(next) = consumer.next(&visible)
    {
        let first = next / 7 * 7;
        let block = first.max(visible.start)..(first + 7).min(visible.end);
        let given = consumer.take(member, block, max - out.len(), now, |_| true);
        assert_eq!(given.first().map(|handed| handed.offset), Some(next));
        out.extend(given);
    }
    out
}

fn restore(consumer: &ConsumerProgress) -> ConsumerProgress {
    let snapshot = consumer.snapshot(&[]);
    ConsumerProgress::restore(consumer.settings, &snapshot, &[], &mut DeadCounts::default())
        .unwrap()
}

fn consumer(max_in_flight: u32, max_attempts: u32) -> ConsumerProgress {
    ConsumerProgress::new(0, ConsumerSettings { max_in_flight, ack_wait_ms: 1000, max_attempts })
}

#[test]
fn each_message_is_given_once_until_it_comes_back() {
    let mut c = consumer(100, 0);
    assert_eq!(take(&mut c, 1, 2, 5), [(0, 1), (1, 1)]);
    assert_eq!(take(&mut c, 2, 9, 5), [(2, 1), (3, 1), (4, 1)]);
    assert_eq!(c.ack(1, 0, 0), 1);
    assert_eq!(c.ack(1, 0, 4), 1, "only what the member itself has in flight");
    assert_eq!(c.leave(2, 0), 3);
    assert_eq!(take(&mut c, 1, 9, 6), [(2, 2), (3, 2), (4, 2), (5, 1)]);
    assert_eq!(c.ack(1, 0, u64::MAX), 4);
    assert!(c.is_settled());
    assert_eq!(c.pending.len(), 0);
}

#[test]
fn what_is_done_is_let_go_when_it_is_more_than_half() {
    let mut c = consumer(1000, 0);
    assert_eq!(take(&mut c, 1, 1000, 1000).len(), 1000);
    c.ack(1, 1, 500);
    assert_eq!(c.pending.len(), 1000, "each time would cost a look at all of them");
    c.ack(1, 501, 501);
    assert_eq!(c.pending.len(), 499);
}

#[test]
fn one_in_flight_is_strict_order() {
    let mut c = consumer(1, 0);
    assert_eq!(take(&mut c, 1, 9, 5), [(0, 1)]);
    assert_eq!(take(&mut c, 2, 9, 5), []);
    assert!(c.is_full());
    c.nack(1, 0, 0, 0, 0);
    assert_eq!(take(&mut c, 2, 9, 5), [(0, 2)]);
    c.ack(2, 0, 0);
    assert_eq!(take(&mut c, 1, 9, 5), [(1, 1)]);
}

#[test]
fn time_brings_back_what_was_delayed_or_forgotten() {
    let mut c = consumer(100, 0);
    take(&mut c, 1, 2, 2);
    c.nack(1, 0, 0, 500, 0);
    assert!(!c.expire(499));
    assert_eq!(take(&mut c, 1, 9, 2), []);
    assert!(c.expire(500));
    assert_eq!(take(&mut c, 1, 9, 2), [(0, 2)]);
    assert!(c.expire(1000));
    assert_eq!(take(&mut c, 1, 1, 2), [(0, 3)]);
    assert_eq!(take(&mut c, 1, 1, 2), [(1, 2)]);
}

#[test]
fn out_of_attempts_is_buried_once() {
    let mut c = consumer(100, 2);
    take(&mut c, 1, 1, 1);
    c.nack(1, 0, 0, 0, 0);
    assert_eq!(take(&mut c, 1, 1, 1), [(0, 2)]);
    c.leave(1, 0);
    assert_eq!(take(&mut c, 1, 9, 1), []);
    assert_eq!(c.dead(9), [HandedMessage { offset: 0, attempt: 2 }]);
    assert_eq!(c.in_flight(), 1);
    assert_eq!(c.snapshot(&[0]), consumer_at(1).snapshot(&[]));
    c.bury(&[0]);
    assert!(c.dead(9).is_empty() && c.is_settled());
}

fn consumer_at(cursor: u64) -> ConsumerProgress {
    ConsumerProgress::new(cursor, ConsumerSettings::default())
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut c = consumer(100, 0);
    take(&mut c, 1, 4, 10);
    assert_eq!(c.forget(0..2), 2);
    assert_eq!(c.take_skipped(), None, "they were given");
    assert_eq!(c.forget(4..7), 0);
    assert_eq!(c.forget(7..7), 0);
    assert_eq!(c.take_skipped(), Some((4, 6)));
    assert_eq!(c.take_skipped(), None);
    assert_eq!(take(&mut c, 1, 9, 10), [(7, 1), (8, 1), (9, 1)]);
    assert_eq!(c.in_flight(), 5);
}

#[test]
fn a_snapshot_brings_everything_back_that_was_not_done() {
    let mut c = consumer(100, 0);
    take(&mut c, 1, 6, 6);
    c.ack(1, 1, 1);
    c.ack(1, 3, 4);
    c.nack(1, 5, 5, 900, 0);
    let mut restored = restore(&c);
    assert_eq!(take(&mut restored, 9, 9, 7), [(0, 2), (2, 2), (6, 1)]);
    assert!(restored.expire(900));
    assert_eq!(take(&mut restored, 9, 9, 7), [(5, 2)]);
    for cut in 1..3 {
        let snapshot = c.snapshot(&[]);
        let cut = &snapshot[..snapshot.len() - cut];
        let restored = ConsumerProgress::restore(c.settings, cut, &[], &mut DeadCounts::default());
        assert!(restored.is_none(), "a cut snapshot is refused");
    }
}

#[test]
fn memory_stays_with_what_is_in_flight() {
    let mut c = consumer(1000, 0);
    take(&mut c, 7, 1, 1);
    for end in 2..100_000 {
        let got = take(&mut c, 1, 1, end);
        c.ack(1, got[0].0, got[0].0);
    }
    assert_eq!(c.in_flight(), 1);
    assert!(c.pending.len() <= 65, "{} entries for one message", c.pending.len());
}

#[derive(Debug, Clone)]
enum ConsumerStep {
    Append(u64),
    Take(ConsumerMember, usize),
    Ack(ConsumerMember, u64, u64),
    Nack(ConsumerMember, u64, u64),
    Leave(ConsumerMember),
    Sleep(u64),
    Restart,
    Steer(ConsumerSteer),
}

fn steer() -> impl Strategy<Value = ConsumerSteer> {
    prop_oneof![
        Just(ConsumerSteer::Pause { since_ms: 5 }),
        Just(ConsumerSteer::Resume),
        (0..60_u64).prop_map(ConsumerSteer::Reset),
        (0..60_u64, 0..9_u64).prop_map(|(from, n)| ConsumerSteer::Skip(from..=from + n)),
        Just(ConsumerSteer::Redeliver),
    ]
}

/// The writer's check before it accepts the action.
fn may_be(steer: &ConsumerSteer, consumer: &ConsumerProgress, end: u64) -> bool {
    match steer {
        ConsumerSteer::Reset(offset) => *offset <= end,
        ConsumerSteer::Skip(offsets) => {
            *offsets.start() <= consumer.cursor() && *offsets.end() < end
        }
        ConsumerSteer::Pause { .. } | ConsumerSteer::Resume | ConsumerSteer::Redeliver => true,
    }
}

fn step() -> impl Strategy<Value = ConsumerStep> {
    let member = 1..4_u64;
    prop_oneof![
        (1..20_u64).prop_map(ConsumerStep::Append),
        (member.clone(), 0..9_usize).prop_map(|(m, n)| ConsumerStep::Take(m, n)),
        (member.clone(), 0..60_u64, 0..9_u64).prop_map(|(m, a, n)| ConsumerStep::Ack(m, a, a + n)),
        (member.clone(), 0..60_u64, 0..400_u64).prop_map(|(m, a, d)| ConsumerStep::Nack(m, a, d)),
        member.prop_map(ConsumerStep::Leave),
        (0..700_u64).prop_map(ConsumerStep::Sleep),
        Just(ConsumerStep::Restart),
        steer().prop_map(ConsumerStep::Steer),
    ]
}

/// The expected state, kept beside the consumer by the simplest means.
struct ConsumerModel {
    consumer: ConsumerProgress,
    end: u64,
    now: u64,
    done: BTreeSet<u64>,
    held: BTreeMap<u64, (ConsumerMember, u64)>,
    firsts: Vec<u64>,
}

impl ConsumerModel {
    fn step(&mut self, step: ConsumerStep) -> Result<(), TestCaseError> {
        match step {
            ConsumerStep::Append(n) => self.end += n,
            ConsumerStep::Sleep(ms) => {
                self.now += ms;
                self.consumer.expire(self.now);
                let now = self.now;
                self.held.retain(|_, (_, deadline)| *deadline > now);
            }
            ConsumerStep::Take(member, max) => self.take(member, max)?,
            ConsumerStep::Ack(member, from, to) => self.ack(member, from, to)?,
            ConsumerStep::Nack(member, offset, delay) => {
                let mine = self.held.get(&offset).is_some_and(|(holder, _)| *holder == member);
                let due = self.now + delay;
                let count = self.consumer.nack(member, offset, offset, due, self.now);
                prop_assert_eq!(count, u64::from(mine));
                if mine {
                    self.held.remove(&offset);
                }
            }
            ConsumerStep::Leave(member) => {
                self.consumer.leave(member, self.now);
                self.held.retain(|_, (holder, _)| *holder != member);
            }
            ConsumerStep::Restart => {
                let paused_ms = self.consumer.paused_ms;
                self.consumer = ConsumerProgress { paused_ms, ..restore(&self.consumer) };
                self.held.clear();
            }
            ConsumerStep::Steer(steer) => self.steer(steer)?,
        }
        Ok(())
    }

    /// The consumer becomes what was stored beforehand.
    fn steer(&mut self, steer: ConsumerSteer) -> Result<(), TestCaseError> {
        if !may_be(&steer, &self.consumer, self.end) {
            return Ok(());
        }
        let ConsumerSteered { paused_ms, state } = self.consumer.steered(&steer);
        self.consumer.steer(&steer, self.now);
        prop_assert_eq!(self.consumer.snapshot(&[]), state);
        prop_assert_eq!(self.consumer.paused_ms, paused_ms);
        match steer {
            ConsumerSteer::Pause { .. } | ConsumerSteer::Resume => {}
            ConsumerSteer::Reset(offset) => {
                self.done = (0..offset).collect();
                self.held.clear();
                self.firsts.clear();
            }
            ConsumerSteer::Skip(offsets) => {
                self.held.retain(|offset, _| !offsets.contains(offset));
                self.done.extend(offsets);
            }
            ConsumerSteer::Redeliver => self.held.clear(),
        }
        Ok(())
    }

    fn take(&mut self, member: ConsumerMember, max: usize) -> Result<(), TestCaseError> {
        let out = take_at(&mut self.consumer, member, max, 0..self.end, self.now);
        prop_assert!(out.len() <= max);
        prop_assert!(out.is_empty() || !self.consumer.is_paused());
        for HandedMessage { offset, attempt } in out {
            prop_assert!(!self.done.contains(&offset), "{} is done", offset);
            let holder = self.held.insert(offset, (member, self.now + 1000));
            prop_assert!(holder.is_none(), "{} is held", offset);
            if attempt == 1 {
                self.firsts.push(offset);
            }
        }
        prop_assert!(self.consumer.in_flight() <= 10);
        Ok(())
    }

    fn ack(&mut self, member: ConsumerMember, from: u64, to: u64) -> Result<(), TestCaseError> {
        let held = self.held.range(from..=to);
        let mine = held.filter(|(_, (holder, _))| *holder == member).map(|(offset, _)| *offset);
        let mine: Vec<u64> = mine.collect();
        prop_assert_eq!(self.consumer.ack(member, from, to), mine.len() as u64);
        self.held.retain(|offset, _| !mine.contains(offset));
        self.done.extend(mine);
        Ok(())
    }

    /// Lets everything come back and finishes it: every offset is done once.
    fn finish(mut self) -> Result<(), TestCaseError> {
        prop_assert!(self.firsts.windows(2).all(|pair| pair[0] < pair[1]));
        for member in 1..4 {
            self.consumer.leave(member, self.now);
        }
        self.steer(ConsumerSteer::Resume)?;
        for _ in 0..1000 {
            self.now += 500;
            self.consumer.expire(self.now);
            let out = take_at(&mut self.consumer, 9, 10, 0..self.end, self.now);
            for HandedMessage { offset, .. } in &out {
                prop_assert!(self.done.insert(*offset));
                prop_assert_eq!(self.consumer.ack(9, *offset, *offset), 1);
            }
            if out.is_empty() && self.consumer.is_settled() {
                break;
            }
        }
        prop_assert_eq!(self.done.len() as u64, self.end);
        Ok(())
    }
}

proptest! {
    /// Whatever members do, and those who steer the consumer beside them: nobody holds a message
    /// that another holds, nothing is lost or given again once it is done, first deliveries are in
    /// order, and the limit in flight holds.
    #[test]
    fn nothing_is_lost_or_given_twice(steps in prop::collection::vec(step(), 1..120)) {
        let mut model = ConsumerModel {
            consumer: consumer(10, 0),
            end: 0,
            now: 0,
            done: BTreeSet::new(),
            held: BTreeMap::new(),
            firsts: Vec::new(),
        };
        for step in steps {
            model.step(step)?;
        }
        model.finish()?;
    }
}

#[test]
fn what_does_not_fit_stays_with_the_consumer_and_in_order() {
    let mut c = consumer(100, 0);
    let mut left = 3;
    let fits = |_| {
        left -= 1;
        left >= 0
    };
    let first = c.take(1, 0..9, 9, 0, fits);
    assert_eq!(first.iter().map(|handed| handed.offset).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(take(&mut c, 2, 2, 9), [(3, 1), (4, 1)]);
    assert_eq!(take(&mut c, 1, 9, 9), [(5, 1), (6, 1), (7, 1), (8, 1)]);
}

#[test]
fn an_acknowledgement_is_stored_as_what_it_changed() {
    let mut c = consumer(65_536, 0);
    take(&mut c, 1, 65_536, 65_536);
    assert!(c.changes(&[]).unwrap().len() < 8, "all of it was given once");
    assert!(c.snapshot(&[]).len() > 190_000);
    for offset in (0..65_536).step_by(700) {
        c.ack(1, offset, offset);
    }
    let changes = c.changes(&[]).unwrap();
    assert!(changes.len() < 94 * 5, "{} bytes for 94 acknowledgements", changes.len());
    for offset in (1..65_536).step_by(2) {
        c.ack(1, offset, offset);
    }
    assert_eq!(c.changes(&[]), None, "a snapshot says that in fewer bytes");
    c.ack(1, 2, 2);
    assert!(c.changes(&[]).is_some());
    c.ack(1, 4, 4);
    c.is_unstored();
    assert_eq!(c.changes(&[]), None, "what was said before may be lost");
}

/// A consumer beside what the store has of it.
struct StoredConsumer {
    consumer: ConsumerProgress,
    end: u64,
    now: u64,
    snapshot: Vec<u8>,
    pieces: Vec<Vec<u8>>,
}

impl StoredConsumer {
    fn step(&mut self, step: ConsumerStep) {
        let c = &mut self.consumer;
        match step {
            ConsumerStep::Append(n) => self.end += n,
            ConsumerStep::Take(member, max) => {
                take_at(c, member, max, 0..self.end, self.now);
            }
            ConsumerStep::Ack(member, from, to) => {
                c.ack(member, from, to);
            }
            ConsumerStep::Nack(member, offset, delay) => {
                c.nack(member, offset, offset + 1, self.now + delay, self.now);
            }
            ConsumerStep::Leave(member) => {
                c.leave(member, self.now);
            }
            ConsumerStep::Sleep(ms) => {
                self.now += ms;
                c.expire(self.now);
                if ms % 7 == 0 {
                    c.forget(0..self.end / 3);
                }
            }
            ConsumerStep::Restart => self.store(),
            ConsumerStep::Steer(steer) if may_be(&steer, c, self.end) => {
                self.snapshot = c.steered(&steer).state;
                self.pieces.clear();
                // A member goes on while that is being stored.
                take_at(c, 1, 2, 0..self.end, self.now);
                c.steer(&steer, self.now);
                self.store();
            }
            ConsumerStep::Steer(_) => {}
        }
    }

    /// Stores what changed, buries some of the dead with it, and reads it back.
    fn store(&mut self) {
        let dead = self.consumer.dead(2).iter().map(|dead| dead.offset).collect::<Vec<_>>();
        let whole = self.consumer.snapshot(&dead);
        match self.consumer.changes(&dead) {
            Some(changes) => {
                let mut piece = Vec::new();
                write_counts(DeadCounts { lettered: self.now, dropped: 7 }, &mut piece);
                piece.extend(changes);
                self.pieces.push(piece);
            }
            None => {
                self.pieces.clear();
                self.snapshot = whole.clone();
            }
        }
        self.consumer.bury(&dead);
        let mut counts = DeadCounts::default();
        let read = |snapshot: &[u8], pieces: &[Vec<u8>], counts: &mut DeadCounts| {
            let settings = self.consumer.settings;
            let mut restored =
                ConsumerProgress::restore(settings, snapshot, pieces, counts).unwrap();
            // Messages that are due by now may be stored with or without their time.
            restored.expire(self.now);
            restored.snapshot(&[])
        };
        let direct = read(&whole, &[], &mut counts);
        assert_eq!(read(&self.snapshot, &self.pieces, &mut counts), direct);
        assert!(self.pieces.is_empty() || counts == DeadCounts { lettered: self.now, dropped: 7 });
    }
}

proptest! {
    /// The changes since a snapshot, put onto it, are the next snapshot.
    #[test]
    fn changes_come_to_what_a_snapshot_says(steps in prop::collection::vec(step(), 1..120)) {
        let consumer = consumer(10, 2);
        let snapshot = consumer.snapshot(&[]);
        let mut stored = StoredConsumer { consumer, end: 0, now: 0, snapshot, pieces: Vec::new() };
        for step in steps {
            stored.step(step);
        }
        stored.store();
    }

    /// Whatever stands in a row, it is read as pieces or not at all, and costs no memory.
    #[test]
    fn damaged_changes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for (_, piece) in pieces(&bytes) {
            let settings = ConsumerSettings::default();
            let piece = piece.to_vec();
            let mut dead = DeadCounts::default();
            let restored = ConsumerProgress::restore(settings, &[5], &[piece], &mut dead);
            prop_assert!(restored.is_none_or(|c| c.in_flight() <= 2 * MAX_IN_FLIGHT));
        }
    }
}
