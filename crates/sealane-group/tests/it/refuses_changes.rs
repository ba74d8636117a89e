//! Cards, invitations, orders and files that were cut, changed, replayed or meant for others are
//! refused by name, and nothing changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::{Place, apply, invite, join};
use sealane_frame::{FrameBuf, HeaderFields, Kind, RELAY_BYTES};
use sealane_group::{
    Card, Change, EpochSource, Error, Fingerprint, KeyFolder, Member, NewGroup, Notice, Past,
};
use sealane_seal::Class;

/// Every file below a folder, but for the lock.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// All that differ from the bytes in one bit of a byte, or by being shorter or longer.
fn changed(bytes: &[u8], step: usize) -> Vec<(usize, Vec<u8>)> {
    let flipped = (0..bytes.len()).step_by(step).map(|at| {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at % 8);
        (at, changed)
    });
    let cut = (0..bytes.len()).step_by(step.max(7)).map(|end| (end, bytes[..end].to_vec()));
    let longer = [(bytes.len(), [bytes, &[0]].concat())];
    flipped.chain(cut).chain(longer).collect()
}

fn named<T>(outcome: Result<T, Error>, at: usize) -> &'static str {
    let error = outcome.err().unwrap_or_else(|| panic!("the change at {at} was taken"));
    assert!(!error.to_string().is_empty() && error.info().code.starts_with("SL-"), "{error}");
    error.info().name
}

#[test]
fn changed_cards_are_refused() {
    let place = Place::new();
    let card = place.keys("car").card().unwrap();
    for (at, changed) in changed(&card, 1) {
        let name = named(Card::from_bytes(&changed), at);
        assert!(
            ["MalformedDocument", "DocumentSignature", "NewerVersion"].contains(&name),
            "{name}"
        );
    }
    assert!(matches!(Card::from_bytes(&[]), Err(Error::Malformed(_))));
    let newer = [&card[..4], &[2], &card[5..]].concat();
    assert!(matches!(Card::from_bytes(&newer), Err(Error::NewerVersion { version: 2, .. })));
}

#[test]
fn changed_invitations_are_refused_and_the_card_goes_on_waiting() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let invited = invite(&mut base, &keys);
    let before = files(&place.path("car"));
    for (at, changed) in changed(&invited.invitation, 3) {
        named(keys.join(&changed, None, None), at);
    }
    assert!(matches!(
        place.keys("other").join(&invited.invitation, None, None),
        Err(Error::UnknownCard)
    ));
    let other = place.keys("mallory").new_group("fleet", NewGroup::default()).unwrap();
    let pin = Some(other.authority());
    assert!(matches!(keys.join(&invited.invitation, pin, None), Err(Error::OtherAuthority(_))));
    assert!("zz".parse::<Fingerprint>().is_err());
    assert!(matches!(keys.join(&invited.invitation, None, Some("../up")), Err(Error::Name(_))));
    assert_eq!(files(&place.path("car")), before);
    keys.join(&invited.invitation, Some(base.authority()), None).unwrap();
}

#[test]
fn one_name_is_one_group() {
    let place = Place::new();
    let keys = place.keys("car");
    let [mut one, mut two] = ["one", "two"]
        .map(|name| place.keys(name).new_group("fleet", NewGroup::default()).unwrap());
    join(&mut one, &keys);
    let invited = invite(&mut two, &keys);
    let refused = keys.join(&invited.invitation, None, None);
    assert!(matches!(refused, Err(Error::GroupExists(_))));
    let member = keys.join(&invited.invitation, None, Some("boats")).unwrap();
    assert_eq!((member.name(), member.id()), ("boats", two.id()));
    assert!(matches!(keys.new_group("boats", NewGroup::default()), Err(Error::GroupExists(_))));
    assert!(matches!(keys.new_group("Boats", NewGroup::default()), Err(Error::Name(_))));
}

fn refuses_all(member: &mut Member, folder: &Path, notice: &Notice, relayed: bool, step: usize) {
    let before = files(folder);
    for (at, changed) in changed(notice.as_bytes(), step) {
        // Relays change these, and no seal protects them.
        if relayed && (1..=RELAY_BYTES).contains(&at) && changed.len() == notice.as_bytes().len() {
            continue;
        }
        let outcome = Notice::from_bytes(&changed).and_then(|notice| member.apply(&notice));
        if matches!(outcome, Ok(Change::Nothing)) {
            // The epoch in the header says that it is older than all that is held.
            continue;
        }
        named(outcome, at);
    }
    assert_eq!(files(folder), before);
}

#[test]
fn changed_orders_are_refused() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let admitted = invite(&mut base, &place.keys("bus")).notices;
    let folder = place.path("car");
    refuses_all(&mut car, &folder, &admitted[0], true, 5);
    car.apply(&admitted[0]).unwrap();
    refuses_all(&mut car, &folder, &admitted[1], true, 1);
    car.apply(&admitted[1]).unwrap();
    let rotated = base.rotate().unwrap();
    refuses_all(&mut car, &folder, &rotated[0], true, 1);
    let renewed = base.renew(None).unwrap();
    refuses_all(&mut car, &folder, &renewed[0], false, 3);
    apply(&mut car, &[&rotated[..], &renewed[..]].concat()).unwrap();
    // Replays of all that was ever said change nothing.
    let before = files(&folder);
    for notice in base.notices(0).unwrap() {
        assert_eq!(car.apply(&notice).unwrap(), Change::Nothing);
    }
    assert_eq!(files(&folder), before);
}

#[test]
fn orders_that_come_too_early_wait_for_those_before_them() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let one = invite(&mut base, &place.keys("bus")).notices;
    let two = invite(&mut base, &place.keys("van")).notices;
    let three = base.rotate().unwrap();
    assert!(matches!(car.apply(&one[1]), Err(Error::CertificateMissing)));
    car.apply(&two[0]).unwrap();
    assert!(matches!(car.apply(&two[1]), Err(Error::OrderMissing)));
    assert!(matches!(car.apply(&three[0]), Err(Error::OrderMissing)));
    apply(&mut car, &[one, two, three].concat()).unwrap();
    assert_eq!(car.roster(), base.roster());
}

#[test]
fn orders_of_members_and_of_other_groups_are_refused() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let (bus, notices) = join(&mut base, &place.keys("bus"));
    apply(&mut car, &notices).unwrap();
    let before = files(&place.path("car"));

    // A member wraps the authority's own words, or words of its own.
    let mut sender = bus.sender().unwrap();
    for (class, data_type, kind, expected) in [
        (Class::Signed, 2, Kind::Control, "UnauthorizedOrder"),
        (Class::Signed, 1, Kind::Control, "UnauthorizedOrder"),
        (Class::Group, 2, Kind::Control, "MalformedDocument"),
        (Class::Signed, 2, Kind::Message, "MalformedDocument"),
        (Class::Signed, 3, Kind::Control, "MalformedDocument"),
    ] {
        let fields = HeaderFields { kind, ..sender.fields(class, data_type) };
        let advance = [1, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        let mut buf = FrameBuf::new();
        let frame = sender.seal(&fields, &advance, &mut buf).unwrap();
        assert_eq!(named(car.apply(&Notice::from_frame(frame)), 0), expected);
    }

    let mut other = place.keys("other").new_group("boats", NewGroup::default()).unwrap();
    let (mut boat, _) = join(&mut other, &place.keys("boat"));
    for notices in [other.rotate().unwrap(), invite(&mut other, &place.keys("b2")).notices] {
        for notice in notices {
            assert_eq!(named(car.apply(&notice), 0), "OtherGroup");
        }
    }
    assert_eq!(named(car.apply(&other.renew(None).unwrap()[0]), 0), "OtherGroup");
    assert!(boat.apply(&base.rotate().unwrap()[0]).is_err());
    assert_eq!(files(&place.path("car")), before);
}

#[test]
fn one_card_is_invited_once() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let card = Card::from_bytes(&keys.card().unwrap()).unwrap();
    let invited = base.invite(&card, Past::All).unwrap();
    keys.join(&invited.invitation, None, None).unwrap();
    // Invited again, it would need to wait again; the folder has forgotten it.
    let again = base.invite(&card, Past::All).unwrap();
    assert!(matches!(keys.join(&again.invitation, None, None), Err(Error::UnknownCard)));
}

#[test]
fn damaged_files_are_named() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    join(&mut base, &keys);
    keys.card().unwrap();
    let root = place.path("car");
    let open = || {
        let keys = KeyFolder::open(&root, None)?;
        keys.group("fleet")?.sender()?;
        keys.card().map(|_| ())
    };
    for name in ["identity", "cards", "groups/fleet/group", "groups/fleet/counters-1"] {
        let path = root.join(name);
        let whole = fs::read(&path).unwrap();
        for (at, changed) in changed(&whole, 11) {
            let mut told = Vec::new();
            // In place, so that the file stays the one it was.
            fs::write(&path, &changed).unwrap();
            if let Err(error) = open() {
                told.push(error.info().name);
            }
            fs::write(&path, &whole).unwrap();
            let is_named =
                ["DamagedFile", "NewerVersion", "CopiedFolder"].iter().any(|name| told == [*name]);
            // Cards of another place are left out, and nothing is said.
            assert!(is_named || name == "cards", "{name} at {at}: {told:?}");
        }
    }
    open().unwrap();
}
