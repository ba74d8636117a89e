//! Requests that share a commit, and what they must be answered.

use std::collections::HashSet;

use futures_util::future::join_all;
use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::ConsumerVerb;

use super::ModelRandom;
use super::consumers::ModelVerb;
use super::sessions::{self, ModelAsk, ModelPublishers};
use super::world::{ModelMessage, ModelWorld};
use crate::{
    AppendedMessages, Error, IdempotencyKey, Level, ReadStart, StoredPlace, StreamChange,
    StreamEnqueue, StreamEnvelope, StreamHub, StreamState,
};

/// One request.
#[derive(Debug, Clone)]
pub(super) enum ModelRequest {
    Publish { topic: Topic, ids: Vec<String>, key: Option<u64>, expect: Option<u64> },
    Delay { topic: Topic, id: String, delay_ms: u64 },
    Configure { topic: Topic, change: StreamChange },
    Remove { topic: Topic },
    RemoveIdle { seen: Box<StreamState> },
    Session { session: usize, asked: Vec<ModelAsk> },
    Manage { topic: Topic, consumer: &'static str, verb: ModelVerb },
    Purge { topic: Topic, before: u64 },
    Cancel { topic: Topic, id: String },
}

#[derive(Debug)]
enum ModelAnswer {
    Appended(AppendedMessages),
    Configured(bool),
    Removed,
    WasIdle(bool),
    Published(Vec<Result<StoredPlace, Error>>),
    Managed,
    Purged,
    Cancelled(u64),
}

/// Sends several requests at once and holds the answers against the model; returns how many.
pub(super) async fn batch(
    hub: &StreamHub,
    publishers: &ModelPublishers,
    world: &mut ModelWorld,
    random: &mut ModelRandom,
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
                is_first.then_some(ModelRequest::Session { session, asked })
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
async fn look(
    hub: &StreamHub,
    world: &mut ModelWorld,
    random: &mut ModelRandom,
) -> Option<ModelRequest> {
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
    Some(ModelRequest::RemoveIdle { seen: Box::new(world.looked[at].clone()) })
}

fn new_or_again(world: &mut ModelWorld, random: &mut ModelRandom) -> ModelRequest {
    // A client that was not answered well asks the same once more.
    if random.one_in(6)
        && let Some(again) = world.asked.pop()
    {
        return again;
    }
    let request = new_request(world, random);
    if matches!(request, ModelRequest::Publish { key: Some(_), expect: None, .. }) {
        world.asked.push(request.clone());
    }
    request
}

fn new_request(world: &mut ModelWorld, random: &mut ModelRandom) -> ModelRequest {
    let topic = world.topic(random);
    match random.below(26) {
        20 => ModelRequest::Purge { before: random.below(2 + world.next(&topic)), topic },
        21 => {
            let topic = format!("d/{}", random.below(2)).parse().unwrap();
            let held = world.known(&topic).and_then(|known| known.delayed.iter().min().cloned());
            ModelRequest::Cancel { topic, id: held.unwrap_or_else(|| "none".into()) }
        }
        22..=25 => {
            let verb = verb(world.next(&topic), random);
            ModelRequest::Manage { topic, consumer: random.pick(&["c0", "c1"]), verb }
        }
        0 | 1 => ModelRequest::Remove { topic },
        2 | 3 => {
            let level = random.one_in(2).then(|| random.pick(&Level::ALL));
            let max_count = topic.as_str().starts_with("r/").then(|| random.pick(&[0, 5, 20]));
            ModelRequest::Configure {
                topic,
                change: StreamChange { level, max_count, ..StreamChange::default() },
            }
        }
        4 | 5 => {
            let topic = format!("d/{}", random.below(2)).parse().unwrap();
            ModelRequest::Delay { topic, id: world.id(), delay_ms: random.below(30) }
        }
        6 => {
            let number = random.below(4);
            let name = if random.one_in(2) { "d" } else { "dead/s" };
            let topic = format!("{name}/{number}").parse().unwrap();
            let level = Some(random.pick(&Level::ALL));
            ModelRequest::Configure {
                topic,
                change: StreamChange { level, ..StreamChange::default() },
            }
        }
        _ => {
            let size = 1 + random.below(3) * random.below(4);
            let ids = (0..size).map(|_| world.id()).collect();
            let key = random.one_in(4).then(|| random.below(6));
            let next = world.next(&topic);
            let expect = random.one_in(6).then(|| next.saturating_sub(random.below(2)));
            ModelRequest::Publish { topic, ids, key, expect }
        }
    }
}

fn verb(next: u64, random: &mut ModelRandom) -> ModelVerb {
    let from = random.below(next + 2);
    ModelVerb::Steer(match random.below(9) {
        0 => return ModelVerb::Remove,
        1 => ConsumerVerb::Pause,
        2 | 3 => ConsumerVerb::Resume,
        4 => ConsumerVerb::Reset(ReadStart::Offset(from)),
        5 | 6 => ConsumerVerb::Skip(from..=from + random.below(3)),
        _ => ConsumerVerb::Redeliver,
    })
}

async fn send(
    hub: &StreamHub,
    publishers: &ModelPublishers,
    request: &ModelRequest,
) -> Result<ModelAnswer, Error> {
    match request.clone() {
        ModelRequest::Publish { topic, ids, key, expect } => {
            let envelopes = ids.iter().map(|id| envelope(hub, id)).collect();
            let key = key.map(|key| {
                let body = ids.concat();
                // The body is part of what a key stands for.
                IdempotencyKey::new(b"", key.to_string().as_bytes(), body.as_bytes()).unwrap()
            });
            let enqueue =
                StreamEnqueue { topic, envelopes, expect, delay_ms: None, key, owner: "".into() };
            hub.enqueue(enqueue).await.map(ModelAnswer::Appended)
        }
        ModelRequest::Delay { topic, id, delay_ms } => {
            let envelopes = vec![envelope(hub, &id)];
            let delay_ms = Some(delay_ms);
            let enqueue = StreamEnqueue {
                topic,
                envelopes,
                expect: None,
                delay_ms,
                key: None,
                owner: "".into(),
            };
            hub.enqueue(enqueue).await.map(ModelAnswer::Appended)
        }
        ModelRequest::Configure { topic, change } => {
            let configured = hub.configure(&topic, change).await;
            configured.map(|(_, made)| ModelAnswer::Configured(made))
        }
        ModelRequest::Remove { topic } => hub.remove(&topic).await.map(|()| ModelAnswer::Removed),
        ModelRequest::RemoveIdle { seen } => hub.remove_idle(&seen).await.map(ModelAnswer::WasIdle),
        ModelRequest::Session { session, asked } => {
            Ok(ModelAnswer::Published(publishers.publish(hub, session, &asked).await))
        }
        ModelRequest::Manage { topic, consumer, verb: ModelVerb::Remove } => {
            hub.remove_consumer(&topic, consumer).await.map(|()| ModelAnswer::Managed)
        }
        ModelRequest::Manage { topic, consumer, verb: ModelVerb::Steer(verb) } => {
            hub.steer(&topic, consumer, verb).await.map(|()| ModelAnswer::Managed)
        }
        ModelRequest::Purge { topic, before } => {
            hub.purge(&topic, ReadStart::Offset(before)).await.map(|_| ModelAnswer::Purged)
        }
        ModelRequest::Cancel { topic, id } => {
            hub.cancel(&topic, id).await.map(|done| ModelAnswer::Cancelled(done.cancelled))
        }
    }
}

pub(super) fn envelope(hub: &StreamHub, id: &str) -> StreamEnvelope {
    let raw = format!(r#"{{"id":"{id}"}}"#);
    StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, raw.as_bytes()).unwrap()
}

fn accepted(hub: &StreamHub, world: &mut ModelWorld, request: ModelRequest, answer: ModelAnswer) {
    let seed = world.seed;
    match (request, answer) {
        (ModelRequest::Publish { topic, ids, key, expect }, ModelAnswer::Appended(appended)) => {
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
                stream.messages.insert(offset, ModelMessage { id, generation, is_sure });
            }
        }
        (ModelRequest::Delay { topic, id, .. }, ModelAnswer::Appended(_)) => {
            world.stream(&topic).delayed.insert(id);
        }
        // The model does not follow streams that the hub itself makes.
        (ModelRequest::Configure { topic, .. }, _) if topic.as_str().starts_with("dead/") => {}
        (ModelRequest::Configure { topic, change }, ModelAnswer::Configured(made)) => {
            assert_eq!(made, !world.has(&topic), "seed {seed} {topic}: made");
            let stream = world.stream(&topic);
            stream.level = change.level.unwrap_or(stream.level);
            stream.max_count = change.max_count.unwrap_or(stream.max_count);
            stream.was_bounded |= stream.max_count > 0;
            // Everything before it was stored with it.
            stream.messages.values_mut().for_each(|message| message.is_sure = true);
        }
        (ModelRequest::Remove { topic }, ModelAnswer::Removed) => {
            assert!(world.has(&topic), "seed {seed} {topic}: removed what is not there");
            world.remove(&topic);
        }
        (ModelRequest::RemoveIdle { seen }, ModelAnswer::WasIdle(true)) => world.went(&seen),
        (ModelRequest::RemoveIdle { seen }, ModelAnswer::WasIdle(false)) => {
            world.stayed(hub, &seen)
        }
        (ModelRequest::Session { session, asked }, ModelAnswer::Published(results)) => {
            sessions::answered(world, session, asked, results);
        }
        (ModelRequest::Manage { topic, consumer, verb }, ModelAnswer::Managed) => {
            world.manage(&topic, consumer, &verb);
        }
        (ModelRequest::Purge { topic, before }, ModelAnswer::Purged) => world.purge(&topic, before),
        (ModelRequest::Cancel { topic, id }, ModelAnswer::Cancelled(count)) => {
            assert_eq!(count, 1, "seed {seed} {topic} {id}");
            let was_held = world.stream(&topic).delayed.remove(&id);
            assert!(was_held, "seed {seed} {topic}: {id} was cancelled and not held back");
        }
        (request, answer) => panic!("seed {seed}: {request:?} is answered {answer:?}"),
    }
}

/// A refusal says what the model says; a fault means that nothing came to be.
fn refused(world: &mut ModelWorld, request: &ModelRequest, error: Error) {
    let seed = world.seed;
    match (request, error) {
        (_, Error::StorageFull | Error::StorageBusy | Error::StorageFailed(_)) => {}
        (ModelRequest::Publish { topic, expect, .. }, Error::OffsetMismatch { next }) => {
            assert_eq!(next, world.next(topic), "seed {seed} {topic}: the offset that is said");
            assert!(expect.is_some_and(|expect| expect != next), "seed {seed} {topic}");
        }
        (ModelRequest::Publish { topic, ids, key, .. }, Error::KeyReused) => {
            let seen = key.and_then(|key| world.stream(topic).keys.get(&key).cloned());
            assert!(seen.is_some_and(|seen| seen.0 != *ids), "seed {seed} {topic}");
        }
        // These look for their stream before those that come before them in the queue are done.
        (
            ModelRequest::Manage { .. } | ModelRequest::Purge { .. } | ModelRequest::Cancel { .. },
            Error::UnknownStream(_) | Error::UnknownConsumer { .. } | Error::BeyondEnd { .. },
        ) => {}
        (ModelRequest::Manage { .. }, Error::InvalidParameter { .. }) => {}
        (ModelRequest::Cancel { .. }, Error::NotDelayed { .. }) => {}
        (ModelRequest::Remove { topic }, Error::UnknownStream(_)) => {
            assert!(!world.has(topic), "seed {seed} {topic} is there");
        }
        (ModelRequest::RemoveIdle { seen }, Error::UnknownStream(_)) => {
            assert!(!world.has(&seen.stream), "seed {seed} {} is there", seen.stream);
        }
        (request, error) => panic!("seed {seed}: {request:?} is refused: {error}"),
    }
}
