//! `kill -9` of the hub at random moments while reconnecting publishers publish, one message at a
//! time and many at once: each message is stored once, and those of a publisher in order. And `pub`
//! waits for a hub as long as it is told to.
//!
//! `SEALANE_KILLS` says how often, `SEALANE_SEED` repeats the moments of a run as far as the
//! scheduler allows.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sealane::{Client, Level, StartPosition, Value};

use crate::cli::{NodeProcess, json};
use crate::durable::load;
use crate::durable::random::{self, Random};

/// The publishers: the stream of each, and how many messages it sends at once.
const PUBLISHERS: [(&str, u64); 6] =
    [("disk", 1), ("disk", 40), ("os", 1), ("os", 40), ("mixed", 7), ("memory", 40)];

/// Publishes until it is to stop; gives how many messages were sent.
async fn publish(client: Client, who: usize, stop: Arc<AtomicBool>) -> u64 {
    let (stream, together) = PUBLISHERS[who];
    let publisher = client.publisher(stream).unwrap();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..together {
            let fields = vec![("who".into(), (who as u64).into()), ("n".into(), sent.into())];
            publisher.send(&Value::Map(fields)).await.unwrap();
            sent += 1;
        }
        if together < 10 {
            let stored = publisher.flush().await.unwrap();
            assert_eq!(stored.messages, sent, "all that was sent before is stored");
        }
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    assert_eq!(publisher.flush().await.unwrap().messages, sent);
    sent
}

/// The numbers of a publisher's messages in its stream, in order.
async fn numbers(client: &Client, who: usize) -> Vec<u64> {
    let (mut all, mut next) = (Vec::new(), StartPosition::First);
    loop {
        let page = client.read(PUBLISHERS[who].0, next, 1000).await.unwrap();
        for message in &page.messages {
            let value = message.value().unwrap();
            let number = |name: &str| value.field(name).and_then(Value::as_u64).unwrap();
            if number("who") == who as u64 {
                all.push(number("n"));
            }
        }
        if page.end {
            return all;
        }
        next = StartPosition::Offset(page.next);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_is_stored_once_though_the_hub_is_killed_at_random() {
    let _turn = crate::TURN.lock().await;
    let (kills, mut random) = (load::count("SEALANE_KILLS", 20), Random::new(random::seed()));
    let mut node = NodeProcess::start();
    let client = Client::connect(&node.address).unwrap().patience(Duration::from_secs(60));
    for (stream, level) in [("os", Level::Os), ("memory", Level::Memory)] {
        client.configure(stream).level(level).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let publishers = (0..PUBLISHERS.len())
        .map(|who| tokio::spawn(publish(client.clone(), who, stop.clone())))
        .collect::<Vec<_>>();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(random.within(5..250))).await;
        tokio::task::block_in_place(|| node.kill_and_restart());
    }
    stop.store(true, Ordering::Relaxed);
    let mut all = 0;
    for (who, publisher) in publishers.into_iter().enumerate() {
        let (sent, stored) = (publisher.await.unwrap(), numbers(&client, who).await);
        if PUBLISHERS[who].0 == "memory" {
            // It may lose what was answered, and repeats nothing of the rest.
            assert!(stored.is_sorted_by(|a, b| a < b), "{who}: out of order, or twice");
        } else {
            assert!(stored.iter().copied().eq(0..sent), "{who}: {sent} sent, {}", stored.len());
        }
        all += stored.len();
    }
    println!("{kills} kills: {all} messages stored, each once");
}

#[test]
fn pub_retries_as_long_as_it_is_told_to() {
    let mut node = NodeProcess::start();
    node.terminate();
    let alone = node.command(&["pub", "a", "1"]).output().unwrap();
    assert!(!alone.status.success(), "a person is told at once");
    let patient = node.command(&["pub", "a", "2", "--retry", "1m"]).stdout(Stdio::piped()).spawn();
    let mut lines = node.command(&["pub", "a", "-", "--retry", "1m"]);
    let mut lines = lines.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    lines.stdin.take().unwrap().write_all(b"3\n4\n").unwrap();
    node.kill_and_restart();
    for child in [patient.unwrap(), lines] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let state = json(&node.run(&["--json", "stream", "info", "a"]));
    assert_eq!(state.field("next"), Some(&3_u64.into()));
}
