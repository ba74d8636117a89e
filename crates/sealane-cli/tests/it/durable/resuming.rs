//! A reader that goes on where it was: what it is told of what it missed is true.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::json;
use super::ledger::{Id, Ledger, Place, Reading};
use super::load::Pace;
use super::websocket::{Frame, WebSocket};

/// A reader of one stream.
pub(crate) struct Resuming {
    pub(crate) topic: String,
    /// The messages that it has read in this life of the node, by offset.
    seen: Mutex<BTreeMap<u64, (u64, Id)>>,
}

/// The answer to a resumed reader.
struct ResumeAnswer {
    recovered: bool,
    offset: u64,
}

impl Clone for Resuming {
    /// The state at this moment, for a future of its own.
    fn clone(&self) -> Self {
        let seen = Mutex::new(self.seen.lock().unwrap().clone());
        Self { topic: self.topic.clone(), seen }
    }
}

impl Resuming {
    pub(crate) fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), seen: Mutex::default() }
    }

    /// Reads what is new until it is stopped, or until the node is killed.
    pub(crate) fn read(&self, address: &str, ledger: &Ledger, pace: &Pace) {
        let query = format!("stream={}&from=new&batch=100", self.topic);
        let Ok(mut socket) = WebSocket::open(address, &query) else { return };
        let _ = socket.send(r#"{"credit":4294967296}"#);
        while !pace.is_stopped() {
            match socket.next(Duration::from_millis(100)) {
                Ok(Frame::Text(text)) if text.starts_with(r#"{"batch""#) => {
                    json::elements(json::raw(&text, "batch"))
                        .for_each(|one| self.take(one, ledger));
                }
                Ok(Frame::Text(text)) if text.starts_with(r#"{"deliver""#) => {
                    self.take(&text, ledger);
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn take(&self, frame: &str, ledger: &Ledger) {
        let place = (json::number(frame, "generation"), json::number(frame, "offset"));
        let id = json::text(json::raw(frame, "deliver"), "id");
        ledger.saw(&self.topic, place, id);
        let id = Id::read(id).expect("an id of ours");
        let mut seen = self.seen.lock().unwrap();
        let next = seen.last_key_value().map_or(place.1, |(last, _)| last + 1);
        assert_eq!(place.1, next, "{}: a reader in order", self.topic);
        seen.insert(place.1, (place.0, id));
    }

    /// Goes on at a node that was started again, of whose stream this is the `reading`. `whole`
    /// says that nothing of the stream may have been lost.
    pub(crate) fn check(&self, address: &str, reading: &Reading, ledger: &Ledger, whole: bool) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        let Some((last, (generation, _))) = seen.last_key_value() else { return };
        let (topic, next) = (&self.topic, last + 1);
        let told = self.resume(address, next, *generation);
        let is_there = |offset: u64, (generation, id): (u64, Id)| {
            reading.messages.get(&(generation, offset)) == Some(&id)
        };
        let lost = seen.iter().find(|(offset, seen)| !is_there(**offset, **seen));
        if told.recovered {
            assert_eq!(lost, None, "{topic}: `recovered`, though it has read what is gone");
            assert_eq!(told.offset, next, "{topic}: recovered elsewhere");
            let acknowledged = ledger.of(topic);
            let mut since =
                acknowledged.iter().filter(|(place, _)| place.0 == *generation && place.1 >= next);
            let missed = since.find(|(place, id)| reading.messages.get(*place) != Some(*id));
            // The new generation tells of messages behind OFFSET that `memory` or a level lost.
            assert!(!whole || missed.is_none(), "{topic}: `recovered`, without {missed:?}");
            return;
        }
        let (first, _) = lost.unwrap_or_else(|| panic!("{topic}: not recovered without a loss"));
        assert!(!whole, "{topic}: {first} was read, and is gone");
        assert!(told.offset <= *first, "{topic}: goes on at {}, {first} is new", told.offset);
        let is_old = |place: &Place| {
            let known = seen.get(&place.1).map(|(generation, _)| *generation);
            place.1 >= told.offset && known == Some(place.0)
        };
        let again = reading.messages.keys().find(|place| is_old(place));
        assert_eq!(again, None, "{topic}: it is given again what it has read");
    }

    fn resume(&self, address: &str, offset: u64, generation: u64) -> ResumeAnswer {
        let query = format!("stream={}&from={offset}&generation={generation}", self.topic);
        let mut socket = WebSocket::open(address, &query).expect("a reader connects");
        match socket.next(Duration::from_secs(10)).expect("a first frame") {
            Frame::Text(text) => ResumeAnswer {
                recovered: json::raw(&text, "recovered") == "true",
                offset: json::number(&text, "offset"),
            },
            _ => panic!("{}: no first frame", self.topic),
        }
    }
}
