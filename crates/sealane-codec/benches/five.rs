//! Size and cost of the five messages in each codec, beside what most programs would use.
//!
//! Rounds are interleaved, so that a disturbance hits every row alike; the first are warm-up; the
//! table gives medians. `cargo bench -p sealane-codec`

#[path = "../tests/it/shared/five.rs"]
mod five;

use std::hint::black_box;
use std::time::{Duration, Instant};

use five::FIVE;
use sealane_codec::{Codec, Transcoder, decode, encode, records};

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 41;
const CALLS: u32 = 2000;

struct Row {
    name: &'static str,
    bytes: usize,
    steps: [Step; 3],
}

/// A timed step, and each round's time per call in nanoseconds.
struct Step {
    work: Box<dyn FnMut()>,
    rounds: Vec<f64>,
}

impl Step {
    fn new(work: impl FnMut() + 'static) -> Self {
        Step { work: Box::new(work), rounds: Vec::new() }
    }

    fn round(&mut self) {
        let started = Instant::now();
        (0..CALLS).for_each(|_| (self.work)());
        self.rounds.push(nanoseconds(started.elapsed()) / f64::from(CALLS));
    }

    fn median(&mut self) -> f64 {
        let warm = &mut self.rounds[WARM_UP_ROUNDS..];
        warm.sort_by(f64::total_cmp);
        warm[warm.len() / 2]
    }
}

fn main() {
    println!("nanoseconds per message, median of {ROUNDS} interleaved rounds of {CALLS} calls");
    for (message, json) in FIVE {
        let mut rows = vec![baseline_json(json), baseline_msgpack(json)];
        rows.extend([Codec::Json, Codec::MsgPack, Codec::Cbor].map(|codec| ours(codec, json)));
        rows.push(warm_records(json));
        for _ in 0..WARM_UP_ROUNDS + ROUNDS {
            rows.iter_mut().flat_map(|row| &mut row.steps).for_each(Step::round);
        }
        println!(
            "\n{message:24} {:>6} {:>8} {:>8} {:>10}",
            "bytes", "encode", "decode", "translate"
        );
        for row in &mut rows {
            let [encode, decode, translate] = row.steps.each_mut().map(Step::median);
            println!(
                "{:24} {:>6} {encode:>8.0} {decode:>8.0} {translate:>10.0}",
                row.name, row.bytes
            );
        }
    }
    println!(
        "\ntranslate: check and write in the other of JSON and MessagePack (CBOR to MessagePack)"
    );
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

fn ours(codec: Codec, json: &str) -> Row {
    let value = decode(Codec::Json, json.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    encode(codec, &value, &mut bytes);
    let to = if codec == Codec::MsgPack { Codec::Json } else { Codec::MsgPack };
    let (input, other) = (bytes.clone(), bytes.clone());
    let (mut out, mut translated, mut transcoder) = (Vec::new(), Vec::new(), Transcoder::new());
    Row {
        name: codec.name(),
        bytes: bytes.len(),
        steps: [
            Step::new(move || {
                out.clear();
                encode(codec, black_box(&value), &mut out);
                black_box(&out);
            }),
            Step::new(move || drop(black_box(decode(codec, black_box(&input))))),
            Step::new(move || {
                translated.clear();
                transcoder.transcode(codec, black_box(&other), to, &mut translated).unwrap();
                black_box(&translated);
            }),
        ],
    }
}

fn warm_records(json: &str) -> Row {
    let mut plain = Vec::new();
    Transcoder::new().transcode(Codec::Json, json.as_bytes(), Codec::MsgPack, &mut plain).unwrap();
    let (mut encoder, mut decoder) = (records::Encoder::new(), records::Decoder::new());
    let (mut first, mut warm) = (Vec::new(), Vec::new());
    encoder.transcode(Codec::MsgPack, &plain, &mut first).unwrap();
    encoder.transcode(Codec::MsgPack, &plain, &mut warm).unwrap();
    let mut rewriter = records::Decoder::new();
    decoder.decode(&first).unwrap();
    rewriter.decode(&first).unwrap();
    let (input, other, mut out, mut rewritten) =
        (warm.clone(), warm.clone(), Vec::new(), Vec::new());
    Row {
        name: "msgpack-records, warm",
        bytes: warm.len(),
        steps: [
            Step::new(move || {
                out.clear();
                encoder.transcode(Codec::MsgPack, black_box(&plain), &mut out).unwrap();
                black_box(&out);
            }),
            Step::new(move || drop(black_box(decoder.decode(black_box(&input))))),
            Step::new(move || {
                rewritten.clear();
                rewriter.to_plain(black_box(&other), &mut rewritten).unwrap();
                black_box(&rewritten);
            }),
        ],
    }
}

fn baseline_json(json: &str) -> Row {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    let input = json.to_owned();
    let other = json.to_owned();
    Row {
        name: "serde_json::Value",
        bytes: json.len(),
        steps: [
            Step::new(move || drop(black_box(serde_json::to_vec(black_box(&value))))),
            Step::new(move || {
                drop(black_box(serde_json::from_str::<serde_json::Value>(black_box(&input))));
            }),
            Step::new(move || {
                let value: serde_json::Value = serde_json::from_str(black_box(&other)).unwrap();
                drop(black_box(rmp_serde::to_vec(&value)));
            }),
        ],
    }
}

fn baseline_msgpack(json: &str) -> Row {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    let bytes = rmp_serde::to_vec(&value).unwrap();
    let (input, other) = (bytes.clone(), bytes.clone());
    Row {
        name: "rmp-serde",
        bytes: bytes.len(),
        steps: [
            Step::new(move || drop(black_box(rmp_serde::to_vec(black_box(&value))))),
            Step::new(move || {
                let read = rmp_serde::from_slice::<serde_json::Value>(black_box(&input));
                drop(black_box(read));
            }),
            Step::new(move || {
                let value: serde_json::Value = rmp_serde::from_slice(black_box(&other)).unwrap();
                drop(black_box(serde_json::to_vec(&value)));
            }),
        ],
    }
}
