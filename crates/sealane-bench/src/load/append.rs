//! Durable appends, beside the floor: the same bytes appended to a plain file with fdatasync.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::percentile;
use super::worker::{WorkerOutcome, WorkerTask};
use super::{LoadRow, LoadedHub};
use crate::failure::{BenchFailure, Result};
use crate::process::folder;

/// Appends together: connections times batch.
const GROUPS: [(usize, usize); 5] = [(1, 1), (64, 1), (1, 100), (1, 1000), (4, 1000)];

pub(super) async fn run<'a>(
    hub: &impl Fn(&'static str) -> Result<LoadedHub<'a>>,
    add: &mut impl FnMut(Vec<LoadRow>),
) -> Result<()> {
    for (connections, size) in GROUPS {
        for level in ["disk", "os", "memory"] {
            if level != "disk" && size == 1 && connections == 1 {
                continue;
            }
            add(one(&hub(level)?, connections, size).await?);
        }
    }
    Ok(())
}

/// The row; on a disk, the floor as well, in the groups that the row could form.
async fn one(node: &LoadedHub<'_>, connections: usize, size: usize) -> Result<Vec<LoadRow>> {
    let options = node.options;
    // Retention runs meanwhile, as it does where messages come day and night.
    node.client.configure("load/append").max_count(100_000).await?;
    let before = node.cpu_s();
    let topic = "load/append".to_owned();
    let (bytes, each) = (options.size, options.each);
    let work = WorkerTask::Append { topic, connections, size, bytes, each };
    let seen: WorkerOutcome = work.start(node.programs, &node.hub)?.finish().await?;
    let name = if size == 1 { "append single".into() } else { format!("append batches of {size}") };
    let mut row = node.row(name, &seen, before);
    (row.connections, row.latency_us) = (connections, Some((seen.p50_us, seen.p99_us)));
    row.note = "retention running".into();
    if node.level != "disk" {
        return Ok(vec![row]);
    }
    let data = folder(options.data.as_deref())?;
    let each = options.each.min(Duration::from_secs(2));
    let group = connections * size;
    let seen = raw_appends(data.path(), group, options.size, each)?;
    let floor = LoadRow {
        name: format!("raw append + fdatasync, groups of {group}"),
        level: "disk",
        codec: "-".into(),
        count: seen.count,
        seconds: seen.seconds,
        latency_us: Some((seen.p50_us, seen.p99_us)),
        note: "the floor".into(),
        ..LoadRow::default()
    };
    let share = row.rate() / floor.rate() * 100.0;
    row.note = format!("{share:.0} % of raw; {}", row.note);
    Ok(vec![floor, row])
}

/// Appends `group` records of `bytes` to a plain file and syncs it, again and again.
pub(crate) fn raw_appends(
    folder: &Path,
    group: usize,
    bytes: usize,
    each: Duration,
) -> Result<WorkerOutcome> {
    let file = std::fs::File::create(folder.join("raw"));
    let mut file = file.map_err(BenchFailure::io("making the raw file"))?;
    let records = vec![b'x'; group * bytes];
    let append = || {
        let written = file.write_all(&records).and_then(|()| file.sync_data());
        written.map_err(BenchFailure::io("writing the raw file"))
    };
    let seen = again_and_again(each, append)?;
    Ok(WorkerOutcome { count: seen.count * group as u64, ..seen })
}

/// Does something for a while, and says how often it was done and how long one time took.
pub(crate) fn again_and_again(
    each: Duration,
    mut step: impl FnMut() -> Result<()>,
) -> Result<WorkerOutcome> {
    let (start, mut latencies) = (Instant::now(), Vec::new());
    while start.elapsed() < each {
        let sent = Instant::now();
        step()?;
        latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(WorkerOutcome {
        count: latencies.len() as u64,
        seconds: start.elapsed().as_secs_f64(),
        p50_us: percentile(&mut latencies, 0.5),
        p99_us: percentile(&mut latencies, 0.99),
        bytes: 0,
    })
}
