//! `gateway-codec`: five messages in JSON and MessagePack.

use std::hint::black_box;

use sealane_codec::{Codec, decode, encode, records};
use sealane_message::Value;

use super::{BookReport, BookRow, BookTable, ReportCorrection, ReportName, corrections};
use crate::baseline::map16::{FIVE, read_copied, write};
use crate::failure::{BenchFailure, Result};
use crate::measure::{self, BenchFigure, FigureUnit, MeasurePlan, VariantCost, timed};

/// The report's figures for each message: bytes of JSON and MessagePack, and milliseconds for
/// 100,000 calls: encode JSON, MessagePack, decode JSON, MessagePack.
const PUBLISHED: [([usize; 2], [f64; 4]); 5] = [
    ([13, 11], [58.4, 36.2, 77.7, 94.6]),
    ([100, 81], [87.7, 74.0, 158.6, 153.3]),
    ([274, 226], [170.6, 195.1, 393.8, 336.6]),
    ([196, 175], [169.2, 173.5, 279.9, 282.6]),
    ([231, 208], [108.4, 124.6, 157.4, 165.2]),
];
/// Nanoseconds of a call, of milliseconds for 100,000.
const NS: f64 = 10.0;

/// One message in the forms that are compared.
struct MessageForms {
    value: Value,
    serde: serde_json::Value,
    json: Vec<u8>,
    map16: Vec<u8>,
    short: Vec<u8>,
    cbor: Vec<u8>,
    /// The second time, when a reader knows the keys.
    records: Vec<u8>,
    decoder: records::Decoder,
    encoder: records::Encoder,
}

impl MessageForms {
    fn of(json: &str) -> Result<Self> {
        let broken = || BenchFailure::broken("a codec");
        let value = decode(Codec::Json, json.as_bytes()).map_err(|_| broken())?;
        let serde = serde_json::from_str(json).map_err(|_| broken())?;
        let in_codec = |codec| {
            let mut out = Vec::new();
            encode(codec, &value, &mut out);
            out
        };
        let (short, cbor) = (in_codec(Codec::MsgPack), in_codec(Codec::Cbor));
        let (mut map16, mut first, mut records) = (Vec::new(), Vec::new(), Vec::new());
        write(&value, &mut map16);
        let (mut encoder, mut decoder) = (records::Encoder::new(), records::Decoder::new());
        encoder.encode(&value, &mut first);
        encoder.encode(&value, &mut records);
        decoder.decode(&first).map_err(|_| broken())?;
        let json = json.as_bytes().to_vec();
        Ok(Self { value, serde, json, map16, short, cbor, records, decoder, encoder })
    }
}

pub(super) fn report(plan: &MeasurePlan, progress: &mut dyn FnMut(f64)) -> Result<BookReport> {
    let mut sizes = BookTable::new("Size", "", vec![]);
    let mut times = BookTable::new(
        "Time of one message",
        "Published: Node.js, its own JSON and msgpackr. Baseline here: serde_json, and \
               map16 MessagePack whose reader copies first, as the gateway's does.",
        vec![],
    );
    let mut sums = GatewaySizeTotals::default();
    for (index, ((name, json), (bytes, ms))) in FIVE.iter().zip(PUBLISHED).enumerate() {
        let forms = MessageForms::of(json)?;
        sums.json_bytes += forms.json.len();
        sums.map16_bytes += forms.map16.len();
        sizes.rows.extend(size_rows(name, &forms, bytes));
        let costs = measure_forms(plan, forms);
        times.rows.extend(time_rows(name, &costs, ms));
        progress((index + 1) as f64 / FIVE.len() as f64);
    }
    Ok(BookReport {
        name: ReportName::GatewayCodec,
        title: "five messages of a WebSocket gateway in JSON and MessagePack",
        about: "The report's sizes come out byte for byte; times are of another language, so that \
                only ratios within a column compare.",
        tables: vec![sizes, times],
        corrections: corrected(sums),
    })
}

fn size_rows(name: &str, forms: &MessageForms, [json, msgpack]: [usize; 2]) -> Vec<BookRow> {
    let row = |codec: &str| BookRow::new(format!("{name}, {codec}"));
    let bytes = |bytes: &[u8]| BenchFigure::bytes(bytes.len());
    vec![
        row("JSON").published(BenchFigure::bytes(json)).baseline(bytes(&forms.json)),
        row("MessagePack")
            .published(BenchFigure::bytes(msgpack))
            .baseline(bytes(&forms.map16))
            .sealane(bytes(&forms.short)),
        row("CBOR").baseline(bytes(&forms.map16)).sealane(bytes(&forms.cbor)),
        row("MessagePack records, warm")
            .baseline(bytes(&forms.map16))
            .sealane(bytes(&forms.records)),
    ]
}

/// Baselines first, each encoding before its decoding.
fn measure_forms(plan: &MeasurePlan, forms: MessageForms) -> Vec<VariantCost> {
    let MessageForms { value, serde, json, map16, short, cbor, records, mut decoder, mut encoder } =
        forms;
    let (value, serde, json, map16) = (&value, &serde, &json, &map16);
    let (short, cbor, records) = (&short, &cbor, &records);
    let (mut out, mut plain, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    let mut variants = vec![
        timed(|| _ = black_box(serde_json::to_vec(black_box(serde)))),
        timed(|| {
            let read = serde_json::from_slice::<serde_json::Value>(black_box(json));
            black_box(read.is_ok());
        }),
        timed(move || {
            out.clear();
            write(black_box(value), &mut out);
            black_box(&out);
        }),
        timed(|| _ = black_box(read_copied(black_box(map16)))),
    ];
    for (codec, bytes) in [(Codec::Json, json), (Codec::MsgPack, short), (Codec::Cbor, cbor)] {
        let mut out = std::mem::take(&mut plain);
        variants.push(timed(move || {
            out.clear();
            encode(codec, black_box(value), &mut out);
            black_box(&out);
        }));
        variants.push(timed(move || _ = black_box(decode(codec, black_box(bytes)))));
    }
    variants.push(timed(move || {
        warm.clear();
        encoder.encode(black_box(value), &mut warm);
        black_box(&warm);
    }));
    variants.push(timed(move || _ = black_box(decoder.decode(black_box(records)))));
    measure::in_turns(plan, variants, &mut |_| ())
}

fn time_rows(name: &str, costs: &[VariantCost], ms: [f64; 4]) -> Vec<BookRow> {
    let ns = |at: usize| BenchFigure::ns(costs.get(at).map_or(0.0, |cost| cost.ns.median));
    let mut rows = vec![];
    let codecs = [("JSON", 0, 4), ("MessagePack", 2, 6), ("CBOR", 2, 8), ("records, warm", 2, 10)];
    for (codec, baseline, ours) in codecs {
        for (step, what) in ["encode", "decode"].into_iter().enumerate() {
            let row = BookRow::new(format!("{name}, {codec} {what}"))
                .baseline(ns(baseline + step))
                .sealane(ns(ours + step));
            let column = match codec {
                "JSON" => Some(step * 2),
                "MessagePack" => Some(step * 2 + 1),
                _ => None,
            };
            let published = column.and_then(|at| ms.get(at));
            rows.push(match published {
                Some(ms) => row.published(BenchFigure::ns(ms * NS)),
                None => row.note("the baseline is map16 MessagePack"),
            });
        }
    }
    rows
}

/// The bytes of all messages.
#[derive(Default)]
struct GatewaySizeTotals {
    json_bytes: usize,
    map16_bytes: usize,
}

fn corrected(sums: GatewaySizeTotals) -> Vec<ReportCorrection> {
    let (json, map16) = (sums.json_bytes, sums.map16_bytes);
    let saved = (json - map16) as f64 / FIVE.len() as f64;
    let mean = map16 as f64 / FIVE.len() as f64;
    let part = BenchFigure::of((1.0 - map16 as f64 / json as f64) * 100.0, FigureUnit::Percent);
    corrections([
        (
            "about 140 bytes saved for each message, 1.4 MB/s at 10,000 messages a second",
            &format!(
                "{mean:.1} bytes is what a message takes in MessagePack; {saved:.1} bytes are \
                 saved, {:.3} MB/s",
                saved * 0.01
            ),
        ),
        (
            "an average reduction of 14.5 %",
            &format!("{part} of all bytes; 14.5 % is the mean of five percentages"),
        ),
        (
            "a message needs 11 bytes where it could take 9",
            "msgpackr writes every map with a head of three bytes; the short head saves two for \
             each map, and every reader knows it",
        ),
        (
            "5 to 10 % more throughput",
            "the report's own totals are 1.04, 1.08, 1.06, 0.98 and 0.92 times JSON's; its reader \
             copies each buffer first",
        ),
    ])
}
