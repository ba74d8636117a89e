//! `sealane demo`: the main job on real input, with a crash in the middle.
//!
//! A node runs as a process of its own over a fresh folder. This machine's telemetry goes in, one
//! stream per kind; three consumers read all of it back, each in another codec. Half-way the node
//! is killed without warning and started again on the same folder. In the end a ledger of what
//! was acknowledged is compared with what came. Then the same telemetry goes through a sealed
//! stream, over a relay without keys, and from a member in the field over machines that find each
//! other to the hub; the node's data go into a vault and back, and all of it is searched for what
//! it should hide.

mod archive;
mod field;
mod ledger;
mod node;
mod reader;
mod relayed;
mod report;
mod sealed;
mod show;
mod telemetry;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Publisher, ReceivedMessage, StartPosition};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::args::DemoArgs;
use crate::limits::{DEMO_SHOW_INTERVAL_MS, MAX_DEMO_HUB_WAIT_MS, MAX_DEMO_STALL_MS};
use crate::signals::ProcessSignals;
use crate::{CliFailure, Terminal};
use ledger::PublishedLedger;
use node::DemoNodeProcess;
use reader::{DemoReader, DemoReaderTally};
use report::{DemoCodecRow, DemoReport, DemoSecrecyReport};
use sealed::DemoCanaries;
use show::DemoOutput;
use telemetry::{DemoMachine, KINDS};

/// Runs the demo, tells what happens, and ends with what was claimed and measured.
///
/// # Errors
/// [`CliFailure::Demo`] where it cannot run, [`CliFailure::Lost`] where something did not come
/// back.
pub async fn run(args: &DemoArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let machine = DemoMachine::find()?;
    let program = std::env::current_exe().map_err(|e| CliFailure::Demo(e.to_string()))?;
    let mut signals = ProcessSignals::new().map_err(|error| CliFailure::Demo(error.to_string()))?;
    let folder = tempfile::Builder::new().prefix("sealane-demo-").tempdir();
    let folder = folder.map_err(|error| CliFailure::Demo(error.to_string()))?;
    let node = DemoNodeProcess::start(program, folder.path().to_owned(), None).await?;
    let stage = DemoStage { machine, folder: folder.path(), show: DemoOutput::new(terminal) };
    // The node and the folder go with it, also when it is told to stop.
    let report = tokio::select! {
        report = stage.play(args, node) => report?,
        () = signals.end() => {
            return Err(CliFailure::Demo("it was told to stop; it has left nothing behind".into()));
        }
    };
    report.show(terminal)?;
    if report.shows() {
        return Err(CliFailure::Demo("what was sealed could be read where it is kept".into()));
    }
    match report.lost() {
        0 => Ok(()),
        lost => {
            eprintln!("sealane: the node's data stay in {}", folder.keep().display());
            Err(CliFailure::Lost(lost))
        }
    }
}

/// The state that all parts of the demo use.
struct DemoStage<'a> {
    machine: DemoMachine,
    folder: &'a Path,
    show: DemoOutput<'a>,
}

impl DemoStage<'_> {
    async fn play(
        mut self,
        args: &DemoArgs,
        mut node: DemoNodeProcess,
    ) -> Result<DemoReport, CliFailure> {
        self.show.part("This machine's telemetry, in three codecs")?;
        let (version, address, pid) = (node.version(), node.address(), node.pid());
        self.show.line(format_args!("node {version} at {address}, process {pid}"))?;
        let readers = DemoConsumers::start(&node, &self.machine).await?;
        let mut source = TelemetrySource::open(&node, &self.machine).await?;
        source.sample(&self.machine).await?;
        source.flush().await?;
        self.one_in_three(node.address()).await?;

        self.show.tell("")?;
        let began = Instant::now();
        let half = args.length / 2;
        self.publish(&mut source, &readers, args.every, || began.elapsed() < half).await?;
        node.kill()?;
        let killed = Instant::now();
        self.show.part("kill -9 while it publishes")?;
        self.show.now(format_args!("process {} was killed; publishing goes on", node.pid()))?;
        // Publishing goes on while nobody answers: what is queued then is what a crash endangers.
        let restart = tokio::spawn(node.restart());
        self.publish(&mut source, &readers, args.every, || !restart.is_finished()).await?;
        let node = restart.await.map_err(|error| CliFailure::Demo(error.to_string()))??;
        let down = node.began() - killed;
        let ms = down.as_secs_f64() * 1e3;
        let again = format!("process {} answered after {ms:.0} ms, on the same data", node.pid());
        self.show.now(again)?;
        self.publish(&mut source, &readers, args.every, || began.elapsed() < args.length).await?;
        source.flush().await?;
        let tallies = readers.finish(source.ledger.len()).await?;
        let rows = Codec::AT_REST.into_iter().zip(tallies);
        let rows =
            rows.map(|(codec, tally)| DemoCodecRow::new(codec, tally, &source.ledger)).collect();
        let hidden = self.hide(node).await?;
        Ok(DemoReport { acknowledged: source.acknowledged, down, rows, hidden })
    }

    /// Shows one message as three readers get it.
    async fn one_in_three(&mut self, hub: &str) -> Result<(), CliFailure> {
        let topic = self.machine.topic(KINDS[0]);
        self.show.line(format_args!("the first message of {topic}, as three readers get it:"))?;
        for codec in Codec::AT_REST {
            let client = Client::connect(hub)?.with_codec(codec)?;
            let page = client.read(&topic, StartPosition::First, 1).await?;
            for ReceivedMessage { codec, envelope, .. } in &page.messages {
                let shown = show::bytes(*codec, envelope);
                let (name, size) = (codec.name(), envelope.len());
                self.show.line(format_args!("  {name:<8} {size:>4} B  {shown}"))?;
            }
        }
        Ok(())
    }

    /// Samples and sends as long as it is to, and shows what comes back.
    async fn publish(
        &mut self,
        source: &mut TelemetrySource,
        readers: &DemoConsumers,
        every: Duration,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), CliFailure> {
        let mut shown = Instant::now();
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while goes_on() {
            ticks.tick().await;
            source.sample(&self.machine).await?;
            if shown.elapsed() >= Duration::from_millis(DEMO_SHOW_INTERVAL_MS) {
                shown = Instant::now();
                self.progress(source.ledger.len(), readers)?;
            }
        }
        Ok(())
    }

    fn progress(&mut self, sent: usize, readers: &DemoConsumers) -> Result<(), CliFailure> {
        let latest = readers.latest.borrow().clone();
        let (sent, read) = (show::count(sent as u64), show::count(readers.least()));
        let Some(message) = latest else { return Ok(()) };
        let value = message.value()?;
        let kind = message.stream.as_str().rsplit('/').next().unwrap_or_default();
        let data = value.field(kind).map(show::json).unwrap_or_default();
        let offset = message.offset;
        self.show.now(format_args!("{sent:>6} sent {read:>6} read   {kind} #{offset}  {data}"))
    }

    /// The same telemetry through a sealed stream, and the node's data into a vault and back.
    async fn hide(&mut self, mut node: DemoNodeProcess) -> Result<DemoSecrecyReport, CliFailure> {
        self.show.part("The same telemetry, sealed for a group of two machines")?;
        let words = DemoCanaries::new()?;
        let keys = self.folder.join("keys");
        let sealed = sealed::run(node.address(), &self.machine, &keys, &words).await?;
        self.show.line(format_args!("the hub keeps   {}", sealed.kept))?;
        self.show.line(format_args!("                {}", sealed.body))?;
        self.show.line(format_args!("a member reads  {}", sealed.opened))?;
        self.show.part("The same telemetry, over a relay that holds no key")?;
        let keys = self.folder.join("relayed");
        let machine = &self.machine;
        let relayed = tokio::task::block_in_place(|| relayed::run(machine, &keys, &words.hidden))?;
        self.show.line(format_args!("{}", relayed.told()))?;
        self.show.part("From the field to the cloud, over machines that find each other")?;
        let field = self.folder.join("field");
        let field = field::run(node.address(), &self.machine, &field, &words).await?;
        self.show.line(format_args!("{}", field.told()))?;
        node.kill()?;
        self.show.part("The node's data, into an encrypted vault and back")?;
        let data = self.folder.join("data");
        let open_found = sealed::holding(&data, &words.open)?;
        let sealed_found = sealed::holding(&data, &words.hidden)?;
        let vault = self.folder.join("vault");
        let kept = tokio::task::block_in_place(|| archive::run(&data, &vault, &words.open));
        let archive = kept?;
        self.show.line(format_args!("{}", archive.told()))?;
        Ok(DemoSecrecyReport { sealed, relayed, field, open_found, sealed_found, archive })
    }
}

/// Where the telemetry comes from, and what was sent of it.
struct TelemetrySource {
    publishers: Vec<Publisher>,
    ledger: PublishedLedger,
    /// Messages that the node has answered for.
    acknowledged: u64,
}

impl TelemetrySource {
    async fn open(node: &DemoNodeProcess, machine: &DemoMachine) -> Result<Self, CliFailure> {
        let client =
            Client::connect(node.address())?.patience(Duration::from_millis(MAX_DEMO_HUB_WAIT_MS));
        let publishers = KINDS.iter().map(|kind| client.publisher(&machine.topic(kind)));
        let publishers = publishers.collect::<Result<_, _>>()?;
        Ok(Self { publishers, ledger: PublishedLedger::default(), acknowledged: 0 })
    }

    /// One measurement of each kind.
    async fn sample(&mut self, machine: &DemoMachine) -> Result<(), CliFailure> {
        for (kind, publisher) in KINDS.iter().zip(&self.publishers) {
            let (id, envelope) = machine.sample(kind, self.ledger.len())?;
            self.ledger.add(id, &envelope);
            publisher.send(&envelope).await?;
        }
        Ok(())
    }

    /// Waits until all of it is stored.
    async fn flush(&mut self) -> Result<(), CliFailure> {
        self.acknowledged = 0;
        for publisher in &self.publishers {
            self.acknowledged += publisher.flush().await?.messages;
        }
        let (sent, acknowledged) = (self.ledger.len() as u64, self.acknowledged);
        if acknowledged != sent {
            let cause = format!("{sent} messages were sent, {acknowledged} acknowledged");
            return Err(CliFailure::Demo(cause));
        }
        Ok(())
    }
}

/// A consumer for each codec.
struct DemoConsumers {
    counts: Vec<Arc<AtomicU64>>,
    /// The newest message of the first of them.
    latest: watch::Receiver<Option<ReceivedMessage>>,
    tasks: Vec<JoinHandle<Result<DemoReaderTally, sealane::Error>>>,
    stop: watch::Sender<bool>,
}

impl DemoConsumers {
    async fn start(node: &DemoNodeProcess, machine: &DemoMachine) -> Result<Self, CliFailure> {
        let (stop, stopped) = watch::channel(false);
        let (mut counts, mut tasks) = (Vec::new(), Vec::new());
        let (shown, latest) = watch::channel(None);
        for codec in Codec::AT_REST {
            let client = Client::connect(node.address())?;
            let reader = DemoReader::join(&client, &machine.topic("*"), codec).await?;
            counts.push(reader.count());
            let shown = (codec == Codec::Json).then(|| shown.clone());
            tasks.push(tokio::spawn(reader.run(stopped.clone(), shown)));
        }
        Ok(Self { counts, latest, tasks, stop })
    }

    /// How many messages the slowest has got.
    fn least(&self) -> u64 {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        counts.min().unwrap_or(0)
    }

    /// Waits until each has everything, or nothing more comes.
    async fn finish(self, all: usize) -> Result<Vec<DemoReaderTally>, CliFailure> {
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let counts = || self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let (mut seen, mut moved) = (0, Instant::now());
        let patience = Duration::from_millis(MAX_DEMO_STALL_MS);
        while counts().any(|count| count < all) && moved.elapsed() < patience {
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
            tallies.push(task.await.map_err(|error| CliFailure::Demo(error.to_string()))??);
        }
        Ok(tallies)
    }
}
