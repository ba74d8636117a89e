//! A signed message of an honest member is shown once without a mark, whatever unsigned frames
//! others make in its name; and a signed call for help is shown behind the end of its epoch, too.

use sealane::limits::MAX_SEEN_RANGES_OF_SLOT;
use sealane::{Codec, DataType, StartPosition};
use sealane_frame::FrameView;
use sealane_group::PastSecrets;
use sealane_protocol::SealedEnvelope;
use sealane_seal::Class;

use crate::holds_against_insiders::{Forgery, as_member, enqueue, frames, publish, revoke};
use crate::members::{fleet, invite, refusals};
use crate::{is_silent, next, node, number, numbered, numbers};

/// One unsigned frame under another member's next counter: its signed call for help is shown, to
/// readers and consumers, also in a second process of the consumer.
#[tokio::test]
async fn unsigned_frames_in_a_members_name_silence_none_of_its_signed_messages() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    base.group(&client).await.publish_orders().await.unwrap();
    let (member, bob) = (mal.member(), car.group(&client).await);
    bob.publish("alarm", DataType::EMERGENCY, &numbered(1)).await.unwrap();
    let first = frames(&client, "alarm").await.remove(0);
    let first = *FrameView::parse(&first).unwrap().header();
    for ahead in 1..5 {
        let counter = first.sequence() + ahead;
        let forged = Forgery { context: first.context(), counter, ..as_member(&mal, &member, 1) };
        enqueue(&client, "alarm", &forged.seal("alarm", 666)).await;
    }
    bob.publish("alarm", DataType::EMERGENCY, &numbered(2)).await.unwrap();
    let reading = base.group(&client).await;
    let alarm = || reading.subscribe("alarm").from(StartPosition::First);
    for mut alarms in [alarm().await.unwrap(), alarm().consumer("w").await.unwrap()] {
        let mut shown = Vec::new();
        for _ in 0..6 {
            let message = next(&mut alarms).await;
            let seal = message.seal.clone().unwrap();
            assert!(!seal.is_perhaps_repeat);
            shown.push((number(&message), seal.class));
        }
        let forged = std::iter::repeat_n((666, Class::Group), 4);
        let signed = |n| std::iter::once((n, Class::Signed));
        assert!(shown.into_iter().eq(signed(1).chain(forged).chain(signed(2))));
        alarms.close().await;
    }
}

/// Two unsigned frames under one name: one of them is forged, and nobody can tell which.
#[tokio::test]
async fn another_unsigned_frame_under_a_name_is_shown_and_counted() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    base.group(&client).await.publish_orders().await.unwrap();
    let (member, bob) = (mal.member(), car.group(&client).await);
    publish(&bob, "log", 1).await;
    let true_one = frames(&client, "log").await.remove(0);
    let header = *FrameView::parse(&true_one).unwrap().header();
    let (context, counter) = (header.context(), header.sequence());
    let forged = Forgery { context, counter, ..as_member(&mal, &member, 1) }.seal("log", 666);
    for frame in [&forged, &true_one, &forged] {
        enqueue(&client, "log", frame).await;
    }
    let reading = base.group(&client).await;
    let mut log = reading.subscribe("log").from(StartPosition::First).await.unwrap();
    let mut events = log.events();
    assert_eq!(numbers(&mut log, 2).await, [1, 666]);
    assert_eq!(refusals(&mut events, 2).await, ["Repeated", "Repeated"]);
    let counts = log.seal_counts();
    assert_eq!((counts.opened, counts.conflicts, counts.repeated), (2, 1, 2));
}

/// So many of a member's own signed messages that what was known of the first had to leave.
#[tokio::test]
async fn what_was_forgotten_is_shown_as_perhaps_a_repeat() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let member = car.member();
    let seal = |n: u64| {
        let (class, data_type, counter) = (Class::Signed, DataType::CHAT, 2 * n);
        let own = Forgery { class, data_type, counter, ..as_member(&car, &member, 1) };
        let (frame, mut envelope) = (own.seal("log", n), Vec::new());
        SealedEnvelope { id: None, frame: frame.into() }.write(Codec::MsgPack, &mut envelope);
        envelope
    };
    let most = MAX_SEEN_RANGES_OF_SLOT as u64 + 1;
    let mut all: Vec<_> = (0..most).map(seal).collect();
    all.extend([all[0].clone(), all[0].clone()]);
    for batch in all.chunks(500) {
        client.publish_batch("log", Codec::MsgPack, batch).await.unwrap();
    }
    let reading = base.group(&client).await;
    let mut log = reading.subscribe("log").from(StartPosition::First).await.unwrap();
    let mut events = log.events();
    for n in 0..most {
        let message = next(&mut log).await;
        assert_eq!((number(&message), message.seal.unwrap().is_perhaps_repeat), (n, false));
    }
    let again = next(&mut log).await;
    assert_eq!((number(&again), again.seal.unwrap().is_perhaps_repeat), (0, true));
    assert_eq!(refusals(&mut events, 1).await, ["Repeated"]);
}

/// A member that has not heard of a removal calls for help behind the mark of it.
#[tokio::test]
async fn a_signed_call_for_help_outlives_its_epoch_and_says_so() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    publish(&car.group(&client).await, "alarm", 0).await;
    let (bob, thief) = (car.member(), mal.member());
    revoke(&base, "mal");
    assert_eq!(ops.publish_orders().await.unwrap(), 2);
    let signed = |of, with, slot, n| {
        let (class, data_type) = (Class::Signed, DataType::EMERGENCY);
        Forgery { class, data_type, ..as_member(of, with, slot) }.seal("alarm", n)
    };
    let sos = signed(&car, &bob, 1, 1);
    let chat = Forgery {
        class: Class::Signed,
        data_type: DataType::CHAT,
        counter: 5,
        ..as_member(&car, &bob, 1)
    };
    for frame in [
        signed(&mal, &thief, 2, 666),
        as_member(&mal, &thief, 1).seal("alarm", 666),
        chat.seal("alarm", 2),
        sos.clone(),
        sos,
    ] {
        enqueue(&client, "alarm", &frame).await;
    }
    let reading = base.group(&client).await;
    let mut alarms = reading.subscribe("alarm").from(StartPosition::First).await.unwrap();
    let mut events = alarms.events();
    for (n, is_of_ended_epoch) in [(0, false), (1, true)] {
        let message = next(&mut alarms).await;
        let seal = message.seal.clone().unwrap();
        assert_eq!((number(&message), seal.is_of_ended_epoch), (n, is_of_ended_epoch));
    }
    let expected = ["AfterRemoval", "AfterRemoval", "AfterRemoval", "Repeated"];
    assert_eq!(refusals(&mut events, 4).await, expected);
}

/// The car's tasks run only while it is asked something: it learns nothing of the removal
/// meanwhile.
#[test]
fn a_call_for_help_of_an_ended_epoch_is_shown_once_and_not_sealed_again() {
    let hub = tokio::runtime::Runtime::new().unwrap();
    let (folder, node, client) = hub.block_on(node());
    let (base, car) = hub.block_on(fleet(&client));
    let asleep = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let group = asleep.block_on(car.group(&client));
    let call = |n| {
        let (group, value) = (group.clone(), numbered(n));
        async move { group.publish("sos", DataType::EMERGENCY, &value).await.unwrap() }
    };
    asleep.block_on(call(2));
    invite(&base, "mal", PastSecrets::All);
    revoke(&base, "mal");
    let ops = hub.block_on(base.group(&client));
    hub.block_on(ops.publish_orders()).unwrap();
    asleep.block_on(async {
        call(3).await;
        group.catch_up().await.unwrap();
        // Both stand in the stream in the order in which the hub has stored them.
        call(4).await;
    });
    let seals = hub.block_on(async {
        let mut calls = ops.subscribe("sos").from(StartPosition::First).await.unwrap();
        let mut seals = Vec::new();
        for n in [2, 3, 4] {
            let message = next(&mut calls).await;
            assert_eq!(number(&message), n);
            seals.push(message.seal.unwrap());
        }
        assert!(is_silent(&mut calls).await);
        seals
    });
    assert_eq!([0, 1, 2].map(|at| seals[at].is_of_ended_epoch), [false, true, false]);
    drop((node, folder));
}
