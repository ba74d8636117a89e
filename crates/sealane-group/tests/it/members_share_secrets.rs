//! From cards and invitations to messages that all members open, through every kind of order.

use crate::shared::{Place, apply, invite, invite_with, join, open, seal};
use sealane_frame::FrameError;
use sealane_group::{
    Change, EpochSource, Error, KeyFolder, NewGroup, Past, read_orders, write_orders,
};
use sealane_seal::{Class, Epoch, Error as SealError, Slot};

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

#[test]
fn members_open_what_members_seal() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let (mut bus, notices) = join(&mut base, &place.keys("bus"));
    let told = apply(&mut car, &notices).unwrap();
    assert_eq!(told[1], Change::Admitted { slot: slot(2), replaces: None });
    assert_eq!(apply(&mut car, &notices).unwrap(), [Change::Nothing, Change::Nothing]);
    assert_eq!(car.roster(), base.roster());
    assert_eq!(bus.roster(), base.roster());
    assert_eq!(car.tag(), bus.tag());

    let mut readers = [&base, &car, &bus].map(|member| member.opener().unwrap());
    for (at, member) in [&base, &car, &bus].into_iter().enumerate() {
        let mut sender = member.sender().unwrap();
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            let frame = seal(&mut sender, class, b"hello");
            for reader in &mut readers {
                assert_eq!(open(reader, &frame).unwrap(), b"hello");
            }
        }
        let name = ["base", "car", "bus"][at];
        assert_eq!(base.find(member.source().unwrap()).unwrap().name(), name);
        assert_eq!(base.roster().find(name).unwrap().slot(), member.slot());
    }

    let advanced = base.advance().unwrap();
    let told = apply(&mut car, &advanced).unwrap();
    assert_eq!(told, [Change::Advanced(Epoch(1))]);
    let rotated = base.rotate().unwrap();
    assert!(matches!(bus.apply(&rotated[0]), Err(Error::OrderMissing)));
    apply(&mut bus, &advanced).unwrap();
    for member in [&mut car, &mut bus] {
        assert_eq!(
            apply(member, &rotated).unwrap(),
            [Change::Rekeyed { epoch: Epoch(2), removed: vec![] }]
        );
    }
    let frame = seal(&mut car.sender().unwrap(), Class::Signed, b"later");
    let [_, _, mut reader] = readers;
    assert_eq!(open(&mut reader, &frame), Err(FrameError::Seal(SealError::EpochUnknown)));
    bus.refresh(&mut reader).unwrap();
    assert_eq!(open(&mut reader, &frame).unwrap(), b"later");
}

#[test]
fn a_sender_follows_the_group_and_a_folder_reopens() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (mut car, _) = join(&mut base, &keys);
    let mut sender = car.sender().unwrap();
    apply(&mut car, &base.rotate().unwrap()).unwrap();
    assert_eq!(sender.epoch(), Epoch(0));
    sender.follow().unwrap();
    assert_eq!(sender.epoch(), Epoch(1));
    drop((car, keys));

    let keys = KeyFolder::open(&place.path("car"), None).unwrap();
    assert_eq!(keys.groups().unwrap(), ["fleet"]);
    let car = keys.group("fleet").unwrap();
    assert_eq!(car.epochs().newest(), Epoch(1));
    let frame = seal(&mut car.sender().unwrap(), Class::Group, b"again");
    assert_eq!(open(&mut base.opener().unwrap(), &frame).unwrap(), b"again");
    assert!(matches!(keys.group("boats"), Err(Error::UnknownGroup(_))));
    keys.leave("fleet").unwrap();
    assert!(keys.groups().unwrap().is_empty());
}

#[test]
fn a_late_member_reads_the_past_as_far_as_it_was_handed() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let early = seal(&mut base.sender().unwrap(), Class::Group, b"early");
    base.rotate().unwrap();
    for (name, past, expected) in [
        ("all", Past::All, Ok(b"early".to_vec())),
        ("none", Past::None, Err(FrameError::Seal(SealError::EpochUnknown))),
    ] {
        let keys = place.keys(name);
        let invited = invite_with(&mut base, &keys, past);
        let member = keys.join(&invited.invitation, None, None).unwrap();
        assert_eq!(open(&mut member.opener().unwrap(), &early), expected, "{name}");
    }
}

#[test]
fn a_pair_has_two_members_and_class_p() {
    let place = Place::new();
    let options = NewGroup { is_pair: true, ..NewGroup::default() };
    let mut one = place.keys("one").new_group("us", options).unwrap();
    let (two, _) = join(&mut one, &place.keys("two"));
    let frame = seal(&mut two.sender().unwrap(), Class::Peer, b"psst");
    assert_eq!(open(&mut one.opener().unwrap(), &frame).unwrap(), b"psst");
    let card = place.keys("three").card().unwrap();
    let card = sealane_group::Card::from_bytes(&card).unwrap();
    assert!(matches!(one.invite(&card, Past::All), Err(Error::RosterFull)));
}

#[test]
fn who_joins_again_gets_a_new_slot_and_the_old_is_retired() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (first, _) = join(&mut base, &keys);
    let (mut bus, _) = join(&mut base, &place.keys("bus"));
    let early = seal(&mut first.sender().unwrap(), Class::Signed, b"early");
    base.rotate().unwrap();
    let invited = invite_with(&mut base, &keys, Past::None);
    assert_eq!((invited.slot, invited.replaces), (slot(3), Some(slot(1))));
    let second = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(second.slot(), slot(3));
    assert_eq!(open(&mut second.opener().unwrap(), &early).unwrap(), b"early");
    apply(&mut bus, &base.notices(0).unwrap()).unwrap();
    assert_eq!(bus.roster(), base.roster());
    assert_eq!(bus.roster().members().count(), 3);
    let frame = seal(&mut second.sender().unwrap(), Class::Signed, b"again");
    assert_eq!(open(&mut bus.opener().unwrap(), &frame).unwrap(), b"again");
}

#[test]
fn orders_travel_as_one_file() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let mut notices = invite(&mut base, &place.keys("bus")).notices;
    notices.extend(base.rotate().unwrap());
    let file = write_orders(&notices);
    assert_eq!(read_orders(&file).unwrap(), notices);
    apply(&mut car, &read_orders(&file).unwrap()).unwrap();
    assert_eq!(car.epochs().newest(), Epoch(1));
    for end in 0..file.len() {
        let cut = read_orders(&file[..end]);
        assert!(cut.is_err() || cut.unwrap().len() < notices.len(), "{end}");
    }
}
