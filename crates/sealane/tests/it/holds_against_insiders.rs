//! The attacks of a member gone bad, a removed member, an outsider with a token, and a hub that
//! drops messages. Each attack works by its own hands, with real keys, past every policy.

use std::time::Duration;

use sealane::{
    Client, ClientEvent, Codec, DataType, GroupBeater, GroupClient, StartPosition, Value,
};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_group::{
    BeaterView, ControlCursor, EpochSource, GroupMember, GroupNotice, IdentityCard, KeyFolder,
    NewGroup, PastSecrets,
};
use sealane_protocol::SealedEnvelope;
use sealane_seal::{Binding, Class, Epoch, Epochs, Sealer, SenderContext, Slot};

use crate::members::{Person, authority, fleet, invite, refusals};
use crate::{is_silent, next, node, number, numbered, numbers};

async fn publish(group: &GroupClient, stream: &str, n: u64) {
    group.publish(stream, DataType::LOCATION, &numbered(n)).await.unwrap();
}

/// Puts frames into a stream as whoever may publish there.
async fn enqueue(client: &Client, stream: &str, frame: &[u8]) {
    let mut envelope = Vec::new();
    SealedEnvelope { id: None, frame: frame.into() }.write(Codec::MsgPack, &mut envelope);
    client.publish_raw(stream, Codec::MsgPack, envelope).await.unwrap();
}

async fn frames(client: &Client, stream: &str) -> Vec<Vec<u8>> {
    let page = client.read(stream, StartPosition::First, 100).await.unwrap();
    let frame = |message: &sealane::ReceivedMessage| {
        let sealed = SealedEnvelope::read(message.codec, &message.envelope).unwrap().unwrap();
        sealed.frame.into_owned()
    };
    page.messages.iter().map(frame).collect()
}

/// The tools of an attacker with a member's folder, for sealing by hand.
struct Forgery<'a> {
    with: &'a GroupMember,
    keys: &'a KeyFolder,
    slot: u16,
    epoch: u64,
    class: Class,
    data_type: DataType,
    counter: u64,
}

impl Forgery<'_> {
    fn seal(&self, stream: &str, n: u64) -> Vec<u8> {
        let member = self.with;
        let secret = member.epochs().secret(Epoch(self.epoch)).expect("it was handed out").clone();
        let group = member.group();
        let epochs = Epochs::new(group.id(), member.history(), Epoch(self.epoch), secret);
        let slot = Slot::new(self.slot).unwrap();
        let context = SenderContext(*b"evil eye");
        let mut sealer = Sealer::new(group, slot, context, &epochs, self.counter).unwrap();
        sealer.set_signing_key(self.keys.identity().signing_key().unwrap());
        let fields = HeaderFields {
            class: self.class,
            codec: Codec::Json as u8,
            ..HeaderFields::new(member.tag(), member.source().unwrap(), self.data_type.number())
        };
        let mut body = Vec::new();
        if self.data_type.is_urgent() {
            body.extend(1_795_000_000_000_u64.to_le_bytes());
        }
        body.extend(format!("{{\"n\":{n}}}").into_bytes());
        let (binding, mut buf) = (Binding::stream(stream), FrameBuf::new());
        seal_frame(&mut sealer, &fields, &binding, &body, &mut buf).unwrap().to_vec()
    }
}

fn as_member<'a>(person: &'a Person, member: &'a GroupMember, slot: u16) -> Forgery<'a> {
    let (class, data_type) = (Class::Group, DataType::LOCATION);
    Forgery { with: member, keys: &person.keys, slot, epoch: 0, class, data_type, counter: 0 }
}

fn revoke(base: &Person, name: &str) {
    let mut member = base.member();
    let slot = member.roster().find(name).unwrap().slot();
    member.revoke(&[slot]).unwrap();
}

#[tokio::test]
async fn a_message_that_is_copied_into_another_stream_does_not_open() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let (sender, reader) = (car.group(&client).await, base.group(&client).await);
    sender.publish("chat/1", DataType::EMERGENCY, &numbered(1)).await.unwrap();
    sender.publish("alarm/1", DataType::EMERGENCY, &numbered(2)).await.unwrap();
    let signed = frames(&client, "chat/1").await.remove(0);
    enqueue(&client, "alarm/1", &signed).await;
    let mut alarms = reader.subscribe("alarm/1").from(StartPosition::First).await.unwrap();
    let mut events = alarms.events();
    assert_eq!(numbers(&mut alarms, 1).await, [2]);
    assert_eq!(refusals(&mut events, 1).await, ["NotAuthentic"]);
    assert!(is_silent(&mut alarms).await);
}

#[tokio::test]
async fn a_removed_member_writes_under_nobodys_name_behind_its_removal() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let old = mal.member();
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    let sender = car.group(&client).await;
    publish(&sender, "log", 0).await;
    publish(&sender, "quiet", 0).await;
    let mut live =
        car.group(&client).await.subscribe("*").from(StartPosition::First).await.unwrap();
    let mut events = live.events();
    assert_eq!(numbers(&mut live, 2).await, [0, 0]);

    revoke(&base, "mal");
    // The order, and one that marks how far both streams had come.
    assert_eq!(ops.publish_orders().await.unwrap(), 2);
    assert_eq!(ops.publish_orders().await.unwrap(), 0, "once is enough");
    // In a stream with newer messages, and in one without.
    sender.catch_up().await.unwrap();
    publish(&sender, "log", 1).await;
    for stream in ["log", "quiet"] {
        for slot in [0, 1, 2] {
            enqueue(&client, stream, &as_member(&mal, &old, slot).seal(stream, 666)).await;
        }
        let sos = Forgery {
            class: Class::Signed,
            data_type: DataType::EMERGENCY,
            ..as_member(&mal, &old, 2)
        };
        enqueue(&client, stream, &sos.seal(stream, 666)).await;
    }
    assert_eq!(numbers(&mut live, 1).await, [1]);
    assert_eq!(refusals(&mut events, 8).await, ["AfterRemoval"; 8]);
    assert!(is_silent(&mut live).await);
    // A reader that begins at the beginning, next year.
    let late = car.group(&client).await;
    let mut all = late.subscribe("*").from(StartPosition::First).await.unwrap();
    let mut read = numbers(&mut all, 3).await;
    read.sort_unstable();
    assert_eq!(read, [0, 0, 1]);
    assert!(is_silent(&mut all).await);
    assert_eq!(all.seal_counts().behind_removal, 8);
}

/// The authority's marks do not come: it was cut off behind the removal, or sees no such stream.
#[tokio::test]
async fn without_a_mark_the_first_message_behind_a_removal_is_one() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let (old, sender) = (mal.member(), car.group(&client).await);
    base.group(&client).await.publish_orders().await.unwrap();
    sender.catch_up().await.unwrap();
    publish(&sender, "log", 0).await;
    let given = base.member().orders();
    revoke(&base, "mal");
    for notice in base.member().notices(given).unwrap() {
        enqueue_notice(&client, &sender, &notice).await;
    }
    // A member that has met the stream remembers its end, also for a reader that begins anew.
    sender.catch_up().await.unwrap();
    enqueue(&client, "log", &as_member(&mal, &old, 0).seal("log", 666)).await;
    let mut met =
        car.group(&client).await.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut met, 1).await, [0]);
    assert!(is_silent(&mut met).await);
    // A member that has not met it reads the messages before the first one of the new epoch. It
    // reads nothing behind.
    publish(&sender, "log", 1).await;
    enqueue(&client, "log", &as_member(&mal, &old, 1).seal("log", 667)).await;
    let stranger = invite(&base, "late", PastSecrets::All).group(&client).await;
    let mut all = stranger.subscribe("log").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut all, 3).await, [0, 666, 1]);
    assert!(is_silent(&mut all).await);
    assert_eq!(all.seal_counts().behind_removal, 1);
}

#[tokio::test]
async fn nothing_follows_from_what_is_not_signed() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    let member = mal.member();
    for slot in [0, 1] {
        let far = Forgery { counter: 10_000_000, ..as_member(&mal, &member, slot) };
        enqueue(&client, "log", &far.seal("log", 666)).await;
    }
    for person in [&base, &car] {
        let group = person.group(&client).await;
        let mut log = group.subscribe("log").from(StartPosition::First).await.unwrap();
        assert_eq!(numbers(&mut log, 2).await, [666, 666], "class C shows a member, not which");
        publish(&group, "log", 1).await;
    }
    revoke(&base, "mal");
    assert_eq!(ops.publish_orders().await.unwrap(), 2);
}

#[tokio::test]
async fn a_newcomer_signs_nothing_in_epochs_before_it_came() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    base.member().rotate().unwrap();
    let carol = invite(&base, "carol", PastSecrets::All);
    base.group(&client).await.publish_orders().await.unwrap();
    let member = carol.member();
    assert!(member.epochs().secret(Epoch(0)).is_some(), "it was handed the past, to read");
    for class in [Class::Group, Class::Signed] {
        let early = Forgery { class, ..as_member(&carol, &member, 2) };
        enqueue(&client, "log", &early.seal("log", 666)).await;
    }
    let reader = car.group(&client).await;
    let mut log = reader.subscribe("log").from(StartPosition::First).await.unwrap();
    let mut events = log.events();
    publish(&carol.group(&client).await, "log", 1).await;
    assert_eq!(numbers(&mut log, 1).await, [1]);
    assert_eq!(refusals(&mut events, 2).await, ["NotMember", "NotMember"]);
}

#[tokio::test]
async fn a_member_that_missed_an_order_seals_nothing_until_it_has_it() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = car.group(&client).await;
    publish(&group, "log", 0).await;
    invite(&base, "mal", PastSecrets::All);
    revoke(&base, "mal");
    let missed = base.member().orders() - 3;
    let notices = base.member().notices(missed).unwrap();
    assert_eq!(notices.len(), 3, "certificate, admission, re-key");
    // The hub drops the first of them.
    for notice in &notices[1..] {
        enqueue_notice(&client, &group, notice).await;
    }
    group.catch_up().await.unwrap();
    let refused = group.publish("log", DataType::LOCATION, &numbered(1)).await.unwrap_err();
    assert_eq!(refused.code(), "SL-GROUP-22", "{refused}");
    assert!(refused.to_string().contains(&format!("order {missed} ")), "{refused}");
    // A process that begins anew is no better off.
    let again = car.group(&client).await;
    let refused = again.publish("log", DataType::LOCATION, &numbered(1)).await.unwrap_err();
    assert_eq!(refused.code(), "SL-GROUP-22");
    let ops = base.group(&client).await;
    assert_eq!(ops.resend_orders(missed).await.unwrap(), 3);
    group.catch_up().await.unwrap();
    publish(&group, "log", 1).await;
    again.catch_up().await.unwrap();
    publish(&again, "log", 2).await;
}

async fn enqueue_notice(client: &Client, group: &GroupClient, notice: &GroupNotice) {
    let bytes = Value::Bytes(notice.as_bytes().to_vec());
    let envelope = Value::Map(vec![("notice".into(), bytes)]);
    client.publish(group.control_topic().as_str(), &envelope).await.unwrap();
}

#[tokio::test]
async fn a_control_stream_that_lost_orders_is_noticed_and_heals() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let group = car.group(&client).await;
    publish(&group, "log", 0).await;
    client.remove(group.control_topic().as_str()).await.unwrap();
    // Also when it is there again, with nothing in it that the authority has signed.
    for round in 0..2 {
        let again = car.group(&client).await;
        let refused = again.publish("log", DataType::LOCATION, &numbered(9)).await.unwrap_err();
        assert_eq!(refused.code(), "SL-GROUP-31", "round {round}: {refused}");
        // Reading goes on.
        let mut log = again.subscribe("log").from(StartPosition::First).await.unwrap();
        assert_eq!(numbers(&mut log, 1).await, [0]);
        client.publish(group.control_topic().as_str(), &numbered(1)).await.unwrap();
    }
    assert_eq!(base.group(&client).await.publish_orders().await.unwrap(), 2);
    let healed = car.group(&client).await;
    publish(&healed, "log", 1).await;
}

#[tokio::test]
async fn junk_in_the_control_stream_is_read_once() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let topic = car.group(&client).await.control_topic();
    let mut envelope = Vec::new();
    let junk = Value::Map(vec![("notice".into(), Value::Bytes(vec![1; 200]))]);
    sealane_codec::encode(Codec::MsgPack, &junk, &mut envelope);
    let batch = vec![envelope; 1000];
    for _ in 0..5 {
        client.publish_batch(topic.as_str(), Codec::MsgPack, &batch).await.unwrap();
    }
    base.member().rotate().unwrap();
    base.group(&client).await.publish_orders().await.unwrap();
    car.group(&client).await;
    let hub = ControlCursor::new(&client.address()).hub;
    let read = car.member().control_cursor(&hub).unwrap().unwrap();
    assert_eq!((read.next, read.shown), (5003, 3));
    assert_eq!(car.member().epochs().newest(), Epoch(1));
}

#[tokio::test]
async fn without_a_heartbeat_members_say_so_and_strict_ones_seal_only_what_is_urgent() {
    for is_strict in [false, true] {
        let (_folder, _node, client) = node().await;
        let options = NewGroup { heartbeat_age_s: 4, is_strict, ..NewGroup::default() };
        let base = authority(options);
        let car = invite(&base, "car", PastSecrets::All);
        let ops = base.group(&client).await;
        ops.publish_orders().await.unwrap();
        let group = car.group(&client).await;
        publish(&group, "log", 0).await;
        assert!(group.warnings().is_empty(), "the invitation was fresh");
        tokio::time::sleep(Duration::from_millis(5100)).await;
        assert_eq!(group.warnings()[0].code(), "SL-GROUP-32");
        let sent = group.publish("log", DataType::LOCATION, &numbered(1)).await;
        assert_eq!(
            sent.err().map(|error| error.code().to_owned()),
            is_strict.then(|| "SL-GROUP-32".into())
        );
        group.publish("alarm", DataType::EMERGENCY, &numbered(1)).await.unwrap();
        ops.beat().await.unwrap();
        group.catch_up().await.unwrap();
        assert!(group.warnings().is_empty());
        publish(&group, "log", 2).await;
    }
}

#[tokio::test]
async fn a_beater_that_holds_no_secret_keeps_members_fresh_and_nobody_else_does() {
    let (_folder, _node, client) = node().await;
    let base = authority(NewGroup { heartbeat_age_s: 4, ..NewGroup::default() });
    let car = invite(&base, "car", PastSecrets::All);
    let (clock, stranger) = (Person::new("clock"), Person::new("stranger"));
    let key = *clock.keys.identity().public().verifying_key();
    base.member().set_beater(Some(&key)).unwrap();
    let ops = base.group(&client).await;
    assert_eq!(ops.publish_orders().await.unwrap(), 3);
    let group = car.group(&client).await;
    tokio::time::sleep(Duration::from_millis(5100)).await;
    assert_eq!(group.warnings().len(), 1);
    let told = base.member().beater_file();
    for (person, is_named) in [(stranger, false), (clock, true)] {
        let beater = BeaterView::from_bytes(&told).unwrap();
        let mut beater = GroupBeater::new(&client, beater, person.keys.into_identity());
        assert_eq!(beater.beat().await.unwrap(), 3);
        group.catch_up().await.unwrap();
        assert_eq!(group.warnings().is_empty(), is_named);
    }
}

#[tokio::test]
async fn an_urgent_message_says_its_age_and_an_old_one_is_shown_as_old() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let member = car.member();
    let sos = Forgery {
        class: Class::Signed,
        data_type: DataType::EMERGENCY,
        ..as_member(&car, &member, 1)
    };
    enqueue(&client, "alarm", &sos.seal("alarm", 1)).await;
    car.group(&client).await.publish("alarm", DataType::EMERGENCY, &numbered(2)).await.unwrap();
    publish(&car.group(&client).await, "alarm", 3).await;
    let reader = base.group(&client).await;
    let mut alarms = reader.subscribe("alarm").from(StartPosition::First).await.unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now_ms = now.as_millis() as u64;
    let seals: Vec<_> = [next(&mut alarms).await, next(&mut alarms).await, next(&mut alarms).await]
        .map(|message| message.seal.unwrap())
        .into();
    assert_eq!(seals[0].time_ms, Some(1_795_000_000_000));
    assert!(seals[0].is_old(now_ms) && !seals[1].is_old(now_ms));
    assert!(seals[1].age_ms(now_ms).unwrap() < 60_000);
    assert_eq!((seals[2].time_ms, seals[2].is_old(u64::MAX)), (None, false));
}

/// A dead letter as the hub writes it, of that stream by its word.
async fn bury(client: &Client, of: &str, frame: &[u8]) {
    let sealed = Value::Map(vec![("sealed".into(), Value::Bytes(frame.to_vec()))]);
    let letter = Value::Map(vec![
        ("type".into(), "dead-letter".into()),
        ("stream".into(), of.into()),
        ("offset".into(), 0_u64.into()),
        ("envelope".into(), sealed),
    ]);
    let client = client.clone().with_codec(Codec::MsgPack).unwrap();
    client.publish("dead/log", &letter).await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_opens_with_the_stream_that_it_names_and_no_other() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    publish(&car.group(&client).await, "log", 7).await;
    let frame = frames(&client, "log").await.remove(0);
    bury(&client, "other", &frame).await;
    bury(&client, "log", &frame).await;
    let reader = base.group(&client).await;
    let mut dead = reader.subscribe("dead/log").from(StartPosition::First).await.unwrap();
    let mut events = dead.events();
    assert_eq!(number(&next(&mut dead).await), 7);
    assert_eq!(refusals(&mut events, 1).await, ["NotAuthentic"]);
}

#[tokio::test]
async fn a_dead_letter_of_a_removed_member_is_held_to_the_mark_of_its_own_stream() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let old = mal.member();
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    publish(&car.group(&client).await, "log", 7).await;
    bury(&client, "log", &frames(&client, "log").await.remove(0)).await;
    revoke(&base, "mal");
    assert_eq!(ops.publish_orders().await.unwrap(), 2);
    bury(&client, "log", &as_member(&mal, &old, 1).seal("log", 666)).await;
    let reader = car.group(&client).await;
    let mut dead = reader.subscribe("dead/log").from(StartPosition::First).await.unwrap();
    let mut events = dead.events();
    assert_eq!(number(&next(&mut dead).await), 7);
    assert_eq!(refusals(&mut events, 1).await, ["AfterRemoval"]);
    assert!(is_silent(&mut dead).await);
}

#[test]
fn what_fell_behind_a_removal_is_sealed_again() {
    let hub = tokio::runtime::Runtime::new().unwrap();
    let (folder, node, client) = hub.block_on(node());
    let (base, car) = hub.block_on(fleet(&client));
    hub.block_on(async {
        invite(&base, "mal", PastSecrets::All);
        base.group(&client).await.publish_orders().await.unwrap();
    });
    // The car's tasks run only while it is asked something: it learns nothing meanwhile.
    let asleep = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let group = asleep.block_on(car.group(&client));
    asleep.block_on(publish(&group, "log", 0));
    revoke(&base, "mal");
    hub.block_on(async {
        base.group(&client).await.publish_orders().await.unwrap();
    });
    let mut events = group.events();
    asleep.block_on(async {
        publish(&group, "log", 1).await;
        group.catch_up().await.unwrap();
        let told = async {
            loop {
                if let Some(ClientEvent::Superseded { stream, offset }) = events.next().await {
                    return (stream.to_string(), offset);
                }
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
        assert_eq!(told, ("log".to_owned(), 1));
    });
    hub.block_on(async {
        let reader = base.group(&client).await;
        let mut log = reader.subscribe("log").from(StartPosition::First).await.unwrap();
        assert_eq!(numbers(&mut log, 2).await, [0, 1]);
        assert!(is_silent(&mut log).await);
        assert_eq!(log.seal_counts().behind_removal, 1);
    });
    drop((node, folder));
}

#[tokio::test]
async fn a_name_that_looks_like_a_members_is_not_invited() {
    let base = authority(NewGroup::default());
    invite(&base, "car", PastSecrets::All);
    for name in ["base", "Base", "b\u{430}se", "car", "\u{441}ar"] {
        let person = Person::new(name);
        let card = IdentityCard::from_bytes(&person.keys.card().unwrap()).unwrap();
        let refused = base.member().invite(&card, PastSecrets::All).unwrap_err();
        assert_eq!(refused.info().name, "NameTaken", "{name}");
    }
}
