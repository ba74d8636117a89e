//! Publishers that send as much as they have credit for, to a disk that takes nothing for a while.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::durable::disk::{self, Mounted};
use crate::durable::json;

use sealane_node::limits::{
    FIRST_PUBLISH_CREDIT, FIRST_PUBLISH_CREDIT_BYTES, MAX_ASKED_BYTES, PUBLISHED_MESSAGE_BYTES,
};
use sealane_stream::limits::{
    MAX_COMMIT_BYTES, MAX_COMMIT_MESSAGES, MAX_TAIL_BYTES, MAX_WRITE_QUEUE_BYTES,
    MAX_WRITE_QUEUE_MESSAGES,
};

use super::node::{Node, good};
use super::socket::{Socket, connect};

const IMAGE_BYTES: u64 = 4 << 30;
/// Streams that the publishers share.
const STREAMS: usize = 16;
/// Publishers that connect at once.
const CONNECTING: usize = 32;
/// The text in a message.
const TEXT_BYTES: usize = 100;
/// No item is longer.
const MESSAGE_BYTES_MAX: u64 = TEXT_BYTES as u64 + 100;
/// How long everybody publishes before the disk stalls, and after.
const FLOOD: Duration = Duration::from_secs(1);
/// After this time it is settled whether data on its way to the disk at the stall has come there.
const SETTLED: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// The program, its threads, the store's cache, and what the allocator keeps.
const PROGRAM_BYTES: u64 = 96 << 20;
/// Buffers of one connection, its tasks, and what is kept of its session.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Copies of a commit's messages: as they were planned, as blocks, and in the log's pages.
const COMMIT_COPIES: u64 = 3;

/// The memory that the node may use. Each part is bounded where it is counted. A publisher has a
/// first credit, and all share the further credit. The other parts are the writer's queue, the
/// commit that stalls, and the recent messages of each stream.
fn memory_bound_kib(publishers: usize) -> u64 {
    let of_messages = |count: u64| count * PUBLISHED_MESSAGE_BYTES;
    let first = of_messages(FIRST_PUBLISH_CREDIT) + FIRST_PUBLISH_CREDIT_BYTES;
    let queue = MAX_WRITE_QUEUE_BYTES as u64 + of_messages(MAX_WRITE_QUEUE_MESSAGES as u64);
    let commit = MAX_COMMIT_BYTES + of_messages(MAX_COMMIT_MESSAGES as u64);
    let tails = (STREAMS * MAX_TAIL_BYTES) as u64;
    let of_all = PROGRAM_BYTES + MAX_ASKED_BYTES + queue + COMMIT_COPIES * commit + tails;
    (of_all + publishers as u64 * (CONNECTION_BYTES + first)) >> 10
}

struct Stage {
    connecting: Semaphore,
    ready: AtomicU64,
    begun: AtomicBool,
    stopped: AtomicBool,
    /// Messages that were answered.
    stored: [AtomicU64; STREAMS],
}

impl Stage {
    fn stored(&self) -> u64 {
        self.stored.iter().map(|stored| stored.load(Ordering::SeqCst)).sum()
    }
}

pub(crate) async fn run(publishers: usize, stall: Duration) {
    disk::require();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    disk::make(&image, IMAGE_BYTES);
    let mounted = Mounted::new(&image, folder.path().join("mounted"));
    let data = mounted.folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let places = (publishers + 100).to_string();
    let limits = ["--connections-per-address", &places, "--enqueue-rate", "10000000"];
    let mut node = Node::start_in(&data, "disk", &limits);
    let empty_kib = node.memory_kib("VmRSS:");
    let (stage, mut tasks) = start(&node, publishers).await;
    let idle_kib = node.memory_kib("VmRSS:");
    stage.begun.store(true, Ordering::SeqCst);
    tokio::time::sleep(FLOOD).await;
    let before_kib = node.memory_kib("VmRSS:");
    let stalled = mounted.stall();
    tokio::time::sleep(SETTLED).await;
    let before = stored(&node).await;
    tokio::time::sleep(stall).await;
    assert_eq!(stored(&node).await, before, "something is stored that no disk has");
    assert!(stage.stored() <= before, "something is answered that is not stored");
    let stalled_kib = node.memory_kib("VmRSS:");
    let asked = node.metrics().await["sealane_carry_asked_bytes"];
    // Nobody's message goes beyond its credit by more than itself.
    let asked_max = MAX_ASKED_BYTES + publishers as u64 * MESSAGE_BYTES_MAX;
    assert!(asked <= asked_max, "{asked} bytes are asked for, of {asked_max}");
    drop(stalled);
    let resumed = Instant::now();
    while stage.stored() <= before {
        assert!(resumed.elapsed() < PATIENCE, "nobody goes on");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("after a stall of {stall:?} the first answer comes in {:?}", resumed.elapsed());
    tokio::time::sleep(FLOOD).await;
    stage.stopped.store(true, Ordering::SeqCst);
    // A publisher that was cut off, or is not answered, fails here.
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    println!("{before} messages were stored before the stall, {} in all", stage.stored());
    let (peak_kib, bound) = (node.memory_kib("VmHWM:"), memory_bound_kib(publishers));
    println!("memory, KiB: {empty_kib} at first, {idle_kib} when all are connected,");
    println!(
        "  {before_kib} before the stall, {stalled_kib} in it, {peak_kib} at most, {bound} may be"
    );
    println!("{asked} bytes were reserved in the stall, {MAX_ASKED_BYTES} may be");
    assert!(peak_kib < bound, "{peak_kib} KiB of {bound} KiB");
    for (number, stored) in stage.stored.iter().enumerate() {
        let info = node.client().stream(&topic(number)).await.unwrap();
        assert_eq!(info.next, stored.load(Ordering::SeqCst), "what was answered is there once");
    }
    node.is_well().await;
}

/// Connects everybody, and lets them publish.
async fn start(node: &Node, publishers: usize) -> (Arc<Stage>, JoinSet<()>) {
    let stage = Arc::new(Stage {
        connecting: Semaphore::new(CONNECTING),
        ready: AtomicU64::new(0),
        begun: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        stored: Default::default(),
    });
    let (mut tasks, began) = (JoinSet::new(), Instant::now());
    for number in 0..publishers {
        tasks.spawn(publish(node.address, stage.clone(), number));
    }
    while stage.ready.load(Ordering::SeqCst) < publishers as u64 {
        assert!(began.elapsed() < PATIENCE, "they do not all connect");
        assert!(tasks.try_join_next().is_none(), "one was sent away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{publishers} publishers are connected after {:?}", began.elapsed());
    (stage, tasks)
}

/// Messages that the node says are stored.
async fn stored(node: &Node) -> u64 {
    node.metrics().await["sealane_stream_stored_total"]
}

fn topic(number: usize) -> String {
    format!("line/{}", number % STREAMS)
}

/// Publishes until all is to stop, and waits for every answer.
async fn publish(address: SocketAddr, stage: Arc<Stage>, number: usize) {
    let mut socket = {
        let _permit = stage.connecting.acquire().await.unwrap();
        let stream = connect(address, Ipv4Addr::LOCALHOST, None).await.unwrap();
        Socket::upgrade(stream, "/v1/publish?codec=json", &good()).await.unwrap()
    };
    stage.ready.fetch_add(1, Ordering::SeqCst);
    while !stage.begun.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut publisher = Publisher::default();
    let is_stopped = || stage.stopped.load(Ordering::SeqCst);
    while !is_stopped() || publisher.answered < publisher.sent {
        while !is_stopped() && publisher.messages > 0 && publisher.bytes > 0 {
            socket.text(&publisher.next(&topic(number))).await.unwrap();
        }
        let next = tokio::time::timeout(PATIENCE, socket.next()).await;
        let frame = next.expect("an answer in time").expect("nobody is cut off");
        let count = publisher.hear(std::str::from_utf8(&frame).unwrap());
        stage.stored[number % STREAMS].fetch_add(count, Ordering::SeqCst);
    }
}

/// One that sends as much as it has credit for.
#[derive(Default)]
struct Publisher {
    /// The credit that is left. The last message may go beyond the bytes.
    messages: u64,
    bytes: i64,
    sent: u64,
    answered: u64,
}

impl Publisher {
    /// The next message.
    fn next(&mut self, to: &str) -> String {
        self.sent += 1;
        let (n, text) = (self.sent, "x".repeat(TEXT_BYTES));
        let item = format!(r#"{{"to":"{to}","n":{n},"envelope":{{"text":"{text}"}}}}"#);
        self.messages -= 1;
        self.bytes -= item.len() as i64;
        format!(r#"{{"publish":{item}}}"#)
    }

    /// Takes in a frame; how many messages it says are stored. Nothing is refused.
    fn hear(&mut self, frame: &str) -> u64 {
        if frame.starts_with(r#"{"session":"#) {
            return 0;
        }
        if frame.starts_with(r#"{"credit":"#) {
            self.messages += json::number(frame, "credit");
            self.bytes += json::number(frame, "bytes") as i64;
            return 0;
        }
        assert!(frame.starts_with(r#"{"published":"#), "{frame:.500}");
        let placed = json::raw(frame, "published");
        let is_one = placed.starts_with(r#"{"n":"#);
        let [from, to] = if is_one { ["n", "n"] } else { ["from", "to"] };
        let (from, to) = (json::number(placed, from), json::number(placed, to));
        assert_eq!(from, self.answered + 1, "each is answered once, in order");
        self.answered = to;
        to - from + 1
    }
}
