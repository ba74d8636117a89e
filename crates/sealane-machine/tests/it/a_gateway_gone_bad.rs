//! An attacker with a gateway's token attacks the frames that the gateway hears. No reader takes
//! any result of that for true.

use sealane::{Client, Codec};
use sealane_protocol::write_sealed;

use crate::scene::{Field, TELEMETRY, any, hub, read};

async fn bring(client: &Client, topic: &str, frame: &[u8]) {
    let mut envelope = Vec::new();
    write_sealed(Codec::MsgPack, None, frame, &mut envelope);
    client.publish_raw(topic, Codec::MsgPack, envelope).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_gone_bad_forges_nothing() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let client = Client::connect(&node.address().to_string()).unwrap();
    let topic = field.topic(TELEMETRY);
    let mut origin = field.origin("car", TELEMETRY);
    let (first, second, last) = (origin.next(), origin.next(), origin.next());
    bring(&client, &topic, &first).await;
    // The same again, as if the hub did not know it.
    bring(&client, &topic, &first).await;
    // One bit of each byte that the hub does not look at is changed, and of its counter.
    for at in (64..second.len()).chain([63, 55, 27, 20]) {
        let mut changed = second.clone();
        changed[at] ^= 1;
        let mut envelope = Vec::new();
        write_sealed(Codec::MsgPack, None, &changed, &mut envelope);
        // The hub itself refuses bytes that are no frame any more.
        let _ = client.publish_raw(&topic, Codec::MsgPack, envelope).await;
    }
    // A frame of another stream.
    bring(&client, &topic, &field.origin("base", 4).next()).await;
    bring(&client, &topic, &second).await;
    bring(&client, &topic, &last).await;
    assert!(client.stream(&topic).await.unwrap().next > 20, "the hub cannot tell");
    let all = read(&client, field.member("base"), &topic, 3).await;
    assert_eq!(all, [(1, 0), (1, 1), (1, 2)]);
}
