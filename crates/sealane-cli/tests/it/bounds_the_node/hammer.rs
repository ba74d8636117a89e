//! All that clients may do to a hub at once, as often as they can.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::figures::ids;
use crate::durable::http::Http;
use crate::durable::node::Node;
use crate::durable::websocket::{Frame, WebSocket};

const WRITERS: usize = 4;
const DELETERS: usize = 2;
const ASKERS: usize = 20;
const MEMBERS: usize = 3;

/// A topic whose dead letters have no topic: it would have a segment too many.
const DEEP: &str = "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p";

/// How long a client waits for a message before it looks around.
const PATIENCE: Duration = Duration::from_millis(200);

const LEVELS: [&str; 3] = ["memory", "os", "disk"];

/// Those who hammer, until they are told to stop.
pub(crate) struct Hammer {
    all: Arc<All>,
    threads: Vec<JoinHandle<()>>,
}

struct All {
    address: String,
    stop: AtomicBool,
    /// How often each of what they do was answered with this status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Hammer {
    pub(crate) fn start(node: &Node) -> Self {
        let all = Arc::new(All {
            address: node.address.clone(),
            stop: AtomicBool::new(false),
            answers: Mutex::default(),
        });
        let mut hammer = Self { all, threads: Vec::new() };
        hammer.fight();
        hammer.forget();
        hammer.fill_up();
        for number in 0..ASKERS {
            hammer.spawn(move |all| all.again("ask", |http, turn| ask(all, http, number, turn)));
        }
        // Whatever there is, once, and none of it is done.
        for everything in [
            "stream=**&consumer=reaper&max_attempts=1&batch=64",
            "stream=dead/**&consumer=reaper&max_attempts=1&batch=64",
        ] {
            hammer.spawn(move |all| all.consume(everything, "nack"));
        }
        hammer.spawn(|all| all.again("deep", |http, _| enqueue(http, DEEP, 100)));
        hammer
    }

    /// The answers that they got; none of them may have panicked.
    pub(crate) fn finish(self) -> BTreeMap<(&'static str, u16), u64> {
        self.all.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.all.answers.lock().unwrap().clone()
    }

    fn spawn(&mut self, act: impl FnOnce(&All) + Send + 'static) {
        let all = self.all.clone();
        self.threads.push(std::thread::spawn(move || act(&all)));
    }

    /// One topic is written, removed, and given other levels.
    fn fight(&mut self) {
        for _ in 0..WRITERS {
            self.spawn(|all| all.again("fight: write", |http, _| enqueue(http, "fight", 100)));
        }
        for _ in 0..DELETERS {
            self.spawn(|all| all.again("fight: delete", |http, _| remove(http, "fight")));
        }
        self.spawn(|all| {
            all.again("fight: level", |http, turn| level(http, "fight", LEVELS[turn % 3]));
        });
    }

    /// A stream of the level `memory` is removed while it is written.
    fn forget(&mut self) {
        for _ in 0..2 {
            self.spawn(|all| all.again("memory: write", |http, _| enqueue(http, "memo", 100)));
        }
        self.spawn(|all| {
            all.again("memory: delete", |http, turn| match turn % 2 {
                0 => level(http, "memo", LEVELS[0]),
                _ => remove(http, "memo"),
            });
        });
    }

    /// Small messages and then a large one are consumed by some members.
    fn fill_up(&mut self) {
        self.spawn(|all| {
            all.again("mix", |http, turn| {
                enqueue(http, "mix", if turn % 50 == 49 { 500_000 } else { 20 })
            });
        });
        for _ in 0..MEMBERS {
            self.spawn(|all| all.consume("stream=mix&consumer=mix&batch=64", "ack"));
        }
    }
}

impl All {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn note(&self, what: &'static str, status: u16) {
        *self.answers.lock().unwrap().entry((what, status)).or_default() += 1;
    }

    /// Does this again and again over one connection. No answer at all counts as status 0.
    fn again(&self, what: &'static str, act: impl Fn(&mut Http, usize) -> io::Result<u16>) {
        let mut http = Http::connect(&self.address).unwrap();
        for turn in 0.. {
            if self.is_over() {
                break;
            }
            let status = act(&mut http, turn).unwrap_or_else(|_| {
                http = Http::connect(&self.address).unwrap();
                0
            });
            self.note(what, status);
        }
    }

    /// Takes messages, and says the same of all of them.
    fn consume(&self, query: &'static str, said: &'static str) {
        while !self.is_over() {
            // A stream may be removed beneath it at any time.
            if self.consume_once(query, said).is_err() {
                self.note(query, 0);
            }
        }
    }

    fn consume_once(&self, query: &str, said: &str) -> io::Result<()> {
        let mut socket = WebSocket::open(&self.address, query)?;
        socket.send("{\"credit\":1000}")?;
        while !self.is_over() {
            let Frame::Text(frame) = socket.next(PATIENCE)? else { continue };
            let ids: Vec<String> = ids(&frame).map(|id| format!("\"{id}\"")).collect();
            if !ids.is_empty() {
                let list = ids.join(",");
                socket.send(&format!("{{\"credit\":{},\"{said}\":[{list}]}}", ids.len()))?;
            }
        }
        Ok(())
    }
}

fn enqueue(http: &mut Http, to: &str, bytes: usize) -> io::Result<u16> {
    let body = format!("{{\"to\":\"{to}\",\"envelope\":{{\"text\":\"{}\"}}}}", "x".repeat(bytes));
    Ok(http.call("POST", "/v1/enqueue", &body)?.status)
}

fn remove(http: &mut Http, topic: &str) -> io::Result<u16> {
    Ok(http.call("DELETE", &format!("/v1/streams/{topic}"), "")?.status)
}

fn level(http: &mut Http, topic: &str, level: &str) -> io::Result<u16> {
    let body = format!("{{\"level\":\"{level}\"}}");
    Ok(http.call("PUT", &format!("/v1/streams/{topic}"), &body)?.status)
}

/// A request, and its answer on a topic that is made for it and removed.
fn ask(all: &All, http: &mut Http, number: usize, turn: usize) -> io::Result<u16> {
    let topic = format!("answers/{number}/{turn}");
    let mut socket = WebSocket::open(&all.address, &format!("stream={topic}&from=first"))?;
    socket.send("{\"credit\":1}")?;
    for to in ["questions", &topic] {
        let status = enqueue(http, to, 100)?;
        if status != 200 {
            return Ok(status);
        }
    }
    while !all.is_over() {
        match socket.next(PATIENCE)? {
            Frame::Text(frame) if frame.contains("\"deliver\"") => break,
            _ => {}
        }
    }
    remove(http, &topic)
}
