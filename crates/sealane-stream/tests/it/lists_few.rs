//! A search for few streams among many looks at few of them at a time. It describes no other, and
//! comes by each one once.

use std::cell::Cell;
use std::sync::Arc;

use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_stream::{HubConfig, Level, Retention, StreamEnqueue, StreamEnvelope, StreamHub};

const CROWD: usize = 700;

async fn hub(folder: &std::path::Path) -> Arc<StreamHub> {
    let config = HubConfig {
        folder: folder.to_owned(),
        level: Level::Memory,
        retention: Retention::default(),
    };
    let hub = Arc::new(StreamHub::open(config).unwrap());
    let names = (0..CROWD).map(|n| format!("crowd/{n:03}"));
    for name in names.chain(["crowded".into(), "a".into(), "crowd".into()]) {
        let raw = br#"{"id":"m"}"#;
        let envelope =
            StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, raw).unwrap();
        let (topic, envelopes) = (name.parse().unwrap(), vec![envelope]);
        let one = StreamEnqueue {
            topic,
            envelopes,
            expect: None,
            delay_ms: None,
            key: None,
            owner: "".into(),
        };
        hub.enqueue(one).await.unwrap();
    }
    hub
}

/// The topics that a walk finds, and at how many it looks at most in one go.
fn walk(
    hub: &StreamHub,
    beginning: &str,
    limit: usize,
    wanted: fn(&Topic) -> bool,
) -> (usize, Vec<String>) {
    let (mut most, mut topics, mut after) = (0, Vec::new(), None);
    loop {
        let looks = Cell::new(0);
        let listed = hub.streams(beginning, after.as_ref(), limit, |topic| {
            looks.set(looks.get() + 1);
            wanted(topic)
        });
        assert!(listed.streams.len() <= limit);
        assert_eq!(listed.looked, looks.get());
        most = most.max(listed.looked);
        topics.extend(listed.streams.iter().map(|info| info.stream.to_string()));
        after = match listed.next {
            None => return (most, topics),
            next => next,
        };
    }
}

#[tokio::test]
async fn all_in_order_and_none_twice() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path()).await;
    for limit in [1, 255, 256, 257, 1000] {
        let (most, topics) = walk(&hub, "", limit, |_| true);
        assert!(most <= 256, "{most}");
        assert_eq!(topics.len(), CROWD + 3);
        assert!(topics.is_sorted(), "{limit}");
    }
}

#[tokio::test]
async fn few_of_many() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path()).await;
    let (most, topics) = walk(&hub, "", 10, |_| false);
    assert!(most <= 256 && topics.is_empty(), "{most} {topics:?}");
    let (_, topics) = walk(&hub, "", 10, |topic| topic.as_str().ends_with("99"));
    assert_eq!(topics.len(), CROWD / 100);
    // A stream that begins otherwise is not even looked at.
    assert_eq!(walk(&hub, "crowd/69", 1000, |_| true).0, 10);
    assert_eq!(walk(&hub, "crowded", 10, |_| true), (1, vec!["crowded".into()]));
    assert_eq!(walk(&hub, "none", 10, |_| true), (0, vec![]));
    // A place behind all that begins so.
    let behind: Topic = "crowd/zz".parse().unwrap();
    assert_eq!(hub.streams("crowd/", Some(&behind), 10, |_| true).looked, 0);
}
