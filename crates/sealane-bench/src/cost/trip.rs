//! One way, run: both ends, a link and a relay on one thread.

use std::hint::black_box;
use std::time::Instant;

use sealane_codec::Codec;
use sealane_frame::limits::MAX_FRAME_BYTES;
use sealane_frame::{FrameBuf, FrameCompression, FrameDraft, FrameView, SlotRing, to_full};
use sealane_message::Value;
use sealane_seal::{Class, Form, Suite};

use super::step::{CostStep, StepCalls, StepCoder, StepCompressor};
use super::way::CostWay;
use crate::members::{BenchMembers, documents};

/// Why a way has no figures: one of its steps did not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{step} failed on {way}: {why}", step = .step.name())]
pub(crate) struct WayRefusal {
    pub(crate) step: CostStep,
    pub(crate) way: String,
    pub(crate) why: String,
}

/// Bytes of one message at the places of its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WayBytes {
    pub(crate) body: u64,
    /// Compressed, where that makes it smaller.
    pub(crate) pressed: u64,
    /// Sealed and framed: what a link carries.
    pub(crate) wire: u64,
    /// Kept by a hub or in a capture: the full form.
    pub(crate) rest: u64,
}

impl std::ops::AddAssign for WayBytes {
    fn add_assign(&mut self, other: Self) {
        self.body += other.body;
        self.pressed += other.pressed;
        self.wire += other.wire;
        self.rest += other.rest;
    }
}

/// An observer at the ends of steps.
pub(super) trait StepProbe {
    /// Whether what a step did is looked at too, which takes time of its own.
    const CHECKS: bool = false;

    fn done(&mut self, step: CostStep);
}

/// Nobody: what a row's time is measured with.
pub(super) struct NoProbe;

impl StepProbe for NoProbe {
    fn done(&mut self, _: CostStep) {}
}

/// An observer that checks the results, and reads no clock.
struct CheckProbe;

impl StepProbe for CheckProbe {
    const CHECKS: bool = true;

    fn done(&mut self, _: CostStep) {}
}

/// How long each step took, by the wall's clock.
#[derive(Debug)]
pub(super) struct ClockProbe {
    last: Instant,
    pub(super) ns: [f64; CostStep::ALL.len()],
}

impl ClockProbe {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), ns: [0.0; CostStep::ALL.len()] }
    }

    /// The time that reading the clock adds to a step.
    pub(super) fn clock_ns() -> f64 {
        let mut watch = ClockProbe::new();
        (0..10_000).for_each(|_| watch.done(CostStep::Encode));
        watch.ns.iter().sum::<f64>() / 10_000.0
    }
}

impl StepProbe for ClockProbe {
    fn done(&mut self, step: CostStep) {
        let spent = self.last.elapsed();
        if let Some(ns) = self.ns.get_mut(step as usize) {
            *ns += spent.as_nanos() as f64;
        }
        self.last = Instant::now();
    }
}

/// Why a step gave nothing.
type StepFailure = (CostStep, String);

fn failed<E: std::fmt::Display>(step: CostStep) -> impl FnOnce(E) -> StepFailure {
    move |error| (step, error.to_string())
}

/// One way with all that it needs, warm from message to message.
pub(crate) struct WayTrip<'s> {
    steps: StepCalls,
    way: CostWay,
    sample: &'s [Value],
    sender: WaySender,
    members: BenchMembers,
    ring: SlotRing,
    reader: WayReader,
}

struct WaySender {
    coder: StepCoder,
    press: Option<StepCompressor>,
    body: Vec<u8>,
    buf: FrameBuf,
}

struct WayReader {
    coder: StepCoder,
    press: Option<StepCompressor>,
    body: Vec<u8>,
}

impl<'s> WayTrip<'s> {
    pub(crate) fn new(
        steps: StepCalls,
        way: CostWay,
        sample: &'s [Value],
    ) -> Result<Self, WayRefusal> {
        let make = || {
            let (class, suite) = way.seal.unwrap_or((Class::Group, Suite::Aes256Gcm));
            let members = BenchMembers::new(class, suite, way.codec as u8, documents());
            let (coder, buf) = (StepCoder::new(way.codec), FrameBuf::new());
            let sender = WaySender { coder, press: press(way)?, body: vec![], buf };
            let reader =
                WayReader { coder: StepCoder::new(way.codec), press: press(way)?, body: vec![] };
            let members = members.map_err(failed(CostStep::Seal))?;
            let ring = SlotRing::new(1, MAX_FRAME_BYTES);
            Ok(Self { steps, way, sample, sender, members, ring, reader })
        };
        make().map_err(|failed| refused(way, failed))
    }

    /// How many messages it takes along.
    pub(super) fn len(&self) -> usize {
        self.sample.len()
    }

    /// All messages, with nobody looking on.
    pub(crate) fn all(&mut self) {
        for message in self.sample {
            black_box(self.message(black_box(message), &mut NoProbe).is_ok());
        }
    }

    /// All messages, with the time of each step.
    pub(super) fn watched(&mut self, watch: &mut ClockProbe) {
        for message in self.sample {
            watch.last = Instant::now();
            black_box(self.message(message, watch).is_ok());
        }
    }

    /// The time of each message, in nanoseconds of the wall's clock.
    pub(super) fn each(&mut self, times: &mut Vec<f64>) {
        for message in self.sample {
            let started = Instant::now();
            black_box(self.message(message, &mut NoProbe).is_ok());
            times.push(started.elapsed().as_nanos() as f64);
        }
    }

    /// Runs every message once and looks at what each step made of it. A way has figures only
    /// after this, so that no figure can come from a step that was not done.
    pub(crate) fn verify(&mut self) -> Result<WayBytes, WayRefusal> {
        let mut all = WayBytes::default();
        for message in self.sample {
            let taken =
                self.message(message, &mut CheckProbe).and_then(|(bytes, value)| {
                    match plain(self.way.codec, message) == plain(self.way.codec, &value) {
                        true => Ok(bytes),
                        false => Err((CostStep::Decode, "another value came out".to_owned())),
                    }
                });
            all += taken.map_err(|failed| refused(self.way, failed))?;
        }
        Ok(all)
    }

    /// The way of one message.
    fn message<P: StepProbe>(
        &mut self,
        message: &Value,
        probe: &mut P,
    ) -> Result<(WayBytes, Value), StepFailure> {
        let (steps, form, members) = (self.steps, self.way.form, &mut self.members);
        let mut bytes = WayBytes::default();
        members.ready().map_err(failed(CostStep::Seal))?;
        let draft = self.sender.write(&steps, message, members, &mut bytes, probe)?;
        let frame = (steps.seal)(draft, members, form).map_err(failed(CostStep::Seal))?;
        bytes.wire = frame.len() as u64;
        probe.done(CostStep::Seal);
        let hops = if P::CHECKS { hops(members, frame, form) } else { None };
        (steps.carry)(&mut self.ring, frame).map_err(failed(CostStep::Carry))?;
        let frame = self.ring.front_mut();
        let frame = frame.ok_or_else(|| (CostStep::Carry, "nothing came".to_owned()))?;
        probe.done(CostStep::Carry);
        (steps.relay)(frame, form).map_err(failed(CostStep::Relay))?;
        probe.done(CostStep::Relay);
        if P::CHECKS {
            let left = self::hops(members, frame, form).map(|(hops, rest)| {
                bytes.rest = rest;
                hops + 1
            });
            if left.is_none() || left != hops.map(|(hops, _)| hops) {
                return Err((CostStep::Relay, "the hop limit is not one less".to_owned()));
            }
        }
        let body = (steps.open)(members, form, frame).map_err(failed(CostStep::Open))?;
        probe.done(CostStep::Open);
        let is_pressed = members.fields.compression != FrameCompression::None;
        let value = self.reader.read(&steps, body, is_pressed, probe)?;
        self.ring.release(1);
        Ok((bytes, value))
    }
}

impl WaySender {
    /// Encodes into the frame's buffer, over another one where it is compressed.
    fn write<'b>(
        &'b mut self,
        steps: &StepCalls,
        message: &Value,
        members: &mut BenchMembers,
        bytes: &mut WayBytes,
        probe: &mut impl StepProbe,
    ) -> Result<FrameDraft<'b>, StepFailure> {
        let mut draft = self.buf.draft();
        let body = draft.body();
        let room = body.len();
        members.fields.compression = FrameCompression::None;
        let Some(press) = &mut self.press else {
            (steps.encode)(&mut self.coder, message, body);
            bytes.body = (body.len() - room) as u64;
            bytes.pressed = bytes.body;
            probe.done(CostStep::Encode);
            return something(bytes.body, CostStep::Encode).map(|()| draft);
        };
        self.body.clear();
        (steps.encode)(&mut self.coder, message, &mut self.body);
        bytes.body = self.body.len() as u64;
        probe.done(CostStep::Encode);
        something(bytes.body, CostStep::Encode)?;
        (steps.compress)(press, &self.body, body);
        something((body.len() - room) as u64, CostStep::Compress)?;
        if body.len() - room < self.body.len() {
            members.fields.compression = press.compression();
        } else {
            body.truncate(room);
            body.extend_from_slice(&self.body);
        }
        bytes.pressed = (body.len() - room) as u64;
        probe.done(CostStep::Compress);
        Ok(draft)
    }
}

impl WayReader {
    fn read(
        &mut self,
        steps: &StepCalls,
        body: &[u8],
        is_pressed: bool,
        probe: &mut impl StepProbe,
    ) -> Result<Value, StepFailure> {
        let mut body = body;
        if let Some(press) = self.press.as_mut().filter(|_| is_pressed) {
            self.body.clear();
            (steps.decompress)(press, body, &mut self.body);
            probe.done(CostStep::Decompress);
            something(self.body.len() as u64, CostStep::Decompress)?;
            body = &self.body;
        }
        let value = (steps.decode)(&mut self.coder, body).map_err(failed(CostStep::Decode));
        probe.done(CostStep::Decode);
        value
    }
}

fn press(way: CostWay) -> Result<Option<StepCompressor>, StepFailure> {
    match way.compression {
        FrameCompression::None => Ok(None),
        compression => match StepCompressor::new(compression) {
            Some(press) => Ok(Some(press)),
            None => Err((CostStep::Compress, "there is no memory for it".to_owned())),
        },
    }
}

fn something(bytes: u64, step: CostStep) -> Result<(), StepFailure> {
    if bytes > 0 { Ok(()) } else { Err((step, "no bytes came out".to_owned())) }
}

fn refused(way: CostWay, (step, why): StepFailure) -> WayRefusal {
    WayRefusal { step, way: way.to_string(), why }
}

/// The hops that a frame has left, and its length in the full form.
fn hops(members: &BenchMembers, frame: &[u8], form: Form) -> Option<(u8, u64)> {
    let mut full = Vec::new();
    if form == Form::Compact {
        to_full(frame, &members.link(), &mut full).ok()?;
    }
    let full = if form == Form::Compact { &*full } else { frame };
    let view = FrameView::parse(full).ok()?;
    Some((view.header().hop_limit(), full.len() as u64))
}

/// A value in a codec, in one form: JSON has no bytes, and CBOR an order of its own.
fn plain(codec: Codec, value: &Value) -> Vec<u8> {
    let codec = if codec == Codec::MsgPackRecords { Codec::MsgPack } else { codec };
    let mut bytes = Vec::new();
    sealane_codec::encode(codec, value, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Value> {
        let text = "the same words again and again, the same words again and again".repeat(4);
        let map = |n: i64| vec![("n".into(), Value::from(n)), ("text".into(), text.clone().into())];
        (0..20).map(|n| Value::Map(map(n))).collect()
    }

    fn zstd() -> CostWay {
        CostWay { compression: FrameCompression::Zstd, ..CostWay::USUAL }
    }

    #[test]
    fn every_way_gives_back_what_was_sent() {
        let sample = sample();
        for way in CostWay::in_memory() {
            let mut trip = WayTrip::new(StepCalls::PRODUCT, way, &sample).unwrap();
            let bytes = trip.verify().unwrap();
            assert!(bytes.pressed <= bytes.body && bytes.pressed < bytes.wire, "{way}: {bytes:?}");
            assert!(bytes.rest >= bytes.wire, "{way}: {bytes:?}");
        }
    }

    #[test]
    fn a_step_that_is_taken_out_leaves_no_figure() {
        let product = StepCalls::PRODUCT;
        let without = [
            (CostStep::Encode, StepCalls { encode: |_, _, _| (), ..product }),
            (CostStep::Compress, StepCalls { compress: |_, _, _| (), ..product }),
            (
                CostStep::Seal,
                StepCalls { seal: |mut draft, _, _| Ok(unsealed(&mut draft)), ..product },
            ),
            (CostStep::Carry, StepCalls { carry: |_, _| Ok(()), ..product }),
            (CostStep::Relay, StepCalls { relay: |_, _| Ok(()), ..product }),
            (CostStep::Open, StepCalls { open: elsewhere, ..product }),
            (CostStep::Decompress, StepCalls { open: |_, _, frame| Ok(&frame[66..]), ..product }),
            (CostStep::Decompress, StepCalls { decompress: |_, _, _| (), ..product }),
            (CostStep::Decode, StepCalls { decode: |_, _| Ok(Value::Null), ..product }),
        ];
        let sample = sample();
        for (step, steps) in without {
            let refused = WayTrip::new(steps, zstd(), &sample).unwrap().verify().unwrap_err();
            // Without a seal there is no frame either, which the relay is the first to see.
            let first = if step == CostStep::Seal { CostStep::Relay } else { step };
            assert_eq!(refused.step, first, "{refused}");
        }
        assert!(WayTrip::new(product, zstd(), &sample).unwrap().verify().is_ok());
    }

    /// Opens a frame as one of another place than it was sealed for.
    fn elsewhere<'f>(
        members: &mut BenchMembers,
        form: Form,
        frame: &'f mut [u8],
    ) -> crate::failure::Result<&'f [u8]> {
        members.binding = sealane_seal::Binding::stream("elsewhere");
        (StepCalls::PRODUCT.open)(members, form, frame)
    }

    /// Bytes that were not sealed. They live as long as the program: the draft's are used up.
    fn unsealed<'b>(draft: &mut FrameDraft<'_>) -> &'b mut [u8] {
        draft.body().clone().leak()
    }

    #[test]
    fn the_same_messages_count_the_same_every_time() {
        let sample = sample();
        for way in CostWay::in_memory() {
            let count = || {
                let mut trip = WayTrip::new(StepCalls::PRODUCT, way, &sample).unwrap();
                let bytes = trip.verify().unwrap();
                trip.all();
                (bytes, crate::measure::allocations(|| trip.all()))
            };
            assert_eq!(count(), count(), "{way}");
        }
    }
}
