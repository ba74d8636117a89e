//! The streams that members of groups obey are written by holders of the right to give orders
//! alone. The test tries every verb that changes a stream, with tokens of every kind. It uses
//! control streams and topics that look alike.

use sealane_message::Pattern;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use serde_json::{Value, json};

use crate::guards::is_done;
use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::Socket;

/// The control stream of a group, and that of another.
const CONTROL: [&str; 2] = ["groups/0a1b2c3d", "groups/ffffffff"];
/// Topics that are no control streams, however much they look like one.
const OTHERS: [&str; 3] = ["fleet/7", "x/groups/0a1b2c3d", "group/0a1b2c3d"];
/// Topics below those of systems that are none either: a pattern names them, or does not match.
const OF_SYSTEMS: [&str; 8] = [
    "groups",
    "groups/0a1b2c3",
    "groups/0a1b2c3d0",
    "groups/0A1B2C3D",
    "groups/0a1b2c3g",
    "groups/0a1b2c3d/x",
    "dead/groups/0a1b2c3d",
    "dead/fleet/7",
];

/// The expected rights of a token, said by hand: the test does not ask the code that it tests.
struct Case {
    rights: TokenRights,
    /// Whether it gives orders in each stream of [`CONTROL`].
    orders: [bool; 2],
    /// Its rights in [`OTHERS`].
    others: Others,
    /// Its rights in [`OF_SYSTEMS`].
    of_systems: Others,
}

#[derive(Clone, Copy)]
struct Others {
    publish: bool,
    manage: bool,
}

const NEITHER: Others = Others { publish: false, manage: false };
const PUBLISH: Others = Others { publish: true, manage: false };
const MANAGE: Others = Others { publish: false, manage: true };
const BOTH: Others = Others { publish: true, manage: true };

impl Case {
    fn of(&self, topic: &str) -> Others {
        if OF_SYSTEMS.contains(&topic) { self.of_systems } else { self.others }
    }

    /// The right that a refusal calls missing; none: the verb is done.
    fn missing(&self, verb: &Verb, topic: &str) -> Option<String> {
        let control = CONTROL.iter().position(|control| *control == topic);
        let (is_granted, right) = match control {
            Some(at) => (self.orders[at], "orders"),
            None if verb.publishes => (self.of(topic).publish, "publish"),
            None => (self.of(topic).manage, "manage"),
        };
        let has_none = self.rights.publish.is_empty() && self.rights.orders.is_empty();
        match is_granted {
            true => None,
            // Refused before the body says where to.
            false if verb.publishes && has_none => Some("publish on any topic".to_owned()),
            false => Some(format!("{right} on {topic}")),
        }
    }
}

fn cases() -> Vec<Case> {
    let all = || vec!["**".parse().unwrap()];
    let these = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let none = TokenRights::default;
    let case = |rights, orders, others| Case { rights, orders, others, of_systems: NEITHER };
    let of_systems =
        |rights, of_systems| Case { rights, orders: [false; 2], others: NEITHER, of_systems };
    let systems = || these(&["groups/**", "dead/**"]);
    let orders = |texts: &[&str]| TokenRights { orders: these(texts), ..none() };
    let without =
        TokenRights { read: all(), publish: all(), manage: all(), observe: true, ..none() };
    vec![
        case(TokenRights { publish: all(), ..none() }, [false; 2], PUBLISH),
        case(TokenRights { manage: all(), ..none() }, [false; 2], MANAGE),
        case(without.clone(), [false; 2], BOTH),
        case(TokenRights { publish: these(&CONTROL), ..none() }, [false; 2], NEITHER),
        case(TokenRights { manage: these(&CONTROL), ..none() }, [false; 2], NEITHER),
        case(orders(&["groups/**"]), [true; 2], NEITHER),
        case(orders(&["groups/*"]), [true; 2], NEITHER),
        case(orders(&["**"]), [false; 2], NEITHER),
        case(orders(&["*/*"]), [false; 2], NEITHER),
        of_systems(TokenRights { publish: systems(), ..none() }, PUBLISH),
        of_systems(TokenRights { manage: systems(), ..none() }, MANAGE),
        case(orders(&[CONTROL[0]]), [true, false], NEITHER),
        case(orders(&["fleet/**", CONTROL[1]]), [false, true], NEITHER),
        case(TokenRights { orders: these(&["groups/*"]), ..without }, [true; 2], BOTH),
        case(TokenRights { read: all(), ..none() }, [false; 2], NEITHER),
    ]
}

fn secret(byte: u8) -> TokenSecret {
    TokenSecret::new([byte; 32])
}

/// A hub that has a token for each of these rights: the first is of the byte 1.
async fn guarded(all: impl IntoIterator<Item = TokenRights>) -> Running {
    let hub = Running::start().await;
    for (byte, rights) in (1..).zip(all) {
        TokenFile::add(hub.folder.path(), &byte.to_string(), &secret(byte), rights, None).unwrap();
    }
    hub.node.reload().unwrap();
    hub
}

async fn ask(hub: &Running, byte: u8, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {}", secret(byte).reveal());
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body.as_bytes()).await
}

/// One way to change a stream.
struct Verb {
    method: &'static str,
    path: String,
    body: String,
    publishes: bool,
}

/// Every way to change a stream. In this order each is done where it is granted: what is removed
/// was made before.
fn verbs(topic: &str) -> Vec<Verb> {
    let enqueue = |path: &str, body: Value| Verb {
        method: "POST",
        path: path.to_owned(),
        body: body.to_string(),
        publishes: true,
    };
    let change = |method, path: &str, body: &str| Verb {
        method,
        path: path.to_owned(),
        body: body.to_owned(),
        publishes: false,
    };
    let path = format!("/v1/streams/{topic}");
    let escaped = format!("/v1/streams/%{:02x}{}", topic.as_bytes()[0], &topic[1..]);
    let mut all = vec![
        enqueue("/v1/enqueue", json!({"to": topic, "envelope": {"n": 1}})),
        enqueue("/v1/enqueue", json!({"to": topic, "envelope": {}, "delayMs": 3_600_000})),
        enqueue("/v1/enqueue/batch", json!({"to": topic, "envelopes": [{}, {}]})),
        change("PUT", &path, "{}"),
        change("PUT", &escaped, r#"{"maxCount": 1}"#),
        change("POST", &format!("/v1/consumers/{topic}?consumer="), r#"{"pause": true}"#),
        change("POST", &format!("/v1/consumers/{topic}?consumer="), r#"{"reset": "new"}"#),
        change("DELETE", &format!("/v1/consumers/{topic}?consumer="), ""),
        change("DELETE", &format!("/v1/delayed/{topic}?id=later"), ""),
        change("POST", &format!("/v1/purge/{topic}"), r#"{"before": "new"}"#),
        change("DELETE", &path, ""),
    ];
    // Dead letters are never sealed.
    if !topic.starts_with("dead/") {
        all.push(change("PUT", &path, r#"{"sealed": "0a1b2c3d"}"#));
        all.push(change("DELETE", &escaped, ""));
    }
    all
}

#[tokio::test]
async fn control_streams_are_changed_by_who_may_give_orders_and_by_nobody_else() {
    let hub = guarded(cases().into_iter().map(|case| case.rights)).await;
    for (byte, case) in (1..).zip(cases()) {
        for topic in CONTROL.into_iter().chain(OTHERS).chain(OF_SYSTEMS) {
            for verb in verbs(topic) {
                let reply = ask(&hub, byte, verb.method, &verb.path, &verb.body).await;
                let (status, text) = (reply.status, reply.text());
                let what = format!("token {byte}: {} {}: {text}", verb.method, verb.path);
                let Some(missing) = case.missing(&verb, topic) else {
                    assert!(is_done(&reply), "{what}");
                    continue;
                };
                assert_eq!((status, reply.error().as_str()), (403, "Forbidden"), "{what}");
                let said = format!("the token does not grant {missing}");
                assert_eq!(reply.json()["error"]["message"], said, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_refused_leaves_the_orders_as_they_are() {
    let all: Vec<Pattern> = ["**", "groups/**"].map(|text| text.parse().unwrap()).into();
    let (read, publish, manage) = (all.clone(), all.clone(), all.clone());
    let flooding = TokenRights { read, publish, manage, ..TokenRights::default() };
    let authority = TokenRights { read: all.clone(), orders: all, ..TokenRights::default() };
    let hub = guarded([flooding, authority]).await;
    let control = CONTROL[0];
    let order = json!({"to": control, "envelope": {"notice": "order"}}).to_string();
    assert_eq!(ask(&hub, 2, "POST", "/v1/enqueue", &order).await.status, 200);
    let path = format!("/v1/streams/{control}");
    let before = ask(&hub, 2, "GET", &path, "").await.json();
    for Verb { method, path, body, .. } in verbs(control) {
        assert_eq!(ask(&hub, 1, method, &path, &body).await.status, 403);
    }
    assert_eq!(ask(&hub, 2, "GET", &path, "").await.json(), before);
    // To read them is as before a matter of `read`.
    assert_eq!(ask(&hub, 1, "GET", &format!("{path}?from=first"), "").await.status, 200);
}

#[tokio::test]
async fn orders_read_nothing() {
    let orders =
        TokenRights { orders: vec!["groups/**".parse().unwrap()], ..TokenRights::default() };
    let hub = guarded([orders]).await;
    let path = format!("/v1/streams/{}", CONTROL[0]);
    assert_eq!(ask(&hub, 1, "PUT", &path, "{}").await.status, 201);
    for path in [path.clone(), format!("{path}?from=first")] {
        let reply = ask(&hub, 1, "GET", &path, "").await;
        assert_eq!(reply.status, 403);
        assert!(reply.text().contains("does not grant read on"), "{}", reply.text());
    }
    let list = ask(&hub, 1, "GET", "/v1/streams", "").await.json();
    assert_eq!(list["streams"], json!([]));
}

/// The hub writes dead letters by itself, without a right of the consumer's.
#[tokio::test]
async fn the_dead_letters_of_a_control_stream_lie_elsewhere() {
    let all: Vec<Pattern> = ["groups/**", "dead/**"].map(|text| text.parse().unwrap()).into();
    let reader = TokenRights { read: all.clone(), ..TokenRights::default() };
    let authority = TokenRights { read: all.clone(), orders: all, ..TokenRights::default() };
    let hub = guarded([reader, authority]).await;
    let control = CONTROL[0];
    let order = json!({"to": control, "envelope": {"id": "m"}}).to_string();
    assert_eq!(ask(&hub, 2, "POST", "/v1/enqueue", &order).await.status, 200);
    let protocols = format!("json, sealane.token.{}", secret(1).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let query = format!("stream={control}&consumer=c&max_attempts=1");
    let mut member = Socket::open(hub.address(), &query, &headers).await;
    let query = format!("stream=dead/{control}&from=first");
    let mut grave = Socket::open(hub.address(), &query, &headers).await;
    member.credit(1).await;
    grave.credit(1).await;
    assert_eq!(member.deliver().await.stream, control);
    member.send(json!({"nack": "m"})).await;
    assert_eq!(grave.frame().await["status"], "joined");
    assert_eq!(grave.deliver().await.stream, format!("dead/{control}"));
    let state = ask(&hub, 2, "GET", &format!("/v1/streams/{control}"), "").await.json();
    assert_eq!((&state["first"], &state["next"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_node_without_tokens_is_as_open_as_before() {
    let hub = Running::start().await;
    for Verb { method, path, body, .. } in verbs(CONTROL[0]) {
        let reply = http::request(hub.address(), method, &path, &[], body.as_bytes()).await;
        assert!(is_done(&reply), "{method} {path}: {}", reply.text());
    }
}
