//! Messages that are held back: each comes once, and not before it is due.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::http::Http;
use super::json;
use super::ledger::{Id, Ledger, Reading, envelope};
use super::load::Pace;
use super::node::Node;
use super::random::Random;
use super::websocket::{Frame, WebSocket};

/// How much later than due a message may come, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Their writers, apart from all others.
const WRITER: u64 = 1 << 15;

/// The delayed messages of one stream.
pub(crate) struct Delays {
    pub(crate) topic: String,
    seed: u64,
    next: AtomicU64,
    state: Mutex<HashMap<Id, Delayed>>,
}

#[derive(Clone, Copy)]
struct Delayed {
    /// By the clock that the node has, too: it may not come earlier.
    due_ms: u64,
    /// Whether the node has promised it.
    answered: bool,
}

impl Clone for Delays {
    /// The state at this moment, for a future of its own.
    fn clone(&self) -> Self {
        let state = Mutex::new(self.state.lock().unwrap().clone());
        let next = AtomicU64::new(self.next.load(Ordering::Relaxed));
        Self { topic: self.topic.clone(), seed: self.seed, next, state }
    }
}

impl Delays {
    pub(crate) fn new(topic: &str, seed: u64) -> Self {
        let (next, state) = (AtomicU64::new(0), Mutex::default());
        Self { topic: topic.to_owned(), seed, next, state }
    }

    /// Sends such messages until it is stopped, or until the node is killed.
    pub(crate) fn write(&self, mut http: Http, mut random: Random, pace: &Pace) {
        while pace.writes() && self.send(&mut http, &mut random).is_ok() {
            std::thread::sleep(Duration::from_millis(random.within(1..12)));
        }
    }

    fn send(&self, http: &mut Http, random: &mut Random) -> io::Result<()> {
        let request = self.next.fetch_add(1, Ordering::Relaxed);
        let id = Id { writer: WRITER, request, index: 0, of: 1 };
        let delay_ms = random.within(1..400);
        let due_ms = sealane_testing::now_ms() + delay_ms;
        self.state.lock().unwrap().insert(id, Delayed { due_ms, answered: false });
        let (topic, envelope) = (&self.topic, envelope(self.seed, id));
        let body = format!(r#"{{"to":"{topic}","envelope":{envelope},"delayMs":{delay_ms}}}"#);
        let reply = http.call("POST", "/v1/enqueue", &body)?;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let due_ms = json::number(&reply.body, "dueMs").max(due_ms);
        self.state.lock().unwrap().insert(id, Delayed { due_ms, answered: true });
        Ok(())
    }

    /// Reads them as they come.
    pub(crate) fn read(&self, address: &str, ledger: &Ledger, pace: &Pace) {
        let query = format!("stream={}&from=new", self.topic);
        // The connection ends when the node is killed.
        let Ok(mut socket) = WebSocket::open(address, &query) else { return };
        let _ = socket.send(r#"{"credit":1000000}"#);
        while !pace.is_stopped() {
            match socket.next(Duration::from_millis(100)) {
                Ok(Frame::Text(text)) if text.starts_with(r#"{"deliver""#) => {
                    let id = json::text(json::raw(&text, "deliver"), "id");
                    let place = (json::number(&text, "generation"), json::number(&text, "offset"));
                    ledger.saw(&self.topic, place, id);
                    self.came(Id::read(id).expect("an id of ours"));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// The clock is that of the node, which may count in whole milliseconds.
    fn came(&self, id: Id) {
        let delayed = self.state.lock().unwrap()[&id];
        let now = sealane_testing::now_ms() + 1;
        let early = delayed.due_ms.saturating_sub(now);
        assert_eq!(early, 0, "{}: {id} came {early} ms before it was due", self.topic);
    }

    /// Waits until all that is promised has come. That nothing comes twice is seen by reading.
    pub(crate) fn check(&self, node: &Node, ledger: &Ledger) {
        let until = Instant::now() + PATIENCE;
        loop {
            let reading = Reading::of(&mut node.http(), &self.topic, self.seed).unwrap();
            for (place, id) in &reading.messages {
                ledger.saw(&self.topic, *place, &id.to_string());
                self.came(*id);
            }
            let came: std::collections::HashSet<Id> = reading.messages.values().copied().collect();
            let state = self.state.lock().unwrap().clone();
            let is_owed = |(id, delayed): &(&Id, &Delayed)| delayed.answered && !came.contains(id);
            let missing: Vec<_> = state.iter().filter(is_owed).map(|(id, _)| *id).collect();
            if missing.is_empty() {
                return;
            }
            let topic = &self.topic;
            assert!(Instant::now() < until, "{topic}: promised and never came: {missing:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How many were promised.
    pub(crate) fn promised(&self) -> usize {
        self.state.lock().unwrap().values().filter(|delayed| delayed.answered).count()
    }
}
