//! One publisher, many WebSocket readers: the same client, in a process of its own, for a node and
//! for Centrifugo, which comes without a bench tool.
//!
//! Bursts are published when the last one has reached everybody, because Centrifugo cuts off who
//! is too slow, and a node waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

use super::heat::{AFTER, LapEffort, LapSetup, RaceLap};
use super::ours::envelope;
use crate::failure::{BenchFailure, Result};
use crate::load::worker::{BenchSocket, connect, exchange, open_socket, post};
use crate::process::{BenchClientProcess, BenchServer};

/// Messages of one burst, which is one request.
const BURST: usize = 20;
/// The longest that a burst may take to reach everybody.
const DEADLINE: Duration = Duration::from_secs(60);
/// The time in which a message that was answered has surely become readable.
const SETTLE: Duration = Duration::from_millis(500);
/// As much as a burst of the usual bodies. The library fills it with zeros for each read: at 64 KiB
/// that was a fifth of the clients' CPU, which they take from the servers on the same machine.
const READ_BUFFER_BYTES: usize = 16 << 10;
const TOPIC: &str = "race/run";
/// Credit that a reader of a node gets at its start; half of what a connection may hold.
const CREDIT: u64 = sealane_protocol::limits::MAX_CREDIT / 2;

/// Many readers of a node.
pub(super) async fn sealane(
    track: &LapSetup<'_>,
    batch: usize,
    effort: LapEffort,
) -> Result<RaceLap> {
    let node = BenchServer::hub(track.programs, track.data, "memory")?;
    run(track, &node, &batch.to_string(), effort).await
}

/// Many subscribers of Centrifugo.
pub(super) async fn centrifugo(track: &LapSetup<'_>, effort: LapEffort) -> Result<RaceLap> {
    let missing = || BenchFailure::said("centrifugo", "it is not there");
    let program = track.peers.centrifugo.as_deref().ok_or_else(missing)?;
    let server = BenchServer::peer(program, track.data, |port, _| {
        let text = format!(
            r#"{{"address":"127.0.0.1","port":{port},"client_insecure":true,
"api_insecure":true,"allowed_origins":["*"],"log_level":"error"}}"#
        );
        ("config.json", text)
    })?;
    run(track, &server, "centrifugo", effort).await
}

/// Starts the clients, and counts the server's CPU from when all are there.
async fn run(
    track: &LapSetup<'_>,
    server: &BenchServer,
    peer: &str,
    effort: LapEffort,
) -> Result<RaceLap> {
    let numbers = [track.subscribers as u64, track.body as u64, effort.each.as_millis() as u64];
    let [subscribers, body, each] = numbers.map(|number| number.to_string());
    let words = ["race-client", &server.address, peer, &subscribers, &body, &each];
    let mut clients = BenchClientProcess::start(track.programs, &words)?;
    let ready = clients.ready().await;
    let before = server.process.cpu_s();
    // Where the clients were not ready, this says why.
    let line = clients.last_line().await?;
    ready?;
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let &[count, seconds] = numbers.as_slice() else { return Err(client("gave no figure")) };
    tokio::time::sleep(AFTER).await;
    Ok(RaceLap {
        count: count as u64,
        seconds,
        cpu_s: server.process.cpu_s() - before,
        resident_bytes: server.process.resident_bytes(),
        ..RaceLap::default()
    })
}

fn client(said: &str) -> BenchFailure {
    BenchFailure::said("the clients", said)
}

/// The deliveries that all readers have seen.
#[derive(Default)]
struct FanOutTotals {
    count: AtomicU64,
    wanted: AtomicU64,
    failed: AtomicU64,
    reached: Notify,
}

/// The body of a hidden verb: opens the connections, publishes, and prints deliveries and seconds.
pub(crate) async fn work(
    address: &str,
    peer: &str,
    subscribers: u64,
    body: usize,
    each: Duration,
) -> Result<()> {
    let peer = FanOutPeer::of(address, peer);
    let mut publisher = connect(address).await?;
    // A stream has to be there before it can be read.
    exchange(&mut publisher, &peer.publish(body)).await?;
    // At level `memory` it is there a moment after the answer.
    tokio::time::sleep(SETTLE).await;
    let board = Arc::new(FanOutTotals::default());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..subscribers {
        let socket = peer.open().await?;
        tasks.spawn(read(socket, peer.needle, board.clone()));
    }
    println!("ready");
    let burst = peer.publish(body);
    let start = Instant::now();
    while start.elapsed() < each {
        board.wanted.fetch_add(subscribers * BURST as u64, Ordering::Relaxed);
        exchange(&mut publisher, &burst).await?;
        reached(&board).await?;
    }
    let count = board.count.load(Ordering::Relaxed);
    println!("{count} {}", start.elapsed().as_secs_f64());
    Ok(())
}

/// Waits until everybody has everything.
async fn reached(board: &FanOutTotals) -> Result<()> {
    let all = async {
        loop {
            if board.failed.load(Ordering::Relaxed) > 0 {
                return Err(client("a reader was cut off"));
            }
            let wanted = board.wanted.load(Ordering::Relaxed);
            if board.count.load(Ordering::Relaxed) >= wanted {
                return Ok(());
            }
            board.reached.notified().await;
        }
    };
    let late = |_| client("a burst did not reach everybody");
    tokio::time::timeout(DEADLINE, all).await.map_err(late)?
}

/// Counts deliveries by a word that each of them holds once, the same way for every server.
async fn read(mut socket: BenchSocket, needle: &'static str, board: Arc<FanOutTotals>) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        if text.as_str() == "{}" && socket.send(Message::text("{}")).await.is_err() {
            // Centrifugo's ping is an empty map, and wants one back.
            break;
        }
        let new = text.matches(needle).count() as u64;
        let count = board.count.fetch_add(new, Ordering::Relaxed) + new;
        if new > 0 && count >= board.wanted.load(Ordering::Relaxed) {
            board.reached.notify_one();
        }
    }
    board.failed.fetch_add(1, Ordering::Relaxed);
    board.reached.notify_one();
}

/// How one server is spoken to.
struct FanOutPeer<'a> {
    address: &'a str,
    /// The frames to a delivery frame of a node; none for Centrifugo.
    batch: Option<&'a str>,
    needle: &'static str,
}

impl<'a> FanOutPeer<'a> {
    fn of(address: &'a str, peer: &'a str) -> Self {
        match peer {
            "centrifugo" => Self { address, batch: None, needle: "\"pub\":" },
            batch => Self { address, batch: Some(batch), needle: "\"attempt\":" },
        }
    }

    /// One request that publishes a burst.
    fn publish(&self, body: usize) -> Vec<u8> {
        let one = envelope(body);
        if self.batch.is_some() {
            return post(self.address, TOPIC, &vec![one; BURST]);
        }
        let data = String::from_utf8_lossy(&one);
        let publish = format!(r#"{{"publish":{{"channel":"race","data":{data}}}}}"#);
        let commands = vec![publish; BURST].join(",");
        let body = format!(r#"{{"commands":[{commands}]}}"#);
        let head = format!(
            "POST /api/batch HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        (head + &body).into_bytes()
    }

    /// A connection that gets everything from now on.
    async fn open(&self) -> Result<BenchSocket> {
        let address = self.address;
        let url = match self.batch {
            Some(batch) => format!(
                "ws://{address}/v1/subscribe?codec=json&stream={TOPIC}&from=new&batch={batch}"
            ),
            None => format!("ws://{address}/connection/websocket"),
        };
        let mut socket = open_socket(url, READ_BUFFER_BYTES).await?;
        if self.batch.is_some() {
            say(&mut socket, &format!(r#"{{"credit":{CREDIT}}}"#)).await?;
            return answered(socket, "\"subscribed\"").await;
        }
        say(&mut socket, r#"{"id":1,"connect":{}}"#).await?;
        let mut socket = answered(socket, "\"connect\":").await?;
        say(&mut socket, r#"{"id":2,"subscribe":{"channel":"race"}}"#).await?;
        answered(socket, "\"subscribe\":").await
    }
}

async fn say(socket: &mut BenchSocket, text: &str) -> Result<()> {
    let sent = socket.send(Message::text(text)).await;
    sent.map_err(|_| client("a connection was cut off"))
}

/// The first answer, which has to hold `word`.
async fn answered(mut socket: BenchSocket, word: &str) -> Result<BenchSocket> {
    match socket.next().await {
        Some(Ok(Message::Text(text))) if text.contains(word) => Ok(socket),
        _ => Err(client("a subscription was refused")),
    }
}
