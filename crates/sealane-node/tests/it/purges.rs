//! A delayed message can be cancelled, and the oldest messages of a stream can be purged.

use sealane_testing::until_told_async;
use serde_json::{Value, json};

use crate::running::Running;
use crate::socket::offsets;

async fn delay(hub: &Running, id: &str, delay_ms: u64) {
    let body = json!({"to": "work", "envelope": {"id": id}, "delayMs": delay_ms});
    assert_eq!(hub.post("/v1/enqueue", body).await.status, 200);
}

/// The ids of a page of what is held back, and where the next one begins.
async fn held_back(hub: &Running, query: &str) -> (Vec<String>, Option<String>) {
    let reply = hub.get(&format!("/v1/delayed/work{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let page = reply.json();
    let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
    let ids = page["delayed"].as_array().unwrap().iter().map(id).collect();
    (ids, page["next"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn what_is_held_back_is_listed_in_the_order_in_which_it_comes() {
    let hub = Running::start().await;
    for (id, delay_ms) in [("c", 300_000), ("a", 100_000), ("b", 200_000)] {
        delay(&hub, id, delay_ms).await;
    }
    assert_eq!(held_back(&hub, "").await, (vec!["a".into(), "b".into(), "c".into()], None));
    let (ids, next) = held_back(&hub, "?limit=2").await;
    assert_eq!(ids, ["a", "b"]);
    let rest = held_back(&hub, &format!("?limit=2&after={}", next.unwrap())).await;
    assert_eq!(rest, (vec!["c".into()], None));
    assert_eq!(hub.get("/v1/delayed/none").await.status, 404);
    assert_eq!(hub.get("/v1/delayed/work?after=soon").await.status, 400);
}

#[tokio::test]
async fn what_is_cancelled_never_comes_and_the_rest_does() {
    let hub = Running::start().await;
    delay(&hub, "twice", 500).await;
    delay(&hub, "twice", 600).await;
    delay(&hub, "once", 700).await;
    let body = json!({"to": "other", "envelope": {"id": "twice"}, "delayMs": 500});
    assert_eq!(hub.post("/v1/enqueue", body).await.status, 200);
    let path = "/v1/delayed/work?id=twice";
    let reply = hub.delete(path).await;
    assert_eq!((reply.status, &reply.json()["cancelled"]), (200, &json!(2)));
    let again = hub.delete(path).await;
    assert_eq!((again.status, again.error().as_str()), (404, "NotDelayed"));
    assert_eq!(hub.delete("/v1/delayed/work").await.status, 400);
    // The acknowledged changes hold after a crash.
    let hub = hub.crashed().await;
    let mut reader = hub.subscribe("stream=work&from=first").await;
    reader.credit(9).await;
    assert_eq!(reader.deliver().await.id(), "once");
    reader.is_silent().await;
    let mut other = hub.subscribe("stream=other&from=first").await;
    other.credit(9).await;
    assert_eq!(other.deliver().await.id(), "twice", "another stream's is not cancelled");
    assert_eq!(held_back(&hub, "").await, (Vec::new(), None));
}

async fn purge(hub: &Running, before: Value) -> Value {
    let reply = hub.post("/v1/purge/work", json!({"before": before})).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn what_is_purged_is_gone_to_the_message_and_stays_so() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 10).await;
    hub.enqueue_numbered("work", 10, 10).await;
    let purged = purge(&hub, json!(7)).await;
    assert_eq!(purged, json!({"stream": "work", "purged": 7, "first": 7, "next": 20}));
    for hub in [&hub, &hub.crashed().await] {
        let page = hub.get("/v1/streams/work?from=0").await.json();
        let gap = &page["gaps"][0];
        let said = (&gap["from"], &gap["to"], &gap["reason"]);
        assert_eq!(said, (&json!(0), &json!(6), &json!("retention")));
        let first = &page["messages"][0];
        assert_eq!((&first["offset"], &first["deliver"]["n"]), (&json!(7), &json!(7)));
        assert_eq!(page["messages"].as_array().unwrap().len(), 13);
        let state = hub.state("work").await;
        assert_eq!((&state["first"], &state["count"]), (&json!(7), &json!(13)));
        assert_eq!(state["damaged"], json!([]));
    }
    assert_eq!(purge(&hub, json!(3)).await["purged"], 0, "what is gone already");
    assert_eq!(purge(&hub, json!("@0")).await["purged"], 0);
    let all = purge(&hub, json!("new")).await;
    assert_eq!((&all["purged"], &all["first"]), (&json!(13), &json!(20)));
    // Their bytes go behind them, a few blocks at a time.
    until_told_async(async || hub.state("work").await, |state| state["bytes"] == 0).await;
    // Offsets go on.
    assert_eq!(hub.enqueue("work", json!({})).await["offset"], 20);
}

#[tokio::test]
async fn a_purge_beyond_the_end_is_refused_and_takes_nothing() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 3).await;
    let reply = hub.post("/v1/purge/work", json!({"before": 4})).await;
    assert_eq!((reply.status, reply.error().as_str()), (409, "BeyondEnd"));
    assert_eq!(reply.json()["error"]["next"], 3);
    assert_eq!(hub.state("work").await["count"], 3);
    assert_eq!(hub.metric("sealane_carry_refused_total{code=\"BeyondEnd\"}").await, 1);
    for wrong in [json!({}), json!({"before": "last"}), json!({"before": -1})] {
        assert_eq!(hub.post("/v1/purge/work", wrong).await.status, 400);
    }
    let reply = hub.post("/v1/purge/none", json!({"before": "new"})).await;
    assert_eq!((reply.status, reply.error().as_str()), (404, "UnknownStream"));
}

#[tokio::test]
async fn a_consumer_goes_on_behind_what_was_purged() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 6).await;
    let mut member = hub.subscribe("stream=work&consumer=c").await;
    member.credit(2).await;
    assert_eq!(offsets(&member.take(2).await), [0, 1]);
    purge(&hub, json!(4)).await;
    let shown = hub.get("/v1/consumers/work?consumer=c").await.json();
    assert_eq!((&shown["inFlight"], &shown["lag"]), (&json!(0), &json!(2)));
    member.credit(9).await;
    let gap = member.frame().await;
    assert_eq!((&gap["status"], &gap["from"], &gap["to"]), (&json!("gap"), &json!(2), &json!(3)));
    assert_eq!(offsets(&member.take(2).await), [4, 5]);
}
