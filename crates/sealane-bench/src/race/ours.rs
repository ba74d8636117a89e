//! The node in the race, and the plain file that is the floor of all that sync.

use std::time::Duration;

use sealane::Client;
use sealane_codec::Codec;

use super::Error;
use super::heat::{AFTER, LapEffort, LapSetup, RaceLap};
use super::server::folder;
use crate::load::client::AckMode;
use crate::load::node::BenchNodeProcess;
use crate::load::publisher::PublishPipeline;
use crate::load::worker::{WorkerOutcome, WorkerProcess, WorkerTask};

const TOPIC: &str = "race/run";
/// The bytes that JSON and the id of the hub put around a body.
const AROUND: usize = 28;
/// The longest that a reader waits for what it was promised.
const DEADLINE_MS: u64 = 240_000;

/// Appends the same bytes to a plain file, and syncs it after each group.
pub(super) fn floor(
    track: &LapSetup<'_>,
    group: usize,
    effort: LapEffort,
) -> Result<RaceLap, Error> {
    let data = folder(track.data)?;
    let row = crate::load::raw_appends(data.path(), group, track.body, effort.each)?;
    let (p50_us, p99_us) = row.latency_us.unzip();
    let (count, seconds, group) = (row.count, row.seconds, Some(group as f64));
    Ok(RaceLap { count, seconds, p50_us, p99_us, group, ..RaceLap::default() })
}

/// Enqueues from a process of their own.
pub(super) async fn append(
    track: &LapSetup<'_>,
    level: &str,
    connections: usize,
    size: usize,
    effort: LapEffort,
) -> Result<RaceLap, Error> {
    let data = folder(track.data)?;
    let node = BenchNodeProcess::start(track.programs, data.path(), level)?;
    let before = node.cpu_s();
    let (bytes, each) = (track.body + AROUND, effort.each);
    let work = WorkerTask::Append { topic: TOPIC.into(), connections, size, bytes, each };
    published(track, &node, before, &work).await
}

/// Publishes over sockets from a process of their own.
pub(super) async fn publish(
    track: &LapSetup<'_>,
    connections: usize,
    pipeline: PublishPipeline,
    effort: LapEffort,
) -> Result<RaceLap, Error> {
    let data = folder(track.data)?;
    let node = BenchNodeProcess::start(track.programs, data.path(), "disk")?;
    let before = node.cpu_s();
    let (bytes, each) = (track.body + AROUND, effort.each);
    let work = WorkerTask::Publish { topic: TOPIC.into(), connections, pipeline, bytes, each };
    published(track, &node, before, &work).await
}

/// A lap of a process that publishes, with what its answers and the node's commits say.
async fn published(
    track: &LapSetup<'_>,
    node: &BenchNodeProcess,
    before: f64,
    work: &WorkerTask,
) -> Result<RaceLap, Error> {
    let seen = WorkerProcess::start(track.programs, &node.address, work)?.finish().await?;
    let lap = lap(node, before, &seen).await;
    let stored = node.metric("sealane_stream_stored_total").await?;
    let commits = node.metric("sealane_stream_commits_total").await?;
    let group = Some(stored as f64 / commits.max(1) as f64);
    Ok(RaceLap { p50_us: Some(seen.p50_us), p99_us: Some(seen.p99_us), group, ..lap })
}

/// One member of a consumer reads a backlog from a disk and acknowledges all of it.
pub(super) async fn deliver(
    track: &LapSetup<'_>,
    acks: AckMode,
    batch: usize,
    effort: LapEffort,
) -> Result<RaceLap, Error> {
    let data = folder(track.data)?;
    let node = BenchNodeProcess::start(track.programs, data.path(), "disk")?;
    fill(track, &node, effort.count).await?;
    let before = node.cpu_s();
    let query = format!("stream={TOPIC}&consumer=race&from=first&batch={batch}");
    let reader =
        WorkerProcess::start(track.programs, &node.address, &read(query, acks, effort.count))?;
    let seen = whole(reader.finish().await?, effort.count)?;
    Ok(lap(&node, before, &seen).await)
}

/// One reader gets what one publisher enqueues meanwhile.
pub(super) async fn live(track: &LapSetup<'_>, effort: LapEffort) -> Result<RaceLap, Error> {
    let data = folder(track.data)?;
    let node = BenchNodeProcess::start(track.programs, data.path(), "memory")?;
    // The stream has to be there before it can be read.
    fill(track, &node, 1).await?;
    let query = format!("stream={TOPIC}&from=new");
    let work = read(query, AckMode::None, effort.count);
    let mut reader = WorkerProcess::start(track.programs, &node.address, &work)?;
    reader.ready().await?;
    let before = node.cpu_s();
    fill(track, &node, effort.count).await?;
    let seen = whole(reader.finish().await?, effort.count)?;
    Ok(lap(&node, before, &seen).await)
}

fn read(query: String, acks: AckMode, count: u64) -> WorkerTask {
    WorkerTask::Read {
        query,
        connections: 1,
        codecs: "json".into(),
        acks,
        count,
        end_ms: DEADLINE_MS,
    }
}

/// A reader that did not get all has no rate.
fn whole(seen: WorkerOutcome, count: u64) -> Result<WorkerOutcome, Error> {
    if seen.count >= count {
        return Ok(seen);
    }
    let said = format!("{} of {count} messages came", seen.count);
    Err(Error::Peer { peer: "sealane".into(), said })
}

/// Publishes `count` messages in batches of 500.
async fn fill(track: &LapSetup<'_>, node: &BenchNodeProcess, count: u64) -> Result<(), Error> {
    let failed = |error: sealane::Error| Error::Load(error.into());
    let client = Client::connect(&node.address).map_err(failed)?;
    let batch = vec![envelope(track.body); 500];
    let mut left = count;
    while left > 0 {
        let size = left.min(500) as usize;
        let some = batch.get(..size).unwrap_or_default();
        client.publish_batch(TOPIC, Codec::Json, some).await.map_err(failed)?;
        left -= size as u64;
    }
    Ok(())
}

/// An envelope whose body is so many bytes.
pub(super) fn envelope(body: usize) -> Vec<u8> {
    format!(r#"{{"data":"{}"}}"#, "x".repeat(body)).into_bytes()
}

async fn lap(node: &BenchNodeProcess, before: f64, seen: &WorkerOutcome) -> RaceLap {
    tokio::time::sleep(AFTER).await;
    RaceLap {
        count: seen.count,
        // Nothing is measured in less than the clock shows.
        seconds: seen.seconds.max(Duration::from_micros(1).as_secs_f64()),
        cpu_s: node.cpu_s() - before,
        resident_bytes: node.resident_bytes(),
        ..RaceLap::default()
    }
}
