//! An authority whose folder was copied or restored gives no order under old numbers: it begins
//! anew, far ahead, under a fresh secret. Of two that nothing tells apart, the one that hears the
//! other gives none any more.

use crate::shared::{
    Place, apply, card, clone, copy, invite, join, named, open, reopen, seal, state,
};
use sealane_frame::FrameView;
use sealane_group::{
    EpochSource, GroupChange, GroupMember, KeyFolder, NewGroup, PastSecrets, RemovalMark,
};
use sealane_seal::{Binding, Class, Epoch, Slot};

/// How many orders a group counts whose first renewal was the last one.
const BEHIND_RENEWAL: u64 = (2 << 20) + 1;

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// No order and no heartbeat comes of it, and nothing changes.
fn gives_nothing(authority: &mut GroupMember, place: &Place, name: &str) {
    let van = card(&place.keys(&format!("van of {name}")));
    let before = state(&place.path(name));
    let mark = RemovalMark { stream: Binding::stream("log"), generation: 1, next: 2 };
    let refused = [
        named(authority.invite(&van, PastSecrets::All)),
        named(authority.rotate()),
        named(authority.advance()),
        named(authority.revoke(&[slot(1)])),
        named(authority.heal(&[van], false)),
        named(authority.mark(&[mark])),
        named(authority.set_beater(Some(&[1; 32]))),
        named(authority.heartbeat()),
    ];
    assert_eq!(refused, ["CopiedFolder"; 8]);
    assert_eq!(state(&place.path(name)), before);
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

    let mut copied = reopen(&place.path("copy"));
    gives_nothing(&mut copied, &place, "copy");
    // As a member it seals, like every copy.
    let frame = seal(&mut copied.sender().unwrap(), Class::Group, b"copy");
    assert_eq!(open(&mut car.opener().unwrap(), &frame).unwrap(), b"copy");
    // Reading on does not make it whole.
    copied.passed(Epoch(0)).unwrap();
    assert_eq!(named(copied.rotate()), "CopiedFolder");
    assert_eq!(named(reopen(&place.path("copy")).rotate()), "CopiedFolder");

    let renewed = copied.renew(None).unwrap();
    assert_eq!((copied.epochs().newest(), copied.orders()), (Epoch(64), BEHIND_RENEWAL));
    let rekeyed = GroupChange::Rekeyed { epoch: Epoch(64), removed: vec![slot(2)] };
    assert_eq!(apply(&mut car, &renewed).unwrap(), [rekeyed]);
    assert!(apply(&mut car, &renewed).unwrap().is_empty());
    assert_eq!((car.orders(), car.live_from()), (BEHIND_RENEWAL, Epoch(64)));
    assert_eq!(apply(&mut bus, &renewed).unwrap(), [GroupChange::Removed]);
    let new = seal(&mut copied.sender().unwrap(), Class::Group, b"new");
    assert_eq!(open(&mut car.opener().unwrap(), &new).unwrap(), b"new");
    assert_eq!(open(&mut car.opener().unwrap(), &old).unwrap(), b"old");
    let slot = |frame: &[u8]| FrameView::parse(frame).unwrap().seal_header().key.slot;
    assert_eq!(slot(&new), slot(&old));

    // It invites again, the one that was left out too; the roster of the others follows.
    let van = place.keys("van");
    let invited = invite(&mut copied, &van);
    let van = van.join(&invited.invitation, None, None).unwrap();
    apply(&mut car, &invited.notices).unwrap();
    assert_eq!(car.roster(), van.roster());

    // The original hears of it and gives no order any more, until it begins anew itself.
    let mut base = reopen(&place.path("base"));
    assert_eq!(named(apply(&mut base, &renewed)), "CopiedFolder");
    gives_nothing(&mut base, &place, "base");
    base.renew(Some(copied.epochs().newest())).unwrap();
    assert_eq!(base.epochs().newest(), Epoch(128));
    base.rotate().unwrap();
}

/// However many orders were given since the backup was made, the members follow; and where epochs
/// have gone on too far for the renewal to be ahead of them, they say that something is missing.
#[test]
fn a_backup_that_is_far_behind_is_renewed_beyond_it() {
    let place = Place::quick();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    let mut given = Vec::new();
    for at in 0..300 {
        let order = if at % 10 == 0 { base.rotate() } else { base.set_beater(None) };
        given.extend(order.unwrap());
    }
    apply(&mut members[0], &given).unwrap();
    let restored = KeyFolder::restore(&place.path("restored"), &backup, None).unwrap();
    let mut restored = restored.group("fleet").unwrap();
    let renewed = restored.renew(None).unwrap();
    let rekeyed = |epoch| GroupChange::Rekeyed { epoch: Epoch(epoch), removed: vec![] };
    // Both who has obeyed all that the backup does not know and who has obeyed none of it.
    for member in &mut members {
        assert_eq!(apply(member, &renewed).unwrap(), [rekeyed(64)]);
        assert_eq!(member.orders(), restored.orders());
    }
    // A second backup of the same time begins anew under the same number: it is told the epoch.
    given = (0..70).flat_map(|_| restored.rotate().unwrap()).collect();
    members.iter_mut().for_each(|member| drop(apply(member, &given).unwrap()));
    let again = KeyFolder::restore(&place.path("again"), &backup, None).unwrap();
    let mut again = again.group("fleet").unwrap();
    for notice in again.renew(None).unwrap() {
        assert!(members[0].apply(&notice).unwrap().is_empty(), "the number was used");
    }
    let missing = members[0].orders();
    let too_near = again.renew(None).unwrap();
    assert_eq!(again.epochs().newest(), Epoch(128));
    assert_eq!(apply(&mut members[0], &too_near).unwrap(), [GroupChange::Held { missing }]);
    assert_eq!(named(members[0].sender()), "Behind");
    let renewed = again.renew(Some(members[0].epochs().newest())).unwrap();
    for member in &mut members {
        assert_eq!(apply(member, &renewed).unwrap(), [rekeyed(256)]);
        member.sender().unwrap();
    }
}

/// Orders behind a new beginning may come before it.
#[test]
fn orders_that_follow_a_renewal_wait_for_it() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(3, NewGroup::default());
    // The members hear nothing of the orders before it: they are stepped over.
    base.rotate().unwrap();
    let renewed = base.renew(None).unwrap();
    let rotated = base.rotate().unwrap();
    let missing = members[0].orders();
    assert_eq!(apply(&mut members[0], &rotated).unwrap(), [GroupChange::Held { missing }]);
    assert_eq!(named(members[0].sender()), "Behind");
    let told = apply(&mut members[0], &renewed).unwrap();
    let rekeyed = |epoch| GroupChange::Rekeyed { epoch: Epoch(epoch), removed: vec![] };
    assert_eq!(told, [rekeyed(128), rekeyed(129)]);
    apply(&mut members[1], &[renewed, rotated].concat()).unwrap();
    for member in &members {
        assert_eq!((member.orders(), member.epochs().newest()), (base.orders(), Epoch(129)));
        member.sender().unwrap();
    }
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
    let mut base = reopen(&place.path("base"));
    gives_nothing(&mut base, &place, "base");
    base.renew(Some(Epoch(1000))).unwrap();
    assert_eq!(base.epochs().newest(), Epoch(1088));
    invite(&mut base, &place.keys("van"));
}

/// Two folders that no witness tells apart, as those of a machine that was cloned.
#[test]
fn a_cloned_authority_that_hears_the_other_gives_no_order() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let folders = ["one", "two", "three", "four"].map(|name| {
        clone(&place.path("base"), &place.path(name));
        place.path(name)
    });
    let [mut one, mut two, mut three, mut four] = folders.each_ref().map(|path| reopen(path));
    // Each gives an order under the same number, and the first one goes on.
    let given = one.rotate().unwrap();
    let other = two.rotate().unwrap();
    assert_eq!(given[0].number(), other[0].number());
    let further = one.rotate().unwrap();
    assert!(apply(&mut one, &[&given[..], &further].concat()).unwrap().is_empty());
    for (authority, name, heard) in [(&mut one, "one", &other[0]), (&mut two, "two", &given[0])] {
        assert_eq!(named(authority.apply(heard)), "CopiedFolder", "{name}");
        gives_nothing(authority, &place, name);
    }
    // One that has given nothing hears an order, or only that there are more.
    assert_eq!(named(three.apply(&further[0])), "CopiedFolder");
    let beat = reopen(&place.path("base")).heartbeat().unwrap();
    assert_eq!(four.apply(&beat).unwrap().len(), 1, "as many as it has given itself");
    base.rotate().unwrap();
    assert_eq!(named(four.apply(&base.heartbeat().unwrap())), "CopiedFolder");
    gives_nothing(&mut four, &place, "four");

    // The members follow whom they hear first, and the one that begins anew beyond it.
    apply(&mut members[0], &[&given[..], &further].concat()).unwrap();
    assert!(apply(&mut members[0], &other).unwrap().is_empty());
    let renewed = two.renew(None).unwrap();
    apply(&mut members[0], &renewed).unwrap();
    assert_eq!(members[0].roster(), two.roster());
    assert_eq!(members[0].orders(), two.orders());
    let rotated = two.rotate().unwrap();
    apply(&mut members[0], &rotated).unwrap();
    members[0].sender().unwrap();
}

/// Several processes of one folder that give orders at once: each has a number of its own.
#[test]
fn orders_that_are_given_at_once_have_numbers_of_their_own() {
    let place = Place::quick();
    let (base, mut members) = place.fleet(2, NewGroup::default());
    let first = base.orders();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut base = reopen(&place.path("base"));
                (0..10).for_each(|_| drop(base.rotate().unwrap()));
            });
        }
    });
    let given = base.notices(first).unwrap();
    let numbers: Vec<u64> = given.iter().filter_map(|notice| notice.number()).collect();
    assert_eq!(numbers, (first..first + 40).collect::<Vec<u64>>());
    // The member has several processes as well, each of which hears a part of them.
    let mut other = reopen(&place.path("car1"));
    for (at, notice) in given.iter().enumerate() {
        let process = if at / 3 % 2 == 0 { &mut members[0] } else { &mut other };
        process.apply(notice).unwrap();
    }
    other.reload().unwrap();
    assert_eq!((other.orders(), other.epochs().newest()), (first + 40, Epoch(40)));
    other.sender().unwrap();
}

/// The power went between the notice and the state: the removal was never given, and the next order
/// has its number.
#[test]
fn an_order_that_was_cut_off_halfway_is_never_given() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (mut car, _) = join(&mut base, &place.keys("car"));
    let file = place.path("base/groups/fleet/group");
    let (before, given) = (std::fs::read(&file).unwrap(), base.orders());
    base.revoke(&[slot(1)]).unwrap();
    let cut_off = place.path(&format!("base/groups/fleet/orders/{given:08}"));
    assert!(cut_off.is_file());
    // In place: the file stays the one that was written here.
    let written = std::fs::OpenOptions::new().write(true).truncate(true).open(&file).unwrap();
    std::io::Write::write_all(&mut &written, &before).unwrap();
    let mut base = reopen(&place.path("base"));
    assert_eq!(base.orders(), given);
    assert_eq!(base.notices(given).unwrap(), []);
    let shown: Vec<_> = base.notices(0).unwrap().iter().filter_map(|one| one.number()).collect();
    assert_eq!(shown, (0..given).collect::<Vec<_>>());
    drop(written);
    if named(base.rotate()) == "CopiedFolder" {
        // Older content in a file that is newer is told, as any copy is.
        apply(&mut car, &base.renew(None).unwrap()).unwrap();
    }
    assert!(!car.is_removed());
}

#[test]
fn only_an_authority_gives_orders() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    let car = &mut members[0];
    let van = card(&place.keys("van"));
    let before = state(&place.path("car1"));
    let mark = RemovalMark { stream: Binding::stream("log"), generation: 1, next: 2 };
    let refused = [
        named(car.invite(&van, PastSecrets::All)),
        named(car.rotate()),
        named(car.advance()),
        named(car.revoke(&[slot(0)])),
        named(car.heal(&[van], false)),
        named(car.mark(&[mark])),
        named(car.set_beater(None)),
        named(car.heartbeat()),
        named(car.renew(None)),
        named(car.notices(0)),
    ];
    assert_eq!(refused, ["NotAuthority"; 10]);
    assert_eq!(state(&place.path("car1")), before);
    assert_eq!(named(base.revoke(&[base.slot()])), "GroupRefused");
    assert_eq!(named(base.revoke(&[slot(9)])), "UnknownMember");
}
