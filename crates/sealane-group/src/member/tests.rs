//! The content of an order for any reader. A member that goes by no rules takes its pairwise key
//! and tries every wrap. It does not ask [`GroupMember::apply`] whether it was removed.

use std::collections::BTreeSet;

use sealane_frame::{FrameBuf, open_stored};
use sealane_seal::{Class, EpochSecret};
use tempfile::TempDir;

use super::*;
use crate::notice::ParsedNotice;
use crate::order::{GroupOrder, RekeyOrder, WrapId};
use crate::renewal::tests::FoundRenewal;
use crate::{IdentityCard, KeyFolder, PastSecrets};

struct MemberTestFleet {
    folder: TempDir,
    base: GroupMember,
    members: Vec<GroupMember>,
}

impl MemberTestFleet {
    fn of(count: usize) -> MemberTestFleet {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
        let base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let mut fleet = MemberTestFleet { folder, base, members: Vec::new() };
        (0..count).for_each(|at| {
            let path = fleet.folder.path().join(format!("car{at}"));
            let member = fleet.join(&KeyFolder::create(&path, &format!("car{at}"), None).unwrap());
            fleet.members.push(member);
        });
        fleet
    }

    fn join(&mut self, keys: &KeyFolder) -> GroupMember {
        let card = IdentityCard::from_bytes(&keys.card().unwrap()).unwrap();
        let invited = self.base.invite(&card, PastSecrets::All).unwrap();
        keys.join(&invited.invitation, None, None).unwrap()
    }

    /// Gives a fresh secret to the members in those places, who bring fresh cards.
    fn heal(&mut self, places: &[usize], drops_silent: bool) -> GroupNotice {
        let card = |at: &usize| {
            let path = self.folder.path().join(format!("car{at}"));
            let keys = KeyFolder::open(&path, None).unwrap();
            IdentityCard::from_bytes(&keys.card().unwrap()).unwrap()
        };
        let cards: Vec<IdentityCard> = places.iter().map(card).collect();
        let mut healed = self.base.heal(&cards, drops_silent).unwrap();
        assert_eq!(healed.notices.len(), 1);
        healed.notices.remove(0)
    }

    /// The order to go to a fresh secret, as any reader of its frame sees it.
    fn rekey(&self, notices: &[GroupNotice]) -> RekeyOrder {
        let [notice] = notices else { panic!("{} notices", notices.len()) };
        let mut frame = notice.frame().unwrap().to_vec();
        let mut reader = self.base.opener().unwrap();
        let before = Epoch(self.base.epochs().newest().0 - 1);
        let control = Binding::stream(&self.base.control_topic());
        let stored = open_stored(&mut reader, before, &control, &mut frame).unwrap();
        let read = GroupOrder::from_bytes(stored.header.data_type(), stored.body).unwrap();
        assert_eq!(Some(read.number), notice.number());
        match read.order {
            GroupOrder::Rekey(order) => order,
            other => panic!("{other:?}"),
        }
    }

    /// The secret of that order's epoch, if any slot's wrap opens with that member's pairwise key.
    fn stolen(&self, order: &RekeyOrder, thief: &GroupMember) -> Option<EpochSecret> {
        let slots = (0..=sealane_seal::limits::MAX_SLOT).filter_map(Slot::new);
        let whose = |slot| WrapId { group: self.base.id(), epoch: order.epoch, slot };
        slots.into_iter().find_map(|slot| order.wraps.unwrap(whose(slot), &thief.state.wrap_key))
    }
}

fn wrapped(order: &RekeyOrder) -> BTreeSet<u16> {
    order.wraps.wraps.iter().map(|(slot, _)| slot.number()).collect()
}

#[test]
fn a_removed_member_is_wrapped_nothing() {
    let mut fleet = MemberTestFleet::of(19);
    let thief = fleet.members.remove(6);
    let notices = fleet.base.revoke(&[thief.slot()]).unwrap();
    let order = fleet.rekey(&notices);
    let stay: BTreeSet<u16> = fleet.members.iter().map(|one| one.slot().number()).collect();
    assert_eq!(stay.len(), 18);
    assert_eq!(wrapped(&order), stay, "one wrap for each that stays, and no other");
    assert!(fleet.stolen(&order, &thief).is_none());
    let secret = fleet.base.epochs().secret(order.epoch).unwrap();
    for member in &fleet.members {
        let found = fleet.stolen(&order, member).expect("who stays has a wrap");
        assert_eq!(found.expose(), secret.expose());
    }
    // Nor is there anything for it in what comes later.
    let notices = fleet.base.rotate().unwrap();
    let order = fleet.rekey(&notices);
    assert_eq!(wrapped(&order), stay);
    assert!(fleet.stolen(&order, &thief).is_none());
}

#[test]
fn a_slot_that_was_replaced_is_wrapped_nothing() {
    let mut fleet = MemberTestFleet::of(3);
    let old = fleet.members.remove(1);
    let keys = KeyFolder::open(&fleet.folder.path().join("car1"), None).unwrap();
    let card = IdentityCard::from_bytes(&keys.card().unwrap()).unwrap();
    let invited = fleet.base.invite(&card, PastSecrets::All).unwrap();
    // Not by the order that retires it, which comes before the invitation's secret is handed over.
    let order = fleet.rekey(&invited.notices[..1]);
    assert_eq!(order.removed, [old.slot()]);
    assert_eq!(wrapped(&order), fleet.members.iter().map(|one| one.slot().number()).collect());
    assert!(fleet.stolen(&order, &old).is_none());
    let new = keys.join(&invited.invitation, None, None).unwrap();
    assert_ne!(new.slot(), old.slot());
    let notices = fleet.base.rotate().unwrap();
    let order = fleet.rekey(&notices);
    let slots = [&fleet.members[0], &fleet.members[1], &new].map(|one| one.slot().number());
    assert_eq!(wrapped(&order), slots.into());
    assert!(fleet.stolen(&order, &old).is_none());
    assert!(fleet.stolen(&order, &new).is_some());
}

/// A member that brought a fresh card is told nothing by its old key, which a copy may have; one
/// that was dropped is told nothing at all.
#[test]
fn healing_tells_nothing_to_old_keys() {
    let mut fleet = MemberTestFleet::of(4);
    let old: Vec<_> = fleet.members.iter().map(|one| one.state.wrap_key.clone()).collect();
    let slots: Vec<Slot> = fleet.members.iter().map(|one| one.slot()).collect();
    let read = |fleet: &MemberTestFleet, notice: &GroupNotice| {
        let ParsedNotice::Renewal(bytes) = notice.parse().unwrap() else {
            panic!("another notice")
        };
        FoundRenewal::read(&fleet.base.state.charter, bytes)
    };
    let given = fleet.base.notices(0).unwrap();
    for member in &mut fleet.members {
        given.iter().for_each(|notice| drop(member.apply(notice).unwrap()));
    }
    let healed = fleet.heal(&[0, 2], false);
    let found = read(&fleet, &healed);
    assert_eq!(found.slots(), [vec![2, 4], vec![1, 3]]);
    let opened = |at: usize| found.by_key(slots[at], &old[at]).is_some();
    assert_eq!([opened(0), opened(1), opened(2), opened(3)], [false, true, false, true]);
    for member in &mut fleet.members {
        member.apply(&healed).unwrap();
        assert_eq!(member.epochs().newest(), Epoch(1));
    }
    let new: Vec<_> = fleet.members.iter().map(|one| one.state.wrap_key.clone()).collect();
    let is_new: Vec<bool> = old.iter().zip(&new).map(|(old, new)| old != new).collect();
    assert_eq!(is_new, [true, false, true, false]);
    // From then on orders go by the new keys.
    let notices = fleet.base.rotate().unwrap();
    let order = fleet.rekey(&notices);
    let opens = |at: usize, key: &[u8; 32]| {
        let whose = WrapId { group: fleet.base.id(), epoch: order.epoch, slot: slots[at] };
        order.wraps.unwrap(whose, key).is_some()
    };
    assert!((0..4).all(|at| opens(at, &new[at])));
    assert!(!opens(0, &old[0]) && !opens(2, &old[2]));

    let dropped = fleet.heal(&[1], true);
    let found = read(&fleet, &dropped);
    assert_eq!(found.slots(), [vec![], vec![2]]);
    assert!((0..4).all(|at| found.by_key(slots[at], &new[at]).is_none()));
}

/// A frame holds its number as well, so that not even the authority's signature puts it elsewhere.
#[test]
fn a_frame_under_another_number_is_refused() {
    let mut fleet = MemberTestFleet::of(1);
    let given = fleet.base.set_beater(None).unwrap();
    let number = given[0].number().unwrap();
    let signer = fleet.base.keys.identity().signer().unwrap();
    let frame = given[0].frame().unwrap();
    let again = GroupNotice::order(&signer, fleet.base.id(), number + 1, frame).unwrap();
    let member = &mut fleet.members[0];
    member.apply(&given[0]).unwrap();
    assert!(matches!(member.apply(&again), Err(Error::Malformed(_))));
    // The authority has said that there is such an order, so that something is amiss.
    assert!(matches!(member.sender(), Err(Error::Behind { .. })));
    assert_eq!(member.orders(), number + 1);
}

/// An authority that goes by other rules admits a member whose certificate it has told nobody.
#[test]
fn an_admission_without_its_certificate_is_refused_and_changes_nothing() {
    let mut fleet = MemberTestFleet::of(1);
    let given = fleet.base.notices(0).unwrap();
    let member = &mut fleet.members[0];
    given.iter().for_each(|notice| drop(member.apply(notice).unwrap()));
    let lock = fleet.base.keys.lock().unwrap();
    let (slot, certificate) = (Slot::new(7).unwrap(), [7; 32]);
    let admit = GroupOrder::Admit { slot, certificate, replaces: None };
    let notice = fleet.base.order_alone(&lock, &admit).unwrap();
    let refused = member.apply(&notice).unwrap_err();
    assert!(matches!(refused, Error::CertificateMissing), "{refused:?}");
    assert_eq!(member.roster().entries().len(), 2);
    // It knows of an order that it could not obey, and seals nothing until it can.
    assert!(matches!(member.sender(), Err(Error::Behind { .. })));
}

/// The state after thousands of orders to rotate, without giving all of them.
fn age(member: &mut GroupMember, newest: u64) {
    let lock = member.keys.lock().unwrap();
    for epoch in 1..=newest {
        let secret = *blake3::hash(&epoch.to_be_bytes()).as_bytes();
        member.state.epochs.insert(Epoch(epoch), EpochSecret::new(secret)).unwrap();
    }
    member.state.awaited = Epoch(newest);
    member.keys.save(&lock, &member.name, &member.state).unwrap();
}

#[test]
fn a_removal_never_fails_for_the_number_of_epochs() {
    let mut fleet = MemberTestFleet::of(3);
    let notices = fleet.base.notices(0).unwrap();
    for member in &mut fleet.members {
        notices.iter().for_each(|notice| drop(member.apply(notice).unwrap()));
        age(member, 4190);
    }
    age(&mut fleet.base, 4190);
    let mut reader = fleet.members[0].opener().unwrap();
    let bound = sealane_seal::limits::MAX_EPOCHS_HELD;
    let mut thief = fleet.members.pop().unwrap();
    for at in 0..10 {
        let notices = match at {
            3 => fleet.base.advance().unwrap(),
            6 => fleet.base.revoke(&[thief.slot()]).unwrap(),
            _ => fleet.base.rotate().unwrap(),
        };
        for member in &mut fleet.members {
            assert_eq!(member.apply(&notices[0]).unwrap().len(), 1);
        }
        if at <= 6 {
            thief.apply(&notices[0]).unwrap();
        }
    }
    assert!(thief.is_removed());
    let newest = Epoch(4200);
    for member in fleet.members.iter().chain([&fleet.base]) {
        let held: Vec<u64> = member.epochs().held().map(|(epoch, _)| epoch.0).collect();
        assert_eq!((held.len(), member.epochs().newest()), (bound, newest));
        assert_eq!(held[0], 4200 - bound as u64 + 1, "the oldest leaves");
        member.sender().unwrap();
    }
    // A reader that was full goes on, a newcomer is handed all that there is, and nothing is lost
    // on the way through the file.
    let frame = {
        let mut sender = fleet.base.sender().unwrap();
        let fields = sender.fields(Class::Group, 1);
        let mut buf = FrameBuf::new();
        sender.seal(&fields, &Binding::stream("log"), b"x", &mut buf).unwrap().to_vec()
    };
    fleet.members[0].refresh(&mut reader).unwrap();
    let log = Binding::stream("log");
    open_stored(&mut reader, newest, &log, &mut frame.clone()).unwrap();
    let keys = KeyFolder::create(&fleet.folder.path().join("new"), "new", None).unwrap();
    let new = fleet.join(&keys);
    assert_eq!(new.epochs().held().count(), bound);
    let healed = fleet.heal(&[0], true);
    assert_eq!(fleet.members[0].apply(&fleet.base.notices(0).unwrap()[8]).ok(), Some(vec![]));
    let missed = fleet.base.notices(fleet.members[0].orders()).unwrap();
    missed.iter().for_each(|notice| drop(fleet.members[0].apply(notice).unwrap()));
    assert_eq!(fleet.members[0].epochs().newest(), Epoch(4201));
    assert!(fleet.members[0].apply(&healed).unwrap().is_empty());
}
