//! Durable appends, beside the floor: the same bytes appended to a plain file with fdatasync.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::percentile;
use super::node::BenchNodeProcess;
use super::worker::{WorkerOutcome, WorkerProcess, WorkerTask};
use super::{Error, LoadOptions, LoadRow};
use crate::programs::BenchPrograms;

/// Appends together: connections times batch.
const GROUPS: [(usize, usize); 5] = [(1, 1), (64, 1), (1, 100), (1, 1000), (4, 1000)];

pub(super) async fn run(
    programs: &BenchPrograms,
    options: &LoadOptions,
    add: &mut impl FnMut(Vec<LoadRow>),
) -> Result<(), Error> {
    for (connections, size) in GROUPS {
        for level in ["disk", "os", "memory"] {
            if level != "disk" && size == 1 && connections == 1 {
                continue;
            }
            let row = one(programs, options, level, connections, size).await?;
            if level == "disk" {
                add(beside_floor(options, row, connections * size)?);
            } else {
                add(vec![row]);
            }
        }
    }
    Ok(())
}

async fn one(
    programs: &BenchPrograms,
    options: &LoadOptions,
    level: &'static str,
    connections: usize,
    size: usize,
) -> Result<LoadRow, Error> {
    let data = super::deliver::folder(options)?;
    let node = BenchNodeProcess::start(programs, data.path(), level)?;
    // Retention runs meanwhile, as it does where messages come day and night.
    let client = sealane::Client::connect(&node.address)?;
    client.configure("load/append").max_count(100_000).await?;
    let before = node.cpu_s();
    let topic = "load/append".to_owned();
    let (bytes, each) = (options.envelope_bytes, options.each);
    let work = WorkerTask::Append { topic, connections, size, bytes, each };
    let seen = WorkerProcess::start(programs, &node.address, &work)?.finish().await?;
    let what = if size == 1 { "append single".into() } else { format!("append batches of {size}") };
    Ok(LoadRow {
        name: what,
        level,
        codec: "json".into(),
        connections,
        count: seen.count,
        seconds: seen.seconds,
        node_cpu_s: node.cpu_s() - before,
        latency_us: Some((seen.p50_us, seen.p99_us)),
        note: "retention running".into(),
    })
}

/// The row, and the floor measured right before it, in the groups that the row could form.
fn beside_floor(
    options: &LoadOptions,
    mut row: LoadRow,
    group: usize,
) -> Result<Vec<LoadRow>, Error> {
    let data = super::deliver::folder(options)?;
    let each = options.each.min(Duration::from_secs(2));
    let floor = raw_appends(data.path(), group, options.envelope_bytes, each)?;
    let share = row.rate() / floor.rate() * 100.0;
    row.note = format!("{share:.0} % of raw; {}", row.note);
    Ok(vec![floor, row])
}

/// Appends `group` records of `bytes` to a plain file and syncs it, again and again.
///
/// # Errors
/// [`Error::Io`].
pub fn raw_appends(
    folder: &Path,
    group: usize,
    bytes: usize,
    each: Duration,
) -> Result<LoadRow, Error> {
    let path = folder.join("raw");
    let mut file = std::fs::File::create(&path).map_err(Error::io("making the raw file"))?;
    let records = vec![b'x'; group * bytes];
    let append = || {
        file.write_all(&records).map_err(Error::io("writing the raw file"))?;
        file.sync_data().map_err(Error::io("syncing the raw file"))
    };
    let seen = again_and_again(each, append)?;
    Ok(LoadRow {
        name: format!("raw append + fdatasync, groups of {group}"),
        level: "disk",
        codec: "-".into(),
        connections: 0,
        count: seen.count * group as u64,
        seconds: seen.seconds,
        node_cpu_s: 0.0,
        latency_us: Some((seen.p50_us, seen.p99_us)),
        note: "the floor".into(),
    })
}

/// Does something for a while, and says how often it was done and how long one time took.
pub(crate) fn again_and_again<E>(
    each: Duration,
    mut step: impl FnMut() -> Result<(), E>,
) -> Result<WorkerOutcome, E> {
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
