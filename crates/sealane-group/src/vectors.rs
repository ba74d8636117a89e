//! The vectors of `vectors/group`: what wraps and rosters are made of, as a text that no change of
//! this crate can carry along. Both sides of a group share this code, so that only a text from
//! outside shows that a key is made of something else than before.
//!
//! `SEALANE_WRITE_VECTORS=1 cargo test -p sealane-group --lib vectors` writes them anew.

use std::path::PathBuf;

use sealane_seal::{Epoch, EpochSecret, GroupId};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::order::tests::slot;
use crate::order::{Order, Rekey, WrapId, Wraps};
use crate::renewal::tests::{opened_roster, sealed_roster};
use crate::roster::hex;

const GROUP: [u8; 32] = [1; 32];
const EPOCH: u64 = 0x0102_0304_0506;
const SECRET: [u8; 32] = [2; 32];
const SALT: [u8; 32] = [3; 32];
/// Members by slot, and the byte that their pairwise keys are made of.
const MEMBERS: [(u16, u8); 2] = [(1, 4), (1000, 5)];
const HEAD: &[u8] = b"SLRN and all that stands before the roster";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/group/keys.json")
}

fn order() -> Vec<u8> {
    let keys = MEMBERS.map(|(number, key)| (slot(number), Zeroizing::new([key; 32])));
    let (group, epoch) = (GroupId(GROUP), Epoch(EPOCH));
    let parts = Wraps::make(&EpochSecret::new(SECRET), group, epoch, &keys, SALT).unwrap();
    let wraps = Wraps::join(parts).unwrap();
    Order::Rekey(Rekey { number: 9, epoch: Epoch(EPOCH), removed: vec![slot(7)], wraps }).to_bytes()
}

fn made() -> Value {
    let members: Vec<_> = MEMBERS
        .iter()
        .map(|(number, key)| json!({ "slot": number, "key": hex(&[*key; 32]) }))
        .collect();
    let (roster, sealed) = sealed_roster(SECRET, HEAD);
    let entries: Vec<_> = roster
        .entries()
        .iter()
        .map(|entry| {
            json!({
                "slot": entry.slot().number(),
                "name": entry.name(),
                "verifying": hex(entry.verifying_key()),
                "certificate": hex(entry.certificate()),
                "since": entry.since().0,
                "removed": entry.removed().map(|epoch| epoch.0),
            })
        })
        .collect();
    json!({
        "group": hex(&GROUP),
        "epoch": EPOCH,
        "secret": hex(&SECRET),
        "rekey": { "salt": hex(&SALT), "removed": [7], "members": members, "order": hex(&order()) },
        "roster": {
            "number": roster.number(),
            "entries": entries,
            "head": hex(HEAD),
            "sealed": hex(&sealed),
        },
    })
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn array(text: &Value) -> [u8; 32] {
    unhex(text).try_into().unwrap()
}

#[test]
fn vectors_are_what_the_code_makes() {
    let text = format!("{:#}\n", made());
    if std::env::var_os("SEALANE_WRITE_VECTORS").is_some() {
        std::fs::create_dir_all(file().parent().unwrap()).unwrap();
        std::fs::write(file(), &text).unwrap();
    }
    let committed = std::fs::read_to_string(file()).unwrap();
    assert!(committed == text, "SEALANE_WRITE_VECTORS=1 cargo test -p sealane-group --lib vectors");
}

/// From the file alone: the order gives each member the secret, and the secret gives the roster.
#[test]
fn vectors_open() {
    let text = std::fs::read_to_string(file()).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let (secret, rekey, roster) = (array(&all["secret"]), &all["rekey"], &all["roster"]);
    let Order::Rekey(order) = Order::from_bytes(&unhex(&rekey["order"])).unwrap() else {
        panic!("another order")
    };
    assert_eq!(order.epoch.0, all["epoch"].as_u64().unwrap());
    assert_eq!(order.wraps.salt, array(&rekey["salt"]));
    let members = rekey["members"].as_array().unwrap();
    assert_eq!((members.len(), order.wraps.wraps.len()), (2, 2));
    for member in members {
        let slot = slot(member["slot"].as_u64().unwrap().try_into().unwrap());
        let whose = WrapId { group: GroupId(array(&all["group"])), epoch: order.epoch, slot };
        let opened = order.wraps.unwrap(whose, &array(&member["key"])).expect("a wrap that opens");
        assert_eq!(*opened.expose(), secret);
    }
    let (head, sealed) = (unhex(&roster["head"]), unhex(&roster["sealed"]));
    let opened = opened_roster(secret, &head, &sealed).expect("a roster that opens");
    assert_eq!(opened.number(), roster["number"].as_u64().unwrap());
    assert_eq!(opened.entries().len(), roster["entries"].as_array().unwrap().len());
}
