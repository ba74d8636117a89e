//! `triple-json`: rich messages in three layers of JSON.

use std::hint::black_box;

use sealane_codec::event;
use sealane_seal::Suite;

use super::rich::{self, RichBodyKind, RichEnds};
use super::schema;
use super::{BookReport, BookRow, BookTable, ReportCorrection, ReportName};
use crate::baseline::triple::{self, Base64Text, NestedEncoding, NumberArray, RichRecord};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, MeasurePlan, medians, timed};

/// Sizes of the text in KiB, and the report's microseconds to serialize, deserialize and do both:
/// layers 1, 2 and 3.
const PUBLISHED: [(usize, [[f64; 3]; 3]); 3] = [
    (8, [[3.60, 2.23, 8.36], [44.10, 79.47, 134.19], [123.62, 307.71, 443.82]]),
    (64, [[24.84, 11.83, 42.90], [316.08, 591.47, 952.11], [775.02, 2160.0, 3280.0]]),
    (256, [[92.20, 42.82, 142.01], [1260.0, 2350.0, 3710.0], [3340.0, 8570.0, 12_810.0]]),
];
/// The kilobytes that the report estimates for each layer.
const ESTIMATED_KB: [[usize; 3]; 3] = [[10, 13, 15], [75, 95, 110], [285, 360, 390]];

pub(super) fn report(plan: &MeasurePlan, progress: &mut dyn FnMut(f64)) -> Result<BookReport> {
    let mut sizes = BookTable::new(
        "Size on the wire",
        "Published: estimates; baseline: counted. Sealane: the event in layer 1, and a frame \
               in the full form, sealed, in 2 and 3. The seal says conversation and sender, which \
               the event leaves out.",
        vec![],
    );
    let mut layers = BookTable::new(
        "Each layer alone",
        "Beside layer 1: the event encoded, decoded without copying, and both, owned. The \
               other layers have no counterpart: seal and frame are in the next tables.",
        vec![],
    );
    for (index, ((kib, published), estimated)) in
        PUBLISHED.into_iter().zip(ESTIMATED_KB).enumerate()
    {
        sizes.rows.extend(size_rows(kib, estimated)?);
        layers.rows.extend(layer_rows(plan, kib, published)?);
        progress((index + 1) as f64 / 6.0);
    }
    let mut tables = vec![sizes, layers, schema::table(plan)?];
    tables.extend(rich::tables(plan, &mut |part| progress(0.5 + part / 2.0))?);
    Ok(BookReport {
        name: ReportName::TripleJson,
        title: "rich messages between peers in three layers of JSON",
        about: "Times published are of an Apple M-series machine; only ratios within a column \
                compare.",
        tables,
        corrections: corrections(),
    })
}

fn layers<I: NestedEncoding + serde::Serialize>(kib: usize) -> [Vec<u8>; 3] {
    let rich = RichRecord::new(kib).to_json();
    let encrypted = triple::encrypt::<I>(kib, &rich);
    let wire = triple::wrap::<I>(&encrypted);
    [rich, encrypted, wire]
}

fn size_rows(kib: usize, estimated_kb: [usize; 3]) -> Result<Vec<BookRow>> {
    let mut ends = RichEnds::new(Suite::Aes256Gcm)?;
    let event = rich::event(kib, RichBodyKind::Ascii);
    let frame =
        ends.round_trip(&event, false).ok_or_else(|| BenchFailure::broken("the event's way"))?;
    let mut body = Vec::new();
    event::encode(&event, &mut body).map_err(|_| BenchFailure::broken("the event"))?;
    let ours = [body.len(), frame, frame];
    let mut rows = vec![];
    for (layer, (bytes, kb)) in layers::<NumberArray>(kib).iter().zip(estimated_kb).enumerate() {
        let factor = bytes.len() as f64 / (kib << 10) as f64;
        let ours = ours.get(layer).copied().unwrap_or(frame);
        rows.push(
            BookRow::new(format!("{kib} KiB, layer {}", layer + 1))
                .published(BenchFigure::bytes(kb * 1000))
                .baseline(BenchFigure::bytes(bytes.len()))
                .sealane(BenchFigure::bytes(ours))
                .note(format!("{factor:.2} times the text")),
        );
    }
    let [.., base64] = layers::<Base64Text>(kib);
    rows.push(
        BookRow::new(format!("{kib} KiB, layer 3 if it were {}", Base64Text::NAME))
            .baseline(BenchFigure::bytes(base64.len()))
            .sealane(BenchFigure::bytes(frame)),
    );
    Ok(rows)
}

fn layer_rows(plan: &MeasurePlan, kib: usize, published: [[f64; 3]; 3]) -> Result<Vec<BookRow>> {
    let (value, event) = (RichRecord::new(kib), rich::event(kib, RichBodyKind::Ascii));
    let [rich, encrypted, wire] = layers::<NumberArray>(kib);
    let (mut out, mut body) = (Vec::new(), Vec::new());
    event::encode(&event, &mut body).map_err(|_| BenchFailure::broken("the event"))?;
    let variants = [
        timed(|| _ = black_box(value.to_json())),
        timed(|| _ = black_box(RichRecord::from_json(black_box(&rich)))),
        timed(|| _ = black_box(RichRecord::from_json(&value.to_json()))),
        timed(|| _ = black_box(triple::encrypt::<NumberArray>(kib, &rich))),
        timed(|| _ = black_box(triple::decrypt::<NumberArray>(&encrypted))),
        timed(|| {
            black_box(triple::decrypt::<NumberArray>(&triple::encrypt::<NumberArray>(kib, &rich)));
        }),
        timed(|| _ = black_box(triple::wrap::<NumberArray>(&encrypted))),
        timed(|| _ = black_box(triple::unwrap::<NumberArray>(&wire))),
        timed(|| {
            black_box(triple::unwrap::<NumberArray>(&triple::wrap::<NumberArray>(&encrypted)));
        }),
        timed(|| {
            out.clear();
            black_box(event::encode(black_box(&event), &mut out).is_ok());
        }),
        timed(|| _ = black_box(event::decode(black_box(&body)).is_ok())),
        timed(|| {
            let mut out = Vec::new();
            black_box(event::encode(&event, &mut out).is_ok());
            black_box(event::decode(&out).map(sealane_message::event::Event::into_owned).is_ok());
        }),
    ];
    Ok(rows_of(kib, published, medians(plan, variants).map(BenchFigure::ns)))
}

fn rows_of(kib: usize, published: [[f64; 3]; 3], ns: [BenchFigure; 12]) -> Vec<BookRow> {
    let mut rows = vec![];
    for (layer, us) in published.into_iter().enumerate() {
        for (step, what) in ["serialize", "deserialize", "round trip"].into_iter().enumerate() {
            let us = us.get(step).copied().unwrap_or(0.0);
            let row = BookRow::new(format!("{kib} KiB, layer {}, {what}", layer + 1))
                .published(BenchFigure::ns(us * 1e3))
                .baseline(ns[layer * 3 + step]);
            rows.push(if layer == 0 { row.sealane(ns[9 + step]) } else { row });
        }
    }
    rows
}

fn corrections() -> Vec<ReportCorrection> {
    super::corrections([
        (
            "8 KiB become 17 KB (2.1 times)",
            "104,394 bytes, 12.7 times: bytes in JSON are arrays of decimal numbers, and base64 \
             stands nowhere",
        ),
        ("layers encode by base64", "they do not: base64 would make 15,810 bytes"),
        (
            "performance degrades exponentially with size",
            "it is linear in size (32 times the bytes take 29 times as long) and geometric only in \
             the number of layers",
        ),
        (
            "serialize of a layer includes the layers below it",
            "each group times its own layer; the inner ones are made before the clock starts",
        ),
        (
            "ChaCha20 is not post-quantum resistant, so that the inner layer can go",
            "both ciphers are fine; the key exchange is what matters. Transport encryption ends at \
             every hop and every store, the seal at the reader",
        ),
        (
            "bincode is the target",
            "it is unmaintained (RUSTSEC-2025-0141); events are deterministic CBOR",
        ),
    ])
}
