//! Documents of versions that this program does not write are refused by their version, and none
//! asks for memory that its bytes do not have.

use std::fs;

use crate::allocates_nothing::largest;
use crate::shared::{Place, card, files, invite, join, named};
use sealane_group::{
    EpochSource, Error, GroupDocument, GroupNotice, IdentityCard, KeyFolder, NewGroup, examine,
    read_orders, seal_to, write_orders,
};
use sealane_testing::unhex;

/// The same document in other versions than its own, which stands behind four letters.
fn versions(document: &[u8], at: usize) -> Vec<(u8, Vec<u8>)> {
    let own = document[at];
    let others = [0, 1, 2, 3, 4, 255].into_iter().filter(|version| *version != own);
    let with = |version| {
        let mut bytes = document.to_vec();
        bytes[at] = version;
        (version, bytes)
    };
    others.map(with).collect()
}

/// A document in another version must be refused so.
fn expected(own: u8, version: u8) -> &'static str {
    match version {
        0 => "MalformedDocument",
        older if older < own => "OlderVersion",
        _ => "NewerVersion",
    }
}

fn refuses_versions<T>(document: &[u8], own: u8, read: impl Fn(&[u8]) -> Result<T, Error>) {
    assert_eq!(document[4], own);
    for (version, bytes) in versions(document, 4) {
        let error = read(&bytes).err().unwrap_or_else(|| panic!("version {version} was read"));
        let names = [expected(own, version), "DamagedFile"];
        let is_named =
            error.info().name == names[0] || (version == 0 && error.info().name == names[1]);
        assert!(is_named, "{error}");
        if let Error::OlderVersion { version: said, .. }
        | Error::NewerVersion { version: said, .. } = error
        {
            assert_eq!(said, version);
        }
    }
}

#[test]
fn documents_of_other_versions_are_named_so() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (mut car, _) = join(&mut base, &keys);
    let waiting = place.keys("bus");
    refuses_versions(&waiting.card().unwrap(), 2, IdentityCard::from_bytes);
    let invitation = invite(&mut base, &waiting).invitation;
    refuses_versions(&invitation, 2, |bytes| waiting.join(bytes, None, None));
    let file = write_orders(&base.notices(0).unwrap());
    refuses_versions(&file, 2, read_orders);
    refuses_versions(&keys.backup(None).unwrap(), 2, |bytes| {
        KeyFolder::restore(&place.path("restored"), bytes, None)
    });
    let letter = seal_to(keys.identity().public(), b"x", b"secret").unwrap();
    refuses_versions(&letter, 1, |bytes| keys.identity().open(b"x", bytes));

    let notices = base.renew(None).unwrap();
    let before = files(&place.path("car"));
    for (version, bytes) in versions(notices[0].as_bytes(), 5) {
        let notice = GroupNotice::from_bytes(&bytes).unwrap();
        assert_eq!(named(car.apply(&notice)), expected(2, version));
    }
    assert_eq!(files(&place.path("car")), before);
    car.sender().unwrap();
    keys.card().unwrap();
    let root = place.path("car");
    let open = |_: &[u8]| {
        let keys = KeyFolder::open(&root, None)?;
        keys.group("fleet")?;
        keys.card()
    };
    for (name, own) in [("identity", 1), ("cards", 1), ("groups/fleet/group", 2)] {
        let path = root.join(name);
        let whole = fs::read(&path).unwrap();
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            open(bytes)
        };
        refuses_versions(&whole, own, read);
        fs::write(&path, &whole).unwrap();
    }
    // Counters of another version begin the order of messages anew.
    let path = root.join("groups/fleet/counters");
    let whole = fs::read(&path).unwrap();
    for (_, bytes) in versions(&whole, 4) {
        fs::write(&path, bytes).unwrap();
        car.sender().unwrap();
    }
}

/// Bytes in which one to eight bytes in a row are as high as they can be, in every place: counts
/// and lengths among them.
fn asking(bytes: &[u8], step: usize) -> impl Iterator<Item = Vec<u8>> {
    let places = (0..bytes.len()).step_by(step);
    places.flat_map(move |at| {
        [1, 2, 4, 8].map(|wide| {
            let mut bytes = bytes.to_vec();
            let end = (at + wide).min(bytes.len());
            bytes[at..end].fill(0xff);
            bytes
        })
    })
}

/// Reading asks for memory of a few times the length of the input at most, beside a constant base.
fn asks_for_little<T>(what: &str, bytes: &[u8], step: usize, mut read: impl FnMut(&[u8]) -> T) {
    for changed in asking(bytes, step) {
        let (_, most) = largest(|| read(&changed));
        assert!(most <= (64 << 10) + 8 * bytes.len(), "{what} has asked for {most} bytes at once");
    }
}

#[test]
fn no_document_asks_for_memory() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let car = &mut members[0];
    let fresh = card(&KeyFolder::open(&place.path("car1"), None).unwrap());
    let waiting = place.keys("bus");
    asks_for_little("a card", &waiting.card().unwrap(), 7, |bytes| {
        drop(IdentityCard::from_bytes(bytes))
    });
    let invited = invite(&mut base, &waiting);
    asks_for_little("an invitation", &invited.invitation, 101, |bytes| {
        drop(waiting.join(bytes, None, None));
    });
    let file = write_orders(&invited.notices);
    asks_for_little("a file of orders", &file, 7, |bytes| drop(read_orders(bytes)));
    let mut notices = invited.notices;
    notices.extend(base.revoke(&[members_slot()]).unwrap());
    notices.extend(base.heal(&[fresh], false).unwrap().notices);
    for notice in &notices {
        asks_for_little("a notice", notice.as_bytes(), 13, |bytes| {
            GroupNotice::from_bytes(bytes).and_then(|notice| car.apply(&notice)).is_ok()
        });
        car.apply(notice).unwrap();
    }
    let backup = base_backup(&place);
    asks_for_little("a backup", &backup, 13, |bytes| {
        KeyFolder::restore(&place.path("restored"), bytes, None).is_ok()
    });
    // Behind signatures, encryption and checksums.
    let state = crate::shared::state(&place.path("base"));
    assert_eq!(examine(GroupDocument::GroupFile, &state).unwrap(), state);
    asks_for_little("a state", &state, 11, |bytes| drop(examine(GroupDocument::GroupFile, bytes)));
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../../../vectors/group/keys.json")).unwrap();
    let orders = vectors["orders"].as_array().unwrap();
    assert!(orders.len() >= 6);
    for order in orders {
        let data_type = u16::try_from(order["data_type"].as_u64().unwrap()).unwrap();
        let body = unhex(order["bytes"].as_str().unwrap());
        let bytes = [&data_type.to_be_bytes()[..], &body].concat();
        assert_eq!(examine(GroupDocument::Order, &bytes).unwrap(), bytes);
        asks_for_little("an order", &bytes, 1, |bytes| drop(examine(GroupDocument::Order, bytes)));
        for end in 0..bytes.len() {
            let cut = examine(GroupDocument::Order, &bytes[..end]);
            // A certificate is as long as its frame, and is looked at later.
            assert!(cut.is_err() || data_type == 1, "{end} bytes of {data_type}");
        }
    }
}

fn members_slot() -> sealane_seal::Slot {
    sealane_seal::Slot::new(2).unwrap()
}

fn base_backup(place: &Place) -> Vec<u8> {
    KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap().to_vec()
}
