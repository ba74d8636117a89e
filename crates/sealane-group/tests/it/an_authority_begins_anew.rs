//! An authority whose folder was copied or restored gives no order under old numbers: it begins
//! anew, far ahead, under a fresh secret.

use crate::shared::{Place, apply, copy, invite, join, open, seal};
use sealane_frame::FrameView;
use sealane_group::{Card, Change, EpochSource, Error, KeyFolder, NewGroup, Past};
use sealane_seal::{Class, Epoch, Slot};

fn is_refused<T>(outcome: Result<T, Error>) {
    assert_eq!(outcome.err().expect("a copy went on").info().name, "CopiedFolder");
}

#[test]
fn a_copied_authority_gives_no_order_before_it_renews() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    copy(&place.path("base"), &place.path("copy"));
    // The original goes on: its members' slots are unknown to the copy.
    let (mut bus, notices) = join(&mut base, &place.keys("bus"));
    apply(&mut car, &notices).unwrap();
    let old = seal(&mut base.sender().unwrap(), Class::Group, b"old");

    let keys = KeyFolder::open(&place.path("copy"), None).unwrap();
    let mut copied = keys.group("fleet").unwrap();
    let card = Card::from_bytes(&place.keys("van").card().unwrap()).unwrap();
    is_refused(copied.invite(&card, Past::All));
    is_refused(copied.rotate());
    is_refused(copied.advance());
    is_refused(copied.revoke(&[Slot::new(1).unwrap()]));
    is_refused(copied.sender().map(|_| ()));
    // Reading on does not make it whole.
    copied.passed(Epoch(0)).unwrap();
    is_refused(copied.rotate());

    let renewed = copied.renew(None).unwrap();
    assert_eq!(copied.epochs().newest(), Epoch(64));
    assert!(copied.roster().number() > base.roster().number());
    assert_eq!(
        apply(&mut car, &renewed).unwrap(),
        [Change::Rekeyed { epoch: Epoch(64), removed: vec![Slot::new(2).unwrap()] }]
    );
    assert_eq!(apply(&mut car, &renewed).unwrap(), [Change::Nothing]);
    assert_eq!(apply(&mut bus, &renewed).unwrap(), [Change::Removed]);
    let new = seal(&mut copied.sender().unwrap(), Class::Group, b"new");
    assert_eq!(open(&mut car.opener().unwrap(), &new).unwrap(), b"new");
    assert_eq!(open(&mut car.opener().unwrap(), &old).unwrap(), b"old");
    let slot = |frame: &[u8]| FrameView::parse(frame).unwrap().seal_header().key.slot;
    assert_eq!(slot(&new), slot(&old));

    // It invites again, the one that was left out too; the roster of the others follows.
    let van = place.keys("van2");
    let invited = invite(&mut copied, &van);
    let van = van.join(&invited.invitation, None, None).unwrap();
    apply(&mut car, &invited.notices).unwrap();
    assert_eq!(car.roster(), van.roster());

    // The original hears of it and gives no order any more.
    let mut base = KeyFolder::open(&place.path("base"), None).unwrap().group("fleet").unwrap();
    is_refused(apply(&mut base, &renewed));
}

#[test]
fn an_older_file_of_an_authority_gives_no_order() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    copy(&place.path("base"), &place.path("kept"));
    join(&mut base, &place.keys("car"));
    let file = "groups/fleet/group";
    let older = std::fs::read(place.path("kept").join(file)).unwrap();
    std::fs::write(place.path("base").join(file), older).unwrap();
    let mut base = KeyFolder::open(&place.path("base"), None).unwrap().group("fleet").unwrap();
    let card = Card::from_bytes(&place.keys("van").card().unwrap()).unwrap();
    is_refused(base.invite(&card, Past::All));
    base.renew(Some(Epoch(1000))).unwrap();
    assert_eq!(base.epochs().newest(), Epoch(1088));
    base.invite(&card, Past::All).unwrap();
}

#[test]
fn only_an_authority_gives_orders() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let card = Card::from_bytes(&place.keys("van").card().unwrap()).unwrap();
    assert!(matches!(car.invite(&card, Past::All), Err(Error::NotAuthority)));
    assert!(matches!(car.rotate(), Err(Error::NotAuthority)));
    assert!(matches!(car.renew(None), Err(Error::NotAuthority)));
    assert!(matches!(car.notices(0), Err(Error::NotAuthority)));
    assert!(matches!(base.revoke(&[base.slot()]), Err(Error::Refused(_))));
    assert!(matches!(base.revoke(&[Slot::new(9).unwrap()]), Err(Error::UnknownMember(_))));
}
