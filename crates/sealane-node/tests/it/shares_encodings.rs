//! One message to many readers is put into each codec once.

use futures_util::future::join_all;
use serde_json::json;

use crate::running::Running;

const CODECS: [&str; 4] = ["json", "msgpack", "cbor", "msgpack-records"];

/// `SEALANE_READERS` readers (1,000), or as many as the process may open sockets for.
fn readers() -> usize {
    let wanted = std::env::var("SEALANE_READERS").map_or(1000, |text| text.parse().unwrap());
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find(|line| line.starts_with("Max open files"));
    let files = files.and_then(|line| line.split_whitespace().nth(3)?.parse::<usize>().ok());
    // Both ends of each connection are in this process.
    wanted.min(files.unwrap_or(1024).saturating_sub(200) / 2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_message_to_a_thousand_readers_is_encoded_once_for_each_codec() {
    let hub = Running::start().await;
    let (mut sockets, count) = (Vec::new(), readers());
    while sockets.len() < count {
        let open = (sockets.len()..count.min(sockets.len() + 100)).map(|index| {
            let codec = CODECS[index % CODECS.len()];
            let hub = &hub;
            async move {
                let mut socket = hub.subscribe(&format!("stream=s&from=new&codec={codec}")).await;
                socket.credit(10).await;
                socket
            }
        });
        sockets.extend(join_all(open).await);
    }
    assert_eq!(hub.metric("sealane_codec_encoded_total").await, 0);
    for n in 1..=2 {
        hub.enqueue("s", json!({"id": format!("m{n}"), "text": "hello"})).await;
        let deliveries = join_all(sockets.iter_mut().map(async |socket| {
            if n == 1 {
                assert_eq!(socket.frame().await["status"], "joined");
            }
            socket.deliver().await
        }));
        let expected = json!({"id": format!("m{n}"), "text": "hello"});
        assert!(deliveries.await.iter().all(|delivered| delivered.envelope == expected));
        // Records are written from the MessagePack form, for each connection has its own.
        assert_eq!(hub.metric("sealane_codec_encoded_total").await, 3 * n);
    }
    println!("{count} readers, {} deliveries", hub.metric("sealane_stream_delivered_total").await);
}
