//! Deliveries: live, from disk, to very many, and to nobody.

use std::time::{Duration, Instant};

use sealane_codec::Codec;

use super::client::{AckMode, publish};
use super::worker::{WorkerOutcome, WorkerTask};
use super::{LoadRow, LoadedHub};
use crate::failure::Result;

/// A way of reading.
pub(super) struct DeliverShape {
    pub(super) name: &'static str,
    pub(super) level: &'static str,
    codec: &'static str,
    acks: AckMode,
    query: &'static str,
}

const SINGLE: &str = "stream=load/live&consumer=c{}&from=new";
const BATCHED: &str = "stream=load/live&consumer=c{}&from=new&batch=256";

/// The ways of reading that are measured, each with every delivery acknowledged but where it says.
pub(super) const SHAPES: &[DeliverShape] = &[
    shape("deliver, each acked by id", "os", "json", AckMode::Each, SINGLE),
    shape("deliver, each acked by id (msgpack)", "os", "msgpack", AckMode::Each, SINGLE),
    shape("deliver in batches, acked by range", "os", "json", AckMode::Range, BATCHED),
    shape("deliver in batches, acked by range (cbor)", "disk", "cbor", AckMode::Range, BATCHED),
    shape("deliver to readers, no acks", "os", "json", AckMode::None, "stream=load/live&from=new"),
];

const fn shape(
    name: &'static str,
    level: &'static str,
    codec: &'static str,
    acks: AckMode,
    query: &'static str,
) -> DeliverShape {
    DeliverShape { name, level, codec, acks, query }
}

/// One publisher in batches; every connection is a consumer of its own and gets every message.
pub(super) async fn run(node: &LoadedHub<'_>, shape: &DeliverShape) -> Result<LoadRow> {
    let options = node.options;
    node.publish("load/live", 1, 1).await?;
    let each = options.each + Duration::from_millis(500);
    let read = WorkerTask::read(shape.query, options.readers, shape.acks, each);
    let readers = node.readers(&read.in_codecs(shape.codec)).await?;
    let (start, before) = (Instant::now(), node.cpu_s());
    let end = start + options.each;
    // The publisher is held to what the readers keep up with by a bound on how far it is ahead.
    let mut published = 0;
    while Instant::now() < end {
        published += publish(&node.client, "load/live", 2000, 1000, options.size, end).await?;
        let info = node.client.stream("load/live").await?;
        let behind = |next: u64| info.next.saturating_sub(next);
        if info.consumers.iter().any(|consumer| behind(consumer.next) > 20_000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let seen = readers.finish().await?;
    Ok(LoadRow {
        codec: shape.codec.into(),
        connections: options.readers,
        note: format!("{published} published in batches of 1000 meanwhile"),
        ..node.row(shape.name, &seen, before)
    })
}

/// The time from an enqueue to its delivery, with the hub at about half of what it can do.
pub(super) async fn latency(node: &LoadedHub<'_>) -> Result<LoadRow> {
    node.publish("load/live", 1, 1).await?;
    let connections = node.options.readers.min(8);
    let (rate, each) = (5_000, node.options.each);
    let lull = Duration::from_millis(300);
    let read = WorkerTask::read(SINGLE, connections, AckMode::Each, each + lull);
    let readers = node.readers(&read).await?;
    let before = node.cpu_s();
    let (topic, bytes) = ("load/live".into(), node.options.size);
    let pace = WorkerTask::Pace { topic, rate, bytes, each };
    pace.start(node.programs, &node.hub)?.finish::<WorkerOutcome>().await?;
    let seen: WorkerOutcome = readers.finish().await?;
    let row = node.row("latency, enqueue to delivery", &seen, before);
    let used = row.node_cpu_s / seen.seconds * 100.0;
    Ok(LoadRow {
        connections,
        latency_us: Some((seen.p50_us, seen.p99_us)),
        note: format!("{rate}/s in; the node uses {used:.0} % of a core"),
        ..row
    })
}

/// Reading a backlog from disk, by one and by several readers.
pub(super) async fn replay(node: &LoadedHub<'_>) -> Result<Vec<LoadRow>> {
    let count = 1_000_000;
    node.publish("load/log", count, 5000).await?;
    let mut rows = Vec::new();
    for (codec, batch) in [(Codec::Json, 256), (Codec::Json, 1), (Codec::MsgPack, 256)] {
        let query = format!("stream=load/log&from=first&batch={batch}");
        let read = WorkerTask::read(&query, 1, AckMode::None, Duration::from_secs(600));
        let read = read.in_codecs(codec.name()).until(count);
        let (topic, codec) = ("load/log".into(), codec.name().to_owned());
        let follow = WorkerTask::Follow { topic, codec: codec.clone(), batch, count };
        for (reader, work) in [("replay from disk", read), ("replay by the client", follow)] {
            let before = node.cpu_s();
            let seen = work.start(node.programs, &node.hub)?.finish().await?;
            let row = node.row(format!("{reader}, frames of {batch}"), &seen, before);
            rows.push(LoadRow { codec: codec.clone(), ..row });
        }
    }
    Ok(rows)
}

/// One message to very many readers in three codecs: how often it is encoded, and how long it
/// takes until the last one has it.
pub(super) async fn fan_out(node: &LoadedHub<'_>) -> Result<LoadRow> {
    node.publish("load/one", 1, 1).await?;
    let mut workers = Vec::new();
    // A process of clients may open fewer files than the node.
    let share = node.options.fan_out.div_ceil(3);
    for codecs in ["json", "msgpack", "cbor"] {
        let work = WorkerTask::hold("stream=load/one&from=new", share, codecs, 1);
        workers.push(node.readers(&work).await?);
    }
    let encoded = node.hub.metric("sealane_codec_encoded_total").await?;
    let (start, before) = (Instant::now(), node.cpu_s());
    node.publish("load/one", 1, 1).await?;
    let mut seen = WorkerOutcome::default();
    for worker in workers {
        seen.count += worker.finish::<WorkerOutcome>().await?.count;
    }
    seen.seconds = start.elapsed().as_secs_f64();
    let encoded = node.hub.metric("sealane_codec_encoded_total").await? - encoded;
    Ok(LoadRow {
        codec: "three".into(),
        connections: share * 3,
        note: format!("encoded {encoded} times"),
        ..node.row("fan-out of one message", &seen, before)
    })
}

/// The cost of a connection that does nothing.
pub(super) async fn idle(node: &LoadedHub<'_>) -> Result<LoadRow> {
    node.publish("load/idle", 1, 1).await?;
    let before = node.hub.process.resident_bytes();
    let connections = node.options.idle;
    let work = WorkerTask::hold("stream=load/idle&from=new", connections, "json", 0);
    let _worker = node.readers(&work).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = node.hub.process.resident_bytes().saturating_sub(before);
    let each = held as f64 / connections as f64;
    Ok(LoadRow {
        name: "idle connections".into(),
        level: "-",
        codec: "json".into(),
        connections,
        note: format!("{:.1} KiB of resident memory each", each / 1024.0),
        ..LoadRow::default()
    })
}
