//! Where a published message's time goes: CPU of each part of its way through a node, bytes written
//! for each byte of body, and plain SQLite in groups of the same size in the same run.
//!
//! The figures are CPU time and counts, since the wall's clock says little on a machine that others
//! use. All ways run in turns. Each lap has a node of its own on an empty folder.

mod parts;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::args;
use crate::failure::Result;
use crate::load::publisher::PublishPipeline;
use crate::load::worker::{WorkerOutcome, WorkerTask};
use crate::measure::{percentile, process_cpu_ns};
use crate::process::{BenchServer, written_bytes};
use crate::programs::BenchPrograms;
use crate::race::plain_sqlite;
use parts::{PARTS, PartSampler};

/// Messages that are published, and how often that is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct PublishCostOptions {
    /// How long a lap runs
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "2s")]
    each: Duration,
    /// Laps of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Bytes of a body
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    body: usize,
    /// Messages of a request or a frame
    #[arg(long, value_name = "N", default_value_t = 500)]
    size: usize,
    /// An earlier `sealane`, which is measured in turns with this one
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Only ways whose name contains this, for example socket or disk
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The transport of a message into a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PublishWay {
    /// No node: a row of SQLite for each group.
    Sqlite,
    Http,
    Socket,
}

/// A row of the table, which is measured in turns with the others.
#[derive(Debug, Clone, Copy)]
struct PublishEntry<'a> {
    way: PublishWay,
    level: &'static str,
    connections: usize,
    /// The program, where it is not the one beside this program.
    before: Option<&'a Path>,
}

/// The figures of one lap.
#[derive(Debug, Clone, Default)]
struct PublishLap {
    per_second: f64,
    /// CPU of the server for each message, in nanoseconds.
    cpu_ns: f64,
    /// The same of each part; none: there is no profiler.
    parts_ns: Option<[f64; PARTS.len()]>,
    /// Bytes that went to the disk for each byte of body.
    written: f64,
}

/// The medians of a row.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PublishCostRow {
    name: String,
    per_second: f64,
    cpu_ns: f64,
    parts_ns: Vec<f64>,
    written_per_body_byte: f64,
    /// The rate beside that of plain SQLite in the same run.
    of_sqlite: f64,
}

/// Measures all rows that `options` asks for.
pub(crate) async fn run(
    programs: &BenchPrograms,
    options: &PublishCostOptions,
) -> Result<Vec<PublishCostRow>> {
    let entries = entries(options);
    let mut laps = vec![Vec::new(); entries.len()];
    for round in 0..=options.rounds.max(1) {
        for (entry, laps) in entries.iter().zip(&mut laps) {
            let lap = entry.lap(programs, options).await?;
            // The first round warms up.
            if round > 0 {
                laps.push(lap);
            }
        }
    }
    // The order of `entries` has plain SQLite first, if it is asked for.
    let sqlite = entries.iter().zip(&laps).find(|(entry, _)| entry.way == PublishWay::Sqlite);
    let sqlite = sqlite.map_or(0.0, |(_, laps)| median(laps, |lap| lap.per_second));
    let row = |(entry, laps): (&PublishEntry<'_>, &Vec<PublishLap>)| {
        let per_second = median(laps, |lap| lap.per_second);
        PublishCostRow {
            name: entry.name(),
            per_second,
            cpu_ns: median(laps, |lap| lap.cpu_ns),
            parts_ns: (0..PARTS.len()).filter_map(|part| part_of(laps, part)).collect(),
            written_per_body_byte: median(laps, |lap| lap.written),
            of_sqlite: if sqlite > 0.0 { per_second / sqlite } else { 0.0 },
        }
    };
    Ok(entries.iter().zip(&laps).map(row).collect())
}

fn entries(options: &PublishCostOptions) -> Vec<PublishEntry<'_>> {
    let mut all = Vec::new();
    let sqlite =
        PublishEntry { way: PublishWay::Sqlite, level: "disk", connections: 1, before: None };
    all.push(sqlite);
    for level in ["disk", "memory"] {
        for way in [PublishWay::Http, PublishWay::Socket] {
            for connections in [1, 4] {
                let entry = PublishEntry { way, level, connections, before: None };
                let before = options.before.as_deref().map(Some);
                all.push(entry);
                all.extend(before.map(|before| PublishEntry { before, ..entry }));
            }
        }
    }
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    all.retain(|entry| entry.way == PublishWay::Sqlite || wanted(&entry.name()));
    all
}

fn median(laps: &[PublishLap], figure: impl Fn(&PublishLap) -> f64) -> f64 {
    percentile(&mut laps.iter().map(figure).collect::<Vec<_>>(), 0.5)
}

fn part_of(laps: &[PublishLap], part: usize) -> Option<f64> {
    let of = |lap: &PublishLap| lap.parts_ns?.get(part).copied();
    let mut figures: Vec<f64> = laps.iter().filter_map(of).collect();
    (!figures.is_empty()).then(|| percentile(&mut figures, 0.5))
}

impl PublishEntry<'_> {
    fn name(&self) -> String {
        let way = match self.way {
            PublishWay::Sqlite => return "plain SQLite".into(),
            PublishWay::Http => "HTTP",
            PublishWay::Socket => "socket",
        };
        let mark = if self.before.is_some() { " (before)" } else { "" };
        format!("{way} {} {}{mark}", self.level, self.connections)
    }

    async fn lap(
        &self,
        programs: &BenchPrograms,
        options: &PublishCostOptions,
    ) -> Result<PublishLap> {
        let PublishCostOptions { each, body, size, ref data, .. } = *options;
        let data = data.as_deref();
        if self.way == PublishWay::Sqlite {
            let (cpu, written) = (process_cpu_ns(), written_bytes(std::process::id()));
            let seen = plain_sqlite(data, size, body, each)?;
            let cpu_ns = process_cpu_ns() - cpu;
            let written = written_bytes(std::process::id()) - written;
            return Ok(PublishLap::of(&seen, cpu_ns, written, None, body));
        }
        let mut served = programs.clone();
        if let Some(before) = self.before {
            before.clone_into(&mut served.sealane);
        }
        let node = BenchServer::hub(&served, data, self.level)?;
        let (cpu, id) = (node.process.cpu_ns()?, node.process.id());
        let sampler = PartSampler::start(id);
        let written = written_bytes(id);
        // As a client writes it: the id of the hub comes to these bytes.
        let (topic, connections, bytes) = ("bench/publish".into(), self.connections, body + 28);
        let work = match self.way {
            PublishWay::Socket => {
                let pipeline = PublishPipeline { window: u64::MAX, frame: size as u64 };
                WorkerTask::Publish { topic, connections, pipeline, bytes, each }
            }
            _ => WorkerTask::Append { topic, connections, size, bytes, each },
        };
        let seen: WorkerOutcome = work.start(programs, &node)?.finish().await?;
        // The node stores what it answered from memory behind the answer.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let cpu_ns = (node.process.cpu_ns()? - cpu) as f64;
        let written = written_bytes(id) - written;
        let parts = sampler.and_then(PartSampler::finish);
        Ok(PublishLap::of(&seen, cpu_ns, written, parts, body))
    }
}

impl PublishLap {
    fn of(
        seen: &WorkerOutcome,
        cpu_ns: f64,
        written: u64,
        parts: Option<[f64; PARTS.len()]>,
        body: usize,
    ) -> Self {
        let count = seen.count.max(1) as f64;
        let cpu_ns = cpu_ns / count;
        PublishLap {
            per_second: count / seen.seconds.max(1e-6),
            cpu_ns,
            parts_ns: parts.map(|parts| parts.map(|share| share * cpu_ns)),
            written: written as f64 / (count * body as f64),
        }
    }
}

impl PublishCostRow {
    /// The heads of the columns of a row's text form.
    pub(crate) fn head() -> String {
        let parts: String = PARTS.iter().map(|part| format!(" {part:>8}")).collect();
        format!(
            "{:<24} {:>9} {:>7}{parts} {:>8} {:>9}",
            "ns of CPU a message", "/s", "all", "written", "of SQLite"
        )
    }
}

impl fmt::Display for PublishCostRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<24} {:>9.0} {:>7.0}", self.name, self.per_second, self.cpu_ns)?;
        for part in 0..PARTS.len() {
            match self.parts_ns.get(part) {
                Some(ns) => write!(f, " {ns:>8.0}")?,
                None => write!(f, " {:>8}", "-")?,
            }
        }
        write!(f, " {:>8.2} {:>9.2}", self.written_per_body_byte, self.of_sqlite)
    }
}
