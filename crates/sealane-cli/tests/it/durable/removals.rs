//! A stream that is removed and made again while it is written: what was there before a DELETE
//! that was answered never comes back, and what came after it stays.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::http::Http;
use super::json;
use super::ledger::{Id, Ledger, Place, Reading};
use super::load::Pace;
use super::node::Node;
use super::random::Random;
use super::survival::Survival;
use super::writer::Writer;

/// The removals of one stream.
pub(crate) struct Removals {
    pub(crate) topic: String,
    level: &'static str,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    written: HashMap<Place, Written>,
    /// When each DELETE was sent, and when it was answered with 200.
    removed: Vec<(Instant, Option<Instant>)>,
    /// Messages that are gone for good.
    gone: HashSet<Id>,
}

#[derive(Clone)]
struct Written {
    sent: Instant,
    answered: Instant,
    /// The level that was reached, as the reply says.
    level: String,
}

#[derive(PartialEq)]
enum Fate {
    Gone,
    Unknown,
    There,
}

impl Clone for Removals {
    /// The state at this moment, for a future of its own.
    fn clone(&self) -> Self {
        let state = Mutex::new(self.state.lock().unwrap().clone());
        Self { topic: self.topic.clone(), level: self.level, seed: self.seed, state }
    }
}

impl Removals {
    pub(crate) fn new(topic: &str, level: &'static str, seed: u64) -> Self {
        Self { topic: topic.to_owned(), level, seed, state: Mutex::default() }
    }

    pub(crate) fn write(&self, mut writer: Writer<'_>, mut random: Random, pace: &Pace) {
        while pace.writes() {
            let sent = Instant::now();
            let Ok(reply) = writer.enqueue(&self.topic, 1) else { return };
            assert_eq!(reply.status, 200, "{}: {}", self.topic, reply.body);
            let number = |name| json::number(&reply.body, name);
            let level = json::text(&reply.body, "level").to_owned();
            let written = Written { sent, answered: Instant::now(), level };
            let place = (number("generation"), number("offset"));
            self.state.lock().unwrap().written.insert(place, written);
            std::thread::sleep(Duration::from_millis(random.within(0..6)));
        }
    }

    /// Removes it again and again, and makes it at its level.
    pub(crate) fn remove(&self, mut http: Http, mut random: Random, pace: &Pace) {
        while pace.writes() && self.remove_once(&mut http).is_ok() {
            std::thread::sleep(Duration::from_millis(random.within(5..80)));
        }
    }

    fn remove_once(&self, http: &mut Http) -> io::Result<()> {
        let path = format!("/v1/streams/{}", self.topic);
        let at = {
            let mut state = self.state.lock().unwrap();
            state.removed.push((Instant::now(), None));
            state.removed.len() - 1
        };
        let reply = http.call("DELETE", &path, "")?;
        match reply.status {
            200 => self.state.lock().unwrap().removed[at].1 = Some(Instant::now()),
            // It was not there; that changes nothing.
            404 => drop(self.state.lock().unwrap().removed.pop()),
            _ => panic!("{}: DELETE is answered {}: {}", self.topic, reply.status, reply.body),
        }
        let made = http.call("PUT", &path, &format!(r#"{{"level":"{}"}}"#, self.level))?;
        let is_made = matches!(made.status, 200 | 201);
        assert!(is_made, "{}: PUT is answered {}: {}", self.topic, made.status, made.body);
        Ok(())
    }

    /// Compares what is there with what must be and with what must not be.
    pub(crate) fn check(&self, node: &Node, ledger: &Ledger, survival: Survival) {
        let (topic, mut state) = (&self.topic, self.state.lock().unwrap());
        let reading = Reading::of(&mut node.http(), topic, self.seed).unwrap();
        let acknowledged = ledger.of(topic);
        for (place, written) in std::mem::take(&mut state.written) {
            let id = acknowledged[&place];
            let fate = fate(&written, &state.removed);
            let is_there = reading.messages.get(&place) == Some(&id);
            let must_be = fate == Fate::There && survival.keeps(&written.level);
            assert!(is_there || !must_be, "{topic}: {place:?} was written and is gone");
            if fate == Fate::Gone {
                state.gone.insert(id);
            } else if is_there {
                // It stays until the next DELETE.
                state.written.insert(place, written);
            }
        }
        for (place, id) in &reading.messages {
            ledger.saw(topic, *place, &id.to_string());
            let gone = state.gone.contains(id);
            assert!(!gone, "{topic}: {id} at {place:?} is back, DELETE was answered 200");
        }
        state.removed.clear();
    }

    pub(crate) fn gone(&self) -> usize {
        self.state.lock().unwrap().gone.len()
    }
}

/// The effect of the removals on a message.
fn fate(written: &Written, removed: &[(Instant, Option<Instant>)]) -> Fate {
    let is_gone =
        |(sent, done): &(Instant, Option<Instant>)| done.is_some() && written.answered < *sent;
    let is_beside = |(_, done): &(Instant, Option<Instant>)| {
        // Of a DELETE without an answer nobody knows whether it was done.
        done.is_none_or(|done| written.sent < done)
    };
    if removed.iter().any(is_gone) {
        Fate::Gone
    } else if removed.iter().any(is_beside) {
        Fate::Unknown
    } else {
        Fate::There
    }
}

#[test]
fn only_what_was_written_between_two_removals_has_one_fate() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let written = |sent, answered| Written {
        sent: at(sent),
        answered: at(answered),
        level: "disk".to_owned(),
    };
    let removed = [(at(10), Some(at(20)))];
    assert!(fate(&written(1, 9), &removed) == Fate::Gone);
    assert!(fate(&written(5, 11), &removed) == Fate::Unknown);
    assert!(fate(&written(19, 25), &removed) == Fate::Unknown);
    assert!(fate(&written(21, 25), &removed) == Fate::There);
    assert!(fate(&written(1, 9), &[(at(10), None)]) == Fate::Unknown);
    assert!(fate(&written(1, 9), &[]) == Fate::There);
}
