//! The messages that one member publishes reach another, through a hub that sees nothing of them.

use sealane::policy::Policy;
use sealane::{Class, Client, Codec, DataType, StartPosition, Value};
use sealane_group::NewGroup;
use sealane_testing::{files_below, holds};

use crate::members::{authority, fleet, invite};
use crate::{is_silent, next, node, number, numbered, numbers};

const SECRET: &str = "the way to the treasure";

fn secret(n: u64) -> Value {
    Value::Map(vec![("n".into(), n.into()), ("body".into(), SECRET.into())])
}

#[tokio::test]
async fn every_codec_reads_what_every_codec_published_and_the_hub_nothing() {
    let (folder, node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let codecs = [Codec::Json, Codec::MsgPack, Codec::Cbor];
    for (n, codec) in codecs.into_iter().enumerate() {
        let group = car.group(&client.clone().with_codec(codec).unwrap()).await;
        group.publish("secrets", DataType::LOCATION, &secret(n as u64)).await.unwrap();
    }
    assert_eq!(client.stream("secrets").await.unwrap().sealed, Some(base.member().tag()));
    for codec in codecs {
        let group = base.group(&client.clone().with_codec(codec).unwrap()).await;
        let mut subscription = group.subscribe("secrets").from(StartPosition::First).await.unwrap();
        for (n, written) in codecs.into_iter().enumerate() {
            let message = next(&mut subscription).await;
            assert_eq!(message.value().unwrap(), secret(n as u64));
            assert_eq!(message.codec, written);
            let seal = message.seal.unwrap();
            assert_eq!((seal.sender.as_str(), seal.class), ("car", Class::Group));
            assert_eq!((seal.group, seal.data_type), (group.tag(), DataType::LOCATION));
            assert_eq!(seal.slot, 1);
        }
        let counts = subscription.seal_counts();
        assert_eq!((counts.opened, counts.refused, counts.repeated), (3, 0, 0));
    }
    // Without keys it is opaque, and so it is on disk.
    let mut blind = client.subscribe("secrets").from(StartPosition::First).await.unwrap();
    let opaque = next(&mut blind).await;
    assert!(opaque.seal.is_none() && opaque.value().unwrap().field("sealed").is_some());
    drop((blind, node));
    let mut searched = 0;
    for bytes in files_below(folder.path()).values() {
        searched += bytes.len();
        assert!(!holds(bytes, SECRET));
    }
    assert!(searched > 1000);
}

#[tokio::test]
async fn a_publisher_seals_in_order_and_a_reader_goes_on_where_it_was() {
    let (_folder, node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let publisher = car.group(&client).await.publisher("many", DataType::CHAT).unwrap();
    for n in 0..3000 {
        publisher.send(&numbered(n)).await.unwrap();
    }
    assert_eq!(publisher.flush().await.unwrap().messages, 3000);
    let group = base.group(&client).await;
    let mut all = group.subscribe("many").from(StartPosition::First).credit(64).await.unwrap();
    assert_eq!(numbers(&mut all, 3000).await, (0..3000).collect::<Vec<_>>());
    let counts = all.seal_counts();
    assert_eq!((counts.opened, counts.skipped), (3000, 0));
    let mut part = group.subscribe("many").from(StartPosition::Offset(2990)).await.unwrap();
    assert_eq!(numbers(&mut part, 10).await, (2990..3000).collect::<Vec<_>>());
    let mut pattern = group.subscribe("**").from(StartPosition::First).limit(1).await.unwrap();
    assert_eq!(number(&next(&mut pattern).await), 0);
    drop(node);
}

#[tokio::test]
async fn a_consumer_gets_again_what_it_did_not_acknowledge() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = car.group(&client).await;
    for n in 0..4 {
        group.publish("work", DataType::CHAT, &numbered(n)).await.unwrap();
    }
    let readers = base.group(&client).await;
    let work = || readers.subscribe("work").consumer("w").from(StartPosition::First);
    let mut first = work().await.unwrap();
    for n in 0..4 {
        let message = next(&mut first).await;
        assert_eq!((number(&message), message.attempt), (n, 1));
        if n < 2 {
            message.ack();
        } else if n == 2 {
            message.nack(std::time::Duration::ZERO);
        }
    }
    let again = next(&mut first).await;
    assert_eq!((number(&again), again.attempt), (2, 2));
    again.ack();
    first.close().await;
    let mut second = work().await.unwrap();
    let left = next(&mut second).await;
    assert_eq!((number(&left), left.attempt), (3, 2));
    left.ack();
    assert!(is_silent(&mut second).await);
    assert_eq!(second.seal_counts().repeated, 0);
}

#[tokio::test]
async fn several_senders_are_told_apart() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let (from_base, from_car) = (base.group(&client).await, car.group(&client).await);
    for n in 0..6 {
        let group = if n % 2 == 0 { &from_base } else { &from_car };
        group.publish("talk", DataType::CHAT, &numbered(n)).await.unwrap();
    }
    let mut talk = from_car.subscribe("talk").from(StartPosition::First).await.unwrap();
    for n in 0..6 {
        let message = next(&mut talk).await;
        let seal = message.seal.clone().unwrap();
        let sender = if n % 2 == 0 { "base" } else { "car" };
        assert_eq!((number(&message), seal.sender.as_str()), (n, sender));
        // Neither could have written it in the name of the other.
        assert_eq!(seal.class, Class::Signed);
    }
}

#[tokio::test]
async fn the_class_is_what_the_policy_decides_or_nothing_is_sent() {
    let (_folder, _node, client) = node().await;
    let (base, _car) = fleet(&client).await;
    let group = base.group(&client).await;
    let publish = |data_type| group.publish("mixed", data_type, &numbered(1));
    let refused = publish(DataType::COMMAND).await.unwrap_err();
    assert_eq!(refused.code(), "SL-POLICY-09");
    assert_eq!(client.stream("mixed").await.unwrap_err().refusal(), Some("UnknownStream"));
    publish(DataType::EMERGENCY).await.unwrap();
    publish(DataType::COUNTER).await.unwrap();
    let policy = Policy::from_toml("version = 1\ntype.counter.floor = 'S'").unwrap();
    group.set_policy(policy);
    publish(DataType::COUNTER).await.unwrap();
    let mut mixed = group.subscribe("mixed").from(StartPosition::First).await.unwrap();
    let mut events = mixed.events();
    let first = next(&mut mixed).await.seal.unwrap();
    assert_eq!((first.data_type, first.class), (DataType::EMERGENCY, Class::Signed));
    // The reader's own floor holds: the counter of before is below it now.
    let second = next(&mut mixed).await.seal.unwrap();
    assert_eq!((second.data_type, second.class), (DataType::COUNTER, Class::Signed));
    assert_eq!(mixed.seal_counts().below_floor, 1);
    assert_eq!(crate::members::refusals(&mut events, 1).await, ["BelowFloor"]);
}

#[tokio::test]
async fn a_pair_talks_in_class_p() {
    let (_folder, _node, client) = node().await;
    let base = authority(NewGroup { is_pair: true, ..NewGroup::default() });
    let car = invite(&base, "car", sealane_group::PastSecrets::All);
    let (base, car) = (base.group(&client).await, car.group(&client).await);
    base.publish_orders().await.unwrap();
    base.publish("pair", DataType::COMMAND, &numbered(7)).await.unwrap();
    base.publish("pair", DataType::CHAT, &numbered(8)).await.unwrap();
    let mut pair = car.subscribe("pair").from(StartPosition::First).await.unwrap();
    let message = next(&mut pair).await;
    assert_eq!((number(&message), message.seal.unwrap().class), (7, Class::Peer));
    let message = next(&mut pair).await;
    assert_eq!((number(&message), message.seal.unwrap().class), (8, Class::Peer));
}

#[tokio::test]
async fn open_and_sealed_do_not_mix() {
    let (_folder, _node, client) = node().await;
    let (base, _car) = fleet(&client).await;
    let group = base.group(&client).await;
    client.publish("open", &numbered(1)).await.unwrap();
    let refused = group.publish("open", DataType::CHAT, &numbered(1)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some("SealMismatch"));
    group.publish("closed", DataType::CHAT, &numbered(1)).await.unwrap();
    let refused = client.publish("closed", &numbered(1)).await.unwrap_err();
    assert_eq!(refused.refusal(), Some("NotSealed"));
    assert!(!refused.hint().is_empty());
    for wrong in [&b"[1]"[..], b"{\"a\":", b"7"] {
        let raw = group.publish_raw("closed", DataType::CHAT, Codec::Json, wrong.to_vec());
        assert!(raw.await.is_err());
    }
}

#[tokio::test]
async fn a_hub_that_is_not_there_is_said_at_once() {
    let client = Client::connect("127.0.0.1:1").unwrap().patience(std::time::Duration::ZERO);
    let base = authority(NewGroup::default());
    let failed = client.group(base.member()).await.unwrap_err();
    assert_eq!(failed.code(), "SL-CLIENT-02");
}
