//! Publishing sessions, and what each of their numbers has come to.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use sealane_message::Topic;
use sealane_protocol::EnqueueOutcome;
use tokio::time::timeout;

use super::ModelRandom;
use super::requests::envelope;
use super::world::{ModelMessage, ModelWorld};
use crate::{
    Error, Level, PublishAnswered, PublishSession, SessionItem, ShareKind, StoredPlace, StreamHub,
};

/// Owner and name of each session; three differ in their owners alone.
const SESSIONS: [(&str, &str); 4] = [("", "p"), ("a", "p"), ("", "q"), ("b", "p")];
/// Places of each stream that the hub is to remember.
const KEEP: u64 = 6;

/// One numbered message.
#[derive(Debug, Clone)]
pub(super) struct ModelAsk {
    topic: Topic,
    n: u64,
    id: String,
    expect: Option<u64>,
    delay_ms: Option<u64>,
}

/// Where the messages of one session are in one stream, and what they were; the first has the
/// number 1.
#[derive(Debug, Default)]
pub(super) struct ModelNumbers(Vec<(EnqueueOutcome, String)>);

impl ModelNumbers {
    fn last(&self) -> u64 {
        self.0.len() as u64
    }

    fn stored(&self, n: u64) -> Option<&(EnqueueOutcome, String)> {
        let index = usize::try_from(n.checked_sub(1)?).ok()?;
        self.0.get(index)
    }

    /// The stream has lost everything from this offset on, and what was numbered behind it.
    pub(super) fn lose(&mut self, from: u64, what: &str) {
        let is_lost = |stored: &(EnqueueOutcome, String)| match stored.0 {
            EnqueueOutcome::At(at) => at.offset >= from,
            EnqueueOutcome::Due(_) => false,
        };
        let kept = self.0.iter().take_while(|place| !is_lost(place)).count();
        let lost = self.0.split_off(kept);
        assert!(lost.iter().all(is_lost), "{what}: a number outlives the one before it: {lost:?}");
    }
}

/// The connections of the sessions.
#[derive(Default)]
pub(super) struct ModelPublishers([Option<PublishSession>; SESSIONS.len()]);

impl ModelPublishers {
    /// Lets every session have a connection; one that has may be taken over by another.
    pub(super) async fn step(&mut self, hub: &StreamHub, random: &mut ModelRandom) {
        for ((owner, name), connection) in SESSIONS.iter().zip(&mut self.0) {
            if connection.is_some() && !random.one_in(12) {
                continue;
            }
            let next = hub.publishing(owner, name).unwrap();
            if let Some(before) = connection.replace(next) {
                let told = timeout(PATIENCE, before.answers(&mut Vec::new())).await;
                assert_eq!(told, Ok(Err(Error::SessionTaken)));
            }
        }
    }

    /// Publishes as a session; what became of each message.
    pub(super) async fn publish(
        &self,
        hub: &StreamHub,
        session: usize,
        asked: &[ModelAsk],
    ) -> Vec<Result<StoredPlace, Error>> {
        let connection = self.0[session].as_ref().unwrap();
        let item = |ask: &ModelAsk| {
            let ModelAsk { topic, n, id, expect, delay_ms } = ask.clone();
            let digest = SessionItem::digest_of(id.as_bytes());
            SessionItem { topic, n, envelope: envelope(hub, &id), expect, delay_ms, digest }
        };
        let items: Vec<SessionItem> = asked.iter().map(item).collect();
        let room = connection.try_room(&items).expect("room in the queue");
        connection.publish(items, KEEP, room).unwrap();
        let mut told: HashMap<(Topic, u64), VecDeque<_>> = HashMap::new();
        let mut count = 0;
        while count < asked.len() {
            let mut answers = Vec::new();
            let came = timeout(PATIENCE, connection.answers(&mut answers)).await;
            came.expect("an answer to each message").unwrap();
            for PublishAnswered { stream, from, to, result } in answers {
                for n in from..=to {
                    let behind = |placed: StoredPlace| {
                        let first = placed.first.behind(n - from);
                        StoredPlace { first, ..placed }
                    };
                    let result = result.clone().map(behind);
                    told.entry((stream.clone(), n)).or_default().push_back(result);
                    count += 1;
                }
            }
        }
        let mut result = |ask: &ModelAsk| {
            let of_number = told.get_mut(&(ask.topic.clone(), ask.n));
            of_number.and_then(VecDeque::pop_front).expect("an answer to this message")
        };
        asked.iter().map(&mut result).collect()
    }
}

/// How long the hub may take to answer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages of a session: mostly the next ones, now and then others.
pub(super) fn ask(world: &mut ModelWorld, random: &mut ModelRandom) -> (usize, Vec<ModelAsk>) {
    let session = random.below(SESSIONS.len() as u64) as usize;
    let mut asked = Vec::new();
    for _ in 0..1 + random.below(2) {
        let is_given = random.one_in(4);
        let topic = match is_given {
            true => format!("d/{}", random.below(2)).parse().unwrap(),
            false => world.topic(random),
        };
        let last = world.known(&topic).and_then(|known| known.sessions.get(&session));
        let mut n = 1 + last.map_or(0, ModelNumbers::last);
        for _ in 0..1 + random.below(4) {
            let number = match random.below(8) {
                0 => n.saturating_sub(1 + random.below(2 * KEEP)),
                1 if random.one_in(3) => n + 1 + random.below(2),
                _ => n,
            };
            let next = world.next(&topic);
            // A number mostly comes again with its message, and now and then with another one.
            let known = world.known(&topic).and_then(|known| known.sessions.get(&session));
            let before = known.and_then(|known| known.stored(number)).map(|(_, id)| id.clone());
            let id = before.filter(|_| !random.one_in(4)).unwrap_or_else(|| world.id());
            let delay_ms = (is_given && random.one_in(2)).then(|| random.below(30));
            let expect = (!is_given && random.one_in(8)).then(|| next + random.below(2));
            asked.push(ModelAsk { topic: topic.clone(), n: number, id, expect, delay_ms });
            n = n.max(number + 1);
        }
    }
    (session, asked)
}

/// Holds what became of messages, in the order in which they were asked for, against the model.
pub(super) fn answered(
    world: &mut ModelWorld,
    session: usize,
    asked: Vec<ModelAsk>,
    results: Vec<Result<StoredPlace, Error>>,
) {
    let (owner, is_filled) = (SESSIONS[session].0, world.is_filled);
    for (ask, result) in asked.into_iter().zip(results) {
        let what = format!("seed {}: session {session} {} {}", world.seed, ask.topic, ask.n);
        let next = world.next(&ask.topic);
        if matches!(result, Err(Error::StorageFull)) {
            world.failed_to_gain.insert(ask.topic.clone());
        }
        if is_forgotten(world, session, &ask, &result) {
            world.shares.must_have_lost_session(owner, &what);
            world.stream(&ask.topic).sessions.remove(&session);
        }
        let known = world.known(&ask.topic).and_then(|known| known.sessions.get(&session));
        let last = known.map_or(0, ModelNumbers::last);
        match result {
            Ok(placed) => stored(world, session, ask, &placed, &what),
            Err(Error::StorageFull) => {}
            Err(Error::StorageBusy | Error::StorageFailed(_)) if !is_filled => {}
            Err(error @ Error::ShareTaken { .. }) => world.shares.refused(owner, &error),
            Err(Error::NumberSkipped { next }) => {
                assert!(next == last + 1 && ask.n > next, "{what}: it is said to be behind {next}");
            }
            Err(Error::NumberForgotten { n }) => {
                let is_old = n + KEEP <= last;
                assert!(n == ask.n && is_old, "{what}: forgotten, {last} are stored");
            }
            Err(Error::KeyReused) => {
                let before = known.and_then(|known| known.stored(ask.n));
                assert!(before.is_some_and(|(_, id)| *id != ask.id), "{what}: it is the same");
            }
            Err(Error::InvalidParameter { .. }) => assert_eq!(ask.n, 0, "{what}"),
            Err(Error::OffsetMismatch { next: said }) => {
                assert_eq!((said, ask.n), (next, last + 1), "{what}: the next offset and number");
                assert!(ask.expect.is_some_and(|expect| expect != next), "{what}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// Whether the hub begins the session anew in this stream, as if it had never published there.
fn is_forgotten(
    world: &mut ModelWorld,
    session: usize,
    ask: &ModelAsk,
    result: &Result<StoredPlace, Error>,
) -> bool {
    let known = world.known(&ask.topic).and_then(|known| known.sessions.get(&session));
    let is_known = known.is_some_and(|numbers| numbers.last() > 0);
    is_known
        && match result {
            Ok(placed) => ask.n == 1 && !placed.replayed,
            Err(Error::NumberSkipped { next }) => *next == 1,
            Err(Error::OffsetMismatch { .. } | Error::ShareTaken { .. }) => ask.n == 1,
            Err(_) => false,
        }
}

/// A message is stored, now or since an earlier time.
fn stored(world: &mut ModelWorld, session: usize, ask: ModelAsk, placed: &StoredPlace, what: &str) {
    let (next, owner, is_filled) = (world.next(&ask.topic), SESSIONS[session].0, world.is_filled);
    let known = world.made_by(owner, &ask.topic);
    let numbers = known.sessions.entry(session).or_default();
    if let Some((place, id)) = numbers.stored(ask.n) {
        let (place, is_same) = (*place, *id == ask.id);
        assert_eq!(placed.first, place, "{what}: it was stored before");
        assert!(is_same && placed.replayed, "{what}: another message is said to be stored");
        return;
    }
    assert!(!placed.replayed, "{what}: it is new");
    assert!(!is_filled, "{what}: stored on a full disk");
    let begins = numbers.last() == 0;
    assert_eq!(ask.n, numbers.last() + 1, "{what}: it is stored behind a gap");
    numbers.0.push((placed.first, ask.id.clone()));
    match placed.first {
        EnqueueOutcome::At(place) => {
            assert_eq!(ask.delay_ms, None, "{what}: it is held back");
            // Among what is held back messages come of themselves.
            let is_given = ask.topic.as_str().starts_with("d/");
            let is_next = place.offset == next || is_given && place.offset > next;
            assert!(is_next, "{what}: offset {} after {next}", place.offset);
            assert!(ask.expect.is_none_or(|expect| expect == place.offset), "{what}");
            let (generation, is_sure) = (place.generation, placed.level > Level::Memory);
            known.messages.insert(place.offset, ModelMessage { id: ask.id, generation, is_sure });
        }
        EnqueueOutcome::Due(_) => {
            assert!(ask.delay_ms.is_some(), "{what}: it is not held back");
            known.delayed.insert(ask.id);
            world.shares.gained(owner, ShareKind::Delayed, 1);
        }
    }
    if begins {
        world.shares.session(owner);
    }
}
