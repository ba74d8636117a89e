//! Revocation: what follows it stays closed to the removed member, at 50 bytes a member.

use crate::shared::{Place, apply, copy, invite_with, join, open, seal};
use sealane_frame::{
    Dictionary, Entry, FrameView, HeaderFields, Kind, LinkContext, PeerTag, Roster as LinkRoster,
    open_compact, to_compact,
};
use sealane_group::limits::MAX_ORDER_WRAPS;
use sealane_group::{Change, EpochSource, Error, KeyFolder, Member, NewGroup, Past};
use sealane_seal::{Class, Epoch, Slot};

/// A group of that many members, who all know of each other.
fn group(place: &Place, count: usize) -> (Member, Vec<Member>) {
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let members: Vec<_> =
        (1..count).map(|at| join(&mut base, &place.keys(&format!("car{at}"))).0).collect();
    let notices = base.notices(0).unwrap();
    let mut members: Vec<Member> = members;
    members.iter_mut().for_each(|member| drop(apply(member, &notices).unwrap()));
    (base, members)
}

#[test]
fn what_follows_a_revocation_stays_closed() {
    let place = Place::new();
    let (mut base, mut members) = group(&place, 4);
    let mut thief = members.pop().unwrap();
    let mut tapped = thief.opener().unwrap();
    let mut stolen = thief.sender().unwrap();
    let before = seal(&mut members[0].sender().unwrap(), Class::Group, b"before");
    let notices = base.revoke(&[thief.slot()]).unwrap();
    for member in &mut members {
        let told = apply(member, &notices).unwrap();
        assert_eq!(told, [Change::Rekeyed { epoch: Epoch(1), removed: vec![thief.slot()] }]);
    }
    let after = seal(&mut members[0].sender().unwrap(), Class::Group, b"after");
    assert_eq!(open(&mut members[1].opener().unwrap(), &after).unwrap(), b"after");

    // The removed one reads the order, and what it could read; nothing new.
    assert_eq!(apply(&mut thief, &notices).unwrap(), [Change::Removed]);
    assert!(matches!(thief.apply(&notices[0]), Err(Error::Removed)));
    assert!(matches!(thief.sender(), Err(Error::Removed)));
    assert_eq!(open(&mut tapped, &before).unwrap(), b"before");
    assert_eq!(open(&mut tapped, &after).unwrap_err().info().code, "SL-SEAL-08");
    assert!(open(&mut thief.opener().unwrap(), &after).is_err());
    // Nor does the step by which epochs advance lead there.
    assert!(tapped.advance(Epoch(1)).is_err());

    // What it still seals in the old epoch is not taken live any more.
    let forged = seal(&mut stolen, Class::Group, b"forged");
    let mut reader = members[1].opener().unwrap();
    let refused = sealane_frame::open_frame(&mut reader, &mut forged.clone()).unwrap_err();
    assert_eq!(refused.info().code, "SL-SEAL-07");
    // And the roster tells who it was, and since when it is not.
    let entry = members[1].roster().entry(thief.slot()).unwrap();
    assert_eq!((entry.name(), entry.removed()), ("car3", Some(Epoch(1))));
}

/// The order in the form of a radio: the compact frame, and back.
fn on_radio(frame: &[u8], members: &Member) -> Vec<u8> {
    let header = *FrameView::parse(frame).unwrap().header();
    let fields = HeaderFields {
        kind: Kind::Control,
        class: Class::Signed,
        priority: sealane_frame::Priority::High,
        codec: 0,
        ..HeaderFields::new(header.group(), header.source(), header.data_type())
    };
    let (mut dictionary, mut roster) = (Dictionary::new(), LinkRoster::new());
    dictionary.define(0, Entry::of(&fields)).unwrap();
    members.introduce(&mut roster).unwrap();
    let link = LinkContext {
        dictionary: &dictionary,
        roster: &roster,
        next_hop: PeerTag::BROADCAST,
        previous_hop: header.source(),
    };
    let mut compact = Vec::new();
    to_compact(frame, &link, &mut compact).unwrap();
    let mut opener = members.opener().unwrap();
    let body = open_compact(&mut opener, &mut compact.clone(), &link).unwrap().body.len();
    assert!(body > 0);
    compact
}

#[test]
fn twenty_members_are_re_keyed_in_two_kilobytes_on_radio() {
    let place = Place::new();
    let (mut base, mut members) = group(&place, 20);
    let notices = base.revoke(&[Slot::new(7).unwrap()]).unwrap();
    assert_eq!(notices.len(), 1);
    let compact = on_radio(notices[0].frame().unwrap(), &members[0]);
    println!("20 members, one removed: {} bytes on radio", compact.len());
    assert!(compact.len() <= 2048, "{}", compact.len());
    let rotated = base.rotate().unwrap();
    let removed = members.remove(6);
    assert_eq!(removed.slot().number(), 7);
    for member in &mut members {
        apply(member, &notices).unwrap();
        apply(member, &rotated).unwrap();
        assert_eq!(member.epochs().newest(), Epoch(2));
    }
    let one = rotated[0].as_bytes().len();
    let larger = base.revoke(&[]).unwrap()[0].as_bytes().len();
    assert_eq!(one, larger);
    // 18 wraps of 50 bytes.
    assert!(compact.len() >= 18 * 50 && (compact.len() - 18 * 50) < 260, "{}", compact.len());
}

#[test]
fn an_order_for_many_is_split_and_its_parts_come_in_any_order() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let count = MAX_ORDER_WRAPS + 2;
    let (mut first, _) = join(&mut base, &place.keys("first"));
    for at in 0..count - 3 {
        invite_with(&mut base, &place.keys(&format!("car{at}")), Past::None);
    }
    let (mut last, _) = join(&mut base, &place.keys("last"));
    let (mut gone, _) = join(&mut base, &place.keys("gone"));
    for member in [&mut first, &mut last] {
        let _ = apply(member, &base.notices(0).unwrap()).unwrap();
    }
    let removed = gone.slot();
    let parts = base.revoke(&[removed]).unwrap();
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.as_bytes().len() < 16 << 10));
    let backwards: Vec<_> = parts.iter().rev().cloned().collect();
    for (member, parts) in [(&mut first, &parts), (&mut last, &parts), (&mut gone, &backwards)] {
        let told = apply(member, parts);
        assert_eq!(member.is_removed(), member.slot() == removed, "{told:?}");
        if !member.is_removed() {
            assert_eq!((member.epochs().newest(), member.roster()), (Epoch(1), base.roster()));
            assert_eq!(apply(member, &backwards).unwrap(), [Change::Nothing, Change::Nothing]);
        }
    }
}

#[test]
fn a_copy_of_a_removed_member_is_removed_too() {
    let place = Place::new();
    let (mut base, members) = group(&place, 3);
    copy(&place.path("car1"), &place.path("copy"));
    let notices = base.revoke(&[members[0].slot()]).unwrap();
    let mut copied = KeyFolder::open(&place.path("copy"), None).unwrap().group("fleet").unwrap();
    assert_eq!(apply(&mut copied, &notices).unwrap(), [Change::Removed]);
    let mut reader = copied.opener().unwrap();
    let after = seal(&mut base.sender().unwrap(), Class::Group, b"after");
    assert!(open(&mut reader, &after).is_err());
    assert!(copied.sender().is_err());
}
