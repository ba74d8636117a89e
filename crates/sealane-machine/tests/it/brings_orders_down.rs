//! The orders of a group come down from its control stream: what its authority has signed, in its
//! turn, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sealane::{Client, Codec, Value};
use sealane_group::{KeyFolder, NewGroup};
use sealane_machine::{Gateway, PutOrders};
use sealane_mesh::{KeptGroup, MeshInput, limits};
use sealane_seal::Slot;

use crate::scene::{Field, any, gateway, hub, until};

/// An input that the machine of the mesh was handed, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handed {
    Keep { from: u64 },
    Order(u64),
    Removal { order: u64 },
}

type RoutingMachine = Arc<Mutex<Vec<Handed>>>;

fn short(input: &MeshInput<'_>) -> Handed {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes[1..9].try_into().unwrap());
    match input {
        MeshInput::Keep(of) => Handed::Keep { from: of.orders },
        MeshInput::Notice { notice, .. } if notice[0] == 1 => Handed::Order(number(notice)),
        MeshInput::Notice { notice, .. } if notice[0] == 4 => {
            Handed::Removal { order: number(notice) }
        }
        other => panic!("{other:?}"),
    }
}

/// A machine that has no room the first so many times.
fn machine(refuses: usize) -> (RoutingMachine, PutOrders) {
    let (machine, left) = (RoutingMachine::default(), AtomicUsize::new(refuses));
    let taken = Arc::clone(&machine);
    let put = move |input: MeshInput<'static>| {
        let less = |left: usize| left.checked_sub(1);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return false;
        }
        taken.lock().push(short(&input));
        true
    };
    (machine, Arc::new(put))
}

/// The group as a relay card says it that was written after so many orders.
fn card(field: &Field, orders: u64) -> KeptGroup {
    KeptGroup { orders, has_member: false, ..field.member("base").kept_group() }
}

fn message(field: &str, bytes: &[u8]) -> Vec<u8> {
    let mut envelope = Vec::new();
    let value = Value::Map(vec![(field.to_owned(), Value::Bytes(bytes.to_vec()))]);
    sealane_codec::encode(Codec::MsgPack, &value, &mut envelope);
    envelope
}

async fn publish_orders(client: &Client, field: &Field) {
    let group = client.group(field.member("base")).await.unwrap();
    group.publish_orders().await.unwrap();
}

async fn until_given(gateway: &Gateway, count: u64) {
    until("the orders come down", || gateway.status().orders.given >= count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_authority_orders_comes_down_in_its_turn_and_nothing_else_does() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address().to_string();
    let client = Client::connect(&address).unwrap();
    publish_orders(&client, &field).await;
    let given = field.member("base").orders();
    let (gateway, _) = gateway(&address, &field.path("queue"));
    let (machine, put) = machine(3);
    gateway.serve_orders(&[card(&field, given)], &put);
    until_given(&gateway, given).await;
    // The orders that the card counts are for machines behind: each has its place before the
    // previous one.
    let before: Vec<_> = (0..given).rev().map(Handed::Order).collect();
    assert_eq!(*machine.lock(), before, "though the machine had no room at first");

    // A writer with access to the stream writes orders that nobody has signed, or that another
    // authority has.
    let other = KeyFolder::create(&field.path("other"), "other", None).unwrap();
    let mut other = other.new_group("fleet", NewGroup::default()).unwrap();
    let foreign = other.rotate().unwrap();
    let mut changed = field.member("base").notices(0).unwrap()[0].as_bytes().to_vec();
    changed[8] ^= 1;
    let junk = [
        message("notice", foreign[0].as_bytes()),
        message("notice", &changed),
        message("notice", &[7; 100]),
        message("notice", &[]),
        message("other", &[1; 100]),
    ];
    let topic = format!("groups/{}", field.member("base").tag());
    client.publish_batch(&topic, Codec::MsgPack, &junk).await.unwrap();
    client.group(field.member("base")).await.unwrap().beat().await.unwrap();
    until("what is no order is counted", || gateway.status().orders.passed == 1).await;
    assert_eq!(gateway.status().orders.unsigned, junk.len() as u64);
    assert_eq!(machine.lock().len() as u64, given);

    field.member("base").revoke(&[Slot::new(1).unwrap()]).unwrap();
    publish_orders(&client, &field).await;
    until_given(&gateway, given + 2).await;
    let last = machine.lock()[given as usize..][..2].to_vec();
    assert_eq!(last, [Handed::Removal { order: given }, Handed::Order(given)]);
    let status = gateway.status().orders;
    assert_eq!((status.followed, status.causes), (1, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_anew_brings_the_last_orders_again() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let address = node.address().to_string();
    let client = Client::connect(&address).unwrap();
    let mut base = field.member("base");
    for _ in 0..limits::MAX_KEPT_ORDERS + 6 {
        base.rotate().unwrap();
    }
    publish_orders(&client, &field).await;
    let kept = limits::MAX_KEPT_ORDERS as u64;
    for round in 0..2 {
        let count = base.orders();
        let (gateway, _) = gateway(&address, &field.path("queue"));
        let (machine, put) = machine(0);
        // The card is older than all that the gateway has room for.
        gateway.serve_orders(&[card(&field, 3)], &put);
        until_given(&gateway, kept).await;
        let first = count - kept;
        let all = (first..count).map(Handed::Order);
        let expected: Vec<_> = [Handed::Keep { from: first }].into_iter().chain(all).collect();
        assert_eq!(*machine.lock(), expected, "round {round}");
        // Served again, as after SIGHUP: nothing comes twice.
        gateway.serve_orders(&[card(&field, 3)], &put);
        base.rotate().unwrap();
        publish_orders(&client, &field).await;
        until_given(&gateway, kept + 1).await;
        assert_eq!(machine.lock()[expected.len()..], [Handed::Order(count)]);
        gateway.stop();
    }
}
