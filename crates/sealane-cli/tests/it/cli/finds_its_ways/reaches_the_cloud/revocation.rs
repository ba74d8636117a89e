//! A member is revoked at the hub of its group. The notice goes ahead over gateway and relay, which
//! hold no key of the group: nobody in the field takes what the member seals from then on. The
//! re-key follows, and a member without a hub writes on in the next epoch.

use std::time::{Duration, Instant};

use sealane::{Client, Codec, Value};
use sealane_document::{DocumentQuota, DocumentStore, ShelfKeeper};
use sealane_frame::{FrameBuf, PeerTag};
use sealane_group::{GroupMember, GroupSender, KeyFolder};
use sealane_seal::{Binding, Class};
use sealane_testing::until;

use super::scene::{BASE, GATEWAY, RELAY, Scene, link};
use crate::cli::home::number;
use crate::cli::json;

const THIEF: usize = 4;
const THIEF_SLOT: u64 = 2;
/// A register of an application.
const STATE: u16 = 64;
/// The hub is one hop from the gateway, the relay the next one, the car the last one.
const HOPS: u32 = 3;
const HELLO: Duration = Duration::from_secs(1);
const HUB: &str = "10.77.0.2:9087";

fn state(n: u64) -> String {
    format!("{{\"n\":{n}}}")
}

fn member(scene: &Scene, who: &str) -> GroupMember {
    KeyFolder::open(&scene.path(who), None).unwrap().group("fleet").unwrap()
}

/// The car's view of a member's state.
fn shown(scene: &Scene, slot: u64) -> Option<String> {
    let rows = scene.document(scene.car, "car", &["get", &STATE.to_string()]);
    let row = rows.lines().map(json).find(|row| number(row, "slot") == slot)?;
    row.field("value").and_then(Value::as_text).map(str::to_owned)
}

/// The car, and a member that will be revoked, beside relay and gateway. The thief joined last: the
/// car learns of it over the mesh, since it has no hub.
fn start() -> Scene {
    let mut scene = Scene::prepare(&["thief"], &[(RELAY, THIEF)]);
    scene.field.join("fleet", "thief");
    scene.write_end("thief", &link(4, 2), THIEF_SLOT as u8);
    scene.field.home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
    scene.at_base(&["group", "publish", "fleet", "--server", HUB]);
    scene.machines[scene.car] = Some(scene.field.start_heard(scene.car));
    for machine in [RELAY, GATEWAY, THIEF] {
        scene.start_machine(machine);
    }
    scene
}

/// The machine of the thief from now on. It carries for others, as before. It also carries the
/// owner's messages, sealed with a copy of the keys that obeys nobody.
struct Stolen {
    sender: GroupSender,
}

impl Stolen {
    fn of(scene: &mut Scene) -> Stolen {
        scene.machines[THIEF].take().unwrap().process.kill();
        scene.field.home.copy("thief", "stolen");
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(scene.path(&format!("thief.documents{suffix}")));
        }
        scene.write_relay("thief", &link(4, 2));
        Stolen { sender: member(scene, "stolen").sender().unwrap() }
    }

    /// Has the machine hand on another state.
    fn hand_on(&mut self, scene: &mut Scene, n: u64) {
        drop(scene.machines[THIEF].take());
        let binding = Binding::stream(&format!("mesh/{}/{STATE}", scene.tag()));
        let mut fields = self.sender.fields(Class::Group, STATE);
        fields.codec = Codec::Json as u8;
        let mut buf = FrameBuf::new();
        let body = state(n).into_bytes();
        let frame = self.sender.seal(&fields, &binding, &body, &mut buf).unwrap();
        let path = scene.path("thief.documents");
        let mut store =
            DocumentStore::open(&path, ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
        assert!(store.take(frame, PeerTag::NOBODY).unwrap().is_news());
        drop(store);
        scene.start_machine(THIEF);
    }
}

/// Publishes the notice of removal alone, as the authority does before its orders.
fn publish_notice(scene: &Scene, from: u64) {
    let removals = member(scene, "base").removals(from).unwrap();
    let bytes = removals[0].as_bytes().to_vec();
    assert_eq!((removals.len(), bytes.len()), (1, 91));
    let mut envelope = Vec::new();
    let notice = Value::Map(vec![("notice".to_owned(), Value::Bytes(bytes))]);
    sealane_codec::encode(Codec::MsgPack, &notice, &mut envelope);
    let token = std::fs::read_to_string(scene.path("base.token")).unwrap();
    let topic = format!("groups/{}", scene.tag());
    scene.field.on(BASE, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect(HUB).unwrap().with_token(token.trim()).unwrap();
            client.publish_batch(&topic, Codec::MsgPack, &[envelope]).await.unwrap();
        });
    });
}

/// The states that a member at the hub reads: sender, state and epoch.
fn read_at_base(scene: &Scene, topic: &str, count: usize) -> Vec<(u64, u64, u64)> {
    let count = count.to_string();
    let read = ["sub", topic, "--group", "fleet", "--from", "first", "--json", "-n", &count];
    let row = |line: &str| {
        let message = json(line);
        let [seal, envelope] = ["seal", "envelope"].map(|name| message.field(name).unwrap());
        (number(seal, "slot"), number(envelope, "n"), number(seal, "epoch"))
    };
    scene.at_base(&read).lines().map(row).collect()
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn who_is_revoked_at_the_hub_is_shut_out_in_the_field_and_the_others_go_on() {
    let _turn = crate::TURN.beside();
    let mut scene = start();
    let topic = format!("mesh/{}/{STATE}", scene.tag());
    scene.document(THIEF, "thief", &["set", &STATE.to_string(), &state(0)]);
    let took = until("the car knows the newcomer", || shown(&scene, THIEF_SLOT) == Some(state(0)));
    println!("the car has the orders that it had missed, and a document, within {took:?}");
    // A machine keeps the newest state of a member alone. A gateway that is slow would never see
    // this one behind the next.
    until("the gateway has brought it to the hub", || scene.stored_in(&topic) == 1);

    let mut stolen = Stolen::of(&mut scene);
    let orders = member(&scene, "base").orders();
    scene.field.home.run("base", &["group", "revoke", "fleet", "thief"]);
    let begun = Instant::now();
    publish_notice(&scene, orders);
    let told = format!("slot {THIEF_SLOT} is about to be removed by order {orders}");
    until("the car has shut it out", || scene.field.said(scene.car).contains(&told));
    let took = begun.elapsed();
    println!("the notice is {HOPS} hops away, and obeyed, within {took:?}");
    if std::env::var_os("SEALANE_DEMANDS").is_some() {
        assert!(took < HELLO * HOPS, "{took:?}");
    }
    let epoch = |scene: &Scene| {
        let told = scene.field.told(scene.car, |told| told.field("end").is_some());
        number(told.field("end").unwrap(), "epoch")
    };
    assert_eq!(epoch(&scene), 0, "the re-key has not come yet");
    stolen.hand_on(&mut scene, 1);
    // A machine that cannot read the message carries it nevertheless.
    until("the gateway has brought it to the hub", || scene.stored_in(&topic) == 2);
    std::thread::sleep(2 * HELLO);
    assert_eq!(shown(&scene, THIEF_SLOT), Some(state(0)), "what came before the notice stays");

    let begun = Instant::now();
    scene.at_base(&["group", "publish", "fleet", "--server", HUB]);
    until("the car was re-keyed", || epoch(&scene) == 1);
    println!("the re-key is there, and obeyed, within {:?}", begun.elapsed());
    until("what the removed one said is forgotten", || shown(&scene, THIEF_SLOT).is_none());
    stolen.hand_on(&mut scene, 2);
    until("the gateway has brought it to the hub", || scene.stored_in(&topic) == 3);
    scene.document(scene.car, "car", &["set", &STATE.to_string(), &state(7)]);
    until("the car writes on", || scene.stored_in(&topic) == 4);
    // The thief's messages that stood in the hub before the orders are read as before; later ones
    // are not.
    let read = read_at_base(&scene, &topic, 3);
    assert_eq!(read, [(THIEF_SLOT, 0, 0), (THIEF_SLOT, 1, 0), (1, 7, 1)]);
    assert_eq!(shown(&scene, THIEF_SLOT), None);
    let of_orders = |told: &Value| told.field("gateway").unwrap().field("orders").unwrap().clone();
    // A gateway whose connection to the hub has ended follows no stream until it has another one.
    let told = scene.field.told(GATEWAY, |told| number(&of_orders(told), "followed") == 1);
    assert_eq!(number(&of_orders(&told), "unsigned"), 0, "{told:?}");
    assert!(number(&of_orders(&told), "given") > orders, "{told:?}");
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_relay_with_a_card_of_the_version_before_says_what_it_cannot_do() {
    let _turn = crate::TURN.beside();
    let scene = Scene::prepare(&[], &[]);
    let path = scene.path("fleet.card");
    let card = std::fs::read_to_string(&path).unwrap().replace("version = 2", "version = 1");
    let of_orders = ["id = ", "authority = ", "orders = "];
    let is_older = |line: &&str| !of_orders.iter().any(|key| line.starts_with(key));
    let older: Vec<_> = card.lines().filter(is_older).collect();
    std::fs::write(&path, older.join("\n")).unwrap();
    let relay = scene.field.start_heard(RELAY);
    let said = scene.field.said(RELAY);
    assert!(said.contains(&scene.tag()) && said.contains("sealane group relay-card"), "{said}");
    drop(relay);
}
