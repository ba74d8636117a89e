//! nats-server, and `nats bench`, its authors' own tool.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::NatsBenchFigure;
use super::heat::{AFTER, LapEffort, LapSetup, RaceLap};
use crate::failure::{BenchFailure, Result};
use crate::process::BenchServer;

/// When JetStream syncs what it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JetStreamSync {
    /// Its default: every 2 minutes.
    Default,
    /// Before each acknowledgement.
    Always,
    /// The default, on a stream that acknowledges before it has written (`--persistasync`).
    Later,
}

impl JetStreamSync {
    pub(super) fn durability(self) -> &'static str {
        match self {
            JetStreamSync::Default => "sync 2m",
            JetStreamSync::Always => "always",
            JetStreamSync::Later => "later",
        }
    }
}

/// The longest that a run of the tool may take: what never ends has lost messages.
const DEADLINE: Duration = Duration::from_secs(240);
/// The time in which a subscription that was asked for surely stands.
const SETTLE: Duration = Duration::from_secs(1);

fn start(track: &LapSetup<'_>, sync: JetStreamSync) -> Result<BenchServer> {
    BenchServer::peer(&track.peers.nats_server, track.data, |port, folder| {
        let sync = if sync == JetStreamSync::Always { "sync_interval: always, " } else { "" };
        let store = folder.join("jetstream");
        let jetstream = format!("jetstream {{ {sync}store_dir: {:?} }}", store.display());
        ("nats.conf", format!("listen: \"127.0.0.1:{port}\"\n{jetstream}\n"))
    })
}

/// `nats bench js pub`.
pub(super) async fn publish(
    track: &LapSetup<'_>,
    sync: JetStreamSync,
    verb: &str,
    clients: usize,
    effort: LapEffort,
) -> Result<RaceLap> {
    let server = start(track, sync)?;
    let before = server.process.cpu_s();
    let clients_text = clients.to_string();
    let mut words = vec!["js", "pub", verb, "race", "--create", "--maxbytes", "4GB"];
    words.extend(["--clients", &clients_text]);
    if verb != "sync" {
        words.extend(["--batch", "500"]);
    }
    if sync == JetStreamSync::Later {
        words.push("--persistasync");
    }
    // Every client publishes as many, in whole batches.
    let whole = if verb == "sync" { clients as u64 } else { 500 };
    let count = effort.count.next_multiple_of(whole);
    let raw = bench(track, &server, &words, count).await?;
    lap(&server, before, count, raw, publisher(verb)).await
}

/// `nats bench js consume` or `fetch`: a durable consumer that acknowledges each message.
pub(super) async fn read(track: &LapSetup<'_>, verb: &str, effort: LapEffort) -> Result<RaceLap> {
    let server = start(track, JetStreamSync::Default)?;
    let fill = ["js", "pub", "async", "race", "--create", "--maxbytes", "4GB", "--batch", "500"];
    bench(track, &server, &fill, effort.count).await?;
    let before = server.process.cpu_s();
    let words = ["js", verb, "--acks", "explicit", "--batch", "500"];
    let raw = bench(track, &server, &words, effort.count).await?;
    let what = if verb == "fetch" {
        "JetStream durable consumer (fetch)"
    } else {
        "JetStream durable consumer (callback)"
    };
    lap(&server, before, effort.count, raw, what).await
}

/// `nats bench pub` to one `nats bench sub`: nothing kept, nothing acknowledged.
pub(super) async fn core(track: &LapSetup<'_>, effort: LapEffort) -> Result<RaceLap> {
    let server = start(track, JetStreamSync::Default)?;
    let before = server.process.cpu_s();
    let count = effort.count;
    let reader = bench(track, &server, &["sub", "race"], count);
    let writer = async {
        tokio::time::sleep(SETTLE).await;
        bench(track, &server, &["pub", "race"], count).await
    };
    let (read, written) = tokio::try_join!(reader, writer)?;
    let mut lap = lap(&server, before, count, read, "Core NATS subscriber").await?;
    lap.raw = written + &lap.raw;
    Ok(lap)
}

fn publisher(verb: &str) -> &'static str {
    match verb {
        "sync" => "JetStream synchronous publisher",
        "async" => "JetStream asynchronous publisher",
        _ => "JetStream batched publisher",
    }
}

async fn lap(
    server: &BenchServer,
    before: f64,
    count: u64,
    raw: String,
    what: &str,
) -> Result<RaceLap> {
    let said = NatsBenchFigure::read(&raw).map_err(|error| unread(&error, &raw))?;
    if said.what != what {
        return Err(BenchFailure::said("nats", format!("it ran {}", said.what)));
    }
    tokio::time::sleep(AFTER).await;
    Ok(RaceLap {
        count,
        seconds: count as f64 / said.per_second,
        cpu_s: server.process.cpu_s() - before,
        resident_bytes: server.process.resident_bytes(),
        raw,
        ..RaceLap::default()
    })
}

fn unread(error: &super::SaidError, raw: &str) -> BenchFailure {
    let last = raw.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    BenchFailure::said("nats bench", format!("{error} (at the end: {last})"))
}

/// Runs `nats bench`, and gives all that it printed.
async fn bench(
    track: &LapSetup<'_>,
    server: &BenchServer,
    words: &[&str],
    count: u64,
) -> Result<String> {
    let mut command = Command::new(&track.peers.nats);
    command.args(["--server", &format!("nats://{}", server.address), "bench"]).args(words);
    command.args(["--msgs", &count.to_string(), "--no-progress"]);
    command.args(["--size", &format!("{}B", track.body)]);
    isolate(&mut command, server.folder.path());
    let run = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let late = |_| BenchFailure::said("nats bench", "it did not end");
    let output = tokio::time::timeout(DEADLINE, run).await.map_err(late)?;
    let output = output.map_err(BenchFailure::io("running nats bench"))?;
    let text = [output.stderr, output.stdout].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The tool reads no context of whoever runs the race.
fn isolate(command: &mut Command, home: &Path) {
    command.env("HOME", home).env("XDG_CONFIG_HOME", home).env("NO_COLOR", "1");
}
