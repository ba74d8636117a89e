//! Healing: members bring fresh cards, and a copy of a folder that was made before does not follow.
//! A new secret alone does not do that.

use crate::shared::{Place, apply, card, copy, invite, named, open, reopen, seal, state};
use sealane_group::{
    EpochSource, GroupChange, GroupMember, IdentityCard, KeyFolder, NewGroup, PastSecrets,
};
use sealane_seal::{Class, Epoch, Slot};

fn folder(place: &Place, name: &str) -> KeyFolder {
    KeyFolder::open(&place.path(name), None).unwrap()
}

fn fresh(place: &Place, name: &str) -> IdentityCard {
    card(&folder(place, name))
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// Whether the member opens what another seals now.
fn reads(reader: &GroupMember, writer: &GroupMember) -> bool {
    let frame = seal(&mut writer.sender().unwrap(), Class::Group, b"x");
    open(&mut reader.opener().unwrap(), &frame).is_ok()
}

#[test]
fn a_new_secret_alone_does_not_close_the_group_to_a_copy() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    copy(&place.path("car1"), &place.path("thief"));
    let mut thief = reopen(&place.path("thief"));
    let rotated = base.rotate().unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &rotated).unwrap()));
    let told = apply(&mut thief, &rotated).unwrap();
    assert_eq!(told, [GroupChange::Rekeyed { epoch: Epoch(1), removed: vec![] }]);
    assert!(reads(&thief, &members[1]), "this is what healing is for");
}

#[test]
fn a_copy_that_was_made_before_the_fresh_card_does_not_follow() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    copy(&place.path("car1"), &place.path("before"));
    let cards = [fresh(&place, "car2"), fresh(&place, "car1")];
    // Nor one that was made later: the card waits in one folder only.
    copy(&place.path("car1"), &place.path("later"));
    let healed = base.heal(&cards, false).unwrap();
    assert_eq!((healed.silent.as_slice(), healed.notices.len()), (&[slot(3)][..], 1));
    for member in &mut members {
        let told = apply(member, &healed.notices).unwrap();
        assert_eq!(told, [GroupChange::Rekeyed { epoch: Epoch(1), removed: vec![] }]);
        assert_eq!((member.orders(), member.roster()), (base.orders(), base.roster()));
        assert!(apply(member, &healed.notices).unwrap().is_empty());
    }
    for name in ["before", "later"] {
        let mut thief = reopen(&place.path(name));
        assert_eq!(apply(&mut thief, &healed.notices).unwrap(), [GroupChange::Removed]);
        assert_eq!(named(thief.sender()), "RemovedMember");
        assert!(!reads(&thief, &members[1]));
    }
    // The next secret comes by the new keys: also to the silent one, and not to the copy.
    let rotated = base.rotate().unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &rotated).unwrap()));
    assert!(members.iter().all(|member| reads(member, &base) && reads(&base, member)));
    // A folder that was put back, as by a backup, is a copy from before as well.
    let mut thief = reopen(&place.path("later"));
    assert_eq!(named(thief.apply(&rotated[0])), "RemovedMember");
}

#[test]
fn the_silent_are_dropped_if_the_authority_says_so() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    let healed = base.heal(&[fresh(&place, "car2")], true).unwrap();
    assert_eq!(healed.silent, [slot(1), slot(3)]);
    let removed = healed.silent.clone();
    let told: Vec<_> =
        members.iter_mut().map(|member| apply(member, &healed.notices).unwrap()).collect();
    let rekeyed = GroupChange::Rekeyed { epoch: Epoch(1), removed };
    assert_eq!(told, [vec![GroupChange::Removed], vec![rekeyed], vec![GroupChange::Removed]]);
    assert_eq!(members[1].roster(), base.roster());
    assert_eq!(base.roster().members().count(), 2);
    assert_eq!((members[1].live_from(), base.live_from()), (Epoch(1), Epoch(1)));
    assert!(base.owes_marks(), "somebody was removed");
    assert!(!reads(&members[0], &base) && reads(&members[1], &base));
}

#[test]
fn cards_that_cannot_heal_are_refused() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let before = state(&place.path("base"));
    let [one, two] = ["car1", "car1"].map(|name| fresh(&place, name));
    let stranger = card(&place.keys("stranger"));
    let own = fresh(&place, "base");
    let mut refused = |cards: &[IdentityCard]| named(base.heal(cards, false));
    assert_eq!(refused(&[one.clone(), two.clone()]), "GroupRefused");
    assert_eq!(refused(&[one.clone(), one.clone()]), "GroupRefused");
    assert_eq!(refused(&[]), "GroupRefused");
    assert_eq!(refused(&vec![one.clone(); 257]), "GroupRefused");
    assert_eq!(refused(&[one.clone(), stranger]), "UnknownMember");
    assert_eq!(refused(&[own]), "UnknownMember");
    assert_eq!(state(&place.path("base")), before);
    assert_eq!(named(members[0].heal(std::slice::from_ref(&one), false)), "NotAuthority");
    // A card heals once, whoever brings it again, and joins no more.
    let healed = base.heal(std::slice::from_ref(&one), false).unwrap();
    apply(&mut members[0], &healed.notices).unwrap();
    assert_eq!(named(base.heal(std::slice::from_ref(&one), false)), "UnknownCard");
    assert_eq!(named(base.invite(&one, PastSecrets::All)), "UnknownCard");
    // And one that has joined does not heal.
    let bus = place.keys("bus");
    let card = card(&bus);
    let invited = base.invite(&card, PastSecrets::All).unwrap();
    bus.join(&invited.invitation, None, None).unwrap();
    assert_eq!(named(base.heal(&[card], false)), "UnknownCard");
}

/// An order from before the heal names the removed members, and where the removal begins to hold.
/// It is not stepped over.
#[test]
fn a_heal_waits_for_the_orders_before_it() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let fresh = fresh(&place, "car1");
    let missing = base.orders();
    let before = base.rotate().unwrap();
    let healed = base.heal(&[fresh], false).unwrap().notices;
    let after = invite(&mut base, &place.keys("bus")).notices;
    let late = |member: &mut GroupMember| {
        assert_eq!(apply(member, &after[..1]).unwrap(), [GroupChange::Held { missing }]);
        assert_eq!(apply(member, &healed).unwrap(), [GroupChange::Held { missing }]);
        assert_eq!(named(member.sender()), "Behind");
        assert_eq!(member.epochs().newest(), Epoch(0));
        assert_eq!(apply(member, &before).unwrap().len(), 3);
    };
    // By the old key or by the fresh card.
    for member in &mut members {
        late(member);
        apply(member, &after).unwrap();
        assert_eq!((member.orders(), member.roster()), (base.orders(), base.roster()));
        let held: Vec<u64> = member.epochs().held().map(|(epoch, _)| epoch.0).collect();
        assert_eq!(held, [0, 1, 2]);
    }
    // The card was used up, though it was obeyed out of what was held.
    assert_eq!(std::fs::metadata(place.path("car1/cards")).unwrap().len(), 38 + 16);
}
