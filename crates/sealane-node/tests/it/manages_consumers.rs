//! The operator of a hub sees the work of consumers and steers it. The acknowledged changes survive
//! a crash.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::Reply;
use crate::running::Running;
use crate::socket::{Ending, Socket, offsets, places};

const PATH: &str = "/v1/consumers/work?consumer=c";

async fn hub(count: u64) -> Running {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, count).await;
    hub
}

async fn member(hub: &Running) -> Socket {
    hub.subscribe("stream=work&consumer=c&ack_wait_ms=60000").await
}

/// Steers the consumer; how it is afterwards.
async fn steer(hub: &Running, verb: Value) -> Value {
    let reply = hub.post(PATH, verb).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

async fn show(hub: &Running) -> Value {
    let reply = hub.get(PATH).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.error().as_str()), (status, code), "{}", reply.text());
}

#[tokio::test]
async fn it_is_shown_who_holds_what_since_when() {
    let hub = hub(5).await;
    let (mut one, mut two) = (member(&hub).await, member(&hub).await);
    one.credit(1).await;
    assert_eq!(offsets(&one.take(1).await), [0]);
    two.credit(2).await;
    assert_eq!(offsets(&two.take(2).await), [1, 2]);
    two.send(json!({"nack": {"offset": 2}, "delayMs": 60_000})).await;
    two.is_silent().await;
    let shown = show(&hub).await;
    let counts = ["next", "lag", "inFlight", "held", "members", "pausedMs", "ackWaitMs"];
    let counts = counts.map(|key| shown[key].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 3, 2, 2, 0, 60_000]);
    assert!(shown["lagMs"].as_u64().unwrap() < 60_000, "{shown}");
    let connections: Vec<&Value> = shown["connections"].as_array().unwrap().iter().collect();
    let numbers: Vec<u64> =
        connections.iter().map(|one| one["connection"].as_u64().unwrap()).collect();
    assert_eq!(connections.len(), 2, "{shown}");
    let pending = shown["pending"].as_array().unwrap();
    let held: Vec<_> = pending.iter().map(|one| (&one["offset"], &one["connection"])).collect();
    let (first, second) = (json!(numbers[0]), json!(numbers[1]));
    assert_eq!(
        held,
        [(&json!(0), &first), (&json!(1), &second), (&json!(2), &Value::Null)],
        "{shown}"
    );
    let since = pending[0]["sinceMs"].as_u64().unwrap();
    assert_eq!(pending[0]["dueMs"].as_u64().unwrap(), since + 60_000);
    assert!(pending[2]["dueMs"].as_u64().unwrap() > since && pending[2]["sinceMs"] == 0);
    let all = hub.get("/v1/consumers/work").await.json();
    assert_eq!((&all["stream"], all["consumers"].as_array().unwrap().len()), (&json!("work"), 1));
    assert_eq!(all["consumers"][0]["lag"], 2);
    assert_eq!(all["consumers"][0].get("pending"), None);
}

#[tokio::test]
async fn the_consumers_of_all_streams_come_page_by_page() {
    let hub = hub(3).await;
    for topic in ["a", "b", "dead/a"] {
        hub.enqueue_numbered(topic, 0, 1).await;
    }
    for query in ["stream=a&consumer=x", "stream=a&consumer=y", "stream=work&consumer=c"] {
        hub.subscribe(&format!("{query}&from=first")).await.close().await;
    }
    let page = async |query: &str| {
        let reply = hub.get(&format!("/v1/consumers{query}")).await.json();
        let all = reply["consumers"].as_array().unwrap().iter();
        let named = all.map(|one| format!("{} {}", one["stream"], one["consumer"]));
        (named.collect::<Vec<_>>().join(", ").replace('"', ""), reply["next"].clone())
    };
    assert_eq!(page("").await, ("a x, a y, work c".into(), Value::Null));
    assert_eq!(page("?pattern=work").await, ("work c".into(), Value::Null));
    // A page ends behind a whole stream.
    assert_eq!(page("?limit=1").await, ("a x, a y".into(), json!("a")));
    assert_eq!(page("?limit=1&after=a").await, ("work c".into(), Value::Null));
    refused(&hub.get("/v1/consumers?limit=0").await, 400, "InvalidParameter");
    refused(&hub.get("/v1/consumers?consumer=x").await, 400, "InvalidParameter");
}

#[tokio::test]
async fn what_members_have_is_unfinished_and_the_oldest_of_it_has_an_age() {
    let hub = hub(3).await;
    let mut one = member(&hub).await;
    one.credit(3).await;
    one.take(3).await;
    one.ack(json!({"from": 0, "to": 0})).await;
    one.is_silent().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let shown = show(&hub).await;
    let counts = ["lag", "lagMs", "unfinished"].map(|key| shown[key].as_u64().unwrap());
    assert_eq!(counts, [0, 0, 2]);
    let oldest = shown["oldestMs"].as_u64().unwrap();
    assert!((300..60_000).contains(&oldest), "{oldest}");
    one.ack(json!({"from": 1, "to": 2})).await;
    one.is_silent().await;
    let shown = show(&hub).await;
    assert_eq!((&shown["unfinished"], &shown["oldestMs"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn the_lag_in_time_is_the_age_of_what_was_not_given_yet() {
    let hub = hub(1).await;
    let mut member = member(&hub).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let lag = show(&hub).await["lagMs"].as_u64().unwrap();
    assert!((300..60_000).contains(&lag), "{lag}");
    member.credit(1).await;
    member.take(1).await;
    let shown = show(&hub).await;
    assert_eq!((&shown["lag"], &shown["lagMs"]), (&json!(0), &json!(0)));
    member.close().await;
    // Behind a restart the place is looked for on disk.
    hub.enqueue_numbered("work", 1, 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let lag = show(&hub.restart().await).await["lagMs"].as_u64().unwrap();
    assert!((200..60_000).contains(&lag), "{lag}");
}

#[tokio::test]
async fn a_paused_consumer_is_given_nothing_until_it_is_resumed() {
    let hub = hub(2).await;
    let mut member = member(&hub).await;
    member.credit(1).await;
    member.take(1).await;
    let paused = steer(&hub, json!({"pause": true})).await;
    let since = paused["pausedMs"].as_u64().unwrap();
    assert!(since > 0);
    assert_eq!(steer(&hub, json!({"pause": true})).await["pausedMs"], since, "twice is once");
    member.credit(10).await;
    member.ack(json!({"offset": 0})).await;
    member.is_silent().await;
    assert_eq!(show(&hub).await["inFlight"], 0, "what it has it may finish");
    let after = hub.crashed().await;
    assert_eq!(show(&after).await["pausedMs"], since, "a crash does not resume it");
    assert_eq!(steer(&hub, json!({"pause": false})).await["pausedMs"], 0);
    assert_eq!(offsets(&member.take(1).await), [1]);
    assert_eq!(show(&hub.crashed().await).await["pausedMs"], 0);
}

#[tokio::test]
async fn a_reset_consumer_goes_on_where_it_was_told() {
    let hub = hub(4).await;
    let mut member = member(&hub).await;
    member.credit(4).await;
    assert_eq!(offsets(&member.take(4).await), [0, 1, 2, 3]);
    member.ack(json!({"from": 0, "to": 2})).await;
    member.is_silent().await;
    let shown = steer(&hub, json!({"reset": 1})).await;
    assert_eq!((&shown["next"], &shown["inFlight"]), (&json!(1), &json!(0)));
    member.credit(100).await;
    assert_eq!(places(&member.take(3).await), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(steer(&hub, json!({"reset": "first"})).await["stream"], "work");
    assert_eq!(places(&member.take(4).await), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    steer(&hub, json!({"reset": "@0"})).await;
    assert_eq!(offsets(&member.take(4).await), [0, 1, 2, 3]);
    let shown = steer(&hub, json!({"reset": "new"})).await;
    assert_eq!((&shown["next"], &shown["lag"]), (&json!(4), &json!(0)));
    member.is_silent().await;
    let after = hub.crashed().await;
    assert_eq!(show(&after).await["next"], 4);
    after.subscribe("stream=work&consumer=c").await.credit(9).await;
    assert_eq!(show(&after).await["inFlight"], 0, "nothing comes again");
}

#[tokio::test]
async fn what_is_skipped_is_done() {
    let hub = hub(5).await;
    let mut member = member(&hub).await;
    member.credit(2).await;
    assert_eq!(offsets(&member.take(2).await), [0, 1]);
    let shown = steer(&hub, json!({"skip": {"from": 1, "to": 3}})).await;
    assert_eq!((&shown["next"], &shown["inFlight"]), (&json!(4), &json!(1)));
    member.send(json!({"nack": {"from": 0, "to": 3}})).await;
    member.credit(9).await;
    assert_eq!(places(&member.take(2).await), [(0, 2), (4, 1)]);
    let after = hub.crashed().await;
    let mut other = after.subscribe("stream=work&consumer=c").await;
    other.credit(9).await;
    let mut came = offsets(&other.take(2).await);
    came.sort_unstable();
    assert_eq!(came, [0, 4]);
    other.is_silent().await;
    let reply = hub.post(PATH, json!({"skip": {"offset": 5}})).await;
    refused(&reply, 409, "BeyondEnd");
    assert_eq!(reply.json()["error"]["next"], 5);
}

#[tokio::test]
async fn what_is_held_comes_again_at_once_when_it_is_asked_for() {
    let hub = hub(2).await;
    let mut member = member(&hub).await;
    member.credit(2).await;
    member.take(2).await;
    member.send(json!({"nack": {"offset": 1}, "delayMs": 60_000})).await;
    member.is_silent().await;
    assert_eq!(steer(&hub, json!({"redeliver": true})).await["held"], 0);
    let mut other = self::member(&hub).await;
    other.credit(9).await;
    assert_eq!(places(&other.take(2).await), [(0, 2), (1, 2)]);
    member.ack(json!({"from": 0, "to": 1})).await;
    member.is_silent().await;
    assert_eq!(show(&hub).await["inFlight"], 2, "it is not the first one's any more");
}

#[tokio::test]
async fn a_removed_consumer_is_gone_and_its_members_are_told() {
    let hub = hub(3).await;
    let mut other = hub.subscribe("stream=work&consumer=other").await;
    other.credit(1).await;
    other.take(1).await;
    let mut member = member(&hub).await;
    member.credit(1).await;
    member.take(1).await;
    let reply = hub.delete(PATH).await;
    assert_eq!((reply.status, &reply.json()["removed"]), (200, &json!(true)));
    assert_eq!(member.ending().await, Ending::new("ConsumerRemoved", 1001));
    refused(&hub.get(PATH).await, 404, "UnknownConsumer");
    refused(&hub.delete(PATH).await, 404, "UnknownConsumer");
    assert_eq!(hub.consumer("work", "other").await["inFlight"], 1, "another one is as it was");
    assert_eq!(hub.crashed().await.consumer("work", "c").await, Value::Null);
    other.close().await;
    let hub = hub.restart().await;
    assert_eq!(hub.consumer("work", "c").await, Value::Null);
    assert_eq!(hub.consumer("work", "other").await["next"], 1);
    // Under the same name another one begins.
    let mut anew = self::member(&hub).await;
    anew.credit(9).await;
    assert_eq!(places(&anew.take(3).await), [(0, 1), (1, 1), (2, 1)]);
}

#[tokio::test]
async fn what_cannot_be_done_is_named_and_changes_nothing() {
    let hub = hub(4).await;
    let mut member = member(&hub).await;
    member.credit(1).await;
    member.take(1).await;
    let before = show(&hub).await;
    for (verb, status, code) in [
        (json!({"reset": 5}), 409, "BeyondEnd"),
        (json!({"skip": {"from": 0, "to": 4}}), 409, "BeyondEnd"),
        (json!({"skip": {"offset": u64::MAX}}), 409, "BeyondEnd"),
        (json!({"skip": {"from": 1, "to": 0}}), 400, "InvalidParameter"),
        // A message that the consumer was not given yet is not skipped together with those before
        // it.
        (json!({"skip": {"offset": 2}}), 400, "InvalidParameter"),
        (json!({"reset": "yesterday"}), 400, "InvalidParameter"),
        (json!({"pause": 1}), 400, "InvalidParameter"),
        (json!({}), 400, "InvalidParameter"),
        (json!({"pause": true, "redeliver": true}), 400, "InvalidParameter"),
        (json!({"stop": true}), 400, "UnknownField"),
    ] {
        let reply = hub.post(PATH, verb.clone()).await;
        assert_eq!((reply.status, reply.error().as_str()), (status, code), "{verb}");
    }
    let pause = || json!({"pause": true});
    refused(&hub.post("/v1/consumers/work", pause()).await, 400, "InvalidParameter");
    refused(&hub.post("/v1/consumers/work?name=c", pause()).await, 400, "InvalidParameter");
    refused(&hub.post("/v1/consumers/none?consumer=c", pause()).await, 404, "UnknownStream");
    refused(&hub.post("/v1/consumers/work?consumer=", pause()).await, 404, "UnknownConsumer");
    refused(&hub.delete("/v1/consumers/work").await, 400, "InvalidParameter");
    for (name, count) in [("BeyondEnd", 3), ("UnknownStream", 1), ("UnknownConsumer", 1)] {
        let metric = format!("sealane_carry_refused_total{{code=\"{name}\"}}");
        assert_eq!(hub.metric(&metric).await, count, "{name}");
    }
    let after = show(&hub).await;
    let same = ["next", "inFlight", "held", "pausedMs", "pending", "connections"];
    assert_eq!(same.map(|key| after[key].clone()), same.map(|key| before[key].clone()));
}

#[tokio::test]
async fn two_at_once_are_done_one_after_the_other() {
    let hub = hub(20).await;
    let mut member = member(&hub).await;
    member.credit(10).await;
    member.take(10).await;
    let verbs = (0..10).map(|n| json!({"skip": {"offset": n}}));
    let all = verbs.map(|verb| hub.post(PATH, verb));
    let replies = futures_util::future::join_all(all).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    let shown = show(&hub).await;
    assert_eq!((&shown["inFlight"], &shown["next"]), (&json!(0), &json!(10)));
    let removals = futures_util::future::join_all((0..4).map(|_| hub.delete(PATH))).await;
    let mut codes: Vec<u16> = removals.iter().map(|reply| reply.status).collect();
    codes.sort_unstable();
    assert_eq!(codes, [200, 404, 404, 404]);
}
