//! The work of a client's process. It takes its work as arguments and prints its result in one
//! line. So no client shares the node's process, nor its memory.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use sealane_codec::Codec;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::client::{AckMode, LoadReader, ReaderTally, envelope, now_us};
use super::publisher::{LoadPublisher, PublishPipeline};
use crate::failure::{BenchFailure, Result};
use crate::process::{BenchClientProcess, BenchServer};
use crate::programs::BenchPrograms;

/// A client's work. It travels as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum WorkerTask {
    /// Enqueue over `connections` connections in batches of `size`; 1 is a request each.
    Append { topic: String, connections: usize, size: usize, bytes: usize, each: Duration },
    /// Publish over `connections` sockets for a while, each message an item of its own.
    Publish {
        topic: String,
        connections: usize,
        pipeline: PublishPipeline,
        bytes: usize,
        each: Duration,
    },
    /// Enqueue `rate` messages a second, each with the time at which it was sent.
    Pace { topic: String, rate: u64, bytes: usize, each: Duration },
    /// Read over connections until `count` came to each.
    Read { readers: WorkerReaders, acks: AckMode, count: u64, each: Duration },
    /// Read `count` messages of `topic`, `batch` to a frame, as a program does that uses the
    /// client library.
    Follow { topic: String, codec: String, batch: usize, count: u64 },
    /// Open connections and hold them until the input closes.
    Hold { readers: WorkerReaders, count: u64 },
}

/// The connections that a worker reads with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerReaders {
    query: String,
    connections: usize,
    /// Names of codecs, which the connections take in turn.
    codecs: String,
}

/// The result of a client.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerOutcome {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Bytes that a reader got; 0 where nobody counts them.
    pub(crate) bytes: u64,
}

impl WorkerTask {
    /// Reads for a while as JSON, each connection with `query`.
    pub(crate) fn read(query: &str, connections: usize, acks: AckMode, each: Duration) -> Self {
        let readers = WorkerReaders { query: query.to_owned(), connections, codecs: "json".into() };
        WorkerTask::Read { readers, acks, count: u64::MAX, each }
    }

    /// Holds connections.
    pub(crate) fn hold(query: &str, connections: usize, codecs: &str, count: u64) -> Self {
        let (query, codecs) = (query.to_owned(), codecs.to_owned());
        WorkerTask::Hold { readers: WorkerReaders { query, connections, codecs }, count }
    }

    /// The same in other codecs.
    pub(crate) fn in_codecs(mut self, names: &str) -> Self {
        if let WorkerTask::Read { readers, .. } = &mut self {
            names.clone_into(&mut readers.codecs);
        }
        self
    }

    /// The same until so many came to each connection.
    pub(crate) fn until(mut self, most: u64) -> Self {
        if let WorkerTask::Read { count, .. } = &mut self {
            *count = most;
        }
        self
    }

    /// Starts the client that does it.
    pub(crate) fn start(
        &self,
        programs: &BenchPrograms,
        hub: &BenchServer,
    ) -> Result<BenchClientProcess> {
        let work = serde_json::to_string(self).map_err(BenchFailure::of)?;
        BenchClientProcess::start(programs, &["worker", &hub.address, &work])
    }
}

/// Does the work, and prints what was seen: the body of a hidden verb.
pub(crate) async fn work(address: &str, work: &str) -> Result<()> {
    let outcome = match serde_json::from_str(work).map_err(BenchFailure::of)? {
        WorkerTask::Append { topic, connections, size, bytes, each } => {
            append(
                address,
                &post(address, &topic, &vec![plain_envelope(bytes); size]),
                connections,
                size,
                each,
            )
            .await
        }
        WorkerTask::Publish { topic, connections, pipeline, bytes, each } => {
            let mut publishers = Vec::with_capacity(connections);
            for _ in 0..connections {
                publishers.push(LoadPublisher::open(address, &topic, plain_envelope(bytes)).await?);
            }
            let (start, mut tasks) = (Instant::now(), JoinSet::new());
            for publisher in publishers {
                tasks.spawn(publisher.run(pipeline, start + each));
            }
            Ok(outcome(all(tasks).await?, start))
        }
        WorkerTask::Pace { topic, rate, bytes, each } => {
            pace(address, &topic, rate, bytes, each).await
        }
        WorkerTask::Read { readers, acks, count, each } => {
            read(address, readers, acks, count, each).await
        }
        WorkerTask::Follow { topic, codec, batch, count } => {
            let codec = Codec::from_name(&codec).unwrap_or(Codec::Json);
            let client = sealane::Client::connect(address)?;
            follow(client.subscribe(&topic).codec(codec).batch(batch), count).await
        }
        WorkerTask::Hold { readers, count } => hold(address, readers, count).await,
    };
    println!("{}", serde_json::to_string(&outcome?).map_err(BenchFailure::of)?);
    Ok(())
}

/// The deliveries or answers of all connections.
async fn all(mut tasks: JoinSet<Result<ReaderTally>>) -> Result<ReaderTally> {
    let mut all = ReaderTally::default();
    while let Some(seen) = tasks.join_next().await {
        all.add(seen.map_err(BenchFailure::of)??);
    }
    Ok(all)
}

async fn append(
    address: &str,
    request: &[u8],
    connections: usize,
    size: usize,
    each: Duration,
) -> Result<WorkerOutcome> {
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..connections {
        let (request, mut socket) = (request.to_vec(), connect(address).await?);
        tasks.spawn(async move {
            let mut seen = ReaderTally::default();
            while start.elapsed() < each {
                let sent = Instant::now();
                exchange(&mut socket, &request).await?;
                seen.count += size as u64;
                let late = sent.elapsed().as_micros();
                seen.latencies_us.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
            Ok(seen)
        });
    }
    Ok(outcome(all(tasks).await?, start))
}

async fn pace(
    address: &str,
    topic: &str,
    rate: u64,
    bytes: usize,
    each: Duration,
) -> Result<WorkerOutcome> {
    let start = Instant::now();
    let mut socket = connect(address).await?;
    let mut sent: u64 = 0;
    while start.elapsed() < each {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        if due <= sent {
            tokio::time::sleep(Duration::from_micros(500)).await;
            continue;
        }
        let envelopes: Vec<Vec<u8>> = (sent..due.min(sent + 5000))
            .map(|n| envelope(Codec::Json, format!("t{}-{n}", now_us()), bytes))
            .collect();
        sent += envelopes.len() as u64;
        exchange(&mut socket, &post(address, topic, &envelopes)).await?;
    }
    Ok(WorkerOutcome {
        count: sent,
        seconds: start.elapsed().as_secs_f64(),
        ..WorkerOutcome::default()
    })
}

async fn read(
    address: &str,
    readers: WorkerReaders,
    acks: AckMode,
    count: u64,
    each: Duration,
) -> Result<WorkerOutcome> {
    let readers = readers.open(address, acks).await?;
    println!("ready");
    // From here on: to connect takes its time where many do.
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut reader in readers {
        let end = start + each;
        tasks.spawn(async move { reader.read(count, end).await.map(|seen| (seen, reader)) });
    }
    let (mut all, mut held) = (ReaderTally::default(), Vec::new());
    while let Some(seen) = tasks.join_next().await {
        let (seen, reader) = seen.map_err(BenchFailure::of)??;
        all.add(seen);
        held.push(reader);
    }
    Ok(outcome(all, start))
}

async fn follow(subscribe: sealane::SubscribeBuilder, count: u64) -> Result<WorkerOutcome> {
    let start = Instant::now();
    let mut messages = subscribe.from(sealane::StartPosition::First).limit(count).await?;
    let mut seen = ReaderTally::default();
    while let Some(message) = messages.next().await {
        std::hint::black_box(message?);
        seen.count += 1;
    }
    Ok(outcome(seen, start))
}

/// How long a reader waits for what it is to hold. Then it is counted without.
const HOLD_MAX: Duration = Duration::from_secs(120);

async fn hold(address: &str, readers: WorkerReaders, count: u64) -> Result<WorkerOutcome> {
    let mut readers = readers.open(address, AckMode::None).await?;
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    if count > 0 {
        for mut reader in readers.drain(..) {
            tasks.spawn(async move { reader.read(count, Instant::now() + HOLD_MAX).await });
        }
        // The credits are to have reached the hub before it is said that all stands.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("ready");
    let seen = all(tasks).await?;
    if count == 0 {
        let mut rest = Vec::new();
        let ended = tokio::io::stdin().read_to_end(&mut rest).await;
        ended.map_err(BenchFailure::io("waiting"))?;
    }
    Ok(outcome(seen, start))
}

impl WorkerReaders {
    /// Opens all connections. Where the query asks for consumers, each has one of its own.
    async fn open(&self, address: &str, acks: AckMode) -> Result<Vec<LoadReader>> {
        let codecs: Vec<Codec> = self.codecs.split(',').filter_map(Codec::from_name).collect();
        let mut readers = Vec::with_capacity(self.connections);
        for (index, codec) in (0..self.connections).zip(codecs.into_iter().cycle()) {
            let query = self.query.replace("{}", &index.to_string());
            readers.push(LoadReader::open(address, &query, codec, acks).await?);
        }
        Ok(readers)
    }
}

fn outcome(mut seen: ReaderTally, start: Instant) -> WorkerOutcome {
    let seconds = start.elapsed().as_secs_f64();
    let p50_us = super::client::percentile(&mut seen.latencies_us, 0.5);
    let p99_us = super::client::percentile(&mut seen.latencies_us, 0.99);
    WorkerOutcome { count: seen.count, seconds, p50_us, p99_us, bytes: seen.bytes }
}

/// A connection of a WebSocket.
pub(crate) type BenchSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a WebSocket, whose library reads so many bytes at once.
pub(crate) async fn open_socket(url: String, read_bytes: usize) -> Result<BenchSocket> {
    let config = WebSocketConfig::default().read_buffer_size(read_bytes);
    let opened = connect_async_with_config(url, Some(config), true).await;
    Ok(opened.map_err(|error| BenchFailure::said("a connection", error))?.0)
}

pub(crate) async fn connect(address: &str) -> Result<TcpStream> {
    let socket = TcpStream::connect(address).await.map_err(BenchFailure::io("connecting"))?;
    socket.set_nodelay(true).map_err(BenchFailure::io("connecting"))?;
    Ok(socket)
}

/// An envelope that has so many bytes with the id that the hub adds.
fn plain_envelope(bytes: usize) -> Vec<u8> {
    let filler = "x".repeat(bytes.saturating_sub(28));
    format!(r#"{{"data":"{filler}"}}"#).into_bytes()
}

pub(crate) fn post(address: &str, topic: &str, envelopes: &[Vec<u8>]) -> Vec<u8> {
    let total: usize = envelopes.iter().map(|e| e.len() + 1).sum();
    let mut body = Vec::with_capacity(total + 64);
    let path = if let [one] = envelopes {
        body.extend_from_slice(format!(r#"{{"to":"{topic}","envelope":"#).as_bytes());
        body.extend_from_slice(one);
        body.push(b'}');
        "/v1/enqueue"
    } else {
        body.extend_from_slice(format!(r#"{{"to":"{topic}","envelopes":["#).as_bytes());
        body.extend_from_slice(&envelopes.join(&b','));
        body.extend_from_slice(b"]}");
        "/v1/enqueue/batch"
    };
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n");
    // Writing to a String cannot fail.
    let _ =
        write!(head, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// Sends a request and reads its answer, which must be 200.
pub(crate) async fn exchange(socket: &mut TcpStream, request: &[u8]) -> Result<()> {
    socket.write_all(request).await.map_err(BenchFailure::io("sending"))?;
    let mut answer = Vec::with_capacity(512);
    loop {
        let read = socket.read_buf(&mut answer).await.map_err(BenchFailure::io("receiving"))?;
        if read == 0 {
            return Err(BenchFailure::broken("a client"));
        }
        if let Some(head) = answer.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
            if answer.len() >= head + 4 + length {
                let good = text.starts_with("http/1.1 200");
                return if good { Ok(()) } else { Err(BenchFailure::broken("a client")) };
            }
        }
    }
}
