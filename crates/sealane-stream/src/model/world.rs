//! The expected content of the hub.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sealane_codec::Codec;
use sealane_message::Topic;
use sealane_protocol::StreamPosition;

use super::consumers::{ConsumerLedger, ModelVerb};
use super::requests::{ModelRequest, envelope};
use super::sessions::ModelNumbers;
use super::shares::{self, ModelKey, ModelShares, OWNERS};
use super::{ModelRandom, until};
use crate::{
    Error, Level, ReadStart, ShareKind, StreamChange, StreamEnqueue, StreamHub, StreamState,
    SubscriptionOutput,
};

/// The known state of a message that was acknowledged.
#[derive(Debug, Clone)]
pub(super) struct ModelMessage {
    pub(super) id: String,
    pub(super) generation: u64,
    /// Whether a kill must not take it.
    pub(super) is_sure: bool,
}

/// One stream, from when it was made until it is removed.
#[derive(Debug, Default)]
pub(super) struct ModelStream {
    /// The owner whose share it counts to.
    pub(super) owner: &'static str,
    pub(super) level: Level,
    pub(super) max_count: u64,
    /// Whether it ever had a bound.
    pub(super) was_bounded: bool,
    /// Everything before was purged.
    pub(super) purged: u64,
    /// By offset.
    pub(super) messages: BTreeMap<u64, ModelMessage>,
    /// The messages that came with an idempotency key, by owner and key.
    pub(super) keys: HashMap<(&'static str, u64), ModelKey>,
    /// Ids that are held back.
    pub(super) delayed: HashSet<String>,
    pub(super) consumers: BTreeMap<String, ConsumerLedger>,
    /// The messages that publishing sessions have had stored.
    pub(super) sessions: BTreeMap<usize, ModelNumbers>,
    /// Names of consumers that were removed: those who have them now are not the first.
    pub(super) loose: BTreeSet<String>,
}

impl ModelStream {
    fn positions(&self) -> Vec<StreamPosition> {
        let all = self.messages.iter();
        all.map(|(&offset, message)| StreamPosition { generation: message.generation, offset })
            .collect()
    }
}

pub(super) struct ModelWorld {
    pub(super) seed: u64,
    streams: BTreeMap<Topic, ModelStream>,
    /// Every message that was ever seen, by topic, generation and offset.
    seen: HashMap<(Topic, u64, u64), String>,
    ids: u64,
    /// Requests with a key, to be sent again.
    pub(super) asked: Vec<ModelRequest>,
    /// Streams as they were seen at some time, to be removed if they still are so.
    pub(super) looked: Vec<StreamState>,
    pub(super) shares: ModelShares,
    /// Whether another process has filled the disk, and nothing else is wrong.
    pub(super) is_filled: bool,
    /// Streams to which a message of this batch was on its way when the store failed: they were
    /// not idle.
    pub(super) failed_to_gain: HashSet<Topic>,
}

/// The result of one look at a stream.
#[derive(Default)]
struct ModelFound {
    messages: BTreeMap<u64, ModelMessage>,
    /// Offsets that retention took, both ends included.
    trimmed: Vec<(u64, u64)>,
}

impl ModelWorld {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            streams: BTreeMap::new(),
            seen: HashMap::new(),
            ids: 0,
            asked: Vec::new(),
            looked: Vec::new(),
            shares: ModelShares::new(seed),
            is_filled: false,
            failed_to_gain: HashSet::new(),
        }
    }

    pub(super) fn id(&mut self) -> String {
        self.ids += 1;
        format!("{}-{}", self.seed, self.ids)
    }

    /// A topic to be published to: some streams have bounds, and one can have no dead letters.
    pub(super) fn topic(&self, random: &mut ModelRandom) -> Topic {
        const DEEP: &str = "p/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16";
        random.pick(&["s/0", "s/1", "s/2", "s/3", "r/0", DEEP]).parse().unwrap()
    }

    pub(super) fn has(&self, topic: &Topic) -> bool {
        self.streams.contains_key(topic)
    }

    /// The stream, which this owner has made if it is not known yet.
    pub(super) fn made_by(&mut self, owner: &'static str, topic: &Topic) -> &mut ModelStream {
        if !self.has(topic) {
            self.shares.gained(owner, ShareKind::Streams, 1);
            self.stream(topic).owner = owner;
        }
        self.stream(topic)
    }

    /// Streams that count to the share of this owner.
    fn streams_of(&self, owner: &str) -> u64 {
        self.streams.values().filter(|known| known.owner == owner).count() as u64
    }

    /// Holds the shares, as the hub counts them, against what is known.
    pub(super) fn weigh(&mut self, hub: &StreamHub) {
        let seed = self.seed;
        self.shares.look(hub);
        for owner in OWNERS {
            let (held, known) =
                (shares::held(hub, owner, ShareKind::Streams), self.streams_of(owner));
            assert_eq!(held, known, "seed {seed}: streams of `{owner}`");
        }
    }

    /// The stream, which comes to be known by being made.
    pub(super) fn stream(&mut self, topic: &Topic) -> &mut ModelStream {
        let fresh = || ModelStream { level: Level::Os, ..ModelStream::default() };
        self.streams.entry(topic.clone()).or_insert_with(fresh)
    }

    pub(super) fn known(&mut self, topic: &Topic) -> Option<&mut ModelStream> {
        self.streams.get_mut(topic)
    }

    pub(super) fn next(&self, topic: &Topic) -> u64 {
        let last = self.streams.get(topic).and_then(|known| known.messages.last_key_value());
        last.map_or(0, |(offset, _)| offset + 1)
    }

    pub(super) fn remove(&mut self, topic: &Topic) {
        self.streams.remove(topic);
    }

    /// The stream was idle since it was seen, and went.
    pub(super) fn went(&mut self, seen: &StreamState) {
        let (topic, seed) = (&seen.stream, self.seed);
        let known = self.streams.remove(topic).unwrap_or_else(|| panic!("seed {seed}: {topic}"));
        let generation = known.messages.last_key_value().map(|(_, last)| last.generation);
        assert!(generation <= Some(seen.generation), "seed {seed}: {topic} is another one");
        let (next, delayed) = (known.messages.len() as u64, &known.delayed);
        assert_eq!(next, seen.next, "seed {seed}: {topic} went with what came to it");
        assert!(delayed.is_empty(), "seed {seed}: {topic} went, {delayed:?} had not come");
    }

    /// The stream did not go: it was not idle, or not the one that was seen.
    pub(super) fn stayed(&mut self, hub: &StreamHub, seen: &StreamState) {
        let (topic, seed) = (&seen.stream, self.seed);
        let known = self.streams.get(topic).unwrap_or_else(|| panic!("seed {seed}: {topic}"));
        let last = known.messages.last_key_value();
        // A kill may have begun another generation, which has no message yet.
        let goes_on = hub.stream(topic).is_ok_and(|now| now.generation == seen.generation);
        let is_same = goes_on
            && last.is_some_and(|(_, last)| last.generation == seen.generation)
            && known.messages.len() as u64 == seen.next;
        // A delayed message that the same commit cancels keeps its stream all the same.
        let is_given = topic.as_str().starts_with("d/");
        // A member that read an earlier stream of this topic may read this one, too.
        let is_read = |info: StreamState| info.consumers.iter().any(|one| one.members > 0);
        let may_be_read = !known.consumers.is_empty() || !known.loose.is_empty();
        let has_failed = self.failed_to_gain.contains(topic);
        let is_used =
            is_given || may_be_read || has_failed || hub.stream(topic).map_or(true, is_read);
        assert!(!is_same || is_used, "seed {seed}: {topic} stays, and nobody uses it");
    }

    pub(super) fn manage(&mut self, topic: &Topic, consumer: &str, verb: &ModelVerb) {
        let known = self.stream(topic);
        let all = known.positions();
        // A member of an earlier stream of this topic may have made it, and has not been told yet
        // that that one is gone.
        match verb {
            ModelVerb::Remove => {
                known.consumers.remove(consumer);
                known.loose.insert(consumer.to_owned());
            }
            ModelVerb::Steer(verb) => {
                let ledger = known.consumers.entry(consumer.to_owned()).or_default();
                ledger.steer(verb, &all, consumer);
            }
        }
    }

    pub(super) fn purge(&mut self, topic: &Topic, before: u64) {
        let known = self.stream(topic);
        known.purged = known.purged.max(before);
        let all = known.positions();
        let gone = || all.iter().filter(|position| position.offset < before).copied();
        known.consumers.values_mut().for_each(|ledger| ledger.pass(gone()));
    }

    pub(super) fn topics(&self) -> Vec<Topic> {
        self.streams.keys().cloned().collect()
    }

    /// Looks at one stream.
    pub(super) async fn check(&mut self, hub: &StreamHub, random: &mut ModelRandom) {
        let topics = self.topics();
        if !topics.is_empty() {
            let topic = topics[random.below(topics.len() as u64) as usize].clone();
            self.look(hub, &topic).await;
        }
    }

    /// Holds all that can be read of a stream against what is known.
    pub(super) async fn look(&mut self, hub: &StreamHub, topic: &Topic) {
        let seed = self.seed;
        let found = read(hub, topic, seed).await;
        for (offset, message) in &found.messages {
            let position = (topic.clone(), message.generation, *offset);
            let before = self.seen.insert(position, message.id.clone());
            let is_same = before.is_none_or(|before| before == message.id);
            assert!(is_same, "seed {seed}: {topic} {} {offset} names two", message.generation);
        }
        let is_given = topic.as_str().starts_with("d/");
        let known = self.streams.get_mut(topic).unwrap();
        if is_given {
            // A message that was held back has an offset from now on.
            for (offset, message) in &found.messages {
                if !known.messages.contains_key(offset) {
                    let was_held = known.delayed.remove(&message.id);
                    assert!(was_held, "seed {seed}: {topic} {offset} comes twice or of itself");
                    known.messages.insert(*offset, message.clone());
                }
            }
        }
        for (offset, message) in &known.messages {
            let is_trimmed = found.trimmed.iter().any(|(a, b)| (a..=b).contains(&offset));
            match found.messages.get(offset) {
                Some(read) => assert_eq!(read.id, message.id, "seed {seed}: {topic} {offset}"),
                None => assert!(
                    is_trimmed && (known.was_bounded || *offset < known.purged),
                    "seed {seed}: {topic} {offset} ({}) is lost, {} read",
                    message.id,
                    found.messages.len()
                ),
            }
        }
        let purged = found.messages.keys().find(|offset| **offset < known.purged);
        assert_eq!(purged, None, "seed {seed}: {topic} has what was purged");
        let strangers = found.messages.keys().find(|offset| !known.messages.contains_key(offset));
        assert_eq!(strangers, None, "seed {seed}: {topic} has what nobody published");
    }

    /// Lets what consumers did meet the store as it is now.
    pub(super) async fn meet(&mut self, hub: &StreamHub) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let answer = hub.remove(&"never/there".parse().unwrap()).await;
        assert!(answer.is_err(), "seed {}: {answer:?}", self.seed);
    }

    /// Waits until all acknowledgements are stored, which needs no room on the disk.
    pub(super) async fn flush_acks(&mut self, hub: &StreamHub) {
        let nowhere = "never/there".parse().unwrap();
        loop {
            until("acknowledgements are stored", self.seed, || !hub.has_unstored()).await;
            let answer = hub.remove(&nowhere).await;
            assert!(matches!(answer, Err(Error::UnknownStream(_))), "{answer:?}");
            if !hub.has_unstored() {
                break;
            }
        }
        for known in self.streams.values_mut() {
            known.consumers.values_mut().for_each(ConsumerLedger::acks_flushed);
        }
    }

    /// Has retention take messages while there is no room on the disk.
    pub(super) async fn retain_on_a_filled_disk(&mut self, hub: &StreamHub) {
        let topic: Topic = "kept".parse().unwrap();
        for _ in 0..3 {
            let envelopes = (0..6).map(|_| envelope(hub, &self.id())).collect();
            let (topic, owner) = (topic.clone(), "b".into());
            let (expect, delay_ms, key) = (None, None, None);
            let enqueue = StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner };
            hub.enqueue(enqueue).await.unwrap();
        }
        hub.store_trouble.set_full(true);
        let change = StreamChange { max_count: Some(5), ..StreamChange::default() };
        hub.configure(&topic, change).await.unwrap();
        let first = || hub.stream(&topic).unwrap().first;
        until("retention on a full disk", self.seed, || first() == 12).await;
        hub.store_trouble.end();
    }

    /// Waits until everything that consumers did is stored.
    pub(super) async fn flush(&mut self, hub: &StreamHub) {
        let nowhere = "never/there".parse().unwrap();
        loop {
            until("consumers are stored", self.seed, || !hub.has_unstored()).await;
            // Its answer comes behind the commit that took the last of them.
            let answer = hub.remove(&nowhere).await;
            assert!(matches!(answer, Err(Error::UnknownStream(_))), "{answer:?}");
            if !hub.has_unstored() {
                break;
            }
        }
        for known in self.streams.values_mut() {
            known.messages.values_mut().for_each(|message| message.is_sure = true);
            known.consumers.values_mut().for_each(ConsumerLedger::flushed);
        }
    }

    /// The hub is going to be closed: everything is stored.
    pub(super) fn left(&mut self, hub: &StreamHub) {
        self.shares.left(hub);
        for known in self.streams.values_mut() {
            known.messages.values_mut().for_each(|message| message.is_sure = true);
            known.consumers.values_mut().for_each(ConsumerLedger::flushed);
            known.consumers.values_mut().for_each(ConsumerLedger::reopened);
        }
    }

    /// The hub was killed: what was not sure may be gone.
    pub(super) fn killed(&mut self) {
        for known in self.streams.values_mut() {
            known.consumers.values_mut().for_each(ConsumerLedger::reopened);
        }
    }

    /// The hub was opened again: takes over what is left where it could be lost.
    pub(super) async fn opened(&mut self, hub: &StreamHub) {
        let seed = self.seed;
        for topic in self.topics() {
            let known = self.streams.get_mut(&topic).unwrap();
            let info = hub.stream(&topic).unwrap_or_else(|e| panic!("seed {seed}: {topic}: {e}"));
            assert_eq!(info.level, known.level, "seed {seed}: {topic}");
            assert!(info.damaged.is_empty(), "seed {seed}: {topic} is damaged");
            let lost: BTreeSet<u64> = known.messages.range(info.next..).map(|(o, _)| *o).collect();
            for offset in lost {
                let message = known.messages.remove(&offset).unwrap();
                assert!(!message.is_sure, "seed {seed}: {topic} {offset} was sure");
                assert!(info.generation > message.generation, "seed {seed}: {topic} {offset}");
            }
            let next = info.next;
            let what = format!("seed {seed}: {topic}");
            known.sessions.values_mut().for_each(|numbers| numbers.lose(next, &what));
            known.keys.retain(|_, key| key.offset + (key.ids.len() as u64) <= next);
            known.messages.values_mut().for_each(|message| message.is_sure = true);
            self.look(hub, &topic).await;
        }
        let known: BTreeSet<Topic> = self.topics().into_iter().collect();
        self.shares.opened(hub);
        self.weigh(hub);
        for info in hub.streams("", None, usize::MAX, |_| true).streams {
            let is_dead = info.stream.as_str().starts_with("dead/");
            let is_known = is_dead || known.contains(&info.stream);
            assert!(is_known, "seed {seed}: {} is there again", info.stream);
        }
    }

    /// Lets everything come that is still to come, and looks at all of it once more.
    pub(super) async fn end(&mut self, hub: &StreamHub) {
        for topic in self.topics() {
            let known = &self.streams[&topic];
            let next = (known.messages.len() + known.delayed.len()) as u64;
            let arrived = || hub.stream(&topic).is_ok_and(|info| info.next >= next);
            until("delayed messages come", self.seed, arrived).await;
            self.look(hub, &topic).await;
            assert!(self.streams[&topic].delayed.is_empty());
        }
        for topic in self.topics() {
            let known = &self.streams[&topic];
            let wanted: usize = known.consumers.values().map(ConsumerLedger::dead).sum();
            let start = std::time::Instant::now();
            let mut all = letters(hub, &topic, self.seed).await;
            while topic.as_str().starts_with("s/") && all.len() < wanted {
                let waits = start.elapsed() < std::time::Duration::from_secs(20);
                assert!(waits, "seed {}: {topic}: {} of {wanted} letters", self.seed, all.len());
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                all = letters(hub, &topic, self.seed).await;
            }
            let is_first = |(name, _): &(&String, &ConsumerLedger)| !known.loose.contains(*name);
            for (name, ledger) in known.consumers.iter().filter(is_first) {
                ledger.end(&topic, name, &all, self.seed);
            }
        }
    }
}

/// Everything that can be read of a stream.
async fn read(hub: &StreamHub, topic: &Topic, seed: u64) -> ModelFound {
    let mut found = ModelFound::default();
    let mut from = 0;
    loop {
        let page = match hub.read(topic, ReadStart::Offset(from), 1000).await {
            Ok(page) => page,
            Err(Error::UnknownStream(_)) => panic!("seed {seed}: {topic} is not there"),
            Err(error) => panic!("seed {seed}: {topic}: {error}"),
        };
        for event in page.events {
            match event {
                SubscriptionOutput::Deliver(delivery) => {
                    let frame = delivery.frame(Codec::Json);
                    let value = sealane_codec::decode(Codec::Json, &frame).unwrap();
                    let envelope = value.field("deliver").unwrap();
                    let id = envelope.field("id").unwrap().as_text().unwrap().to_owned();
                    let generation = delivery.generation();
                    let message = ModelMessage { id, generation, is_sure: true };
                    found.messages.insert(delivery.offset(), message);
                }
                SubscriptionOutput::Status(frame) => match frame {
                    sealane_protocol::ServerFrame::Gap { from, to, reason, .. } => {
                        assert_eq!(reason, "retention", "seed {seed}: {topic} {from} to {to}");
                        found.trimmed.push((from, to));
                    }
                    other => panic!("seed {seed}: {topic}: {other:?}"),
                },
            }
        }
        from = page.next;
        if page.end {
            return found;
        }
    }
}

/// The dead letters of a stream: consumer, generation and offset of each.
async fn letters(hub: &StreamHub, topic: &Topic, seed: u64) -> Vec<(String, u64, u64)> {
    let Ok(grave) = format!("dead/{topic}").parse::<Topic>() else { return Vec::new() };
    let (mut all, mut from) = (Vec::new(), 0);
    while let Ok(page) = hub.read(&grave, ReadStart::Offset(from), 1000).await {
        for event in page.events {
            let SubscriptionOutput::Deliver(delivery) = event else {
                panic!("seed {seed}: {grave}: a gap")
            };
            let frame = delivery.frame(Codec::Json);
            let value = sealane_codec::decode(Codec::Json, &frame).unwrap();
            let letter = value.field("deliver").unwrap();
            let number = |name| letter.field(name).unwrap().as_u64().unwrap();
            let consumer = letter.field("consumer").unwrap().as_text().unwrap().to_owned();
            all.push((consumer, number("generation"), number("offset")));
        }
        from = page.next;
        if page.end {
            break;
        }
    }
    all
}
