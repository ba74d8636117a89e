//! Sealed streams: the hub keeps and delivers frames that it cannot open, as it does all else.

use std::hash::{BuildHasher, RandomState};

use sealane_codec::{Codec, DatumWriter};
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, open_stored, seal_frame};
use sealane_protocol::SealedEnvelope;
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Group, GroupId, History, Opener, Sealer, SenderContext,
    Slot, Suite,
};
use sealane_testing::until_async;
use serde_json::{Value, json};

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::{Delivered, Socket, offsets, places};

pub(crate) const TAG: &str = "0a1b2c3d";
/// The content of every body, which no file of the hub may hold.
const SECRET: &str = "the way to the treasure";

/// A group of two members with its keys, of which the hub has none. What they write is bound to one
/// stream.
pub(crate) struct Members {
    tag: GroupTag,
    stream: Binding,
    sealer: Sealer,
    opener: Opener,
}

impl Members {
    pub(crate) fn of(tag: &str, topic: &str) -> Members {
        let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
        let secret = EpochSecret::new([1; 32]);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
        // Keys of a hasher are random.
        let context = SenderContext(RandomState::new().hash_one(topic).to_be_bytes());
        let slot = Slot::new(1).unwrap();
        let sealer = Sealer::new(group, slot, context, &epochs, 0).unwrap();
        let opener = Opener::new(group, Slot::new(2), epochs).unwrap();
        let (tag, stream) = (GroupTag::from_hex(tag).unwrap(), Binding::stream(topic));
        Members { tag, stream, sealer, opener }
    }

    pub(crate) fn seal(&mut self, body: &[u8]) -> Vec<u8> {
        let source = PeerTag::from_hash([3; 8]);
        let fields = HeaderFields::new(self.tag, source, 7);
        let (sealer, stream, mut buf) = (&mut self.sealer, &self.stream, FrameBuf::new());
        seal_frame(sealer, &fields, stream, body, &mut buf).unwrap().to_vec()
    }

    /// Frames whose bodies are the secret and a number, and their envelopes in JSON.
    fn seal_numbered(&mut self, first: u64, count: u64) -> Vec<Value> {
        let envelope = |n| self.envelope(&format!("m{n}"), format!("{SECRET} {n}").as_bytes());
        (first..first + count).map(envelope).collect()
    }

    fn envelope(&mut self, id: &str, body: &[u8]) -> Value {
        in_json(Some(id), &self.seal(body))
    }

    /// The body within an envelope as it was delivered.
    fn open(&mut self, envelope: &Value) -> String {
        let mut frame = frame_of(envelope);
        let stored = open_stored(&mut self.opener, Epoch(0), &self.stream, &mut frame).unwrap();
        String::from_utf8(stored.body.to_vec()).unwrap()
    }

    fn check(&mut self, delivered: &Delivered) {
        assert_eq!(self.open(&delivered.envelope), format!("{SECRET} {}", delivered.offset));
    }
}

pub(crate) fn in_json(id: Option<&str>, frame: &[u8]) -> Value {
    let mut text = Vec::new();
    let sealed = SealedEnvelope { id: id.map(Into::into), frame: frame.into() };
    sealed.write(Codec::Json, &mut text);
    serde_json::from_slice(&text).unwrap()
}

fn frame_of(envelope: &Value) -> Vec<u8> {
    let text = envelope.to_string();
    SealedEnvelope::read(Codec::Json, text.as_bytes()).unwrap().expect("sealed").frame.into_owned()
}

async fn batch(hub: &Running, to: &str, envelopes: Vec<Value>) {
    let reply = hub.post("/v1/enqueue/batch", json!({"to": to, "envelopes": envelopes})).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn refused(hub: &Running, to: &str, envelope: Value) -> (u16, String) {
    let reply = hub.post("/v1/enqueue", json!({"to": to, "envelope": envelope})).await;
    (reply.status, reply.error())
}

async fn put(hub: &Running, topic: &str, sealed: &str) -> Reply {
    hub.put(&format!("/v1/streams/{topic}"), json!({"sealed": sealed})).await
}

fn conflict(name: &str) -> (u16, String) {
    (409, name.to_owned())
}

/// A frame that two gateways have heard over different relays is one message, and a changed one
/// takes nobody's place.
#[tokio::test]
async fn a_frame_is_stored_once_whatever_way_it_came() {
    let hub = Running::start().await;
    let mut members = Members::of(TAG, "a");
    let frame = members.seal(SECRET.as_bytes());
    let publish = async |frame: &[u8], id: Option<&str>| {
        let body = json!({"to": "a", "envelope": in_json(id, frame)});
        let scope = [("idempotency-scope", "stream")];
        let reply = hub.post_with("/v1/enqueue", &scope, body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    // Somebody who changes what is sealed comes first.
    let mut forged = frame.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(publish(&forged, None).await["offset"], 0);
    let first = publish(&frame, None).await;
    assert_eq!((&first["offset"], &first["replayed"]), (&json!(1), &Value::Null));
    for at in [0, 8, 16] {
        let mut relayed = frame.clone();
        relayed[at] ^= 1;
        for id in [None, Some("mine")] {
            let again = publish(&relayed, id).await;
            assert_eq!((&again["replayed"], &again["id"]), (&json!(true), &first["id"]), "{at}");
        }
    }
    assert_eq!(publish(&members.seal(SECRET.as_bytes()), None).await["offset"], 2);
    // In another codec the frame is the same.
    let mut body = Vec::new();
    let mut writer = DatumWriter::new(Codec::Cbor, &mut body);
    writer.map(2);
    writer.key("to");
    writer.text("a");
    writer.key("envelope");
    let mut envelope = Vec::new();
    let sealed = SealedEnvelope { id: None, frame: frame.as_slice().into() };
    sealed.write(Codec::Cbor, &mut envelope);
    writer.raw(&envelope);
    writer.end();
    let headers = [("idempotency-scope", "stream"), ("content-type", "application/cbor")];
    let reply = http::request(hub.address(), "POST", "/v1/enqueue", &headers, &body).await;
    assert_eq!((reply.status, &reply.json()["replayed"]), (200, &json!(true)));
}

#[tokio::test]
async fn a_stream_stays_what_it_was_made() {
    let hub = Running::start().await;
    let made = put(&hub, "a", TAG).await;
    assert_eq!((made.status, &made.json()["sealed"]), (201, &json!(TAG)));
    assert_eq!(put(&hub, "a", TAG).await.status, 200);
    let other = put(&hub, "a", "00000000").await;
    assert_eq!((other.status, other.error()), conflict("SealMismatch"));
    let level = hub.put("/v1/streams/a", json!({"level": "memory"})).await;
    assert_eq!((level.status, &level.json()["sealed"]), (200, &json!(TAG)));
    hub.enqueue("b", json!({})).await;
    assert_eq!(hub.state("b").await["sealed"], Value::Null);
    assert_eq!(put(&hub, "b", TAG).await.error(), "SealMismatch");
    for wrong in ["0A1B2C3D", "0a1b2c3", ""] {
        let reply = put(&hub, "c", wrong).await;
        assert_eq!((reply.status, reply.error().as_str()), (400, "InvalidParameter"));
    }
    assert_eq!(hub.get("/v1/streams/c").await.status, 404);
    let hub = hub.restart().await;
    assert_eq!(hub.state("a").await["sealed"], TAG);
    assert_eq!(hub.metric("sealane_stream_sealed_streams").await, 1);
}

#[tokio::test]
async fn the_first_message_makes_the_stream_what_it_is_itself() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    hub.enqueue("s", members.envelope("m0", b"x")).await;
    assert_eq!(hub.state("s").await["sealed"], TAG);
    let mut other = Members::of("ffffffff", "s");
    assert_eq!(refused(&hub, "s", json!({"id": "x"})).await, conflict("NotSealed"));
    assert_eq!(refused(&hub, "s", other.envelope("x", b"x")).await, conflict("SealMismatch"));
    hub.enqueue("open", json!({})).await;
    assert_eq!(refused(&hub, "open", members.envelope("x", b"x")).await, conflict("SealMismatch"));
    // A batch is one or the other, and a stream that it would have made is not made.
    let mixed = json!([members.envelope("a", b"x"), {"id": "b"}]);
    let reply = hub.post("/v1/enqueue/batch", json!({"to": "new", "envelopes": mixed})).await;
    assert_eq!((reply.status, reply.error()), conflict("NotSealed"));
    assert_eq!(hub.get("/v1/streams/new").await.status, 404);
    let made = hub.state("s").await;
    assert_eq!((&made["next"], hub.state("open").await["next"].as_u64()), (&json!(1), Some(1)));
}

#[tokio::test]
async fn what_is_no_frame_is_refused_by_name() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    put(&hub, "s", TAG).await;
    let good = members.seal(SECRET.as_bytes());
    let malformed = (422, "FrameMalformed".to_owned());
    for cut in [0, 1, 63, 64, 65, good.len() - 1] {
        assert_eq!(refused(&hub, "s", in_json(None, &good[..cut])).await, malformed, "{cut}");
    }
    let longer = [good.as_slice(), b"x"].concat();
    assert_eq!(refused(&hub, "s", in_json(None, &longer)).await, malformed);
    // Version, kind, flags, body length and sequence are not what they can be.
    for at in [17, 18, 19, 43, 47] {
        let mut bad = good.clone();
        bad[at] ^= 0x80;
        assert_eq!(refused(&hub, "s", in_json(None, &bad)).await, malformed, "byte {at}");
    }
    for (envelope, error) in [
        (json!({"sealed": "not base64url!"}), "InvalidEnvelope"),
        (json!({"sealed": "AA", "id": ""}), "FrameMalformed"),
        (json!({"sealed": "AA", "more": 1}), "NotSealed"),
        (json!({"sealed": true}), "NotSealed"),
    ] {
        assert_eq!(refused(&hub, "s", envelope.clone()).await.1, error, "{envelope}");
    }
    let mut long = members.envelope("", SECRET.as_bytes());
    assert_eq!(refused(&hub, "s", long.clone()).await.1, "InvalidEnvelope");
    long["id"] = "x".repeat(129).into();
    assert_eq!(refused(&hub, "s", long).await.1, "InvalidEnvelope");
    assert_eq!(hub.state("s").await["next"], 0);
}

#[tokio::test]
async fn every_codec_carries_the_same_frame_and_only_the_frame_is_kept() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    let frame = members.seal(format!("{SECRET} 0").as_bytes());
    for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        let (mut envelope, mut body) = (Vec::new(), Vec::new());
        let sealed = SealedEnvelope { id: Some("m".into()), frame: frame.as_slice().into() };
        sealed.write(codec, &mut envelope);
        let mut writer = DatumWriter::new(codec, &mut body);
        writer.map(2);
        writer.key("to");
        writer.text("s");
        writer.key("envelope");
        writer.raw(&envelope);
        writer.end();
        let headers = [("content-type", codec.content_type())];
        let reply = http::request(hub.address(), "POST", "/v1/enqueue", &headers, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let expected = in_json(Some("m"), &frame);
    for codec in ["json", "msgpack", "cbor", "msgpack-records"] {
        let mut reader = hub.subscribe(&format!("stream=s&from=first&codec={codec}")).await;
        assert_eq!(reader.first["sealed"], TAG);
        reader.credit(3).await;
        for delivered in reader.take(3).await {
            assert_eq!(delivered.envelope, expected, "{codec}");
        }
    }
    let page = hub.get("/v1/streams/s?from=first").await.json();
    assert_eq!(page["messages"][2]["deliver"], expected);
    members.open(&expected);
    // 18 bytes of record, the id and the frame, three times: nothing else of the envelopes.
    assert_eq!(hub.state("s").await["bytes"], 3 * (18 + 1 + frame.len()));
    assert_eq!(hub.metric("sealane_stream_stored_sealed_total").await, 3);
}

#[tokio::test]
async fn an_id_is_added_where_there_is_none() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    let frame = members.seal(b"x");
    let reply = hub.enqueue("s", in_json(None, &frame)).await;
    let mut reader = hub.subscribe("stream=s&from=first").await;
    reader.credit(1).await;
    assert_eq!(reader.deliver().await.id(), reply["id"]);
}

#[tokio::test]
async fn consumers_share_redeliver_and_resume_what_nobody_here_can_read() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    batch(&hub, "s", members.seal_numbered(0, 5)).await;
    let mut first = hub.subscribe("stream=s&consumer=c&codec=msgpack").await;
    first.credit(3).await;
    let taken = first.take(3).await;
    taken.iter().for_each(|delivered| members.check(delivered));
    first.send(json!({"ack": ["m0", {"from": 1, "to": 1}], "nack": "m2"})).await;
    first.credit(1).await;
    let again = first.deliver().await;
    assert_eq!((again.offset, again.attempt), (2, 2));
    members.check(&again);
    first.close().await;
    let hub = hub.restart().await;
    let mut second = hub.subscribe("stream=s&consumer=c").await;
    second.credit(10).await;
    let rest = second.take(3).await;
    assert_eq!(offsets(&rest), [2, 3, 4]);
    rest.iter().for_each(|delivered| members.check(delivered));
}

#[tokio::test]
async fn readers_replay_seek_and_follow_by_pattern() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "mesh/0a1b2c3d/7"));
    let mut pattern = hub.subscribe("stream=mesh/**&from=first&codec=cbor").await;
    pattern.credit(100).await;
    batch(&hub, "mesh/0a1b2c3d/7", members.seal_numbered(0, 10)).await;
    let joined = pattern.frame().await;
    assert_eq!((&joined["status"], &joined["sealed"]), (&json!("joined"), &json!(TAG)));
    pattern.take(10).await.iter().for_each(|delivered| members.check(delivered));
    hub.enqueue("mesh/open", json!({"id": "o"})).await;
    assert_eq!(pattern.frame().await["sealed"], Value::Null);
    assert_eq!(pattern.deliver().await.envelope, json!({"id": "o"}));
    let crashed = hub.crashed().await;
    let mut reader = crashed.subscribe("stream=mesh/0a1b2c3d/7&from=6").await;
    reader.credit(100).await;
    let rest = reader.take(4).await;
    rest.iter().for_each(|delivered| members.check(delivered));
    reader.send(json!({"seek": {"offset": 2}})).await;
    assert_eq!(reader.frame().await["sealed"], TAG);
    assert_eq!(offsets(&reader.take(8).await), (2..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn conditions_keys_delays_and_bounds_hold_for_sealed_streams_too() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    let envelope = members.envelope("m0", b"x");
    let body = json!({"to": "s", "envelope": envelope, "expect": 0});
    let key = [("idempotency-key", "k")];
    assert_eq!(hub.post_with("/v1/enqueue", &key, body.clone()).await.status, 200);
    let again = hub.post_with("/v1/enqueue", &key, body.clone()).await.json();
    assert_eq!((&again["replayed"], &again["id"]), (&json!(true), &json!("m0")));
    let late = hub.post("/v1/enqueue", body).await;
    assert_eq!((late.status, late.error()), conflict("OffsetMismatch"));

    let delayed = members.envelope("late", SECRET.as_bytes());
    let body = json!({"to": "s", "envelope": delayed, "delayMs": 400});
    assert_eq!(hub.post("/v1/enqueue", body).await.status, 200);
    let hub = hub.restart().await;
    let mut reader = hub.subscribe("stream=s&from=1").await;
    reader.credit(1).await;
    let delivered = reader.deliver().await;
    assert_eq!((delivered.id(), delivered.offset), ("late", 1));
    assert_eq!(members.open(&delivered.envelope), SECRET);

    hub.put("/v1/streams/s", json!({"maxCount": 5})).await;
    for first in [2, 7, 12] {
        batch(&hub, "s", members.seal_numbered(first, 5)).await;
    }
    until_async("the first ones go", async || hub.state("s").await["first"] == 12).await;
    let mut reader = hub.subscribe("stream=s&from=0").await;
    reader.credit(10).await;
    assert_eq!((&reader.first["recovered"], &reader.first["offset"]), (&json!(false), &json!(12)));
    assert_eq!(offsets(&reader.take(5).await), (12..17).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_dead_letter_still_opens_for_the_members() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    batch(&hub, "s", members.seal_numbered(0, 1)).await;
    let mut member = hub.subscribe("stream=s&consumer=c&max_attempts=1").await;
    member.credit(1).await;
    assert_eq!(places(&member.take(1).await), [(0, 1)]);
    let mut grave = hub.subscribe("stream=dead/s&from=first").await;
    grave.credit(1).await;
    member.send(json!({"nack": "m0"})).await;
    assert_eq!(grave.frame().await["sealed"], Value::Null);
    let letter = grave.deliver().await.envelope;
    assert_eq!((&letter["type"], &letter["stream"]), (&json!("dead-letter"), &json!("s")));
    assert_eq!(members.open(&letter["envelope"]), format!("{SECRET} 0"));
    // The hub writes open messages there, so no client may make such a stream sealed.
    assert_eq!(put(&hub, "dead/other", TAG).await.error(), "SealMismatch");
    let sealed = members.envelope("x", b"x");
    assert_eq!(refused(&hub, "dead/other", sealed).await, conflict("SealMismatch"));
}

#[tokio::test]
async fn no_file_of_the_hub_holds_a_body_of_a_sealed_stream() {
    let (hub, mut members) = (Running::start().await, Members::of(TAG, "s"));
    let holds = |hub: &Running| {
        let files = std::fs::read_dir(hub.folder.path()).unwrap();
        let mut files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.any(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()))
    };
    batch(&hub, "s", members.seal_numbered(0, 100)).await;
    let mut reader: Socket = hub.subscribe("stream=s&consumer=c&from=first").await;
    reader.credit(100).await;
    reader.take(100).await.iter().for_each(|delivered| members.check(delivered));
    assert!(!holds(&hub));
    // And it would be found if it were there.
    hub.enqueue("open", json!({"text": SECRET})).await;
    assert!(holds(&hub));
}
