//! The figures of a node at `/metrics`: each metric as its page says, by stream and by consumer
//! within a bound, and the durations.

use std::collections::BTreeMap;
use std::time::Duration;

use sealane_stream::limits::{MAX_METRIC_BEHIND, MAX_METRIC_CONSUMERS, MAX_METRIC_STREAMS};
use sealane_testing::{until_async, until_told_async};
use serde_json::json;

use crate::exposition::Exposition;
use crate::running::Running;
use crate::socket::Socket;

const PAGE: &str = include_str!("../../../../docs/reference/METRICS.md");
const OTHER: &str = r#"stream="*other*""#;
const OTHERS: &str = r#"stream="*other*",consumer="*other*""#;

#[tokio::test]
async fn every_metric_stands_on_its_page_with_its_kind_and_no_other() {
    let hub = Running::start().await;
    // The metrics of relays and ends stand behind it.
    let (of_nodes, _) = PAGE.split_once("\n## Relays and ends\n").unwrap();
    let rows = of_nodes.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), cells.next()?.to_owned()))
    });
    let page: BTreeMap<String, String> = rows.collect();
    assert_eq!(Exposition::of(&hub).await.kinds, page);
}

#[tokio::test]
async fn streams_and_consumers_are_told_apart() {
    let hub = Running::start().await;
    // These characters would end a label's text early.
    let odd = r#"b"c\d}"#;
    hub.enqueue_numbered("a", 0, 5).await;
    hub.enqueue_numbered(odd, 0, 3).await;
    let mut socket = hub.subscribe("stream=a&consumer=c&max_attempts=2&from=first").await;
    socket.credit(4).await;
    socket.take(4).await;
    socket.ack(json!({"from": 0, "to": 1})).await;
    socket.send(json!({"nack": {"from": 2, "to": 2}})).await;
    socket.credit(1).await;
    assert_eq!(socket.deliver().await.attempt, 2);
    socket.send(json!({"nack": {"from": 2, "to": 2}})).await;
    let _reader = hub.subscribe("stream=a&from=first").await;
    let has_letters = async || hub.get("/v1/streams/dead/a").await.status == 200;
    until_async("there are dead letters", has_letters).await;
    let told = Exposition::of(&hub).await;
    let (a, c) = (r#"stream="a""#, r#"stream="a",consumer="c""#);
    for (name, labels, value) in [
        ("topic_messages", a, 5.0),
        ("topic_readers", a, 1.0),
        ("topic_stored_total", a, 5.0),
        ("topic_delivered_total", a, 5.0),
        ("topic_stored_total", r#"stream="b\"c\\d}""#, 3.0),
        ("topic_stored_total", r#"stream="dead/a""#, 1.0),
        ("consumer_lag", c, 1.0),
        ("consumer_in_flight", c, 1.0),
        ("consumer_members", c, 1.0),
        ("consumer_redelivered_total", c, 1.0),
        ("consumer_acked_total", c, 2.0),
        ("consumer_dead_lettered_total", c, 1.0),
        ("dead_lettered_total", "", 1.0),
    ] {
        let name = format!("sealane_stream_{name}");
        assert_eq!(told.value(&name, labels), Some(value), "{name} {labels}");
    }
    assert!(told.value("sealane_stream_topic_bytes", a) > Some(5.0));
    // The sums are those that the hub counts without labels.
    for name in ["stored", "delivered"] {
        let by_topic = told.sum(&format!("sealane_stream_topic_{name}_total"));
        assert_eq!(Some(by_topic), told.value(&format!("sealane_stream_{name}_total"), ""));
    }
}

/// Stores one message in each of so many streams, from this number on.
async fn fill(hub: &Running, first: usize, count: usize) {
    for n in first..first + count {
        hub.enqueue(&format!("s/{n}"), json!({})).await;
    }
}

#[tokio::test]
async fn streams_beyond_the_bound_are_summed_and_no_sum_falls() {
    let hub = Running::start().await;
    let stored = "sealane_stream_topic_stored_total";
    let of = |n: usize| format!(r#"stream="s/{n}""#);
    fill(&hub, 0, MAX_METRIC_STREAMS + 20).await;
    let full = Exposition::of(&hub).await;
    for name in ["messages", "bytes", "readers", "stored_total", "delivered_total"] {
        let name = format!("sealane_stream_topic_{name}");
        assert_eq!(full.all(&name).len(), MAX_METRIC_STREAMS + 1, "{name}");
    }
    assert_eq!(full.sum(stored), (MAX_METRIC_STREAMS + 20) as f64);
    assert_eq!(full.value(stored, OTHER), Some(20.0));
    assert_eq!(full.value(stored, &of(MAX_METRIC_STREAMS - 1)), Some(1.0));
    assert_eq!(full.value(stored, &of(MAX_METRIC_STREAMS)), None);
    // A consumer of one that has none has one.
    let query = format!("stream=s/{MAX_METRIC_STREAMS}&consumer=c&from=first");
    hub.subscribe(&query).await.close().await;
    let told = Exposition::of(&hub).await;
    let own = format!(r#"stream="s/{MAX_METRIC_STREAMS}",consumer="c""#);
    assert_eq!(told.value("sealane_stream_consumer_lag", &own), Some(1.0));
    assert_eq!(told.value("sealane_stream_consumer_lag", OTHERS), Some(0.0));
    // One that goes leaves its place to the next that is made, and to none that was counted before.
    assert_eq!(hub.delete("/v1/streams/s/0").await.status, 200);
    assert_eq!(hub.delete(&format!("/v1/streams/s/{MAX_METRIC_STREAMS}")).await.status, 200);
    fill(&hub, 1000, 2).await;
    let later = Exposition::of(&hub).await;
    assert_eq!(later.value(stored, &of(1000)), Some(1.0));
    assert_eq!(later.value(stored, &of(1001)), None);
    assert_eq!(later.value(stored, OTHER), Some(21.0), "one has gone, its message was stored");
    assert_eq!(later.value("sealane_stream_topic_messages", OTHER), Some(20.0));
    // After a restart the oldest have the places, whoever had them before.
    let hub = hub.restart().await;
    let again = Exposition::of(&hub).await;
    assert_eq!(again.all(stored).len(), MAX_METRIC_STREAMS + 1);
    assert_eq!(again.value(stored, &of(MAX_METRIC_STREAMS + 1)), Some(0.0));
    assert_eq!(again.value(stored, &of(1000)), None);
    assert_eq!(again.value("sealane_stream_topic_messages", OTHER), Some(20.0));
}

#[tokio::test]
async fn consumers_beyond_the_bound_are_summed() {
    let hub = Running::start().await;
    // One token has so many of a stream, and all that come without one count as one.
    let query = |n: usize| format!("stream=a/{}&consumer=c{n}&from=first", n / 200);
    let shown = MAX_METRIC_CONSUMERS + MAX_METRIC_BEHIND;
    for stream in 0..=(shown + 4) / 200 {
        hub.enqueue_numbered(&format!("a/{stream}"), 0, 2).await;
    }
    for n in 0..shown + 5 {
        hub.subscribe(&query(n)).await.close().await;
    }
    // All places are taken. Of those that come later, the one that lags most is told first. One
    // with a worker has to wait, however far it is behind.
    hub.enqueue_numbered("a/late", 0, 3).await;
    hub.subscribe("stream=a/late&consumer=late&from=first").await.close().await;
    hub.enqueue_numbered("a/busy", 0, 9).await;
    let _busy = hub.subscribe("stream=a/busy&consumer=busy&from=first").await;
    let told = Exposition::of(&hub).await;
    let lag = |labels: &str| told.value("sealane_stream_consumer_lag", labels);
    assert_eq!(lag(r#"stream="a/late",consumer="late""#), Some(3.0));
    assert_eq!(lag(r#"stream="a/busy",consumer="busy""#), None);
    for (name, count) in [
        ("lag", shown + 1),
        ("in_flight", shown + 1),
        ("unfinished", shown + 1),
        ("members", shown + 1),
        ("oldest_seconds", shown),
        ("redelivered_total", MAX_METRIC_CONSUMERS + 1),
        ("acked_total", MAX_METRIC_CONSUMERS + 1),
    ] {
        let name = format!("sealane_stream_consumer_{name}");
        assert_eq!(told.all(&name).len(), count, "{name}");
    }
    assert_eq!(lag(OTHERS), Some(6.0 * 2.0 + 9.0));
    let mut last = hub.subscribe(&query(MAX_METRIC_CONSUMERS)).await;
    last.credit(2).await;
    last.take(2).await;
    last.ack(json!({"from": 0, "to": 1})).await;
    let acked = async || {
        let told = Exposition::of(&hub).await;
        told.value("sealane_stream_consumer_acked_total", OTHERS) == Some(2.0)
    };
    until_async("they are acknowledged", acked).await;
    // One that is removed leaves its place to the next that comes.
    assert_eq!(hub.delete("/v1/consumers/a/0?consumer=c0").await.status, 200);
    let _new = hub.subscribe("stream=a/0&consumer=new&from=first").await;
    let told = Exposition::of(&hub).await;
    let new = r#"stream="a/0",consumer="new""#;
    assert_eq!(told.value("sealane_stream_consumer_lag", new), Some(2.0));
    assert_eq!(told.all("sealane_stream_consumer_lag").len(), shown + 1);
    assert_eq!(told.value("sealane_stream_consumer_acked_total", OTHERS), Some(2.0));
}

#[tokio::test]
async fn a_consumer_whose_worker_died_is_seen_however_many_came_before_it() {
    let hub = Running::start().await;
    fill(&hub, 0, MAX_METRIC_STREAMS).await;
    hub.enqueue_numbered("jobs/mail", 0, 3).await;
    let mut worker = hub.subscribe("stream=jobs/mail&consumer=mailer&from=first").await;
    worker.credit(3).await;
    worker.take(3).await;
    worker.close().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let told = Exposition::of(&hub).await;
    let mailer = r#"stream="jobs/mail",consumer="mailer""#;
    let value = |name: &str| told.value(&format!("sealane_stream_consumer_{name}"), mailer);
    assert_eq!((value("lag"), value("members")), (Some(0.0), Some(0.0)));
    assert_eq!(value("unfinished"), Some(3.0));
    assert!(value("oldest_seconds") >= Some(1.0), "{told:?}");
    let shown = hub.get("/v1/consumers/jobs/mail?consumer=mailer").await.json();
    assert_eq!((&shown["unfinished"], &shown["lagMs"]), (&json!(3), &json!(0)));
    assert!(shown["oldestMs"].as_u64() >= Some(1000), "{shown}");
}

#[tokio::test]
async fn each_format_is_the_one_that_is_asked_for() {
    let hub = Running::start().await;
    let kind = |reply: &crate::http::Reply| reply.header("content-type").unwrap().to_owned();
    let text = hub.get("/metrics").await;
    assert_eq!(kind(&text), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(text.header("vary"), Some("accept"));
    let said = text.text();
    assert!(!said.contains("# EOF"), "{said}");
    // Each series is described under its own name: what `promtool check metrics` asks for.
    let samples = said.lines().filter(|line| !line.starts_with('#'));
    for name in samples.map(|line| line.split(['{', ' ']).next().unwrap()) {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let family = family.filter(|_| name.contains("_seconds_")).unwrap_or(name);
        assert!(said.contains(&format!("# HELP {family} ")), "{family}");
        assert!(said.contains(&format!("# TYPE {family} ")), "{family}");
    }
    let open = hub.get_as("/metrics", "application/openmetrics-text;version=1.0.0").await;
    assert!(kind(&open).starts_with("application/openmetrics-text; version=1.0.0"));
    assert!(open.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn what_is_published_by_socket_purged_and_removed_is_told() {
    let hub = Running::start().await;
    let mut socket = Socket::open_at(hub.address(), "/v1/publish?session=s", &[]).await;
    assert!(socket.frame().await["credit"].as_u64() > Some(2));
    for number in 1..=3 {
        let item = json!({"to": "a", "n": number, "envelope": {}});
        socket.send(json!({"publish": item})).await;
    }
    let stored = async || Exposition::of(&hub).await.value("sealane_stream_stored_total", "");
    until_told_async(stored, |stored| *stored == Some(3.0)).await;
    hub.subscribe("stream=a&consumer=c&from=first").await.close().await;
    let (a, c) = (r#"stream="a""#, r#"stream="a",consumer="c""#);
    let told = Exposition::of(&hub).await;
    let value = |name: &str, labels| told.value(&format!("sealane_{name}"), labels);
    assert_eq!(value("stream_topic_stored_total", a), Some(3.0));
    assert_eq!(value("stream_consumer_lag", c), Some(3.0));
    assert_eq!(value("carry_request_seconds_count", r#"route="/v1/publish""#), Some(1.0));
    assert_eq!(hub.post("/v1/purge/a", json!({"before": 2})).await.status, 200);
    let told = Exposition::of(&hub).await;
    let value = |name: &str, labels| told.value(&format!("sealane_stream_{name}"), labels);
    assert_eq!(value("topic_messages", a), Some(1.0));
    assert_eq!(value("topic_stored_total", a), Some(3.0));
    assert_eq!(value("consumer_lag", c), Some(1.0));
    assert_eq!(value("retired_total", ""), Some(2.0));
    assert_eq!(hub.delete("/v1/consumers/a?consumer=c").await.status, 200);
    let told = Exposition::of(&hub).await;
    assert_eq!(told.all("sealane_stream_consumer_lag").len(), 1);
    assert_eq!(told.value("sealane_stream_consumer_lag", OTHERS), Some(0.0));
}

/// How many were counted up to `le` seconds.
fn up_to(told: &Exposition, name: &str, labels: &str, le: &str) -> f64 {
    let comma = if labels.is_empty() { "" } else { "," };
    let labels = format!(r#"le="{le}"{comma}{labels}"#);
    let bucket = format!("sealane_{name}_seconds_bucket");
    told.value(&bucket, &labels).unwrap_or_else(|| panic!("{bucket} {labels} {told:#?}"))
}

#[tokio::test]
async fn what_takes_long_is_seen_in_its_histogram() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 3).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    // Three that wait for their reader, one that does not.
    let mut reader = hub.subscribe("stream=a&from=first").await;
    reader.credit(10).await;
    reader.take(3).await;
    let mut member = hub.subscribe("stream=a&consumer=c&from=new").await;
    member.credit(10).await;
    hub.enqueue_numbered("a", 3, 1).await;
    reader.take(1).await;
    member.take(1).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    member.ack(json!({"from": 3, "to": 3})).await;
    let enqueue = r#"route="/v1/enqueue/batch""#;
    // The effects of a commit are seen before its own time, which ends with it.
    let told = until_told_async(
        async || Exposition::of(&hub).await,
        |told| {
            let timed = told.value("sealane_stream_commit_seconds_count", "");
            told.value("sealane_stream_acked_total", "") == Some(1.0)
                && timed >= told.value("sealane_stream_commits_total", "")
        },
    )
    .await;
    let all = "+Inf";
    assert_eq!(up_to(&told, "stream_reader_delivery", "", all), 4.0);
    // On a busy machine the fourth may take as long as those that wait for their reader.
    assert!(up_to(&told, "stream_reader_delivery", "", "0.5") <= 1.0);
    assert_eq!(up_to(&told, "stream_consumer_delivery", "", all), 1.0);
    assert_eq!(up_to(&told, "stream_acknowledgement", "", all), 1.0);
    assert_eq!(up_to(&told, "stream_acknowledgement", "", "0.2"), 0.0);
    assert_eq!(up_to(&told, "carry_request", enqueue, all), 2.0);
    assert_eq!(told.value("sealane_carry_request_seconds_count", enqueue), Some(2.0));
    let none = r#"route="none""#;
    assert_eq!(up_to(&told, "carry_request", none, all), 0.0);
    assert!(told.value("sealane_stream_commit_seconds_count", "") > Some(0.0));
    assert!(told.value("sealane_stream_commit_seconds_sum", "") > Some(0.0));
    // No path of a client's becomes a series.
    hub.get("/v1/made/up").await;
    let later = Exposition::of(&hub).await;
    assert_eq!(up_to(&later, "carry_request", none, all), 1.0);
    assert_eq!(later.names(), told.names());
}
