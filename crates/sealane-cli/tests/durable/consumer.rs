//! Members of a consumer that acknowledge most of what they get, and what the hub owes them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::json;
use crate::ledger::Place;
use crate::random::Random;
use crate::websocket::{Frame, WebSocket};

/// An acknowledgement that the hub had for so long is stored (spec/hub.md §5 says 50 ms).
const STORED_WITHIN: Duration = Duration::from_millis(200);

const CREDIT: u64 = 1 << 32;

/// What the members of one stream's consumer have seen and done, over all lives of the node.
pub(crate) struct Work {
    pub(crate) topic: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Acknowledged in this life of the node, and when the hub had it: `None` is not known yet.
    acknowledged: HashMap<Place, Option<Instant>>,
    /// Acknowledged long enough before a kill: must never come again.
    settled: HashSet<Place>,
    /// Delivered since the node was started.
    delivered: HashSet<Place>,
    totals: Totals,
}

/// What came of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) deliveries: u64,
    pub(crate) acknowledged: u64,
    /// Came again because they had not been acknowledged.
    pub(crate) again: u64,
    /// Came again although acknowledged, too short before the kill to be stored.
    pub(crate) unsettled: u64,
}

impl Work {
    pub(crate) fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), state: Mutex::default() }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.state.lock().unwrap().totals
    }

    /// The node was killed at `killed`: what it had had for long enough is settled. Returns what
    /// may come again although it was acknowledged.
    pub(crate) fn killed(&self, killed: Instant) -> HashSet<Place> {
        let mut state = self.state.lock().unwrap();
        let mut unsettled = HashSet::new();
        for (place, had) in std::mem::take(&mut state.acknowledged) {
            if had.is_some_and(|had| had + STORED_WITHIN <= killed) {
                state.settled.insert(place);
            } else {
                unsettled.insert(place);
            }
        }
        state.delivered.clear();
        unsettled
    }

    /// A member works until `stop` or until the node is killed, and acknowledges most of it.
    pub(crate) fn member(&self, address: &str, random: Random, stop: &AtomicBool) {
        // The connection ends when the node is killed.
        if let Ok(mut member) = Member::join(self, address, Some(random)) {
            while !stop.load(Ordering::Relaxed) && member.step().is_ok() {}
        }
    }

    /// Takes and acknowledges everything after a restart: `stored` is what the stream holds,
    /// `unsettled` what may come or not.
    pub(crate) fn drain(&self, address: &str, stored: &HashSet<Place>, unsettled: &HashSet<Place>) {
        let settled = self.state.lock().unwrap().settled.clone();
        let mut owed = stored.clone();
        owed.retain(|place| !settled.contains(place) && !unsettled.contains(place));
        let mut member = Member::join(self, address, None).expect("a member joins");
        let until = Instant::now() + Duration::from_secs(20);
        let mut silent = false;
        while !silent {
            let step = member.step().expect("the hub delivers");
            let state = self.state.lock().unwrap();
            let left = owed.difference(&state.delivered);
            if Instant::now() > until {
                let mut left: Vec<_> = left.collect();
                left.sort_unstable();
                let (all, some) = (left.len(), &left[..left.len().min(20)]);
                panic!("{}: {all} of {} never came, as {some:?}", self.topic, owed.len());
            }
            silent = step == Step::Silent && left.count() == 0 && member.pings.is_empty();
        }
        let mut state = self.state.lock().unwrap();
        // What did not come now had been stored as acknowledged, and never comes.
        let (again, stayed): (HashSet<Place>, HashSet<Place>) =
            unsettled.iter().partition(|place| state.delivered.contains(place));
        state.settled.extend(stayed);
        state.totals.unsettled += again.len() as u64;
        state.totals.again += owed.len() as u64;
    }

    /// Notes a delivery, which nobody may have acknowledged.
    fn deliver(&self, place: Place) {
        let mut state = self.state.lock().unwrap();
        let topic = &self.topic;
        assert!(!state.settled.contains(&place), "{topic}: {place:?} was settled and came again");
        let had = state.acknowledged.get(&place);
        assert!(had.is_none(), "{topic}: {place:?} came again in the life that had its ack");
        let first = state.delivered.insert(place);
        assert!(first, "{topic}: {place:?} came twice while it was in flight");
        state.totals.deliveries += 1;
    }
}

#[derive(PartialEq)]
enum Step {
    Worked,
    Silent,
}

struct Member<'a> {
    work: &'a Work,
    socket: WebSocket,
    /// Chooses what is acknowledged; without it everything is.
    random: Option<Random>,
    /// Pings under way, and what was acknowledged before each.
    pings: VecDeque<(u64, Vec<Place>)>,
    pinged: u64,
}

impl<'a> Member<'a> {
    fn join(work: &'a Work, address: &str, random: Option<Random>) -> io::Result<Self> {
        let query = format!("stream={}&consumer=work&batch=100", work.topic);
        let mut socket = WebSocket::open(address, &query)?;
        socket.send(&format!(r#"{{"credit":{CREDIT}}}"#))?;
        Ok(Self { work, socket, random, pings: VecDeque::new(), pinged: 0 })
    }

    fn step(&mut self) -> io::Result<Step> {
        match self.socket.next(Duration::from_millis(100))? {
            Frame::Silence => return Ok(Step::Silent),
            Frame::Pong(number) => self.heard(number),
            Frame::Text(text) if text.starts_with(r#"{"batch""#) => {
                let frames: Vec<_> = json::elements(json::raw(&text, "batch")).collect();
                self.work(&frames)?;
            }
            Frame::Text(text) if text.starts_with(r#"{"deliver""#) => self.work(&[&text])?,
            Frame::Text(text) => assert!(text.starts_with(r#"{"status":"subscribed""#), "{text}"),
        }
        Ok(Step::Worked)
    }

    /// The hub answered a ping, so it has what was sent before.
    fn heard(&mut self, number: u64) {
        let (pinged, places) = self.pings.pop_front().expect("a pong answers a ping");
        assert_eq!(pinged, number);
        let (now, mut state) = (Instant::now(), self.work.state.lock().unwrap());
        for place in places {
            state.acknowledged.insert(place, Some(now));
        }
    }

    /// Acknowledges what was delivered: all of it as a range, or some of it by id.
    fn work(&mut self, frames: &[&str]) -> io::Result<()> {
        let mut done = Vec::new();
        let mut offsets = Vec::new();
        for frame in frames {
            let place = (json::number(frame, "generation"), json::number(frame, "offset"));
            self.work.deliver(place);
            offsets.push(place.1);
            done.push((place, json::raw(json::raw(frame, "deliver"), "id")));
        }
        let whole = self.random.as_mut().is_none_or(|random| random.within(0..2) == 0);
        let ack = match (whole, offsets.first(), offsets.last()) {
            (true, Some(first), Some(last)) if offsets.iter().copied().eq(*first..last + 1) => {
                format!(r#"{{"from":{first},"to":{last}}}"#)
            }
            _ => {
                if let Some(random) = &mut self.random
                    && !whole
                {
                    done.retain(|_| random.within(0..3) > 0);
                }
                let ids: Vec<_> = done.iter().map(|(_, id)| *id).collect();
                format!("[{}]", ids.join(","))
            }
        };
        let places: Vec<Place> = done.into_iter().map(|(place, _)| place).collect();
        {
            let mut state = self.work.state.lock().unwrap();
            state.totals.acknowledged += places.len() as u64;
            state.acknowledged.extend(places.iter().map(|place| (*place, None)));
        }
        self.socket.send(&format!(r#"{{"ack":{ack}}}"#))?;
        self.pinged += 1;
        self.pings.push_back((self.pinged, places));
        self.socket.ping(self.pinged)
    }
}
