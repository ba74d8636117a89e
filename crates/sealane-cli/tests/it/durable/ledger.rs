//! The acknowledged messages, kept outside of the node, and how they differ from those that are
//! read.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use super::http::Http;
use super::json;
use super::random::Random;
use super::rules;

/// Names a message; its envelope follows from it and the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) writer: u64,
    pub(crate) request: u64,
    /// Which one of its request's messages it is.
    pub(crate) index: u64,
    /// The messages of its request.
    pub(crate) of: u64,
}

/// (generation, offset).
pub(crate) type Place = (u64, u64);

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}-{}", self.writer, self.request, self.index, self.of)
    }
}

impl Id {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(|part| part.parse().ok());
        let mut part = || parts.next().flatten();
        Some(Self { writer: part()?, request: part()?, index: part()?, of: part()? })
    }
}

/// The message as its writer sends it: mostly small, now and then large.
pub(crate) fn envelope(seed: u64, id: Id) -> String {
    let mut random = Random::new(seed ^ (id.writer << 48) ^ (id.request << 16) ^ id.index);
    let size = if random.within(0..32) == 0 { 4096..16_384 } else { 16..600 };
    let size = random.within(size) as usize;
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        text += &format!("{:016x}", random.next());
    }
    format!(r#"{{ "id":"{id}","text":"{text}" }}"#)
}

/// Every acknowledged message of every stream, and every place that was seen in any way.
#[derive(Default)]
pub(crate) struct Ledger {
    streams: Mutex<BTreeMap<String, HashMap<Place, Id>>>,
    /// The message that each place of a stream named when it was seen first, by the hash of its id.
    places: Mutex<BTreeMap<String, HashMap<Place, u64>>>,
}

impl Clone for Ledger {
    /// The state at this moment, for a future of its own.
    fn clone(&self) -> Self {
        let streams = Mutex::new(self.streams.lock().unwrap().clone());
        Self { streams, places: Mutex::new(self.places.lock().unwrap().clone()) }
    }
}

impl Ledger {
    /// Notes what a reply acknowledges. No place may be given to two messages.
    pub(crate) fn acknowledge(&self, topic: &str, (generation, first): Place, ids: &[Id]) {
        let mut streams = self.streams.lock().unwrap();
        let stream = streams.entry(topic.to_owned()).or_default();
        for (offset, id) in (first..).zip(ids) {
            let other = stream.insert((generation, offset), *id);
            assert!(other.is_none(), "{topic}: {generation}/{offset} names {id} and {other:?}");
            self.saw(topic, (generation, offset), &id.to_string());
        }
    }

    /// A message was seen at this place, acknowledged or not. Over all lives of the node, no place
    /// may name two.
    pub(crate) fn saw(&self, topic: &str, place: Place, id: &str) {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let mut places = self.places.lock().unwrap();
        let known = match places.get_mut(topic) {
            Some(known) => known,
            None => places.entry(topic.to_owned()).or_default(),
        };
        let hash = hasher.finish();
        let first = *known.entry(place).or_insert(hash);
        let same = first == hash || !rules::on("places");
        assert!(same, "{topic}: {place:?} names {id}, and named another message before");
    }

    /// The messages that a stream's replies have acknowledged.
    pub(crate) fn of(&self, topic: &str) -> HashMap<Place, Id> {
        self.streams.lock().unwrap().get(topic).cloned().unwrap_or_default()
    }
}

/// A stream as it is read from its first offset to its end.
#[derive(Default, Clone)]
pub(crate) struct Reading {
    pub(crate) generation: u64,
    pub(crate) next: u64,
    pub(crate) messages: HashMap<Place, Id>,
}

impl Reading {
    /// Reads a stream whole: offsets without holes, every envelope as it was sent, every batch
    /// whole or not at all, no message twice.
    pub(crate) fn of(http: &mut Http, topic: &str, seed: u64) -> Result<Self, String> {
        let (mut reading, mut end) = (Self::default(), false);
        while !end {
            let path = format!("/v1/streams/{topic}?from={}", reading.next);
            let reply = http.call("GET", &path, "").map_err(|error| error.to_string())?;
            if reply.status == 404 && reading.next == 0 {
                return Ok(reading);
            }
            if reply.status != 200 || json::raw(&reply.body, "gaps") != "[]" {
                return Err(format!("{topic}: {}: {:.500}", reply.status, reply.body));
            }
            reading.generation = json::number(&reply.body, "generation");
            for frame in json::elements(json::raw(&reply.body, "messages")) {
                reading.add(topic, frame, seed)?;
            }
            end = json::raw(&reply.body, "end") == "true";
        }
        reading.check_batches(topic)?;
        Ok(reading)
    }

    fn add(&mut self, topic: &str, frame: &str, seed: u64) -> Result<(), String> {
        let (deliver, offset) = (json::raw(frame, "deliver"), json::number(frame, "offset"));
        let id = Id::read(json::text(deliver, "id"));
        let id = id.ok_or_else(|| format!("{topic}: {offset} was never sent: {deliver:.200}"))?;
        if deliver != envelope(seed, id) {
            return Err(format!("{topic}: {offset} is not as sent: {deliver:.200}"));
        }
        if offset != self.next {
            return Err(format!("{topic}: {offset} comes where {} should", self.next));
        }
        self.next = offset + 1;
        self.messages.insert((json::number(frame, "generation"), offset), id);
        Ok(())
    }

    fn check_batches(&self, topic: &str) -> Result<(), String> {
        let mut requests: HashMap<_, Vec<_>> = HashMap::new();
        for ((_, offset), id) in &self.messages {
            requests.entry((id.writer, id.request, id.of)).or_default().push((*offset, id.index));
        }
        for ((writer, request, of), mut parts) in requests {
            parts.sort_unstable();
            let first = parts.first().map_or(0, |(offset, _)| *offset);
            if !parts.iter().copied().eq((0..of).map(|index| (first + index, index))) {
                return Err(format!("{topic}: of {writer}-{request} there is {parts:?} of {of}"));
            }
        }
        Ok(())
    }

    /// The messages that were acknowledged and are not where they were acknowledged.
    pub(crate) fn missing(&self, acknowledged: &HashMap<Place, Id>) -> Vec<(Place, Id)> {
        let is_missing = |(place, id): &(&Place, &Id)| self.messages.get(*place) != Some(*id);
        let mut missing: Vec<_> =
            acknowledged.iter().filter(is_missing).map(|(place, id)| (*place, *id)).collect();
        missing.sort_unstable();
        missing
    }

    /// A place that was given to two messages.
    pub(crate) fn conflict(&self, acknowledged: &HashMap<Place, Id>) -> Option<(Place, Id, Id)> {
        self.messages.iter().find_map(|(place, id)| {
            acknowledged.get(place).filter(|other| *other != id).map(|other| (*place, *id, *other))
        })
    }
}
