//! The work of a client's process. It takes its work as arguments and prints its result in one
//! line. So no client shares the node's process, nor its memory.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sealane_codec::Codec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;
use super::client::{AckMode, LoadReader, ReaderTally, envelope, now_us};
use super::publisher::{LoadPublisher, PublishPipeline};
use crate::programs::BenchPrograms;

/// A client's work. It travels as text, one argument each.
#[derive(Debug, Clone)]
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
    /// Read over `connections` connections with `query` until `count` came to each.
    Read {
        query: String,
        connections: usize,
        codecs: String,
        acks: AckMode,
        count: u64,
        end_ms: u64,
    },
    /// Read `count` messages of `topic`, `batch` to a frame, as a program does that uses the
    /// client library.
    Follow { topic: String, codec: Codec, batch: usize, count: u64 },
    /// Open `connections` connections with `query` and hold them until the input closes.
    Hold { query: String, connections: usize, codecs: String, count: u64 },
}

/// The result of a client.
#[derive(Debug, Default, Clone)]
pub(crate) struct WorkerOutcome {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Bytes that a reader got; 0 where nobody counts them.
    pub(crate) bytes: u64,
}

/// A client's process.
pub(crate) struct WorkerProcess {
    child: tokio::process::Child,
}

impl WorkerProcess {
    pub(crate) fn start(
        programs: &BenchPrograms,
        address: &str,
        work: &WorkerTask,
    ) -> Result<Self, Error> {
        let child = tokio::process::Command::new(&programs.bench)
            .args(["worker", address])
            .args(work.to_arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::io("starting a client"))?;
        Ok(Self { child })
    }

    /// Waits for what the client saw; lets it go first where it holds connections.
    pub(crate) async fn finish(self) -> Result<WorkerOutcome, Error> {
        let output = self.child.wait_with_output().await.map_err(Error::io("reading a client"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().unwrap_or_default();
        let numbers: Vec<f64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
        let &[count, seconds, p50_us, p99_us, bytes] = numbers.as_slice() else {
            return Err(Error::Process("client"));
        };
        Ok(WorkerOutcome { count: count as u64, seconds, p50_us, p99_us, bytes: bytes as u64 })
    }

    /// Waits until the client says that its connections stand.
    pub(crate) async fn ready(&mut self) -> Result<(), Error> {
        let stdout = self.child.stdout.as_mut().ok_or(Error::Process("client"))?;
        let mut line = [0; 6];
        stdout.read_exact(&mut line).await.map_err(Error::io("waiting for a client"))?;
        if &line == b"ready\n" { Ok(()) } else { Err(Error::Process("client")) }
    }
}

impl WorkerTask {
    fn to_arguments(&self) -> Vec<String> {
        let ms = |each: &Duration| each.as_millis().to_string();
        match self {
            WorkerTask::Append { topic, connections, size, bytes, each } => vec![
                "append".into(),
                topic.clone(),
                connections.to_string(),
                size.to_string(),
                bytes.to_string(),
                ms(each),
            ],
            WorkerTask::Publish { topic, connections, pipeline, bytes, each } => vec![
                "publish".into(),
                topic.clone(),
                connections.to_string(),
                pipeline.window.to_string(),
                pipeline.frame.to_string(),
                bytes.to_string(),
                ms(each),
            ],
            WorkerTask::Pace { topic, rate, bytes, each } => {
                vec!["pace".into(), topic.clone(), rate.to_string(), bytes.to_string(), ms(each)]
            }
            WorkerTask::Read { query, connections, codecs, acks, count, end_ms } => vec![
                "read".into(),
                query.clone(),
                connections.to_string(),
                codecs.clone(),
                (*acks as u8).to_string(),
                count.to_string(),
                end_ms.to_string(),
            ],
            WorkerTask::Follow { topic, codec, batch, count } => vec![
                "follow".into(),
                topic.clone(),
                codec.name().into(),
                batch.to_string(),
                count.to_string(),
            ],
            WorkerTask::Hold { query, connections, codecs, count } => vec![
                "hold".into(),
                query.clone(),
                connections.to_string(),
                codecs.clone(),
                count.to_string(),
            ],
        }
    }

    fn from_arguments(arguments: &[String]) -> Option<WorkerTask> {
        let text = |index: usize| arguments.get(index).cloned();
        let number = |index: usize| arguments.get(index)?.parse::<u64>().ok();
        let size = |index: usize| number(index).map(|n| n as usize);
        let ms = |index: usize| number(index).map(Duration::from_millis);
        Some(match arguments.first()?.as_str() {
            "append" => WorkerTask::Append {
                topic: text(1)?,
                connections: size(2)?,
                size: size(3)?,
                bytes: size(4)?,
                each: ms(5)?,
            },
            "publish" => WorkerTask::Publish {
                topic: text(1)?,
                connections: size(2)?,
                pipeline: PublishPipeline { window: number(3)?, frame: number(4)? },
                bytes: size(5)?,
                each: ms(6)?,
            },
            "pace" => WorkerTask::Pace {
                topic: text(1)?,
                rate: number(2)?,
                bytes: size(3)?,
                each: ms(4)?,
            },
            "read" => WorkerTask::Read {
                query: text(1)?,
                connections: size(2)?,
                codecs: text(3)?,
                acks: match number(4)? {
                    0 => AckMode::None,
                    1 => AckMode::Each,
                    _ => AckMode::Range,
                },
                count: number(5)?,
                end_ms: number(6)?,
            },
            "follow" => WorkerTask::Follow {
                topic: text(1)?,
                codec: Codec::from_name(&text(2)?)?,
                batch: size(3)?,
                count: number(4)?,
            },
            "hold" => WorkerTask::Hold {
                query: text(1)?,
                connections: size(2)?,
                codecs: text(3)?,
                count: number(4)?,
            },
            _ => return None,
        })
    }
}

/// Does the work that `arguments` name, and prints what was seen: the body of a hidden verb.
///
/// # Errors
/// [`Error`] where the work is not known or the hub fails.
pub async fn work(arguments: &[String]) -> Result<(), Error> {
    let (address, rest) = arguments.split_first().ok_or(Error::Process("client"))?;
    let work = WorkerTask::from_arguments(rest).ok_or(Error::Process("client"))?;
    let outcome = match work {
        WorkerTask::Append { topic, connections, size, bytes, each } => {
            append(address, &topic, connections, size, bytes, each).await
        }
        WorkerTask::Publish { topic, connections, pipeline, bytes, each } => {
            let mut publishers = Vec::with_capacity(connections);
            for _ in 0..connections {
                publishers.push(LoadPublisher::open(address, &topic, plain_envelope(bytes)).await?);
            }
            publish(publishers, pipeline, each).await
        }
        WorkerTask::Pace { topic, rate, bytes, each } => {
            pace(address, &topic, rate, bytes, each).await
        }
        WorkerTask::Read { query, connections, codecs, acks, count, end_ms } => {
            let each = Duration::from_millis(end_ms);
            read(
                address,
                WorkerReaders { query: &query, connections, codecs: &codecs },
                acks,
                count,
                each,
            )
            .await
        }
        WorkerTask::Follow { topic, codec, batch, count } => {
            let client = sealane::Client::connect(address)?;
            follow(client.subscribe(&topic).codec(codec).batch(batch), count).await
        }
        WorkerTask::Hold { query, connections, codecs, count } => {
            hold(address, WorkerReaders { query: &query, connections, codecs: &codecs }, count)
                .await
        }
    };
    let WorkerOutcome { count, seconds, p50_us, p99_us, bytes } = outcome?;
    println!("{count} {seconds} {p50_us} {p99_us} {bytes}");
    Ok(())
}

async fn append(
    address: &str,
    topic: &str,
    connections: usize,
    size: usize,
    bytes: usize,
    each: Duration,
) -> Result<WorkerOutcome, Error> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let request = request(address, topic, size, bytes);
        let mut socket = connect(address).await?;
        tasks.spawn(async move {
            let (mut count, mut seen) = (0, ReaderTally::default());
            while start.elapsed() < each {
                let sent = Instant::now();
                exchange(&mut socket, &request).await?;
                count += size as u64;
                let late = sent.elapsed().as_micros();
                seen.latencies_us.push(u32::try_from(late).unwrap_or(u32::MAX));
            }
            seen.count = count;
            Ok::<ReaderTally, Error>(seen)
        });
    }
    let mut all = ReaderTally::default();
    while let Some(seen) = tasks.join_next().await {
        all.add(seen.map_err(|_| Error::Process("client"))??);
    }
    Ok(outcome(all, start))
}

async fn pace(
    address: &str,
    topic: &str,
    rate: u64,
    bytes: usize,
    each: Duration,
) -> Result<WorkerOutcome, Error> {
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

async fn publish(
    publishers: Vec<LoadPublisher>,
    pipeline: PublishPipeline,
    each: Duration,
) -> Result<WorkerOutcome, Error> {
    let (start, mut tasks) = (Instant::now(), tokio::task::JoinSet::new());
    for publisher in publishers {
        tasks.spawn(publisher.run(pipeline, start + each));
    }
    let mut all = ReaderTally::default();
    while let Some(seen) = tasks.join_next().await {
        all.add(seen.map_err(|_| Error::Process("client"))??);
    }
    Ok(outcome(all, start))
}

/// The connections that a worker reads with.
struct WorkerReaders<'a> {
    query: &'a str,
    connections: usize,
    /// Names of codecs, which the connections take in turn.
    codecs: &'a str,
}

async fn read(
    address: &str,
    readers: WorkerReaders<'_>,
    acks: AckMode,
    count: u64,
    each: Duration,
) -> Result<WorkerOutcome, Error> {
    let WorkerReaders { query, connections, codecs } = readers;
    let mut readers = Vec::with_capacity(connections);
    for (index, codec) in (0..connections).zip(cycle(codecs)) {
        // Each connection is a consumer of its own, where the query asks for consumers.
        let query = query.replace("{}", &index.to_string());
        readers.push(LoadReader::open(address, &query, codec, acks).await?);
    }
    println!("ready");
    // From here on: to connect takes its time where many do.
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut reader in readers {
        let end = start + each;
        tasks.spawn(async move { reader.read(count, end).await.map(|seen| (seen, reader)) });
    }
    let (mut all, mut held) = (ReaderTally::default(), Vec::new());
    while let Some(seen) = tasks.join_next().await {
        let (seen, reader) = seen.map_err(|_| Error::Process("client"))??;
        all.add(seen);
        held.push(reader);
    }
    Ok(outcome(all, start))
}

async fn follow(subscribe: sealane::SubscribeBuilder, count: u64) -> Result<WorkerOutcome, Error> {
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

async fn hold(
    address: &str,
    readers: WorkerReaders<'_>,
    count: u64,
) -> Result<WorkerOutcome, Error> {
    let WorkerReaders { query, connections, codecs } = readers;
    let mut readers = Vec::with_capacity(connections);
    for (_, codec) in (0..connections).zip(cycle(codecs)) {
        readers.push(LoadReader::open(address, query, codec, AckMode::None).await?);
    }
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    if count > 0 {
        for mut reader in readers.drain(..) {
            tasks.spawn(async move { reader.read(count, Instant::now() + HOLD_MAX).await });
        }
        // The credits are to have reached the hub before it is said that all stands.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("ready");
    let mut all = ReaderTally::default();
    while let Some(seen) = tasks.join_next().await {
        all.add(seen.map_err(|_| Error::Process("client"))??);
    }
    if count == 0 {
        let mut rest = Vec::new();
        tokio::io::stdin().read_to_end(&mut rest).await.map_err(Error::io("waiting"))?;
    }
    Ok(outcome(all, start))
}

fn outcome(mut seen: ReaderTally, start: Instant) -> WorkerOutcome {
    let seconds = start.elapsed().as_secs_f64();
    let p50_us = super::client::percentile(&mut seen.latencies_us, 0.5);
    let p99_us = super::client::percentile(&mut seen.latencies_us, 0.99);
    WorkerOutcome { count: seen.count, seconds, p50_us, p99_us, bytes: seen.bytes }
}

fn cycle(codecs: &str) -> impl Iterator<Item = Codec> {
    let codecs: Vec<Codec> = codecs.split(',').filter_map(Codec::from_name).collect();
    codecs.into_iter().cycle()
}

pub(crate) async fn connect(address: &str) -> Result<TcpStream, Error> {
    let socket = TcpStream::connect(address).await.map_err(Error::io("connecting"))?;
    socket.set_nodelay(true).map_err(Error::io("connecting"))?;
    Ok(socket)
}

/// One enqueue of `size` envelopes; without ids of their own, so that the request can be repeated.
fn request(address: &str, topic: &str, size: usize, bytes: usize) -> Vec<u8> {
    post(address, topic, &vec![plain_envelope(bytes); size])
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
pub(crate) async fn exchange(socket: &mut TcpStream, request: &[u8]) -> Result<(), Error> {
    socket.write_all(request).await.map_err(Error::io("sending"))?;
    let mut answer = Vec::with_capacity(512);
    loop {
        let read = socket.read_buf(&mut answer).await.map_err(Error::io("receiving"))?;
        if read == 0 {
            return Err(Error::Process("client"));
        }
        if let Some(head) = answer.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
            if answer.len() >= head + 4 + length {
                let good = text.starts_with("http/1.1 200");
                return if good { Ok(()) } else { Err(Error::Process("client")) };
            }
        }
    }
}
