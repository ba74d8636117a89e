//! A full disk: what does not fit is refused with `StorageFull` and is not there, what was
//! acknowledged is, and when there is room again the same node goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane_testing::{PATIENCE, until};

use crate::durable::disk::{self, Mounted};
use crate::durable::json;
use crate::durable::ledger::{Ledger, Reading};
use crate::durable::node::Node;
use crate::durable::random::{self, Random};
use crate::durable::writer::Writer;

const LEVELS: [&str; 3] = ["memory", "os", "disk"];
const IMAGE_BYTES: u64 = 32 << 20;
/// The ballast that is deleted to make room.
const BALLAST_BYTES: usize = 8 << 20;
/// The disk is full when each level has refused so often.
const REFUSALS: u64 = 20;
/// A message that comes due while the disk is full.
const DELAY: Duration = Duration::from_secs(3);

#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let _turn = crate::TURN.blocking_lock();
    disk::require();
    let (seed, folder) = (random::seed(), tempfile::tempdir().unwrap());
    let image = folder.path().join("image");
    disk::make(&image, IMAGE_BYTES);
    let mounted = Mounted::new(&image, folder.path().join("mounted"));
    let (data, ballast) = (mounted.folder.join("data"), mounted.folder.join("ballast"));
    std::fs::write(&ballast, vec![1; BALLAST_BYTES]).unwrap();
    let node = Node::start(&data, "disk", &folder.path().join("node.log"));
    let proof = Proof { seed, ledger: Ledger::default() };
    proof.begin(&node);
    let due = Instant::now() + DELAY;
    let refused = proof.fill(&node);
    proof.check_full(&node);
    std::thread::sleep(due.saturating_duration_since(Instant::now()) + Duration::from_secs(1));
    std::fs::remove_file(&ballast).unwrap();
    let resumed = proof.resume(&node);
    drop(node);
    let node = Node::start(&data, "disk", &folder.path().join("node.log"));
    proof.check_restarted(&node);
    proof.report(&refused, resumed);
}

/// The node itself can empty a full disk, again and again: by removal of a stream, and by
/// retention. Nobody makes room from outside.
#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn a_full_disk_is_emptied_through_the_node() {
    let _turn = crate::TURN.beside();
    disk::require();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    disk::make(&image, IMAGE_BYTES);
    let mounted = Mounted::new(&image, folder.path().join("mounted"));
    let data = mounted.folder.join("data");
    let node = Node::start(&data, "disk", &folder.path().join("node.log"));
    let call = |method, path: &str, body: &str| node.http().call(method, path, body).unwrap();
    for round in 0..4 {
        let kept = fill_stream(&node, "kept", 4);
        let filled = fill_stream(&node, "filled", usize::MAX);
        assert!(filled > 8, "round {round}: {filled} requests fill the disk");
        let began = Instant::now();
        let path = "/v1/streams/filled";
        let emptied = match round % 2 {
            0 => call("DELETE", path, ""),
            _ => call("PUT", path, r#"{"maxCount":10}"#),
        };
        assert_eq!(emptied.status, 200, "round {round}: {}", emptied.body);
        let again = r#"{"to":"kept","envelope":{}}"#;
        until(&format!("round {round}: it is taken"), || {
            call("POST", "/v1/enqueue", again).status == 200
        });
        if round % 2 == 1 {
            let unbounded = call("PUT", path, r#"{"maxCount":0}"#);
            assert_eq!(unbounded.status, 200, "round {round}: {}", unbounded.body);
        }
        println!("round {round}: {filled} + {kept} requests, room after {:?}", began.elapsed());
    }
    assert_eq!(call("DELETE", "/v1/streams/filled", "").status, 200);
    let next = json::number(&call("GET", "/v1/streams/kept", "").body, "next");
    drop(node);
    let node = Node::start(&data, "disk", &folder.path().join("node.log"));
    let reply = node.http().call("GET", "/v1/streams/filled", "").unwrap();
    assert_eq!(reply.status, 404, "what was removed is back");
    let reply = node.http().call("GET", "/v1/streams/kept", "").unwrap();
    assert_eq!(json::number(&reply.body, "next"), next, "{}", reply.body);
}

/// Enqueues until that is refused, or so often; returns how often.
fn fill_stream(node: &Node, topic: &str, count: usize) -> usize {
    let text = "x".repeat(100_000);
    let body = format!(r#"{{"to":"{topic}","envelope":{{"text":"{text}"}}}}"#);
    let mut http = node.http();
    let is_taken = |_: &usize| {
        let reply = http.call("POST", "/v1/enqueue", &body).unwrap();
        assert!([200, 507].contains(&reply.status), "{}", reply.body);
        reply.status == 200
    };
    (0..count.min(100_000)).take_while(is_taken).count()
}

struct Proof {
    seed: u64,
    ledger: Ledger,
}

impl Proof {
    /// Makes the streams, and a message for later.
    fn begin(&self, node: &Node) {
        LEVELS.iter().for_each(|level| node.make(level, level));
        let body = format!(
            r#"{{"to":"later","delayMs":{},"envelope":{{"id":"later"}}}}"#,
            DELAY.as_millis()
        );
        let reply = node.http().call("POST", "/v1/enqueue", &body).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Enqueues at every level until nothing fits; returns how many messages were refused.
    fn fill(&self, node: &Node) -> [u64; 3] {
        let refusals = [const { AtomicU64::new(0) }; 3];
        let is_full = || refusals.iter().all(|count| count.load(Ordering::Relaxed) >= REFUSALS);
        let until = Instant::now() + PATIENCE;
        std::thread::scope(|scope| {
            for (level, refusals) in LEVELS.iter().zip(&refusals) {
                let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
                let mut random = Random::new(self.seed ^ level.len() as u64);
                scope.spawn(move || {
                    while !is_full() {
                        let reply = writer.enqueue(level, random.within(1..60)).unwrap();
                        if reply.status == 200 {
                            assert!(Instant::now() < until, "{level}: the disk does not fill");
                            continue;
                        }
                        let code = json::text(json::raw(&reply.body, "error"), "code");
                        assert_eq!((reply.status, code), (507, "StorageFull"), "{level}");
                        refusals.fetch_add(1, Ordering::Relaxed);
                        assert!(Instant::now() < until, "{level}: only this level is refused");
                    }
                });
            }
        });
        refusals.map(AtomicU64::into_inner)
    }

    /// While the disk is full the node says so, lives, and holds what it acknowledged and no more.
    fn check_full(&self, node: &Node) {
        // A commit that frees room may let one more message in, and the next one is refused.
        let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
        until("a message is refused, and the node says why", || {
            let is_refused = writer.enqueue("disk", 20).unwrap().status != 200;
            let reply = node.http().call("GET", "/health", "").unwrap();
            let status = json::text(&reply.body, "status");
            let said = (reply.status, json::raw(&reply.body, "ok"), status);
            is_refused && said == (200, "false", "storage")
        });
        assert_eq!(node.http().call("GET", "/ready", "").unwrap().status, 503);
        self.check(node, &LEVELS);
    }

    fn check(&self, node: &Node, levels: &[&str]) {
        for level in levels {
            let reading = Reading::of(&mut node.http(), level, self.seed).unwrap();
            let acknowledged = self.ledger.of(level);
            assert!(!acknowledged.is_empty(), "{level}: nothing was shown");
            assert_eq!(reading.conflict(&acknowledged), None, "{level}");
            assert_eq!(reading.missing(&acknowledged), [], "{level}: acknowledged and gone");
            let (there, said) = (reading.messages.len(), acknowledged.len());
            assert_eq!(there, said, "{level}: refused and there");
        }
    }

    /// With room again every level takes messages, and what was due comes; returns how soon.
    fn resume(&self, node: &Node) -> Duration {
        let began = Instant::now();
        for level in LEVELS {
            let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
            until(level, || writer.enqueue(level, 1).unwrap().status == 200);
        }
        let resumed = began.elapsed();
        until("a message that came due meanwhile is stored", || is_delivered(node, "later"));
        self.check(node, &LEVELS);
        resumed
    }

    /// After a crash too: all of it at `os` and `disk`, and at `memory` all that was stored since.
    fn check_restarted(&self, node: &Node) {
        self.check(node, &["os", "disk"]);
        let reading = Reading::of(&mut node.http(), "memory", self.seed).unwrap();
        assert_eq!(reading.conflict(&self.ledger.of("memory")), None);
        assert!(is_delivered(node, "later"));
    }

    fn report(&self, refused: &[u64; 3], resumed: Duration) {
        println!("\nrequests are taken again {resumed:?} after there was room\n");
        println!("level   acknowledged  requests refused");
        for (level, refused) in LEVELS.iter().zip(refused) {
            println!("{level:<7} {:>12} {refused:>17}", self.ledger.of(level).len());
        }
    }
}

/// Whether the stream holds its one message.
fn is_delivered(node: &Node, topic: &str) -> bool {
    let reply = node.http().call("GET", &format!("/v1/streams/{topic}"), "").unwrap();
    reply.status == 200 && json::number(&reply.body, "next") == 1
}
