//! `mesh-encryption`: documents of a radio mesh, encrypted.

mod carry;
mod hour;
mod rate;
mod share;
mod storm;
mod sync;

use std::hint::black_box;

use sealane_frame::{FrameBuf, LinkContext, open_compact, seal_compact};
use sealane_mesh::HOP_SEAL_BYTES;
use sealane_seal::{Class, Suite};

use super::{BookReport, BookRow, BookTable, ReportCorrection, ReportName, corrections};
use crate::baseline::mesh::{BaselineAes, ChaCha, PublishedDocument, PublishedTimes, SAMPLES};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, BenchHost, MeasurePlan, medians, timed};
use crate::members::{BenchMembers, RELAY, SENDER, documents};

/// The bytes that the report's encryption adds.
const RECIPE_BYTES: usize = 30;
/// Bits a second that a link of Bluetooth LE carries: 1M without longer packets, 1M, and 2M.
const LINKS: [(&str, f64); 3] =
    [("BLE 1M, 27-byte packets", 237e3), ("BLE 1M", 791e3), ("BLE 2M", 1402e3)];

/// Sealed for a radio link in the compact form, and opened.
struct CompactSealBench {
    members: BenchMembers,
    buf: FrameBuf,
}

impl CompactSealBench {
    fn new(class: Class, suite: Suite) -> Result<Self> {
        let members = BenchMembers::new(class, suite, 0, documents())?;
        Ok(Self { members, buf: FrameBuf::new() })
    }

    fn seal(&mut self, document: &[u8]) -> Option<&mut [u8]> {
        self.members.ready().ok()?;
        let BenchMembers { sealer, fields, binding, dictionary, roster, .. } = &mut self.members;
        let (next_hop, previous_hop) = (RELAY, SENDER);
        let link = LinkContext { dictionary, roster, next_hop, previous_hop };
        seal_compact(sealer, fields, binding, document, &link, &mut self.buf).ok()
    }

    fn both(&mut self, document: &[u8]) -> Option<usize> {
        self.members.ready().ok()?;
        let BenchMembers { sealer, opener, fields, binding, dictionary, roster, sessions, .. } =
            &mut self.members;
        let (next_hop, previous_hop) = (RELAY, SENDER);
        let link = LinkContext { dictionary, roster, next_hop, previous_hop };
        let frame = seal_compact(sealer, fields, binding, document, &link, &mut self.buf).ok()?;
        let received = open_compact(opener, binding, frame, &link).ok()?;
        let length = black_box(received.body).len();
        sessions.accept(received).ok()?;
        Some(length)
    }
}

pub(super) fn report(plan: &MeasurePlan, progress: &mut dyn FnMut(f64)) -> Result<BookReport> {
    let mut tables = sealing(plan)?;
    tables.push(rate::table(plan)?);
    progress(0.2);
    tables.extend(sync::tables(plan)?);
    progress(0.5);
    tables.push(sizes()?);
    tables.push(share::table(plan)?);
    tables.extend(carry::tables()?);
    progress(0.6);
    tables.push(storm::table(plan)?);
    progress(0.7);
    tables.extend(hour::tables(plan)?);
    progress(1.0);
    Ok(BookReport {
        name: ReportName::MeshEncryption,
        title: "documents of a low-power radio mesh, encrypted",
        about: "The report measured a debug build: run a debug build of this program to see its \
                figures, and a release build for figures to go by.",
        tables,
        corrections: corrected(),
    })
}

/// The time and bytes that encryption adds to a document, by both ciphers.
fn sealing(plan: &MeasurePlan) -> Result<Vec<BookTable>> {
    let mut added = BookTable::new(
        "What encryption adds to one document",
        "Published: the report's overhead, in a debug build. Baseline: RustCrypto's \
               ChaCha20-Poly1305, a random nonce, fresh buffers. Sealane: class C in the compact \
               form, of a sender that announced itself; its session is stored where that is due.",
        vec![],
    );
    let mut ciphers = BookTable::new(
        "AES-256-GCM against ChaCha20-Poly1305",
        "Sealed alone. Baseline: the same recipe with each cipher of RustCrypto.",
        vec![],
    );
    let mut last = 0;
    for PublishedDocument { name, bytes, published, .. } in SAMPLES {
        let [recipe, aes, recipe_both, ours, ours_aes, ours_both] =
            measure_document(plan, bytes)?.map(BenchFigure::ns);
        let row = |what: &str, us: fn(PublishedTimes) -> f64| {
            let row = BookRow::new(format!("{name}, {bytes} B, {what}"));
            match published {
                Some(published) => row.published(BenchFigure::ns(us(published) * 1e3)),
                None => row,
            }
        };
        let sealed = row("seal", |of| of.build_encrypted - of.build);
        added.rows.push(sealed.baseline(recipe).sealane(ours));
        let both = row("seal and open", |of| of.sync_encrypted - of.sync);
        added.rows.push(both.baseline(recipe_both).sealane(ours_both));
        // The report's last two documents are one.
        if bytes != last {
            last = bytes;
            let row = |cipher| BookRow::new(format!("{name}, {bytes} B, {cipher}"));
            ciphers.rows.push(row("ChaCha20").baseline(recipe).sealane(ours));
            ciphers.rows.push(row("AES-256-GCM").baseline(aes).sealane(ours_aes));
        }
    }
    Ok(vec![added, ciphers])
}

fn measure_document(plan: &MeasurePlan, bytes: usize) -> Result<[f64; 6]> {
    let document = vec![7; bytes];
    let broken = || BenchFailure::broken("the recipe");
    let (chacha, aes) = (ChaCha::new().ok_or_else(broken)?, BaselineAes::new().ok_or_else(broken)?);
    let mut ours = CompactSealBench::new(Class::Group, Suite::ChaCha20Poly1305)?;
    let mut ours_aes = CompactSealBench::new(Class::Group, Suite::Aes256Gcm)?;
    let mut both = CompactSealBench::new(Class::Group, Suite::ChaCha20Poly1305)?;
    if both.both(&document) != Some(bytes) || ours.seal(&document).is_none() {
        return Err(BenchFailure::broken("sealing"));
    }
    let document = &document;
    let variants = [
        timed(|| _ = black_box(chacha.seal(black_box(document)))),
        timed(|| _ = black_box(aes.seal(black_box(document)))),
        timed(|| {
            black_box(chacha.seal(document).and_then(|sealed| chacha.open(&sealed)));
        }),
        timed(|| _ = black_box(ours.seal(black_box(document)).is_some())),
        timed(|| _ = black_box(ours_aes.seal(black_box(document)).is_some())),
        timed(|| _ = black_box(both.both(black_box(document)))),
    ];
    Ok(medians(plan, variants))
}

/// The bytes that encryption adds, and their air time.
fn sizes() -> Result<BookTable> {
    let (mut rows, mut added) = (vec![], 0);
    for class in [Class::Authenticated, Class::Group, Class::Signed, Class::Peer] {
        let mut radio = CompactSealBench::new(class, Suite::ChaCha20Poly1305)?;
        // The counter of a sender that has sent for a while takes two bytes.
        let mut last = 0;
        for _ in 0..300 {
            last =
                radio.seal(&[7; 632]).ok_or_else(|| BenchFailure::broken("sealing"))?.len() - 632;
        }
        let row = BookRow::new(format!("bytes added, class {}", class.letter()))
            .published(BenchFigure::bytes(RECIPE_BYTES))
            .baseline(BenchFigure::bytes(RECIPE_BYTES))
            .sealane(BenchFigure::bytes(last));
        if class == Class::Group {
            added = last;
        }
        rows.push(match class {
            Class::Authenticated => row.note("readable, and authentic; the report: nothing"),
            Class::Signed => row.note("with a signature of 64 bytes"),
            Class::Peer => row.note("the report's own form for two peers adds 46"),
            Class::Group => row.note("with sender and its start, counter, type, group and hops"),
        });
    }
    rows.push(
        BookRow::new("bytes added, hop seal").sealane(BenchFigure::bytes(HOP_SEAL_BYTES)).note(
            "the link's, beside each class; by each hop over radio, none over wires and hubs",
        ),
    );
    for (name, bits) in LINKS {
        let air = |bytes: f64| BenchFigure::ns(bytes * 8.0 / bits * 1e9);
        rows.push(
            BookRow::new(format!("632 bytes on the air, {name}"))
                .baseline(air((632 + RECIPE_BYTES) as f64))
                .sealane(air((632 + added) as f64))
                .note("computed from the link's rate"),
        );
    }
    Ok(BookTable::new("Size, and what it is on the air", "", rows))
}

fn corrected() -> Vec<ReportCorrection> {
    let build = BenchHost::here().build;
    corrections([
        (
            "encryption takes 64 to 147 µs",
            &format!(
                "in a debug build; a release build takes 28 to 73 times less (this one is a \
                 {build} build)"
            ),
        ),
        (
            "documents of 10 and of 20 chats",
            "they are one document: a document carries 8 chats, 632 bytes; all 20 make 1,506",
        ),
        (
            "a reduction of 97.1 %",
            "of nothing: to copy 632 bytes is nearly free. What counts is the share of the link's \
             time, which is below 0.1 %",
        ),
        (
            "BLE 4.x carries 1 to 2 Mbit/s",
            "237 kbit/s with 27-byte packets, 791 kbit/s with longer ones, 1,402 kbit/s at 2M",
        ),
        (
            "battery suggests to skip encryption",
            "30 bytes on the air cost far more than the cipher: send less, less often, in fewer \
             bytes. No rule here lowers a class for battery or rate",
        ),
    ])
}
