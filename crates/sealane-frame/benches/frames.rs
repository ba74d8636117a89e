//! The cost of a frame for a relay and the two ends, beside the bare primitives in the same run.
//!
//! Rounds are interleaved, so that a disturbance hits every row alike; the first are warm-up; the
//! table gives medians and the middle half. `cargo bench -p sealane-frame`

#[path = "../tests/it/shared/members.rs"]
mod members;

use std::hint::black_box;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use members::{Members, READER, RELAY};
use sealane_frame::{
    Fragment, FrameBuf, Reassembly, ReassemblyProgress, ReceivedFrame, SlotRing, forward_batch,
    forward_in_place, open_compact, open_frame, seal_compact, seal_frame, to_compact, to_full,
};
use sealane_seal::{Class, Suite};

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 41;
const RELAYED_BYTES: [usize; 6] = [64, 128, 256, 512, 1024, 1500];
const SLOTS: usize = 256;

/// The work that is timed: a call does it and gives the time of one frame in nanoseconds.
struct Row {
    name: String,
    bound: Option<f64>,
    work: Box<dyn FnMut() -> f64>,
    rounds: Vec<f64>,
}

impl Row {
    fn new(name: impl Into<String>, work: impl FnMut() -> f64 + 'static) -> Self {
        Self { name: name.into(), bound: None, work: Box::new(work), rounds: Vec::new() }
    }

    /// A row of which the work is the same call over and over.
    fn repeated(name: impl Into<String>, calls: u32, mut call: impl FnMut() + 'static) -> Self {
        Self::new(name, move || {
            let started = Instant::now();
            (0..calls).for_each(|_| call());
            nanoseconds(started.elapsed()) / f64::from(calls)
        })
    }

    fn at_most(mut self, bound: f64) -> Self {
        self.bound = Some(bound);
        self
    }

    fn quartile(&self, quarter: usize) -> f64 {
        self.rounds[self.rounds.len() * quarter / 4]
    }
}

fn main() {
    // 64 bytes is less than the smallest frame: sizes are those of bodies in class C.
    let mut tables = [
        ("relay, ns per frame, by body", relay()),
        ("both ends, ns per frame", ends()),
        ("forms and parts, ns per frame", forms()),
    ];
    for _ in 0..WARM_UP_ROUNDS + ROUNDS {
        for row in tables.iter_mut().flat_map(|(_, rows)| rows) {
            let time = (row.work)();
            row.rounds.push(time);
        }
    }
    for (title, rows) in &mut tables {
        println!("\n{title}; median and middle half of {ROUNDS} interleaved rounds");
        for row in rows.iter_mut() {
            row.rounds.drain(..WARM_UP_ROUNDS);
            row.rounds.sort_by(f64::total_cmp);
            let bound = row.bound.map_or(String::new(), |bound| format!("  (aim {bound})"));
            let [low, median, high] = [1, 2, 3].map(|quarter| row.quartile(quarter));
            println!("{:44} {median:>10.1}  {low:>10.1} .. {high:<10.1}{bound}", row.name);
        }
    }
    spread(&tables[0].1);
}

/// How much the time of a rewrite depends on the frame's size.
fn spread(rows: &[Row]) {
    let medians = rows.iter().take(RELAYED_BYTES.len()).map(|row| row.quartile(2));
    let (low, high) = medians.fold((f64::MAX, 0.0), |(low, high): (f64, f64), median| {
        (low.min(median), high.max(median))
    });
    println!("\nrewrite, slowest size over fastest: {:.2}  (aim 1.2)", high / low);
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

fn relay() -> Vec<Row> {
    let mut rows: Vec<Row> = RELAYED_BYTES.map(rewrite).into();
    rows.push(batch(SLOTS, 1500).at_most(2.5));
    rows.push(batch(65_536, 1500));
    rows.push(copy(1500));
    rows
}

fn rewrite(body_bytes: usize) -> Row {
    let mut frame = frame(body_bytes);
    Row::repeated(format!("rewrite in place, {body_bytes}"), 100_000, move || {
        // It would have no hops left otherwise; the byte lies in the line that is touched anyway.
        frame[16] = 15;
        forward_in_place(black_box(&mut frame), RELAY, RELAY).unwrap();
    })
    .at_most(3.0)
}

/// All frames of a ring, as often as their hops allow.
fn batch(slots: usize, body_bytes: usize) -> Row {
    let mut ring = SlotRing::new(slots, 1600);
    let frame = frame(body_bytes);
    while ring.push(&frame).is_ok() {}
    let rewrites = if slots == SLOTS { 100 } else { 1 };
    Row::new(format!("{slots} slots of {}, {body_bytes}", ring.stride()), move || {
        let mut time = Duration::ZERO;
        for _ in 0..rewrites {
            ring.frames_mut().for_each(|frame| frame[16] = 15);
            let started = Instant::now();
            for _ in 0..10 {
                let ring = black_box(&mut ring);
                let sent = forward_batch(ring, RELAY, |_| Some(RELAY), |why| panic!("{why:?}"));
                assert_eq!(sent, slots);
            }
            time += started.elapsed();
        }
        nanoseconds(time) / (10 * rewrites * slots) as f64
    })
}

fn copy(body_bytes: usize) -> Row {
    let frame = frame(body_bytes);
    let mut to = frame.clone();
    Row::repeated(format!("a copy instead, {body_bytes}"), 10_000, move || {
        black_box(&mut to).copy_from_slice(black_box(&frame));
    })
}

fn frame(body_bytes: usize) -> Vec<u8> {
    let mut members = Members::new(Class::Group);
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    let body = vec![7; body_bytes];
    seal_frame(&mut members.sealer, &members.fields, &binding, &body, &mut buf).unwrap().to_vec()
}

fn ends() -> Vec<Row> {
    let [aes, chacha] = Suite::ALL;
    let mut rows = vec![];
    for (body_bytes, calls, bound) in
        [(632, 200, None), (8192, 50, Some(2500.0)), (256 << 10, 5, Some(60_000.0))]
    {
        for suite in [aes, chacha] {
            rows.push(bare(suite, body_bytes, calls));
            let row = there_and_back(Class::Group, suite, body_bytes, calls);
            rows.push(match bound.filter(|_| suite == aes) {
                Some(bound) => row.at_most(bound),
                None => row,
            });
        }
    }
    rows.push(there_and_back(Class::Authenticated, aes, 60, 200));
    rows.push(there_and_back(Class::Signed, aes, 60, 20));
    rows
}

/// The primitive alone: a copy of the body, sealed and opened in place, with a prepared key.
fn bare(suite: Suite, body_bytes: usize, calls: u32) -> Row {
    let algorithm = match suite {
        Suite::Aes256Gcm => &AES_256_GCM,
        Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &[1; 32]).unwrap());
    let (body, mut text, mut counter) = (vec![7; body_bytes], vec![0; body_bytes], 0_u64);
    Row::repeated(format!("bare {suite:?}, {body_bytes}"), calls, move || {
        counter += 1;
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&counter.to_be_bytes());
        let nonce = || Nonce::assume_unique_for_key(nonce);
        let associated = || Aad::from(&[9; 101]);
        text.copy_from_slice(black_box(&body));
        let tag = key.seal_in_place_separate_tag(nonce(), associated(), &mut text).unwrap();
        key.open_in_place_separate_tag(nonce(), associated(), tag.as_ref(), &mut text).unwrap();
        black_box(&text);
    })
}

/// Seal, frame, parse, open, store what has to be stored, accept.
fn there_and_back(class: Class, suite: Suite, body_bytes: usize, calls: u32) -> Row {
    let mut members = Members::starting_at(class, suite, 0);
    let (body, mut buf, binding) = (vec![7; body_bytes], FrameBuf::new(), members::binding());
    let name = format!("class {}, {suite:?}, {body_bytes}", class.letter());
    Row::repeated(name, calls, move || {
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let frame = seal_frame(sealer, fields, &binding, black_box(&body), &mut buf).unwrap();
        let received = open_frame(&mut members.opener, &binding, black_box(frame)).unwrap();
        black_box(received.body);
        accept(received);
    })
}

/// A reader's work on a frame of a fast sender, of which little is stored.
fn accept(mut received: ReceivedFrame<'_, '_>) {
    black_box(received.pending.to_store(0));
    black_box(received.accept());
}

fn forms() -> Vec<Row> {
    let mut members = Members::new(Class::Group);
    let (body, mut buf, binding) = (vec![7; 100], FrameBuf::new(), members::binding());
    let compact_ends = Row::repeated("seal and open compact, 100", 200, move || {
        let link = members::link(&members.dictionary, &members.roster);
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let body = black_box(&body);
        let frame = seal_compact(sealer, fields, &binding, body, &link, &mut buf).unwrap();
        accept(open_compact(&mut members.opener, &binding, frame, &link).unwrap());
    });
    let (full, lossless) = (frame(100), Members::new(Class::Group));
    let (mut compact, mut back) = (vec![], vec![]);
    let change = Row::repeated("full to compact to full, 100", 1000, move || {
        let link = members::link(&lossless.dictionary, &lossless.roster);
        compact.clear();
        back.clear();
        to_compact(black_box(&full), &link, &mut compact).unwrap();
        to_full(black_box(&compact), &link, &mut back).unwrap();
    });
    let (large, mut reassembly) = (frame(8192), Reassembly::new());
    let (mut unit, mut id) = (vec![], 0_u16);
    let parts = Row::repeated("split by 1,400 and join, 8192", 50, move || {
        id = id.wrapping_add(1);
        for fragment in Fragment::split(black_box(&large), id, 1400).unwrap() {
            unit.clear();
            fragment.write(&mut unit);
            let fragment = Fragment::parse(&unit).unwrap();
            if let ReassemblyProgress::Whole(frame) = reassembly.push(READER, 0, &fragment).unwrap()
            {
                black_box(frame);
            }
        }
    });
    vec![compact_ends, change, parts]
}
