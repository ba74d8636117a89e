//! Nothing opens of a slot in an epoch in which nobody had it: not of who is not admitted yet, and
//! not of who was removed. Where a removal begins to hold in a stream, its mark says.

use crate::shared::{Place, apply, invite, invite_with, log, named, open, reopen};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_group::{
    EpochSource, GroupChange, GroupMember, KeyFolder, NewGroup, PastSecrets, RemovalMark,
};
use sealane_seal::{Binding, Class, Epoch, Epochs, History, Sealer, SenderContext, Slot};

const CLASSES: [Class; 3] = [Class::Authenticated, Class::Group, Class::Signed];

/// The frame of a member that goes by no rules, in an epoch whose secret it holds or has stolen.
fn forge(
    thief: &KeyFolder,
    group: &GroupMember,
    slot: Slot,
    epoch: Epoch,
    class: Class,
) -> Vec<u8> {
    let secret = group.epochs().secret(epoch).unwrap().clone();
    let epochs = Epochs::new(group.id(), History::Kept, epoch, secret);
    let context = SenderContext([7; 8]);
    let mut sealer = Sealer::new(group.group(), slot, context, &epochs, 5).unwrap();
    sealer.set_signing_key(thief.identity().signing_key().unwrap());
    let source = group.source().unwrap();
    let fields = HeaderFields { class, ..HeaderFields::new(group.tag(), source, 1) };
    seal_frame(&mut sealer, &fields, &log(), b"x", &mut FrameBuf::new()).unwrap().to_vec()
}

/// The outcome of that in each class.
fn outcome(reader: &GroupMember, forged: impl Fn(Class) -> Vec<u8>) -> [Option<&'static str>; 3] {
    let mut opener = reader.opener().unwrap();
    CLASSES.map(|class| open(&mut opener, &forged(class)).err().map(|error| error.info().name))
}

const NOT_MEMBER: [Option<&str>; 3] = [Some("NotMember"); 3];

#[test]
fn a_newcomer_seals_nothing_in_the_epochs_before_it() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(2, NewGroup::default());
    apply(&mut members[0], &base.rotate().unwrap()).unwrap();
    let keys = place.keys("new");
    // It is handed the whole past, to read.
    let invited = invite_with(&mut base, &keys, PastSecrets::All);
    let new = keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(new.roster().entry(new.slot()).unwrap().since(), Epoch(1));
    let (own, group) = (&keys, &new);
    let forged = |epoch| move |class| forge(own, group, group.slot(), epoch, class);
    // A member that has not heard of it yet takes nothing of it at all.
    assert_eq!(outcome(&members[0], forged(Epoch(1))), NOT_MEMBER);
    apply(&mut members[0], &invited.notices).unwrap();
    assert_eq!(outcome(&members[0], forged(Epoch(1))), [None; 3]);
    assert_eq!(outcome(&members[0], forged(Epoch(0))), NOT_MEMBER);
    assert_eq!(outcome(&new, forged(Epoch(0))), NOT_MEMBER);
}

#[test]
fn a_removed_member_seals_nothing_in_the_epochs_behind_it() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    let thief = members.pop().unwrap();
    let keys = KeyFolder::open(&place.path("car3"), None).unwrap();
    let notices = base.revoke(&[thief.slot()]).unwrap();
    let forged = |epoch| {
        let (keys, base, slot) = (&keys, reopen(&place.path("base")), thief.slot());
        move |class| forge(keys, &base, slot, epoch, class)
    };
    // A member that has not heard of the removal takes what is of its time.
    assert_eq!(outcome(&members[0], forged(Epoch(0))), [None; 3]);
    apply(&mut members[0], &notices).unwrap();
    // Even with a secret that somebody has told it.
    assert_eq!(outcome(&members[0], forged(Epoch(1))), NOT_MEMBER);
    assert_eq!(outcome(&base, forged(Epoch(1))), NOT_MEMBER);
    assert_eq!(outcome(&members[0], forged(Epoch(0))), [None; 3], "its past is read");

    // A slot that was replaced is closed likewise, and the new one is not open before its time.
    let again = KeyFolder::open(&place.path("car2"), None).unwrap();
    let invited = invite(&mut base, &again);
    apply(&mut members[0], &invited.notices).unwrap();
    let (old, new) = (invited.replaces.unwrap(), invited.slot);
    let of = |slot, epoch| {
        let (again, base) = (&again, &base);
        outcome(&members[0], move |class| forge(again, base, slot, epoch, class))
    };
    assert_eq!(of(old, Epoch(1)), [None; 3]);
    assert_eq!(of(old, Epoch(2)), NOT_MEMBER);
    assert_eq!(of(new, Epoch(1)), NOT_MEMBER);
    assert_eq!(of(new, Epoch(2)), [None; 3]);
    // Nor may a member sign with its key for another slot that is open.
    let own = forge(&again, &base, members[0].slot(), Epoch(2), Class::Signed);
    let refused = open(&mut base.opener().unwrap(), &own).unwrap_err();
    assert_eq!(refused.info().name, "SignatureInvalid");
}

fn mark(stream: &str, generation: u64, next: u64) -> RemovalMark {
    RemovalMark { stream: Binding::stream(stream), generation, next }
}

/// The first epochs at places of a stream.
fn first<const N: usize>(member: &GroupMember, stream: &str, places: [(u64, u64); N]) -> [u64; N] {
    let stream = Binding::stream(stream);
    places.map(|(generation, offset)| member.first_epoch(&stream, generation, offset).0)
}

#[test]
fn a_removal_holds_from_its_mark_on() {
    let place = Place::new();
    let (mut base, mut members) = place.fleet(4, NewGroup::default());
    assert!(!base.owes_marks());
    let notices = base.revoke(&[members.pop().unwrap().slot()]).unwrap();
    assert!(base.owes_marks() && reopen(&place.path("base")).owes_marks());
    members.iter_mut().for_each(|member| drop(apply(member, &notices).unwrap()));
    assert!(!members[0].owes_marks(), "only the authority owes them");
    assert_eq!(first(&members[0], "log", [(1, 0), (1, 99)]), [0, 0]);

    let marked = base.mark(&[mark("log", 1, 10), mark("chat", 3, 0)]).unwrap();
    assert!(!base.owes_marks() && marked.len() == 1);
    for member in &mut members {
        assert_eq!(apply(member, &marked).unwrap(), [GroupChange::Marked(2)]);
        let places = [(0, 99), (1, 9), (1, 10), (1, u64::MAX), (2, 0)];
        assert_eq!(first(member, "log", places), [0, 0, 1, 1, 1]);
        assert_eq!(first(member, "chat", [(2, 9), (3, 0)]), [0, 1]);
        assert_eq!(first(member, "other", [(9, 9)]), [0]);
        assert!(member.is_marked(&Binding::stream("log")));
    }
    // Where the authority has said nothing, a member marks what it sees itself, and nothing else.
    assert!(!members[0].is_marked(&Binding::stream("other")));
    members[0].mark_here(&[mark("other", 1, 4), mark("log", 1, 0)]).unwrap();
    let first_here = [
        first(&members[0], "other", [(1, 3), (1, 4)]),
        first(&members[0], "log", [(1, 9), (1, 10)]),
    ];
    assert_eq!(first_here, [[0, 1], [0, 1]]);
    assert_eq!(first(&reopen(&place.path("car1")), "other", [(1, 4)]), [1]);

    // A later removal has marks of its own, and a newcomer is told all.
    let notices = base.revoke(&[members.pop().unwrap().slot()]).unwrap();
    let marked = base.mark(&[mark("log", 1, 30)]).unwrap();
    apply(&mut members[0], &[notices, marked].concat()).unwrap();
    let keys = place.keys("new");
    let invited = invite(&mut base, &keys);
    let new = keys.join(&invited.invitation, None, None).unwrap();
    for member in [&members[0], &new, &base] {
        assert_eq!(first(member, "log", [(1, 9), (1, 10), (1, 29), (1, 30)]), [0, 1, 1, 2]);
    }
    // Nothing to mark is no order, and the debt is paid.
    base.revoke(&[new.slot()]).unwrap();
    assert!(base.owes_marks());
    assert!(base.mark(&[]).unwrap().is_empty() && !base.owes_marks());
    assert_eq!(named(reopen(&place.path("new")).mark(&[])), "NotAuthority");
}
