//! The hub under load: separate processes, real loopback sockets, one row per question.
//!
//! The node runs as one process and every client as another. Rates *per core* divide by the CPU
//! time that the node's process spent, so that they do not depend on what else the machine does,
//! nor on how fast the clients are.

mod append;
pub(crate) mod client;
mod deliver;
pub(crate) mod publisher;
mod report;
mod sealed;
pub(crate) mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use append::{again_and_again, raw_appends};
pub(crate) use report::{BenchHost, LoadRow};
pub(crate) use worker::work;

use crate::args;
use crate::failure::Result;
use crate::process::{BenchClientProcess, BenchServer};
use crate::programs::BenchPrograms;
use worker::{WorkerOutcome, WorkerTask};

/// The loads to measure, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadOptions {
    /// How long each row runs
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "5s")]
    each: Duration,
    /// Bytes of an envelope
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Connections that read
    #[arg(long, value_name = "N", default_value_t = 16)]
    readers: usize,
    /// Connections that are opened to see what an idle one costs
    #[arg(long, value_name = "N", default_value_t = 2000)]
    idle: usize,
    /// Readers of one message, over three codecs
    #[arg(long, value_name = "N", default_value_t = 9999)]
    fan_out: usize,
    /// Only rows whose name contains this, for example append or latency
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The hub of a row, and how to load it.
struct LoadedHub<'a> {
    programs: &'a BenchPrograms,
    options: &'a LoadOptions,
    level: &'static str,
    hub: BenchServer,
    client: sealane::Client,
}

impl<'a> LoadedHub<'a> {
    /// Starts a hub on an empty folder.
    fn start(
        programs: &'a BenchPrograms,
        options: &'a LoadOptions,
        level: &'static str,
    ) -> Result<Self> {
        let hub = BenchServer::hub(programs, options.data.as_deref(), level)?;
        let client = sealane::Client::connect(&hub.address)?;
        Ok(Self { programs, options, level, hub, client })
    }

    /// Publishes so many messages in batches of `size`.
    async fn publish(&self, topic: &str, count: u64, size: usize) -> Result<u64> {
        let bytes = self.options.size;
        client::publish(&self.client, topic, count, size, bytes, client::never()).await
    }

    fn cpu_s(&self) -> f64 {
        self.hub.process.cpu_s()
    }

    /// Starts a client, and waits until its connections stand.
    async fn readers(&self, work: &WorkerTask) -> Result<BenchClientProcess> {
        let mut readers = work.start(self.programs, &self.hub)?;
        readers.ready().await?;
        Ok(readers)
    }

    /// The row of what clients saw, and what the node spent on it since it had spent `before`.
    fn row(&self, name: impl Into<String>, seen: &WorkerOutcome, before: f64) -> LoadRow {
        LoadRow {
            name: name.into(),
            level: self.level,
            codec: "json".into(),
            connections: 1,
            count: seen.count,
            seconds: seen.seconds,
            node_cpu_s: self.cpu_s() - before,
            ..LoadRow::default()
        }
    }
}

/// Measures everything that `options` asks for; each row is shown as it comes.
pub(crate) async fn run(
    programs: &BenchPrograms,
    options: &LoadOptions,
    show: &mut dyn FnMut(&LoadRow),
) -> Result<Vec<LoadRow>> {
    let mut rows = Vec::new();
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    let mut add = |more: Vec<LoadRow>| {
        more.iter().for_each(&mut *show);
        rows.extend(more);
    };
    let hub = |level| LoadedHub::start(programs, options, level);
    if wanted("append") {
        append::run(&hub, &mut add).await?;
    }
    for shape in deliver::SHAPES.iter().filter(|shape| wanted(shape.name)) {
        add(vec![deliver::run(&hub(shape.level)?, shape).await?]);
    }
    if wanted("sealed") {
        sealed::run(&hub, &mut add).await?;
    }
    if wanted("latency") {
        add(vec![deliver::latency(&hub("os")?).await?]);
    }
    if wanted("replay") {
        add(deliver::replay(&hub("os")?).await?);
    }
    if wanted("fan-out") {
        add(vec![deliver::fan_out(&hub("disk")?).await?]);
    }
    if wanted("idle") {
        add(vec![deliver::idle(&hub("disk")?).await?]);
    }
    Ok(rows)
}
