//! Each variant of each step once, by the call that the product makes.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;

use sealane_codec::Codec;
use sealane_frame::limits::{MAX_FRAME_BYTES, MAX_HOP_LIMIT};
use sealane_frame::{
    AUTHENTICATED_BYTES, FrameBuf, FrameCompression, LinkContext, SlotRing,
    forward_compact_in_place, forward_in_place, open_stored, seal_compact, seal_frame,
    set_compact_hop_limit, set_hop_limit,
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
pub(crate) struct StepRow {
    pub(crate) step: CostStep,
    /// Mean bytes of a message before and after: the step's input and its output.
    pub(crate) bytes: (f64, f64),
    pub(crate) cost: VariantCost,
}

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
    /// Whether the step did its work each time it was timed. Where it did not, there is no row.
    works: Rc<Cell<bool>>,
}

impl<'a> StepVariantRow<'a> {
    /// A step over `count` messages; the work says whether it was done on all of them.
    fn new(
        step: CostStep,
        name: impl Into<String>,
        bytes: (f64, f64),
        count: usize,
        mut work: impl FnMut() -> bool + 'a,
    ) -> Self {
        let works = Rc::new(Cell::new(true));
        let noted = Rc::clone(&works);
        let variant = BenchVariant::new(name, count, move || {
            let all = work();
            noted.set(noted.get() && all);
        });
        Self { step, bytes, variant, works }
    }

    /// The same where `holds`; else without a row.
    fn if_all(self, holds: bool) -> Self {
        self.works.set(holds);
        self
    }
}

/// Whether a step is done on each of them; none is left out where one fails.
fn each<T>(all: impl IntoIterator<Item = T>, step: impl FnMut(T) -> bool) -> bool {
    all.into_iter().map(step).fold(true, |all, one| all & one)
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
        .filter(|((_, _, works), _)| works.get())
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
    let (bytes, count, mut out) = (mean(&all), sample.len(), Vec::new());
    let encode = move || {
        for value in sample {
            out.clear();
            encoder.encode(black_box(value), &mut out);
            black_box(&out);
        }
        true
    };
    let decode = move || each(&all, |one| black_box(decoder.decode(black_box(one)).is_ok()));
    let (bytes, name) = ((bytes, bytes), codec.name());
    vec![
        StepVariantRow::new(CostStep::Encode, name, bytes, count, encode).if_all(is_read),
        StepVariantRow::new(CostStep::Decode, name, bytes, count, decode),
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
    let is_back = pressed.iter().zip(&bodies).all(&mut comes_back);
    let bytes = (mean(&bodies), mean(&pressed));
    let name = format!("{} of {}", compression_name(compression), codec.name());
    let (count, mut out, mut opened) = (bodies.len(), Vec::new(), Vec::new());
    let compress = move || {
        for body in &bodies {
            out.clear();
            press.compress(black_box(body), &mut out);
            black_box(&out);
        }
        true
    };
    let decompress = move || {
        for bytes in &pressed {
            opened.clear();
            reader.decompress(black_box(bytes), &mut opened);
            black_box(&opened);
        }
        true
    };
    vec![
        StepVariantRow::new(CostStep::Compress, &name, bytes, count, compress).if_all(is_back),
        StepVariantRow::new(CostStep::Decompress, &name, bytes, count, decompress).if_all(is_back),
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
    let seal = move |body: &[u8]| {
        out.clear();
        members.ready().ok()?;
        let BenchMembers { sealer, binding, .. } = &mut members;
        sealer.append(class, Form::Full, binding, META, body, &mut out).ok()?;
        Some(black_box(&out).len())
    };
    sealed_row(format!("{name}, no frame"), bodies, seal)
}

/// A row of what seals bodies, and says how long each has become.
fn sealed_row<'a>(
    name: String,
    bodies: &'a [Vec<u8>],
    mut seal: impl FnMut(&[u8]) -> Option<usize> + 'a,
) -> Option<StepVariantRow<'a>> {
    let after = bodies.iter().map(|body| seal(body)).sum::<Option<usize>>()?;
    let bytes = (mean(bodies), after as f64 / bodies.len() as f64);
    let work = move || each(bodies, |body| black_box(seal(body)).is_some());
    Some(StepVariantRow::new(CostStep::Seal, name, bytes, bodies.len(), work))
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
    let seal = move |body: &[u8]| {
        let frame = frame(&mut members, form, body, &mut buf)?;
        Some(black_box(frame).len())
    };
    let form = if form == Form::Full { "full" } else { "compact" };
    sealed_row(format!("{name}, {form} frame"), bodies, seal)
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
    let (name, count) = (format!("{name}, full frame, a copy"), frames.len());
    let open = move || {
        each(&frames, |frame| {
            copy.clear();
            copy.extend_from_slice(frame);
            let BenchMembers { opener, binding, .. } = &mut members;
            black_box(open_stored(opener, Epoch(0), binding, &mut copy).is_ok())
        })
    };
    Some(StepVariantRow::new(CostStep::Open, name, bytes, count, open))
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
        let (frames, mean, name) = (Rc::clone(&frames), mean(&frames), link.name);
        let count = frames.len();
        let carry = move || each(&*frames, |frame| link.carry(black_box(frame)));
        StepVariantRow::new(CostStep::Carry, name, (mean, mean), count, carry)
    };
    Some(LoopbackLink::all().into_iter().map(row).collect())
}

/// A link in memory, and a relay on each form.
fn hops<'a>(bodies: &[Vec<u8>]) -> Option<Vec<StepVariantRow<'a>>> {
    let make = || members(Class::Group, Suite::Aes256Gcm);
    let mut full = frames(&mut make()?, Form::Full, bodies)?;
    let mut compact = frames(&mut make()?, Form::Compact, bodies)?;
    let (bytes, small, carried) = (mean(&full), mean(&compact), full.clone());
    let (bytes, small, count) = ((bytes, bytes), (small, small), full.len());
    let mut ring = SlotRing::new(1, MAX_FRAME_BYTES);
    let carry = move || {
        each(&carried, |frame| {
            let is_taken = black_box(ring.push(black_box(frame)).is_ok());
            black_box(ring.front_mut());
            ring.release(1);
            is_taken
        })
    };
    let relay_full = move || {
        each(&mut full, |frame| {
            // It would have no hops left otherwise; the byte lies in the line that is touched.
            set_hop_limit(frame, MAX_HOP_LIMIT);
            black_box(forward_in_place(frame, RELAY, RELAY).is_ok())
        })
    };
    let relay_compact = move || {
        each(&mut compact, |frame| {
            set_compact_hop_limit(frame, MAX_HOP_LIMIT);
            black_box(forward_compact_in_place(frame, 0).is_ok())
        })
    };
    let name = "a slot in memory, full frame";
    Some(vec![
        StepVariantRow::new(CostStep::Carry, name, bytes, count, carry),
        StepVariantRow::new(CostStep::Relay, "full frame", bytes, count, relay_full),
        StepVariantRow::new(CostStep::Relay, "compact frame", small, count, relay_compact),
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
            assert!(rows.len() == 2 && rows.iter().all(|row| row.works.get()), "{codec:?}");
        }
    }
}
