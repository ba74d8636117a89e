//! Each variant of each step once, by the call that the product makes.

use std::hint::black_box;

use sealane_codec::Codec;
use sealane_frame::{
    AUTHENTICATED_BYTES, Compression, FrameBuf, LinkContext, SlotRing, forward_compact_in_place,
    forward_in_place, open_stored, seal_compact, seal_frame,
};
use sealane_message::Value;
use sealane_message::limits::MAX_FRAME_BYTES;
use sealane_seal::{Class, Epoch, Form, Suite};

use super::step::{Coder, Press, Step};
use super::way::{compression_name, suite_name};
use crate::measure::{self, Cost, Plan, Variant};
use crate::members::{Members, RELAY, SENDER};

/// One variant of one step.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// The step.
    pub step: Step,
    /// What it is given, or what gives it: mean bytes of a message before and after.
    pub bytes: (f64, f64),
    /// Its name, its time and its allocations.
    pub cost: Cost,
}

/// The byte of a full frame that says how many hops are left: `spec/frame.md`.
const HOPS_AT: usize = 16;
const CODECS: [Codec; 4] = [Codec::Json, Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords];
const SEALS: [(Class, Suite); 5] = [
    (Class::Authenticated, Suite::Aes256Gcm),
    (Class::Group, Suite::Aes256Gcm),
    (Class::Group, Suite::ChaCha20Poly1305),
    (Class::Signed, Suite::Aes256Gcm),
    (Class::Peer, Suite::Aes256Gcm),
];

struct Row<'a> {
    step: Step,
    bytes: (f64, f64),
    variant: Variant<'a>,
}

/// Times all variants of all steps in turns.
pub(super) fn measure(
    plan: &Plan,
    sample: &[Value],
    progress: &mut dyn FnMut(f64),
) -> Vec<StepRow> {
    let bodies: Vec<Vec<u8>> = encoded(Codec::Cbor, sample);
    let mut rows = vec![];
    for codec in CODECS {
        rows.extend(codecs(codec, sample));
    }
    for codec in [Codec::Json, Codec::Cbor] {
        for compression in [Compression::Lz4, Compression::Zstd] {
            rows.extend(presses(codec, compression, encoded(codec, sample)));
        }
    }
    for (class, suite) in SEALS {
        rows.extend(seals(class, suite, &bodies));
    }
    rows.extend(hops(&bodies).into_iter().flatten());
    let kinds: Vec<(Step, (f64, f64))> = rows.iter().map(|row| (row.step, row.bytes)).collect();
    let variants = rows.into_iter().map(|row| row.variant).collect();
    let costs = measure::in_turns(plan, variants, progress);
    let mut rows: Vec<StepRow> = kinds
        .into_iter()
        .zip(costs)
        .map(|((step, bytes), cost)| StepRow { step, bytes, cost })
        .collect();
    rows.sort_by_key(|row| row.step);
    rows
}

fn encoded(codec: Codec, sample: &[Value]) -> Vec<Vec<u8>> {
    let mut coder = Coder::new(codec);
    let encode = |value| {
        let mut bytes = Vec::new();
        coder.encode(value, &mut bytes);
        bytes
    };
    sample.iter().map(encode).collect()
}

fn mean(all: &[Vec<u8>]) -> f64 {
    all.iter().map(Vec::len).sum::<usize>() as f64 / all.len().max(1) as f64
}

fn codecs(codec: Codec, sample: &[Value]) -> Vec<Row<'_>> {
    // Records define their structures in the first round; those that are measured know them.
    let (mut encoder, mut decoder) = (Coder::new(codec), Coder::new(codec));
    let mut once = |encoder: &mut Coder| {
        let write = |value| {
            let mut bytes = Vec::new();
            encoder.encode(value, &mut bytes);
            bytes
        };
        let all: Vec<Vec<u8>> = sample.iter().map(write).collect();
        for bytes in &all {
            drop(decoder.decode(bytes));
        }
        all
    };
    once(&mut encoder);
    let all = once(&mut encoder);
    let (bytes, mut out) = (mean(&all), Vec::new());
    let encode = Variant::new(codec.name(), sample.len(), move || {
        for value in sample {
            out.clear();
            encoder.encode(black_box(value), &mut out);
            black_box(&out);
        }
    });
    let decode = Variant::new(codec.name(), sample.len(), move || {
        for bytes in &all {
            black_box(decoder.decode(black_box(bytes)).is_ok());
        }
    });
    vec![
        Row { step: Step::Encode, bytes: (bytes, bytes), variant: encode },
        Row { step: Step::Decode, bytes: (bytes, bytes), variant: decode },
    ]
}

fn presses<'a>(codec: Codec, compression: Compression, bodies: Vec<Vec<u8>>) -> Vec<Row<'a>> {
    let (Some(mut press), Some(mut reader)) = (Press::new(compression), Press::new(compression))
    else {
        return vec![];
    };
    let squeeze = |body: &Vec<u8>| {
        let mut out = Vec::new();
        press.compress(body, &mut out);
        out
    };
    let pressed: Vec<Vec<u8>> = bodies.iter().map(squeeze).collect();
    let bytes = (mean(&bodies), mean(&pressed));
    let name = format!("{} of {}", compression_name(compression), codec.name());
    let (count, mut out, mut opened) = (bodies.len(), Vec::new(), Vec::new());
    let compress = Variant::new(&name, count, move || {
        for body in &bodies {
            out.clear();
            press.compress(black_box(body), &mut out);
            black_box(&out);
        }
    });
    let decompress = Variant::new(&name, count, move || {
        for bytes in &pressed {
            opened.clear();
            reader.decompress(black_box(bytes), &mut opened);
            black_box(&opened);
        }
    });
    vec![
        Row { step: Step::Compress, bytes, variant: compress },
        Row { step: Step::Decompress, bytes, variant: decompress },
    ]
}

/// Sealed alone, sealed into a frame of each form, and opened from a store. There are no rows where
/// a body is too long to be sealed.
fn seals(class: Class, suite: Suite, bodies: &[Vec<u8>]) -> Vec<Row<'_>> {
    let name = format!("class {} {}", class.letter(), suite_name(suite));
    let sealed = sealed_alone(class, suite, bodies, &name);
    let forms = [Form::Full, Form::Compact].map(|form| framed(class, suite, form, bodies, &name));
    let opened = opened(class, suite, bodies, &name);
    sealed.into_iter().chain(forms.into_iter().flatten()).chain(opened).collect()
}

fn sealed_alone<'a>(
    class: Class,
    suite: Suite,
    bodies: &'a [Vec<u8>],
    name: &str,
) -> Option<Row<'a>> {
    /// As many bytes as a frame authenticates.
    const META: &[u8; AUTHENTICATED_BYTES] = &[3; AUTHENTICATED_BYTES];
    let mut members = Members::new(class, suite, Codec::Cbor as u8).ok()?;
    let mut out = Vec::new();
    let mut seal = move |body: &[u8]| {
        out.clear();
        members.reserve(1).ok()?;
        members.sealer.append(class, Form::Full, META, body, &mut out).ok()?;
        Some(black_box(&out).len())
    };
    let after = bodies.iter().map(|body| seal(body)).sum::<Option<usize>>()?;
    let bytes = (mean(bodies), after as f64 / bodies.len() as f64);
    let variant = Variant::new(format!("{name}, no frame"), bodies.len(), move || {
        bodies.iter().for_each(|body| _ = black_box(seal(body)));
    });
    Some(Row { step: Step::Seal, bytes, variant })
}

fn framed<'a>(
    class: Class,
    suite: Suite,
    form: Form,
    bodies: &'a [Vec<u8>],
    name: &str,
) -> Option<Row<'a>> {
    let mut members = Members::new(class, suite, Codec::Cbor as u8).ok()?;
    let mut buf = FrameBuf::new();
    let mut seal = move |body: &[u8]| {
        members.reserve(1).ok()?;
        let frame = frame(&mut members, form, body, &mut buf)?;
        Some(black_box(frame).len())
    };
    let after = bodies.iter().map(|body| seal(body)).sum::<Option<usize>>()?;
    let bytes = (mean(bodies), after as f64 / bodies.len() as f64);
    let form = if form == Form::Full { "full" } else { "compact" };
    let variant = Variant::new(format!("{name}, {form} frame"), bodies.len(), move || {
        bodies.iter().for_each(|body| _ = black_box(seal(body)));
    });
    Some(Row { step: Step::Seal, bytes, variant })
}

/// From a store, which may be read again: a copy of the frame is opened each time.
fn opened<'a>(class: Class, suite: Suite, bodies: &[Vec<u8>], name: &str) -> Option<Row<'a>> {
    let mut members = Members::new(class, suite, Codec::Cbor as u8).ok()?;
    let frames = frames(&mut members, Form::Full, bodies)?;
    let (mut copy, bytes) = (Vec::new(), (mean(&frames), mean(bodies)));
    let variant = Variant::new(format!("{name}, full frame, a copy"), frames.len(), move || {
        for frame in &frames {
            copy.clear();
            copy.extend_from_slice(frame);
            let stored = open_stored(&mut members.opener, Epoch(0), &mut copy);
            black_box(stored.is_ok());
        }
    });
    Some(Row { step: Step::Open, bytes, variant })
}

fn frame<'b>(
    members: &mut Members,
    form: Form,
    body: &[u8],
    buf: &'b mut FrameBuf,
) -> Option<&'b mut [u8]> {
    let Members { sealer, fields, dictionary, roster, .. } = members;
    let (next_hop, previous_hop) = (RELAY, SENDER);
    let link = LinkContext { dictionary, roster, next_hop, previous_hop };
    match form {
        Form::Full => seal_frame(sealer, fields, body, buf).ok(),
        Form::Compact => seal_compact(sealer, fields, body, &link, buf).ok(),
    }
}

fn frames(members: &mut Members, form: Form, bodies: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let mut buf = FrameBuf::new();
    members.reserve(bodies.len() as u64).ok()?;
    let frame = |body: &Vec<u8>| Some(frame(members, form, body, &mut buf)?.to_vec());
    bodies.iter().map(frame).collect()
}

/// A link in memory, and a relay on each form.
fn hops<'a>(bodies: &[Vec<u8>]) -> Option<Vec<Row<'a>>> {
    let make = || Members::new(Class::Group, Suite::Aes256Gcm, Codec::Cbor as u8).ok();
    let mut full = frames(&mut make()?, Form::Full, bodies)?;
    let mut compact = frames(&mut make()?, Form::Compact, bodies)?;
    let (bytes, small, carried) = (mean(&full), mean(&compact), full.clone());
    let mut ring = SlotRing::new(1, MAX_FRAME_BYTES);
    let carry = Variant::new("a slot in memory, full frame", full.len(), move || {
        for frame in &carried {
            black_box(ring.push(black_box(frame)).is_ok());
            black_box(ring.front_mut());
            ring.release(1);
        }
    });
    let relay_full = Variant::new("full frame", full.len(), move || {
        for frame in &mut full {
            // It would have no hops left otherwise; the byte lies in the line that is touched.
            if let Some(hops) = frame.get_mut(HOPS_AT) {
                *hops = 15;
            }
            black_box(forward_in_place(frame, RELAY, RELAY).is_ok());
        }
    });
    let relay_compact = Variant::new("compact frame", compact.len(), move || {
        for frame in &mut compact {
            if let Some(first) = frame.first_mut() {
                *first |= 15;
            }
            black_box(forward_compact_in_place(frame, 0).is_ok());
        }
    });
    Some(vec![
        Row { step: Step::Carry, bytes: (bytes, bytes), variant: carry },
        Row { step: Step::Relay, bytes: (bytes, bytes), variant: relay_full },
        Row { step: Step::Relay, bytes: (small, small), variant: relay_compact },
    ])
}
