//! Each refusal of a hub is told by its name, and met as it deserves.

use sealane::Client;
use sealane_machine::{HubAccess, HubState};
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};

use crate::scene::{Field, TELEMETRY, any, gateway, gateway_with, hub, until, until_brought};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_sealed_holds_up_nothing_but_itself() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let client = Client::connect(&node.address().to_string()).unwrap();
    client.configure(&field.topic(TELEMETRY)).await.unwrap();
    let (gateway, _) = gateway(&node.address().to_string(), &field.path("queue"));
    let (mut held, mut other) = (field.origin("car", TELEMETRY), field.origin("base", 4));
    for _ in 0..20 {
        gateway.intake().take(&held.next());
        gateway.intake().take(&other.next());
    }
    until("the other stream is brought", || gateway.status().stored == 20).await;
    until("the stream is held", || !gateway.status().held.is_empty()).await;
    let status = gateway.status();
    assert_eq!(status.queue.frames, 20, "they are kept: {status:?}");
    let told = &status.held[0];
    assert_eq!(told.stream.to_string(), field.topic(TELEMETRY));
    assert!(told.cause.starts_with("SealMismatch"), "{}", told.cause);
    assert!(status.queue.lost.iter().all(|lost| lost.frames == 0));
    assert_eq!(status.hub.state, HubState::Up);
    assert!(status.metrics().contains("sealane_gateway_held_streams 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_told_and_its_successor_is_taken_without_a_restart() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let secret = TokenSecret::new([1; 32]);
    let everywhere = || vec!["mesh/**".parse().unwrap()];
    let rights =
        TokenRights { publish: everywhere(), read: everywhere(), ..TokenRights::default() };
    TokenFile::add(folder.path(), "gateway", &secret, rights, None).unwrap();
    node.reload().unwrap();
    let file = field.path("gateway.token");
    std::fs::write(&file, format!("{}\n", TokenSecret::new([2; 32]).reveal())).unwrap();
    let address = node.address().to_string();
    let access = HubAccess { address, token: Some(file.clone()), ca: None };
    let (gateway, _) = gateway_with(access, &field.path("queue"));
    for frame in field.origin("car", TELEMETRY).some(10) {
        gateway.intake().take(&frame);
    }
    until("the token is refused", || gateway.status().hub.state == HubState::Refused).await;
    let status = gateway.status();
    assert!(status.hub.cause.unwrap().starts_with("Unauthorized"), "by its name");
    assert_eq!(status.queue.frames, 10);
    std::fs::write(&file, format!("{}\n", secret.reveal())).unwrap();
    until_brought(&gateway, 10).await;
}
