//! Many readers of one stream, of whom one stands still for a while.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane::Codec;
use tokio::task::JoinHandle;

use super::clients::Samples;
use super::node::{Node, good};
use super::socket::{Socket, connect};

/// Bytes of a message: what the stalled reader misses is more than the system keeps for it.
const MESSAGE_BYTES: usize = 16 << 10;

/// Messages that a stalled reader misses, at least: more than sockets and tails hold.
const BACKLOG: u64 = 1024;

/// How much longer than wanted that may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much the p99 of the others may grow while one stands still.
const RATIO_MAX: f64 = 1.10;

/// The memory that the node may have: its tails, and a socket's worth for each reader.
fn memory_bound_kib(readers: usize) -> u64 {
    (96 << 10) + readers as u64 * 128
}

struct Stage {
    began: Instant,
    /// Messages published so far.
    published: AtomicU64,
    /// Messages that each of the others has read so far.
    read: Vec<AtomicU64>,
    done: AtomicBool,
}

impl Stage {
    /// Of those who do not stand still, the one that has read least.
    fn least(&self) -> u64 {
        self.read.iter().map(|read| read.load(Ordering::SeqCst)).min().unwrap_or(0)
    }
}

pub(crate) async fn run(readers: usize, stall: Duration) {
    let count = (readers + 100).to_string();
    let node = Node::start(&["--connections-per-address", &count]);
    let stage = Arc::new(Stage {
        began: Instant::now(),
        published: AtomicU64::new(0),
        read: (1..readers).map(|_| AtomicU64::new(0)).collect(),
        done: AtomicBool::new(false),
    });
    node.client().configure("line").await.unwrap();
    let mut others = Vec::new();
    for number in 0..readers - 1 {
        others.push(tokio::spawn(read(open(&node, None).await, stage.clone(), number)));
    }
    let mut one = open(&node, Some(4096)).await;
    let publishing = tokio::spawn(publish(node.client(), stage.clone(), stall));
    let mut next = 0;
    let quiet = Instant::now();
    while quiet.elapsed() < stall / 2 {
        next = follow(&mut one, next).await;
    }
    let stalled = Instant::now();
    let since = next;
    tokio::time::sleep(stall).await;
    // On a busy machine it takes longer until there is something to catch up with.
    while stage.published.load(Ordering::SeqCst) - since < BACKLOG {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(stalled.elapsed() < stall + PATIENCE, "it is published too slowly");
    }
    let reached = everybody_else_reads(&stage, since).await;
    let resumed = Instant::now();
    let behind = stage.published.load(Ordering::SeqCst) - since;
    let peak_kib = node.memory_kib("VmHWM:");
    stage.done.store(true, Ordering::SeqCst);
    publishing.await.unwrap();
    let last = stage.published.load(Ordering::SeqCst);
    // It misses nothing: `follow` takes no offset but the next.
    while next < last {
        next = follow(&mut one, next).await;
    }
    let caught_up = resumed.elapsed();
    let samples = gather(others).await;
    let blocks = node.metrics().await["sealane_stream_blocks_read_total"];
    let (before, during) = (samples.between(quiet, stalled), samples.between(stalled, resumed));
    println!("{readers} readers, one of whom stands still for {stall:?}; the others' latency:");
    for (name, some) in [("before", &before), ("during", &during)] {
        println!("  {name}: p50 {:?}, p99 {:?} of {}", some.part(0.5), some.part(0.99), some.len());
    }
    let ratio = during.part(0.99).as_secs_f64() / before.part(0.99).as_secs_f64();
    println!("meanwhile each of the others read {} messages", reached - since);
    println!("it was {behind} messages behind, and had them all after {caught_up:?}");
    let bound = memory_bound_kib(readers);
    println!("memory: {peak_kib} KiB at most, bound {bound} KiB; {blocks} blocks read from disk");
    assert!(peak_kib < bound, "{peak_kib} KiB of {bound} KiB");
    assert!(blocks > 0, "it catches up from the log");
    super::demand("p99 during / before", ratio, RATIO_MAX);
}

/// Waits until each of the others has read what was published by now; the one stands still all the
/// while. A hub that made them wait for it would be found here.
async fn everybody_else_reads(stage: &Stage, since: u64) -> u64 {
    let published = stage.published.load(Ordering::SeqCst);
    let began = Instant::now();
    while stage.least() < published {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let read = stage.least().saturating_sub(since);
        let missed = published - since;
        assert!(began.elapsed() < PATIENCE, "one of the others read {read} of {missed} meanwhile");
    }
    published
}

async fn open(node: &Node, buffer: Option<u32>) -> Socket {
    let stream = connect(node.address, Ipv4Addr::LOCALHOST, buffer).await.unwrap();
    let mut socket = Socket::open(stream, "stream=line&from=first", &good()).await.unwrap();
    socket.next().await.unwrap();
    socket.text("{\"credit\":1000000000}").await.unwrap();
    socket
}

/// Publishes at a steady pace, which leaves half as much again in the time of the stall.
async fn publish(client: sealane::Client, stage: Arc<Stage>, stall: Duration) {
    let pause = stall / (BACKLOG as u32 * 3 / 2);
    let mut every = tokio::time::interval(pause);
    let filling = "x".repeat(MESSAGE_BYTES);
    while !stage.done.load(Ordering::SeqCst) {
        every.tick().await;
        let at = stage.began.elapsed().as_micros();
        let body = format!("{{\"id\":\"m\",\"at\":{at},\"filling\":\"{filling}\"}}");
        client.publish_raw("line", Codec::Json, body).await.unwrap();
        stage.published.fetch_add(1, Ordering::SeqCst);
    }
}

/// Takes the next message, which must have the next offset.
async fn follow(socket: &mut Socket, next: u64) -> u64 {
    let reading = tokio::time::timeout(Duration::from_secs(60), socket.next());
    let frame = reading.await.expect("a message in time").unwrap();
    assert_eq!(behind(&frame, b"\"offset\":"), Some(next));
    next + 1
}

/// Reads until all is read, and notes how old each message is.
async fn read(mut socket: Socket, stage: Arc<Stage>, number: usize) -> Samples {
    let mut samples = Samples::default();
    let mut next = 0;
    while !stage.done.load(Ordering::SeqCst) || next < stage.published.load(Ordering::SeqCst) {
        let Ok(frame) = tokio::time::timeout(Duration::from_secs(1), socket.next()).await else {
            continue;
        };
        let frame = frame.unwrap();
        assert_eq!(behind(&frame, b"\"offset\":"), Some(next));
        next += 1;
        stage.read[number].store(next, Ordering::SeqCst);
        let at = stage.began + Duration::from_micros(behind(&frame, b"\"at\":").unwrap());
        samples.0.push((at, at.elapsed()));
    }
    samples
}

/// The number that stands behind a key, from either end of a frame.
fn behind(frame: &[u8], key: &[u8]) -> Option<u64> {
    let ends = [&frame[..frame.len().min(200)], &frame[frame.len().saturating_sub(200)..]];
    let find = |end: &&[u8]| end.windows(key.len()).position(|part| part == key);
    let (end, at) = ends.iter().find_map(|end| Some((end, find(end)? + key.len())))?;
    let digits = end[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

async fn gather(tasks: Vec<JoinHandle<Samples>>) -> Samples {
    let mut all = Samples::default();
    for task in tasks {
        all.0.extend(task.await.unwrap().0);
    }
    all
}
