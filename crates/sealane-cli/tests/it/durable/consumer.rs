//! Members of a consumer that acknowledge most of what they get, give some of it back, and die;
//! and what the hub owes them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::json;
use super::ledger::{Ledger, Place};
use super::letters::Letters;
use super::load::Pace;
use super::node::Node;
use super::random::Random;
use super::websocket::{Frame, WebSocket};

/// An acknowledgement that the hub had for so long is stored (spec/hub.md §5 says 50 ms).
const STORED_WITHIN: Duration = Duration::from_millis(250);

/// How much earlier than asked something may seem to come: the hub counts in whole milliseconds.
const TICK: Duration = Duration::from_millis(2);

/// Longer than any run: time alone brings nothing back, not even where a node stood still.
const ACK_WAIT: Duration = Duration::from_secs(3600);

const CREDIT: u64 = 1 << 32;
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers members, so that what the hub owes to a dead one is known.
static MEMBERS: AtomicU64 = AtomicU64::new(0);

/// The deliveries and acknowledgements of one stream's consumer, over all lives of the node.
pub(crate) struct Work {
    pub(crate) topic: String,
    /// Where what is never acknowledged ends.
    pub(crate) letters: Option<Letters>,
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    /// Acknowledged in this life of the node, and when the hub had it: `None` is not known yet.
    acknowledged: HashMap<Place, Option<Instant>>,
    /// Acknowledged by members that died before they knew whether the hub had it.
    doubtful: HashSet<Place>,
    /// Acknowledged long enough before a kill: must never come again.
    settled: HashSet<Place>,
    /// Delivered since the node was started and not given back, to which member.
    delivered: HashMap<Place, u64>,
    /// Given back: not to come before, and by which member.
    held: HashMap<Place, (Instant, u64)>,
    totals: Totals,
}

/// The totals of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) deliveries: u64,
    pub(crate) acknowledged: u64,
    /// Given back by `nack`.
    pub(crate) returned: u64,
    /// Members that left without a word.
    pub(crate) deaths: u64,
    /// Came again because they had not been acknowledged.
    pub(crate) again: u64,
    /// Came again although acknowledged, too short before the kill to be stored.
    pub(crate) unsettled: u64,
}

impl Clone for Work {
    /// The state at this moment, for a future of its own.
    fn clone(&self) -> Self {
        let state = Mutex::new(self.state.lock().unwrap().clone());
        Self { topic: self.topic.clone(), letters: self.letters.clone(), state }
    }
}

impl Work {
    pub(crate) fn new(topic: &str) -> Self {
        Self { topic: topic.to_owned(), letters: None, state: Mutex::default() }
    }

    /// With dead letters.
    pub(crate) fn strict(topic: &str) -> Self {
        Self { letters: Some(Letters::new(topic)), ..Self::new(topic) }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.state.lock().unwrap().totals
    }

    /// The node ended at `ended`: what it had had for long enough is settled. Returns what may
    /// come again although it was acknowledged.
    pub(crate) fn ended(&self, ended: Instant) -> HashSet<Place> {
        let mut state = self.state.lock().unwrap();
        let mut unsettled = std::mem::take(&mut state.doubtful);
        for (place, had) in std::mem::take(&mut state.acknowledged) {
            if had.is_some_and(|had| had + STORED_WITHIN <= ended) {
                state.settled.insert(place);
            } else {
                unsettled.insert(place);
            }
        }
        state.delivered.clear();
        state.held.clear();
        unsettled
    }

    /// Members work one after the other, until they are stopped or the node is killed.
    pub(crate) fn members(&self, address: &str, ledger: &Ledger, mut random: Random, pace: &Pace) {
        // The connection ends when the node is killed.
        while !pace.is_stopped()
            && let Ok(mut member) = Member::join(self, address, ledger, Some(&mut random))
        {
            while !pace.is_stopped() && member.step().is_ok() {}
            self.left(member.number);
        }
    }

    /// Takes and acknowledges everything after a restart: `stored` is what the stream holds,
    /// `unsettled` what may come or not.
    pub(crate) fn drain(
        &self,
        node: &Node,
        ledger: &Ledger,
        stored: &HashSet<Place>,
        unsettled: &HashSet<Place>,
    ) {
        let settled = self.state.lock().unwrap().settled.clone();
        let mut owed = stored.clone();
        owed.retain(|place| !settled.contains(place) && !unsettled.contains(place));
        let mut member = Member::join(self, &node.address, ledger, None).expect("a member joins");
        let until = Instant::now() + PATIENCE;
        loop {
            let silent = member.step().expect("the hub delivers") == Step::Silent;
            if !silent && Instant::now() < until {
                continue;
            }
            let buried = self.bury(node, ledger);
            let state = self.state.lock().unwrap();
            let came = |place| state.delivered.contains_key(place) || buried.contains(place);
            let mut left: Vec<_> = owed.iter().filter(|place| !came(place)).collect();
            if left.is_empty() && member.pings.is_empty() {
                break;
            }
            left.sort_unstable();
            let (topic, all, some) = (&self.topic, left.len(), &left[..left.len().min(20)]);
            let late = Instant::now() > until;
            assert!(!late, "{topic}: {all} of {} never came, as {some:?}", owed.len());
        }
        let mut state = self.state.lock().unwrap();
        // A message that did not come now had been stored as acknowledged, and never comes.
        let (again, stayed): (HashSet<Place>, HashSet<Place>) =
            unsettled.iter().partition(|place| state.delivered.contains_key(place));
        state.settled.extend(stayed);
        state.totals.unsettled += again.len() as u64;
        state.totals.again += owed.len() as u64;
    }

    /// Reads the dead letters: of what was acknowledged there may be none, and what has one is not
    /// delivered again. Returns whose they are.
    fn bury(&self, node: &Node, ledger: &Ledger) -> HashSet<Place> {
        let Some(letters) = &self.letters else { return HashSet::new() };
        let (new, all) = letters.read(node, ledger);
        let mut state = self.state.lock().unwrap();
        for place in new {
            let topic = &self.topic;
            assert!(!state.settled.contains(&place), "{topic}: {place:?} was settled, and buried");
            let had = state.acknowledged.get(&place);
            assert!(had.is_none(), "{topic}: {place:?} is buried in the life that had its ack");
            state.settled.insert(place);
        }
        all
    }

    /// A member is gone. What it had comes to others, but for what the hub knows to be done.
    fn left(&self, number: u64) {
        let mut state = self.state.lock().unwrap();
        let State { acknowledged, doubtful, delivered, held, .. } = &mut *state;
        delivered.retain(|place, member| {
            let had = acknowledged.get(place);
            if *member != number || had.is_some_and(Option::is_some) {
                return true;
            }
            if had.is_some() {
                acknowledged.remove(place);
                doubtful.insert(*place);
            }
            false
        });
        // The hub may not have heard of it.
        held.retain(|_, (_, member)| *member != number);
    }

    /// Notes a delivery, which nobody may have acknowledged.
    fn deliver(&self, place: Place, number: u64) {
        let mut state = self.state.lock().unwrap();
        let topic = &self.topic;
        assert!(!state.settled.contains(&place), "{topic}: {place:?} was settled and came again");
        let had = state.acknowledged.get(&place);
        assert!(had.is_none(), "{topic}: {place:?} came again in the life that had its ack");
        let other = state.delivered.insert(place, number);
        assert_eq!(other, None, "{topic}: {place:?} came twice while it was in flight");
        if let Some((until, _)) = state.held.remove(&place) {
            let early = until.saturating_duration_since(Instant::now() + TICK);
            assert!(early.is_zero(), "{topic}: {place:?} came {early:?} before its delay was over");
        }
        state.doubtful.remove(&place);
        state.totals.deliveries += 1;
    }
}

#[derive(PartialEq)]
enum Step {
    Worked,
    Silent,
}

/// A message in hand.
struct Delivery<'a> {
    place: Place,
    /// Verbatim.
    id: &'a str,
}

struct Member<'a> {
    work: &'a Work,
    ledger: &'a Ledger,
    number: u64,
    socket: WebSocket,
    /// Chooses what is acknowledged; without it everything is.
    random: Option<&'a mut Random>,
    /// Pings under way, and what was acknowledged before each.
    pings: VecDeque<(u64, Vec<Place>)>,
    pinged: u64,
}

impl<'a> Member<'a> {
    fn join(
        work: &'a Work,
        address: &str,
        ledger: &'a Ledger,
        random: Option<&'a mut Random>,
    ) -> io::Result<Self> {
        let attempts_max = work.letters.as_ref().map_or(0, |_| Letters::ATTEMPTS_MAX);
        let topic = &work.topic;
        let query = format!(
            "stream={topic}&consumer=work&batch=100&max_attempts={attempts_max}&ack_wait_ms={}",
            ACK_WAIT.as_millis()
        );
        let mut socket = WebSocket::open(address, &query)?;
        socket.send(&format!(r#"{{"credit":{CREDIT}}}"#))?;
        let number = MEMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { work, ledger, number, socket, random, pings: VecDeque::new(), pinged: 0 })
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

    /// Acknowledges what was delivered: all of it as a range, or some of it by id. Of the rest some
    /// is given back, and some is kept until this member dies.
    fn work(&mut self, frames: &[&str]) -> io::Result<()> {
        let mut done: Vec<Delivery<'_>> = frames.iter().map(|frame| self.take(frame)).collect();
        if self.random.as_mut().is_some_and(|random| random.within(0..25) == 0) {
            self.work.state.lock().unwrap().totals.deaths += 1;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let mut rest = Vec::new();
        let strict = self.work.letters.is_some();
        if let Some(random) = &mut self.random {
            let whole = random.within(0..2) == 0 && !strict;
            let fails = |random: &mut Random, delivery: &Delivery<'_>| match strict {
                true => Letters::is_hopeless(delivery.place),
                false => !whole && random.within(0..3) == 0,
            };
            rest = done.extract_if(.., |delivery| fails(random, delivery)).collect();
            // Hopeless ones are mostly given back: time alone does not end them here.
            rest.retain(|_| random.within(0..4) < if strict { 3 } else { 2 });
        }
        self.give_back(&rest)?;
        self.acknowledge(&done)
    }

    fn take<'f>(&self, frame: &'f str) -> Delivery<'f> {
        let place = (json::number(frame, "generation"), json::number(frame, "offset"));
        let id = json::raw(json::raw(frame, "deliver"), "id");
        let topic = &self.work.topic;
        self.ledger.saw(topic, place, id.trim_matches('"'));
        self.work.deliver(place, self.number);
        let attempt = json::number(frame, "attempt");
        let is_over = self.work.letters.is_some() && attempt > Letters::ATTEMPTS_MAX;
        assert!(!is_over, "{topic}: {place:?} comes for the {attempt}th time");
        Delivery { place, id }
    }

    fn give_back(&mut self, rest: &[Delivery<'_>]) -> io::Result<()> {
        let Some(random) = self.random.as_mut().filter(|_| !rest.is_empty()) else {
            return Ok(());
        };
        let delay_ms = random.within(0..3) * random.within(0..100);
        let until = Instant::now() + Duration::from_millis(delay_ms);
        let ids: Vec<_> = rest.iter().map(|delivery| delivery.id).collect();
        {
            let mut state = self.work.state.lock().unwrap();
            for Delivery { place, .. } in rest {
                state.delivered.remove(place);
                state.held.insert(*place, (until, self.number));
            }
            state.totals.returned += rest.len() as u64;
        }
        self.socket.send(&format!(r#"{{"nack":[{}],"delayMs":{delay_ms}}}"#, ids.join(",")))
    }

    fn acknowledge(&mut self, done: &[Delivery<'_>]) -> io::Result<()> {
        let places: Vec<Place> = done.iter().map(|delivery| delivery.place).collect();
        let offsets = || places.iter().map(|(_, offset)| *offset);
        let ack = match (offsets().next(), offsets().next_back()) {
            (Some(first), Some(last)) if offsets().eq(first..last + 1) => {
                format!(r#"{{"from":{first},"to":{last}}}"#)
            }
            (Some(_), _) => {
                let ids: Vec<_> = done.iter().map(|delivery| delivery.id).collect();
                format!("[{}]", ids.join(","))
            }
            _ => return Ok(()),
        };
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
