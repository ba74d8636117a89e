//! The cost of sealing and opening, beside the bare cipher and the recipe of the report on a radio
//! mesh: RustCrypto's ChaCha20-Poly1305, a random nonce and a fresh allocation per message.
//!
//! Rounds are interleaved, so that a disturbance hits every row alike; the first are warm-up. The
//! clock is the CPU time of this thread, which other processes disturb less than the wall's. `cargo
//! bench -p sealane-seal`, and with `-- 1024` for the rows of one size.
#![allow(unsafe_code)] // The CPU time of a thread is read through the C library.

use std::cell::RefCell;
use std::hint::black_box;
use std::ops::Range;
use std::rc::Rc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key};
use sealane_seal::*;

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 61;
/// As many bytes as the frame of a message authenticates.
const META: &[u8; 47] = &[3; 47];
const CONTEXT: SenderContext = SenderContext([4; 8]);

struct Row {
    name: String,
    size: usize,
    seal: Step,
    open: Step,
}

/// The work that is timed on each of the messages of a round, and a round's time per message.
struct Step {
    work: Box<dyn FnMut(usize)>,
    rounds: Vec<f64>,
}

impl Step {
    fn new(work: impl FnMut(usize) + 'static) -> Self {
        Step { work: Box::new(work), rounds: Vec::new() }
    }

    fn all(&mut self, messages: usize) -> f64 {
        let started = cpu_ns();
        (0..messages).for_each(|index| (self.work)(index));
        cpu_ns() - started
    }

    /// The tenth, fiftieth and ninetieth of a hundred.
    fn percentiles(&mut self) -> [f64; 3] {
        let warm = &mut self.rounds[WARM_UP_ROUNDS..];
        warm.sort_by(f64::total_cmp);
        [10, 50, 90].map(|percent| warm[(warm.len() - 1) * percent / 100])
    }
}

impl Row {
    fn round(&mut self) {
        let messages = messages_of(self.size);
        let repeats = if self.size > 8192 { 2 } else { 8 };
        let (mut sealed, mut opened) = (0.0, 0.0);
        for _ in 0..repeats {
            sealed += self.seal.all(messages);
            opened += self.open.all(messages);
        }
        let calls = (repeats * messages) as f64;
        self.seal.rounds.push(sealed / calls);
        self.open.rounds.push(opened / calls);
    }
}

/// How many messages are sealed before they are opened: together they stay in the cache.
fn messages_of(size: usize) -> usize {
    ((128 << 10) / size).clamp(2, 128)
}

fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn main() {
    println!("nanoseconds of CPU per message, median of {ROUNDS} interleaved rounds");
    println!("(in brackets: the tenth and ninetieth percentile)");
    let only: Option<usize> = std::env::args().find_map(|argument| argument.parse().ok());
    for (class, size) in [
        (Class::Authenticated, 60),
        (Class::Group, 632),
        (Class::Group, 1024),
        (Class::Group, 8192),
        (Class::Group, 256 << 10),
        (Class::Signed, 632),
    ] {
        if only.is_some_and(|only| only != size) {
            continue;
        }
        let mut rows = vec![report(size)];
        for suite in Suite::ALL {
            rows.push(bare(suite, class, size));
            rows.push(ours(suite, class, size));
        }
        (0..WARM_UP_ROUNDS + ROUNDS).for_each(|_| rows.iter_mut().for_each(Row::round));
        print(class, size, &mut rows);
    }
}

fn print(class: Class, size: usize, rows: &mut [Row]) {
    println!("\nclass {}, {size} bytes", class.letter());
    println!("{:34} {:>28} {:>28} {:>10}", "", "seal", "open", "both");
    let mut sums = Vec::new();
    for row in rows.iter_mut() {
        let (seal, open) = (row.seal.percentiles(), row.open.percentiles());
        let both = seal[1] + open[1];
        let show = |[low, median, high]: [f64; 3]| format!("{median:.0} [{low:.0}-{high:.0}]");
        println!("{:34} {:>28} {:>28} {both:>10.0}", row.name, show(seal), show(open));
        sums.push(both);
    }
    for (suite, pair) in Suite::ALL.into_iter().zip(sums[1..].chunks(2)) {
        println!(
            "{suite:?}: {:.2} times the bare cipher, {:.2} of the report's recipe",
            pair[1] / pair[0],
            pair[1] / sums[0]
        );
    }
}

struct Ours {
    sealer: Sealer,
    opener: Opener,
    binding: Binding,
    messages: Vec<(Vec<u8>, Range<usize>)>,
}

fn ours(suite: Suite, class: Class, size: usize) -> Row {
    let group = Group::new(GroupId([1; 32]), suite);
    let (sealer, opener) = met(group);
    let room = size + class.head_bytes() + class.tail_bytes();
    let messages = vec![(vec![7; room], 0..0); messages_of(size)];
    let binding = Binding::stream("fleet/7");
    let state = Rc::new(RefCell::new(Ours { sealer, opener, binding, messages }));
    let other = Rc::clone(&state);
    let head = class.head_bytes();
    let clear = if class == Class::Authenticated { size } else { 0 };
    let seal = move |index: usize| {
        let Ours { sealer, messages, binding, .. } = &mut *state.borrow_mut();
        let (buf, place) = &mut messages[index];
        let (buf, body) = (black_box(buf), head..head + size);
        *place = sealer.seal_in_place(class, Form::Full, binding, META, buf, body).unwrap();
    };
    let open = move |index: usize| {
        let Ours { opener, messages, binding, .. } = &mut *other.borrow_mut();
        let (buf, place) = &mut messages[index];
        let sealed = black_box(&mut buf[place.clone()]);
        let attached = Attached { context: CONTEXT, binding, meta: META };
        let mut pending = opener.open_live(Form::Full, &attached, sealed, clear).unwrap();
        black_box(pending.to_store(0));
        black_box(pending.accept());
    };
    let name = format!("sealane {suite:?}");
    Row { name, size, seal: Step::new(seal), open: Step::new(open) }
}

/// A sender, and a reader that has heard it announce itself.
fn met(group: Group) -> (Sealer, Opener) {
    let secret = EpochSecret::new([2; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    let slot = Slot::new(3).unwrap();
    let mut sealer = Sealer::new(group, slot, CONTEXT, &epochs, 0).unwrap();
    let signing = SigningKey::from_seed(&[5; 32]).unwrap();
    let mut opener = Opener::new(group, None, epochs).unwrap();
    let verifying_key = signing.verifying_key();
    opener.set_terms([Term { slot, since: Epoch(0), until: None, verifying_key }]).unwrap();
    sealer.set_signing_key(signing);
    let (body, mut sealed) = (Announcement { start: 1, orders: 0 }.to_bytes(), Vec::new());
    let (class, binding) = (Class::Signed, Binding::link());
    sealer.append(class, Form::Full, &binding, META, &body, &mut sealed).unwrap();
    let attached = Attached { context: CONTEXT, binding: &binding, meta: META };
    let _ = opener.open_announcement(&attached, &mut sealed).unwrap().accept();
    (sealer, opener)
}

/// As many bytes as our associated data: header, group, binding, length, meta.
const ASSOCIATED: [u8; 101] = [3; 101];

/// The cipher alone, with a prepared key, a counter as nonce, in place, on a text that begins where
/// ours does, and as many bytes to authenticate as ours, laid out beforehand.
fn bare(suite: Suite, class: Class, size: usize) -> Row {
    let algorithm = match suite {
        Suite::Aes256Gcm => &AES_256_GCM,
        Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let key = Rc::new(LessSafeKey::new(UnboundKey::new(algorithm, &[2; 32]).unwrap()));
    let is_clear = class == Class::Authenticated;
    let (count, head) = (messages_of(size), class.head_bytes());
    let all = if is_clear { size + ASSOCIATED.len() + 4 } else { size };
    let messages = Rc::new(RefCell::new(vec![(vec![7; head + all], [0; 16]); count]));
    let (other_key, other_messages) = (Rc::clone(&key), Rc::clone(&messages));
    let nonce = |index: usize| {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&index.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    };
    let seal = move |index: usize| {
        let (text, tag) = &mut messages.borrow_mut()[index];
        let text = &mut text[head..];
        let sealed = if is_clear {
            key.seal_in_place_separate_tag(nonce(index), Aad::from(&text[..]), &mut [])
        } else {
            key.seal_in_place_separate_tag(nonce(index), Aad::from(ASSOCIATED), black_box(text))
        };
        tag.copy_from_slice(sealed.unwrap().as_ref());
    };
    let open = move |index: usize| {
        let (text, tag) = &mut other_messages.borrow_mut()[index];
        let text = &mut text[head..];
        let key = &other_key;
        if is_clear {
            let associated = Aad::from(&text[..]);
            key.open_in_place_separate_tag(nonce(index), associated, tag, &mut []).unwrap();
        } else {
            let associated = Aad::from(ASSOCIATED);
            let text = black_box(text);
            key.open_in_place_separate_tag(nonce(index), associated, tag, text).unwrap();
        }
    };
    let name = format!("bare {suite:?}");
    Row { name, size, seal: Step::new(seal), open: Step::new(open) }
}

/// Marker, nonce and ciphertext in a fresh buffer; the plaintext in another.
fn report(size: usize) -> Row {
    let cipher = ChaCha20Poly1305::new(&Key::from([2; 32]));
    let other = cipher.clone();
    let plain = vec![7; size];
    let sealed = Rc::new(RefCell::new(vec![Vec::new(); messages_of(size)]));
    let other_sealed = Rc::clone(&sealed);
    let seal = move |index: usize| {
        let mut nonce = [0; 12];
        getrandom::fill(&mut nonce).unwrap();
        let text = cipher.encrypt(&nonce.into(), black_box(&plain[..])).unwrap();
        let mut message = Vec::with_capacity(14 + text.len());
        message.extend_from_slice(&[0xae, 0]);
        message.extend_from_slice(&nonce);
        message.extend_from_slice(&text);
        sealed.borrow_mut()[index] = message;
    };
    let open = move |index: usize| {
        let message = &other_sealed.borrow()[index];
        let nonce: [u8; 12] = message[2..14].try_into().unwrap();
        black_box(other.decrypt(&nonce.into(), &message[14..]).unwrap());
    };
    let name = "the report's recipe, in release".to_owned();
    Row { name, size, seal: Step::new(seal), open: Step::new(open) }
}
