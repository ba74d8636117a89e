//! A hub, or who reaches it, that forges, repeats or mixes: named, counted, never shown.

use sealane::{Client, Codec, DataType, GroupClient, StartPosition, Subscription, Value};
use sealane_codec::document;
use sealane_frame::FrameBuf;
use sealane_message::document::{Count, Document, EmergencyCall};
use sealane_protocol::SealedEnvelope;
use sealane_seal::{Binding, Class};

use crate::members::{Person, authority, fleet, invite, refusals};
use crate::{is_silent, next, node, number, numbered, numbers};

async fn publish(group: &GroupClient, n: u64) {
    group.publish("log", DataType::LOCATION, &numbered(n)).await.unwrap();
}

/// The frames of the stream, as the hub has them.
async fn frames(client: &Client) -> Vec<Vec<u8>> {
    let page = client.read("log", StartPosition::First, 100).await.unwrap();
    let frame = |message: &sealane::ReceivedMessage| {
        let sealed = SealedEnvelope::read(message.codec, &message.envelope).unwrap().unwrap();
        sealed.frame.into_owned()
    };
    page.messages.iter().map(frame).collect()
}

/// Puts a frame into the stream, as only its bytes.
async fn enqueue(client: &Client, frame: &[u8]) {
    let mut envelope = Vec::new();
    SealedEnvelope { id: None, frame: frame.into() }.write(Codec::MsgPack, &mut envelope);
    client.publish_raw("log", Codec::MsgPack, envelope).await.unwrap();
}

/// Seals anything as that person, past every policy.
fn seal(person: &Person, class: Class, data_type: DataType, codec: u8, body: &[u8]) -> Vec<u8> {
    let mut sender = person.member().sender().unwrap();
    let mut fields = sender.fields(class, data_type.number());
    fields.codec = codec;
    let log = Binding::stream("log");
    sender.seal(&fields, &log, body, &mut FrameBuf::new()).unwrap().to_vec()
}

async fn reader(group: &GroupClient) -> Subscription {
    group.subscribe("log").from(StartPosition::First).await.unwrap()
}

#[tokio::test]
async fn forged_and_repeated_frames_are_dropped_by_name() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let (sender, group) = (car.group(&client).await, base.group(&client).await);
    publish(&sender, 0).await;
    publish(&sender, 1).await;
    let stored = frames(&client).await;
    let mut forged = stored[1].clone();
    *forged.last_mut().unwrap() ^= 1;
    enqueue(&client, &forged).await;
    enqueue(&client, &stored[0]).await;
    enqueue(&client, &stored[1]).await;
    publish(&sender, 2).await;
    let mut log = reader(&group).await;
    let mut events = log.events();
    assert_eq!(numbers(&mut log, 3).await, [0, 1, 2]);
    assert_eq!(refusals(&mut events, 3).await, ["NotAuthentic", "Repeated", "Repeated"]);
    let counts = log.seal_counts();
    assert_eq!((counts.opened, counts.refused, counts.repeated), (3, 1, 2));
}

#[tokio::test]
async fn a_consumer_is_done_with_what_does_not_open() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let (sender, group) = (car.group(&client).await, base.group(&client).await);
    publish(&sender, 0).await;
    let mut forged = frames(&client).await.remove(0);
    enqueue(&client, &forged.clone()).await;
    *forged.last_mut().unwrap() ^= 1;
    enqueue(&client, &forged).await;
    publish(&sender, 1).await;
    let mut work = group.subscribe("log").consumer("w").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut work, 2).await, [0, 1]);
    work.close().await;
    let state = client.stream("log").await.unwrap();
    let consumer = &state.consumers[0];
    assert_eq!((consumer.next, consumer.in_flight, consumer.dead_lettered), (4, 0, 0));
}

#[tokio::test]
async fn what_a_member_seals_wrongly_is_dropped_too() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = base.group(&client).await;
    let map = br#"{"n":1}"#;
    let cases = [
        (Class::Authenticated, DataType::LOCATION, 1, &map[..], "BelowFloor"),
        (Class::Group, DataType::EMERGENCY, 1, map, "BelowFloor"),
        (Class::Authenticated, DataType::from_number(4711), 1, map, "BelowFloor"),
        (Class::Group, DataType::CHAT, 1, map, "BelowFloor"),
        (Class::Group, DataType::LOCATION, 1, b"[1]", "NoEnvelope"),
        (Class::Group, DataType::LOCATION, 1, b"{\"n\":1,\"n\":2}", "NoEnvelope"),
        (Class::Group, DataType::LOCATION, 2, map, "NoEnvelope"),
        (Class::Group, DataType::LOCATION, 0, map, "NoEnvelope"),
        (Class::Group, DataType::LOCATION, 4, map, "NoEnvelope"),
    ];
    for (class, data_type, codec, body, _) in cases {
        enqueue(&client, &seal(&car, class, data_type, codec, body)).await;
    }
    enqueue(&client, &seal(&car, Class::Group, DataType::LOCATION, 1, map)).await;
    let mut log = reader(&group).await;
    let mut events = log.events();
    assert_eq!(number(&next(&mut log).await), 1);
    let names = refusals(&mut events, cases.len()).await;
    assert_eq!(names, cases.map(|(.., name)| name));
    assert_eq!(log.seal_counts().below_floor, 4);
}

#[tokio::test]
async fn documents_of_the_field_are_shown_as_values() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = base.group(&client).await;
    let call = Document::Acknowledgement(EmergencyCall { slot: 7, number: 3 });
    let count = Document::Counter(vec![Count { id: 1, total: 9 }]);
    let mut timed = 1_795_370_000_000_u64.to_le_bytes().to_vec();
    document::encode(&call, &mut timed).unwrap();
    let mut counted = vec![];
    document::encode(&count, &mut counted).unwrap();
    enqueue(&client, &seal(&car, Class::Signed, call.data_type(), 0, &timed)).await;
    enqueue(&client, &seal(&car, Class::Authenticated, count.data_type(), 0, &counted)).await;
    let mut log = reader(&group).await;
    for document in [call, count] {
        let message = next(&mut log).await;
        assert_eq!(message.codec, Codec::Json);
        assert_eq!(message.value().unwrap(), document::to_value(&document));
    }
}

#[tokio::test]
async fn a_removed_member_cannot_write_behind_its_removal() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let thief = invite(&base, "thief", sealane_group::PastSecrets::All);
    let authority = base.group(&client).await;
    authority.publish_orders().await.unwrap();
    let late = seal(&thief, Class::Group, DataType::LOCATION, 1, br#"{"n":666}"#);
    let early = seal(&thief, Class::Group, DataType::LOCATION, 1, br#"{"n":1}"#);
    enqueue(&client, &early).await;
    let mut member = base.member();
    let slot = member.roster().find("thief").unwrap().slot();
    member.revoke(&[slot]).unwrap();
    authority.publish_orders().await.unwrap();
    let sender = car.group(&client).await;
    publish(&sender, 2).await;
    enqueue(&client, &late).await;
    let reading = base.group(&client).await;
    let mut log = reader(&reading).await;
    let mut events = log.events();
    assert_eq!(numbers(&mut log, 2).await, [1, 2]);
    assert_eq!(refusals(&mut events, 1).await, ["AfterRemoval"]);
    assert!(is_silent(&mut log).await);
}

#[tokio::test]
async fn streams_that_are_open_or_of_others_are_refused_one_by_one() {
    let (_folder, _node, client) = node().await;
    let (base, _car) = fleet(&client).await;
    let other = authority(sealane_group::NewGroup::default());
    let (group, other) = (base.group(&client).await, other.group(&client).await);
    client.publish("mix/open", &numbered(1)).await.unwrap();
    other.publish("mix/other", DataType::CHAT, &numbered(1)).await.unwrap();
    group.publish("mix/ours", DataType::CHAT, &numbered(7)).await.unwrap();
    let mut mix = group.subscribe("mix/*").from(StartPosition::First).await.unwrap();
    let mut events = mix.events();
    assert_eq!(number(&next(&mut mix).await), 7);
    let mut names = refusals(&mut events, 2).await;
    names.sort_unstable();
    assert_eq!(names, ["ReadOpen", "ReadOtherGroup"]);
    let dead = Value::Map(vec![("sealed".into(), 7_u64.into())]);
    client.publish("mix/open", &dead).await.unwrap();
    assert_eq!(refusals(&mut events, 1).await, ["ReadOpen"]);
}
