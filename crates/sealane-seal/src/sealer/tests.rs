//! The bounds that no test through the public API can reach.

use super::*;
use crate::{EpochSecret, GroupId, History, Suite};

const CONTEXT: SenderContext = SenderContext(*b"start 01");

fn sealer(next: u64) -> Sealer {
    let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
    let secret = EpochSecret::new([1; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    Sealer::new(group, Slot::new(1).unwrap(), CONTEXT, &epochs, next).unwrap()
}

fn seal(sealer: &mut Sealer) -> Result<usize, Error> {
    let (binding, mut out) = (Binding::link(), Vec::new());
    let sealed = sealer.append(Class::Group, Form::Full, &binding, b"", b"body", &mut out);
    assert_eq!(sealed.is_err(), out.is_empty(), "nothing is appended in vain");
    sealed.map(|sealed| sealed.len())
}

#[test]
fn a_context_seals_so_many_messages_and_no_more() {
    const { assert!(MAX_KEY_MESSAGES == 1 << 32) };
    let mut sealer = sealer(0);
    assert_eq!(sealer.left, MAX_KEY_MESSAGES);
    sealer.left = 3;
    for counter in 0..3 {
        assert_eq!(sealer.next_counter(), Ok(counter));
        seal(&mut sealer).unwrap();
    }
    assert_eq!(sealer.next_counter(), Err(Error::CountersUsedUp));
    assert_eq!(seal(&mut sealer), Err(Error::CountersUsedUp));
    assert_eq!(sealer.next, 3, "the counters go on under another context");
}

/// They count together: a key of its own for each class does not make more messages safe.
#[test]
fn messages_of_all_classes_count() {
    let mut sealer = sealer(0);
    sealer.left = 2;
    let (binding, mut out) = (Binding::link(), Vec::new());
    for class in [Class::Authenticated, Class::Group] {
        sealer.append(class, Form::Compact, &binding, b"", b"body", &mut out).unwrap();
    }
    assert_eq!(seal(&mut sealer), Err(Error::CountersUsedUp));
}

#[test]
fn what_is_refused_before_the_key_is_applied_costs_nothing() {
    let mut sealer = sealer(5);
    let before = (sealer.next, sealer.left);
    let mut out = Vec::new();
    let refused = sealer.append(Class::Signed, Form::Full, &Binding::link(), b"", b"", &mut out);
    assert_eq!(refused, Err(Error::NoSigningKey));
    assert_eq!((sealer.next, sealer.left), before);
}
