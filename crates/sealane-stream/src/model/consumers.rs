//! Members of consumers, and what each message of them has come to.

use std::collections::BTreeMap;

use sealane_message::Topic;
use sealane_protocol::{AckMark, ConsumerVerb, Op, StreamPosition};

use super::ModelRandom;
use super::shares::OWNERS;
use super::world::ModelWorld;

use crate::{
    ConsumerChange, Error, ReadStart, StreamHub, StreamSubscription, SubscriptionOutput,
    SubscriptionReader,
};

/// Deliveries after which a message of the consumer `c1` is a dead letter.
const ATTEMPTS: u32 = 2;

/// The last known state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelLast {
    Held {
        by: u64,
        attempt: u32,
    },
    Acked {
        is_sure: bool,
    },
    /// It comes again.
    Back,
    /// It is out of attempts.
    Dead {
        is_sure: bool,
    },
    /// The operator has skipped it, or set the consumer behind it.
    Passed,
}

/// The known state of one consumer of one stream.
#[derive(Debug, Default)]
pub(super) struct ConsumerLedger {
    last: BTreeMap<StreamPosition, ModelLast>,
    /// The greatest offset that came for the first time since the hub was opened.
    first: Option<u64>,
    is_paused: bool,
    /// Whether a message may have been given for the first time more than once, and have died so.
    was_reset: bool,
}

/// An action on a consumer or on the beginning of its stream.
#[derive(Debug, Clone)]
pub(super) enum ModelVerb {
    Steer(ConsumerVerb),
    Remove,
}

impl ConsumerLedger {
    /// Everything that was done is stored.
    pub(super) fn flushed(&mut self) {
        for last in self.last.values_mut() {
            match last {
                ModelLast::Acked { is_sure } | ModelLast::Dead { is_sure } => *is_sure = true,
                ModelLast::Held { .. } | ModelLast::Back | ModelLast::Passed => {}
            }
        }
    }

    /// All acknowledgements are stored. A dead letter may still wait for room.
    pub(super) fn acks_flushed(&mut self) {
        for last in self.last.values_mut() {
            if let ModelLast::Acked { is_sure } = last {
                *is_sure = true;
            }
        }
    }

    /// The hub was opened again.
    pub(super) fn reopened(&mut self) {
        self.first = None;
        for last in self.last.values_mut() {
            match last {
                ModelLast::Acked { is_sure: true }
                | ModelLast::Dead { is_sure: true }
                | ModelLast::Passed => {}
                _ => *last = ModelLast::Back,
            }
        }
    }

    /// Messages that must become dead letters.
    pub(super) fn dead(&self) -> usize {
        if self.was_reset {
            return 0;
        }
        self.last.values().filter(|last| matches!(last, ModelLast::Dead { is_sure: true })).count()
    }

    /// Holds the dead letters of the stream against what became of its messages.
    pub(super) fn end(&self, topic: &Topic, name: &str, letters: &[(String, u64, u64)], seed: u64) {
        for (position, last) in &self.last {
            let is_meant = |letter: &&(String, u64, u64)| {
                letter.0 == name && (letter.1, letter.2) == (position.generation, position.offset)
            };
            let count = letters.iter().filter(is_meant).count();
            let can_be = topic.as_str().starts_with("s/");
            match last {
                ModelLast::Dead { is_sure: true } if can_be && !self.was_reset => {
                    assert_eq!(count, 1, "seed {seed}: {topic} {name} {position:?}: letters");
                }
                _ if self.was_reset => {}
                ModelLast::Acked { .. } => {
                    assert_eq!(count, 0, "seed {seed}: {topic} {name} {position:?} was done");
                }
                _ => assert!(count <= 1, "seed {seed}: {topic} {name} {position:?}: {count}"),
            }
        }
    }

    fn delivered(&mut self, position: StreamPosition, attempt: u32, by: u64, what: &str) {
        let last = self.last.insert(position, ModelLast::Held { by, attempt });
        let may_come = match last {
            None | Some(ModelLast::Back | ModelLast::Dead { is_sure: false }) => true,
            Some(ModelLast::Held { .. } | ModelLast::Acked { .. } | ModelLast::Passed) => false,
            Some(ModelLast::Dead { is_sure: true }) => false,
        };
        assert!(!self.is_paused, "{what} {position:?} comes to a paused consumer");
        assert!(may_come, "{what} {position:?} comes again (attempt {attempt}), it was {last:?}");
        if attempt == 1 {
            let is_next = self.first.is_none_or(|first| first < position.offset);
            assert!(is_next, "{what} {position:?} comes behind {:?}", self.first);
            self.first = Some(position.offset);
        }
    }

    /// Messages of these positions do not come any more.
    pub(super) fn pass(&mut self, positions: impl IntoIterator<Item = StreamPosition>) {
        self.last.extend(positions.into_iter().map(|position| (position, ModelLast::Passed)));
    }

    /// Repeats the hub's action in the model; `all` are the messages of the stream.
    pub(super) fn steer(&mut self, verb: &ConsumerVerb, all: &[StreamPosition], name: &str) {
        match verb {
            ConsumerVerb::Pause => self.is_paused = true,
            ConsumerVerb::Resume => self.is_paused = false,
            ConsumerVerb::Reset(ReadStart::Offset(to)) => {
                self.last.retain(|position, _| position.offset < *to);
                self.pass(all.iter().filter(|position| position.offset < *to).copied());
                self.first = None;
                self.was_reset = true;
            }
            ConsumerVerb::Reset(_) => unreachable!("the model resets to offsets"),
            ConsumerVerb::Skip(offsets) => {
                let is_meant = |position: &&StreamPosition| offsets.contains(&position.offset);
                self.pass(all.iter().filter(is_meant).copied());
            }
            ConsumerVerb::Redeliver => {
                let is_held = |(_, last): &(&StreamPosition, &ModelLast)| {
                    matches!(last, ModelLast::Held { .. })
                };
                let held: Vec<StreamPosition> =
                    self.last.iter().filter(is_held).map(|(position, _)| *position).collect();
                held.into_iter().for_each(|position| self.back(position, name));
            }
        }
    }

    /// A message that a member had goes back, or is out of attempts.
    fn back(&mut self, position: StreamPosition, name: &str) {
        if let Some(last) = self.last.get_mut(&position) {
            *last = match *last {
                ModelLast::Held { attempt, .. } if name == "c1" && attempt >= ATTEMPTS => {
                    ModelLast::Dead { is_sure: false }
                }
                _ => ModelLast::Back,
            };
        }
    }
}

struct ModelMember {
    topic: Topic,
    name: &'static str,
    owner: &'static str,
    number: u64,
    subscription: StreamSubscription,
    held: Vec<StreamPosition>,
}

/// The members that read now.
#[derive(Default)]
pub(super) struct ModelMembers {
    all: Vec<ModelMember>,
    count: u64,
}

impl ModelMembers {
    /// Lets somebody come, take, finish or go; returns how many steps that were.
    pub(super) async fn step(
        &mut self,
        hub: &StreamHub,
        world: &mut ModelWorld,
        random: &mut ModelRandom,
    ) -> u64 {
        let steps = 1 + random.below(4);
        for _ in 0..steps {
            match random.below(10) {
                0 | 1 => self.come(hub, world, random).await,
                2 if !self.all.is_empty() => {
                    let member = self.all.swap_remove(random.below(self.all.len() as u64) as usize);
                    leave(member, world);
                }
                3..=6 => self.take(hub, world, random).await,
                _ => self.finish(world, random),
            }
        }
        steps
    }

    async fn come(&mut self, hub: &StreamHub, world: &mut ModelWorld, random: &mut ModelRandom) {
        let topics = world.topics();
        let can_read = |topic: &&Topic| topic.as_str().starts_with(['s', 'p']);
        let topics: Vec<&Topic> = topics.iter().filter(can_read).collect();
        if topics.is_empty() || self.all.len() > 6 {
            return;
        }
        let topic = topics[random.below(topics.len() as u64) as usize].clone();
        let name = random.pick(&["c0", "c1"]);
        let max_attempts = (name == "c1").then_some(ATTEMPTS);
        let change = ConsumerChange { max_attempts, ..ConsumerChange::default() };
        let owner = random.pick(&OWNERS);
        let who = SubscriptionReader::Member {
            name: name.into(),
            owner: owner.into(),
            start: ReadStart::First,
            change,
            steers: Default::default(),
        };
        world.shares.look(hub);
        let subscription = match hub.subscribe(topic.clone().into(), who).await {
            Ok((subscription, _)) => subscription,
            Err(error) => return world.shares.refused(owner, &error),
        };
        world.stream(&topic).consumers.entry(name.into()).or_default();
        self.count += 1;
        let number = self.count;
        let held = Vec::new();
        self.all.push(ModelMember { topic, name, owner, number, subscription, held });
    }

    async fn take(&mut self, hub: &StreamHub, world: &mut ModelWorld, random: &mut ModelRandom) {
        if self.all.is_empty() {
            return;
        }
        let at = random.below(self.all.len() as u64) as usize;
        let member = &mut self.all[at];
        let what = format!("seed {}: {} {}", world.seed, member.topic, member.name);
        let credit = 1 + random.below(12);
        member.subscription.apply(Op::Credit(credit)).unwrap();
        let mut events = Vec::new();
        world.shares.look(hub);
        match member.subscription.take(credit as usize, 1 << 20, &mut events).await {
            Ok(()) => {}
            // Its stream or consumer was removed, and its ledger with it.
            Err(Error::StreamRemoved | Error::ConsumerRemoved) => {
                self.all.swap_remove(at);
                return;
            }
            // Its stream was made again, and in that it would make the consumer.
            Err(error @ Error::ShareTaken { .. }) => {
                let member = self.all.swap_remove(at);
                return world.shares.refused(member.owner, &error);
            }
            Err(error) => panic!("{what}: {error}"),
        }
        for event in events {
            let SubscriptionOutput::Deliver(delivery) = event else {
                assert!(matches!(event, SubscriptionOutput::Status(_)));
                continue;
            };
            let (generation, offset) = (delivery.generation(), delivery.offset());
            let position = StreamPosition { generation, offset };
            let known = world.stream(&member.topic);
            let ledger = known.consumers.get_mut(member.name).unwrap();
            ledger.delivered(position, delivery.attempt(), member.number, &what);
            let is_over = member.name == "c1" && delivery.attempt() > ATTEMPTS;
            assert!(!is_over, "{what} {position:?}: attempt {}", delivery.attempt());
            assert!(
                known.messages.contains_key(&position.offset),
                "{what} {position:?} was never published"
            );
            member.held.push(position);
        }
    }

    /// Acknowledges or sets back some of what a member has.
    fn finish(&mut self, world: &mut ModelWorld, random: &mut ModelRandom) {
        if self.all.is_empty() {
            return;
        }
        let at = random.below(self.all.len() as u64) as usize;
        let member = &mut self.all[at];
        let count = (random.below(6) as usize).min(member.held.len());
        let sets_back = random.one_in(3);
        for position in member.held.drain(..count) {
            let marks =
                vec![AckMark::Range { stream: None, from: position.offset, to: position.offset }];
            let op = if sets_back { Op::Nack(marks, 0) } else { Op::Ack(marks) };
            member.subscription.apply(op).unwrap();
            // Of a stream that is gone, or was made again, nothing is known.
            let known = world.known(&member.topic);
            let Some(ledger) = known.and_then(|known| known.consumers.get_mut(member.name)) else {
                continue;
            };
            let mine = matches!(ledger.last.get(&position),
                Some(ModelLast::Held { by, .. }) if *by == member.number);
            match (mine, sets_back) {
                (false, _) => {}
                (true, true) => ledger.back(position, member.name),
                (true, false) => {
                    ledger.last.insert(position, ModelLast::Acked { is_sure: false });
                }
            }
        }
    }
}

/// A member goes: what it had comes to others.
fn leave(member: ModelMember, world: &mut ModelWorld) {
    let ModelMember { topic, name, number, subscription, held, .. } = member;
    drop(subscription);
    let Some(ledger) = world.known(&topic).and_then(|known| known.consumers.get_mut(name)) else {
        return;
    };
    for position in held {
        if matches!(ledger.last.get(&position), Some(ModelLast::Held { by, .. }) if *by == number) {
            ledger.back(position, name);
        }
    }
}
