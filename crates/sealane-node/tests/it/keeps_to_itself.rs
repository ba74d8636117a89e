//! One client's mistake is its own: whatever is removed, out of attempts or refused, everybody
//! else's requests are answered as if it had not been.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sealane_testing::{until_async, until_told_async};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::running::Running;
use crate::socket::{Socket, offsets};

/// How long they all go on.
const WHILE: Duration = Duration::from_secs(2);

/// Enqueues to `topic` until `stop`, and eleven times at least; returns what was answered, in
/// order.
fn writer(hub: &Arc<Running>, topic: &str, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<u16>> {
    let (hub, topic, stop) = (hub.clone(), topic.to_owned(), stop.clone());
    tokio::spawn(async move {
        let mut answers = Vec::new();
        while !stop.load(Ordering::Relaxed) || answers.len() <= 10 {
            let body = json!({"to": topic, "envelope": {}});
            answers.push(hub.post("/v1/enqueue", body).await.status);
        }
        answers
    })
}

/// Does `what` to `topic` until `stop`, and eleven times at least; returns what was answered.
fn hammer(
    hub: &Arc<Running>,
    topic: &str,
    settings: Option<Value>,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<Vec<u16>> {
    let (hub, stop) = (hub.clone(), stop.clone());
    let path = format!("/v1/streams/{topic}");
    tokio::spawn(async move {
        let mut answers = Vec::new();
        while !stop.load(Ordering::Relaxed) || answers.len() <= 10 {
            let reply = match &settings {
                Some(settings) => hub.put(&path, settings.clone()).await,
                None => hub.delete(&path).await,
            };
            answers.push(reply.status);
        }
        answers
    })
}

fn all_are(answers: &[u16], may: &[u16]) {
    assert!(answers.len() > 10, "{} requests show nothing", answers.len());
    let others: Vec<_> = answers.iter().filter(|answer| !may.contains(answer)).collect();
    assert!(others.is_empty(), "{} of {} are {:?}", others.len(), answers.len(), others.first());
}

async fn removed_while_it_is_written(level: &str) {
    let hub = Arc::new(Running::start().await);
    hub.put("/v1/streams/t", json!({"level": level})).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|_| writer(&hub, "t", &stop)).collect();
    let bystander = writer(&hub, "important", &stop);
    let removers: Vec<_> = (0..2).map(|_| hammer(&hub, "t", None, &stop)).collect();
    let settings = hammer(&hub, "t", Some(json!({"level": level, "maxCount": 7})), &stop);
    tokio::time::sleep(WHILE).await;
    stop.store(true, Ordering::Relaxed);
    all_are(&bystander.await.unwrap(), &[200]);
    for writer in writers {
        all_are(&writer.await.unwrap(), &[200]);
    }
    for remover in removers {
        all_are(&remover.await.unwrap(), &[200, 404]);
    }
    all_are(&settings.await.unwrap(), &[200, 201]);
    assert_eq!(hub.metric("sealane_stream_failed_commits_total").await, 0);
    assert!([200, 404].contains(&hub.delete("/v1/streams/t").await.status));
    let hub = Arc::into_inner(hub).unwrap().restart().await;
    assert_eq!(hub.get("/v1/streams/t").await.status, 404, "what was removed is back");
    assert_eq!(hub.enqueue("t", json!({})).await["offset"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_removed_while_it_is_written_is_nobody_elses_trouble() {
    removed_while_it_is_written("disk").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_is_one_of_level_memory() {
    removed_while_it_is_written("memory").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_topics_that_come_and_go_refuse_nobody() {
    let hub = Arc::new(Running::start().await);
    let stop = Arc::new(AtomicBool::new(false));
    let bystander = writer(&hub, "orders", &stop);
    let askers: Vec<_> = (0..20)
        .map(|asker| {
            let (hub, stop) = (hub.clone(), stop.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) || count <= 3 {
                    let topic = format!("reply/{asker}/{count}");
                    let path = format!("/v1/streams/{topic}");
                    assert_eq!(hub.put(&path, json!({})).await.status, 201);
                    let answer = {
                        let (hub, topic) = (hub.clone(), topic.clone());
                        tokio::spawn(async move {
                            // The answer comes just when nobody waits for it any more.
                            tokio::time::sleep(Duration::from_millis(4)).await;
                            let body = json!({"to": topic, "envelope": {}});
                            hub.post("/v1/enqueue", body).await.status
                        })
                    };
                    tokio::time::sleep(Duration::from_millis(3 + count % 4)).await;
                    assert_eq!(hub.delete(&path).await.status, 200);
                    assert_eq!(answer.await.unwrap(), 200);
                    count += 1;
                }
            })
        })
        .collect();
    tokio::time::sleep(WHILE).await;
    stop.store(true, Ordering::Relaxed);
    for asker in askers {
        asker.await.unwrap();
    }
    all_are(&bystander.await.unwrap(), &[200]);
    assert_eq!(hub.metric("sealane_stream_failed_commits_total").await, 0);
}

/// A reader of a stream that is being removed is told of the removal, and never of damage.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_stream_that_goes_is_not_told_of_damage() {
    let hub = Arc::new(Running::start().await);
    for round in 0..6 {
        for stream in 0..4 {
            for commit in 0..40 {
                hub.enqueue_numbered(&format!("g/{stream}"), commit * 20, 20).await;
            }
        }
        let mut readers = Vec::new();
        for reader in 0..8 {
            let mut socket = hub.subscribe(&format!("stream=g/{}&from=first", reader % 4)).await;
            socket.credit(100_000).await;
            readers.push(tokio::spawn(async move { gaps(&mut socket).await }));
        }
        for stream in 0..4 {
            assert_eq!(hub.delete(&format!("/v1/streams/g/{stream}")).await.status, 200);
        }
        for reader in readers {
            assert_eq!(reader.await.unwrap(), Vec::<Value>::new(), "round {round}");
        }
    }
    assert_eq!(hub.metric("sealane_stream_damaged_total").await, 0);
}

/// The gaps that a socket is told of until it is closed.
async fn gaps(socket: &mut Socket) -> Vec<Value> {
    let mut gaps = Vec::new();
    loop {
        let frame = socket.frame().await;
        if frame["status"] == "gap" {
            gaps.push(frame);
        } else if frame["error"].is_object() {
            assert_eq!(frame["error"]["code"], "StreamRemoved");
            return gaps;
        }
    }
}

/// Topics of 16 segments and of 251 bytes have no dead letters, and dead letters have none either.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_can_have_no_stream_are_counted_and_cost_nobody_an_acknowledgement() {
    let hub = Running::start().await;
    let deep = vec!["a"; 16].join("/");
    let long = "x".repeat(251);
    for topic in [&deep, &long, "jobs"] {
        hub.enqueue_numbered(topic, 0, 3).await;
    }
    hub.enqueue_numbered("mail", 0, 100).await;
    let mut mail = hub.subscribe("stream=mail&consumer=mail").await;
    mail.credit(100).await;
    mail.take(100).await;
    // Whatever comes fails, its own dead letters too.
    let mut all = hub.subscribe("stream=**&consumer=all&max_attempts=1").await;
    let mut letters = hub.subscribe("stream=dead/**&consumer=all&max_attempts=1").await;
    let start = Instant::now();
    // Nine of the topics and the hundred of `mail`; the letters of `mail` and `jobs`.
    for (socket, count) in [(&mut all, 109), (&mut letters, 103)] {
        socket.credit(1000).await;
        let mut failed = 0;
        while failed < count {
            let frame = socket.frame().await;
            if frame["deliver"].is_object() {
                failed += 1;
                let (stream, offset) = (&frame["stream"], &frame["offset"]);
                socket
                    .send(json!({"nack": {"stream": stream, "from": offset, "to": offset}}))
                    .await;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{failed} came");
        }
    }
    mail.send(json!({"ack": {"from": 0, "to": 99}})).await;
    // Those of the two topics, and the letters.
    let dropped = async || hub.metric("sealane_stream_dead_dropped_total").await;
    until_told_async(dropped, |dropped| *dropped >= 6 + 103).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(hub.metric("sealane_stream_failed_commits_total").await, 0);
    assert_eq!(hub.consumer(&deep, "all").await["deadDropped"], 3);
    assert_eq!(hub.consumer("jobs", "all").await["deadLettered"], 3);
    assert_eq!(hub.get("/v1/streams/dead/dead/jobs").await.status, 404);
    let after = hub.crashed().await;
    let mail = after.consumer("mail", "mail").await;
    assert_eq!((&mail["next"], &mail["inFlight"]), (&json!(100), &json!(0)));
    assert_eq!(after.consumer(&long, "all").await["deadDropped"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_dead_letters_come_in_small_commits() {
    let hub = Arc::new(Running::start().await);
    for batch in 0..4 {
        hub.enqueue_numbered("work", batch * 4096, 4096).await;
    }
    let mut member = hub.subscribe("stream=work&consumer=c&max_attempts=1").await;
    member.credit(16_384).await;
    member.take(16_384).await;
    let commits = hub.metric("sealane_stream_commits_total").await;
    let stop = Arc::new(AtomicBool::new(false));
    let bystander = writer(&hub, "others", &stop);
    drop(member);
    let lettered = async || hub.consumer("work", "c").await["deadLettered"].clone();
    until_told_async(lettered, |lettered| *lettered == 16_384).await;
    stop.store(true, Ordering::Relaxed);
    all_are(&bystander.await.unwrap(), &[200]);
    let state = hub.state("dead/work").await;
    assert_eq!((&state["first"], &state["next"]), (&json!(0), &json!(16_384)));
    assert!(hub.metric("sealane_stream_commits_total").await >= commits + 16);
    assert_eq!(hub.consumer("work", "c").await["inFlight"], 0);
}

/// First deliveries to the members of a consumer are in the order of offsets, where small messages
/// are followed by large ones.
#[tokio::test(flavor = "multi_thread")]
async fn large_messages_behind_small_ones_do_not_change_the_order() {
    let hub = Running::start().await;
    hub.enqueue_numbered("mixed", 0, 3000).await;
    let large = "x".repeat(60_000);
    for batch in 0..10 {
        let envelopes: Vec<Value> = (0..20).map(|_| json!({"body": large})).collect();
        let body = json!({"to": "mixed", "envelopes": envelopes});
        assert_eq!(hub.post("/v1/enqueue/batch", body).await.status, 200, "batch {batch}");
    }
    let mut members = Vec::new();
    for _ in 0..3 {
        let mut member = hub.subscribe("stream=mixed&consumer=c").await;
        member.credit(5000).await;
        members.push(tokio::spawn(async move {
            let mut all = Vec::new();
            while let Ok(frame) = tokio::time::timeout(Duration::from_secs(1), member.frame()).await
            {
                if frame["deliver"].is_object() {
                    all.push((frame["offset"].as_u64().unwrap(), frame["attempt"] == 1));
                }
            }
            // The messages of a member go back to the others when its socket is dropped.
            (all, member)
        }));
    }
    let (mut count, mut sockets) = (0, Vec::new());
    for member in members {
        let (all, socket) = member.await.unwrap();
        sockets.push(socket);
        assert!(all.iter().all(|(_, is_first)| *is_first), "something came twice");
        let back = all.windows(2).find(|pair| pair[0].0 > pair[1].0);
        assert_eq!(back, None, "an offset comes behind a greater one");
        count += all.len();
    }
    assert_eq!(count, 3200);
}

/// While another process holds the store: everybody is told so in time, what is stored is read,
/// and everything goes on as soon as it lets go.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_another_process_holds_is_named_and_comes_back() {
    // How long it is held beyond the first wait for it.
    let held = std::env::var("SEALANE_HELD_SECONDS").map_or(0, |text| text.parse().unwrap());
    let held = Duration::from_secs(held);
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 10).await;
    let store = rusqlite::Connection::open(hub.folder.path().join("streams.db")).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    let refused = hub.post("/v1/enqueue", json!({"to": "log", "envelope": {}})).await;
    assert_eq!(refused.json()["error"]["code"], "StorageBusy", "{}", refused.text());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    // From now on nobody waits for long: three that waited as the first would take 15 s.
    let start = Instant::now();
    for reply in [
        hub.post("/v1/enqueue", json!({"to": "new", "envelope": {}})).await,
        hub.delete("/v1/streams/log").await,
        hub.put("/v1/streams/log", json!({"level": "disk"})).await,
    ] {
        assert_eq!(reply.json()["error"]["code"], "StorageBusy", "{}", reply.text());
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(hub.get("/ready").await.json()["status"], "storage");
    assert_eq!(hub.get("/health").await.json()["status"], "storage");
    let mut reader = hub.subscribe("stream=log&from=first").await;
    reader.credit(10).await;
    assert_eq!(offsets(&reader.take(10).await), (0..10).collect::<Vec<u64>>());
    assert_eq!(hub.state("log").await["level"], "os");
    let mut slowest = Duration::ZERO;
    let begun = Instant::now();
    while begun.elapsed() < held {
        let start = Instant::now();
        let refused = hub.post("/v1/enqueue", json!({"to": "log", "envelope": {}})).await;
        assert_eq!(refused.json()["error"]["code"], "StorageBusy", "{}", refused.text());
        let page = hub.get("/v1/streams/log?from=first").await.json();
        assert_eq!(page["messages"].as_array().unwrap().len(), 10);
        slowest = slowest.max(start.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(slowest < Duration::from_secs(3), "{slowest:?} for a refusal and a page");
    store.execute_batch("ROLLBACK").unwrap();
    let start = Instant::now();
    let is_back = async || hub.get("/health").await.json()["status"] == "healthy";
    until_async("it comes back of itself", is_back).await;
    println!(
        "held for {held:?} more: a refusal and a page took {slowest:?} at most, \
         back after {:?} (wanted 1 s)",
        start.elapsed()
    );
    assert!(held.is_zero() || start.elapsed() <= Duration::from_secs(1), "not back in a second");
    assert_eq!(hub.enqueue("log", json!({})).await["offset"], 10);
    assert_eq!(hub.get("/v1/streams/new").await.status, 404, "a refused message made a stream");
    assert_eq!(hub.delete("/v1/streams/log").await.status, 200);
}
