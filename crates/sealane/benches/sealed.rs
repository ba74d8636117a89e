//! The cost that a client adds for a sealed stream. It has two parts: from an encoded envelope to
//! the request's, and from a delivery's envelope to the message. The copies are included. The check
//! of the envelope is included too; for an open message the hub makes that check.
//!
//! The baseline is the bare cipher, in place, on as many bytes. No client can avoid that cost.
//!
//! Rounds of all rows are interleaved and the first are warm-up. The clock is the CPU time of this
//! thread. `cargo bench -p sealane --bench sealed`.
#![allow(unsafe_code)] // The CPU time of a thread is read through the C library.

use std::hint::black_box;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sealane::{
    Client, Codec, DataType, GroupClient, KeyFolder, ReceivedMessage, StartPosition, Value,
};
use sealane_group::NewGroup;

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 61;
/// A page of the hub has 256 KiB.
const MESSAGES: usize = 31;

struct Row {
    codec: Codec,
    size: usize,
    envelope: Vec<u8>,
    messages: Vec<ReceivedMessage>,
    sealed: Vec<f64>,
    opened: Vec<f64>,
    bare: Vec<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (listen, data) = ("127.0.0.1:0".parse().unwrap(), folder.path().join("hub"));
    let config = sealane_node::Config { listen, data, ..Default::default() };
    let node = sealane_node::HubNode::start(config).await.unwrap();
    let client = Client::connect(&node.address().to_string()).unwrap();
    let keys = KeyFolder::create(&folder.path().join("keys"), "bench", None).unwrap();
    let member = keys.new_group("bench", NewGroup::default()).unwrap();
    let group = client.group(member).await.unwrap();
    let mut rows = Vec::new();
    for codec in [Codec::MsgPack, Codec::Cbor, Codec::Json] {
        for size in [100, 8192] {
            rows.push(row(&client, &group, codec, size).await);
        }
    }
    for _ in 0..WARM_UP_ROUNDS + ROUNDS {
        rows.iter_mut().for_each(|row| round(&group, row));
    }
    println!("microseconds of CPU per message, median of {ROUNDS} interleaved rounds");
    println!("(in brackets: the tenth and ninetieth percentile)\n");
    let head = ("codec", "bytes", "seal", "open", "both", "bare cipher, both");
    println!(
        "{:<9} {:>6} {:>20} {:>20} {:>8} {:>20}",
        head.0, head.1, head.2, head.3, head.4, head.5
    );
    for row in &mut rows {
        let (seal, open) = (percentiles(&mut row.sealed), percentiles(&mut row.opened));
        let show = |[low, median, high]: [f64; 3]| format!("{median:.2} [{low:.2}-{high:.2}]");
        let (name, size, both) = (row.codec.name(), row.size, seal[1] + open[1]);
        let (seal, open, bare) = (show(seal), show(open), show(percentiles(&mut row.bare)));
        println!("{name:<9} {size:>6} {seal:>20} {open:>20} {both:>8.2} {bare:>20}");
    }
}

/// An envelope of `size` bytes, one text in it, and messages of it as the hub gives them.
async fn row(client: &Client, group: &GroupClient, codec: Codec, size: usize) -> Row {
    let value = |len| Value::Map(vec![("data".into(), Value::Text("x".repeat(len)))]);
    let mut envelope = Vec::new();
    sealane_codec::encode(codec, &value(size), &mut envelope);
    let over = envelope.len() - size;
    envelope.clear();
    sealane_codec::encode(codec, &value(size - over), &mut envelope);
    let topic = format!("bench/{}/{size}", codec.name());
    let all = vec![envelope.clone(); MESSAGES];
    group.publish_batch(&topic, DataType::LOCATION, codec, &all).await.unwrap();
    let messages = client.read(&topic, StartPosition::First, MESSAGES).await.unwrap().messages;
    assert_eq!(messages.len(), MESSAGES);
    Row {
        codec,
        size,
        envelope,
        messages,
        sealed: Vec::new(),
        opened: Vec::new(),
        bare: Vec::new(),
    }
}

fn round(group: &GroupClient, row: &mut Row) {
    let started = cpu_us();
    for _ in 0..MESSAGES {
        let sealed =
            group.seal("bench/sealed", DataType::LOCATION, row.codec, black_box(&row.envelope));
        black_box(sealed.unwrap());
    }
    row.sealed.push((cpu_us() - started) / MESSAGES as f64);
    let mut reader = group.reader();
    let started = cpu_us();
    for message in &row.messages {
        black_box(reader.open(black_box(message)).unwrap());
    }
    row.opened.push((cpu_us() - started) / MESSAGES as f64);
    row.bare.push(bare(row.size));
}

/// Sealing and opening with the cipher alone: prepared key, counter, as much associated data.
fn bare(size: usize) -> f64 {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap());
    let mut text = vec![3; size];
    let nonce = |n: usize| {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&n.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    };
    let started = cpu_us();
    for n in 0..MESSAGES {
        let aad = || Aad::from([3; 85]);
        let tag = key.seal_in_place_separate_tag(nonce(n), aad(), black_box(&mut text)).unwrap();
        text.extend_from_slice(tag.as_ref());
        black_box(key.open_in_place(nonce(n), aad(), black_box(&mut text)).unwrap());
        text.truncate(size);
    }
    (cpu_us() - started) / MESSAGES as f64
}

/// The tenth, fiftieth and ninetieth of a hundred.
fn percentiles(rounds: &mut [f64]) -> [f64; 3] {
    let warm = &mut rounds[WARM_UP_ROUNDS..];
    warm.sort_by(f64::total_cmp);
    [10, 50, 90].map(|percent| warm[(warm.len() - 1) * percent / 100])
}

fn cpu_us() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
