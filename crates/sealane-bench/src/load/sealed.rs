//! Sealed streams beside open ones: the same bodies through the same node, in turn.

use std::time::{Duration, Instant};

use sealane::{GroupTag, Value};
use sealane_codec::Codec;
use sealane_frame::{FrameBuf, HeaderFields, PeerTag, seal_frame};
use sealane_protocol::SealedEnvelope;
use sealane_seal::{Binding, Epoch, EpochSecret, Epochs, Group, History, Sealer, Slot, Suite};

use super::client::AckMode;
use super::worker::{WorkerOutcome, WorkerTask};
use super::{LoadRow, LoadedHub};
use crate::failure::{BenchFailure, Result};
use crate::members::{self, GROUP_ID};

const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);
/// The stream that sealed messages are kept in, and bound to.
const SEALED_TOPIC: &str = "load/sealed";

/// Bytes of a body: a reading, and a document.
const BODIES: [usize; 2] = [100, 8192];
/// Each of these is measured so often, open and sealed in turn.
const ROUNDS: usize = 5;
/// Messages of one enqueue, at most; fewer where they are large.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// How the deliveries are read.
struct SealedShape {
    name: &'static str,
    codec: Codec,
    query: &'static str,
    acks: AckMode,
}

const SHAPES: [SealedShape; 3] = [
    SealedShape { name: "one each", codec: Codec::MsgPack, query: "from=new", acks: AckMode::None },
    SealedShape {
        name: "batches",
        codec: Codec::MsgPack,
        query: "consumer=c{}&from=new&batch=256",
        acks: AckMode::Range,
    },
    SealedShape {
        name: "batches",
        codec: Codec::Json,
        query: "consumer=c{}&from=new&batch=256",
        acks: AckMode::Range,
    },
];

/// The result of one round.
#[derive(Default)]
struct SealedRound {
    row: LoadRow,
    /// Bytes of the frames that all readers got.
    bytes: u64,
}

impl SealedRound {
    fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.row.count.max(1) as f64
    }
}

/// One kind of stream, and the enqueue that is repeated to it.
struct SealedSource {
    kind: &'static str,
    sealed: Option<GroupTag>,
    topic: String,
    batch: Vec<Vec<u8>>,
}

pub(super) async fn run<'a>(
    hub: &impl Fn(&'static str) -> Result<LoadedHub<'a>>,
    add: &mut impl FnMut(Vec<LoadRow>),
) -> Result<()> {
    for shape in &SHAPES {
        for bytes in BODIES {
            add(compare(&hub("os")?, shape, bytes).await?);
        }
    }
    Ok(())
}

async fn compare(node: &LoadedHub<'_>, shape: &SealedShape, bytes: usize) -> Result<Vec<LoadRow>> {
    let sources = [open(shape.codec, bytes), sealed(shape.codec, bytes)?];
    for source in &sources {
        let make = node.client.configure(&source.topic).max_count(200_000);
        source.sealed.iter().fold(make, |make, group| make.sealed(*group)).await?;
    }
    let mut rounds: [Vec<SealedRound>; 2] = Default::default();
    // The first round warms up.
    for number in 0..=ROUNDS {
        for (rounds, source) in rounds.iter_mut().zip(&sources) {
            let came = round(node, shape, source).await?;
            if number > 0 {
                rounds.push(came);
            }
        }
    }
    let [open, sealed] = &rounds;
    let notes = [format!("median of {ROUNDS} rounds in turn"), shares(open, sealed)];
    let rows = rounds.into_iter().zip(&sources).zip(notes).map(|((rounds, source), note)| {
        let name = format!("{} {bytes} B, {}", source.kind, shape.name);
        let middle = median(rounds);
        let note = format!("{:.0} B each; {note}", middle.bytes_each());
        LoadRow { name, note, ..middle.row }
    });
    Ok(rows.collect())
}

/// The ratio of the sealed rounds to the open rounds. Sealed deliveries are longer. The ratio in
/// bytes tells whether that is the only reason.
fn shares(open: &[SealedRound], sealed: &[SealedRound]) -> String {
    let share = |unit: &str, rate: fn(&SealedRound) -> f64| {
        let shares = open.iter().zip(sealed).map(|(open, sealed)| rate(sealed) / rate(open));
        let mut shares: Vec<f64> = shares.map(|share| share * 100.0).collect();
        shares.sort_by(f64::total_cmp);
        let [low, .., high] = shares.as_slice() else { return String::new() };
        let middle = shares.get(shares.len() / 2).copied().unwrap_or_default();
        format!("{middle:.0} % of open {unit} ({low:.0}-{high:.0})")
    };
    let said = [
        share("/s", |round| round.row.rate()),
        share("bytes/s", |round| round.row.rate() * round.bytes_each()),
        share("/s per core", |round| round.row.rate_per_core().unwrap_or(f64::NAN)),
    ];
    said.join(", ")
}

/// Everybody reads what one publisher enqueues for a while.
async fn round(
    node: &LoadedHub<'_>,
    shape: &SealedShape,
    source: &SealedSource,
) -> Result<SealedRound> {
    let (each, readers) = (node.options.each / 2, node.options.readers);
    let query = format!("stream={}&{}", source.topic, shape.query);
    let work = WorkerTask::read(&query, readers, shape.acks, each + Duration::from_millis(200));
    let reading = node.readers(&work.in_codecs(shape.codec.name())).await?;
    let (end, before) = (Instant::now() + each, node.cpu_s());
    while Instant::now() < end {
        node.client.publish_batch(&source.topic, shape.codec, &source.batch).await?;
        let info = node.client.stream(&source.topic).await?;
        if info.lag() > Some(20_000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let seen: WorkerOutcome = reading.finish().await?;
    let row = node.row("", &seen, before);
    let row = LoadRow { codec: shape.codec.name().into(), connections: readers, ..row };
    Ok(SealedRound { row, bytes: seen.bytes })
}

fn median(mut rounds: Vec<SealedRound>) -> SealedRound {
    rounds.sort_by(|a, b| a.row.rate().total_cmp(&b.row.rate()));
    let middle = rounds.len() / 2;
    rounds.into_iter().nth(middle).unwrap_or_default()
}

fn count(bytes: usize) -> usize {
    (BATCH_BYTES / bytes).min(BATCH)
}

/// An envelope of so many bytes, as a client writes it: without an id, which the hub adds.
fn envelope(codec: Codec, bytes: usize) -> Vec<u8> {
    let encoded = |filler: usize| {
        let data = Value::Text("x".repeat(filler));
        let mut out = Vec::with_capacity(bytes);
        sealane_codec::encode(codec, &Value::Map(vec![("data".into(), data)]), &mut out);
        out
    };
    encoded(bytes - (encoded(bytes).len() - bytes))
}

fn open(codec: Codec, bytes: usize) -> SealedSource {
    let batch = vec![envelope(codec, bytes); count(bytes)];
    SealedSource { kind: "open", sealed: None, topic: "load/normal".into(), batch }
}

/// The same bodies, really sealed: class C, MessagePack within.
fn sealed(codec: Codec, bytes: usize) -> Result<SealedSource> {
    let group = Group::new(GROUP_ID, Suite::Aes256Gcm);
    let secret = EpochSecret::new([1; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    let slot = Slot::new(1).ok_or_else(|| BenchFailure::broken("sealing"))?;
    let context = members::draw_context()?;
    let mut sealer = Sealer::new(group, slot, context, &epochs, 0)?;
    let source = PeerTag::from_hash([3; 8]);
    let fields =
        HeaderFields { codec: Codec::MsgPack as u8, ..HeaderFields::new(GROUP, source, 1) };
    let (binding, mut buf) = (Binding::stream(SEALED_TOPIC), FrameBuf::new());
    let mut batch = Vec::with_capacity(BATCH);
    let body = envelope(Codec::MsgPack, bytes);
    for _ in 0..count(bytes) {
        let frame = seal_frame(&mut sealer, &fields, &binding, &body, &mut buf)?;
        let mut out = Vec::with_capacity(frame.len() + 64);
        SealedEnvelope { id: None, frame: (&*frame).into() }.write(codec, &mut out);
        batch.push(out);
    }
    Ok(SealedSource { kind: "sealed", sealed: Some(GROUP), topic: SEALED_TOPIC.into(), batch })
}
