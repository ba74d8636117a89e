//! What the writer promises and does not keep yet, on a store that fails when it is told to.

use std::time::Duration;

use sealane_codec::{Codec, Transcoder};

use super::*;

fn open(folder: &tempfile::TempDir) -> Hub {
    let (folder, level) = (folder.path().to_owned(), Level::Os);
    Hub::open(HubConfig { folder, level, retention: Retention::default() }).unwrap()
}

fn messages(hub: &Hub, topic: &str, count: usize) -> Enqueue {
    let read = |_| Envelope::read(&mut Transcoder::new(), &hub.ids, Codec::Json, b"{}").unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), (0..count).map(read).collect());
    Enqueue { topic, envelopes, expect: None, delay_ms: None, key: None }
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// A commit that stores what a `memory` stream was answered for and at once takes it off for its
/// age writes a row whose `next` is below its `first`.
#[tokio::test]
async fn no_message_gets_an_offset_below_the_first_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "m".parse().unwrap();
    let (level, max_age_ms) = (Some(Level::Memory), Some(20));
    let change = Change { level, max_age_ms, ..Change::default() };
    hub.configure(&topic, None, change).await.unwrap();
    hub.store_trouble.refuse_blocks(true);
    assert_eq!(hub.enqueue(messages(&hub, "m", 5)).await.unwrap().offset, 0);
    // The writer waits to copy its log, and retention is due by the next commit.
    let copying = hub.registry.copying.lock();
    sleep_ms(400).await;
    hub.store_trouble.end();
    hub.store_trouble.fail_at(1, store::Fault::Full, false);
    drop(copying);
    while hub.stream(&topic).unwrap().first == 0 {
        sleep_ms(1).await;
    }
    hub.store_trouble.fail_at(1, store::Fault::Failed("the process is dead".into()), true);
    let _ = hub.close();

    let hub = open(&folder);
    let info = hub.stream(&topic).unwrap();
    hub.configure(&topic, None, Change { max_age_ms: Some(0), ..Change::default() }).await.unwrap();
    let offset = hub.enqueue(messages(&hub, "m", 1)).await.unwrap().offset;
    let page = hub.read(&topic, From::Offset(offset), 10).await.unwrap();
    let is_read = page.events.iter().any(|event| matches!(event, Event::Deliver(_)));
    let (first, next) = (info.first, info.next);
    assert!(is_read, "first {first}, next {next}: offset {offset} was acknowledged");
}
