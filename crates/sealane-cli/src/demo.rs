//! `sealane demo`: the main job on real input, with a crash in the middle.
//!
//! A node runs as a process of its own over a fresh folder. This machine's telemetry goes in, one
//! stream per kind; three consumers read all of it back, each in another codec. Half-way the node
//! is killed without warning and started again on the same folder. In the end a ledger of what
//! was acknowledged is compared with what came. Then the same telemetry goes through a sealed
//! stream, the node's data into a vault and back, and both are searched for what they should hide.

mod archive;
mod ledger;
mod node;
mod reader;
mod report;
mod sealed;
mod telemetry;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Publisher};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::args::Demo;
use crate::{Failure, Terminal};
use ledger::Ledger;
use node::NodeProcess;
use reader::{Reader, Tally};
use report::{Hidden, Report, Row};
use sealed::Canaries;
use telemetry::{KINDS, Machine};

/// How long a publisher asks a node that is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// When readers that get nothing more are given up.
const STALLED: Duration = Duration::from_secs(15);

/// Runs the demo and prints its table.
///
/// # Errors
/// [`Failure::Demo`] where it cannot run, [`Failure::Lost`] where something did not come back.
pub async fn run(args: &Demo, terminal: &mut Terminal) -> Result<(), Failure> {
    let machine = Machine::find()?;
    let program = std::env::current_exe().map_err(|e| Failure::Demo(e.to_string()))?;
    let folder = tempfile::Builder::new().prefix("sealane-demo-").tempdir();
    let folder = folder.map_err(|error| Failure::Demo(error.to_string()))?;
    let report = go(args, machine, program, folder.path().to_owned()).await?;
    report.show(terminal)?;
    if report.shows() {
        return Err(Failure::Demo("what was sealed could be read where it is kept".into()));
    }
    match report.lost() {
        0 => Ok(()),
        lost => {
            eprintln!("sealane: the node's data stay in {}", folder.keep().display());
            Err(Failure::Lost(lost))
        }
    }
}

async fn go(
    args: &Demo,
    machine: Machine,
    program: PathBuf,
    folder: PathBuf,
) -> Result<Report, Failure> {
    let mut node = NodeProcess::start(program, folder.clone(), None).await?;
    eprintln!("sealane: node {} at {}, pid {}", node.version(), node.address(), node.pid());
    let readers = Readers::start(&node, &machine).await?;
    let client = Client::connect(node.address())?.patience(PATIENCE);
    let mut ledger = Ledger::default();
    let publishers = KINDS
        .iter()
        .map(|kind| client.publisher(&machine.topic(kind)))
        .collect::<Result<Vec<_>, _>>()?;

    eprintln!("sealane: publishing {} every {:?}", machine.topic("*"), args.every);
    let half = args.length / 2;
    let pace = |length| Pace { every: args.every, length };
    let first = publish(&machine, &publishers, &mut ledger, pace(half));
    let first = first.await?;
    node.kill()?;
    eprintln!("sealane: kill -9 after {half:?}; publishing goes on");
    let killed = Instant::now();
    // Publishing goes on while nobody answers: what is queued then is what a crash endangers.
    let (second, restarted) = tokio::join!(
        publish(&machine, &publishers, &mut ledger, pace(args.length - half)),
        node.restart()
    );
    let (node, second) = (restarted?, second?);
    let down = node.began() - killed;
    eprintln!("sealane: restarted on the same data after {down:?}, pid {}", node.pid());
    let mut acknowledged = 0;
    for publisher in &publishers {
        acknowledged += publisher.flush().await?.messages;
    }
    if acknowledged != first + second {
        let sent = first + second;
        let cause = format!("{sent} messages were sent, {acknowledged} acknowledged");
        return Err(Failure::Demo(cause));
    }
    let tallies = readers.finish(ledger.len()).await?;
    let rows = Codec::AT_REST
        .into_iter()
        .zip(tallies)
        .map(|(codec, tally)| Row::new(codec, tally, &ledger));
    let rows = rows.collect();
    let hidden = hide(&machine, node, &folder).await?;
    Ok(Report { acknowledged, down, rows, hidden })
}

/// The same telemetry through a sealed stream, and the node's data into a vault and back.
async fn hide(machine: &Machine, mut node: NodeProcess, folder: &Path) -> Result<Hidden, Failure> {
    eprintln!("sealane: the same telemetry, sealed for a group of two machines");
    let words = Canaries::new()?;
    let sealed = sealed::run(node.address(), machine, &folder.join("keys"), &words).await?;
    node.kill()?;
    eprintln!("sealane: the node's data, into a vault and back");
    let data = folder.join("data");
    let open_found = sealed::holding(&data, &words.open)?;
    let sealed_found = sealed::holding(&data, &words.hidden)?;
    let vault = folder.join("vault");
    let kept = tokio::task::spawn_blocking(move || archive::run(&data, &vault, &words.open));
    let archive = kept.await.map_err(|error| Failure::Demo(error.to_string()))??;
    Ok(Hidden { sealed, open_found, sealed_found, archive })
}

/// How often the demo samples, and for how long.
struct Pace {
    every: Duration,
    length: Duration,
}

/// Samples and sends for a while; gives how many messages were sent.
async fn publish(
    machine: &Machine,
    publishers: &[Publisher],
    ledger: &mut Ledger,
    pace: Pace,
) -> Result<u64, Failure> {
    let until = Instant::now() + pace.length;
    let mut ticks = tokio::time::interval(pace.every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut sent = 0;
    while Instant::now() < until {
        ticks.tick().await;
        for (kind, publisher) in KINDS.iter().zip(publishers) {
            let (id, envelope) = machine.sample(kind, ledger.len())?;
            ledger.add(id, &envelope);
            publisher.send(&envelope).await?;
            sent += 1;
        }
    }
    Ok(sent)
}

/// A consumer for each codec.
struct Readers {
    counts: Vec<Arc<AtomicU64>>,
    tasks: Vec<JoinHandle<Result<Tally, sealane::Error>>>,
    stop: watch::Sender<bool>,
}

impl Readers {
    async fn start(node: &NodeProcess, machine: &Machine) -> Result<Self, Failure> {
        let (stop, stopped) = watch::channel(false);
        let (mut counts, mut tasks) = (Vec::new(), Vec::new());
        for codec in Codec::AT_REST {
            let client = Client::connect(node.address())?;
            let reader = Reader::join(&client, &machine.topic("*"), codec).await?;
            counts.push(reader.count());
            tasks.push(tokio::spawn(reader.run(stopped.clone())));
        }
        Ok(Self { counts, tasks, stop })
    }

    /// Waits until each has everything, or nothing more comes.
    async fn finish(self, all: usize) -> Result<Vec<Tally>, Failure> {
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let counts = || self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let (mut seen, mut moved) = (0, Instant::now());
        while counts().any(|count| count < all) && moved.elapsed() < STALLED {
            let now = counts().sum();
            if seen != now {
                (seen, moved) = (now, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Readers that have failed are gone already.
        let _ = self.stop.send(true);
        let mut tallies = Vec::new();
        for task in self.tasks {
            tallies.push(task.await.map_err(|error| Failure::Demo(error.to_string()))??);
        }
        Ok(tallies)
    }
}
