//! From cards and invitations to messages that all members open, through every kind of order.

use crate::shared::{Place, apply, card, invite, invite_with, join, named, open, seal};
use sealane_frame::FrameError;
use sealane_group::{
    EpochSource, Error, GroupChange, KeyFolder, NewGroup, PastSecrets, read_orders, write_orders,
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
    let admitted = GroupChange::Admitted { slot: slot(2), replaces: None };
    assert_eq!(apply(&mut car, &notices).unwrap(), [GroupChange::Certified(slot(2)), admitted]);
    assert!(apply(&mut car, &notices).unwrap().is_empty());
    assert_eq!(car.roster(), base.roster());
    assert_eq!(bus.roster(), base.roster());
    assert_eq!((car.tag(), car.orders()), (bus.tag(), base.orders()));

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
    assert_eq!(told, [GroupChange::Advanced(Epoch(1))]);
    let rotated = base.rotate().unwrap();
    for member in [&mut car, &mut bus] {
        apply(member, &advanced).unwrap();
        let told = apply(member, &rotated).unwrap();
        assert_eq!(told, [GroupChange::Rekeyed { epoch: Epoch(2), removed: vec![] }]);
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
    let before = (sender.context(), sender.orders());
    sender.follow().unwrap();
    assert_eq!((sender.context(), sender.orders()), before, "nothing has changed");
    apply(&mut car, &base.rotate().unwrap()).unwrap();
    assert_eq!(sender.epoch(), Epoch(0));
    sender.follow().unwrap();
    assert_eq!((sender.epoch(), sender.orders()), (Epoch(1), base.orders()));
    assert_ne!(sender.context(), before.0);
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

/// A sender that nobody tells of orders hears of them where its block of counters ends.
#[test]
fn a_sender_follows_by_itself_in_the_end() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let mut senders = [0, 1].map(|at: usize| members[at].sender().unwrap());
    let notices = base.revoke(&[slot(2)]).unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &notices).unwrap()));
    let (fields, binding) = (senders[0].fields(Class::Group, 1), crate::shared::log());
    let mut buf = sealane_frame::FrameBuf::new();
    for _ in 0..1024 {
        for sender in &mut senders {
            sender.seal(&fields, &binding, b"x", &mut buf).unwrap();
        }
    }
    let [stays, gone] = &mut senders;
    assert_eq!((stays.epoch(), gone.epoch()), (Epoch(0), Epoch(0)));
    stays.seal(&fields, &binding, b"x", &mut buf).unwrap();
    assert_eq!(stays.epoch(), Epoch(1));
    assert_eq!(named(gone.seal(&fields, &binding, b"x", &mut buf).map(|_| ())), "RemovedMember");
    // A sender of a member that is behind is stopped there as well.
    let mut sender = members[0].sender().unwrap();
    let missing = base.rotate().unwrap();
    let held = base.rotate().unwrap();
    apply(&mut members[0], &held).unwrap();
    let sealed = (0..5000).find_map(|at| {
        let outcome = sender.seal(&fields, &binding, b"x", &mut buf);
        outcome.err().map(|error| (at, error.info().name))
    });
    assert_eq!(sealed, Some((1024, "Behind")));
    apply(&mut members[0], &missing).unwrap();
    sender.seal(&fields, &binding, b"x", &mut buf).unwrap();
    assert_eq!(sender.epoch(), Epoch(3));
}

#[test]
fn who_joins_late_obeys_what_was_given_meanwhile() {
    let place = Place::new();
    let (mut base, _) = place.fleet(2, NewGroup::default());
    let late = ["late", "gone"].map(|name| {
        let keys = place.keys(name);
        let invited = invite(&mut base, &keys);
        (keys, invited)
    });
    base.rotate().unwrap();
    base.revoke(&[late[1].1.slot]).unwrap();
    base.set_beater(Some(&[1; 32])).unwrap();
    let [mut stays, mut gone] = late.map(|(keys, invited)| {
        let member = keys.join(&invited.invitation, None, None).unwrap();
        assert_eq!(member.epochs().newest(), Epoch(0));
        member
    });
    let notices = base.notices(0).unwrap();
    apply(&mut stays, &notices).unwrap();
    assert_eq!((stays.orders(), stays.roster()), (base.orders(), base.roster()));
    assert_eq!(named(apply(&mut gone, &notices)), "RemovedMember");
    assert!(gone.is_removed() && gone.epochs().newest() < base.epochs().newest());
}

#[test]
fn a_late_member_reads_the_past_as_far_as_it_was_handed() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let mut frames = vec![seal(&mut base.sender().unwrap(), Class::Group, b"early")];
    base.rotate().unwrap();
    for (name, past, held) in [("all", PastSecrets::All, 0..2), ("none", PastSecrets::None, 2..3)] {
        frames.push(seal(&mut base.sender().unwrap(), Class::Group, b"just before"));
        let keys = place.keys(name);
        let invited = invite_with(&mut base, &keys, past);
        let member = keys.join(&invited.invitation, None, None).unwrap();
        let epochs: Vec<u64> = member.epochs().held().map(|(epoch, _)| epoch.0).collect();
        assert_eq!(epochs, held.collect::<Vec<u64>>(), "{name}");
        let mut reader = member.opener().unwrap();
        for frame in &frames {
            let opened = open(&mut reader, frame);
            let closed = FrameError::Seal(SealError::EpochUnknown);
            assert_eq!(opened.err(), (past == PastSecrets::None).then_some(closed), "{name}");
        }
    }
    // The newcomer who reads nothing of the past has begun an epoch: the others are told.
    assert_eq!(base.epochs().newest(), Epoch(2));
    let mut all = KeyFolder::open(&place.path("all"), None).unwrap().group("fleet").unwrap();
    let told = apply(&mut all, &base.notices(0).unwrap()).unwrap();
    assert_eq!(told[0], GroupChange::Rekeyed { epoch: Epoch(2), removed: vec![] });
    assert_eq!(all.roster(), base.roster());
}

#[test]
fn a_pair_has_two_members_and_class_p() {
    let place = Place::new();
    let options = NewGroup { is_pair: true, ..NewGroup::default() };
    let mut one = place.keys("one").new_group("us", options).unwrap();
    let (two, _) = join(&mut one, &place.keys("two"));
    let frame = seal(&mut two.sender().unwrap(), Class::Peer, b"psst");
    assert_eq!(open(&mut one.opener().unwrap(), &frame).unwrap(), b"psst");
    let refused = one.invite(&card(&place.keys("three")), PastSecrets::All);
    assert!(matches!(refused, Err(Error::RosterFull)));
}

#[test]
fn who_joins_again_gets_a_new_slot_and_the_old_is_retired() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (first, _) = join(&mut base, &keys);
    let (mut bus, _) = join(&mut base, &place.keys("bus"));
    let early = seal(&mut first.sender().unwrap(), Class::Signed, b"early");
    let invited = invite(&mut base, &keys);
    assert_eq!((invited.slot, invited.replaces), (slot(3), Some(slot(1))));
    let second = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!((second.slot(), second.epochs().newest()), (slot(3), Epoch(1)));
    assert_eq!(open(&mut second.opener().unwrap(), &early).unwrap(), b"early");
    let told = apply(&mut bus, &invited.notices).unwrap();
    assert_eq!(
        told,
        [
            GroupChange::Rekeyed { epoch: Epoch(1), removed: vec![slot(1)] },
            GroupChange::Certified(slot(3)),
            GroupChange::Admitted { slot: slot(3), replaces: Some(slot(1)) },
        ]
    );
    assert_eq!(bus.roster(), base.roster());
    assert_eq!(bus.roster().members().count(), 3);
    let frame = seal(&mut second.sender().unwrap(), Class::Signed, b"again");
    assert_eq!(open(&mut bus.opener().unwrap(), &frame).unwrap(), b"again");
    // It keeps what it held even where nothing of the past is handed.
    let invited = invite_with(&mut base, &keys, PastSecrets::None);
    let third = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(open(&mut third.opener().unwrap(), &early).unwrap(), b"early");
}

#[test]
fn nobody_is_invited_under_a_name_that_looks_like_a_members() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    join(&mut base, &place.keys("car1"));
    let stranger = place.keys("stranger");
    let as_name = |name| {
        let card = stranger.card_as(Some(name)).unwrap();
        sealane_group::IdentityCard::from_bytes(&card).unwrap()
    };
    for name in ["car1", "CAR1", "carl", " car1 ", "\u{441}ar1", "b\u{430}se", "Base"] {
        let refused = base.invite(&as_name(name), PastSecrets::All);
        assert_eq!(named(refused), "NameTaken", "{name}");
    }
    let invited = base.invite(&as_name("car2"), PastSecrets::All).unwrap();
    // A name is free again when its member is gone.
    base.revoke(&[invited.slot]).unwrap();
    let again = place.keys("another").card_as(Some("Car2")).unwrap();
    base.invite(&sealane_group::IdentityCard::from_bytes(&again).unwrap(), PastSecrets::All)
        .unwrap();
    // And nobody is the authority a second time.
    let own = KeyFolder::open(&place.path("base"), None).unwrap();
    assert_eq!(named(base.invite(&card(&own), PastSecrets::All)), "GroupRefused");
}

#[test]
fn orders_travel_as_one_file() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let mut notices = invite(&mut base, &place.keys("bus")).notices;
    notices.extend(base.rotate().unwrap());
    notices.push(base.heartbeat().unwrap());
    let file = write_orders(&notices);
    assert_eq!(read_orders(&file).unwrap(), notices);
    apply(&mut car, &read_orders(&file).unwrap()).unwrap();
    assert_eq!(car.epochs().newest(), Epoch(1));
    for end in 0..file.len() {
        let cut = read_orders(&file[..end]);
        assert!(cut.is_err() || cut.unwrap().len() < notices.len(), "{end}");
    }
}
