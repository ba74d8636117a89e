//! Revocation: what follows it stays closed to the removed member, at 50 bytes a member.

use crate::shared::{Place, apply, copy, named, open, reopen, seal};
use sealane_frame::{
    DictionaryEntry, FrameAnnouncement, FrameDictionary, FrameRoster as LinkRoster, FrameView,
    HeaderFields, LinkContext, PeerTag, to_compact, to_full,
};
use sealane_group::{EpochSource, Error, GroupChange, GroupMember, NewGroup};
use sealane_seal::{Binding, Class, Epoch, Slot};

#[test]
fn what_follows_a_revocation_stays_closed() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    let mut thief = members.pop().unwrap();
    let mut tapped = thief.opener().unwrap();
    let mut stolen = thief.sender().unwrap();
    let before = seal(&mut members[0].sender().unwrap(), Class::Group, b"before");
    let notices = base.revoke(&[thief.slot()]).unwrap();
    for member in &mut members {
        let told = apply(member, &notices).unwrap();
        assert_eq!(told, [GroupChange::Rekeyed { epoch: Epoch(1), removed: vec![thief.slot()] }]);
    }
    let after = seal(&mut members[0].sender().unwrap(), Class::Group, b"after");
    assert_eq!(open(&mut members[1].opener().unwrap(), &after).unwrap(), b"after");

    // The removed one reads the order, and what it could read; nothing new.
    let known = thief.epochs().secret(Epoch(0)).unwrap().clone();
    assert_eq!(apply(&mut thief, &notices).unwrap(), [GroupChange::Removed]);
    assert!(matches!(thief.apply(&notices[0]), Err(Error::Removed)));
    assert!(matches!(thief.sender(), Err(Error::Removed)));
    assert_eq!(open(&mut tapped, &before).unwrap(), b"before");
    assert_eq!(open(&mut tapped, &after).unwrap_err().info().code, "SL-SEAL-08");
    assert!(open(&mut thief.opener().unwrap(), &after).is_err());
    // Nor does the step by which epochs advance lead there.
    let guessed = known.next(base.id(), Epoch(1)).unwrap();
    assert_ne!(guessed.expose(), base.epochs().secret(Epoch(1)).unwrap().expose());

    // A message that it still seals in the old epoch is not taken live any more.
    let forged = seal(&mut stolen, Class::Group, b"forged");
    let mut reader = members[1].opener().unwrap();
    let link = Binding::link();
    let refused = sealane_frame::open_frame(&mut reader, &link, &mut forged.clone()).unwrap_err();
    assert_eq!(refused.info().code, "SL-SEAL-07");
    // And the roster tells who it was, and since when it is not.
    let entry = members[1].roster().entry(thief.slot()).unwrap();
    assert_eq!((entry.name(), entry.removed()), ("car3", Some(Epoch(1))));
}

/// An order in the form of a radio, on a link on which the authority has announced itself.
fn on_radio(frame: &[u8], members: &GroupMember) -> Vec<u8> {
    let view = FrameView::parse(frame).unwrap();
    let header = *view.header();
    let fields: HeaderFields = header.fields();
    let (mut dictionary, mut roster) = (FrameDictionary::new(), LinkRoster::new());
    dictionary.define(0, DictionaryEntry::of(&fields)).unwrap();
    members.introduce(&mut roster).unwrap();
    let announced = FrameAnnouncement { context: header.context(), orders: header.orders() };
    roster.announce(header.group(), view.seal_header().key.slot, announced).unwrap();
    let link = LinkContext {
        dictionary: &dictionary,
        roster: &roster,
        next_hop: PeerTag::BROADCAST,
        previous_hop: header.source(),
    };
    let (mut compact, mut full) = (Vec::new(), Vec::new());
    to_compact(frame, &link, &mut compact).unwrap();
    to_full(&compact, &link, &mut full).unwrap();
    assert_eq!(full, frame, "the notice's signature is made over this frame");
    compact
}

#[test]
fn twenty_members_are_re_keyed_in_one_kilobyte_on_radio() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(20, NewGroup::default());
    let notices = base.revoke(&[Slot::new(7).unwrap()]).unwrap();
    assert_eq!(notices.len(), 1);
    let compact = on_radio(notices[0].frame().unwrap(), &members[0]);
    println!("20 members, one removed: {} bytes on radio", compact.len());
    assert!(compact.len() <= 1046, "{}", compact.len());
    // 18 wraps of 50 bytes, and what does not grow.
    assert!((130..=146).contains(&(compact.len() - 18 * 50)), "{}", compact.len());
    let rotated = base.rotate().unwrap();
    let removed = members.remove(6);
    assert_eq!(removed.slot().number(), 7);
    for member in &mut members {
        apply(member, &notices).unwrap();
        apply(member, &rotated).unwrap();
        assert_eq!(member.epochs().newest(), Epoch(2));
    }
    let one = rotated[0].as_bytes().len();
    assert_eq!(one, base.revoke(&[]).unwrap()[0].as_bytes().len());
}

#[test]
fn a_copy_of_a_removed_member_is_removed_too() {
    let place = Place::new();
    let (mut base, members) = place.fleet(3, NewGroup::default());
    copy(&place.path("car1"), &place.path("copy"));
    let notices = base.revoke(&[members[0].slot()]).unwrap();
    let mut copied = reopen(&place.path("copy"));
    assert_eq!(apply(&mut copied, &notices).unwrap(), [GroupChange::Removed]);
    let mut reader = copied.opener().unwrap();
    let after = seal(&mut base.sender().unwrap(), Class::Group, b"after");
    assert!(open(&mut reader, &after).is_err());
    assert!(copied.sender().is_err());
}

/// Two are removed at once, and one of them again with a third: nothing is told twice.
#[test]
fn several_leave_by_one_order() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(5, NewGroup::default());
    let slots = [members[1].slot(), members[3].slot()];
    let notices = base.revoke(&[slots[1], slots[0], slots[1]]).unwrap();
    assert_eq!(notices.len(), 1);
    for (at, member) in members.iter_mut().enumerate() {
        let told = apply(member, &notices).unwrap();
        let rekeyed = GroupChange::Rekeyed { epoch: Epoch(1), removed: slots.to_vec() };
        assert_eq!(told, [if at % 2 == 0 { rekeyed } else { GroupChange::Removed }]);
    }
    assert_eq!(named(base.revoke(&slots[..1])), "UnknownMember");
    assert_eq!(members[0].roster(), base.roster());
}
