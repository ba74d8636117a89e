//! One short notice shuts a member out before the long order comes: of everybody who hears it, by
//! the authority's word alone, and until an order says otherwise.

use std::fs;
use std::slice::from_ref;

use sealane_frame::FrameBuf;
use sealane_group::{
    EpochSource, GroupChange, GroupMember, GroupNotice, LiveReader, NewGroup, RemovalNotice,
    read_orders, write_orders,
};
use sealane_seal::{Binding, Class, Epoch};

use crate::shared::{Place, apply, clone, join, named, reopen, state as kept};

/// An authority, a member, and one that is to be removed.
fn fleet(place: &Place) -> (GroupMember, GroupMember, GroupMember) {
    let (base, members) = place.fleet(3, NewGroup::default());
    let [car, thief] = members.try_into().unwrap();
    (base, car, thief)
}

fn hear(reader: &mut LiveReader, frames: &[Vec<u8>]) -> Vec<&'static str> {
    let hear = |frame: &Vec<u8>| match reader.open(&Binding::link(), &mut frame.clone(), 0) {
        Ok(_) => "heard",
        Err(error) => error.info().name,
    };
    frames.iter().map(hear).collect()
}

/// An announcement, and frames behind it.
fn speak(member: &GroupMember, count: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut sender, mut buf) = (member.sender().unwrap(), FrameBuf::new());
    let announced = sender.announce(&mut buf).unwrap().to_vec();
    let (fields, link) = (sender.fields(Class::Group, 1), Binding::link());
    let frame =
        |n: usize| sender.seal(&fields, &link, &[n as u8], &mut FrameBuf::new()).unwrap().to_vec();
    (announced, (0..count).map(frame).collect())
}

fn removal(base: &GroupMember) -> (GroupNotice, RemovalNotice) {
    let notices = base.removals(0).unwrap();
    let notice = notices.last().unwrap().clone();
    let removal = notice.removes().unwrap();
    (notice, removal)
}

#[test]
fn nothing_of_the_member_is_taken_from_then_on_and_the_others_go_on() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    let (announced, frames) = speak(&thief, 4);
    let mut reader = car.live_reader().unwrap();
    reader.announced(&mut announced.clone(), 0).unwrap();
    assert_eq!(hear(&mut reader, &frames[..2]), ["heard", "heard"]);

    let orders = base.revoke(&[thief.slot()]).unwrap();
    let (notice, removal) = removal(&base);
    assert_eq!(notice.as_bytes().len(), 91);
    assert_eq!((removal.slot, removal.order, removal.mark), (thief.slot(), car.orders(), 0));
    assert_eq!(apply(&mut car, from_ref(&notice)).unwrap(), [GroupChange::Leaving(removal)]);
    assert_eq!(apply(&mut car, from_ref(&notice)).unwrap(), [], "again does nothing");
    reader.follow(&car).unwrap();
    assert_eq!(hear(&mut reader, &frames[2..]), ["LeavingMember", "LeavingMember"]);
    let (again, _) = speak(&thief, 0);
    assert_eq!(named(reader.announced(&mut again.clone(), 0)), "LeavingMember", "a new start");
    assert!(!car.takes(thief.slot(), Epoch(0), 0) && car.takes(car.slot(), Epoch(0), 0));

    // It is no order: the others are heard, and seal as before until the fresh secret comes.
    assert!(car.check_sealing().is_ok() && car.epochs().newest() == Epoch(0));
    let (announced, frames) = speak(&base, 1);
    assert!(reader.announced(&mut announced.clone(), 0).is_err(), "sealed in the next epoch");
    assert_eq!(hear(&mut reader, &frames), ["EpochUnknown"]);

    assert_eq!(car.leaving().len(), 1);
    let changes = apply(&mut car, &orders).unwrap();
    assert!(
        matches!(&changes[..], [GroupChange::Rekeyed { removed, .. }] if *removed == [thief.slot()])
    );
    assert!(car.leaving().is_empty());
    assert_eq!(apply(&mut car, &[notice]).unwrap(), [], "the order has said more");
    assert!(car.leaving().is_empty());
}

#[test]
fn it_holds_over_restarts_for_as_long_as_the_order_does_not_come() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    let (announced, frames) = speak(&thief, 1);
    base.revoke(&[thief.slot()]).unwrap();
    let (notice, removal) = removal(&base);
    apply(&mut car, &[notice]).unwrap();
    for _ in 0..3 {
        let car = reopen(&place.path("car1"));
        assert_eq!(car.leaving().iter().map(|one| one.removal).collect::<Vec<_>>(), [removal]);
        assert!(car.leaving()[0].came_ms > 0);
        let mut reader = car.live_reader().unwrap();
        assert_eq!(named(reader.announced(&mut announced.clone(), 0)), "LeavingMember");
        assert_eq!(hear(&mut reader, &frames), ["Unannounced"]);
    }
    // Another process of the folder sees it, too.
    let mut other = reopen(&place.path("car1"));
    other.reload().unwrap();
    assert_eq!(other.leaving().len(), 1);
}

#[test]
fn what_the_authority_has_not_signed_does_nothing() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    base.revoke(&[thief.slot()]).unwrap();
    let (notice, _) = removal(&base);
    let before = kept(&place.path("car1"));
    for at in 0..notice.as_bytes().len() {
        let mut bad = notice.as_bytes().to_vec();
        bad[at] ^= 1;
        let Ok(bad) = GroupNotice::from_bytes(&bad) else { continue };
        assert!(car.apply(&bad).is_err(), "byte {at}");
    }
    for length in 0..notice.as_bytes().len() {
        assert!(GroupNotice::from_bytes(&notice.as_bytes()[..length]).is_err(), "{length}");
    }
    // A member's own hand, and the authority of another group with the same members.
    let mut own = place.keys("own").new_group("fleet", NewGroup::default()).unwrap();
    let (rover, _) = join(&mut own, &place.keys("rover"));
    (0..4).for_each(|_| drop(own.rotate().unwrap()));
    own.revoke(&[rover.slot()]).unwrap();
    let (foreign, _) = removal(&own);
    assert_eq!(named(car.apply(&foreign)), "DocumentSignature");
    assert!(car.leaving().is_empty());
    assert_eq!(kept(&place.path("car1")), before);
    assert_eq!(named(thief.removals(0)), "NotAuthority");
}

#[test]
fn a_member_that_is_behind_hears_it_too() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    let missed = base.rotate().unwrap();
    let orders = base.revoke(&[thief.slot()]).unwrap();
    let (notice, removal) = removal(&base);
    assert_eq!(removal.epoch, Epoch(1));
    assert_eq!(apply(&mut car, &[notice]).unwrap(), [GroupChange::Leaving(removal)]);
    assert!(!car.takes(thief.slot(), Epoch(0), 0));
    apply(&mut car, &missed).unwrap();
    assert_eq!(car.leaving().len(), 1, "that was another order");
    apply(&mut car, &orders).unwrap();
    assert!(car.leaving().is_empty() && car.epochs().newest() == Epoch(2));
}

#[test]
fn an_order_that_removes_nobody_ends_it_and_that_is_told() {
    let place = Place::quick();
    let (base, mut car, thief) = fleet(&place);
    // The authority is put back to before the removal, and gives another order in its place.
    drop(base);
    clone(&place.path("base"), &place.path("before"));
    reopen(&place.path("base")).revoke(&[thief.slot()]).unwrap();
    let (notice, removal) = removal(&reopen(&place.path("base")));
    // The notice was kept there, and what should have followed it was not.
    let file = format!("groups/fleet/orders/{:08}.{}", removal.order, thief.slot().number());
    fs::copy(place.path("base").join(&file), place.path("before").join(&file)).unwrap();
    let mut before = reopen(&place.path("before"));
    let other = before.rotate().unwrap();
    assert!(before.removals(0).unwrap().is_empty(), "it is not told to anybody");
    apply(&mut car, &[notice]).unwrap();
    let changes = apply(&mut car, &other).unwrap();
    let stays = GroupChange::Stays { slot: thief.slot(), order: removal.order };
    assert_eq!(changes.first(), Some(&stays), "{changes:?}");
    assert!(car.leaving().is_empty() && car.takes(thief.slot(), Epoch(1), 0));
    assert!(reopen(&place.path("car1")).leaving().is_empty());
}

#[test]
fn what_was_sent_below_the_mark_is_taken() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    let (announced, frames) = speak(&thief, 4);
    let mut reader = car.live_reader().unwrap();
    reader.announced(&mut announced.clone(), 0).unwrap();
    let mut second = frames[1].clone();
    let second = reader.open(&Binding::link(), &mut second, 0).unwrap();
    let mark = second.opened.counter() + 1;
    base.revoke_at(&[sealane_group::MemberRemoval { slot: thief.slot(), mark }]).unwrap();
    let (notice, _) = removal(&base);
    apply(&mut car, &[notice]).unwrap();
    reader.follow(&car).unwrap();
    assert_eq!(hear(&mut reader, &frames[..1]), ["heard"], "late, and sent before");
    assert_eq!(hear(&mut reader, &frames[2..]), ["LeavingMember", "LeavingMember"]);
    assert!(
        car.takes(thief.slot(), Epoch(0), mark - 1) && !car.takes(thief.slot(), Epoch(0), mark)
    );
    assert!(!car.takes(thief.slot(), Epoch(1), 0), "nor of another epoch");
}

#[test]
fn the_authority_keeps_them_for_those_who_missed_them() {
    let place = Place::quick();
    let (mut base, mut car, thief) = fleet(&place);
    let given = base.orders();
    base.revoke(&[thief.slot()]).unwrap();
    base.rotate().unwrap();
    assert_eq!(reopen(&place.path("base")).removals(0).unwrap().len(), 1);
    assert!(base.removals(given + 1).unwrap().is_empty(), "the order of an earlier number");
    let (notice, _) = removal(&base);
    // It travels in an order file as the others do, and does nothing to its author.
    let file = write_orders(from_ref(&notice));
    assert_eq!(read_orders(&file).unwrap(), from_ref(&notice));
    assert_eq!(apply(&mut base, &[notice]).unwrap(), []);
    let all = [base.removals(0).unwrap(), base.notices(given).unwrap()].concat();
    apply(&mut car, &all).unwrap();
    assert_eq!(car.epochs().newest(), Epoch(2));
}
