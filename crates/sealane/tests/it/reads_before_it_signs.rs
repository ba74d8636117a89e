//! An authority reads its own signed log before it signs, and a newcomer believes no hub that shows
//! less than its invitation.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use sealane::{Client, DataType, GroupClient, StartPosition};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_group::{EpochSource, GroupMember, IdentityCard, KeyFolder, NewGroup, PastSecrets};
use sealane_protocol::SealedEnvelope;
use sealane_seal::policy::Policy;
use sealane_seal::{Binding, Class, Epoch, Epochs, History, Sealer, SenderContext, Slot};

use crate::members::{Person, authority, fleet, invite, refusals};
use crate::{is_silent, node, numbered, numbers};

async fn publish(group: &GroupClient, n: u64) -> Result<(), sealane::Error> {
    group.publish("log", DataType::LOCATION, &numbered(n)).await.map(|_| ())
}

/// A copy that no witness tells from the folder: of the same files, by other names.
fn clone(from: &Path, to: &Path) {
    fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            clone(&entry.path(), &target);
        } else if entry.file_name() != "lock" {
            fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

fn member(folder: &Path) -> GroupMember {
    KeyFolder::open(folder, None).unwrap().group("fleet").unwrap()
}

/// How many messages a stream has had.
async fn end(client: &Client, group: &GroupClient) -> u64 {
    client.stream(group.control_topic().as_str()).await.unwrap().next
}

fn revoke(base: &Person, name: &str) {
    let mut member = base.member();
    let slot = member.roster().find(name).unwrap().slot();
    member.revoke(&[slot]).unwrap();
}

#[tokio::test]
async fn a_newcomer_takes_no_hub_that_shows_fewer_orders() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let new = invite(&base, "new", PastSecrets::All);
    let group = new.group(&client).await;
    assert_eq!(publish(&group, 0).await.unwrap_err().code(), "SL-GROUP-31");
    // A member that was there before has seen as much as there was.
    publish(&car.group(&client).await, 0).await.unwrap();
    // A hub without the stream shows the least.
    client.remove(group.control_topic().as_str()).await.unwrap();
    let again = new.group(&client).await;
    assert_eq!(publish(&again, 0).await.unwrap_err().code(), "SL-GROUP-31");
    base.group(&client).await.publish_orders().await.unwrap();
    for group in [&group, &again] {
        group.catch_up().await.unwrap();
        publish(group, 1).await.unwrap();
    }
    publish(&new.group(&client).await, 2).await.unwrap();
}

/// The volume of the authority is put back to before an order, and no witness tells.
#[tokio::test]
async fn an_authority_that_was_put_back_publishes_nothing() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let place = tempfile::tempdir().unwrap();
    let back = place.path().join("back");
    clone(base.keys.path(), &back);
    let ops = base.group(&client).await;
    base.member().rotate().unwrap();
    ops.publish_orders().await.unwrap();
    let before = end(&client, &ops).await;

    // An order of the fork, made before anything was read.
    let card = IdentityCard::from_bytes(&Person::new("carol").keys.card().unwrap()).unwrap();
    member(&back).invite(&card, PastSecrets::All).unwrap();
    let group = client.group(member(&back)).await.unwrap();
    let refused = [
        group.check_giving().await.unwrap_err(),
        group.publish_orders().await.unwrap_err(),
        group.resend_orders(0).await.unwrap_err(),
        group.beat().await.unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.code() == "SL-GROUP-13"), "{refused:?}");
    assert_eq!(end(&client, &ops).await, before, "nothing was published");
    let car = car.group(&client).await;
    publish(&car, 1).await.unwrap();
    // It begins anew, beyond what it has read, and members follow.
    member(&back).renew(None).unwrap();
    group.publish_orders().await.unwrap();
    car.catch_up().await.unwrap();
    publish(&car, 2).await.unwrap();
}

/// The backup of the authority is older than a removal, and the hub knows of it.
#[tokio::test]
async fn a_restored_authority_gives_the_group_back_to_nobody() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let mal = invite(&base, "mal", PastSecrets::All);
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    let backup = base.keys.backup(None).unwrap();
    revoke(&base, "mal");
    for _ in 0..3 {
        base.member().rotate().unwrap();
    }
    ops.publish_orders().await.unwrap();
    drop(ops);
    let place = tempfile::tempdir().unwrap();
    let back = place.path().join("back");
    let restored = KeyFolder::restore(&back, &backup, None).unwrap();
    let group = client.group(restored.group("fleet").unwrap()).await.unwrap();
    member(&back).renew(None).unwrap();
    group.publish_orders().await.unwrap();
    let (car, thief) = (car.group(&client).await, mal.group(&client).await);
    publish(&car, 1).await.unwrap();
    assert_eq!(publish(&thief, 9).await.unwrap_err().code(), "SL-GROUP-24");
    assert_eq!(member(&back).roster().find("mal"), None);
}

/// A hub whose stream is empty, or shows less than a restored folder has given, tells it nothing of
/// what came after.
#[tokio::test]
async fn a_hub_that_shows_too_few_orders_was_not_read() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let ops = base.group(&client).await;
    ops.publish_orders().await.unwrap();
    ops.check_shown().await.unwrap();
    car.group(&client).await.check_shown().await.unwrap();
    let backup = base.keys.backup(None).unwrap();
    let place = tempfile::tempdir().unwrap();
    let restored = |name: &str| {
        let keys = KeyFolder::restore(&place.path().join(name), &backup, None).unwrap();
        keys.group("fleet").unwrap()
    };
    let group = client.group(restored("one")).await.unwrap();
    group.check_shown().await.unwrap();
    client.remove(ops.control_topic().as_str()).await.unwrap();
    let other = client.group(restored("two")).await.unwrap();
    group.catch_up().await.unwrap();
    for group in [&group, &other] {
        assert_eq!(group.check_shown().await.unwrap_err().code(), "SL-GROUP-31");
    }
}

/// A thief that seals with the keys of a folder as it was.
struct Thief<'a> {
    keys: &'a KeyFolder,
    member: &'a GroupMember,
    epoch: Epoch,
}

impl Thief<'_> {
    async fn writes(&self, client: &Client, stream: &str, class: Class, data_type: DataType) {
        let secret = self.member.epochs().secret(self.epoch).unwrap().clone();
        let epochs = Epochs::new(self.member.id(), History::Kept, self.epoch, secret);
        let (slot, context) = (Slot::new(1).unwrap(), SenderContext(rand_context()));
        let mut sealer = Sealer::new(self.member.group(), slot, context, &epochs, 0).unwrap();
        sealer.set_signing_key(self.keys.identity().signing_key().unwrap());
        let source = self.member.source().unwrap();
        let fields = HeaderFields {
            class,
            codec: 2,
            ..HeaderFields::new(self.member.tag(), source, data_type.number())
        };
        let mut body = 0_u64.to_le_bytes().to_vec();
        if !data_type.is_urgent() {
            body.clear();
        }
        sealane_codec::encode(sealane::Codec::MsgPack, &numbered(666), &mut body);
        let (binding, mut buf) = (Binding::stream(stream), FrameBuf::new());
        let frame = seal_frame(&mut sealer, &fields, &binding, &body, &mut buf).unwrap().to_vec();
        let mut envelope = Vec::new();
        SealedEnvelope { id: None, frame: frame.into() }
            .write(sealane::Codec::MsgPack, &mut envelope);
        let codec = sealane::Codec::MsgPack;
        client.publish_batch(stream, codec, &[envelope]).await.unwrap();
    }
}

/// Contexts that differ: each is a start of its own.
fn rand_context() -> [u8; 8] {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_be_bytes()
}

/// A heal, and a rotation, take the pen from whoever has the secrets before it: by the mark in each
/// stream, for readers of now and of later.
#[tokio::test]
async fn after_a_heal_or_a_rotation_nobody_writes_in_the_epochs_before() {
    for heals in [true, false] {
        let (_folder, _node, client) = node().await;
        let base = authority(NewGroup::default());
        let car = invite(&base, "car", PastSecrets::All);
        let bus = invite(&base, "bus", PastSecrets::All);
        let ops = base.group(&client).await;
        ops.publish_orders().await.unwrap();
        let stolen = car.member();
        let thief = Thief { keys: &car.keys, member: &stolen, epoch: Epoch(0) };
        let sender = car.group(&client).await;
        publish(&sender, 0).await.unwrap();
        if heals {
            let cards = [&car, &bus]
                .map(|one| IdentityCard::from_bytes(&one.keys.card().unwrap()).unwrap());
            base.member().heal(&cards, true).unwrap();
        } else {
            base.member().rotate().unwrap();
        }
        assert_eq!(ops.publish_orders().await.unwrap(), 2, "the secret, and where streams stand");
        sender.catch_up().await.unwrap();
        publish(&sender, 1).await.unwrap();
        for (class, data_type) in [
            (Class::Signed, DataType::EMERGENCY),
            (Class::Signed, DataType::LOCATION),
            (Class::Group, DataType::LOCATION),
        ] {
            thief.writes(&client, "log", class, data_type).await;
        }
        let reader = bus.group(&client).await;
        let mut log = reader.subscribe("log").from(StartPosition::First).await.unwrap();
        let mut events = log.events();
        // A rotation gives nobody another key. A call for help under the old one may be true, and
        // is shown as of an ended epoch.
        let (shown, refused): (&[u64], usize) =
            if heals { (&[0, 1], 3) } else { (&[0, 1, 666], 2) };
        assert_eq!(numbers(&mut log, shown.len()).await, shown, "{heals}");
        assert_eq!(refusals(&mut events, refused).await, vec!["AfterRemoval"; refused], "{heals}");
        assert!(is_silent(&mut log).await);
    }
}

/// A message of a member is no junk, though the authority's own policy would not show it.
#[tokio::test]
async fn a_stricter_policy_of_the_authority_marks_no_earlier() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let policy = Policy::from_toml("version = 1\ntype.location.floor = 'S'").unwrap();
    let ops = base.group(&client).await.with_policy(policy);
    let sender = car.group(&client).await;
    for n in 0..3 {
        publish(&sender, n).await.unwrap();
    }
    base.member().rotate().unwrap();
    ops.publish_orders().await.unwrap();
    sender.catch_up().await.unwrap();
    let generation = client.stream("log").await.unwrap().generation;
    let first = |offset| car.member().first_epoch(&Binding::stream("log"), generation, offset);
    assert_eq!([first(2), first(3)], [Epoch(0), Epoch(1)]);
}

/// Anybody who may publish can make streams with frames of a group's tag that nobody opens. They
/// take no mark from streams in which people talk, whatever their names.
#[tokio::test]
async fn streams_of_junk_leave_the_others_their_marks() {
    let (_folder, _node, client) = node().await;
    let (base, car) = fleet(&client).await;
    let ops = base.group(&client).await;
    let sender = car.group(&client).await;
    sender.publish("quiet", DataType::LOCATION, &numbered(0)).await.unwrap();
    let quiet = client.read("quiet", StartPosition::First, 1).await.unwrap();
    let mut junk = quiet.messages[0].envelope.to_vec();
    let last = junk.len() - 1;
    junk[last] ^= 1;
    let (codec, streams) = (quiet.messages[0].codec, sealane_group::limits::MAX_ORDER_MARKS + 6);
    for stream in 0..streams {
        let topic = format!("a/{stream:04}");
        client.publish_batch(&topic, codec, std::slice::from_ref(&junk)).await.unwrap();
    }
    // And behind what people wrote.
    client.publish_batch("quiet", codec, std::slice::from_ref(&junk)).await.unwrap();
    base.member().rotate().unwrap();
    assert_eq!(ops.publish_orders().await.unwrap(), 3, "the secret, and two orders of marks");
    sender.catch_up().await.unwrap();
    let binding = Binding::stream("quiet");
    let first = |offset| car.member().first_epoch(&binding, quiet.generation, offset);
    assert_eq!([first(0), first(1), first(2)], [Epoch(0), Epoch(1), Epoch(1)]);
}
