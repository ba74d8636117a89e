//! Two gateways hear one mesh: its frames are in the hub once, and of each origin in their order.

use sealane::Client;

use crate::scene::{Field, TELEMETRY, any, gateway, hub, read, until_brought};

const FRAMES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_that_hear_one_mesh_store_each_frame_once_and_in_order() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let client = Client::connect(&node.address().to_string()).unwrap();
    let [one, two] =
        ["one", "two"].map(|name| gateway(&node.address().to_string(), &field.path(name)).0);
    let (mut base, mut car) = (field.origin("base", TELEMETRY), field.origin("car", TELEMETRY));
    for (base, car) in base.some(FRAMES).iter().zip(&car.some(FRAMES)) {
        // They come by different ways, which other relays have marked, and one comes twice.
        let mut relayed = base.clone();
        relayed[..17].copy_from_slice(&[0x5a; 17]);
        one.intake().take(base);
        one.intake().take(car);
        two.intake().take(car);
        two.intake().take(&relayed);
        two.intake().take(car);
    }
    let (one, two) = (
        until_brought(&one, 2 * FRAMES as u64).await,
        until_brought(&two, 2 * FRAMES as u64).await,
    );
    // A gateway that waits in vain for an answer brings a frame again, and finds it known.
    assert!(one.stored + two.stored <= 2 * FRAMES as u64, "{one:?} {two:?}");
    assert!(one.replayed + two.replayed >= 2 * FRAMES as u64, "{one:?} {two:?}");
    assert_eq!(two.heard.repeated, FRAMES as u64);
    let topic = field.topic(TELEMETRY);
    assert_eq!(client.stream(&topic).await.unwrap().next, 2 * FRAMES as u64);
    let all = read(&client, field.member("base"), &topic, 2 * FRAMES).await;
    for slot in [0, 1] {
        let of_one = all.iter().filter(|(of, _)| *of == slot).map(|(_, number)| *number);
        assert!(of_one.eq(0..FRAMES as u64), "slot {slot}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hub_stores_is_what_its_sender_wrote() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let (gateway, _) = gateway(&node.address().to_string(), &field.path("queue"));
    let frame = field.origin("car", 4).next();
    let mut relayed = frame.clone();
    relayed[..17].copy_from_slice(&[0x5a; 17]);
    gateway.intake().take(&relayed);
    until_brought(&gateway, 1).await;
    let client = Client::connect(&node.address().to_string()).unwrap();
    let page = client.read(&field.topic(4), sealane::StartPosition::First, 10).await.unwrap();
    let message = &page.messages[0];
    let sealed = sealane_protocol::SealedEnvelope::read(message.codec, &message.envelope).unwrap();
    assert_eq!(sealed.unwrap().frame.as_ref(), frame);
}
