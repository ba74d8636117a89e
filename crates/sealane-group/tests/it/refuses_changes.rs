//! Cards, invitations, orders, renewals, backups and files that were cut, changed, replayed or
//! meant for others are refused by name, and nothing changes.

use std::fs;
use std::path::Path;

use crate::shared::{Place, apply, card, files, invite, join, named, reopen};
use sealane_frame::{FrameBuf, FrameKind, HeaderFields};
use sealane_group::{
    EpochSource, Error, Fingerprint, GroupChange, GroupMember, GroupNotice, IdentityCard,
    KeyFolder, NewGroup, PastSecrets,
};
use sealane_seal::{Binding, Class};

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

fn is_one_of<T>(outcome: Result<T, Error>, names: &[&str], at: usize) {
    let name = outcome.err().unwrap_or_else(|| panic!("the change at {at} was taken")).info().name;
    assert!(names.contains(&name), "{name} at {at}");
}

const OF_DOCUMENTS: &[&str] =
    &["MalformedDocument", "DocumentSignature", "NewerVersion", "OlderVersion"];

#[test]
fn changed_cards_are_refused() {
    let place = Place::new();
    let card = place.keys("car").card().unwrap();
    for (at, changed) in changed(&card, 1) {
        is_one_of(IdentityCard::from_bytes(&changed), OF_DOCUMENTS, at);
    }
    for end in 0..card.len() {
        assert_eq!(named(IdentityCard::from_bytes(&card[..end])), "MalformedDocument", "{end}");
    }
}

#[test]
fn changed_invitations_are_refused_and_the_card_goes_on_waiting() {
    let place = Place::quick();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let invited = invite(&mut base, &keys);
    let before = files(&place.path("car"));
    for (at, changed) in changed(&invited.invitation, 5) {
        named_at(keys.join(&changed, None, None), at);
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

fn named_at<T>(outcome: Result<T, Error>, at: usize) -> &'static str {
    assert!(outcome.is_err(), "the change at {at} was taken");
    named(outcome)
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

/// Whatever is changed in a notice whose turn it is, nothing comes of it.
fn refuses_all(member: &mut GroupMember, folder: &Path, notice: &GroupNotice, step: usize) {
    let before = files(folder);
    for (at, changed) in changed(notice.as_bytes(), step) {
        let read = GroupNotice::from_bytes(&changed);
        let is_old = matches!(&read, Ok(one) if one.number().is_some_and(|n| n < member.orders()));
        match read.and_then(|notice| member.apply(&notice)) {
            // The number in clear says that it was obeyed already.
            Ok(told) => assert!(is_old && told.is_empty(), "the change at {at} was taken"),
            refused => drop(named_at(refused, at)),
        }
    }
    assert_eq!(files(folder), before);
}

#[test]
fn changed_orders_are_refused() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let (car, folder) = (&mut members[0], place.path("car1"));
    let fresh = card(&KeyFolder::open(&folder, None).unwrap());
    let admitted = invite(&mut base, &place.keys("bus")).notices;
    refuses_all(car, &folder, &admitted[0], 5);
    car.apply(&admitted[0]).unwrap();
    refuses_all(car, &folder, &admitted[1], 1);
    car.apply(&admitted[1]).unwrap();
    for notices in [
        base.rotate().unwrap(),
        base.advance().unwrap(),
        base.set_beater(Some(&[3; 32])).unwrap(),
        base.revoke(&[members_slot(2)]).unwrap(),
    ] {
        refuses_all(car, &folder, &notices[0], 1);
        apply(car, &notices).unwrap();
    }
    for notices in [base.heal(&[fresh], false).unwrap().notices, base.renew(None).unwrap()] {
        refuses_all(car, &folder, &notices[0], 3);
        apply(car, &notices).unwrap();
    }
    assert_eq!((car.orders(), car.roster()), (base.orders(), base.roster()));
    // Replays of all that was ever said change nothing.
    let before = files(&folder);
    for notice in base.notices(0).unwrap() {
        assert!(car.apply(&notice).unwrap().is_empty());
    }
    assert_eq!(files(&folder), before);
}

fn members_slot(number: u16) -> sealane_seal::Slot {
    sealane_seal::Slot::new(number).unwrap()
}

#[test]
fn orders_that_come_too_early_wait_for_those_before_them() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let one = invite(&mut base, &place.keys("bus")).notices;
    let two = invite(&mut base, &place.keys("van")).notices;
    let three = base.rotate().unwrap();
    let held = [GroupChange::Held { missing: car.orders() }];
    for early in [&one[1], &two[1], &two[0], &three[0]] {
        assert_eq!(car.apply(early).unwrap(), held);
        assert_eq!(named(car.check_sealing()), "Behind");
    }
    assert_eq!(car.apply(&one[0]).unwrap().len(), 5, "all of them have their turn");
    assert_eq!((car.roster(), car.orders()), (base.roster(), base.orders()));
    car.sender().unwrap();
}

/// More than are held come early: the earliest are kept, and the others may come again.
#[test]
fn no_more_orders_are_held_than_the_bound() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let car = &mut members[0];
    let bound = sealane_group::limits::MAX_ORDERS_HELD;
    let given: Vec<GroupNotice> =
        (0..bound + 10).flat_map(|_| base.set_beater(None).unwrap()).collect();
    for notice in given[1..].iter().rev() {
        assert_eq!(car.apply(notice).unwrap(), [GroupChange::Held { missing: car.orders() }]);
    }
    let told = car.apply(&given[0]).unwrap();
    let stands = GroupChange::Held { missing: car.orders() };
    assert_eq!((told.len(), told.last()), (bound + 1, Some(&stands)));
    assert_eq!(named(car.check_sealing()), "Behind");
    apply(car, &given).unwrap();
    assert_eq!(car.orders(), base.orders());
    car.check_sealing().unwrap();
}

/// Orders that a process holds and another has obeyed do not stand in the way of later orders.
#[test]
fn orders_that_another_process_has_obeyed_are_held_no_more() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let (one, mut two) = (&mut members[0], reopen(&place.path("car1")));
    let bound = sealane_group::limits::MAX_ORDERS_HELD;
    let given: Vec<GroupNotice> =
        (0..bound + 3).flat_map(|_| base.set_beater(None).unwrap()).collect();
    for notice in &given[1..=bound] {
        one.apply(notice).unwrap();
    }
    apply(&mut two, &given[..=bound]).unwrap();
    let missing = two.orders();
    assert_eq!(one.apply(&given[bound + 2]).unwrap(), [GroupChange::Held { missing }]);
    assert_eq!(one.apply(&given[bound + 1]).unwrap().len(), 2);
    assert_eq!(one.orders(), base.orders());
}

#[test]
fn orders_of_members_and_of_other_groups_are_refused() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let (bus, notices) = join(&mut base, &place.keys("bus"));
    apply(&mut car, &notices).unwrap();
    let before = files(&place.path("car"));

    // A member seals the authority's own words, under the authority's signature of another order.
    let signed = base.notices(0).unwrap().pop().unwrap();
    let signature = signed.as_bytes().last_chunk::<64>().unwrap();
    let mut sender = bus.sender().unwrap();
    let control = Binding::stream(&base.control_topic());
    for (class, data_type, kind) in [
        (Class::Signed, 4, FrameKind::Control),
        (Class::Signed, 1, FrameKind::Control),
        (Class::Group, 4, FrameKind::Control),
        (Class::Signed, 4, FrameKind::Message),
        (Class::Signed, 3, FrameKind::Control),
    ] {
        let fields = HeaderFields { kind, ..sender.fields(class, data_type) };
        let number = car.orders().to_be_bytes();
        let advance = [&number[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
        let mut buf = FrameBuf::new();
        let frame = sender.seal(&fields, &control, &advance, &mut buf).unwrap();
        let bytes = [&[1], &number[..], frame, signature].concat();
        let outcome = GroupNotice::from_bytes(&bytes).and_then(|notice| car.apply(&notice));
        assert_eq!(named(outcome), "DocumentSignature");
    }

    let mut other = place.keys("other").new_group("boats", NewGroup::default()).unwrap();
    let (mut boat, _) = join(&mut other, &place.keys("boat"));
    for notices in [other.rotate().unwrap(), invite(&mut other, &place.keys("b2")).notices] {
        for notice in notices {
            assert_eq!(named(car.apply(&notice)), "OtherGroup");
        }
    }
    assert_eq!(named(car.apply(&other.renew(None).unwrap()[0])), "OtherGroup");
    assert!(boat.apply(&base.rotate().unwrap()[0]).is_err());
    assert_eq!(files(&place.path("car")), before);
}

#[test]
fn one_card_is_invited_once() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let card = card(&keys);
    let invited = base.invite(&card, PastSecrets::All).unwrap();
    keys.join(&invited.invitation, None, None).unwrap();
    let before = files(&place.path("base"));
    // The card is refused if anybody brings it again, also after a restart. So a recorded card gets
    // no second slot.
    assert_eq!(named(base.invite(&card, PastSecrets::All)), "UnknownCard");
    assert_eq!(named(reopen(&place.path("base")).invite(&card, PastSecrets::None)), "UnknownCard");
    assert_eq!(files(&place.path("base")), before);
}

/// The error for each file of a folder that was changed.
#[test]
fn damaged_files_are_named() {
    let place = Place::quick();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (car, _) = join(&mut base, &keys);
    car.sender().unwrap();
    keys.card().unwrap();
    let root = place.path("car");
    let open = || {
        let keys = KeyFolder::open(&root, None)?;
        keys.group("fleet")?.sender()?;
        keys.card().map(|_| ())
    };
    let of_files = ["DamagedFile", "NewerVersion", "OlderVersion", "PassphraseMissing"];
    for (name, step) in
        [("identity", 1), ("cards", 3), ("groups/fleet/group", 17), ("groups/fleet/counters", 5)]
    {
        let path = root.join(name);
        let whole = fs::read(&path).unwrap();
        for (at, changed) in changed(&whole, step) {
            // In place, so that the file stays the one it was.
            fs::write(&path, &changed).unwrap();
            match open() {
                // Counters are the order of messages and nothing else.
                Ok(()) => assert!(name.ends_with("counters"), "{name} at {at} was taken"),
                Err(error) => assert!(of_files.contains(&error.info().name), "{name}: {error}"),
            }
            fs::write(&path, &whole).unwrap();
        }
    }
    open().unwrap();
}

#[test]
fn changed_backups_are_refused() {
    let place = Place::quick();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    join(&mut base, &keys);
    let backup = keys.backup(None).unwrap();
    let root = place.path("restored");
    for (at, changed) in changed(&backup, 3) {
        let names = ["MalformedDocument", "NewerVersion", "OlderVersion", "PassphraseMissing"];
        is_one_of(KeyFolder::restore(&root, &changed, None), &names, at);
    }
    assert!(!root.exists(), "a refused backup left something behind");
    KeyFolder::restore(&root, &backup, None).unwrap();
}
