//! Requests that share a commit, and what they must be answered.

use std::collections::HashSet;

use futures_util::future::join_all;
use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::ConsumerVerb;

use super::Random;
use super::consumers::Verb;
use super::sessions::{self, Ask, Publishers};
use super::world::{Message, World};
use crate::{
    Appended, Change, Enqueue, Envelope, Error, Hub, IdempotencyKey, Level, Placed, Start,
    StreamState,
};

/// One request.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Publish { topic: Topic, ids: Vec<String>, key: Option<u64>, expect: Option<u64> },
    Delay { topic: Topic, id: String, delay_ms: u64 },
    Configure { topic: Topic, change: Change },
    Remove { topic: Topic },
    RemoveIdle { seen: Box<StreamState> },
    Session { session: usize, asked: Vec<Ask> },
    Manage { topic: Topic, consumer: &'static str, verb: Verb },
    Purge { topic: Topic, before: u64 },
    Cancel { topic: Topic, id: String },
}

#[derive(Debug)]
enum Answer {
    Appended(Appended),
    Configured(bool),
    Removed,
    WasIdle(bool),
    Published(Vec<Result<Placed, Error>>),
    Managed,
    Purged,
    Cancelled(u64),
}

/// Sends several requests at once and holds the answers against the model; returns how many.
pub(super) async fn batch(
    hub: &Hub,
    publishers: &Publishers,
    world: &mut World,
    random: &mut Random,
) -> u64 {
    let (count, mut requests) = (1 + random.below(10), Vec::new());
    let mut publishing = HashSet::new();
    for _ in 0..count {
        let request = match random.below(12) {
            0 => look(hub, world, random).await,
            1..=3 => {
                let (session, asked) = sessions::ask(world, random);
                // Its answers are those of one request.
                let is_first = publishing.insert(session);
                is_first.then_some(Request::Session { session, asked })
            }
            _ => None,
        };
        requests.push(request.unwrap_or_else(|| new_or_again(world, random)));
    }
    // They are polled in order and reach the writer's queue in order.
    let sent = requests.iter().map(|request| send(hub, publishers, request));
    let answers = join_all(sent).await;
    for (request, answer) in requests.into_iter().zip(answers) {
        match answer {
            Ok(answer) => accepted(hub, world, request, answer),
            Err(error) => refused(world, &request, error),
        }
    }
    count
}

/// Asks for a stream to be removed if it is idle, as it is now or was seen before.
async fn look(hub: &Hub, world: &mut World, random: &mut Random) -> Option<Request> {
    let topic = match random.one_in(3) {
        true => format!("d/{}", random.below(2)).parse().unwrap(),
        false => world.topic(random),
    };
    if world.has(&topic) {
        world.look(hub, &topic).await;
        let state = hub.stream(&topic).unwrap();
        let known = world.stream(&topic);
        // A delayed message may have come in between. The next look finds it.
        if known.messages.len() as u64 == state.next {
            world.looked.push(state);
        }
    }
    let before = random.below(3).min(world.looked.len().saturating_sub(1) as u64) as usize;
    let at = world.looked.len().checked_sub(1 + before)?;
    Some(Request::RemoveIdle { seen: Box::new(world.looked[at].clone()) })
}

fn new_or_again(world: &mut World, random: &mut Random) -> Request {
    // A client that was not answered well asks the same once more.
    if random.one_in(6)
        && let Some(again) = world.asked.pop()
    {
        return again;
    }
    let request = new_request(world, random);
    if matches!(request, Request::Publish { key: Some(_), expect: None, .. }) {
        world.asked.push(request.clone());
    }
    request
}

fn new_request(world: &mut World, random: &mut Random) -> Request {
    let topic = world.topic(random);
    match random.below(26) {
        20 => Request::Purge { before: random.below(2 + world.next(&topic)), topic },
        21 => {
            let topic = format!("d/{}", random.below(2)).parse().unwrap();
            let held = world.known(&topic).and_then(|known| known.delayed.iter().min().cloned());
            Request::Cancel { topic, id: held.unwrap_or_else(|| "none".into()) }
        }
        22..=25 => {
            let verb = verb(world.next(&topic), random);
            Request::Manage { topic, consumer: random.pick(&["c0", "c1"]), verb }
        }
        0 | 1 => Request::Remove { topic },
        2 | 3 => {
            let level = random.one_in(2).then(|| random.pick(&Level::ALL));
            let max_count = topic.as_str().starts_with("r/").then(|| random.pick(&[0, 5, 20]));
            Request::Configure { topic, change: Change { level, max_count, ..Change::default() } }
        }
        4 | 5 => {
            let topic = format!("d/{}", random.below(2)).parse().unwrap();
            Request::Delay { topic, id: world.id(), delay_ms: random.below(30) }
        }
        6 => {
            let number = random.below(4);
            let name = if random.one_in(2) { "d" } else { "dead/s" };
            let topic = format!("{name}/{number}").parse().unwrap();
            let level = Some(random.pick(&Level::ALL));
            Request::Configure { topic, change: Change { level, ..Change::default() } }
        }
        _ => {
            let size = 1 + random.below(3) * random.below(4);
            let ids = (0..size).map(|_| world.id()).collect();
            let key = random.one_in(4).then(|| random.below(6));
            let next = world.next(&topic);
            let expect = random.one_in(6).then(|| next.saturating_sub(random.below(2)));
            Request::Publish { topic, ids, key, expect }
        }
    }
}

fn verb(next: u64, random: &mut Random) -> Verb {
    let from = random.below(next + 2);
    Verb::Steer(match random.below(9) {
        0 => return Verb::Remove,
        1 => ConsumerVerb::Pause,
        2 | 3 => ConsumerVerb::Resume,
        4 => ConsumerVerb::Reset(Start::Offset(from)),
        5 | 6 => ConsumerVerb::Skip(from..=from + random.below(3)),
        _ => ConsumerVerb::Redeliver,
    })
}

async fn send(hub: &Hub, publishers: &Publishers, request: &Request) -> Result<Answer, Error> {
    match request.clone() {
        Request::Publish { topic, ids, key, expect } => {
            let envelopes = ids.iter().map(|id| envelope(hub, id)).collect();
            let key = key.map(|key| {
                let body = ids.concat();
                // The body is part of what a key stands for.
                IdempotencyKey::new(b"", key.to_string().as_bytes(), body.as_bytes()).unwrap()
            });
            let enqueue = Enqueue { topic, envelopes, expect, delay_ms: None, key };
            hub.enqueue(enqueue).await.map(Answer::Appended)
        }
        Request::Delay { topic, id, delay_ms } => {
            let envelopes = vec![envelope(hub, &id)];
            let delay_ms = Some(delay_ms);
            let enqueue = Enqueue { topic, envelopes, expect: None, delay_ms, key: None };
            hub.enqueue(enqueue).await.map(Answer::Appended)
        }
        Request::Configure { topic, change } => {
            let configured = hub.configure(&topic, change).await;
            configured.map(|(_, made)| Answer::Configured(made))
        }
        Request::Remove { topic } => hub.remove(&topic).await.map(|()| Answer::Removed),
        Request::RemoveIdle { seen } => hub.remove_idle(&seen).await.map(Answer::WasIdle),
        Request::Session { session, asked } => {
            Ok(Answer::Published(publishers.publish(hub, session, &asked).await))
        }
        Request::Manage { topic, consumer, verb: Verb::Remove } => {
            hub.remove_consumer(&topic, consumer).await.map(|()| Answer::Managed)
        }
        Request::Manage { topic, consumer, verb: Verb::Steer(verb) } => {
            hub.steer(&topic, consumer, verb).await.map(|()| Answer::Managed)
        }
        Request::Purge { topic, before } => {
            hub.purge(&topic, Start::Offset(before)).await.map(|_| Answer::Purged)
        }
        Request::Cancel { topic, id } => {
            hub.cancel(&topic, id).await.map(|done| Answer::Cancelled(done.cancelled))
        }
    }
}

pub(super) fn envelope(hub: &Hub, id: &str) -> Envelope {
    let raw = format!(r#"{{"id":"{id}"}}"#);
    Envelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, raw.as_bytes()).unwrap()
}

fn accepted(hub: &Hub, world: &mut World, request: Request, answer: Answer) {
    let seed = world.seed;
    match (request, answer) {
        (Request::Publish { topic, ids, key, expect }, Answer::Appended(appended)) => {
            let next = world.next(&topic);
            let stream = world.stream(&topic);
            let was_seen = key.and_then(|key| stream.keys.get(&key)).is_some();
            assert_eq!(appended.replayed, was_seen, "seed {seed} {topic} {key:?}: a repeated key");
            if appended.replayed {
                let seen = key.and_then(|key| stream.keys.get(&key)).expect("a key that was seen");
                assert_eq!((&seen.0, seen.1), (&ids, appended.offset), "seed {seed} {topic}");
                return;
            }
            assert_eq!(appended.offset, next, "seed {seed} {topic}: the next offset");
            assert!(expect.is_none_or(|expect| expect == next), "seed {seed} {topic} {expect:?}");
            if let Some(key) = key {
                let before = stream.keys.insert(key, (ids.clone(), appended.offset));
                assert!(before.is_none(), "seed {seed} {topic}: stored twice under key {key}");
            }
            for (n, id) in ids.into_iter().enumerate() {
                let offset = appended.offset + n as u64;
                let is_sure = appended.level > Level::Memory;
                let generation = appended.generation;
                stream.messages.insert(offset, Message { id, generation, is_sure });
            }
        }
        (Request::Delay { topic, id, .. }, Answer::Appended(_)) => {
            world.stream(&topic).delayed.insert(id);
        }
        // The model does not follow streams that the hub itself makes.
        (Request::Configure { topic, .. }, _) if topic.as_str().starts_with("dead/") => {}
        (Request::Configure { topic, change }, Answer::Configured(made)) => {
            assert_eq!(made, !world.has(&topic), "seed {seed} {topic}: made");
            let stream = world.stream(&topic);
            stream.level = change.level.unwrap_or(stream.level);
            stream.max_count = change.max_count.unwrap_or(stream.max_count);
            stream.was_bounded |= stream.max_count > 0;
            // Everything before it was stored with it.
            stream.messages.values_mut().for_each(|message| message.is_sure = true);
        }
        (Request::Remove { topic }, Answer::Removed) => {
            assert!(world.has(&topic), "seed {seed} {topic}: removed what is not there");
            world.remove(&topic);
        }
        (Request::RemoveIdle { seen }, Answer::WasIdle(true)) => world.went(&seen),
        (Request::RemoveIdle { seen }, Answer::WasIdle(false)) => world.stayed(hub, &seen),
        (Request::Session { session, asked }, Answer::Published(results)) => {
            sessions::answered(world, session, asked, results);
        }
        (Request::Manage { topic, consumer, verb }, Answer::Managed) => {
            world.manage(&topic, consumer, &verb);
        }
        (Request::Purge { topic, before }, Answer::Purged) => world.purge(&topic, before),
        (Request::Cancel { topic, id }, Answer::Cancelled(count)) => {
            assert_eq!(count, 1, "seed {seed} {topic} {id}");
            let was_held = world.stream(&topic).delayed.remove(&id);
            assert!(was_held, "seed {seed} {topic}: {id} was cancelled and not held back");
        }
        (request, answer) => panic!("seed {seed}: {request:?} is answered {answer:?}"),
    }
}

/// A refusal says what the model says; a fault means that nothing came to be.
fn refused(world: &mut World, request: &Request, error: Error) {
    let seed = world.seed;
    match (request, error) {
        (_, Error::StorageFull | Error::StorageBusy | Error::StorageFailed(_)) => {}
        (Request::Publish { topic, expect, .. }, Error::OffsetMismatch { next }) => {
            assert_eq!(next, world.next(topic), "seed {seed} {topic}: the offset that is said");
            assert!(expect.is_some_and(|expect| expect != next), "seed {seed} {topic}");
        }
        (Request::Publish { topic, ids, key, .. }, Error::KeyReused) => {
            let seen = key.and_then(|key| world.stream(topic).keys.get(&key).cloned());
            assert!(seen.is_some_and(|seen| seen.0 != *ids), "seed {seed} {topic}");
        }
        // These look for their stream before those that come before them in the queue are done.
        (
            Request::Manage { .. } | Request::Purge { .. } | Request::Cancel { .. },
            Error::UnknownStream(_) | Error::UnknownConsumer { .. } | Error::BeyondEnd { .. },
        ) => {}
        (Request::Manage { .. }, Error::InvalidParameter { .. }) => {}
        (Request::Cancel { .. }, Error::NotDelayed { .. }) => {}
        (Request::Remove { topic }, Error::UnknownStream(_)) => {
            assert!(!world.has(topic), "seed {seed} {topic} is there");
        }
        (Request::RemoveIdle { seen }, Error::UnknownStream(_)) => {
            assert!(!world.has(&seen.stream), "seed {seed} {} is there", seen.stream);
        }
        (request, error) => panic!("seed {seed}: {request:?} is refused: {error}"),
    }
}
