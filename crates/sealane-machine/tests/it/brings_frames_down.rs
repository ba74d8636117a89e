//! Messages of members at the hub come into the mesh once. Messages that came from the mesh do not
//! return.

use sealane::{Client, DataType, Value};
use sealane_frame::FrameView;
use sealane_machine::limits::MAX_DOWN_PER_SECOND;

use crate::scene::{Field, any, gateway, hub, until, until_brought};

fn said(text: &str) -> Value {
    Value::Map(vec![("text".to_owned(), text.into())])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_at_the_hub_comes_down_once_whoever_restarts() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address().to_string();
    let client = Client::connect(&address).unwrap();
    let base = client.group(field.member("base")).await.unwrap();
    let (topic, tag) = (field.topic(5), field.member("base").tag());
    let say = |text: &str| base.publish(&topic, DataType::CHAT, &said(text)).into_future();
    say("before any gateway").await.unwrap();
    let (one, down) = gateway(&address, &field.path("queue"));
    one.serve(&[tag]);
    until("it has found its place", || one.status().down.followed == 1).await;
    say("hello").await.unwrap();
    until("the first word comes down", || !down.lock().is_empty()).await;
    // A frame of the field goes up, and does not come down again.
    let frame = field.origin("car", 5).next();
    one.intake().take(&frame);
    until_brought(&one, 1).await;
    say("again").await.unwrap();
    until("the next word comes down", || down.lock().len() >= 2).await;
    until("all was read", || one.status().down.known == 1).await;
    for frame in down.lock().iter() {
        let header = *FrameView::parse(frame).unwrap().header();
        assert_eq!((header.group(), header.data_type(), header.hop_limit()), (tag, 5, 15));
    }
    // The echo of what came down is not brought up again.
    let echo = down.lock()[0].clone();
    one.intake().take(&echo);
    assert_eq!(one.status().heard.repeated, 1);
    one.stop();
    drop(one);

    say("while it was away").await.unwrap();
    let (two, down) = gateway(&address, &field.path("queue"));
    two.serve(&[tag]);
    until("what was said meanwhile comes down", || !down.lock().is_empty()).await;
    say("and then").await.unwrap();
    until("what is said then comes down", || down.lock().len() >= 2).await;
    assert!(down.lock().len() <= 4, "at most what was not stored as read comes again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_frame_of_its_stream_stays_in_the_hub() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address().to_string();
    let client = Client::connect(&address).unwrap();
    let (gateway, down) = gateway(&address, &field.path("queue"));
    let (tag, topic) = (field.member("base").tag(), field.topic(5));
    gateway.serve(&[tag]);
    until("it has found its place", || gateway.status().down.followed == 1).await;
    let base = client.group(field.member("base")).await.unwrap();
    // A location where chat belongs: the hub cannot tell, and the gateway can.
    base.publish(&topic, DataType::LOCATION, &said("elsewhere")).await.unwrap();
    base.publish(&topic, DataType::CHAT, &said("here")).await.unwrap();
    until("the word comes down", || !down.lock().is_empty()).await;
    until("the other is counted", || gateway.status().down.refused == 1).await;
    assert_eq!(down.lock().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_gone_bad_fills_no_radio() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address().to_string();
    let client = Client::connect(&address).unwrap();
    let (gateway, down) = gateway(&address, &field.path("queue"));
    gateway.serve(&[field.member("base").tag()]);
    until("it has found its place", || gateway.status().down.followed == 1).await;
    let base = client.group(field.member("base")).await.unwrap();
    let count = MAX_DOWN_PER_SECOND as usize + 10;
    let many: Vec<_> = (0..count).map(|number| said(&number.to_string())).collect();
    let began = std::time::Instant::now();
    for one in &many {
        base.publish(&field.topic(5), DataType::CHAT, one).await.unwrap();
    }
    until("all of it comes down", || down.lock().len() == count).await;
    assert!(began.elapsed() >= std::time::Duration::from_secs(1), "more than the pace allows");
}
