//! A served node among clients that mean it harm, or that only stand still: those that behave go
//! on, memory stays within its bound, and every refusal is named and counted.
//!
//! `SEALANE_CROWD` is how many half-open connections there are, `SEALANE_READERS` how many readers
//! of whom one stalls, `SEALANE_PUBLISHERS` how many publish to a disk that stalls,
//! `SEALANE_SECONDS` how long each lasts. What decides is how many messages
//! came. Latencies are printed, and decide where `SEALANE_DEMANDS` is set: in the proofs.

mod attack;
mod clients;
mod node;
mod publishers;
mod shares;
mod socket;
mod stall;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clients::{Clients, Samples};
use node::Node;
use sealane_testing::TestProcess;

/// Clients that behave.
const CLIENTS: usize = 50;

/// Messages that each of them gets in each second of every phase, at least: a tenth of its pace.
const LEAST_A_SECOND: usize = 2;

/// The memory that the node may use while all of it happens. It covers the tails, and a head and
/// its answer for each connection of the crowd.
fn memory_bound_kib(crowd: usize) -> u64 {
    (128 << 10) + crowd as u64 * 24
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// How much longer than the p99 beside a crowd at a bystander that beside a crowd at the node is.
const CROWD_RATIO_MAX: f64 = 1.20;

/// Prints a figure and what is demanded of it, which decides where `SEALANE_DEMANDS` is set.
fn demand(what: &str, measured: f64, most: f64) {
    println!("  {what}: {measured:.2} (demanded: at most {most:.2})");
    let decides = std::env::var_os("SEALANE_DEMANDS").is_some();
    assert!(!decides || measured <= most, "{what}: {measured:.3}, more than {most}");
}

/// The refusals that must come at least once for the test to have shown anything.
const REFUSED: [&str; 15] = [
    "TooManyConnections",
    "SilentConnection",
    "SlowHead",
    "SlowBody",
    "NotHttp",
    "HeadTooLarge",
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

/// Crowds that come one after the other. They run when nobody else wants a processor: beside a
/// build one of them may not come to all that has to be refused.
const CROWDS_MAX: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_crowd() {
    let _turn = crate::TURN.lock().await;
    let (size, seconds) = (number("SEALANE_CROWD", 300), number("SEALANE_SECONDS", 34));
    // Those who behave share one address, too, and have two connections each.
    let per_address = (size / 10).max(3 * CLIENTS);
    let (places, addresses) = (per_address.to_string(), size / per_address);
    let limits = ["--connections-per-address", &places, "--enqueue-rate", "2000"];
    let mut node = Node::start(&limits);
    let clients = Clients::start(&node, CLIENTS).await;
    // The first two phases are what latencies are compared with, of which nothing is demanded here.
    let (quiet_seconds, beside_seconds) = match std::env::var_os("SEALANE_DEMANDS") {
        Some(_) => (seconds / 4, seconds / 2),
        None => (3.min(seconds), 6.min(seconds)),
    };
    let quiet = Instant::now();
    tokio::time::sleep(Duration::from_secs(quiet_seconds as u64)).await;
    let beside = Instant::now();
    let bystander = Bystander::start();
    let mut crowd = attack(bystander.address, size, addresses, beside_seconds);
    while crowd.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    drop(bystander);
    let (quiet_kib, during) = (node.memory_kib("VmRSS:"), Instant::now());
    let mut most = 0;
    for _ in 0..CROWDS_MAX {
        let mut crowd = attack(node.address, size, addresses, seconds);
        while crowd.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            most = most.max(node.metrics().await["sealane_carry_connections"]);
        }
        let (metrics, enough) = (node.metrics().await, size * 9 / 10);
        let refused = refusals(&metrics);
        if most as usize > enough && REFUSED.iter().all(|name| refused.contains_key(name)) {
            break;
        }
    }
    let after = Instant::now();
    let peak_kib = node.memory_kib("VmHWM:");
    let samples = clients.finish().await;
    let metrics = node.metrics().await;
    let ratio = report(&samples, [quiet, beside, during, after]);
    check_each(&samples, &[(quiet, quiet_seconds), (beside, beside_seconds), (during, seconds)]);
    let bound = memory_bound_kib(size);
    println!("connections at once: {most} of a crowd of {size}");
    println!("memory: {quiet_kib} KiB before, {peak_kib} KiB at most, bound {bound} KiB");
    let refused = refusals(&metrics);
    refused.iter().for_each(|(name, count)| println!("  refused {count:>8} {name}"));
    assert!(peak_kib < bound, "{peak_kib} KiB of {bound} KiB");
    assert!(most as usize > size * 9 / 10, "{most} of {size} were held at once");
    for name in REFUSED {
        assert!(refused.contains_key(name), "nothing was refused as {name}");
    }
    assert!(!refused.contains_key("Crowded"), "who behaves and who does not have enough memory");
    node.is_well().await;
    demand("p99, crowd at it / crowd at a bystander", ratio, CROWD_RATIO_MAX);
}

/// Sends the crowd, a process that runs when nobody else wants a processor: attackers have their
/// own machines.
fn attack(whom: SocketAddr, size: usize, addresses: usize, seconds: usize) -> Child {
    ourselves("as_process_attacker", &["chrt", "--idle", "0"])
        .env("SEALANE_ATTACK", format!("{whom} {size} {addresses} {seconds}"))
        .spawn()
        .unwrap()
}

/// An ignored test of this program as a process of its own, behind these words.
fn ourselves(test: &str, before: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut words = before.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    let test = format!("{}::{test}", module_path!().rsplit("::").next().unwrap());
    command.args(words).args(["--exact", &test, "--ignored", "--nocapture"]).stdin(Stdio::null());
    command
}

/// Latencies when it is quiet, when the crowd is at another door of this machine, and when it is
/// at the node's; every message that was published came to its reader.
/// Gives the ratio of the last two.
fn report(each: &[Samples], [quiet, beside, during, after]: [Instant; 4]) -> f64 {
    let samples = Samples::join(each);
    let [quiet, beside, loud] =
        [(quiet, beside), (beside, during), (during, after)].map(|(a, b)| samples.between(a, b));
    println!("latency of {CLIENTS} clients, publish to delivery, in the middle and the last 1 %:");
    let phases = [("quiet", &quiet), ("crowd at a bystander", &beside), ("crowd at it", &loud)];
    for (name, some) in phases {
        println!("  {name}: p50 {:?}, p99 {:?} of {}", some.part(0.5), some.part(0.99), some.len());
    }
    let p99 = |some: &Samples| some.part(0.99).as_secs_f64();
    println!("  p99, crowd at it / quiet: {:.2}", p99(&loud) / p99(&quiet));
    p99(&loud) / p99(&beside)
}

/// Everybody goes on in every phase, of which is known when it began and the seconds that it
/// lasts at least: a mean over all would not show one who gets nothing.
fn check_each(each: &[Samples], phases: &[(Instant, usize)]) {
    assert_eq!(each.len(), CLIENTS);
    for (began, seconds) in phases {
        let until = *began + Duration::from_secs(*seconds as u64);
        let counts = each.iter().map(|samples| samples.between(*began, until).len());
        let (least, wanted) = (counts.min().unwrap_or(0), seconds * LEAST_A_SECOND);
        println!("  one of them got {least} messages in {seconds} s, nobody fewer");
        assert!(least >= wanted, "one got {least} messages in {seconds} s, {wanted} were wanted");
    }
}

/// A server without any work: whoever connects is waited for, and sent away. What the crowd costs
/// there it costs the machine, whose processors everybody here shares.
struct Bystander {
    _process: TestProcess,
    address: SocketAddr,
}

impl Bystander {
    fn start() -> Self {
        let mut process = TestProcess::start(&mut ourselves("as_process_bystander", &[]));
        // The harness says something before it.
        let address = std::iter::repeat_with(|| process.line()).take(9);
        let address = address.filter_map(|line| line.trim().parse().ok()).next().unwrap();
        Self { _process: process, address }
    }
}

#[tokio::test]
#[ignore = "started by a_hostile_crowd"]
async fn as_process_bystander() {
    attack::open_many();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // On a line of its own: the harness has begun one.
    println!("\n{}", listener.local_addr().unwrap());
    let waiting = Duration::from_millis(sealane_node::limits::MAX_WAITING_MS);
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut rest = tokio::io::sink();
            let reading = tokio::io::copy(&mut stream, &mut rest);
            let _ = tokio::time::timeout(waiting, reading).await;
        });
    }
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
async fn as_process_attacker() {
    if let Ok(work) = std::env::var("SEALANE_ATTACK") {
        attack::run(&work).await;
    }
}

/// A hundred tokens, and one of them hostile in each way for `SEALANE_SECONDS`: no other is refused
/// anything, and memory stays within what the shares allow.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_takes_all_that_it_can() {
    let _turn = crate::TURN.lock().await;
    shares::run(Duration::from_secs(number("SEALANE_SECONDS", 1) as u64)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader() {
    let _turn = crate::TURN.lock().await;
    let (readers, seconds) = (number("SEALANE_READERS", 50), number("SEALANE_SECONDS", 8));
    stall::run(readers, Duration::from_secs(seconds as u64)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "lab: needs root (mounted file systems)"]
async fn publishes_over_a_stalled_disk() {
    let _turn = crate::TURN.lock().await;
    let (publishers, seconds) = (number("SEALANE_PUBLISHERS", 300), number("SEALANE_SECONDS", 3));
    publishers::run(publishers, Duration::from_secs(seconds as u64)).await;
}
