//! A publishing socket stores each numbered message once and says where, whatever is repeated,
//! skipped, wrong, lost on the way or ended in between; and it takes no more than it asked for.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sealane_codec::Codec;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::{
    FIRST_PUBLISH_CREDIT_BYTES, MAX_PUBLISH_CREDIT, MAX_PUBLISH_CREDIT_BYTES,
};
use sealane_node::{ClientLimits, Config};
use sealane_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_PUBLISH_FRAME_BYTES};
use sealane_stream::Level;
use serde_json::{Value, json};

use crate::running::{Running, config};
use crate::socket::{Ending, Socket};

/// A publishing socket, and what it was asked for.
struct Session {
    socket: Socket,
    credit: u64,
    bytes: i64,
}

impl Session {
    async fn open(hub: &Running, query: &str) -> Session {
        let path = format!("/v1/publish?{query}");
        let mut socket = Socket::open_at(hub.address(), &path, &[]).await;
        let first = socket.frame().await;
        let (credit, bytes) = (first["credit"].as_u64().unwrap(), first["bytes"].as_i64().unwrap());
        Session { socket, credit, bytes }
    }

    /// Publishes an item, or an array of them.
    async fn ask(&mut self, items: Value) {
        let each = items.as_array().map_or(std::slice::from_ref(&items), Vec::as_slice);
        self.credit -= each.len() as u64;
        self.bytes -= each.iter().map(|item| item.to_string().len() as i64).sum::<i64>();
        self.socket.send(json!({"publish": items})).await;
    }

    /// The next answer.
    async fn answer(&mut self) -> Value {
        loop {
            let frame = self.socket.frame().await;
            if let Some(more) = frame["credit"].as_u64() {
                self.credit += more;
                self.bytes += frame["bytes"].as_i64().unwrap();
            } else {
                return frame;
            }
        }
    }

    /// The answers to so many messages, by stream and number: the offset, or the error's name.
    async fn answers(&mut self, count: usize) -> HashMap<(String, u64), Result<u64, String>> {
        let mut all = HashMap::new();
        while all.len() < count {
            let frame = self.answer().await;
            let placed = frame.get("published");
            let told = placed.or(frame.get("refused")).unwrap_or_else(|| panic!("{frame}"));
            let from = told["n"].as_u64().or(told["from"].as_u64()).unwrap();
            let to = told["to"].as_u64().unwrap_or(from);
            let stream = told["stream"].as_str().unwrap();
            for n in from..=to {
                let became = match placed {
                    Some(placed) => Ok(placed["offset"].as_u64().unwrap() + n - from),
                    None => Err(told["error"]["code"].as_str().unwrap().to_owned()),
                };
                assert_eq!(all.insert((stream.to_owned(), n), became), None, "answered twice");
            }
        }
        all
    }

    /// Publishes one item; what it became.
    async fn one(&mut self, item: Value) -> Result<u64, String> {
        self.ask(item).await;
        self.answers(1).await.into_values().next().unwrap()
    }
}

fn item(to: &str, n: u64) -> Value {
    json!({"to": to, "n": n, "envelope": {"id": format!("{to} {n}")}})
}

fn with(mut item: Value, key: &str, value: Value) -> Value {
    item[key] = value;
    item
}

fn refused(name: &str) -> Result<u64, String> {
    Err(name.to_owned())
}

#[tokio::test]
async fn messages_of_several_streams_singly_and_together_in_every_codec() {
    let hub = Running::start().await;
    let mut offsets = [0, 0];
    for codec in Codec::ALL {
        let mut session = Session::open(&hub, &format!("codec={}", codec.name())).await;
        let first = &session.socket.first;
        assert_eq!(first["codec"], codec.name());
        assert!(first["features"].as_array().unwrap().contains(&json!("publish")));
        assert!(!first["session"].as_str().unwrap().is_empty());
        session.ask(json!([item("a", 1), item("b", 1), item("a", 2)])).await;
        session.ask(item("a", 3)).await;
        let all = session.answers(4).await;
        for (stream, n, offset) in [("a", 1, 0), ("a", 2, 1), ("a", 3, 2)] {
            assert_eq!(all[&(stream.to_owned(), n)], Ok(offsets[0] + offset), "{codec:?}");
        }
        assert_eq!(all[&("b".to_owned(), 1)], Ok(offsets[1]));
        offsets = [offsets[0] + 3, offsets[1] + 1];
    }
    let mut reader = hub.subscribe("stream=a&from=first").await;
    reader.credit(3).await;
    let ids: Vec<_> = reader.take(3).await.iter().map(|one| one.id().to_owned()).collect();
    assert_eq!(ids, ["a 1", "a 2", "a 3"]);
}

#[tokio::test]
async fn the_answer_of_one_message_says_all_that_enqueue_says_of_its_place() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "session=s").await;
    assert_eq!(session.socket.first["session"], "s");
    session.ask(item("a", 1)).await;
    let generation = session.answer().await["published"]["generation"].clone();
    assert_eq!(generation, hub.state("a").await["generation"]);
    session.ask(item("a", 2)).await;
    let expected = json!({
        "n": 2, "stream": "a", "offset": 1, "generation": generation, "level": "os"
    });
    assert_eq!(session.answer().await, json!({"published": expected}));
    session.ask(with(item("a", 3), "delayMs", json!(3_600_000))).await;
    let later = session.answer().await;
    assert!(later["published"]["dueMs"].as_u64().is_some(), "{later}");
    assert_eq!(later["published"].get("offset"), None);
}

#[tokio::test]
async fn a_session_goes_on_where_it_was_after_a_cut_a_restart_and_a_crash() {
    let hub = Running::start().await;
    let mut first = Session::open(&hub, "session=s").await;
    let all: Vec<Value> = (1..=20).map(|n| item("a", n)).collect();
    first.ask(json!(all[..10])).await;
    let before = first.answers(10).await;
    // The client knows of ten, has sent five more, and has gone.
    first.ask(json!(all[10..15])).await;
    drop(first);
    let mut second = Session::open(&hub, "session=s").await;
    second.ask(json!(all[5..20])).await;
    let again = second.answers(15).await;
    for n in 1..=20 {
        let key = ("a".to_owned(), n);
        let place = again.get(&key).or(before.get(&key));
        assert_eq!(place, Some(&Ok(n - 1)));
        assert!(before.get(&key).is_none_or(|place| again.get(&key).is_none_or(|p| p == place)));
    }
    drop(second);
    let crashed = hub.crashed().await;
    for hub in [crashed, hub.restart().await] {
        let mut third = Session::open(&hub, "session=s").await;
        third.ask(json!(all[5..20])).await;
        assert_eq!(third.answers(15).await, again);
        assert_eq!(third.one(item("a", 21)).await, Ok(20));
        assert_eq!(hub.state("a").await["next"], 21);
    }
}

#[tokio::test]
async fn numbers_that_are_skipped_or_go_back_are_refused_by_name() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "session=s").await;
    assert_eq!(session.one(item("a", 2)).await, refused("NumberSkipped"));
    assert_eq!(session.one(item("a", 0)).await, refused("InvalidParameter"));
    session.ask(item("a", 5)).await;
    assert_eq!(session.answer().await["refused"]["error"]["next"], 1);
    assert_eq!(session.one(item("a", 1)).await, Ok(0));
    assert_eq!(session.one(item("a", 1)).await, Ok(0), "it is known");
    // Far behind what may be unanswered its place is not known any more.
    for n in 2..=400 {
        assert_eq!(session.one(item("a", n)).await, Ok(2 * n - 3));
        hub.enqueue("a", json!({})).await;
    }
    assert_eq!(session.one(item("a", 1)).await, refused("NumberForgotten"));
    assert_eq!(hub.state("a").await["next"], 799);
    // Another session of the same client begins for itself.
    let mut other = Session::open(&hub, "session=t").await;
    assert_eq!(other.one(item("a", 401)).await, refused("NumberSkipped"));
}

#[tokio::test]
async fn another_message_under_a_number_is_refused_and_the_first_frame_says_which_is_next() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "session=gateway-7&stream=a").await;
    assert_eq!(
        (&session.socket.first["stream"], &session.socket.first["next"]),
        (&json!("a"), &json!(1))
    );
    session.ask(json!([item("a", 1), item("a", 2), item("a", 3)])).await;
    assert_eq!(session.answers(3).await.len(), 3);
    // The program starts again: with what it knows, and with other messages under old numbers.
    let mut session = Session::open(&hub, "session=gateway-7&stream=a").await;
    assert_eq!(session.socket.first["next"], 4);
    session.ask(item("a", 3)).await;
    let again = session.answer().await;
    assert_eq!(
        (&again["published"]["replayed"], &again["published"]["offset"]),
        (&json!(true), &json!(2))
    );
    let other = with(item("a", 2), "envelope", json!({"id": "other"}));
    assert_eq!(session.one(other).await, refused("KeyReused"));
    assert_eq!(session.one(item("a", 0)).await, refused("InvalidParameter"));
    let fresh = session.one(item("a", 4)).await;
    assert_eq!(fresh, Ok(3));
    // Of two equal numbers in a frame the second is refused, whatever it carries.
    let twice = json!([item("a", 5), with(item("a", 5), "envelope", json!({})), item("a", 6)]);
    session.ask(twice).await;
    let mut told = Vec::new();
    while told.len() < 3 {
        let frame = session.answer().await;
        let one = frame.get("published").or(frame.get("refused")).unwrap();
        let from = one["n"].as_u64().or(one["from"].as_u64()).unwrap();
        for n in from..=one["to"].as_u64().unwrap_or(from) {
            told.push((n, frame.get("published").is_some()));
        }
    }
    told.sort_unstable();
    assert_eq!(told, [(5, false), (5, true), (6, true)]);
    // Without the parameter the first frame says nothing of a stream.
    let session = Session::open(&hub, "session=gateway-8").await;
    assert_eq!(
        (session.socket.first.get("stream"), session.socket.first.get("next")),
        (None, None)
    );
}

#[tokio::test]
async fn half_a_batch_is_stored_where_the_other_half_is_wrong() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "").await;
    let wrong = with(item("a", 2), "envelope", json!({"id": 7}));
    session.ask(json!([item("a", 1), wrong, item("b", 1), item("a", 3), item("a//b", 1)])).await;
    let all = session.answers(5).await;
    let of = |stream: &str, n| all[&(stream.to_owned(), n)].clone();
    assert_eq!((of("a", 1), of("b", 1)), (Ok(0), Ok(0)));
    assert_eq!((of("a", 2), of("a", 3)), (refused("InvalidEnvelope"), refused("NumberSkipped")));
    assert_eq!(of("a//b", 1), refused("InvalidTopic"));
    // A refused message took no number, and the socket goes on.
    session.ask(json!([item("a", 2), item("a", 3)])).await;
    assert_eq!(session.answers(2).await.len(), 2);
    assert_eq!(hub.state("a").await["next"], 3);
}

#[tokio::test]
async fn conditions_hold_and_unknown_ones_are_named() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "").await;
    let expect = |n, offset: u64| with(item("a", n), "condition", json!({"expect": offset}));
    assert_eq!(session.one(expect(1, 1)).await, refused("OffsetMismatch"));
    assert_eq!(session.one(expect(1, 0)).await, Ok(0));
    assert_eq!(session.one(expect(1, 0)).await, Ok(0), "repeated");
    session.ask(with(item("a", 2), "condition", json!({"expect": 1, "mood": "good"}))).await;
    let told = session.answer().await;
    assert_eq!(told["refused"]["error"]["code"], "UnknownCondition");
    assert!(told["refused"]["error"]["message"].as_str().unwrap().contains("`mood`"), "{told}");
    let both = with(expect(2, 1), "delayMs", json!(5));
    assert_eq!(session.one(both).await, refused("InvalidParameter"));
    assert_eq!(
        session.one(with(item("a", 2), "envelop", json!({}))).await,
        refused("UnknownField")
    );
    assert_eq!(
        session.one(with(item("a", 2), "delayMs", json!(-1))).await,
        refused("InvalidParameter")
    );
    assert_eq!(hub.state("a").await["next"], 1);
}

#[tokio::test]
async fn a_sealed_stream_takes_no_open_message_and_an_open_one_no_frame() {
    let hub = Running::start().await;
    hub.put("/v1/streams/s", json!({"sealed": "0a1b2c3d"})).await;
    let mut session = Session::open(&hub, "").await;
    assert_eq!(session.one(item("s", 1)).await, refused("NotSealed"));
    let noise = with(item("s", 1), "envelope", json!({"sealed": "AAAA"}));
    assert_eq!(session.one(noise).await, refused("FrameMalformed"));
}

#[tokio::test]
async fn more_than_it_was_asked_for_ends_it_and_nothing_of_that_is_kept() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "").await;
    let all: Vec<Value> = (1..=session.credit + 1).map(|n| item("a", n)).collect();
    session.socket.send(json!({"publish": all})).await;
    assert_eq!(session.socket.ending().await, Ending::new("CreditExceeded", 1008));
    assert_eq!(hub.get("/v1/streams/a").await.status, 404);
    // In bytes the last message may go beyond it; one more may not.
    let mut session = Session::open(&hub, "").await;
    assert_eq!(session.bytes, FIRST_PUBLISH_CREDIT_BYTES as i64);
    let text = "x".repeat(MAX_ENVELOPE_BYTES - 32);
    let large = |n| json!({"to": "b", "n": n, "envelope": {"id": "m", "text": text}});
    assert!(large(1).to_string().len() > FIRST_PUBLISH_CREDIT_BYTES as usize);
    assert_eq!(session.one(large(1)).await, Ok(0));
    session.ask(json!([item("c", 1), item("c", 2)])).await;
    assert_eq!(session.answers(2).await.len(), 2, "the hub has asked for more");
    session.socket.send(json!({"publish": [large(2), item("d", 1)]})).await;
    assert_eq!(session.socket.ending().await, Ending::new("CreditExceeded", 1008));
    assert_eq!(hub.state("b").await["next"], 1);
    assert_eq!(hub.get("/v1/streams/d").await.status, 404);
}

#[tokio::test]
async fn whoever_has_many_under_way_is_asked_for_more_up_to_the_bound() {
    let hub = Running::start().await;
    let mut session = Session::open(&hub, "").await;
    let first = session.credit;
    let (mut next, mut stored, mut most) = (1, 0, 0);
    while stored < 20_000 {
        while session.credit > 0 && session.bytes > 0 {
            // As many as there are bytes for, however long they are.
            let count = session.credit.min(session.bytes as u64 / 64 + 1).min(1000);
            let some: Vec<Value> = (next..next + count).map(|n| item("a", n)).collect();
            next += count;
            session.ask(json!(some)).await;
        }
        most = most.max(next - 1 - stored);
        // Whatever comes: what it asks for is sent before more is read.
        let frame = session.socket.frame().await;
        session.credit += frame["credit"].as_u64().unwrap_or(0);
        session.bytes += frame["bytes"].as_i64().unwrap_or(0);
        let placed = &frame["published"];
        if let Some(to) = placed["to"].as_u64().or(placed["n"].as_u64()) {
            stored = to;
        }
    }
    assert!(first < 100 && most == MAX_PUBLISH_CREDIT, "{first}, then {most}");
    assert_eq!(hub.state("a").await["next"].as_u64().map(|next| next >= 20_000), Some(true));
    // One at a time asks for no more than at first.
    let mut session = Session::open(&hub, "").await;
    for n in 1..=100 {
        session.one(item("b", n)).await.unwrap();
        assert!(session.credit <= first);
    }
}

#[tokio::test]
async fn what_is_no_publishing_ends_the_socket_by_name() {
    let hub = Running::start().await;
    for (frame, name, code) in [
        (json!({"credit": 1}), "UnknownOp", 1003),
        (json!({"publish": []}), "UnknownOp", 1003),
        (json!({"publish": {"to": "a", "envelope": {}}}), "UnknownOp", 1003),
        (json!({"publish": "x".repeat(MAX_PUBLISH_FRAME_BYTES)}), "TooLarge", 1009),
    ] {
        let mut session = Session::open(&hub, "").await;
        session.socket.send(frame).await;
        assert_eq!(session.socket.ending().await, Ending::new(name, code));
    }
    for query in ["session=", "topic=a", "session=%1b"] {
        let path = format!("/v1/publish?{query}");
        let mut socket = Socket::open_at(hub.address(), &path, &[]).await;
        assert_eq!(socket.ending().await, Ending::new("InvalidParameter", 1003), "{query}");
    }
    assert_eq!(hub.get("/v1/publish").await.status, 426);
}

#[tokio::test]
async fn a_session_that_is_taken_up_elsewhere_ends_here() {
    let hub = Running::start().await;
    let mut first = Session::open(&hub, "session=s").await;
    assert_eq!(first.one(item("a", 1)).await, Ok(0));
    let mut second = Session::open(&hub, "session=s").await;
    assert_eq!(first.socket.ending().await, Ending::new("SessionTaken", 1008));
    assert_eq!(second.one(item("a", 2)).await, Ok(1));
}

#[tokio::test]
async fn a_token_that_is_too_fast_is_asked_for_nothing_until_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, publish) = (TokenSecret::new([1; 32]), vec!["**".parse().unwrap()]);
    let rights = TokenRights { publish, ..TokenRights::default() };
    TokenFile::add(folder.path(), "t", &secret, rights, None).unwrap();
    let limits = ClientLimits { enqueue_rate: 40, ..ClientLimits::default() };
    let config = Config { limits, ..config(folder.path(), Level::Os) };
    let hub = Running::with(folder, config).await;
    let bearer = format!("Bearer {}", secret.reveal());
    let headers = [("authorization", bearer.as_str())];
    let socket = Socket::open_at(hub.address(), "/v1/publish", &headers).await;
    let (mut session, began) = (Session { socket, credit: 0, bytes: 0 }, Instant::now());
    for n in 1..=200 {
        while session.credit == 0 || session.bytes <= 0 {
            let frame = session.socket.frame().await;
            assert_eq!(frame.get("refused"), None, "{frame}");
            session.credit += frame["credit"].as_u64().unwrap_or(0);
            session.bytes += frame["bytes"].as_i64().unwrap_or(0);
        }
        session.ask(item("a", n)).await;
    }
    // The burst of a second, what was asked for while anything of it was left, then the rate.
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Each kind of bad input is counted under its own name, and whoever publishes beside it is served
/// as if it had not been.
#[tokio::test]
async fn bad_input_is_counted_by_its_name_and_touches_nobody_else() {
    let hub = Running::start().await;
    let (mut bad, mut good) =
        (Session::open(&hub, "session=s").await, Session::open(&hub, "session=g").await);
    for one in 1..=2 {
        assert_eq!(good.one(item("good", one)).await, Ok(one - 1));
    }
    let with_expect = with(item("a", 1), "condition", json!({"expect": 7}));
    let unknown = with(item("a", 1), "condition", json!({"mood": "good"}));
    let half = with(item("a", 1), "envelope", json!({"id": 7}));
    for (wrong, name) in [
        (item("a", 2), "NumberSkipped"),
        (item("a", 0), "InvalidParameter"),
        (item("good", 3), "NumberSkipped"),
        (with_expect, "OffsetMismatch"),
        (unknown, "UnknownCondition"),
        (half, "InvalidEnvelope"),
    ] {
        assert_eq!(bad.one(wrong).await, refused(name), "the number of one is nobody else's");
    }
    let mut taker = Session::open(&hub, "session=s").await;
    assert_eq!(bad.socket.ending().await, Ending::new("SessionTaken", 1008));
    let many: Vec<Value> = (1..=taker.credit + 1).map(|n| item("good", n)).collect();
    taker.socket.send(json!({"publish": many})).await;
    assert_eq!(taker.socket.ending().await, Ending::new("CreditExceeded", 1008));
    for (name, count) in [
        ("NumberSkipped", 2),
        ("InvalidParameter", 1),
        ("OffsetMismatch", 1),
        ("UnknownCondition", 1),
        ("InvalidEnvelope", 1),
        ("SessionTaken", 1),
        ("CreditExceeded", 1),
    ] {
        let metric = format!("sealane_carry_refused_total{{code=\"{name}\"}}");
        assert_eq!(hub.metric(&metric).await, count, "{name}");
    }
    assert_eq!(good.one(item("good", 3)).await, Ok(2));
    assert_eq!(hub.state("good").await["next"], 3);
    assert_eq!(hub.get("/v1/streams/a").await.status, 404, "nothing of it made a stream");
}

/// The writer itself sends the answers of a commit to few connections, so that no worker has to
/// wake for them.
#[test]
fn an_answer_comes_while_every_worker_of_the_hub_is_busy() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let (ours, theirs) = (runtime(), runtime());
    let hub = theirs.block_on(Running::start());
    let mut session = ours.block_on(Session::open(&hub, ""));
    let store = rusqlite::Connection::open(hub.folder.path().join("streams.db")).unwrap();
    let text = "x".repeat(MAX_PUBLISH_CREDIT_BYTES as usize / 2);
    let (mut n, mut came) = (0, Err("nothing was tried".to_owned()));
    // Once in a while the machine stands still for so long that the writer gives up.
    for _ in 0..10 {
        n += 1;
        ours.block_on(session.one(item("a", n))).unwrap();
        store.execute_batch("BEGIN IMMEDIATE").unwrap();
        let large = json!({"to": "a", "n": n + 1, "envelope": {"id": "m", "text": text}});
        // The hub asks for more bytes as soon as its writer has the message.
        let more = ours.block_on(async {
            session.ask(large).await;
            session.socket.frame().await
        });
        assert!(more["credit"].is_u64(), "{more}");
        let (busy, is_busy) = mpsc::channel();
        let (free, is_free) = mpsc::channel::<()>();
        theirs.spawn(async move {
            busy.send(()).unwrap();
            is_free.recv().unwrap_err();
        });
        is_busy.recv().unwrap();
        store.execute_batch("ROLLBACK").unwrap();
        came = ours.block_on(session.answers(1)).into_values().next().unwrap();
        drop(free);
        if came.is_ok() {
            break;
        }
    }
    assert_eq!(came.map(|_| ()), Ok(()));
    drop(session);
    theirs.block_on(hub.stop());
}
