//! A served node among clients that mean it harm, or that only stand still: those that behave go
//! on, memory stays within its bound, and every refusal is named and counted.
//!
//! `SEALANE_CROWD` is how many half-open connections there are, `SEALANE_READERS` how many readers
//! of whom one stalls, `SEALANE_SECONDS` how long either lasts. Latencies are printed, and decide
//! nothing.

#[path = "withstands/attack.rs"]
mod attack;
#[path = "withstands/clients.rs"]
mod clients;
#[path = "withstands/node.rs"]
mod node;
#[path = "withstands/socket.rs"]
mod socket;
#[path = "withstands/stall.rs"]
mod stall;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clients::Clients;
use node::Node;

/// Clients that behave.
const CLIENTS: usize = 50;

/// What the node may have in memory while all of it happens: its tails, and for each connection of
/// the crowd what a head and its answer take.
fn memory_bound_kib(crowd: usize) -> u64 {
    (128 << 10) + crowd as u64 * 24
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// What has to be refused at least once for the test to have shown anything.
const REFUSED: [&str; 14] = [
    "TooManyConnections",
    "SilentConnection",
    "SlowHead",
    "SlowBody",
    "NotHttp",
    "TlsNotServed",
    "TooMany",
    "TooLarge",
    "InvalidJSON",
    "DecodeError",
    "InvalidEnvelope",
    "Unauthorized",
    "TooManyGuesses",
    "TooFast",
];

/// One after the other: what is measured is one node.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_crowd() {
    let _turn = TURN.lock().await;
    let (crowd, seconds) = (number("SEALANE_CROWD", 300), number("SEALANE_SECONDS", 34));
    // Those who behave share one address, too, and have two connections each.
    let per_address = (crowd / 10).max(3 * CLIENTS);
    let (places, addresses) = (per_address.to_string(), crowd / per_address);
    let limits = ["--connections-per-address", &places, "--enqueue-rate", "2000"];
    let mut node = Node::start(&limits);
    let clients = Clients::start(&node, CLIENTS).await;
    let before = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds as u64 / 4)).await;
    let (quiet_kib, during) = (node.memory_kib("VmRSS:"), Instant::now());
    let mut attacker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attacker", "--ignored", "--nocapture"])
        .env("SEALANE_ATTACK", format!("{} {crowd} {addresses} {seconds}", node.address))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = 0;
    while attacker.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let metrics = node.metrics().await;
        most = most.max(metrics["sealane_carry_connections"]);
    }
    let after = Instant::now();
    let peak_kib = node.memory_kib("VmHWM:");
    let samples = clients.finish().await;
    let metrics = node.metrics().await;
    report(&samples, (before, during, after));
    let bound = memory_bound_kib(crowd);
    println!("connections at once: {most} of a crowd of {crowd}");
    println!("memory: {quiet_kib} KiB before, {peak_kib} KiB at most, bound {bound} KiB");
    let refused = refusals(&metrics);
    refused.iter().for_each(|(name, count)| println!("  refused {count:>8} {name}"));
    assert!(peak_kib < bound, "{peak_kib} KiB of {bound} KiB");
    assert!(most as usize > crowd * 9 / 10, "{most} of {crowd} were held at once");
    for name in REFUSED {
        assert!(refused.contains_key(name), "nothing was refused as {name}");
    }
    assert!(!refused.contains_key("Crowded"), "who behaves and who does not have enough memory");
    node.is_well().await;
}

/// Latencies before and during; every message that was published came to its reader.
fn report(samples: &clients::Samples, (before, during, after): (Instant, Instant, Instant)) {
    let quiet = samples.between(before, during);
    let loud = samples.between(during, after);
    println!("latency of {CLIENTS} clients, publish to delivery, in the middle and the last 1 %:");
    for (name, some) in [("before", &quiet), ("during", &loud)] {
        println!("  {name}: p50 {:?}, p99 {:?} of {}", some.part(0.5), some.part(0.99), some.len());
    }
    let ratio = loud.part(0.99).as_secs_f64() / quiet.part(0.99).as_secs_f64();
    println!("  p99 during / before: {ratio:.2} (wanted: at most 1.20)");
    assert!(quiet.len() > CLIENTS && loud.len() > CLIENTS);
}

fn refusals(metrics: &BTreeMap<String, u64>) -> BTreeMap<&str, u64> {
    let name = |key: &'static str| move |metric: &str| metric.starts_with(key);
    let is_refusal = name("sealane_carry_refused_total{");
    let of = |(metric, count): (&'_ String, &u64)| {
        let label = metric.split('"').nth(1).unwrap_or_default();
        (label.to_owned(), *count)
    };
    let all = metrics.iter().filter(|(metric, count)| is_refusal(metric) && **count > 0);
    all.map(of).map(|(label, count)| (&*label.leak(), count)).collect()
}

/// The crowd, in a process of its own that the test starts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by a_hostile_crowd"]
async fn attacker() {
    if let Ok(work) = std::env::var("SEALANE_ATTACK") {
        attack::run(&work).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader() {
    let _turn = TURN.lock().await;
    let (readers, seconds) = (number("SEALANE_READERS", 50), number("SEALANE_SECONDS", 8));
    stall::run(readers, Duration::from_secs(seconds as u64)).await;
}
