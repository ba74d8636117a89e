//! A stolen folder of a forward-secret group opens nothing of an epoch that was read before.

use crate::shared::{Place, apply, copy, forward_secret, invite, join, named, open, seal};
use sealane_group::{EpochSource, GroupChange, KeyFolder, NewGroup};
use sealane_seal::{Class, Epoch};

#[test]
fn a_stolen_state_opens_nothing_of_an_earlier_epoch() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", forward_secret()).unwrap();
    let keys = place.keys("car");
    let invited = invite(&mut base, &keys);
    let mut car = keys.join(&invited.invitation, None, None).unwrap();
    let mut tapped = Vec::new();
    let mut orders = Vec::new();
    for epoch in 0..6_u64 {
        tapped.push(seal(&mut base.sender().unwrap(), Class::Group, b"secret"));
        let notices = if epoch % 2 == 0 { base.rotate() } else { base.advance() }.unwrap();
        apply(&mut car, &notices).unwrap();
        orders.extend(notices);
    }
    let mut reader = car.opener().unwrap();
    assert_eq!(open(&mut reader, &tapped[0]).unwrap(), b"secret");
    car.passed(Epoch(4)).unwrap();
    car.refresh(&mut reader).unwrap();
    assert_eq!(open(&mut reader, &tapped[4]).unwrap(), b"secret");
    assert!(open(&mut reader, &tapped[3]).is_err());

    // The thief has the folder and everything that was ever sent, the invitation too.
    copy(&place.path("car"), &place.path("stolen"));
    let stolen = KeyFolder::open(&place.path("stolen"), None).unwrap();
    let mut thief = stolen.group("fleet").unwrap();
    assert!(stolen.join(&invited.invitation, None, None).is_err());
    for order in &orders {
        let _ = thief.apply(order);
    }
    let mut reader = thief.opener().unwrap();
    for frame in &tapped[..4] {
        assert_eq!(open(&mut reader, frame).unwrap_err().info().code, "SL-SEAL-08");
    }
    assert_eq!(open(&mut reader, &tapped[5]).unwrap(), b"secret");
    let held: Vec<u64> = thief.epochs().held().map(|(epoch, _)| epoch.0).collect();
    assert_eq!(held, [4, 5, 6]);
}

/// Orders are read again from their beginning: those of epochs that are erased are passed over.
#[test]
fn orders_of_erased_epochs_are_passed_over() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", forward_secret()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    for epoch in 1..=3 {
        base.advance().unwrap();
        apply(&mut car, &base.notices(0).unwrap()).unwrap();
        car.passed(Epoch(epoch)).unwrap();
    }
    let held: Vec<u64> = car.epochs().held().map(|(epoch, _)| epoch.0).collect();
    assert_eq!(held, [3], "the secrets of all earlier orders are gone");
    assert!(apply(&mut car, &base.notices(0).unwrap()).unwrap().is_empty());
    // A message of an unknown epoch waits for an order, and is not passed over.
    let missing = base.orders();
    base.rotate().unwrap();
    let ahead = base.rotate().unwrap();
    assert_eq!(apply(&mut car, &ahead).unwrap(), [GroupChange::Held { missing }]);
    assert_eq!(named(car.sender()), "Behind");
    assert_eq!(apply(&mut car, &base.notices(0).unwrap()).unwrap().len(), 2);
    assert_eq!(car.epochs().newest(), Epoch(5));
    car.sender().unwrap();
}

#[test]
fn a_group_that_keeps_its_history_keeps_it() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let early = seal(&mut base.sender().unwrap(), Class::Group, b"early");
    apply(&mut car, &base.rotate().unwrap()).unwrap();
    car.passed(Epoch(1)).unwrap();
    assert_eq!(open(&mut car.opener().unwrap(), &early).unwrap(), b"early");
    car.forget(Epoch(1)).unwrap();
    assert!(open(&mut car.opener().unwrap(), &early).is_err());
}
