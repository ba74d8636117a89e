//! A rule bounds the streams that its pattern matches, those that are there and those that come.
//! The most exact one holds, a tie is refused, and rules outlive a restart.

use std::time::Duration;

use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_stream::Retention;
use sealane_stream::limits::MAX_RULES;
use serde_json::{Value, json};

use crate::http::{self, Reply};
use crate::running::{Running, config};

async fn set(hub: &Running, pattern: &str, bounds: Value) -> Reply {
    hub.put(&format!("/v1/rules?pattern={pattern}"), bounds).await
}

/// The bound of age that holds, and the rule that it is of.
async fn held(hub: &Running, topic: &str) -> (u64, Value) {
    let state = hub.state(topic).await;
    (state["maxAgeMs"].as_u64().unwrap(), state["rule"].clone())
}

fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.error().as_str()), (status, code), "{}", reply.text());
}

#[tokio::test]
async fn the_most_exact_rule_holds_before_and_behind_a_restart() {
    let hub = Running::start().await;
    hub.enqueue_numbered("fleet/7/location", 0, 1).await;
    hub.enqueue_numbered("dead/fleet/7", 0, 1).await;
    for (pattern, age) in [("fleet/**", 1000), ("fleet/7/**", 2000), ("**", 3000)] {
        let reply = set(&hub, pattern, json!({"maxAgeMs": age * 1000})).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    hub.enqueue_numbered("fleet/8/location", 0, 1).await;
    assert_eq!(hub.put("/v1/streams/own", json!({"maxAgeMs": 5})).await.status, 201);
    let hub = hub.restart().await;
    assert_eq!(held(&hub, "fleet/7/location").await, (2_000_000, json!("fleet/7/**")));
    assert_eq!(held(&hub, "fleet/8/location").await, (1_000_000, json!("fleet/**")));
    assert_eq!(held(&hub, "own").await.0, 5);
    assert_eq!(held(&hub, "dead/fleet/7").await, (0, Value::Null));
    let rules = hub.get("/v1/rules").await.json();
    let listed: Vec<&str> =
        rules["rules"].as_array().unwrap().iter().map(|r| r["pattern"].as_str().unwrap()).collect();
    assert_eq!(listed, ["fleet/7/**", "fleet/**", "**"]);
    assert_eq!(hub.delete("/v1/rules?pattern=fleet/7/**").await.status, 200);
    assert_eq!(held(&hub, "fleet/7/location").await, (1_000_000, json!("fleet/**")));
    refused(&hub.delete("/v1/rules?pattern=fleet/7/**").await, 404, "UnknownRule");
    // Messages beyond the bound of a rule are removed.
    set(&hub, "fleet/**", json!({"maxCount": 1})).await;
    for n in 0..3 {
        hub.enqueue_numbered("fleet/9", n, 1).await;
    }
    while hub.state("fleet/9").await["count"] != 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn rules_that_contradict_each_other_or_say_nothing_are_refused() {
    let hub = Running::start().await;
    assert_eq!(set(&hub, "a/*", json!({"maxCount": 1})).await.status, 200);
    refused(&set(&hub, "*/a", json!({"maxCount": 1})).await, 409, "RuleTie");
    // The same pattern is a change.
    assert_eq!(set(&hub, "a/*", json!({"maxCount": 2})).await.json()["maxCount"], 2);
    for wrong in [json!({}), json!({"maxAgeMs": -1}), json!({"maxAgeMs": 1e30})] {
        refused(&set(&hub, "b/*", wrong).await, 400, "InvalidParameter");
    }
    refused(&set(&hub, "b/*", json!({"level": "os"})).await, 400, "UnknownField");
    refused(&set(&hub, "b//c", json!({"maxCount": 1})).await, 400, "InvalidTopic");
    refused(&hub.put("/v1/rules", json!({"maxCount": 1})).await, 400, "InvalidParameter");
    // Two at once that would be a tie: one of them holds.
    let (bounds, other) = (json!({"maxCount": 3}), json!({"maxCount": 4}));
    let (one, two) = tokio::join!(set(&hub, "c/*", bounds), set(&hub, "*/c", other));
    let mut both = [one.status, two.status];
    both.sort_unstable();
    assert_eq!(both, [200, 409]);
}

#[tokio::test]
async fn rules_are_bounded() {
    let hub = Running::start().await;
    for n in 0..MAX_RULES {
        assert_eq!(set(&hub, &format!("s/{n}"), json!({"maxCount": 1})).await.status, 200);
    }
    refused(&set(&hub, "s/more", json!({"maxCount": 1})).await, 429, "TooMany");
}

#[tokio::test]
async fn the_default_holds_where_no_rule_does_and_changes_with_the_start() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 1).await;
    hub.enqueue_numbered("b/c", 0, 1).await;
    assert_eq!(held(&hub, "a").await, (0, Value::Null));
    set(&hub, "b/*", json!({"maxAgeMs": 7_000_000})).await;
    let folder = hub.stop().await;
    let retention = Retention { max_age_ms: 9_000_000, ..Retention::default() };
    let config =
        sealane_node::Config { retention, ..config(folder.path(), sealane_stream::Level::Os) };
    let hub = Running::with(folder, config).await;
    assert_eq!(held(&hub, "a").await, (9_000_000, json!("")));
    assert_eq!(held(&hub, "b/c").await, (7_000_000, json!("b/*")));
    assert_eq!(hub.put("/v1/streams/a", json!({"maxAgeMs": 0})).await.status, 200);
    assert_eq!(held(&hub, "a").await.0, 0, "no bound is a bound of its own");
}

#[tokio::test]
async fn a_stream_forgets_its_own_bounds_and_the_rule_holds_again() {
    let hub = Running::start().await;
    let change = async |topic: &str, body: Value| {
        let reply = hub.put(&format!("/v1/streams/{topic}"), body).await;
        assert!(matches!(reply.status, 200 | 201), "{}", reply.text());
        let state = reply.json();
        (state["maxAgeMs"].clone(), state["maxCount"].clone(), state["rule"].clone())
    };
    set(&hub, "a/**", json!({"maxAgeMs": 7_000_000, "maxCount": 70})).await;
    let own = json!({"maxAgeMs": 5_000_000, "maxCount": 50, "maxBytes": 0});
    assert_eq!(change("a/b", own).await, (json!(5_000_000), json!(50), Value::Null));
    // A bound that is named beside it is the stream's own, as before.
    let but_one = json!({"followRules": true, "maxCount": 9});
    assert_eq!(change("a/b", but_one).await, (json!(7_000_000), json!(9), json!("a/**")));
    let hub = hub.restart().await;
    assert_eq!(held(&hub, "a/b").await, (7_000_000, json!("a/**")));
    assert_eq!(hub.put("/v1/streams/a/b", json!({"followRules": true})).await.status, 200);
    assert_eq!(hub.state("a/b").await["maxCount"], 70);
    // The next change of the rule reaches the stream, which has nothing of its own any more.
    set(&hub, "a/**", json!({"maxCount": 71})).await;
    assert_eq!(hub.state("a/b").await["maxCount"], 71);
    refused(&hub.put("/v1/streams/a/b", json!({"followRules": 1})).await, 400, "InvalidParameter");
}

#[tokio::test]
async fn a_rule_takes_the_right_to_manage_all_that_it_may_bound() {
    let hub = Running::start().await;
    let rights = TokenRights { manage: vec!["a/**".parse().unwrap()], ..TokenRights::default() };
    let secret = TokenSecret::new([1; 32]);
    TokenFile::add(hub.folder.path(), "ops", &secret, rights, None).unwrap();
    hub.node.reload().unwrap();
    let bearer = format!("Bearer {}", secret.reveal());
    let headers = [("authorization", bearer.as_str())];
    let ask = async |method: &str, pattern: &str| {
        let path = format!("/v1/rules?pattern={pattern}");
        http::request(hub.address(), method, &path, &headers, br#"{"maxCount":1}"#).await.status
    };
    for (pattern, status) in [("a/b/*", 200), ("a/**", 200), ("**", 403), ("groups/*", 403)] {
        assert_eq!(ask("PUT", pattern).await, status, "{pattern}");
    }
    assert_eq!(ask("DELETE", "b").await, 403);
    assert_eq!(hub.put("/v1/rules?pattern=a/b", json!({"maxCount": 1})).await.status, 401);
    let rules = http::request(hub.address(), "GET", "/v1/rules", &headers, b"").await.json();
    assert_eq!(rules["rules"][0]["maker"], "ops");
}
