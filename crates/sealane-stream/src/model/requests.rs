//! Requests that share a commit, and what they must be answered.

use std::collections::HashSet;

use futures_util::future::join_all;
use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::ConsumerVerb;

use super::ModelRandom;
use super::consumers::ModelVerb;
use super::sessions::{self, ModelAsk, ModelPublishers};
use super::shares::OWNERS;
use super::world::{ModelMessage, ModelWorld};
use crate::{
    AppendedMessages, Error, IdempotencyKey, Level, ReadStart, ShareKind, StoredPlace,
    StreamChange, StreamEnqueue, StreamEnvelope, StreamHub, StreamState,
};

/// One request.
#[derive(Debug, Clone)]
pub(super) enum ModelRequest {
    Publish { owner: &'static str, topic: Topic, ids: Vec<String>, how: ModelPublish },
    Delay { owner: &'static str, topic: Topic, id: String, delay_ms: u64 },
    Configure { owner: &'static str, topic: Topic, change: StreamChange },
    Remove { topic: Topic },
    RemoveIdle { seen: Box<StreamState> },
    Session { session: usize, asked: Vec<ModelAsk> },
    Manage { topic: Topic, consumer: &'static str, verb: ModelVerb },
    Purge { topic: Topic, before: u64 },
    Cancel { topic: Topic, id: String },
}

/// The wishes of a publisher beside its messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelPublish {
    key: Option<u64>,
    expect: Option<u64>,
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
    world.weigh(hub);
    world.failed_to_gain.clear();
    // They are polled in order and reach the writer's queue in order.
    let sent = requests.iter().map(|request| send(hub, publishers, request));
    let answers = join_all(sent).await;
    for (request, answer) in requests.into_iter().zip(answers) {
        match answer {
            Ok(answer) => accepted(hub, world, request, answer),
            Err(error) => refused(world, &request, error),
        }
    }
    world.weigh(hub);
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
    if let ModelRequest::Publish { how: ModelPublish { key: Some(_), expect: None }, .. } = request
    {
        world.asked.push(request.clone());
    }
    request
}

fn new_request(world: &mut ModelWorld, random: &mut ModelRandom) -> ModelRequest {
    let (topic, owner) = (world.topic(random), random.pick(&OWNERS));
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
            let change = StreamChange { level, max_count, ..StreamChange::default() };
            ModelRequest::Configure { owner, topic, change }
        }
        4 | 5 => {
            let topic = format!("d/{}", random.below(2)).parse().unwrap();
            ModelRequest::Delay { owner, topic, id: world.id(), delay_ms: random.below(30) }
        }
        6 => {
            let number = random.below(4);
            let name = if random.one_in(2) { "d" } else { "dead/s" };
            let topic = format!("{name}/{number}").parse().unwrap();
            let level = Some(random.pick(&Level::ALL));
            let change = StreamChange { level, ..StreamChange::default() };
            ModelRequest::Configure { owner, topic, change }
        }
        _ => {
            let size = 1 + random.below(3) * random.below(4);
            let ids = (0..size).map(|_| world.id()).collect();
            let key = random.one_in(4).then(|| random.below(6));
            let next = world.next(&topic);
            let expect = random.one_in(6).then(|| next.saturating_sub(random.below(2)));
            ModelRequest::Publish { owner, topic, ids, how: ModelPublish { key, expect } }
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
        ModelRequest::Publish { owner, topic, ids, how: ModelPublish { key, expect } } => {
            let envelopes = ids.iter().map(|id| envelope(hub, id)).collect();
            let key = key.map(|key| {
                let (body, key) = (ids.concat(), key.to_string());
                // The body is part of what a key stands for.
                IdempotencyKey::new(owner.as_bytes(), key.as_bytes(), body.as_bytes()).unwrap()
            });
            let (delay_ms, owner) = (None, owner.into());
            let enqueue = StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner };
            hub.enqueue(enqueue).await.map(ModelAnswer::Appended)
        }
        ModelRequest::Delay { owner, topic, id, delay_ms } => {
            let (envelopes, delay_ms) = (vec![envelope(hub, &id)], Some(delay_ms));
            let (expect, key, owner) = (None, None, owner.into());
            let enqueue = StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner };
            hub.enqueue(enqueue).await.map(ModelAnswer::Appended)
        }
        ModelRequest::Configure { owner, topic, change } => {
            let configured = hub.configure_for(owner.into(), &topic, change).await;
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
        (ModelRequest::Publish { owner, topic, ids, how }, ModelAnswer::Appended(appended)) => {
            published(world, owner, &topic, ids, how, &appended);
        }
        (ModelRequest::Delay { owner, topic, id, .. }, ModelAnswer::Appended(_)) => {
            assert!(!world.is_filled, "seed {seed} {topic}: held back on a full disk");
            world.made_by(owner, &topic).delayed.insert(id);
            world.shares.gained(owner, ShareKind::Delayed, 1);
        }
        // The model does not follow streams that the hub itself makes.
        (ModelRequest::Configure { topic, .. }, _) if topic.as_str().starts_with("dead/") => {}
        (ModelRequest::Configure { owner, topic, change }, ModelAnswer::Configured(made)) => {
            assert_eq!(made, !world.has(&topic), "seed {seed} {topic}: made");
            let stream = world.made_by(owner, &topic);
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

/// Messages are stored, now or since an earlier time.
fn published(
    world: &mut ModelWorld,
    owner: &'static str,
    topic: &Topic,
    ids: Vec<String>,
    how: ModelPublish,
    appended: &AppendedMessages,
) {
    let (seed, next, is_filled) = (world.seed, world.next(topic), world.is_filled);
    let key = how.key.map(|key| (owner, key));
    let stream = world.made_by(owner, topic);
    let seen = key.and_then(|key| stream.keys.get(&key).cloned());
    if appended.replayed {
        let seen = seen.unwrap_or_else(|| panic!("seed {seed} {topic} {key:?}: a repeated key"));
        assert_eq!((&seen.ids, seen.offset), (&ids, appended.offset), "seed {seed} {topic}");
        return;
    }
    assert!(!is_filled, "seed {seed} {topic}: published on a full disk");
    assert_eq!(appended.offset, next, "seed {seed} {topic}: the next offset");
    assert!(how.expect.is_none_or(|expect| expect == next), "seed {seed} {topic} {how:?}");
    let is_sure = appended.level > Level::Memory;
    if let Some(seen) = seen {
        world.shares.must_have_lost(owner, &seen, &format!("seed {seed} {topic}"));
    }
    if let Some(key) = key {
        let seen = world.shares.key(owner, ids.clone(), appended.offset, is_sure);
        world.stream(topic).keys.insert(key, seen);
    }
    let stream = world.stream(topic);
    for (n, id) in ids.into_iter().enumerate() {
        let offset = appended.offset + n as u64;
        let generation = appended.generation;
        stream.messages.insert(offset, ModelMessage { id, generation, is_sure });
    }
}

/// A refusal says what the model says; a fault means that nothing came to be.
fn refused(world: &mut ModelWorld, request: &ModelRequest, error: Error) {
    let seed = world.seed;
    if let (ModelRequest::Publish { topic, .. }, Error::StorageFull) = (request, &error) {
        world.failed_to_gain.insert(topic.clone());
    }
    match (request, error) {
        (request, Error::StorageFull) if world.is_filled => {
            let adds = matches!(request, ModelRequest::Publish { .. } | ModelRequest::Delay { .. });
            assert!(adds, "seed {seed}: {request:?} needs no room");
        }
        (_, Error::StorageFull | Error::StorageBusy | Error::StorageFailed(_))
            if !world.is_filled => {}
        (
            ModelRequest::Publish { owner, .. }
            | ModelRequest::Delay { owner, .. }
            | ModelRequest::Configure { owner, .. },
            error @ Error::ShareTaken { .. },
        ) => world.shares.refused(owner, &error),
        (ModelRequest::Publish { topic, how, .. }, Error::OffsetMismatch { next }) => {
            assert_eq!(next, world.next(topic), "seed {seed} {topic}: the offset that is said");
            assert!(how.expect.is_some_and(|expect| expect != next), "seed {seed} {topic}");
        }
        (ModelRequest::Publish { owner, topic, ids, how }, Error::KeyReused) => {
            let key = how.key.map(|key| (*owner, key));
            let seen = key.and_then(|key| world.known(topic)?.keys.get(&key).cloned());
            assert!(seen.is_some_and(|seen| seen.ids != *ids), "seed {seed} {topic}");
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
