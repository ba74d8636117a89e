//! Each order stands on those before it: two logs of one authority are told apart, and who obeyed
//! one of them reads nothing of who obeyed the other.

use sealane_group::{
    EpochSource, GroupChange, GroupHeartbeat, GroupMember, GroupNotice, KeyFolder, NewGroup,
    PastSecrets,
};
use sealane_seal::{Class, Epoch};

use crate::shared::{Place, apply, clone, invite, invite_with, named, open, reopen, seal};

/// Two copies of one authority's folder that no witness tells apart, and two members.
fn two_authorities(place: &Place) -> [GroupMember; 4] {
    let (base, members) = place.fleet(3, NewGroup::default());
    drop(base);
    for name in ["one", "two"] {
        clone(&place.path("base"), &place.path(name));
    }
    let [car, bus] = members.try_into().unwrap();
    [reopen(&place.path("one")), reopen(&place.path("two")), car, bus]
}

#[test]
fn an_order_of_another_log_is_refused_and_nothing_is_sealed_before_a_new_beginning() {
    let place = Place::quick();
    let [mut one, mut two, mut car, mut bus] = two_authorities(&place);
    // Neither order begins an epoch, nor says anything against the other.
    apply(&mut car, &one.set_beater(Some(&[1; 32])).unwrap()).unwrap();
    apply(&mut bus, &two.set_beater(Some(&[2; 32])).unwrap()).unwrap();
    assert_eq!(car.orders(), bus.orders());
    assert_ne!(car.head(), bus.head());
    let rotated = one.rotate().unwrap();
    apply(&mut car, &rotated).unwrap();
    assert_eq!(named(apply(&mut bus, &rotated)), "OrdersForked");
    assert_eq!((bus.orders(), bus.epochs().newest()), (car.orders() - 1, Epoch(0)));
    assert_eq!(named(bus.check_sealing()), "OrdersForked");
    // Over a restart, too, and whatever comes of either log.
    let mut bus = reopen(&place.path("car2"));
    assert_eq!(named(apply(&mut bus, &rotated)), "OrdersForked");
    apply(&mut bus, &two.rotate().unwrap()).unwrap();
    assert_eq!(named(bus.sender()), "OrdersForked");
    assert!(bus.urgent_sender().is_ok(), "two logs silence no call for help");
    assert_eq!(bus.epochs().newest(), car.epochs().newest());
    // The authority hears of the other one, and begins anew beyond both.
    for notice in one.notices(0).unwrap() {
        let _ = two.apply(&notice);
    }
    let renewed = two.renew(None).unwrap();
    for member in [&mut car, &mut bus] {
        apply(member, &renewed).unwrap();
        member.sender().unwrap();
    }
    assert_eq!([car.head(), bus.head()], [two.head(); 2]);
    let frame = seal(&mut car.sender().unwrap(), Class::Group, b"again");
    assert_eq!(open(&mut bus.opener().unwrap(), &frame).unwrap(), b"again");
}

#[test]
fn a_heartbeat_and_another_order_of_the_last_number_tell_as_much() {
    let place = Place::quick();
    let [mut one, mut two, mut car, mut bus] = two_authorities(&place);
    let given = one.set_beater(None).unwrap();
    let other = two.set_beater(Some(&[2; 32])).unwrap();
    for member in [&mut car, &mut bus] {
        apply(member, &given).unwrap();
        member.apply(&one.heartbeat().unwrap()).unwrap();
        apply(member, &given).unwrap();
        member.sender().unwrap();
    }
    assert_eq!(named(car.apply(&two.heartbeat().unwrap())), "OrdersForked");
    assert_eq!(named(apply(&mut bus, &other)), "OrdersForked");
    for name in ["car1", "car2"] {
        assert_eq!(named(reopen(&place.path(name)).sender()), "OrdersForked");
    }
    // A heartbeat that nobody has signed tells nothing.
    let mut copy = reopen(&place.path("base"));
    let mut forged = copy.heartbeat().unwrap().as_bytes().to_vec();
    forged[20] ^= 1;
    assert!(copy.apply(&GroupNotice::from_bytes(&forged).unwrap()).is_err());
    copy.rotate().unwrap();
}

/// Two copies of one backup begin anew under the same number and in the same epoch, and neither has
/// heard of the other.
#[test]
fn two_new_beginnings_of_one_number_are_told_apart() {
    let place = Place::quick();
    let (base, members) = place.fleet(3, NewGroup::default());
    drop(base);
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    let restored = |name: &str| {
        let keys = KeyFolder::restore(&place.path(name), &backup, None).unwrap();
        keys.group("fleet").unwrap()
    };
    let [mut one, mut two] = ["one", "two"].map(restored);
    let [first, second] = [&mut one, &mut two].map(|authority| authority.renew(None).unwrap());
    let [mut car, mut bus]: [GroupMember; 2] = members.try_into().unwrap();
    apply(&mut car, &[&first[..], &first].concat()).unwrap();
    apply(&mut bus, &second).unwrap();
    assert_eq!((car.orders(), car.epochs().newest()), (bus.orders(), bus.epochs().newest()));
    for (member, other, name) in [(&mut car, &second, "car1"), (&mut bus, &first, "car2")] {
        // An order that nobody has signed tells nothing.
        let mut forged = other[0].as_bytes().to_vec();
        *forged.last_mut().unwrap() ^= 1;
        let forged = GroupNotice::from_bytes(&forged).unwrap();
        assert_eq!(named(member.apply(&forged)), "DocumentSignature");
        member.sender().unwrap();
        assert_eq!(named(apply(member, other)), "OrdersForked");
        assert_eq!(named(reopen(&place.path(name)).sender()), "OrdersForked");
    }
    // One of the two hears of the other, and begins anew beyond both.
    assert_eq!(named(apply(&mut two, &first)), "CopiedFolder");
    let renewed = two.renew(None).unwrap();
    for member in [&mut car, &mut bus] {
        apply(member, &renewed).unwrap();
        member.sender().unwrap();
    }
}

/// The epochs of two logs have the same number, and even the secret that their orders carry may be
/// the same: it is the orders before that make the keys differ.
#[test]
fn members_of_two_logs_do_not_read_each_other() {
    let place = Place::quick();
    let [mut one, mut two, mut car, mut bus] = two_authorities(&place);
    apply(&mut car, &[one.set_beater(None).unwrap(), one.advance().unwrap()].concat()).unwrap();
    let beater = two.set_beater(Some(&[2; 32])).unwrap();
    apply(&mut bus, &[beater, two.advance().unwrap()].concat()).unwrap();
    assert_eq!([car.epochs().newest(), bus.epochs().newest()], [Epoch(1); 2]);
    // The one-way step from one secret leads to two.
    let first = |member: &GroupMember| *member.epochs().secret(Epoch(0)).unwrap().expose();
    let secret = |member: &GroupMember| *member.epochs().secret(Epoch(1)).unwrap().expose();
    assert_eq!(first(&car), first(&bus));
    assert_ne!(secret(&car), secret(&bus));
    assert_eq!([secret(&one), secret(&two)], [secret(&car), secret(&bus)]);
    let frame = seal(&mut car.sender().unwrap(), Class::Group, b"x");
    assert!(open(&mut bus.opener().unwrap(), &frame).is_err());
    // Members that are an order apart in one log read each other: nothing else is in a key.
    let mut late = reopen(&place.path("car1"));
    apply(&mut late, &one.set_beater(Some(&[3; 32])).unwrap()).unwrap();
    let frame = seal(&mut late.sender().unwrap(), Class::Group, b"y");
    assert_eq!(open(&mut car.opener().unwrap(), &frame).unwrap(), b"y");
}

#[test]
fn a_newcomer_goes_on_where_its_invitation_stands() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let mut given = base.rotate().unwrap();
    let keys = place.keys("new");
    let invited = invite_with(&mut base, &keys, PastSecrets::None);
    given.extend(invited.notices);
    let mut new = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!((new.head(), new.orders_floor()), (base.head(), base.orders()));
    let rotated = base.rotate().unwrap();
    given.extend(rotated.clone());
    apply(&mut members[0], &given).unwrap();
    apply(&mut new, &rotated).unwrap();
    assert_eq!([members[0].head(), new.head()], [base.head(); 2]);
    let frame = seal(&mut new.sender().unwrap(), Class::Signed, b"x");
    assert_eq!(open(&mut members[0].opener().unwrap(), &frame).unwrap(), b"x");
}

/// A member that was told orders out of turn and starts anew has not lost them.
#[test]
fn orders_that_come_early_wait_on_disk() {
    let place = Place::quick();
    let (mut base, members) = place.fleet(2, NewGroup::default());
    drop(members);
    let mut given = base.rotate().unwrap();
    given.extend(invite(&mut base, &place.keys("bus")).notices);
    given.extend(base.rotate().unwrap());
    let missing = given[0].number().unwrap();
    for notice in given.iter().skip(1).rev() {
        let told = reopen(&place.path("car1")).apply(notice).unwrap();
        assert_eq!(told, [GroupChange::Held { missing }]);
    }
    let mut car = reopen(&place.path("car1"));
    assert_eq!(apply(&mut car, &given[..1]).unwrap().len(), given.len());
    assert_eq!((car.orders(), car.head()), (base.orders(), base.head()));
    car.sender().unwrap();
    let left = std::fs::read_dir(place.path("car1/groups/fleet/orders")).unwrap().count();
    assert_eq!(left, 0, "what was obeyed is kept no longer");
    // As many as wait have a bound; those that are needed first stay.
    let bound = sealane_group::limits::MAX_ORDERS_HELD;
    let first = base.set_beater(None).unwrap();
    let later: Vec<_> = (0..bound + 4).flat_map(|_| base.set_beater(None).unwrap()).rev().collect();
    apply(&mut car, &later).unwrap();
    let left = std::fs::read_dir(place.path("car1/groups/fleet/orders")).unwrap().count();
    assert_eq!(left, bound);
    apply(&mut car, &first).unwrap();
    assert_eq!(car.orders(), first[0].number().unwrap() + 1 + bound as u64);
}

#[test]
fn a_beaters_word_for_another_log_stops_nobody() {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let beater = Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
    let key = beater.public_key().as_ref().try_into().unwrap();
    apply(&mut members[0], &base.set_beater(Some(&key)).unwrap()).unwrap();
    let (orders, head) = (base.orders(), sealane_group::OrderChainHead([9; 32]));
    let time_ms = sealane_testing::now_ms() + 1000;
    let mut bytes = GroupHeartbeat { orders, head, epoch: Epoch(0), time_ms }.to_bytes();
    let signed = [b"Sealane 1.0 heartbeat ", &base.id().0[..], &bytes].concat();
    bytes.extend(beater.sign(&signed).as_ref());
    let notice = GroupNotice::from_bytes(&bytes).unwrap();
    assert_eq!(members[0].apply(&notice).unwrap().len(), 1);
    members[0].sender().unwrap();
}
