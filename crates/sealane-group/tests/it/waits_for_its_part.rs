//! A re-key of many members comes in several orders. Nobody seals between the first of them and the
//! one that holds its own secret.

use crate::shared::{Place, apply, forward_secret, join, named, reopen};
use sealane_group::limits::MAX_ORDER_WRAPS;
use sealane_group::{EpochSource, GroupChange, GroupMember, GroupNotice};
use sealane_seal::Epoch;

struct Parts {
    place: Place,
    base: GroupMember,
    first: GroupMember,
    last: GroupMember,
    gone: GroupMember,
    parts: Vec<GroupNotice>,
}

/// A forward-secret group in which a member of the highest slots was removed by two orders: `first`
/// finds its secret in the one, `last` in the other.
fn removed() -> Parts {
    let place = Place::quick();
    let mut base = place.keys("base").new_group("fleet", forward_secret()).unwrap();
    let (mut first, _) = join(&mut base, &place.keys("first"));
    for at in 0..MAX_ORDER_WRAPS - 1 {
        join(&mut base, &place.keys(&format!("car{at}")));
    }
    let (mut last, _) = join(&mut base, &place.keys("last"));
    let (mut gone, _) = join(&mut base, &place.keys("gone"));
    let notices = base.notices(0).unwrap();
    for member in [&mut first, &mut last, &mut gone] {
        apply(member, &notices).unwrap();
    }
    let parts = base.revoke(&[gone.slot()]).unwrap();
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.as_bytes().len() < 16 << 10));
    Parts { place, base, first, last, gone, parts }
}

#[test]
fn nobody_seals_between_the_parts() {
    let Parts { place, mut base, mut first, mut last, mut gone, parts } = removed();
    let removed = vec![gone.slot()];
    let rekeyed = GroupChange::Rekeyed { epoch: Epoch(1), removed };
    let mut sender = last.sender().unwrap();
    assert!(apply(&mut last, &parts[..1]).unwrap().is_empty());
    assert_eq!(last.epochs().newest(), Epoch(0));
    assert_eq!(named(last.sender()), "Behind");
    assert_eq!(named(sender.follow()), "Behind");
    // Nor after a restart.
    let mut last = reopen(&place.path("last"));
    assert_eq!(named(last.check_sealing()), "Behind");
    assert_eq!(apply(&mut last, &parts).unwrap(), std::slice::from_ref(&rekeyed));
    assert_eq!(last.sender().unwrap().epoch(), Epoch(1));
    sender.follow().unwrap();
    assert_eq!(sender.epoch(), Epoch(1));

    // A member that finds its secret first goes on, erases the read secrets, and needs no other
    // part.
    assert_eq!(apply(&mut first, &parts[..1]).unwrap(), [rekeyed]);
    assert_eq!(first.sender().unwrap().epoch(), Epoch(1));
    first.passed(Epoch(1)).unwrap();
    assert!(first.epochs().secret(Epoch(0)).is_none());
    assert!(apply(&mut first, &parts[1..]).unwrap().is_empty());
    assert_eq!((first.orders(), first.roster()), (base.orders(), base.roster()));
    first.sender().unwrap();

    assert_eq!(apply(&mut gone, &parts[..1]).unwrap(), [GroupChange::Removed]);
    // All go on together, and the second part comes first this time.
    let rotated = base.rotate().unwrap();
    assert_eq!(rotated.len(), 2);
    for (member, in_turn) in [(&mut first, 2), (&mut last, 2)] {
        let missing = base.orders() - 2;
        assert_eq!(apply(member, &rotated[1..]).unwrap(), [GroupChange::Held { missing }]);
        assert_eq!(named(member.sender()), "Behind");
        let told = apply(member, &rotated[..1]).unwrap();
        assert_eq!(told, [GroupChange::Rekeyed { epoch: Epoch(in_turn), removed: vec![] }]);
        assert_eq!(member.orders(), base.orders());
        member.sender().unwrap();
    }
}
