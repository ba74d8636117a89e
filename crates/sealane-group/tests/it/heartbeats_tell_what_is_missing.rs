//! Heartbeats: whoever the authority says may tell that there are orders which somebody holds back.
//! A member that misses orders seals nothing, and one that hears no heartbeat says so.
//!
//! Most heartbeats here are made by hand, as `spec/group.md` has them.

use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

use crate::shared::{Place, apply, files, named, reopen, state};
use sealane_group::{
    EpochSource, Error, GroupChange, GroupHeartbeat, GroupMember, GroupNotice, NewGroup,
};
use sealane_seal::{Epoch, GroupId};
use sealane_testing::now_ms;

const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;
/// The age that the charter allows here.
const ALLOWED_MS: u64 = 60_000;

/// Somebody who may make heartbeats, or not.
struct Beater(Ed25519KeyPair);

impl Beater {
    fn new(seed: u8) -> Beater {
        Beater(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap())
    }

    fn key(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap()
    }

    fn beat(&self, group: GroupId, orders: u64, time_ms: u64) -> GroupNotice {
        let mut bytes = vec![3];
        bytes.extend([orders, 0, time_ms].into_iter().flat_map(u64::to_be_bytes));
        let signed = [b"Sealane 1.0 heartbeat ", &group.0[..], &bytes].concat();
        bytes.extend(self.0.sign(&signed).as_ref());
        GroupNotice::from_bytes(&bytes).unwrap()
    }
}

fn watched(is_strict: bool) -> NewGroup {
    let heartbeat_age_s = (ALLOWED_MS / 1000) as u32;
    NewGroup { heartbeat_age_s, is_strict, ..NewGroup::default() }
}

/// The age of the heartbeats that a member has heard, at that time.
fn age(member: &GroupMember, now_ms: u64) -> Option<u64> {
    match member.check_heartbeat(now_ms) {
        Ok(()) => None,
        Err(Error::Stale { age_s, allowed_s }) => {
            assert_eq!(allowed_s, ALLOWED_MS / 1000);
            Some(age_s)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_authoritys_heartbeat_tells_of_orders_that_are_held_back() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, watched(false));
    let car = &mut members[0];
    let known = base.orders();
    let beat = base.heartbeat().unwrap();
    let [GroupChange::Heartbeat(GroupHeartbeat { orders, epoch, time_ms })] =
        car.apply(&beat).unwrap()[..]
    else {
        panic!("no heartbeat")
    };
    assert_eq!((orders, epoch), (known, Epoch(0)));
    assert!(now_ms().abs_diff(time_ms) < 60_000);
    car.sender().unwrap();
    assert!(car.apply(&beat).unwrap().is_empty(), "again it says nothing");

    let mut sender = car.sender().unwrap();
    let held_back = base.rotate().unwrap();
    let beat = base.heartbeat().unwrap();
    assert_eq!(car.apply(&beat).unwrap().len(), 1);
    assert_eq!(named(car.sender()), "Behind");
    assert_eq!(named(sender.follow()), "Behind");
    // It remembers, and goes on when the orders come.
    let mut car = reopen(&place.path("car1"));
    let Err(Error::Behind { missing, known: given }) = car.check_sealing() else { panic!() };
    assert_eq!((missing, given), (known, known + 1));
    apply(&mut car, &held_back).unwrap();
    car.sender().unwrap();
    // An old one takes nothing back.
    assert!(car.apply(&beat).unwrap().is_empty());
    car.sender().unwrap();
}

#[test]
fn a_beater_counts_until_it_is_dismissed() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, watched(false));
    let (car, group) = (&mut members[0], base.id());
    let [one, two] = [1, 2].map(Beater::new);
    let now = now_ms();
    let before = files(&place.path("car1"));
    for beater in [&one, &two] {
        assert_eq!(named(car.apply(&beater.beat(group, 99, now + 1))), "DocumentSignature");
    }
    assert_eq!(files(&place.path("car1")), before);

    let told = apply(car, &base.set_beater(Some(&one.key())).unwrap()).unwrap();
    assert_eq!(told, [GroupChange::Beater(Some(one.key()))]);
    let orders = base.orders();
    assert_eq!(car.apply(&one.beat(group, orders, now + 2)).unwrap().len(), 1);
    car.sender().unwrap();
    assert_eq!(car.apply(&one.beat(group, orders + 1, now + 3)).unwrap().len(), 1);
    assert_eq!(named(car.sender()), "Behind");
    assert_eq!(named(car.apply(&two.beat(group, orders + 9, now + 4))), "DocumentSignature");
    // Not even a beater that claims all there can be closes the group for good.
    car.apply(&one.beat(group, u64::MAX, u64::MAX)).unwrap();
    assert_eq!(named(car.sender()), "Behind");
    assert_eq!(named(reopen(&place.path("car1")).sender()), "Behind");
    apply(car, &base.set_beater(Some(&two.key())).unwrap()).unwrap();
    car.sender().unwrap();
    std::thread::sleep(Duration::from_millis(5));
    let later = one.beat(group, u64::MAX, u64::MAX - 1);
    assert_eq!(named(car.apply(&later)), "DocumentSignature", "it was dismissed");
    assert_eq!(car.apply(&base.heartbeat().unwrap()).unwrap().len(), 1, "its time is forgotten");
    assert_eq!(car.apply(&two.beat(group, 0, now_ms() + 60_000)).unwrap().len(), 1);

    // The authority's own heartbeat is not forgotten with the beater.
    let dismissed = base.set_beater(None).unwrap();
    let missing = base.rotate().unwrap();
    car.apply(&base.heartbeat().unwrap()).unwrap();
    assert_eq!(apply(car, &dismissed).unwrap()[0], GroupChange::Beater(None));
    assert_eq!(named(car.sender()), "Behind");
    apply(car, &missing).unwrap();
    car.sender().unwrap();
    assert_eq!(named(car.apply(&two.beat(group, 99, u64::MAX))), "DocumentSignature");
}

#[test]
fn heartbeats_that_are_forged_replayed_or_of_another_group_do_nothing() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, watched(false));
    let beater = Beater::new(1);
    let set = base.set_beater(Some(&beater.key())).unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &set).unwrap()));
    let old = [base.heartbeat().unwrap(), beater.beat(base.id(), base.orders(), now_ms() + 5)];
    let rotated = base.rotate().unwrap();
    let new = base.heartbeat().unwrap();
    let car = &mut members[0];
    apply(car, &rotated).unwrap();
    car.apply(&beater.beat(base.id(), base.orders(), now_ms() + 60_000)).unwrap();
    let car_keys = sealane_group::KeyFolder::open(&place.path("car1"), None).unwrap();
    let membership = sealane_group::GroupMembership::from(car_keys.group("fleet").unwrap());
    let newest = rotated.last().unwrap();
    let shown = [car.shown_by(newest), membership.shown_by(newest)];
    assert_eq!(shown, [Some(base.orders()); 2]);
    let before = files(&place.path("car1"));
    for replayed in old.iter().chain([&new]) {
        assert!(car.apply(replayed).unwrap().is_empty());
    }
    // Of another group whose authority has the same key, with the same beater.
    let keys = sealane_group::KeyFolder::open(&place.path("base"), None).unwrap();
    let mut other = keys.new_group("boats", watched(false)).unwrap();
    while other.orders() <= base.orders() {
        other.rotate().unwrap();
    }
    let far = now_ms() + TEN_YEARS_MS;
    for foreign in [other.heartbeat().unwrap(), beater.beat(other.id(), 99, far)] {
        assert_eq!(named(car.apply(&foreign)), "DocumentSignature");
    }
    // Every bit of a good one that would say more.
    let good = beater.beat(base.id(), 99, far);
    for at in 1..good.as_bytes().len() {
        for bit in 0..8 {
            let mut bytes = good.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            let changed = GroupNotice::from_bytes(&bytes).unwrap();
            assert_eq!(named(car.apply(&changed)), "DocumentSignature", "{at}");
        }
    }
    for len in 0..good.as_bytes().len() {
        assert_eq!(named(GroupNotice::from_bytes(&good.as_bytes()[..len])), "MalformedDocument");
    }
    let longer = [good.as_bytes(), &[0]].concat();
    assert_eq!(named(GroupNotice::from_bytes(&longer)), "MalformedDocument");
    assert_eq!(files(&place.path("car1")), before);
    // The signature of an order is none of a heartbeat, nor the other way round.
    let mut order = vec![1];
    order.extend(&good.as_bytes()[1..]);
    let taken = GroupNotice::from_bytes(&order).and_then(|notice| car.apply(&notice));
    assert!(taken.is_err());
    assert_eq!(files(&place.path("car1")), before);
}

#[test]
fn a_wrong_clock_on_either_side_is_noticed() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, watched(false));
    let (car, group) = (&mut members[0], base.id());
    let beater = Beater::new(1);
    apply(car, &base.set_beater(Some(&beater.key())).unwrap()).unwrap();
    let orders = base.orders();
    let now = now_ms();
    car.apply(&beater.beat(group, orders, now)).unwrap();
    let ages = [0, ALLOWED_MS - 5_000, ALLOWED_MS + 5_000, TEN_YEARS_MS];
    let told = ages.map(|later| age(car, now + later).map(|age_s| age_s.abs_diff(later / 1000)));
    assert!(told[0].is_none() && told[1].is_none(), "{told:?}");
    assert!(told[2].unwrap() < 5 && told[3].unwrap() < 5, "{told:?}");
    // The clock here is put back: what came then lies in the future, and is not young for that.
    assert!(age(car, now - TEN_YEARS_MS).unwrap() > TEN_YEARS_MS / 1000 - 5);
    assert!(age(car, now - ALLOWED_MS / 2).is_none(), "a clock may be set right by a little");
    assert!(age(car, 0).is_some() && age(car, u64::MAX).is_some());
    // The beater's clock is ten years ahead: when it came decides.
    car.apply(&beater.beat(group, orders, now + TEN_YEARS_MS)).unwrap();
    assert!(age(car, now).is_none());
    assert!(age(car, now + ALLOWED_MS + 5_000).is_some());
    // Then a right one is older than what was heard, until the authority names a beater again.
    assert!(car.apply(&beater.beat(group, orders, now + 10)).unwrap().is_empty());
    apply(car, &base.set_beater(Some(&beater.key())).unwrap()).unwrap();
    assert_eq!(car.apply(&beater.beat(group, orders, now + 120_000)).unwrap().len(), 1);
}

#[test]
fn a_beater_whose_clock_is_slow_is_stale() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, watched(true));
    let (car, group) = (&mut members[0], base.id());
    assert!(car.is_strict() && base.is_strict());
    assert!(age(car, now_ms()).is_none(), "the invitation is as good as a heartbeat");
    assert!(age(car, now_ms() + ALLOWED_MS + 5_000).is_some());
    base.check_heartbeat(now_ms() + TEN_YEARS_MS).unwrap();
    let beater = Beater::new(1);
    apply(car, &base.set_beater(Some(&beater.key())).unwrap()).unwrap();
    let before = state(&place.path("car1"));
    let slow = beater.beat(group, 0, now_ms() - TEN_YEARS_MS);
    assert!(car.apply(&slow).unwrap().is_empty(), "it is older than the invitation");
    assert_eq!(state(&place.path("car1")), before);
    // Being stale is the caller's to act on; what is urgent is sealed even in a strict group.
    car.sender().unwrap();
}

#[test]
fn a_group_says_at_its_founding_whether_it_is_watched() {
    let place = Place::new();
    let keys = place.keys("base");
    let strict = NewGroup { is_strict: true, ..NewGroup::default() };
    assert_eq!(named(keys.new_group("strict", strict)), "GroupRefused");
    let (_, members) = Place::new().fleet(2, NewGroup::default());
    assert!(!members[0].is_strict());
    for now in [0, now_ms(), u64::MAX] {
        members[0].check_heartbeat(now).unwrap();
    }
}
