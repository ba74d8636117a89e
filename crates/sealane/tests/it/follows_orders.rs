//! Orders of the authority reach who publishes and who reads, while they are at work.

use std::time::Duration;

use sealane::{ClientEvent, DataType, GroupClient, StartPosition, Value};
use sealane_group::{EpochSource, IdentityCard, PastSecrets};

use crate::members::{Person, fleet, invite, refusals};
use crate::{is_silent, next, node, number, numbered, numbers};

async fn publish(group: &GroupClient, n: u64) {
    group.publish("log", DataType::LOCATION, &numbered(n)).await.unwrap();
}

/// Waits until a client has come to an epoch.
async fn reached(group: &GroupClient, events: &mut sealane::ClientEvents, epoch: u64) {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), events.next());
        match next.await.expect("an order within 10 s") {
            Some(ClientEvent::Keys { epoch: now, .. }) if now >= epoch => return,
            Some(_) => {}
            None => panic!("{group:?} ended"),
        }
    }
}

fn revoke(base: &Person, name: &str) -> u64 {
    let mut member = base.member();
    let slot = member.roster().find(name).unwrap().slot();
    member.revoke(&[slot]).unwrap();
    member.epochs().newest().0
}

#[tokio::test]
async fn a_revoked_member_reads_nothing_that_follows() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let thief = invite(&base, "thief", PastSecrets::All);
    let authority = base.group(&client).await;
    authority.publish_orders().await.unwrap();
    let (sender, stolen) = (car.group(&client).await, thief.group(&client).await);
    publish(&sender, 0).await;
    let mut reading = stolen.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(number(&next(&mut reading).await), 0);

    let mut orders = sender.events();
    let epoch = revoke(&base, "thief");
    assert_eq!(authority.publish_orders().await.unwrap(), 2, "the order, and how far streams are");
    reached(&sender, &mut orders, epoch).await;
    publish(&sender, 1).await;
    let mut events = reading.events();
    assert_eq!(refusals(&mut events, 1).await, ["EpochUnknown"]);
    assert!(is_silent(&mut reading).await);
    let refused = stolen.publish("log", DataType::LOCATION, &numbered(9)).await.unwrap_err();
    assert_eq!(refused.code(), "SL-GROUP-24");
    // The rest reads on, and a new process of the thief's is no better off.
    let mut all = authority.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut all, 2).await, [0, 1]);
    let again = thief.group(&client).await;
    let mut again = again.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(number(&next(&mut again).await), 0);
    assert!(is_silent(&mut again).await);
    assert_eq!(again.seal_counts().keys_unknown, 1);
}

#[tokio::test]
async fn readers_follow_rotations_without_a_loss() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let (sender, reader) = (base.group(&client).await, car.group(&client).await);
    let mut own = reader.subscribe("log").from(StartPosition::First).await.unwrap();
    let mut shared =
        reader.subscribe("log").consumer("c").from(StartPosition::First).await.unwrap();
    for n in 0..20 {
        base.member().rotate().unwrap();
        sender.publish_orders().await.unwrap();
        sender.catch_up().await.unwrap();
        publish(&sender, n).await;
    }
    assert_eq!(numbers(&mut own, 20).await, (0..20).collect::<Vec<_>>());
    assert_eq!(numbers(&mut shared, 20).await, (0..20).collect::<Vec<_>>());
    assert_eq!(own.seal_counts().keys_unknown, 0);
    let mut late = reader.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut late, 20).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_later_member_reads_the_past_that_it_was_given() {
    let (_folder, _node, client) = node().await;
    let (base, _car) = fleet(&client).await;
    let authority = base.group(&client).await;
    publish(&authority, 0).await;
    base.member().rotate().unwrap();
    authority.publish_orders().await.unwrap();
    authority.catch_up().await.unwrap();
    publish(&authority, 1).await;
    let heir = invite(&base, "heir", PastSecrets::All);
    let newcomer = invite(&base, "newcomer", PastSecrets::None);
    authority.publish_orders().await.unwrap();
    let heir = heir.group(&client).await;
    let mut all = heir.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut all, 2).await, [0, 1]);
    // Messages from before the newcomer joined stay closed to it, also those of the present epoch.
    authority.catch_up().await.unwrap();
    publish(&authority, 2).await;
    let newcomer = newcomer.group(&client).await;
    let mut rest = newcomer.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(number(&next(&mut rest).await), 2);
    assert_eq!(rest.seal_counts().keys_unknown, 2);
}

#[tokio::test]
async fn a_control_stream_that_was_removed_is_followed_again() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = car.group(&client).await;
    let mut events = group.events();
    client.remove(group.control_topic().as_str()).await.unwrap();
    base.member().rotate().unwrap();
    // The authority publishes all that the stream does not have, which is everything.
    let authority = base.group(&client).await;
    assert_eq!(authority.publish_orders().await.unwrap(), 3);
    reached(&group, &mut events, base.member().epochs().newest().0).await;
}

#[tokio::test]
async fn who_joins_again_is_still_read_in_its_old_slot() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let before = car.group(&client).await;
    publish(&before, 0).await;
    publish(&before, 1).await;
    drop(before);
    let card = IdentityCard::from_bytes(&car.keys.card().unwrap()).unwrap();
    let invited = base.member().invite(&card, PastSecrets::All).unwrap();
    assert!(invited.replaces.is_some());
    let member = car.keys.join(&invited.invitation, None, None).unwrap();
    let authority = base.group(&client).await;
    authority.publish_orders().await.unwrap();
    publish(&client.group(member).await.unwrap(), 2).await;
    let mut log = authority.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut log, 3).await, [0, 1, 2]);
    assert_eq!(log.seal_counts().refused, 0);
}

#[tokio::test]
async fn what_a_stranger_writes_into_the_control_stream_is_named_and_changes_nothing() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = car.group(&client).await;
    let control = group.control_topic();
    let mut events = group.events();
    for notice in [Value::Bytes(vec![1; 90]), Value::Bytes(vec![9]), Value::Null] {
        let envelope = Value::Map(vec![("notice".into(), notice)]);
        client.publish(control.as_str(), &envelope).await.unwrap();
    }
    client.publish(control.as_str(), &numbered(1)).await.unwrap();
    let names = refusals(&mut events, 4).await;
    assert_eq!(names[1], "MalformedDocument");
    assert_eq!(names[3], "NoEnvelope");
    // An order of a member that is not the authority, made with its real keys.
    base.member().rotate().unwrap();
    let authority = base.group(&client).await;
    assert_eq!(authority.publish_orders().await.unwrap(), 1);
    assert_eq!(authority.publish_orders().await.unwrap(), 0, "once is enough");
    reached(&group, &mut events, base.member().epochs().newest().0).await;
}
