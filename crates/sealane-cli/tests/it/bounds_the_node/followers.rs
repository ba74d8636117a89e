//! Subscriptions to everything, and clients that ask for everything and take nothing.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealane_node::limits::{MAX_CONNECTION_DELIVERIES_BYTES, MAX_DELIVERIES_BYTES, MAX_HEAD_BYTES};
use sealane_stream::limits::{MAX_FOLLOWED_STREAMS, MAX_TAIL_BYTES};

use super::figures::{behind, forget_peak, memory, metric, mib, tcp_pages};
use super::stage::{PATIENCE, Stage};
use crate::durable::node::Node;
use crate::durable::websocket::{Frame, WebSocket};

const FOLLOWERS: usize = 100;

/// Of each stream that a subscription follows: where it is, and how it is woken.
const FOLLOWED_BYTES_MAX: usize = 1024;

/// Bytes that the allocator may keep of memory that was given back.
const SLACK_BYTES: usize = 32 << 20;

/// Messages of the stream that is read, which are more than sockets and connections hold.
const MESSAGES: usize = 1024;
const MESSAGE_BYTES: usize = 16 << 10;

/// Messages that come while it is read.
const LATER: usize = 50;

/// Those who read nothing are sent away by and by: what they hold is looked at long before.
const SETTLED: Duration = Duration::from_secs(20);

/// How often a client that has nothing to say shows that it is there.
const SIGN: Duration = Duration::from_secs(20);

const FOLLOWED: &str = "sealane_read_followed_streams";
const HELD: &str = "sealane_read_held_bytes";

pub(crate) fn run(streams: usize, stuck: usize) {
    let stage = Stage::set("os");
    let node = &stage.node;
    stage.fill("busy", MESSAGES, MESSAGE_BYTES);
    // Half of what all subscriptions together may follow, at most.
    let touched = (streams - 1).min(MAX_FOLLOWED_STREAMS / FOLLOWERS / 2);
    touch(node, 0..streams - 1);
    touch(node, 0..touched);
    std::thread::sleep(Duration::from_millis(500));
    forget_peak(node);
    let quiet = memory(node, "VmRSS:");
    let began = Instant::now();
    let followers = Awake::keep((0..FOLLOWERS).map(|_| follow(node)).collect());
    let (subscribed, idle) = (memory(node, "VmRSS:"), metric(node, FOLLOWED));
    println!("{FOLLOWERS} subscriptions to {streams} streams: {idle} followed while nothing comes");
    println!("  memory: quiet {}, subscribed {}", mib(quiet), mib(subscribed));
    touch(node, 0..touched);
    let followed = wait_for_followed(node, (FOLLOWERS * touched) as u64);
    let following = memory(node, "VmRSS:");
    let bytes = following.saturating_sub(subscribed) / followed;
    println!("  {followed} followed once {touched} streams have a message: {}", mib(following));
    println!("  it took {:?}", began.elapsed());
    println!("  {bytes} bytes of a followed stream (wanted: at most {FOLLOWED_BYTES_MAX})");
    let began = Instant::now();
    let clients: Vec<_> = (0..stuck).map(|_| stand_still(node)).collect();
    let opened = began.elapsed();
    let held = wait_for_held(node);
    let connections = metric(node, "sealane_read_connections") as usize;
    let standing = memory(node, "VmRSS:");
    let each = standing.saturating_sub(following) / stuck as u64;
    println!("{stuck} clients that read nothing: {}, {each} bytes each", mib(standing));
    println!("  they were there after {opened:?}, and still after {:?}", began.elapsed());
    println!("  {HELD} {held}, {FOLLOWED} {}", metric(node, FOLLOWED));
    let (pages, most) = tcp_pages();
    println!("  the machine's TCP sockets have {pages} pages of memory, of {most}");
    let took = read_all(&stage);
    let peak = memory(node, "VmHWM:");
    let growth = peak.saturating_sub(quiet);
    let bound = budget(followed as usize, FOLLOWERS + stuck + 1) as u64;
    println!("  a reader beside them had {} messages in {took:?}", MESSAGES + LATER);
    println!("memory: {} at most, growth {} of {}", mib(peak), mib(growth), mib(bound));
    drop(clients);
    followers.finish();
    assert!(held > 0 && held <= MAX_DELIVERIES_BYTES as u64, "{held} bytes are held");
    assert!(growth <= bound, "{} of {}", mib(growth), mib(bound));
    assert!(connections >= FOLLOWERS + stuck, "some of them were sent away: {connections}");
}

/// The bytes that all of it may take.
fn budget(followed: usize, connections: usize) -> usize {
    let deliveries = MAX_DELIVERIES_BYTES.min(connections * MAX_CONNECTION_DELIVERIES_BYTES);
    let connections = connections * MAX_HEAD_BYTES;
    deliveries + connections + MAX_TAIL_BYTES + followed * FOLLOWED_BYTES_MAX + SLACK_BYTES
}

/// Enqueues a message to each of these streams.
fn touch(node: &Node, streams: std::ops::Range<usize>) {
    const WRITERS: usize = 8;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mine = streams.clone().skip(writer).step_by(WRITERS);
            scope.spawn(move || {
                let mut http = node.http();
                for number in mine {
                    let body = format!("{{\"to\":\"some/{number}\",\"envelope\":{{\"n\":1}}}}");
                    let reply = http.call("POST", "/v1/enqueue", &body).unwrap();
                    assert_eq!(reply.status, 200, "{}", reply.body);
                }
            });
        }
    });
}

/// Subscribes to everything that is new, with credit for one message.
fn follow(node: &Node) -> WebSocket {
    let mut socket = WebSocket::open(&node.address, "stream=**&from=new").unwrap();
    let subscribed = socket.next(PATIENCE).unwrap();
    assert!(matches!(subscribed, Frame::Text(frame) if frame.contains("subscribed")));
    socket.send("{\"credit\":1}").unwrap();
    socket
}

/// Asks for all that there is, and reads none of it.
fn stand_still(node: &Node) -> WebSocket {
    let mut socket = WebSocket::open(&node.address, "stream=busy&from=first").unwrap();
    socket.send("{\"credit\":1048576}").unwrap();
    socket
}

/// Clients that read nothing for a while, and show that they are there.
struct Awake {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Awake {
    fn keep(mut all: Vec<WebSocket>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(SIGN) == Err(RecvTimeoutError::Timeout) {
                all.iter_mut().for_each(|socket| socket.ping(0).unwrap());
            }
        });
        Self { stop, thread }
    }

    /// Lets them go; the hub has ended none of them.
    fn finish(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Waits until so many streams are followed, or the hub finds no more of them.
fn wait_for_followed(node: &Node, wanted: u64) -> u64 {
    sealane_testing::until_told(|| metric(node, FOLLOWED), |followed| *followed >= wanted)
}

/// Waits until connections hold what they will hold, or have had `SETTLED` for it.
fn wait_for_held(node: &Node) -> u64 {
    let (mut last, mut moved) = (0, Instant::now());
    let began = Instant::now();
    while moved.elapsed() < Duration::from_millis(600) && began.elapsed() < SETTLED {
        std::thread::sleep(Duration::from_millis(50));
        let now = metric(node, HELD);
        if now != last {
            (last, moved) = (now, Instant::now());
        }
    }
    last
}

/// Reads the stream while more comes, each message once and in order.
fn read_all(stage: &Stage) -> Duration {
    let began = Instant::now();
    let query = "stream=busy&from=first&batch=16";
    let mut socket = WebSocket::open(&stage.node.address, query).unwrap();
    socket.send("{\"credit\":1048576}").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| stage.fill("busy", LATER, MESSAGE_BYTES));
        let mut next = 0;
        while next < MESSAGES + LATER {
            let Frame::Text(frame) = socket.next(PATIENCE).unwrap() else {
                panic!("a reader beside those who stand still has {next} messages");
            };
            for delivery in frame.split("\"stream\":\"busy\",").skip(1) {
                // In `subscribed` this is the offset that comes first, too.
                let offset = behind(delivery, "\"offset\":") as usize;
                assert_eq!(offset, next);
                next += usize::from(!frame.contains("\"subscribed\""));
            }
        }
    });
    began.elapsed()
}
