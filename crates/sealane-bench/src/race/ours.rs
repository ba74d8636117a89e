//! The node in the race, and the plain file that is the floor of all that sync.

use std::time::Duration;

use sealane::Client;
use sealane_codec::Codec;

use super::heat::{AFTER, LapEffort, LapSetup, RaceLap};
use crate::failure::{BenchFailure, Result};
use crate::load::client::AckMode;
use crate::load::publisher::PublishPipeline;
use crate::load::worker::{WorkerOutcome, WorkerTask};
use crate::process::{BenchServer, folder};

const TOPIC: &str = "race/run";
/// The bytes that JSON and the id of the hub put around a body.
const AROUND: usize = 28;
/// The longest that a reader waits for what it was promised.
const DEADLINE: Duration = Duration::from_secs(240);

/// Appends the same bytes to a plain file, and syncs it after each group.
pub(super) fn floor(track: &LapSetup<'_>, group: usize, effort: LapEffort) -> Result<RaceLap> {
    let data = folder(track.data)?;
    let seen = crate::load::raw_appends(data.path(), group, track.body, effort.each)?;
    Ok(RaceLap::of_groups(seen, group))
}

/// Enqueues from a process of their own.
pub(super) async fn append(
    track: &LapSetup<'_>,
    level: &str,
    connections: usize,
    size: usize,
    effort: LapEffort,
) -> Result<RaceLap> {
    let (bytes, each) = (track.body + AROUND, effort.each);
    let work = WorkerTask::Append { topic: TOPIC.into(), connections, size, bytes, each };
    published(track, level, &work).await
}

/// Publishes over sockets from a process of their own.
pub(super) async fn publish(
    track: &LapSetup<'_>,
    connections: usize,
    pipeline: PublishPipeline,
    effort: LapEffort,
) -> Result<RaceLap> {
    let (bytes, each) = (track.body + AROUND, effort.each);
    let work = WorkerTask::Publish { topic: TOPIC.into(), connections, pipeline, bytes, each };
    published(track, "disk", &work).await
}

/// A lap of a process that publishes, with what its answers and the node's commits say.
async fn published(track: &LapSetup<'_>, level: &str, work: &WorkerTask) -> Result<RaceLap> {
    let node = BenchServer::hub(track.programs, track.data, level)?;
    let before = node.process.cpu_s();
    let seen: WorkerOutcome = work.start(track.programs, &node)?.finish().await?;
    let lap = lap(&node, before, &seen).await;
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
) -> Result<RaceLap> {
    let node = BenchServer::hub(track.programs, track.data, "disk")?;
    fill(track, &node, effort.count).await?;
    let before = node.process.cpu_s();
    let query = format!("stream={TOPIC}&consumer=race&from=first&batch={batch}");
    let work = WorkerTask::read(&query, 1, acks, DEADLINE).until(effort.count);
    let seen = work.start(track.programs, &node)?.finish().await?;
    let seen = whole(seen, effort.count)?;
    Ok(lap(&node, before, &seen).await)
}

/// One reader gets what one publisher enqueues meanwhile.
pub(super) async fn live(track: &LapSetup<'_>, effort: LapEffort) -> Result<RaceLap> {
    let node = BenchServer::hub(track.programs, track.data, "memory")?;
    // The stream has to be there before it can be read.
    fill(track, &node, 1).await?;
    let query = format!("stream={TOPIC}&from=new");
    let work = WorkerTask::read(&query, 1, AckMode::None, DEADLINE).until(effort.count);
    let mut reader = work.start(track.programs, &node)?;
    reader.ready().await?;
    let before = node.process.cpu_s();
    fill(track, &node, effort.count).await?;
    let seen = whole(reader.finish().await?, effort.count)?;
    Ok(lap(&node, before, &seen).await)
}

/// A reader that did not get all has no rate.
fn whole(seen: WorkerOutcome, count: u64) -> Result<WorkerOutcome> {
    if seen.count >= count {
        return Ok(seen);
    }
    Err(BenchFailure::said("sealane", format!("{} of {count} messages came", seen.count)))
}

/// Publishes `count` messages in batches of 500.
async fn fill(track: &LapSetup<'_>, node: &BenchServer, count: u64) -> Result<()> {
    let client = Client::connect(&node.address)?;
    let batch = vec![envelope(track.body); 500];
    let mut left = count;
    while left > 0 {
        let size = left.min(500) as usize;
        let some = batch.get(..size).unwrap_or_default();
        client.publish_batch(TOPIC, Codec::Json, some).await?;
        left -= size as u64;
    }
    Ok(())
}

/// An envelope whose body is so many bytes.
pub(super) fn envelope(body: usize) -> Vec<u8> {
    format!(r#"{{"data":"{}"}}"#, "x".repeat(body)).into_bytes()
}

async fn lap(node: &BenchServer, before: f64, seen: &WorkerOutcome) -> RaceLap {
    tokio::time::sleep(AFTER).await;
    RaceLap {
        count: seen.count,
        // Nothing is measured in less than the clock shows.
        seconds: seen.seconds.max(Duration::from_micros(1).as_secs_f64()),
        cpu_s: node.process.cpu_s() - before,
        resident_bytes: node.process.resident_bytes(),
        ..RaceLap::default()
    }
}
