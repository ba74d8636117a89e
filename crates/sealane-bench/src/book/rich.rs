//! Rich messages as events: encoded, sealed, framed and back, beside the floor and triple JSON.

use std::hint::black_box;

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sealane_codec::event;
use sealane_frame::{AUTHENTICATED_BYTES, FrameBuf, open_frame};
use sealane_message::event::{Action, Content, Event, EventId, Message};
use sealane_seal::{Binding, Class, Suite};

use super::{BookRow, BookTable};
use crate::baseline::triple::{self, Base64Text, NumberArray, RichRecord};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, MeasurePlan, medians, timed};
use crate::members::{BenchMembers, GROUP_ID};

/// The kind of an event's body.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RichBodyKind {
    Ascii,
    Cjk,
    Binary,
}

impl RichBodyKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RichBodyKind::Ascii => "ASCII text",
            RichBodyKind::Cjk => "Chinese text",
            RichBodyKind::Binary => "voice",
        }
    }
}

/// The message of the report as an event: text, or a recording, of so many KiB.
pub(crate) fn event(kib: usize, kind: RichBodyKind) -> Event<'static> {
    let bytes = kib << 10;
    let content = match kind {
        RichBodyKind::Ascii => Content::Text("x".repeat(bytes).into()),
        // Three bytes each.
        RichBodyKind::Cjk => Content::Text("海".repeat(bytes / 3).into()),
        RichBodyKind::Binary => Content::Voice {
            seconds: 60,
            waveform: vec![7; 64].into(),
            transcription: None,
            mime: "audio/ogg".into(),
            data: vec![0xa5; bytes].into(),
        },
    };
    let action = Action::Message(Message::from(content));
    Event::new(EventId([1; 8]), 1_769_690_096_000, action)
}

/// Both ends of one way, warm.
pub(crate) struct RichEnds {
    members: BenchMembers,
    buf: FrameBuf,
}

impl RichEnds {
    pub(crate) fn new(suite: Suite) -> Result<Self> {
        let binding = Binding::conversation(GROUP_ID);
        let members = BenchMembers::new(Class::Group, suite, 0, binding)?;
        Ok(Self { members, buf: FrameBuf::new() })
    }

    /// Encode, seal, frame; parse, open, decode, store the session where that is due, accept. Gives
    /// the bytes of the frame.
    pub(crate) fn round_trip(&mut self, event: &Event<'_>, is_owned: bool) -> Option<usize> {
        let Self { members, buf } = self;
        members.ready().ok()?;
        let mut draft = buf.draft();
        event::encode(event, draft.body()).ok()?;
        let BenchMembers { sealer, opener, fields, binding, sessions, .. } = members;
        let frame = draft.seal(sealer, fields, binding).ok()?;
        let length = frame.len();
        let received = open_frame(opener, binding, frame).ok()?;
        let read = event::decode(received.body).ok()?;
        match is_owned {
            true => drop(black_box(read.into_owned())),
            false => drop(black_box(read)),
        }
        sessions.accept(received).ok()?;
        Some(length)
    }
}

/// The bytes that a sealed event authenticates beside its body: an SFrame header of 4 bytes, group,
/// binding, and the frame's header behind its length. `spec/seal.md`, section *Associated data*.
const ASSOCIATED_BYTES: usize = 4 + 32 + Binding::BYTES + 2 + AUTHENTICATED_BYTES;

/// The least that two ends can do: copy in, seal in place, open in place, copy out.
struct SealFloor {
    key: LessSafeKey,
    counter: u64,
    text: Vec<u8>,
    out: Vec<u8>,
}

impl SealFloor {
    fn new(suite: Suite) -> Result<Self> {
        let algorithm = match suite {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key =
            UnboundKey::new(algorithm, &[1; 32]).map_err(|_| BenchFailure::broken("the cipher"))?;
        let key = LessSafeKey::new(key);
        Ok(Self { key, counter: 0, text: vec![], out: vec![] })
    }

    fn round_trip(&mut self, body: &[u8]) -> Option<usize> {
        self.counter += 1;
        let mut nonce = [0; 12];
        nonce.last_chunk_mut::<8>()?.copy_from_slice(&self.counter.to_be_bytes());
        let nonce = || Nonce::assume_unique_for_key(nonce);
        let Self { key, text, out, .. } = self;
        text.clear();
        text.extend_from_slice(body);
        let associated = || Aad::from(&[9; ASSOCIATED_BYTES]);
        let tag = key.seal_in_place_separate_tag(nonce(), associated(), text).ok()?;
        key.open_in_place_separate_tag(nonce(), associated(), tag.as_ref(), text).ok()?;
        out.clear();
        out.extend_from_slice(text);
        Some(black_box(&*out).len())
    }
}

/// One message, and what is demanded of its way.
#[derive(Clone, Copy)]
struct RichCase {
    kib: usize,
    kind: RichBodyKind,
    suite: Suite,
    /// Whether the reader gets text of its own.
    is_owned: bool,
    ns_max: f64,
    /// Times the floor.
    ratio_max: f64,
}

impl RichCase {
    const fn ascii(kib: usize, suite: Suite, ns_max: f64, ratio_max: f64) -> Self {
        Self { kib, kind: RichBodyKind::Ascii, suite, is_owned: true, ns_max, ratio_max }
    }

    const fn of(self, kind: RichBodyKind) -> Self {
        Self { kind, ..self }
    }

    const fn borrowed(self) -> Self {
        Self { is_owned: false, ..self }
    }
}

const CASES: [RichCase; 10] = {
    use RichBodyKind::{Binary, Cjk};
    let small = RichCase::ascii(8, Suite::Aes256Gcm, 5_000.0, 3.0);
    let large = RichCase::ascii(256, Suite::Aes256Gcm, 120_000.0, 2.0);
    let large_borrowed = RichCase { ns_max: 90_000.0, ratio_max: 1.5, ..large.borrowed() };
    [
        small,
        small.borrowed(),
        RichCase::ascii(8, Suite::ChaCha20Poly1305, 16_000.0, 3.0),
        large,
        large_borrowed,
        large.of(Cjk),
        large_borrowed.of(Cjk),
        large.of(Binary),
        large_borrowed.of(Binary),
        RichCase::ascii(256, Suite::ChaCha20Poly1305, f64::INFINITY, 2.0),
    ]
};

/// Both tables of rich messages: beside the floor, and beside triple JSON.
pub(super) fn tables(plan: &MeasurePlan, progress: &mut dyn FnMut(f64)) -> Result<Vec<BookTable>> {
    let mut floor = BookTable::new(
        "Rich messages, encoded, sealed, framed and back, beside the floor",
        "Baseline: two copies and the bare cipher, sealed and opened in place. The ratio is \
               what Sealane keeps of the floor.",
        vec![],
    );
    for (index, case) in CASES.into_iter().enumerate() {
        floor.rows.push(beside_floor(plan, case)?);
        progress(index as f64 / CASES.len() as f64);
    }
    let mut json = BookTable::new(
        "The whole way, beside three layers of JSON",
        "The baseline encrypts nothing; Sealane seals with AES-256-GCM and gives owned \
               text. Published: the sum of the three layers' round trips.",
        vec![],
    );
    for (kib, published) in [(8, 586_380.0), (64, 4_271_210.0), (256, 16_657_720.0)] {
        json.rows.extend(beside_json(plan, kib, published)?);
    }
    Ok(vec![floor, json])
}

fn beside_floor(plan: &MeasurePlan, case: RichCase) -> Result<BookRow> {
    let RichCase { kib, kind, suite, is_owned, ns_max, ratio_max } = case;
    let (mut ends, mut floor, event) =
        (RichEnds::new(suite)?, SealFloor::new(suite)?, event(kib, kind));
    let mut body = Vec::new();
    event::encode(&event, &mut body).map_err(|_| BenchFailure::broken("the event"))?;
    ends.round_trip(&event, is_owned).ok_or_else(|| BenchFailure::broken("the event's way"))?;
    floor.round_trip(&body).ok_or_else(|| BenchFailure::broken("the floor"))?;
    let variants = [
        timed(|| _ = black_box(floor.round_trip(black_box(&body)))),
        timed(|| {
            black_box(ends.round_trip(black_box(&event), is_owned));
        }),
    ];
    let [floor, ours] = medians(plan, variants);
    let held = if is_owned { "owned" } else { "borrowed" };
    let cipher = crate::cost::suite_name(suite);
    let mut note = format!("{:.2}x the floor; demanded <= {ratio_max}x", ours / floor);
    if ns_max.is_finite() {
        note += &format!(", <= {}", BenchFigure::ns(ns_max));
    }
    Ok(BookRow::new(format!("{kib} KiB {}, {cipher}, {held}", kind.name()))
        .baseline(BenchFigure::ns(floor))
        .sealane(BenchFigure::ns(ours))
        .note(note))
}

fn beside_json(plan: &MeasurePlan, kib: usize, published: f64) -> Result<Vec<BookRow>> {
    let (rich, event) = (RichRecord::new(kib), event(kib, RichBodyKind::Ascii));
    let mut ends = RichEnds::new(Suite::Aes256Gcm)?;
    triple::round_trip::<NumberArray>(kib, &rich)
        .ok_or_else(|| BenchFailure::broken("triple JSON"))?;
    ends.round_trip(&event, true).ok_or_else(|| BenchFailure::broken("the event's way"))?;
    let variants = [
        timed(|| _ = black_box(ends.round_trip(black_box(&event), true))),
        timed(|| {
            black_box(triple::round_trip::<NumberArray>(kib, black_box(&rich)).is_some());
        }),
        timed(|| {
            black_box(triple::round_trip::<Base64Text>(kib, black_box(&rich)).is_some());
        }),
    ];
    let [ours, numbers, base64] = medians(plan, variants).map(BenchFigure::ns);
    let row = |name: &str| BookRow::new(format!("{kib} KiB, {name}")).sealane(ours);
    Ok(vec![
        row("number arrays")
            .published(BenchFigure::ns(published))
            .baseline(numbers)
            .note("demanded >= 100x"),
        row("base64").baseline(base64).note("what the report believed to measure"),
    ])
}
