//! A document built and brought to a neighbour: the report's *build* and *sync*, and further hops.

use std::hint::black_box;

use sealane_codec::document::encode;
use sealane_document::ShelfKeeper;
use sealane_document::agent::{DocumentNeighbour, OutboxScope};
use sealane_message::DataType;
use sealane_message::document::{Activity, Document as Body, Vitals};

use super::super::{BookRow, BookTable};
use crate::baseline::mesh::document::GossipDocument;
use crate::baseline::mesh::{
    ChaCha, PublishedDocument, PublishedTimes, SAMPLES, enveloped, relayed,
};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, MeasurePlan, medians, timed};
use crate::team::{LOG, TeamMember, TeamSeat};

/// A line as the report has it without what the seal says: its time, and a text of 40 letters.
pub(super) const LINE: [u8; 48] =
    *b"\x00\x01\x02\x03\x04\x05\x06\x07ridge line is clear, we are moving on, 9";
/// The furthest that a document is carried.
pub(super) const HOPS: usize = 7;
/// The bytes that a message to a neighbour fills, on a link that carries as much.
const MESSAGE_BYTES: usize = 1000;

/// How the origin is, without the frame around it.
pub(super) fn vitals() -> Result<Vec<u8>> {
    let vitals = Vitals {
        time_ms: 1_790_000_000_000,
        activity: Activity::Moving,
        alerts: 0,
        battery_percent: Some(80),
        heart_rate: Some(71),
        last: None,
        callsign: Some("ALPHA-1".into()),
    };
    let mut body = Vec::new();
    encode(&Body::Vitals(vitals), &mut body).map_err(|_| BenchFailure::broken("a document"))?;
    Ok(body)
}

/// Of a chain, both ends are members, and those between them have no keys.
pub(super) fn keeper(slot: usize, hops: usize) -> ShelfKeeper {
    if slot == 0 || slot == hops { ShelfKeeper::Member } else { ShelfKeeper::Relay }
}

/// An origin, relays without keys behind it, and a reader at the end.
pub(super) struct SyncChain {
    members: Vec<TeamMember>,
}

impl SyncChain {
    pub(super) fn new(hops: usize) -> Result<Self> {
        let seat = |slot: usize| TeamSeat {
            slot: slot as u16,
            members: hops as u16 + 1,
            keeper: keeper(slot, hops),
            message_bytes: MESSAGE_BYTES,
        };
        let members = (0..=hops).map(|slot| TeamMember::new(seat(slot))).collect::<Result<_>>()?;
        Ok(Self { members })
    }

    /// Seals the documents that the origin holds.
    pub(super) fn build(&mut self, lines: u64) -> Result<usize> {
        let Some(origin) = self.members.first_mut() else { return Ok(0) };
        let mut bytes = origin.seal(DataType::VITALS, &vitals()?)?.len();
        for _ in 0..lines {
            bytes += origin.seal(LOG, &LINE)?.len();
        }
        Ok(bytes)
    }

    /// All of it sealed anew, and brought to the reader.
    fn sync(&mut self, lines: u64) -> Result<u64> {
        if let Some(origin) = self.members.first_mut() {
            origin.write(DataType::VITALS, &vitals()?)?;
            for _ in 0..lines {
                origin.write(LOG, &LINE)?;
            }
        }
        self.carry()
    }

    /// One line more.
    fn add(&mut self, data_type: DataType) -> Result<u64> {
        if let Some(origin) = self.members.first_mut() {
            origin.write(data_type, &LINE)?;
        }
        self.carry()
    }

    /// Each machine hands on what it has taken; how many frames the reader has taken since it
    /// started.
    fn carry(&mut self) -> Result<u64> {
        for at in 1..self.members.len() {
            let [before, machine, ..] = self.members.get_mut(at - 1..).unwrap_or_default() else {
                break;
            };
            let by = DocumentNeighbour { slot: before.slot, tag: before.tag, is_proven: true };
            while let Some(telling) = before.agent.next_telling(0, OutboxScope::All) {
                machine.agent.hear(by, &telling.message)?;
            }
        }
        let Some(reader) = self.members.last_mut() else { return Ok(0) };
        while reader.agent.next_telling(0, OutboxScope::All).is_some() {}
        Ok(reader.agent.counters().taken)
    }
}

/// The report's node and its neighbour.
struct SyncBaseline {
    own: GossipDocument,
    sent: usize,
    other: GossipDocument,
    cipher: ChaCha,
}

impl SyncBaseline {
    fn new(sample: &PublishedDocument) -> Result<Self> {
        let cipher = ChaCha::new().ok_or_else(|| BenchFailure::broken("the recipe"))?;
        let own = GossipDocument::with_chats(sample.chats);
        Ok(Self { own, sent: sample.chats_sent, other: GossipDocument::new(8), cipher })
    }

    fn build(&self) -> Vec<u8> {
        self.own.build(self.sent)
    }

    fn build_encrypted(&self) -> Option<Vec<u8>> {
        self.cipher.seal(&self.build())
    }

    fn sync(&mut self) -> Option<()> {
        let copy = self.build().clone();
        self.other.merge(GossipDocument::read(&copy)?);
        Some(())
    }

    fn sync_encrypted(&mut self) -> Option<()> {
        let copy = self.build_encrypted()?.clone();
        self.take(&copy)
    }

    fn sync_relayed(&mut self) -> Option<()> {
        let mut carried = enveloped(&self.build_encrypted()?);
        (1..HOPS).for_each(|_| carried = relayed(&carried));
        self.take(carried.get(crate::baseline::mesh::RELAY_BYTES..)?)
    }

    fn take(&mut self, sealed: &[u8]) -> Option<()> {
        self.other.merge(GossipDocument::read(&self.cipher.open(sealed)?)?);
        Some(())
    }
}

pub(super) fn tables(plan: &MeasurePlan) -> Result<Vec<BookTable>> {
    let mut whole = BookTable::new(
        "Build and sync of a whole document",
        "Sync: built, copied, read and merged by a neighbour; over 7 hops six nodes pass it \
               on. Baseline: the report's format and recipe, in memory. Sealane: the same lines \
               and status as registers of their origin, a frame of class C each, all sealed anew; \
               the neighbour checks and opens each once and keeps it in its store; the six relays \
               keep them too, without keys. What is not encrypted has no class here.",
        vec![],
    );
    let mut more = BookTable::new(
        "One line of chat more, built and brought to a neighbour",
        "Baseline: the whole document, which is how the report's nodes tell a change. \
               Sealane: the one frame; in a group chat is signed, which is the last row.",
        vec![],
    );
    for sample in SAMPLES {
        let PublishedDocument { name, bytes, published, .. } = sample;
        let times = measure_sample(plan, &sample)?.map(BenchFigure::ns);
        let [plain, encrypted, plain_sync, encrypted_sync, relayed, ours @ ..] = times;
        let [ours, ours_sync, ours_relayed, ours_line, ours_signed] = ours;
        let row = |what: &str, us: Option<fn(PublishedTimes) -> f64>| BookRow {
            published: published.zip(us).map(|(times, us)| BenchFigure::ns(us(times) * 1e3)),
            ..BookRow::new(format!("{name}, {bytes} B, {what}"))
        };
        whole.rows.extend([
            row("build, plain", Some(|of| of.build)).baseline(plain),
            row("build, encrypted", Some(|of| of.build_encrypted))
                .baseline(encrypted)
                .sealane(ours),
            row("sync, plain", Some(|of| of.sync)).baseline(plain_sync),
            row("sync, encrypted", Some(|of| of.sync_encrypted))
                .baseline(encrypted_sync)
                .sealane(ours_sync),
            row("over 7 hops", None).baseline(relayed).sealane(ours_relayed),
        ]);
        let row = |what: &str| {
            BookRow::new(format!("beside {name}, {bytes} B{what}")).baseline(encrypted_sync)
        };
        more.rows.push(row("").sealane(ours_line));
        if published.is_none() {
            more.rows.push(row(", signed").sealane(ours_signed));
        }
    }
    Ok(vec![whole, more])
}

/// The report's five ways, and ours: built, brought, over all hops, and one line more, also signed.
fn measure_sample(plan: &MeasurePlan, sample: &PublishedDocument) -> Result<[f64; 10]> {
    let recipe = SyncBaseline::new(sample)?;
    let [mut plain, mut encrypted, mut relaying] =
        [SyncBaseline::new(sample)?, SyncBaseline::new(sample)?, SyncBaseline::new(sample)?];
    let [mut built, mut synced, mut line, mut signed] =
        [SyncChain::new(1)?, SyncChain::new(1)?, SyncChain::new(1)?, SyncChain::new(1)?];
    let mut relayed = SyncChain::new(HOPS)?;
    let lines = sample.chats.min(sample.chats_sent as u64);
    let works = relaying.sync_relayed().is_some() && encrypted.sync_encrypted().is_some();
    let all = lines + 1;
    let ours = (synced.sync(lines)?, relayed.sync(lines)?);
    if !works || ours != (all, all) || signed.add(DataType::CHAT)? != 1 {
        return Err(BenchFailure::broken("bringing a document to a neighbour"));
    }
    let variants = [
        timed(|| _ = black_box(black_box(&recipe).build())),
        timed(|| _ = black_box(black_box(&recipe).build_encrypted())),
        timed(|| _ = black_box(plain.sync())),
        timed(|| _ = black_box(encrypted.sync_encrypted())),
        timed(|| _ = black_box(relaying.sync_relayed())),
        timed(|| _ = black_box(built.build(lines).is_ok())),
        timed(|| _ = black_box(synced.sync(lines).is_ok())),
        timed(|| _ = black_box(relayed.sync(lines).is_ok())),
        timed(|| _ = black_box(line.add(LOG).is_ok())),
        timed(|| _ = black_box(signed.add(DataType::CHAT).is_ok())),
    ];
    Ok(medians(plan, variants))
}
