//! Dead letters: of what a consumer has given up there is one, and it stays.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use super::json;
use super::ledger::{Ledger, Place};
use super::node::Node;

/// The dead letters of one stream.
pub(crate) struct Letters {
    stream: String,
    /// Where they are.
    topic: String,
    /// The message that each is about, and its own place.
    known: Mutex<HashMap<Place, Place>>,
}

impl Clone for Letters {
    fn clone(&self) -> Self {
        let known = Mutex::new(self.known.lock().unwrap().clone());
        Self { stream: self.stream.clone(), topic: self.topic.clone(), known }
    }
}

impl Letters {
    /// Deliveries of a message, at most.
    pub(crate) const ATTEMPTS_MAX: u64 = 2;

    pub(crate) fn new(stream: &str) -> Self {
        let (stream, topic) = (stream.to_owned(), format!("dead/{stream}"));
        Self { stream, topic, known: Mutex::default() }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether the members never acknowledge this one.
    pub(crate) fn is_hopeless((_, offset): Place) -> bool {
        offset % 3 == 0
    }

    /// Reads them: the messages that have got one since the last time, and all that have one.
    pub(crate) fn read(&self, node: &Node, ledger: &Ledger) -> (Vec<Place>, HashSet<Place>) {
        let mut found = HashMap::new();
        let (mut http, mut next, mut end) = (node.http(), 0, false);
        while !end {
            let path = format!("/v1/streams/{}?from={next}", self.topic);
            let reply = http.call("GET", &path, "").unwrap();
            assert_eq!(reply.status, 200, "{}: {}", self.topic, reply.body);
            for frame in json::elements(json::raw(&reply.body, "messages")) {
                let place = (json::number(frame, "generation"), json::number(frame, "offset"));
                let letter = json::raw(frame, "deliver");
                ledger.saw(&self.topic, place, json::text(letter, "id"));
                let about = self.about(letter);
                let other = found.insert(about, place);
                let topic = &self.topic;
                assert_eq!(other, None, "{topic}: {about:?} has two letters, one at {place:?}");
            }
            next = json::number(&reply.body, "next");
            end = json::raw(&reply.body, "end") == "true";
        }
        let mut known = self.known.lock().unwrap();
        for (about, place) in known.iter() {
            let now = found.get(about);
            assert_eq!(now, Some(place), "{}: the letter about {about:?} is gone", self.topic);
        }
        let new = found.keys().filter(|about| !known.contains_key(about)).copied().collect();
        let all = found.keys().copied().collect();
        *known = found;
        (new, all)
    }

    /// The message that it is about, by its place.
    fn about(&self, letter: &str) -> Place {
        assert_eq!(json::text(letter, "stream"), self.stream, "{letter}");
        assert_eq!(json::text(letter, "consumer"), "work", "{letter}");
        assert_eq!(json::number(letter, "attempts"), Self::ATTEMPTS_MAX, "{letter}");
        (json::number(letter, "generation"), json::number(letter, "offset"))
    }

    pub(crate) fn count(&self) -> usize {
        self.known.lock().unwrap().len()
    }
}
