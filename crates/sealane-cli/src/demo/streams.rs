//! Telemetry in three codecs, with a `kill -9` in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Error, Publisher, StartPosition, Subscription, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::report::DemoClaim;
use super::script::DemoProcess;
use super::show::{bytes, count, json};
use super::telemetry::{DemoLedger, DemoMachine, KINDS};
use super::{DemoStage, failed};
use crate::CliFailure;
use crate::args::DemoArgs;
use crate::limits::{DEMO_SHOW_INTERVAL_MS, MAX_DEMO_HUB_WAIT_MS, MAX_DEMO_STALL_MS};
use crate::times::show_bytes;

/// The messages that one codec's consumer received.
#[derive(Default)]
struct DemoReaderTally {
    received: DemoLedger,
    /// Deliveries, repeated ones included.
    deliveries: u64,
    /// Deliveries after a message's first.
    redelivered: u64,
    /// Bytes over the wire.
    bytes: u64,
    /// Time to decode each envelope and to encode it again.
    codec_time: Duration,
}

/// A consumer of all streams in one codec, in a task of its own.
struct DemoReader {
    codec: Codec,
    /// How many different messages have come.
    count: Arc<AtomicU64>,
    task: JoinHandle<Result<DemoReaderTally, Error>>,
}

impl DemoReader {
    async fn join(
        hub: &str,
        pattern: &str,
        codec: Codec,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, CliFailure> {
        let subscribe = Client::connect(hub)?.subscribe(pattern);
        let subscription =
            subscribe.consumer(format!("demo-{}", codec.name())).codec(codec).await?;
        let count = Arc::<AtomicU64>::default();
        let task = tokio::spawn(read(subscription, Arc::clone(&count), stop));
        Ok(Self { codec, count, task })
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Reads until it is told to stop.
async fn read(
    mut subscription: Subscription,
    count: Arc<AtomicU64>,
    mut stop: watch::Receiver<bool>,
) -> Result<DemoReaderTally, Error> {
    let (mut tally, mut again) = (DemoReaderTally::default(), Vec::new());
    loop {
        let next = tokio::select! {
            next = subscription.next() => next,
            _ = stop.changed() => None,
        };
        let Some(message) = next.transpose()? else { break };
        let began = Instant::now();
        let envelope = message.value()?;
        again.clear();
        sealane_codec::encode(message.codec, &envelope, &mut again);
        tally.codec_time += began.elapsed();
        tally.deliveries += 1;
        tally.redelivered += u64::from(message.attempt > 1);
        tally.received.add(&envelope);
        count.store(tally.received.len(), Ordering::Relaxed);
        message.ack();
    }
    tally.bytes = subscription.received_bytes();
    subscription.close().await;
    Ok(tally)
}

/// The messages that one codec's reader received.
pub(super) struct DemoCodecRow {
    codec: Codec,
    tally: DemoReaderTally,
    lost: u64,
}

impl DemoCodecRow {
    pub(super) const HEAD: [&str; 7] =
        ["CODEC", "MESSAGES", "BYTES", "BYTES/MSG", "DECODE+ENCODE", "REDELIVERED", "LOST"];

    fn each(&self, all: f64) -> f64 {
        all / self.tally.deliveries.max(1) as f64
    }

    fn us_each(&self) -> f64 {
        self.each(self.tally.codec_time.as_secs_f64() * 1e6)
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.codec.name().to_owned(),
            self.tally.received.len().to_string(),
            show_bytes(self.tally.bytes),
            format!("{:.0}", self.each(self.tally.bytes as f64)),
            format!("{:.1} us", self.us_each()),
            self.tally.redelivered.to_string(),
            self.lost.to_string(),
        ]
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("codec", self.codec.name().into()),
            ("messages", self.tally.received.len().into()),
            ("bytes", self.tally.bytes.into()),
            ("bytesPerMessage", Value::F64(self.each(self.tally.bytes as f64))),
            ("usPerMessage", Value::F64(self.us_each())),
            ("redelivered", self.tally.redelivered.into()),
            ("lost", self.lost.into()),
        ]
    }
}

/// Where the telemetry comes from, and what was sent of it.
struct TelemetrySource {
    publishers: Vec<Publisher>,
    ledger: DemoLedger,
    latest: Value,
}

impl TelemetrySource {
    fn open(hub: &str, machine: &DemoMachine) -> Result<Self, CliFailure> {
        let client = Client::connect(hub)?.patience(Duration::from_millis(MAX_DEMO_HUB_WAIT_MS));
        let publishers = KINDS.iter().map(|(kind, _)| client.publisher(&machine.topic(kind)));
        let publishers = publishers.collect::<Result<_, _>>()?;
        Ok(Self { publishers, ledger: DemoLedger::default(), latest: Value::Null })
    }

    /// One measurement of each kind.
    async fn sample(&mut self, machine: &DemoMachine) -> Result<(), CliFailure> {
        for publisher in &self.publishers {
            self.latest = machine.sample(self.ledger.len() as usize)?;
            self.ledger.add(&self.latest);
            publisher.send(&self.latest).await?;
        }
        Ok(())
    }

    /// Waits until all of it is stored; how many messages the hub has answered for.
    async fn flush(&mut self) -> Result<u64, CliFailure> {
        let mut acknowledged = 0;
        for publisher in &self.publishers {
            acknowledged += publisher.flush().await?.messages;
        }
        match (self.ledger.len(), acknowledged) {
            (sent, acknowledged) if sent == acknowledged => Ok(sent),
            (sent, _) => Err(failed(format!("{sent} messages sent, {acknowledged} acknowledged"))),
        }
    }
}

impl DemoStage<'_> {
    /// Publishes, kills the hub, starts it again, and goes on; gives the hub that runs then.
    pub(super) async fn stream(
        &mut self,
        args: &DemoArgs,
        mut hub: DemoProcess,
    ) -> Result<DemoProcess, CliFailure> {
        self.show.part("This machine's telemetry, in three codecs")?;
        let (version, address) = (hub.text("version"), hub.text("address"));
        self.show.line(format_args!("node {version} at {address}, process {}", hub.pid()))?;
        let (stop, stopped) = watch::channel(false);
        let mut readers = Vec::new();
        for codec in Codec::AT_REST {
            let pattern = self.machine.topic("*");
            readers.push(DemoReader::join(address, &pattern, codec, stopped.clone()).await?);
        }
        let mut source = TelemetrySource::open(address, &self.machine)?;
        source.sample(&self.machine).await?;
        source.flush().await?;
        self.one_in_three().await?;
        self.show.tell("")?;
        let began = Instant::now();
        self.publish(&mut source, &readers, args.every, || began.elapsed() < args.length / 2)
            .await?;
        hub.end();
        let killed = Instant::now();
        self.show.part("kill -9 while it publishes")?;
        self.show.now(format_args!("process {} was killed; publishing goes on", hub.pid()))?;
        // Publishing goes on while nobody answers: what is queued then is what a crash endangers.
        let restart = tokio::spawn(DemoProcess::restart_hub(self.script.clone()));
        self.publish(&mut source, &readers, args.every, || !restart.is_finished()).await?;
        let hub = restart.await.map_err(failed)??;
        let down_ms = (hub.began - killed).as_secs_f64() * 1e3;
        let again =
            format!("process {} answered after {down_ms:.0} ms, on the same data", hub.pid());
        self.show.now(again)?;
        self.publish(&mut source, &readers, args.every, || began.elapsed() < args.length).await?;
        let acknowledged = source.flush().await?;
        until_all_came(&readers, acknowledged).await;
        // Readers that have failed are gone already.
        let _ = stop.send(true);
        for DemoReader { codec, task, .. } in readers {
            let tally = task.await.map_err(failed)??;
            let lost = source.ledger.missing(&tally.received);
            self.report.lost += lost;
            self.report.rows.push(DemoCodecRow { codec, tally, lost });
        }
        self.report.figures.push(("acknowledged", acknowledged.into()));
        self.report.figures.push(("downMs", Value::F64(down_ms)));
        self.report.claims.push(DemoClaim {
            claim: "A message that is acknowledged is kept.",
            measured: format!(
                "{} messages acknowledged, 1 kill -9, {down_ms:.0} ms without a node: {} lost.",
                count(acknowledged),
                self.report.lost
            ),
        });
        Ok(hub)
    }

    /// Shows one message as three readers get it.
    async fn one_in_three(&mut self) -> Result<(), CliFailure> {
        let topic = self.machine.topic(KINDS[0].0);
        self.show.line(format_args!("the first message of {topic}, as three readers get it:"))?;
        for codec in Codec::AT_REST {
            let client = Client::connect(&self.script.hub)?.with_codec(codec)?;
            for message in client.read(&topic, StartPosition::First, 1).await?.messages {
                let (name, size) = (message.codec.name(), message.envelope.len());
                let shown = bytes(message.codec, &message.envelope);
                self.show.line(format_args!("  {name:<8} {size:>4} B  {shown}"))?;
            }
        }
        Ok(())
    }

    /// Samples and sends as long as it is to, and shows how far the readers are.
    async fn publish(
        &mut self,
        source: &mut TelemetrySource,
        readers: &[DemoReader],
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
                let least = readers.iter().map(DemoReader::count).min().unwrap_or(0);
                let (sent, read) = (count(source.ledger.len()), count(least));
                let latest = json(&source.latest);
                self.show.now(format_args!("{sent:>6} sent {read:>6} read   {latest}"))?;
            }
        }
        Ok(())
    }
}

/// Waits until each reader has everything, or nothing more comes.
async fn until_all_came(readers: &[DemoReader], all: u64) {
    let (mut seen, mut moved) = (0, Instant::now());
    let patience = Duration::from_millis(MAX_DEMO_STALL_MS);
    while readers.iter().any(|reader| reader.count() < all) && moved.elapsed() < patience {
        let now = readers.iter().map(DemoReader::count).sum();
        if seen != now {
            (seen, moved) = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
