//! An older copy never overwrites a state that may only grow: an authority that was put back to
//! before a removal gives the group back to nobody.

use sealane_group::{EpochSource, GroupChange, GroupMember, KeyFolder, NewGroup, RemovalMark};
use sealane_seal::{Binding, Class, Epoch};

use crate::shared::{Place, apply, card, clone, invite, join, named, open, reopen, seal};

/// The authority as a backup brings it back, and then the removal of `mal`, which it does not know.
struct Restored {
    base: GroupMember,
    car: GroupMember,
    bus: GroupMember,
    mal: GroupMember,
    restored: GroupMember,
}

fn restored(place: &Place) -> Restored {
    let (mut base, members) = place.fleet(4, NewGroup::default());
    let [mut car, mut bus, mal] = <[GroupMember; 3]>::try_from(members).unwrap();
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    let orders = base.revoke(&[mal.slot()]).unwrap();
    // One of the two hears the notice that goes ahead, the other the order alone.
    apply(&mut car, &base.removals(0).unwrap()).unwrap();
    apply(&mut car, &orders).unwrap();
    apply(&mut bus, &orders).unwrap();
    let restored = KeyFolder::restore(&place.path("restored"), &backup, None).unwrap();
    let restored = restored.group("fleet").unwrap();
    Restored { base, car, bus, mal, restored }
}

#[test]
fn members_refuse_the_new_beginning_of_an_authority_that_forgot_a_removal() {
    let place = Place::quick();
    let Restored { mut car, mut bus, mut mal, mut restored, .. } = restored(&place);
    let slot = mal.slot();
    let renewed = restored.renew(None).unwrap();
    for (member, name) in [(&mut car, "car1"), (&mut bus, "car2")] {
        assert_eq!(named(apply(member, &renewed)), "OrdersForked");
        assert_eq!(member.roster().entry(slot).unwrap().removed(), Some(Epoch(1)));
        assert_eq!(member.epochs().newest(), Epoch(1));
        assert_eq!(named(reopen(&place.path(name)).sender()), "OrdersForked");
    }
    // The removed one follows it, and nobody else reads it.
    apply(&mut mal, &renewed).unwrap();
    let back = seal(&mut mal.sender().unwrap(), Class::Signed, b"mal is back");
    assert!(open(&mut car.opener().unwrap(), &back).is_err());

    // A member hands back what it has heard, and the authority begins anew without the removed one.
    let heard = car.heard_removals().unwrap();
    assert_eq!((heard.len(), bus.heard_removals().unwrap().len()), (1, 0));
    assert!(apply(&mut restored, &heard).unwrap().is_empty());
    let renewed = restored.renew(None).unwrap();
    for member in [&mut car, &mut bus] {
        apply(member, &renewed).unwrap();
        member.sender().unwrap();
        assert_eq!(member.roster().entry(slot).unwrap().removed(), Some(Epoch(1)));
    }
    assert_eq!(apply(&mut mal, &renewed).unwrap(), [GroupChange::Removed]);
    assert_eq!(restored.roster().entry(slot).unwrap().removed(), Some(Epoch(1)));
}

/// A renewal that comes before the removal's own order is held against what was announced.
#[test]
fn an_announced_removal_is_enough() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    base.revoke(&[members[1].slot()]).unwrap();
    apply(&mut members[0], &base.removals(0).unwrap()).unwrap();
    let restored = KeyFolder::restore(&place.path("restored"), &backup, None).unwrap();
    let renewed = restored.group("fleet").unwrap().renew(None).unwrap();
    assert_eq!(named(apply(&mut members[0], &renewed)), "OrdersForked");
}

/// The control stream says all that a new beginning needs: one renewal is enough, however far the
/// group has gone on.
#[test]
fn an_authority_takes_over_what_it_gave_from_its_own_signed_log() {
    let place = Place::quick();
    let Restored { mut base, mut car, mut bus, mal, mut restored } = restored(&place);
    let (mut van, admitted) = join(&mut base, &place.keys("van"));
    let mut given = admitted;
    (0..70).for_each(|_| given.extend(base.rotate().unwrap()));
    for member in [&mut car, &mut bus] {
        apply(member, &given).unwrap();
    }
    let missed = base.notices(van.orders()).unwrap();
    apply(&mut van, &missed).unwrap();
    hear(&mut restored, &base);
    let renewed = restored.renew(None).unwrap();
    assert!(restored.epochs().newest() > car.epochs().newest());
    for member in [&mut car, &mut bus] {
        apply(member, &renewed).unwrap();
        member.sender().unwrap();
        assert_eq!(member.roster().entry(mal.slot()).unwrap().removed(), Some(Epoch(1)));
    }
    // The one that it does not know needs a new invitation, and its slot is given to nobody else.
    assert_eq!(apply(&mut van, &renewed).unwrap(), [GroupChange::Removed]);
    let keys = place.keys("cab");
    let invited = invite(&mut restored, &keys);
    assert_eq!(invited.slot.number(), van.slot().number() + 1);
    apply(&mut car, &invited.notices).unwrap();
    let left = car.roster().entry(van.slot()).unwrap();
    assert_eq!((left.name(), left.removed()), ("van", Some(restored.live_from())));
    let cab = keys.join(&invited.invitation, None, None).unwrap();
    let frame = seal(&mut cab.sender().unwrap(), Class::Signed, b"here");
    assert_eq!(open(&mut car.opener().unwrap(), &frame).unwrap(), b"here");
}

/// Shows an authority its own log; it cannot be obeyed again.
fn hear(authority: &mut GroupMember, given: &GroupMember) {
    for notice in [given.removals(0).unwrap(), given.notices(0).unwrap()].concat() {
        let heard = authority.apply(&notice);
        assert!(heard.is_ok() || named(heard) == "CopiedFolder");
    }
}

/// The roster of a heal is sealed, and a slot that is replaced stands in a sealed order. A notice
/// in the clear tells a restored authority of either.
#[test]
fn a_heal_and_a_new_slot_are_removals_too() {
    for replaces in [false, true] {
        let place = Place::quick();
        let (mut base, mut members) = place.fleet(4, NewGroup::default());
        let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
        let folder = |name| KeyFolder::open(&place.path(name), None).unwrap();
        clone(&place.path("car2"), &place.path("thief"));
        let mal = members[1].slot();
        let given = if replaces {
            base.invite(&card(&folder("car2")), sealane_group::PastSecrets::All).unwrap().notices
        } else {
            let cards = ["car1", "car3"].map(|name| card(&folder(name)));
            let healed = base.heal(&cards, true).unwrap();
            assert_eq!(healed.silent, [mal]);
            healed.notices
        };
        let ahead = base.removals(0).unwrap();
        assert_eq!(ahead.iter().map(|one| one.removes().unwrap().slot).collect::<Vec<_>>(), [mal]);
        // One member hears the notice and obeys, the other one sleeps.
        apply(&mut members[0], &[&ahead[..], &given].concat()).unwrap();
        assert_eq!(members[0].heard_removals().unwrap(), ahead);
        let restored = KeyFolder::restore(&place.path("restored"), &backup, None).unwrap();
        let mut restored = restored.group("fleet").unwrap();
        hear(&mut restored, &base);
        let renewed = restored.renew(None).unwrap();
        assert_eq!(restored.roster().entry(mal).unwrap().removed(), Some(Epoch(1)), "{replaces}");
        let mut thief = reopen(&place.path("thief"));
        assert_eq!(apply(&mut thief, &renewed).unwrap(), [GroupChange::Removed]);
        if replaces {
            apply(&mut members[0], &renewed).unwrap();
            apply(&mut members[2], &renewed).unwrap();
        }
    }
}

/// A list of removals of which a part cannot be read is no list.
#[test]
fn nothing_begins_anew_on_removals_that_cannot_be_read() {
    let place = Place::quick();
    let Restored { base, mut car, mut restored, .. } = restored(&place);
    hear(&mut restored, &base);
    let damage = |name: &str| {
        let removals = std::fs::read_dir(place.path(name).join("groups/fleet/removals")).unwrap();
        let path = removals.map(|entry| entry.unwrap().path()).next().unwrap();
        std::fs::write(path, b"junk").unwrap();
    };
    damage("restored");
    assert_eq!(named(restored.renew(None)), "DamagedFile");
    // Heard again, it is whole.
    hear(&mut restored, &base);
    let renewed = restored.renew(None).unwrap();
    damage("car1");
    assert_eq!(named(car.heard_removals()), "DamagedFile");
    assert_eq!(named(apply(&mut car, &renewed)), "DamagedFile");
    assert_eq!(car.epochs().newest(), Epoch(1));
    apply(&mut car, &base.removals(0).unwrap()).unwrap();
    apply(&mut car, &renewed).unwrap();
}

/// A member that refused the new beginning is invited again. Its folder still knows the removals.
#[test]
fn an_invitation_gives_the_group_back_to_nobody() {
    let place = Place::quick();
    let Restored { mut car, mut bus, mal, mut restored, .. } = restored(&place);
    let renewed = restored.renew(None).unwrap();
    assert_eq!(named(apply(&mut car, &renewed)), "OrdersForked");
    // One of the two has obeyed the order, and the other's folder has heard the notice as well.
    for name in ["car1", "car2"] {
        let keys = KeyFolder::open(&place.path(name), None).unwrap();
        let invited = invite(&mut restored, &keys);
        assert_eq!(named(keys.join(&invited.invitation, None, None)), "OrdersForked", "{name}");
        let member = reopen(&place.path(name));
        assert_eq!(member.roster().entry(mal.slot()).unwrap().removed(), Some(Epoch(1)));
        assert_eq!(member.epochs().newest(), Epoch(1));
    }
    assert_eq!(named(apply(&mut bus, &renewed)), "OrdersForked");
    // The authority is told, and the same members join.
    apply(&mut restored, &car.heard_removals().unwrap()).unwrap();
    restored.renew(None).unwrap();
    let keys = KeyFolder::open(&place.path("car1"), None).unwrap();
    let invited = invite(&mut restored, &keys);
    let car = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(car.roster().entry(mal.slot()).unwrap().removed(), Some(Epoch(1)));
    car.sender().unwrap();
}

/// The notice alone is enough, also where the order has not come; and nothing else that a folder
/// knows is forgotten by a new invitation.
#[test]
fn an_invitation_takes_nothing_from_what_a_folder_knows() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    clone(&place.path("base"), &place.path("back"));
    let log = Binding::stream("log");
    let rotated = base.rotate().unwrap();
    let marked = base.mark(&[RemovalMark { stream: log, generation: 1, next: 7 }]).unwrap();
    let beater = |base: &mut GroupMember| base.set_beater(None).unwrap();
    let known = [rotated, marked, beater(&mut base), beater(&mut base)].concat();
    let known = [known, base.rotate().unwrap()].concat();
    apply(&mut members[0], &known).unwrap();
    let orders = base.orders();
    // The authority before all that invites the member, and nothing says that it began anew.
    let mut back = reopen(&place.path("back"));
    let keys = KeyFolder::open(&place.path("car1"), None).unwrap();
    let invited = invite(&mut back, &keys);
    let mut car = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(named(car.sender()), "Behind", "orders are known that the invitation does not know");
    assert_eq!((car.live_from(), car.first_epoch(&log, 1, 7)), (Epoch(2), Epoch(1)));
    assert!(car.orders() < orders);
    // A log that has forked stays so until the authority begins anew.
    assert_eq!(named(car.apply(&base.notices(car.orders()).unwrap()[0])), "OrdersForked");
    let again = invite(&mut back, &keys);
    assert_eq!(named(keys.join(&again.invitation, None, None).unwrap().sender()), "OrdersForked");
    hear(&mut back, &base);
    back.renew(None).unwrap();
    let again = invite(&mut back, &keys);
    keys.join(&again.invitation, None, None).unwrap().sender().unwrap();

    // Another folder has heard of a removal, and no more.
    let mal = members[2].slot();
    base.revoke(&[mal]).unwrap();
    apply(&mut members[1], &base.removals(0).unwrap()).unwrap();
    let keys = KeyFolder::open(&place.path("car2"), None).unwrap();
    let invited = invite(&mut back, &keys);
    assert_eq!(named(keys.join(&invited.invitation, None, None)), "OrdersForked");
}

#[test]
fn a_slot_that_was_given_elsewhere_stays_listed_behind_an_invitation() {
    let place = Place::quick();
    let Restored { mut base, mut car, mut restored, .. } = restored(&place);
    let (van, admitted) = join(&mut base, &place.keys("van"));
    apply(&mut car, &admitted).unwrap();
    hear(&mut restored, &base);
    restored.renew(None).unwrap();
    let keys = KeyFolder::open(&place.path("car1"), None).unwrap();
    let invited = invite(&mut restored, &keys);
    let car = keys.join(&invited.invitation, None, None).unwrap();
    let listed = car.roster().entry(van.slot()).unwrap();
    assert_eq!((listed.name(), listed.removed().is_some()), ("van", true));
}

/// A removal that was announced and whose order did not remove anybody is kept against nobody.
#[test]
fn a_removal_that_never_was_is_forgotten() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    clone(&place.path("base"), &place.path("before"));
    base.revoke(&[members[1].slot()]).unwrap();
    let notice = base.removals(0).unwrap();
    let mut before = reopen(&place.path("before"));
    apply(&mut members[0], &notice).unwrap();
    assert_eq!(members[0].heard_removals().unwrap(), notice);
    let told = apply(&mut members[0], &before.rotate().unwrap()).unwrap();
    assert!(matches!(told[0], GroupChange::Stays { .. }));
    assert!(members[0].heard_removals().unwrap().is_empty());
    apply(&mut members[0], &before.renew(None).unwrap()).unwrap();
    members[0].sender().unwrap();
}
