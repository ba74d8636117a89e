//! The cost of a relay's decision, beside the bare rewrite in the same run.
//!
//! Rounds are interleaved, so that a disturbance hits every row alike; the first are warm-up; the
//! table gives medians and the middle half. `cargo bench -p sealane-link`

use std::hint::black_box;
use std::time::Instant;

use sealane_frame::{GroupTag, HEADER_BYTES, Header, HeaderFields, PeerTag, forward_in_place};
use sealane_link::{Config, RelayCard, RelayJudge, RelayVerdict};
use sealane_seal::{Epoch, SenderContext, Slot};

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 61;
/// Frames that are relayed in a round.
const FRAMES: usize = 256;
/// How often each of them is.
const TIMES: usize = 40;
const BODY_BYTES: [usize; 6] = [64, 128, 256, 512, 1024, 1500];
const MEMBERS: u16 = 1000;

/// The work that is timed: a call does it and gives the time of one frame in nanoseconds.
struct Row {
    name: String,
    work: Box<dyn FnMut() -> f64>,
    rounds: Vec<f64>,
}

impl Row {
    fn median(&self) -> f64 {
        self.rounds[self.rounds.len() / 2]
    }
}

fn main() {
    let mut rows: Vec<Row> = BODY_BYTES.map(bare).into();
    rows.extend(BODY_BYTES.map(|bytes| decided(bytes, false)));
    rows.push(decided(1024, true));
    rows.push(everywhere(false));
    rows.push(everywhere(true));
    for _ in 0..WARM_UP_ROUNDS + ROUNDS {
        for row in &mut rows {
            let time = (row.work)();
            row.rounds.push(time);
        }
    }
    println!("\nrelay, ns per frame; median and middle half of {ROUNDS} interleaved rounds");
    for row in &mut rows {
        row.rounds.drain(..WARM_UP_ROUNDS);
        row.rounds.sort_by(f64::total_cmp);
        let [low, high] = [1, 3].map(|quarter| row.rounds[ROUNDS * quarter / 4]);
        println!("{:52} {:>8.1}  {low:>8.1} .. {high:<8.1}", row.name, row.median());
    }
    let medians: Vec<f64> = rows.iter().map(Row::median).collect();
    let (bare, rest) = medians.split_at(BODY_BYTES.len());
    let (decided, rest) = rest.split_at(BODY_BYTES.len());
    let ratios = decided.iter().zip(bare).map(|(decided, bare)| decided / bare);
    println!("\ncheck, look-up and rewrite / bare: {:.2}", ratios.fold(0.0, f64::max));
    println!("with a swap in each round / bare: {:.2}  (aim 2)", rest[0] / bare[4]);
    let spread = decided.iter().fold(0.0, |most: f64, time| most.max(*time))
        / decided.iter().fold(f64::MAX, |least: f64, time| least.min(*time));
    println!("64 to 1,500 bytes, slowest / fastest: {spread:.2}  (aim 1.2)");
    println!("filter of repeats: {:.1} ns more  (aim 60)", rest[2] - rest[1]);
}

fn tag(slot: u16) -> PeerTag {
    let [low, high] = slot.to_le_bytes();
    PeerTag::from_bytes([0xa1, low, high, 0, 0, 0, 0, 1])
}

fn relay_tag() -> PeerTag {
    PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1])
}

fn group() -> GroupTag {
    GroupTag::from_bytes([7; 4])
}

fn config() -> (Config, RelayCard) {
    let mut text = format!(
        "version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\nudp = \"127.0.0.1:9\"\n",
        relay_tag()
    );
    for slot in 0..2 {
        text += &format!(
            "[[neighbour]]\nname = \"n{slot}\"\ntag = \"slot {slot}\"\nlink = \"l\"\n\
             address = \"127.0.0.1:{}\"\n",
            slot + 10
        );
    }
    text += "[[route]]\nto = \"slot 0\"\nvia = \"n0\"\n[[route]]\nto = \"*\"\nvia = \"n1\"\n";
    let members = (0..MEMBERS).map(|slot| (Slot::new(slot).unwrap(), tag(slot)));
    (Config::parse(&text).unwrap(), RelayCard::new(group(), Epoch(0), members))
}

/// Frames that the neighbour of slot 0 brings, for one member after the other or for everybody. The
/// stride between them is an odd number of cache lines: `sealane-frame` says why.
struct Frames {
    bytes: Vec<u8>,
    stride: usize,
    frame_bytes: usize,
}

impl Frames {
    fn new(body_bytes: usize, to: impl Fn(u16) -> PeerTag) -> Frames {
        let frame_bytes = HEADER_BYTES + 7 + body_bytes + 16;
        let stride = (frame_bytes.div_ceil(64) | 1) * 64;
        let mut bytes = vec![9; stride * FRAMES];
        for (index, slot) in bytes.chunks_exact_mut(stride).enumerate() {
            let fields = HeaderFields {
                next_hop: relay_tag(),
                destination: to(1 + index as u16 * 3),
                ..HeaderFields::new(group(), tag(0), 13)
            };
            let context = SenderContext([1; 8]);
            let header = Header::new(&fields, body_bytes, 70_000, context).unwrap();
            slot[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        }
        Frames { bytes, stride, frame_bytes }
    }

    /// The time of one frame, each of which is made again what it was before it is relayed again.
    fn time(&mut self, mut work: impl FnMut(&mut [u8])) -> f64 {
        let started = Instant::now();
        for _ in 0..TIMES {
            for slot in self.bytes.chunks_exact_mut(self.stride) {
                let frame = black_box(&mut slot[..self.frame_bytes]);
                // Next hop, previous hop and hop limit, in the line that is touched anyway.
                frame[..8].copy_from_slice(&relay_tag().to_bytes());
                frame[8..16].copy_from_slice(&tag(0).to_bytes());
                frame[16] = 15;
                work(frame);
            }
        }
        started.elapsed().as_secs_f64() * 1e9 / (TIMES * FRAMES) as f64
    }
}

fn bare(body_bytes: usize) -> Row {
    let mut frames = Frames::new(body_bytes, tag);
    let work = move || frames.time(|frame| forward_in_place(frame, tag(1), relay_tag()).unwrap());
    Row { name: format!("bare rewrite, {body_bytes}"), work: Box::new(work), rounds: vec![] }
}

fn decided(body_bytes: usize, is_swapped: bool) -> Row {
    let (config, card) = config();
    let mut judge = RelayJudge::new(&config, std::slice::from_ref(&card)).unwrap();
    let mut frames = Frames::new(body_bytes, tag);
    let work = move || {
        if is_swapped {
            judge.reload(&config, std::slice::from_ref(&card)).unwrap();
        }
        frames.time(|frame| assert_eq!(judge.decide(0, frame), Ok(RelayVerdict::To(1))))
    };
    let swap = if is_swapped { ", a new table each round" } else { "" };
    Row {
        name: format!("check, look-up, rewrite, {body_bytes}{swap}"),
        work: Box::new(work),
        rounds: vec![],
    }
}

fn everywhere(is_filtered: bool) -> Row {
    let (config, card) = config();
    let mut judge = RelayJudge::new(&config, &[card]).unwrap();
    let mut frames = Frames::new(256, |_| PeerTag::BROADCAST);
    let mut sequence = 0_u64;
    let work = move || {
        frames.time(|frame| {
            sequence += 1;
            frame[47..55].copy_from_slice(&sequence.to_le_bytes());
            assert_eq!(judge.decide(0, frame), Ok(RelayVerdict::Everywhere));
            if is_filtered {
                assert_eq!(judge.is_new(frame), Ok(true));
            }
        })
    };
    let name = if is_filtered { "to everybody, filter of repeats" } else { "to everybody, check" };
    Row { name: name.to_owned(), work: Box::new(work), rounds: vec![] }
}
