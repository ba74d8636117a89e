//! Each variant of each step once, by the call that the product makes.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use sealane_codec::Codec;
use sealane_frame::limits::MAX_FRAME_BYTES;
use sealane_frame::{
    AUTHENTICATED_BYTES, FrameBuf, FrameCompression, LinkContext, SlotRing,
    forward_compact_in_place, forward_in_place, open_stored, seal_compact, seal_frame,
};
use sealane_message::Value;
use sealane_seal::{Class, Epoch, Form, Suite};

use super::link::{LinkLengths, LoopbackLink};
use super::step::{CostStep, StepCoder, StepCompressor};
use super::way::{compression_name, suite_name};
use crate::measure::{self, BenchVariant, MeasurePlan, VariantCost};
use crate::members::{BenchMembers, RELAY, SENDER, documents};

/// One variant of one step.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// The step.
    pub step: CostStep,
    /// Mean bytes of a message before and after: the step's input and its output.
    pub bytes: (f64, f64),
    /// Its name, its time and its allocations.
    pub cost: VariantCost,
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

struct StepVariantRow<'a> {
    step: CostStep,
    bytes: (f64, f64),
    variant: BenchVariant<'a>,
    works: StepSuccess,
}

/// Whether a step did its work each time it was timed. Where it did not, there is no row.
#[derive(Clone)]
struct StepSuccess(Rc<Cell<bool>>);

impl StepSuccess {
    fn new() -> Self {
        Self(Rc::new(Cell::new(true)))
    }

    /// Notes a run over the whole sample.
    fn note(&self, all: bool) {
        self.0.set(self.0.get() && all);
    }
}

/// Times all variants of all steps in turns.
pub(super) fn measure(
    plan: &MeasurePlan,
    sample: &[Value],
    progress: &mut dyn FnMut(f64),
) -> Vec<StepRow> {
    let bodies: Vec<Vec<u8>> = encoded(Codec::Cbor, sample);
    let mut rows = vec![];
    for codec in CODECS {
        rows.extend(codecs(codec, sample));
    }
    for codec in [Codec::Json, Codec::Cbor] {
        for compression in [FrameCompression::Lz4, FrameCompression::Zstd] {
            rows.extend(presses(codec, compression, encoded(codec, sample)));
        }
    }
    for (class, suite) in SEALS {
        rows.extend(seals(class, suite, &bodies));
    }
    rows.extend(hops(&bodies).into_iter().flatten());
    rows.extend(wires(&bodies).into_iter().flatten());
    let kinds: Vec<_> = rows.iter().map(|row| (row.step, row.bytes, row.works.clone())).collect();
    let variants = rows.into_iter().map(|row| row.variant).collect();
    let costs = measure::in_turns(plan, variants, progress);
    let mut rows: Vec<StepRow> = kinds
        .into_iter()
        .zip(costs)
        .filter(|((_, _, works), _)| works.0.get())
        .map(|((step, bytes, _), cost)| StepRow { step, bytes, cost })
        .collect();
    rows.sort_by_key(|row| row.step);
    rows
}

fn encoded(codec: Codec, sample: &[Value]) -> Vec<Vec<u8>> {
    let mut coder = StepCoder::new(codec);
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

fn codecs(codec: Codec, sample: &[Value]) -> Vec<StepVariantRow<'_>> {
    // Records define their structures in the first round; those that are measured know them.
    let (mut encoder, mut decoder) = (StepCoder::new(codec), StepCoder::new(codec));
    let mut once = |encoder: &mut StepCoder| {
        let write = |value| {
            let mut bytes = Vec::new();
            encoder.encode(value, &mut bytes);
            bytes
        };
        let all: Vec<Vec<u8>> = sample.iter().map(write).collect();
        // Not the same value in every codec: JSON has bytes as text.
        let is_read = all.iter().all(|bytes| decoder.decode(bytes).is_ok());
        (all, is_read)
    };
    once(&mut encoder);
    let (all, is_read) = once(&mut encoder);
    let (writes, reads) = (StepSuccess::new(), StepSuccess::new());
    writes.note(is_read);
    let decodes = reads.clone();
    let (bytes, mut out) = (mean(&all), Vec::new());
    let encode = BenchVariant::new(codec.name(), sample.len(), move || {
        for value in sample {
            out.clear();
            encoder.encode(black_box(value), &mut out);
            black_box(&out);
        }
    });
    let decode = BenchVariant::new(codec.name(), sample.len(), move || {
        let decode = |bytes: &Vec<u8>| black_box(decoder.decode(black_box(bytes)).is_ok());
        decodes.note(all.iter().map(decode).fold(true, |all, one| all & one));
    });
    vec![
        StepVariantRow {
            step: CostStep::Encode,
            bytes: (bytes, bytes),
            variant: encode,
            works: writes,
        },
        StepVariantRow {
            step: CostStep::Decode,
            bytes: (bytes, bytes),
            variant: decode,
            works: reads,
        },
    ]
}

fn presses<'a>(
    codec: Codec,
    compression: FrameCompression,
    bodies: Vec<Vec<u8>>,
) -> Vec<StepVariantRow<'a>> {
    let (Some(mut press), Some(mut reader)) =
        (StepCompressor::new(compression), StepCompressor::new(compression))
    else {
        return vec![];
    };
    let squeeze = |body: &Vec<u8>| {
        let mut out = Vec::new();
        press.compress(body, &mut out);
        out
    };
    let pressed: Vec<Vec<u8>> = bodies.iter().map(squeeze).collect();
    let mut comes_back = |(bytes, body): (&Vec<u8>, &Vec<u8>)| {
        let mut out = Vec::new();
        reader.decompress(bytes, &mut out);
        out == *body
    };
    let works = StepSuccess::new();
    works.note(pressed.iter().zip(&bodies).all(&mut comes_back));
    let bytes = (mean(&bodies), mean(&pressed));
    let name = format!("{} of {}", compression_name(compression), codec.name());
    let (count, mut out, mut opened) = (bodies.len(), Vec::new(), Vec::new());
    let compress = BenchVariant::new(&name, count, move || {
        for body in &bodies {
            out.clear();
            press.compress(black_box(body), &mut out);
            black_box(&out);
        }
    });
    let decompress = BenchVariant::new(&name, count, move || {
        for bytes in &pressed {
            opened.clear();
            reader.decompress(black_box(bytes), &mut opened);
            black_box(&opened);
        }
    });
    vec![
        StepVariantRow { step: CostStep::Compress, bytes, variant: compress, works: works.clone() },
        StepVariantRow { step: CostStep::Decompress, bytes, variant: decompress, works },
    ]
}

/// Sealed alone, sealed into a frame of each form, and opened from a store. There are no rows where
/// a body is too long to be sealed.
fn seals(class: Class, suite: Suite, bodies: &[Vec<u8>]) -> Vec<StepVariantRow<'_>> {
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
) -> Option<StepVariantRow<'a>> {
    /// As many bytes as a frame authenticates.
    const META: &[u8; AUTHENTICATED_BYTES] = &[3; AUTHENTICATED_BYTES];
    let mut members = members(class, suite)?;
    let mut out = Vec::new();
    let mut seal = move |body: &[u8]| {
        out.clear();
        members.ready().ok()?;
        let BenchMembers { sealer, binding, .. } = &mut members;
        sealer.append(class, Form::Full, binding, META, body, &mut out).ok()?;
        Some(black_box(&out).len())
    };
    let after = bodies.iter().map(|body| seal(body)).sum::<Option<usize>>()?;
    let bytes = (mean(bodies), after as f64 / bodies.len() as f64);
    let works = StepSuccess::new();
    let sealed = works.clone();
    let variant = BenchVariant::new(format!("{name}, no frame"), bodies.len(), move || {
        let seal = |body: &Vec<u8>| black_box(seal(body)).is_some();
        sealed.note(bodies.iter().map(seal).fold(true, |all, one| all & one));
    });
    Some(StepVariantRow { step: CostStep::Seal, bytes, variant, works })
}

fn framed<'a>(
    class: Class,
    suite: Suite,
    form: Form,
    bodies: &'a [Vec<u8>],
    name: &str,
) -> Option<StepVariantRow<'a>> {
    let mut members = members(class, suite)?;
    let mut buf = FrameBuf::new();
    let mut seal = move |body: &[u8]| {
        let frame = frame(&mut members, form, body, &mut buf)?;
        Some(black_box(frame).len())
    };
    let after = bodies.iter().map(|body| seal(body)).sum::<Option<usize>>()?;
    let bytes = (mean(bodies), after as f64 / bodies.len() as f64);
    let form = if form == Form::Full { "full" } else { "compact" };
    let works = StepSuccess::new();
    let sealed = works.clone();
    let variant = BenchVariant::new(format!("{name}, {form} frame"), bodies.len(), move || {
        let seal = |body: &Vec<u8>| black_box(seal(body)).is_some();
        sealed.note(bodies.iter().map(seal).fold(true, |all, one| all & one));
    });
    Some(StepVariantRow { step: CostStep::Seal, bytes, variant, works })
}

/// From a store, which may be read again: a copy of the frame is opened each time.
fn opened<'a>(
    class: Class,
    suite: Suite,
    bodies: &[Vec<u8>],
    name: &str,
) -> Option<StepVariantRow<'a>> {
    let mut members = members(class, suite)?;
    let frames = frames(&mut members, Form::Full, bodies)?;
    let (mut copy, bytes) = (Vec::new(), (mean(&frames), mean(bodies)));
    let works = StepSuccess::new();
    let opened = works.clone();
    let variant =
        BenchVariant::new(format!("{name}, full frame, a copy"), frames.len(), move || {
            let mut all = true;
            for frame in &frames {
                copy.clear();
                copy.extend_from_slice(frame);
                let BenchMembers { opener, binding, .. } = &mut members;
                let stored = open_stored(opener, Epoch(0), binding, &mut copy);
                all &= black_box(stored.is_ok());
            }
            opened.note(all);
        });
    Some(StepVariantRow { step: CostStep::Open, bytes, variant, works })
}

fn members(class: Class, suite: Suite) -> Option<BenchMembers> {
    BenchMembers::new(class, suite, Codec::Cbor as u8, documents()).ok()
}

fn frame<'b>(
    members: &mut BenchMembers,
    form: Form,
    body: &[u8],
    buf: &'b mut FrameBuf,
) -> Option<&'b mut [u8]> {
    members.ready().ok()?;
    let BenchMembers { sealer, fields, binding, dictionary, roster, .. } = members;
    let (next_hop, previous_hop) = (RELAY, SENDER);
    let link = LinkContext { dictionary, roster, next_hop, previous_hop };
    match form {
        Form::Full => seal_frame(sealer, fields, binding, body, buf).ok(),
        Form::Compact => seal_compact(sealer, fields, binding, body, &link, buf).ok(),
    }
}

fn frames(members: &mut BenchMembers, form: Form, bodies: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let mut buf = FrameBuf::new();
    let frame = |body: &Vec<u8>| Some(frame(members, form, body, &mut buf)?.to_vec());
    bodies.iter().map(frame).collect()
}

/// The lengths of the frames of messages; nothing where one is too long to be sealed.
pub(super) fn frame_lengths(
    codec: Codec,
    class: Class,
    suite: Suite,
    form: Form,
    sample: &[Value],
) -> Option<Vec<usize>> {
    let frames = frames(&mut members(class, suite)?, form, &encoded(codec, sample))?;
    Some(frames.iter().map(Vec::len).collect())
}

/// The lengths of messages, as the usual way makes them; none where one is too long to be sealed.
pub(super) fn lengths(sample: &[Value]) -> Vec<LinkLengths> {
    let bodies = encoded(Codec::Cbor, sample);
    let members = members(Class::Group, Suite::Aes256Gcm);
    let frames = members.and_then(|mut members| frames(&mut members, Form::Full, &bodies));
    let lengths =
        |(body, frame): (&Vec<u8>, &Vec<u8>)| LinkLengths { body: body.len(), frame: frame.len() };
    bodies.iter().zip(frames.iter().flatten()).map(lengths).collect()
}

/// Links of the system, each over the loopback interface.
fn wires<'a>(bodies: &[Vec<u8>]) -> Option<Vec<StepVariantRow<'a>>> {
    let frames =
        Rc::new(frames(&mut members(Class::Group, Suite::Aes256Gcm)?, Form::Full, bodies)?);
    let row = |mut link: LoopbackLink| {
        let (works, frames, mean) = (StepSuccess::new(), Rc::clone(&frames), mean(&frames));
        let carries = works.clone();
        let variant = BenchVariant::new(link.name, frames.len(), move || {
            let carry = |frame: &Vec<u8>| link.carry(black_box(frame));
            carries.note(frames.iter().map(carry).fold(true, |all, one| all & one));
        });
        StepVariantRow { step: CostStep::Carry, bytes: (mean, mean), variant, works }
    };
    Some(LoopbackLink::all().into_iter().map(row).collect())
}

/// A link in memory, and a relay on each form.
fn hops<'a>(bodies: &[Vec<u8>]) -> Option<Vec<StepVariantRow<'a>>> {
    let make = || members(Class::Group, Suite::Aes256Gcm);
    let mut full = frames(&mut make()?, Form::Full, bodies)?;
    let mut compact = frames(&mut make()?, Form::Compact, bodies)?;
    let (bytes, small, carried) = (mean(&full), mean(&compact), full.clone());
    let mut ring = SlotRing::new(1, MAX_FRAME_BYTES);
    let works = [StepSuccess::new(), StepSuccess::new(), StepSuccess::new()];
    let [carries, relays, relays_compact] = works.clone();
    let carry = BenchVariant::new("a slot in memory, full frame", full.len(), move || {
        let mut all = true;
        for frame in &carried {
            all &= black_box(ring.push(black_box(frame)).is_ok());
            black_box(ring.front_mut());
            ring.release(1);
        }
        carries.note(all);
    });
    let relay_full = BenchVariant::new("full frame", full.len(), move || {
        let mut all = true;
        for frame in &mut full {
            // It would have no hops left otherwise; the byte lies in the line that is touched.
            if let Some(hops) = frame.get_mut(HOPS_AT) {
                *hops = 15;
            }
            all &= black_box(forward_in_place(frame, RELAY, RELAY).is_ok());
        }
        relays.note(all);
    });
    let relay_compact = BenchVariant::new("compact frame", compact.len(), move || {
        let mut all = true;
        for frame in &mut compact {
            if let Some(first) = frame.first_mut() {
                *first |= 15;
            }
            all &= black_box(forward_compact_in_place(frame, 0).is_ok());
        }
        relays_compact.note(all);
    });
    let [carries, relays, relays_compact] = works;
    let row = |step, bytes, variant, works| StepVariantRow {
        step,
        bytes: (bytes, bytes),
        variant,
        works,
    };
    Some(vec![
        row(CostStep::Carry, bytes, carry, carries),
        row(CostStep::Relay, bytes, relay_full, relays),
        row(CostStep::Relay, small, relay_compact, relays_compact),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_has_its_rows_also_where_it_changes_what_it_holds() {
        let sample = [Value::Map(vec![("a".into(), Value::Bytes(vec![1, 2]))])];
        for codec in CODECS {
            let rows = codecs(codec, &sample);
            assert!(rows.len() == 2 && rows.iter().all(|row| row.works.0.get()), "{codec:?}");
        }
    }
}
