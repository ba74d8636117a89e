//! Healing: members bring fresh cards, and a copy of a folder that was made before does not follow.
//! A new secret alone does not do that.

use crate::shared::{
    Place, apply, card, copy, invite, join, log, named, open, reopen, seal, state,
};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_group::{
    EpochSource, GroupChange, GroupMember, IdentityCard, KeyFolder, NewGroup, PastSecrets,
};
use sealane_seal::{Class, Epoch, EpochSecret, Epochs, History, Sealer, SenderContext, Slot};

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
    assert!(base.owes_marks(), "an epoch has ended");
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

/// The thief has the folder as it was, and a member gone bad tells it the new secret: it cannot
/// sign for the member any more. The member keeps its slot, its name and its past.
#[test]
fn the_fresh_card_brings_a_signing_key() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let (car, slot) = (&mut members[0], slot(1));
    let signed = seal(&mut car.sender().unwrap(), Class::Signed, b"before");
    let stolen = KeyFolder::open(&place.path("car1"), None).unwrap();
    let healed = base.heal(&[fresh(&place, "car1")], false).unwrap();
    for member in &mut members {
        apply(member, &healed.notices).unwrap();
    }
    let secret = members[1].epochs().secret(Epoch(1)).unwrap().clone();
    let forge = |epoch: Epoch, secret: EpochSecret| {
        let epochs = Epochs::new(base.id(), History::Kept, epoch, secret);
        let context = SenderContext([7; 8]);
        let mut sealer = Sealer::new(base.group(), slot, context, &epochs, 5).unwrap();
        sealer.set_signing_key(stolen.identity().signing_key().unwrap());
        let source = members[0].source().unwrap();
        let fields =
            HeaderFields { class: Class::Signed, ..HeaderFields::new(base.tag(), source, 1) };
        let mut buf = FrameBuf::new();
        seal_frame(&mut sealer, &fields, &log(), b"forged", &mut buf).unwrap().to_vec()
    };
    let forged = forge(Epoch(1), secret);
    let own = seal(&mut members[0].sender().unwrap(), Class::Signed, b"after");
    for reader in [&base, &members[0], &members[1]] {
        let mut opener = reader.opener().unwrap();
        let refused = open(&mut opener, &forged).unwrap_err();
        assert_eq!(refused.info().name, "SignatureInvalid");
        assert_eq!(open(&mut opener, &own).unwrap(), b"after");
        assert_eq!(open(&mut opener, &signed).unwrap(), b"before", "its past is read");
        assert_eq!(reader.name_of(slot, Epoch(1)), Some("car1"));
    }
    // Over a restart, a rotation and a further card, too; newcomers know all of its keys.
    let rotated = base.rotate().unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &rotated).unwrap()));
    let again = base.heal(&[fresh(&place, "car1")], false).unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &again.notices).unwrap()));
    let later = seal(&mut reopen(&place.path("car1")).sender().unwrap(), Class::Signed, b"later");
    let (new, _) = join(&mut base, &place.keys("new"));
    let mut opener = new.opener().unwrap();
    for (frame, body) in [(&signed, "before"), (&own, "after"), (&later, "later")] {
        assert_eq!(open(&mut opener, frame).unwrap(), body.as_bytes());
    }
}

/// An authority that was put back to before the heal would give the thief its pen again.
#[test]
fn a_key_that_was_replaced_does_not_come_back() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    let healed = base.heal(&[fresh(&place, "car1")], false).unwrap();
    members.iter_mut().for_each(|member| drop(apply(member, &healed.notices).unwrap()));
    let restored = |name| {
        let keys = KeyFolder::restore(&place.path(name), &backup, None).unwrap();
        keys.group("fleet").unwrap()
    };
    let renewed = restored("one").renew(None).unwrap();
    assert_eq!(named(apply(&mut members[1], &renewed)), "OrdersForked");
    // Messages that the healed member signs until then are no thief's.
    let between = seal(&mut members[0].sender().unwrap(), Class::Signed, b"between");
    let rotated = base.rotate().unwrap();
    apply(&mut members[1], &rotated).unwrap();
    let mut restored = restored("two");
    // It hears of the heal last, and starts anew before it goes on. By its own log it knows that
    // the member has other keys now, and invites it again.
    for notice in rotated.iter().chain(&healed.notices) {
        assert_eq!(named(restored.apply(notice)), "CopiedFolder");
    }
    let mut restored = reopen(&place.path("two"));
    let renewed = restored.renew(None).unwrap();
    assert_eq!(restored.roster().entry(slot(1)).unwrap().removed(), Some(restored.live_from()));
    let rekeyed = GroupChange::Rekeyed { epoch: restored.live_from(), removed: vec![slot(1)] };
    assert_eq!(apply(&mut members[1], &renewed).unwrap(), [rekeyed]);
    assert_eq!(apply(&mut members[0], &renewed).unwrap(), [GroupChange::Removed]);
    for reader in [&members[1], &reopen(&place.path("car2"))] {
        assert_eq!(open(&mut reader.opener().unwrap(), &between).unwrap(), b"between");
        assert_eq!(reader.name_of(slot(1), Epoch(1)), Some("car1"));
        assert_eq!(reader.name_of(slot(1), restored.live_from()), None);
    }
}

#[test]
fn every_fresh_secret_ends_the_epoch_before_it_for_writing() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let card = fresh(&place, "car1");
    let mut last = Epoch(0);
    for at in 0..4 {
        let old = seal(&mut members[0].sender().unwrap(), Class::Group, b"old");
        let notices = match at {
            0 => base.rotate().unwrap(),
            1 => base.heal(std::slice::from_ref(&card), false).unwrap().notices,
            2 => base.renew(None).unwrap(),
            _ => base.advance().unwrap(),
        };
        apply(&mut members[0], &notices).unwrap();
        assert_eq!(members[0].live_from(), base.live_from());
        let mut opener = base.opener().unwrap();
        let (mut frame, log) = (old, log());
        let refused = sealane_frame::open_frame(&mut opener, &log, &mut frame);
        let code = refused.unwrap_err().info().code;
        // The one-way step is no fresh secret: whoever holds the one before it holds the next, too.
        let is_ended = at < 3;
        assert_eq!((base.live_from() > last, code == "SL-SEAL-07"), (is_ended, is_ended), "{at}");
        assert_eq!(base.owes_marks(), is_ended);
        last = base.live_from();
        base.mark(&[]).unwrap();
    }
}
