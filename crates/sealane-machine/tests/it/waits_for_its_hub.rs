//! A hub that is away costs nothing that the queue has room for, whoever stops meanwhile.

use sealane::Client;
use sealane_machine::HubState;

use crate::scene::{Field, TELEMETRY, any, gateway, hub, read, until, until_brought};

const FRAMES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_the_hub_is_away_is_there_afterwards_once_and_in_order() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address();
    let mut origin = field.origin("car", TELEMETRY);
    let (first, _) = gateway(&address.to_string(), &field.path("queue"));
    for frame in origin.some(FRAMES) {
        first.intake().take(&frame);
    }
    until_brought(&first, FRAMES as u64).await;
    node.stop().await.unwrap();
    let (meanwhile, mut again) = (origin.some(FRAMES), Vec::new());
    for frame in &meanwhile {
        first.intake().take(frame);
    }
    until("the hub is found to be away", || {
        let status = first.status();
        status.hub.state == HubState::Away && status.queue.frames == FRAMES as u64
    })
    .await;
    assert!(first.status().hub.cause.is_some());
    first.stop();
    drop(first);

    // The next process has the same queue, and hears some of it again.
    let (second, _) = gateway(&address.to_string(), &field.path("queue"));
    assert_eq!(second.status().queue.frames, FRAMES as u64);
    again.extend(meanwhile.iter().take(FRAMES / 2).cloned());
    again.extend(origin.some(FRAMES));
    for frame in &again {
        second.intake().take(frame);
    }
    until("all is kept", || second.status().queue.frames == 2 * FRAMES as u64).await;
    let node = hub(folder.path(), address).await;
    until_brought(&second, 2 * FRAMES as u64).await;
    assert_eq!(second.status().hub.state, HubState::Up);
    let client = Client::connect(&node.address().to_string()).unwrap();
    let topic = field.topic(TELEMETRY);
    assert_eq!(client.stream(&topic).await.unwrap().next, 3 * FRAMES as u64);
    let all = read(&client, field.member("base"), &topic, 3 * FRAMES).await;
    assert!(all.iter().map(|(_, number)| *number).eq(0..3 * FRAMES as u64));
}
