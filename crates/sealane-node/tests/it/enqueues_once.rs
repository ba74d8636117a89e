//! The same request, repeated, appends once; and an append happens where it was meant to.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::http::Reply;
use crate::running::Running;
use crate::socket::offsets;

async fn keyed(hub: &Running, key: &str, body: Value) -> Reply {
    hub.post_with("/v1/enqueue", &[("idempotency-key", key)], body).await
}

#[tokio::test]
async fn a_repeated_key_is_answered_as_the_first_was() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelope": {"n": 1}});
    let first = keyed(&hub, "k1", body.clone()).await.json();
    assert_eq!(first["replayed"], Value::Null);
    hub.enqueue("a", json!({"n": 2})).await;
    let again = keyed(&hub, "k1", body.clone()).await.json();
    assert_eq!(again["replayed"], true);
    for key in ["id", "stream", "offset", "generation", "level"] {
        assert_eq!(again[key], first[key], "{key}");
    }
    let other = keyed(&hub, "k1", json!({"to": "a", "envelope": {"n": 9}})).await;
    assert_eq!((other.status, other.error().as_str()), (409, "KeyReused"));
    assert_eq!(hub.state("a").await["next"], 2);
    // Another key, and the same key for another stream, are other requests.
    assert_eq!(keyed(&hub, "k2", body).await.json()["offset"], 2);
    let elsewhere = keyed(&hub, "k1", json!({"to": "b", "envelope": {"n": 1}})).await.json();
    assert_eq!((&elsewhere["offset"], &elsewhere["replayed"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn keys_are_known_after_a_restart_and_after_a_crash() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelope": {"n": 1}});
    let first = keyed(&hub, "k", body.clone()).await.json();
    let crashed = hub.crashed().await;
    let hub = hub.restart().await;
    for hub in [&crashed, &hub] {
        let again = keyed(hub, "k", body.clone()).await.json();
        assert_eq!((&again["replayed"], &again["id"]), (&json!(true), &first["id"]));
        let other = keyed(hub, "k", json!({"to": "a", "envelope": {"n": 2}})).await;
        assert_eq!(other.status, 409);
        assert_eq!(hub.state("a").await["next"], 1);
    }
}

#[tokio::test]
async fn a_key_that_is_repeated_at_the_same_time_appends_once() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelope": {"n": 1}});
    let requests = (0..16).map(|_| keyed(&hub, "k", body.clone()));
    let replies = futures_util::future::join_all(requests).await;
    let ids: Vec<Value> = replies.iter().map(|reply| reply.json()["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && id.is_string()), "{ids:?}");
    let appended = replies.iter().filter(|reply| reply.json()["replayed"].is_null()).count();
    assert_eq!(appended, 1);
    assert_eq!(hub.state("a").await["next"], 1);
}

#[tokio::test]
async fn batches_and_delayed_messages_have_keys_too() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelopes": [{"n": 1}, {"n": 2}]});
    let key = [("idempotency-key", "k")];
    let first = hub.post_with("/v1/enqueue/batch", &key, body.clone()).await.json();
    let again = hub.post_with("/v1/enqueue/batch", &key, body).await.json();
    assert_eq!((&again["replayed"], &again["ids"]), (&json!(true), &first["ids"]));
    assert_eq!((&again["offset"], &again["count"]), (&json!(0), &json!(2)));
    let body = json!({"to": "a", "envelope": {"n": 3}, "delayMs": 200});
    let first = keyed(&hub, "d", body.clone()).await.json();
    let again = keyed(&hub, "d", body).await.json();
    assert_eq!((&again["replayed"], &again["dueMs"]), (&json!(true), &first["dueMs"]));
    let mut reader = hub.subscribe("stream=a&from=first").await;
    reader.credit(10).await;
    assert_eq!(offsets(&reader.take(3).await), [0, 1, 2]);
    reader.is_silent().await;
}

async fn scoped(hub: &Running, path: &str, body: Value) -> Reply {
    hub.post_with(path, &[("idempotency-scope", "stream")], body).await
}

#[tokio::test]
async fn the_same_message_is_stored_once_whoever_brings_it() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelope": {"n": 1}});
    let first = scoped(&hub, "/v1/enqueue", body.clone()).await.json();
    assert_eq!((&first["offset"], &first["replayed"]), (&json!(0), &Value::Null));
    // Around the message nothing counts, and it has the id that the hub gave it first.
    for body in [body.clone(), json!({"envelope": {"n": 1}, "to": "a"})] {
        let again = scoped(&hub, "/v1/enqueue", body).await.json();
        assert_eq!((&again["replayed"], &again["id"]), (&json!(true), &first["id"]));
    }
    // Another message, the same one in another stream, and without the scope.
    let other = scoped(&hub, "/v1/enqueue", json!({"to": "a", "envelope": {"n": 2}})).await;
    assert_eq!(other.json()["offset"], 1);
    let elsewhere = scoped(&hub, "/v1/enqueue", json!({"to": "b", "envelope": {"n": 1}})).await;
    assert_eq!(elsewhere.json()["replayed"], Value::Null);
    assert_eq!(hub.post("/v1/enqueue", body.clone()).await.json()["offset"], 2);
    // A batch is all of its messages.
    let batch = json!({"to": "a", "envelopes": [{"n": 1}, {"n": 2}]});
    let first = scoped(&hub, "/v1/enqueue/batch", batch.clone()).await.json();
    assert_eq!((&first["offset"], &first["count"]), (&json!(3), &json!(2)));
    let again = scoped(&hub, "/v1/enqueue/batch", batch).await.json();
    assert_eq!((&again["replayed"], &again["ids"]), (&json!(true), &first["ids"]));
    let crashed = hub.crashed().await;
    let hub = hub.restart().await;
    for hub in [&crashed, &hub] {
        assert_eq!(scoped(hub, "/v1/enqueue", body.clone()).await.json()["replayed"], true);
        assert_eq!(hub.state("a").await["next"], 5);
    }
}

#[tokio::test]
async fn gateways_that_hear_the_same_at_once_store_it_once_and_keep_nobody_out() {
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelope": {"n": 1}});
    let replies = (0..16).map(|_| scoped(&hub, "/v1/enqueue", body.clone()));
    let replies = futures_util::future::join_all(replies).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(replies.iter().filter(|reply| reply.json()["replayed"].is_null()).count(), 1);
    // No key of a client's is one of these: neither does it hold one, nor is it held by one.
    let hash = blake3::Hasher::new_derive_key("sealane message of a stream v1");
    for key in ["0".repeat(32), hash.finalize().to_hex().to_string()] {
        let free = keyed(&hub, &key, body.clone()).await.json();
        assert_eq!(free["replayed"], Value::Null);
    }
    assert_eq!(hub.state("a").await["next"], 3);
}

#[tokio::test]
async fn a_scope_that_is_unclear_is_refused_by_name() {
    let hub = Running::start().await;
    let one = json!({"to": "a", "envelope": {}});
    let late = json!({"to": "a", "envelope": {}, "delayMs": 1000});
    let scope = ("idempotency-scope", "stream");
    for (headers, body, name) in [
        (&[("idempotency-scope", "hub")][..], &one, "Idempotency-Scope"),
        (&[("idempotency-scope", "")], &one, "Idempotency-Scope"),
        (&[scope, scope], &one, "Idempotency-Scope"),
        (&[scope, ("idempotency-key", "k")], &one, "Idempotency-Scope"),
        (&[scope], &late, "delayMs"),
    ] {
        let reply = hub.post_with("/v1/enqueue", headers, body.clone()).await;
        let (said, code) = (reply.text(), reply.error());
        assert_eq!((reply.status, code.as_str()), (400, "InvalidParameter"), "{headers:?} {said}");
        assert!(said.contains(&format!("`{name}`")), "{said}");
    }
    assert_eq!(hub.get("/v1/streams/a").await.status, 404);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    let refused = keyed(&hub, "k", json!({"to": "a", "envelope": {}, "expect": 7})).await;
    assert_eq!(refused.error(), "OffsetMismatch");
    let granted = keyed(&hub, "k", json!({"to": "a", "envelope": {}, "expect": 1})).await.json();
    assert_eq!((&granted["offset"], &granted["replayed"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn expect_is_honoured_or_answered_with_what_is_next() {
    let hub = Running::start().await;
    let expecting = async |expect: u64| {
        let body = json!({"to": "a", "envelope": {"n": expect}, "expect": expect});
        hub.post("/v1/enqueue", body).await
    };
    let missing = expecting(3).await;
    assert_eq!((missing.status, &missing.json()["error"]["next"]), (409, &json!(0)));
    assert_eq!(hub.get("/v1/streams/a").await.status, 404);
    assert_eq!(expecting(0).await.json()["offset"], 0);
    assert_eq!(expecting(1).await.json()["offset"], 1);
    for wrong in [0, 1, 3] {
        let reply = expecting(wrong).await;
        assert_eq!((reply.status, reply.error().as_str()), (409, "OffsetMismatch"));
        assert_eq!(reply.json()["error"]["next"], 2);
    }
    let body = json!({"to": "a", "envelopes": [{}, {}], "expect": 2});
    assert_eq!(hub.post("/v1/enqueue/batch", body.clone()).await.json()["offset"], 2);
    assert_eq!(hub.post("/v1/enqueue/batch", body).await.json()["error"]["next"], 4);
    // Of many who expect the same, one wins.
    let all = futures_util::future::join_all((0..8).map(|_| expecting(4))).await;
    assert_eq!(all.iter().filter(|reply| reply.status == 200).count(), 1);
    assert_eq!(hub.state("a").await["next"], 5);
}

#[tokio::test]
async fn a_delayed_message_enters_when_it_is_due_and_not_before() {
    let hub = Running::start().await;
    let mut reader = hub.subscribe("stream=a&from=first").await;
    reader.credit(10).await;
    let began = Instant::now();
    let body = json!({"to": "a", "envelope": {"id": "late"}, "delayMs": 600});
    let reply = hub.post("/v1/enqueue", body).await.json();
    assert_eq!((&reply["id"], &reply["offset"]), (&json!("late"), &Value::Null));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let due = reply["dueMs"].as_u64().unwrap();
    assert!(due <= now + 600 && due + 10_000 > now, "{due} at {now}");
    hub.enqueue("a", json!({"id": "soon"})).await;
    assert_eq!(reader.frame().await["status"], "joined");
    assert_eq!(reader.deliver().await.id(), "soon");
    let late = reader.deliver().await;
    assert_eq!((late.id(), late.offset), ("late", 1));
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
}

#[tokio::test]
async fn delayed_messages_survive_a_restart_in_the_order_in_which_they_are_due() {
    let hub = Running::start().await;
    let began = Instant::now();
    for (id, delay_ms) in [("third", 5000), ("first", 900), ("second", 2500)] {
        let body = json!({"to": "a", "envelope": {"id": id}, "delayMs": delay_ms});
        assert_eq!(hub.post("/v1/enqueue", body).await.status, 200);
    }
    let hub = hub.restart().await;
    let mut reader = hub.subscribe("stream=a&from=first").await;
    reader.credit(10).await;
    for id in ["first", "second", "third"] {
        assert_eq!(reader.deliver().await.id(), id);
    }
    assert!(began.elapsed() >= Duration::from_millis(5000), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_batch_is_appended_whole_or_not_at_all() {
    let hub = Running::start().await;
    let wrong = [json!(7), json!({"id": 7}), json!({"id": ""}), json!({"id": "x".repeat(129)})];
    for one in wrong {
        let body = json!({"to": "a", "envelopes": [{"n": 1}, one, {"n": 3}]});
        let reply = hub.post("/v1/enqueue/batch", body).await;
        assert_eq!((reply.status, reply.error().as_str()), (422, "InvalidEnvelope"), "{one}");
    }
    assert_eq!(hub.get("/v1/streams/a").await.status, 404);
    let body = json!({"to": "a", "envelopes": [{"id": "x"}, {"n": 2}, {"id": "z"}]});
    let reply = hub.post("/v1/enqueue/batch", body).await.json();
    assert_eq!((&reply["offset"], &reply["count"]), (&json!(0), &json!(3)));
    assert_eq!((&reply["ids"][0], &reply["ids"][2]), (&json!("x"), &json!("z")));
    let page = hub.get("/v1/streams/a?from=0").await.json();
    assert_eq!(page["messages"][1]["deliver"]["id"], reply["ids"][1]);
    assert_eq!(hub.metric("sealane_stream_commits_total").await, 1);
}

async fn each(hub: &Running, body: Value) -> Reply {
    let scope = [("idempotency-scope", "message")];
    hub.post_with("/v1/enqueue/batch", &scope, body).await
}

#[tokio::test]
async fn each_message_of_a_batch_is_stored_once_by_itself() {
    let hub = Running::start().await;
    let one = |n: u64| json!({"id": format!("m{n}"), "n": n});
    let alone = scoped(&hub, "/v1/enqueue", json!({"to": "a", "envelope": one(2)})).await.json();
    assert_eq!(alone["offset"], 0);
    // A message that came alone is known in a batch. A message that stands in a batch twice comes
    // in once.
    let batch = |all: &[u64]| {
        let all: Vec<_> = all.iter().map(|n| one(*n)).collect();
        json!({"to": "a", "envelopes": all})
    };
    let first = each(&hub, batch(&[1, 2, 3, 1, 4])).await.json();
    assert_eq!((&first["offset"], &first["count"]), (&json!(1), &json!(3)));
    assert_eq!((&first["ids"], &first["replayed"]), (&json!(["m1", "m3", "m4"]), &Value::Null));
    // Another batch with some of them, and the other way round: what came in a batch alone.
    let hub = hub.restart().await;
    let second = each(&hub, batch(&[3, 4, 5])).await.json();
    assert_eq!((&second["offset"], &second["ids"]), (&json!(4), &json!(["m5"])));
    let known = each(&hub, batch(&[4, 5, 1])).await.json();
    assert_eq!((&known["count"], &known["replayed"]), (&json!(0), &json!(true)));
    assert_eq!((&known["offset"], &known["generation"]), (&json!(3), &first["generation"]));
    let again = scoped(&hub, "/v1/enqueue", json!({"to": "a", "envelope": one(3)})).await.json();
    assert_eq!((&again["offset"], &again["replayed"]), (&json!(2), &json!(true)));
    assert_eq!(again["id"], "m3");
    // Elsewhere it is another message.
    let mut elsewhere = batch(&[1, 2]);
    elsewhere["to"] = json!("b");
    assert_eq!(each(&hub, elsewhere).await.json()["count"], 2);
    let page = hub.get("/v1/streams/a?from=0").await.json();
    let stored = page["messages"].as_array().unwrap().iter().map(|one| one["deliver"]["n"].clone());
    assert_eq!(stored.collect::<Vec<_>>(), [2, 1, 3, 4, 5].map(|n| json!(n)));
    let mut expecting = batch(&[9]);
    expecting["expect"] = json!(5);
    assert_eq!(each(&hub, expecting).await.error(), "InvalidParameter");
}

#[tokio::test]
async fn batches_that_bring_the_same_at_the_same_time_bring_it_once() {
    let hub = Running::start().await;
    let batch = |from: u64| {
        let all: Vec<Value> = (from..from + 20).map(|n| json!({"n": n})).collect();
        json!({"to": "a", "envelopes": all})
    };
    let replies = (0..10).map(|from| each(&hub, batch(from * 5)));
    let replies = futures_util::future::join_all(replies).await;
    let counts: u64 = replies.iter().map(|reply| reply.json()["count"].as_u64().unwrap()).sum();
    assert_eq!((counts, &hub.state("a").await["next"]), (65, &json!(65)));
}
