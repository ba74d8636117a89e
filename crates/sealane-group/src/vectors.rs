//! The vectors of `vectors/group`: what a group's documents are made of, as a text that no change
//! of this crate can carry along. Both sides of a group share this code, so that only a text from
//! outside shows that a key is made of something else than before.
//!
//! `SEALANE_WRITE_VECTORS=1 cargo test -p sealane-group --lib vectors` writes them anew.

use std::path::PathBuf;

use sealane_frame::{FrameBuf, FrameKind, HeaderFields, Priority, open_stored, seal_frame};
use sealane_message::hex::encode as hex;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, GroupId, History, Opener, Sealer, SenderContext,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::card::PendingCard;
use crate::certificate::{MemberCertificate, MemberSeat};
use crate::charter::GroupCharter;
use crate::marks::RemovalMarks;
use crate::member::control_topic;
use crate::notice::{GroupHeartbeat, ParsedNotice};
use crate::order::tests::{one_of_each, slot};
use crate::order::{GroupOrder, NumberedOrder, RekeyOrder, SecretWraps, WrapId};
use crate::removal::RemovalNotice;
use crate::renewal::tests::{FoundRenewal, opened_roster, sealed_roster};
use crate::renewal::{self, RenewalPlan};
use crate::roster::{GroupRoster, RosterEntry, peer_tag};
use crate::state::{GroupState, NewestHeartbeat};
use crate::wire::put_name;
use crate::{GroupDocument, GroupNotice, Identity, IdentityCard};

const NUMBER: u64 = 9;
const EPOCH: u64 = 0x0102_0304_0506;
const SECRET: [u8; 32] = [2; 32];
/// The secret of the epoch before, in which the order is sealed.
const SECRET_BEFORE: [u8; 32] = [6; 32];
const SALT: [u8; 32] = [3; 32];
/// Members by slot, and the byte that their pairwise keys are made of.
const MEMBERS: [(u16, u8); 2] = [(1, 4), (1000, 5)];
/// The removed member, which has a key nevertheless.
const REMOVED: (u16, u8) = (7, 7);
/// Below it, what the removed one has sealed was sent before.
const MARK: u64 = 300;
const HEAD: &[u8] = b"SLRN and all that stands before the roster";
const ROUTING: [u8; 32] = [8; 32];
const CONTEXT: SenderContext = SenderContext([0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7]);

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/group/keys.json")
}

pub(crate) fn identity(name: &str, seed: u8) -> Identity {
    Identity::from_seed(name, Zeroizing::new([seed; 32])).unwrap()
}

pub(crate) fn authority() -> Identity {
    identity("base", 10)
}

pub(crate) fn charter() -> GroupCharter {
    let verifier = authority().authority().unwrap().verifier().unwrap();
    // AES-256-GCM, more than two, kept, strict, an hour.
    let mut bytes = vec![0, 5, 4, 0, 0, 0x0e, 0x10];
    bytes.extend([11; 32]);
    bytes.extend(verifier.curve);
    bytes.extend_from_slice(verifier.lattice.as_slice());
    put_name(&mut bytes, "fleet");
    let charter = GroupCharter::from_bytes(GroupDocument::GroupFile, &bytes).unwrap();
    assert_eq!(charter.to_bytes(), bytes);
    charter
}

fn group() -> GroupId {
    charter().id()
}

fn waiting() -> PendingCard {
    PendingCard { nonce: [12; 32], seed: Zeroizing::new([13; 32]) }
}

pub(crate) fn card() -> Vec<u8> {
    IdentityCard::write(&identity("car 1", 14), None, &waiting()).unwrap()
}

/// Documents that an authority signs with fresh randomness: they are kept as they are.
struct GroupVectorRecord {
    certificate: Vec<u8>,
    renewal: Vec<u8>,
}

impl GroupVectorRecord {
    fn read(all: &Value) -> GroupVectorRecord {
        let certificate = unhex(&all["certificate"]["bytes"]);
        GroupVectorRecord { certificate, renewal: unhex(&all["renewal"]["bytes"]) }
    }

    fn make() -> GroupVectorRecord {
        let signer = authority().authority().unwrap();
        let card = IdentityCard::from_bytes(&card()).unwrap();
        let seat = MemberSeat { slot: slot(1), since: Epoch(3), replaces: Some(slot(5)) };
        let certificate = MemberCertificate::make(&signer, group(), &card, seat).unwrap();
        let plan = RenewalPlan {
            number: NUMBER,
            epoch: Epoch(EPOCH),
            is_anew: false,
            secret: &EpochSecret::new(SECRET),
            roster: &roster(),
            cards: &[(slot(1), &card)],
        };
        let (renewal, _) = renewal::make(&signer, &state(), &plan).unwrap();
        GroupVectorRecord { certificate: certificate.bytes, renewal }
    }
}

/// The authority, a member with a fresh card, one that was removed, and one without a card.
fn roster() -> GroupRoster {
    let entry = |number: u16, name: &str, verifying: [u8; 32], removed: Option<u64>| RosterEntry {
        slot: slot(number),
        verifying,
        certificate: [verifying[0]; 32],
        since: Epoch(3),
        removed: removed.map(Epoch),
        name: name.to_owned(),
    };
    let of = |identity: Identity| *identity.public().verifying_key();
    let entries = vec![
        entry(0, "base", of(authority()), None),
        entry(1, "car 1", of(identity("car 1", 14)), None),
        entry(7, "car 7", of(identity("car 7", 15)), Some(EPOCH)),
        entry(1000, "car 1000", of(identity("car 1000", 16)), None),
    ];
    GroupRoster::new(entries).unwrap()
}

fn pairwise(of: &[(u16, u8)]) -> Vec<(sealane_seal::Slot, Zeroizing<[u8; 32]>)> {
    of.iter().map(|(number, key)| (slot(*number), Zeroizing::new([*key; 32]))).collect()
}

/// The authority's state, in which the removed one still has its key.
fn state() -> GroupState {
    let secret = EpochSecret::new(SECRET_BEFORE);
    let epochs = Epochs::new(group(), History::Kept, Epoch(EPOCH - 1), secret);
    GroupState {
        charter: charter(),
        routing: Zeroizing::new(ROUTING),
        slot: slot(0),
        is_removed: false,
        is_copied: false,
        wrap_key: Zeroizing::new([0; 32]),
        live_from: Epoch(0),
        roster: roster(),
        epochs,
        wraps: pairwise(&[MEMBERS[0], REMOVED, MEMBERS[1]]),
        certificates: Vec::new(),
        orders: NUMBER,
        known: NUMBER,
        claimed: 0,
        awaited: Epoch(EPOCH - 1),
        marks: RemovalMarks::default(),
        marked: Epoch(0),
        beater: None,
        beat: NewestHeartbeat::default(),
        spent: Vec::new(),
    }
}

fn rekey() -> RekeyOrder {
    let (secret, keys) = (EpochSecret::new(SECRET), pairwise(&MEMBERS));
    let parts = SecretWraps::make(&secret, group(), Epoch(EPOCH), &keys, SALT).unwrap();
    let wraps = SecretWraps::join(parts).unwrap();
    RekeyOrder { epoch: Epoch(EPOCH), removed: vec![slot(REMOVED.0)], wraps }
}

/// The order to re-key, sealed, numbered and signed.
fn notice() -> GroupNotice {
    let (state, identity) = (state(), authority());
    let context = CONTEXT;
    let group = state.charter.group();
    let mut sealer = Sealer::new(group, state.slot, context, &state.epochs, 300).unwrap();
    sealer.set_signing_key(identity.signing_key().unwrap());
    let order = GroupOrder::Rekey(rekey());
    let source = peer_tag(&state.routing, &state.roster.entries()[0]);
    let fields = HeaderFields {
        kind: FrameKind::Control,
        class: Class::Signed,
        priority: Priority::High,
        codec: 0,
        orders: NUMBER as u8,
        ..HeaderFields::new(state.tag(), source, order.data_type())
    };
    let (binding, mut buf) = (Binding::stream(&control_topic(state.tag())), FrameBuf::new());
    let body = order.to_bytes(NUMBER);
    let frame = seal_frame(&mut sealer, &fields, &binding, &body, &mut buf).unwrap();
    GroupNotice::order(&identity.signer().unwrap(), state.id(), NUMBER, frame).unwrap()
}

fn heartbeat() -> GroupNotice {
    let heartbeat =
        GroupHeartbeat { orders: NUMBER, epoch: Epoch(EPOCH), time_ms: 1_795_000_000_000 };
    GroupNotice::heartbeat(&authority().signer().unwrap(), group(), heartbeat).unwrap()
}

fn removal() -> GroupNotice {
    let (order, slot) = (NUMBER, slot(REMOVED.0));
    let removal = RemovalNotice { order, epoch: Epoch(EPOCH - 1), slot, mark: MARK };
    GroupNotice::removal(&authority().signer().unwrap(), group(), removal).unwrap()
}

fn entries(roster: &GroupRoster) -> Value {
    let entry = |entry: &RosterEntry| {
        json!({
            "slot": entry.slot().number(),
            "name": entry.name(),
            "verifying": hex(entry.verifying_key()),
            "certificate": hex(entry.certificate()),
            "since": entry.since().0,
            "removed": entry.removed().map(|epoch| epoch.0),
        })
    };
    roster.entries().iter().map(entry).collect()
}

fn keys(of: &[(u16, u8)]) -> Value {
    let member = |(number, key): &(u16, u8)| json!({ "slot": number, "key": hex(&[*key; 32]) });
    of.iter().map(member).collect()
}

fn made(kept: &GroupVectorRecord) -> Value {
    let verifier = authority().authority().unwrap().verifier().unwrap();
    let orders: Vec<_> = one_of_each(&kept.certificate, rekey())
        .into_iter()
        .map(|(name, order)| {
            let (data_type, bytes) = (order.data_type(), hex(&order.to_bytes(NUMBER)));
            json!({ "name": name, "data_type": data_type, "bytes": bytes })
        })
        .collect();
    let (listed, sealed) = sealed_roster(SECRET, HEAD);
    let found = FoundRenewal::read(&charter(), &kept.renewal);
    let by_card = found.by_card(&waiting()).unwrap();
    json!({
        "charter": hex(&charter().to_bytes()),
        "group": hex(&group().0),
        "authority": { "curve": hex(&verifier.curve), "lattice": hex(&verifier.lattice[..]) },
        "routing": hex(&ROUTING),
        "epoch": EPOCH,
        "secret": hex(&SECRET),
        "card": {
            "identity": hex(&[14; 32]),
            "once": hex(&waiting().seed[..]),
            "bytes": hex(&card()),
        },
        "certificate": { "slot": 1, "since": 3, "replaces": 5, "bytes": hex(&kept.certificate) },
        "number": NUMBER,
        "orders": orders,
        "rekey": {
            "salt": hex(&SALT),
            "members": keys(&MEMBERS),
            "removed": keys(&[REMOVED]),
            "order": hex(&GroupOrder::Rekey(rekey()).to_bytes(NUMBER)),
        },
        "notice": {
            "topic": control_topic(state().tag()),
            "epoch": EPOCH - 1,
            "secret": hex(&SECRET_BEFORE),
            "context": hex(&CONTEXT.0),
            "bytes": hex(notice().as_bytes()),
        },
        "heartbeat": { "time_ms": 1_795_000_000_000_u64, "bytes": hex(heartbeat().as_bytes()) },
        "removal": { "slot": REMOVED.0, "mark": MARK, "bytes": hex(removal().as_bytes()) },
        "roster": { "entries": entries(&listed), "head": hex(HEAD), "sealed": hex(&sealed) },
        "renewal": {
            "members": keys(&MEMBERS[1..]),
            "silent": keys(&[MEMBERS[0], REMOVED]),
            "fresh": { "slot": 1, "once": hex(&waiting().seed[..]), "key": hex(&by_card.key[..]) },
            "entries": entries(&roster()),
            "bytes": hex(&kept.renewal),
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

fn committed() -> Value {
    serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap()
}

#[test]
fn vectors_are_what_the_code_makes() {
    if std::env::var_os("SEALANE_WRITE_VECTORS").is_some() {
        let text = format!("{:#}\n", made(&GroupVectorRecord::make()));
        std::fs::create_dir_all(file().parent().unwrap()).unwrap();
        std::fs::write(file(), &text).unwrap();
    }
    let text = format!("{:#}\n", made(&GroupVectorRecord::read(&committed())));
    let committed = std::fs::read_to_string(file()).unwrap();
    assert!(committed == text, "SEALANE_WRITE_VECTORS=1 cargo test -p sealane-group --lib vectors");
}

/// Slots and pairwise keys of a list.
fn listed(members: &Value) -> Vec<(sealane_seal::Slot, [u8; 32])> {
    let member = |member: &Value| {
        let number = member["slot"].as_u64().unwrap().try_into().unwrap();
        (slot(number), array(&member["key"]))
    };
    members.as_array().unwrap().iter().map(member).collect()
}

fn read(order: &Value) -> NumberedOrder {
    let data_type = order["data_type"].as_u64().unwrap().try_into().unwrap();
    GroupOrder::from_bytes(data_type, &unhex(&order["bytes"])).unwrap()
}

/// From the file alone: the order gives each member the secret, and the removed one nothing.
#[test]
fn the_order_to_re_key_opens() {
    let all = committed();
    let (group, secret, rekey) = (array(&all["group"]), array(&all["secret"]), &all["rekey"]);
    let orders: Vec<_> = all["orders"].as_array().unwrap().iter().map(read).collect();
    let number = all["number"].as_u64().unwrap();
    assert!(orders.len() == 8 && orders.iter().all(|read| read.number == number));
    let found = orders.into_iter().find_map(|read| match read.order {
        GroupOrder::Rekey(order) => Some(order),
        _ => None,
    });
    let order = found.unwrap();
    assert_eq!(order.epoch.0, all["epoch"].as_u64().unwrap());
    assert_eq!(order.wraps.salt, array(&rekey["salt"]));
    let opened = |wraps: &SecretWraps, (slot, key): (sealane_seal::Slot, [u8; 32])| {
        let whose = WrapId { group: GroupId(group), epoch: order.epoch, slot };
        wraps.unwrap(whose, &key).map(|opened| *opened.expose())
    };
    let (members, removed) = (listed(&rekey["members"]), listed(&rekey["removed"]));
    assert_eq!((members.len(), order.wraps.wraps.len(), removed.len()), (2, 2, 1));
    let salted = SecretWraps { salt: [9; 32], ..order.wraps.clone() };
    for member in members {
        assert_eq!(opened(&order.wraps, member), Some(secret));
        assert_eq!(opened(&salted, member), None, "another salt");
        assert_eq!(opened(&order.wraps, (member.0, [0; 32])), None, "a constant key");
    }
    assert_eq!(order.removed, [removed[0].0]);
    for (slot, _) in &order.wraps.wraps {
        assert_eq!(opened(&order.wraps, (*slot, removed[0].1)), None);
    }
    let sealed = &all["roster"];
    let opened = opened_roster(secret, &unhex(&sealed["head"]), &unhex(&sealed["sealed"]));
    assert_eq!(entries(&opened.unwrap()), sealed["entries"]);
}

#[test]
fn the_notice_and_the_heartbeat_verify_and_open() {
    let all = committed();
    let (group, curve) = (GroupId(array(&all["group"])), array(&all["authority"]["curve"]));
    let charter =
        GroupCharter::from_bytes(GroupDocument::GroupFile, &unhex(&all["charter"])).unwrap();
    assert_eq!((charter.id(), charter.authority.curve), (group, curve));
    assert_eq!(charter.authority.lattice.to_vec(), unhex(&all["authority"]["lattice"]));
    let about = &all["notice"];
    let notice = GroupNotice::from_bytes(&unhex(&about["bytes"])).unwrap();
    let ParsedNotice::Order { number, frame } = notice.verified(group, &curve).unwrap() else {
        panic!("another notice")
    };
    assert_eq!(number, all["number"].as_u64().unwrap());
    let epoch = Epoch(about["epoch"].as_u64().unwrap());
    let secret = EpochSecret::new(array(&about["secret"]));
    let epochs = Epochs::new(group, History::Kept, epoch, secret);
    let mut opener = Opener::new(charter.group(), None, epochs).unwrap();
    opener.set_terms(roster().entries().iter().map(RosterEntry::term)).unwrap();
    let binding = Binding::stream(about["topic"].as_str().unwrap());
    let mut frame = frame.to_vec();
    let stored = open_stored(&mut opener, epoch, &binding, &mut frame).unwrap();
    assert_eq!(hex(stored.body), all["rekey"]["order"].as_str().unwrap());
    assert_eq!(hex(&stored.opened.context().0), about["context"].as_str().unwrap());

    let notice = GroupNotice::from_bytes(&unhex(&all["heartbeat"]["bytes"])).unwrap();
    let ParsedNotice::Heartbeat(heartbeat) = notice.verified(group, &curve).unwrap() else {
        panic!("another notice")
    };
    assert_eq!((heartbeat.orders, heartbeat.epoch.0), (number, all["epoch"].as_u64().unwrap()));
    assert_eq!(heartbeat.time_ms, all["heartbeat"]["time_ms"].as_u64().unwrap());
}

#[test]
fn the_notice_of_removal_verifies() {
    let all = committed();
    let (group, curve) = (GroupId(array(&all["group"])), array(&all["authority"]["curve"]));
    let about = &all["removal"];
    let notice = GroupNotice::from_bytes(&unhex(&about["bytes"])).unwrap();
    let ParsedNotice::Removal(removal) = notice.verified(group, &curve).unwrap() else {
        panic!("another notice")
    };
    assert_eq!(u64::from(removal.slot.number()), about["slot"].as_u64().unwrap());
    assert_eq!(removal.mark, about["mark"].as_u64().unwrap());
    let (number, epoch) = (all["number"].as_u64().unwrap(), all["epoch"].as_u64().unwrap());
    assert_eq!((removal.order, removal.epoch.0), (number, epoch - 1));
    assert!(notice.verified(GroupId([0; 32]), &curve).is_err());
}

#[test]
fn the_certificate_is_of_the_card() {
    let all = committed();
    let charter =
        GroupCharter::from_bytes(GroupDocument::GroupFile, &unhex(&all["charter"])).unwrap();
    let about = &all["certificate"];
    let certificate = MemberCertificate::from_bytes(&charter, &unhex(&about["bytes"])).unwrap();
    let card = IdentityCard::from_bytes(&unhex(&all["card"]["bytes"])).unwrap();
    assert_eq!((certificate.card, certificate.name.as_str()), (card.hash(), card.name()));
    assert_eq!(certificate.verifying, *card.public().verifying_key());
    let seat = (certificate.slot, certificate.since, certificate.replaces);
    assert_eq!(seat, (slot(1), Epoch(3), Some(slot(5))));
}

/// By the fresh card, and by a pairwise key; not by the key that the fresh card has replaced.
#[test]
fn the_renewal_opens() {
    let all = committed();
    let charter =
        GroupCharter::from_bytes(GroupDocument::GroupFile, &unhex(&all["charter"])).unwrap();
    let (about, secret) = (&all["renewal"], array(&all["secret"]));
    let found = FoundRenewal::read(&charter, &unhex(&about["bytes"]));
    assert_eq!(found.slots(), [vec![1000], vec![1]]);
    let fresh = &about["fresh"];
    let card = IdentityCard::from_bytes(&unhex(&all["card"]["bytes"])).unwrap();
    let waiting = PendingCard { nonce: card.nonce, seed: Zeroizing::new(array(&fresh["once"])) };
    let by_card = found.by_card(&waiting).unwrap();
    assert_eq!((*by_card.secret.expose(), *by_card.key), (secret, array(&fresh["key"])));
    for (slot, key) in listed(&about["members"]) {
        assert_eq!(*found.by_key(slot, &key).unwrap().expose(), secret);
    }
    for (slot, key) in listed(&about["silent"]) {
        assert!(found.by_key(slot, &key).is_none(), "{slot:?}");
    }
    let other = PendingCard { nonce: card.nonce, seed: Zeroizing::new([0; 32]) };
    assert!(found.by_card(&other).is_none());
    assert_eq!(entries(&found.roster(&by_card.secret).unwrap()), about["entries"]);
    assert!(found.roster(&EpochSecret::new([0; 32])).is_none());
}
