//! A day of messages that stay for an hour leaves disk and memory as they were after the first
//! hours. The node's clock is made to run 1,800 times as fast, by libfaketime: an hour takes two
//! seconds, and everything else is real. `SEALANE_HOURS` sets how many; the proof takes 24.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Error};
use sealane_testing::TestProcess;

use crate::cli::{json, sealane, text};

const HOUR: Duration = Duration::from_secs(2);
const BATCH: usize = 100;
const BODY_BYTES: usize = 2000;
/// Batches of one hour.
const BATCHES: u32 = 80;

/// The library that makes time pass otherwise.
pub(crate) fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    let found = libraries.find(|library| library.is_file());
    found.expect("libfaketime is missing; run: cargo xtask needs")
}

/// Bytes of the store's files, and of the process's memory.
fn sizes(data: &Path, process: u32) -> (u64, u64) {
    let file = |name: &str| fs::metadata(data.join(name)).map_or(0, |found| found.len());
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (file("streams.db") + file("streams.db-wal"), resident << 10)
}

/// To a node whose time passes so fast, a body that this machine delays by milliseconds is slow.
async fn publish(client: &Client, bodies: &[&[u8]]) {
    let is_slow = |error: &Error| matches!(error, Error::Refused(why) if why.code == "SlowBody");
    while let Err(error) = client.publish_batch("day", Codec::Json, bodies).await {
        assert!(is_slow(&error), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "lab: needs faketime"]
async fn a_day_of_retention_leaves_disk_and_memory_flat() {
    let library = library();
    let hours: usize = std::env::var("SEALANE_HOURS").map_or(9, |text| text.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut up = sealane(home.path());
    up.args(["up", "--json", "--level", "os", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    up.env("LD_PRELOAD", library).env("FAKETIME", "+0 x1800");
    up.stderr(Stdio::null());
    let (mut node, line) = TestProcess::started(&mut up);
    let client = Client::connect(&text(&json(&line), "address")).unwrap();
    client.configure("day").max_age(Duration::from_secs(3600)).await.unwrap();
    let body = format!(r#"{{"data":"{}"}}"#, "x".repeat(BODY_BYTES));
    let bodies = vec![body.as_bytes(); BATCH];

    println!("hour      disk MiB  memory MiB     first      next");
    let mut seen = Vec::new();
    for hour in 1..=hours {
        let begun = Instant::now();
        for batch in 1..=BATCHES {
            publish(&client, &bodies).await;
            let due = HOUR * batch / BATCHES;
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        }
        let state = client.stream("day").await.unwrap();
        let (disk, memory) = sizes(&data, node.id());
        let shown = [disk, memory].map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!(
            "{hour:>4}{:>14.1}{:>12.1}{:>10}{:>10}",
            shown[0], shown[1], state.first, state.next
        );
        seen.push((disk, memory, state));
    }
    node.kill();
    let (.., last) = seen.last().unwrap();
    let in_an_hour = u64::from(BATCHES) * BATCH as u64;
    assert_eq!(last.next, hours as u64 * in_an_hour);
    // The node keeps an hour's messages, and the messages since it last looked.
    assert!(last.count < 3 * in_an_hour, "{}", last.count);
    assert!(last.first > (hours as u64 - 4) * in_an_hour, "{}", last.first);
    // The later hours need no more than the early ones, once those have come to rest.
    let most = |range: &[(u64, u64, _)], of: fn(&(u64, u64, _)) -> u64| {
        range.iter().map(of).max().unwrap()
    };
    let (early, late) = seen[2..].split_at((hours - 2) / 2);
    let (disk, memory) = (|row: &(u64, u64, _)| row.0, |row: &(u64, u64, _)| row.1);
    assert!(most(late, disk) <= most(early, disk) * 5 / 4 + (8 << 20));
    assert!(most(late, memory) <= most(early, memory) * 5 / 4 + (8 << 20));
}
