//! Ten consumers of ten members each, with mixed codecs, random credit, random acknowledgement,
//! nacks and disconnects: every consumer gets every message, and nothing beyond its credit.
//!
//! `SEALANE_MESSAGES` says how many messages (100,000), `SEALANE_SEED` repeats a choice of
//! codecs, credits and moments.

mod ledger;
mod member;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sealane_codec::{Codec, DatumWriter};

use crate::http;
use crate::running::Running;
use ledger::Ledger;
use member::Member;

const CONSUMERS: u64 = 10;
const MEMBERS: u64 = 10;
const BATCH: u64 = 1000;
/// Without any progress for so long, messages are lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A source of choices that can be repeated: xorshift64*.
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: u64, stream: u64) -> Choices {
        Choices((seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_members_get_every_message_within_their_credit() {
    deliver(setting("SEALANE_MESSAGES", 100_000), 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_keep_their_order_too() {
    // More than one turn of a member may hold, so that what it was handed is given back.
    deliver(1000, 6000).await;
}

async fn deliver(messages: u64, body_bytes: usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = setting("SEALANE_SEED", now.as_nanos() as u64);
    println!("SEALANE_SEED={seed} SEALANE_MESSAGES={messages}");
    let hub = Running::start().await;
    let began = Instant::now();
    let ledgers: Vec<_> = (0..CONSUMERS).map(|_| Arc::new(Ledger::new(messages))).collect();
    let mut members = Vec::new();
    for index in 0..CONSUMERS * MEMBERS {
        let ledger = Arc::clone(&ledgers[(index / MEMBERS) as usize]);
        let choices = Choices::new(seed, index + 1);
        let member = Member::new(hub.address(), index / MEMBERS, ledger, choices);
        members.push(tokio::spawn(member.work()));
    }
    publish(&hub, messages, body_bytes, &mut Choices::new(seed, 0)).await;
    wait(&ledgers).await;
    for member in members {
        tokio::time::timeout(PATIENCE, member).await.expect("a member ends").unwrap();
    }
    report(&hub, &ledgers, began.elapsed()).await;
    for (index, ledger) in ledgers.iter().enumerate() {
        ledger.check();
        let state = hub.consumer("load", &format!("c{index}")).await;
        assert_eq!(state["next"], messages);
        assert_eq!(state["inFlight"], 0);
    }
}

/// Enqueues batches in mixed codecs, so that the message `m7` is at offset 7.
async fn publish(hub: &Running, messages: u64, body_bytes: usize, choices: &mut Choices) {
    let mut next = 0;
    while next < messages {
        let count = (1 + choices.below(BATCH * 2)).min(messages - next);
        let codec = [Codec::Json, Codec::MsgPack, Codec::Cbor][choices.below(3) as usize];
        let body = batch(codec, next, count, body_bytes);
        let headers = [("content-type", codec.content_type())];
        let path = "/v1/enqueue/batch";
        let reply = http::request(hub.address(), "POST", path, &headers, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["offset"], next);
        next += count;
    }
}

fn batch(codec: Codec, first: u64, count: u64, body_bytes: usize) -> Vec<u8> {
    let text = "x".repeat(body_bytes);
    let mut body = Vec::new();
    let mut writer = DatumWriter::new(codec, &mut body);
    writer.map(2);
    writer.key("to");
    writer.text("load");
    writer.key("envelopes");
    writer.array(count as usize);
    for n in first..first + count {
        writer.map(3);
        writer.key("id");
        writer.text(&format!("m{n}"));
        writer.key("n");
        writer.u64(n);
        writer.key("text");
        writer.text(&text);
        writer.end();
    }
    writer.end();
    writer.end();
    body
}

/// Waits until every consumer has finished everything, or nothing happens any more.
async fn wait(ledgers: &[Arc<Ledger>]) {
    let (mut before, mut moved) = (0, Instant::now());
    while !ledgers.iter().all(|ledger| ledger.is_done()) && moved.elapsed() < PATIENCE {
        let now: u64 = ledgers.iter().map(|ledger| ledger.delivered()).sum();
        if now != before {
            (before, moved) = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ledgers.iter().for_each(|ledger| ledger.give_up());
}

async fn report(hub: &Running, ledgers: &[Arc<Ledger>], took: Duration) {
    let sum = |count: fn(&Ledger) -> u64| ledgers.iter().map(|ledger| count(ledger)).sum::<u64>();
    let sent = hub.metric("sealane_stream_delivered_total").await;
    let (delivered, redelivered) = (sum(Ledger::delivered), sum(Ledger::redelivered));
    let (lost, beyond) = (sum(Ledger::lost), sum(Ledger::beyond));
    let disconnects = sum(Ledger::disconnects);
    println!("sent {sent}, delivered {delivered}, redelivered {redelivered}, lost {lost},");
    println!("beyond credit {beyond}, disconnects {disconnects}, in {took:.1?}");
    assert!(disconnects > 0 && redelivered > 0, "nothing was put to the test");
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}
