//! Deliveries: live, from disk, to very many, and to nobody.

use std::time::{Duration, Instant};

use sealane_codec::Codec;

use super::client::{AckMode, never, publish};
use super::node::BenchNodeProcess;
use super::worker::{WorkerProcess, WorkerTask};
use super::{Error, LoadOptions, LoadRow};
use crate::programs::BenchPrograms;

/// A way of reading.
pub(super) struct DeliverShape {
    pub(super) name: &'static str,
    level: &'static str,
    codec: &'static str,
    acks: AckMode,
    query: &'static str,
}

/// The ways of reading that are measured, each with every delivery acknowledged but where it says.
pub(super) const SHAPES: &[DeliverShape] = &[
    DeliverShape {
        name: "deliver, each acked by id",
        level: "os",
        codec: "json",
        acks: AckMode::Each,
        query: "stream=load/live&consumer=c{}&from=new",
    },
    DeliverShape {
        name: "deliver, each acked by id (msgpack)",
        level: "os",
        codec: "msgpack",
        acks: AckMode::Each,
        query: "stream=load/live&consumer=c{}&from=new",
    },
    DeliverShape {
        name: "deliver in batches, acked by range",
        level: "os",
        codec: "json",
        acks: AckMode::Range,
        query: "stream=load/live&consumer=c{}&from=new&batch=256",
    },
    DeliverShape {
        name: "deliver in batches, acked by range (cbor)",
        level: "disk",
        codec: "cbor",
        acks: AckMode::Range,
        query: "stream=load/live&consumer=c{}&from=new&batch=256",
    },
    DeliverShape {
        name: "deliver to readers, no acks",
        level: "os",
        codec: "json",
        acks: AckMode::None,
        query: "stream=load/live&from=new",
    },
];

/// One publisher in batches; every connection is a consumer of its own and gets every message.
pub(super) async fn run(
    programs: &BenchPrograms,
    options: &LoadOptions,
    shape: &DeliverShape,
) -> Result<LoadRow, Error> {
    let data = folder(options)?;
    let node = BenchNodeProcess::start(programs, data.path(), shape.level)?;
    let client = sealane::Client::connect(&node.address)?;
    let bytes = options.envelope_bytes;
    publish(&client, "load/live", 1, 1, bytes, never()).await?;
    let work = WorkerTask::Read {
        query: shape.query.into(),
        connections: options.readers,
        codecs: shape.codec.into(),
        acks: shape.acks,
        count: u64::MAX,
        end_ms: (options.each + Duration::from_millis(500)).as_millis() as u64,
    };
    let mut readers = WorkerProcess::start(programs, &node.address, &work)?;
    readers.ready().await?;
    let (start, before) = (Instant::now(), node.cpu_s());
    let end = start + options.each;
    // The publisher is held to what the readers keep up with by a bound on how far it is ahead.
    let mut published = 0;
    while Instant::now() < end {
        published += publish(&client, "load/live", 2000, 1000, bytes, end).await?;
        let info = client.stream("load/live").await?;
        let behind = |next: u64| info.next.saturating_sub(next);
        if info.consumers.iter().any(|consumer| behind(consumer.next) > 20_000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let seen = readers.finish().await?;
    Ok(LoadRow {
        name: shape.name.into(),
        level: shape.level,
        codec: shape.codec.into(),
        connections: options.readers,
        count: seen.count,
        seconds: seen.seconds,
        node_cpu_s: node.cpu_s() - before,
        latency_us: None,
        note: format!("{published} published in batches of 1000 meanwhile"),
    })
}

/// The time from an enqueue to its delivery, with the hub at about half of what it can do.
pub(super) async fn latency(
    programs: &BenchPrograms,
    options: &LoadOptions,
) -> Result<LoadRow, Error> {
    let data = folder(options)?;
    let node = BenchNodeProcess::start(programs, data.path(), "os")?;
    let bytes = options.envelope_bytes;
    let client = sealane::Client::connect(&node.address)?;
    publish(&client, "load/live", 1, 1, bytes, never()).await?;
    let connections = options.readers.min(8);
    let (rate, each) = (5_000, options.each);
    let work = WorkerTask::Read {
        query: "stream=load/live&consumer=c{}&from=new".into(),
        connections,
        codecs: "json".into(),
        acks: AckMode::Each,
        count: u64::MAX,
        end_ms: (each + Duration::from_millis(300)).as_millis() as u64,
    };
    let mut readers = WorkerProcess::start(programs, &node.address, &work)?;
    readers.ready().await?;
    let before = node.cpu_s();
    let pace = WorkerTask::Pace { topic: "load/live".into(), rate, bytes, each };
    WorkerProcess::start(programs, &node.address, &pace)?.finish().await?;
    let seen = readers.finish().await?;
    let spent = node.cpu_s() - before;
    Ok(LoadRow {
        name: "latency, enqueue to delivery".into(),
        level: "os",
        codec: "json".into(),
        connections,
        count: seen.count,
        seconds: seen.seconds,
        node_cpu_s: spent,
        latency_us: Some((seen.p50_us, seen.p99_us)),
        note: format!("{rate}/s in; the node uses {:.0} % of a core", spent / seen.seconds * 100.0),
    })
}

/// Reading a backlog from disk, by one and by several readers.
pub(super) async fn replay(
    programs: &BenchPrograms,
    options: &LoadOptions,
) -> Result<Vec<LoadRow>, Error> {
    let data = folder(options)?;
    let count = 1_000_000;
    let node = BenchNodeProcess::start(programs, data.path(), "os")?;
    let client = sealane::Client::connect(&node.address)?;
    publish(&client, "load/log", count, 5000, options.envelope_bytes, never()).await?;
    let mut rows = Vec::new();
    for (codec, batch) in [(Codec::Json, 256), (Codec::Json, 1), (Codec::MsgPack, 256)] {
        let read = WorkerTask::Read {
            query: format!("stream=load/log&from=first&batch={batch}"),
            connections: 1,
            codecs: codec.name().into(),
            acks: AckMode::None,
            count,
            end_ms: 600_000,
        };
        let follow = WorkerTask::Follow { topic: "load/log".into(), codec, batch, count };
        for (reader, work) in [("replay from disk", read), ("replay by the client", follow)] {
            let before = node.cpu_s();
            let seen = WorkerProcess::start(programs, &node.address, &work)?.finish().await?;
            rows.push(LoadRow {
                name: format!("{reader}, frames of {batch}"),
                level: "os",
                codec: codec.name().into(),
                connections: 1,
                count: seen.count,
                seconds: seen.seconds,
                node_cpu_s: node.cpu_s() - before,
                latency_us: None,
                note: String::new(),
            });
        }
    }
    Ok(rows)
}

/// One message to very many readers in three codecs: how often it is encoded, and how long it
/// takes until the last one has it.
pub(super) async fn fan_out(
    programs: &BenchPrograms,
    options: &LoadOptions,
) -> Result<LoadRow, Error> {
    let data = folder(options)?;
    let node = BenchNodeProcess::start(programs, data.path(), "disk")?;
    let client = sealane::Client::connect(&node.address)?;
    let bytes = options.envelope_bytes;
    publish(&client, "load/one", 1, 1, bytes, never()).await?;
    let mut workers = Vec::new();
    // A process of clients may open fewer files than the node.
    let share = options.fan_out.div_ceil(3);
    for codec in ["json", "msgpack", "cbor"] {
        let query = "stream=load/one&from=new".to_owned();
        let work = WorkerTask::Hold { query, connections: share, codecs: codec.into(), count: 1 };
        let mut worker = WorkerProcess::start(programs, &node.address, &work)?;
        worker.ready().await?;
        workers.push(worker);
    }
    let encoded = node.metric("sealane_codec_encoded_total").await?;
    let (start, before) = (Instant::now(), node.cpu_s());
    publish(&client, "load/one", 1, 1, bytes, never()).await?;
    let mut count = 0;
    for worker in workers {
        count += worker.finish().await?.count;
    }
    let seconds = start.elapsed().as_secs_f64();
    let encoded = node.metric("sealane_codec_encoded_total").await? - encoded;
    Ok(LoadRow {
        name: "fan-out of one message".into(),
        level: "disk",
        codec: "three".into(),
        connections: share * 3,
        count,
        seconds,
        node_cpu_s: node.cpu_s() - before,
        latency_us: None,
        note: format!("encoded {encoded} times"),
    })
}

/// The cost of a connection that does nothing.
pub(super) async fn idle(
    programs: &BenchPrograms,
    options: &LoadOptions,
) -> Result<LoadRow, Error> {
    let data = folder(options)?;
    let node = BenchNodeProcess::start(programs, data.path(), "disk")?;
    let client = sealane::Client::connect(&node.address)?;
    publish(&client, "load/idle", 1, 1, options.envelope_bytes, never()).await?;
    let before = node.resident_bytes();
    let work = WorkerTask::Hold {
        query: "stream=load/idle&from=new".into(),
        connections: options.idle,
        codecs: "json".into(),
        count: 0,
    };
    let mut worker = WorkerProcess::start(programs, &node.address, &work)?;
    worker.ready().await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = node.resident_bytes().saturating_sub(before) as f64 / options.idle as f64;
    Ok(LoadRow {
        name: "idle connections".into(),
        level: "-",
        codec: "json".into(),
        connections: options.idle,
        note: format!("{:.1} KiB of resident memory each", each / 1024.0),
        ..LoadRow::default()
    })
}

/// A temporary folder on the disk that is measured.
pub(super) fn folder(options: &LoadOptions) -> Result<tempfile::TempDir, Error> {
    let folder = match &options.data {
        Some(data) => tempfile::tempdir_in(data),
        None => tempfile::tempdir(),
    };
    folder.map_err(Error::io("making a data folder"))
}
