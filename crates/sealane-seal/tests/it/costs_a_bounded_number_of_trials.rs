//! An attacker that makes contexts up costs a live reader a bounded number of keys. It disturbs no
//! session that the reader knows.

use crate::shared::world::*;
use sealane_seal::*;

/// An announcement of a context that nobody has, with a tag that nobody made.
fn forged(group: Group, epochs: &Epochs, number: u32) -> Sealed {
    let context = SenderContext((1 << 40 | u64::from(number)).to_be_bytes());
    let mut forged = announcement(&mut sealer_of(group, slot(2), epochs, context, 0), 1);
    *forged.bytes.last_mut().unwrap() ^= 1;
    forged
}

#[test]
fn honest_sessions_go_on_while_unknown_ones_wait() {
    for suite in Suite::ALL {
        let group = group(suite);
        let epochs = epochs(group);
        let (mut known, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
        introduce(&mut known, &mut reader);
        for number in 1..limits::MAX_TRIALS {
            let refused = forged(group, &epochs, number).announce(&mut reader);
            assert_eq!(refused.unwrap_err(), Error::NotAuthentic, "trial {number}");
        }
        let mut unknown = sealer_of(group, slot(3), &epochs, SenderContext([3; 8]), 0);
        for number in 0..100 {
            let refused = forged(group, &epochs, 100 + number);
            let mut bytes = refused.bytes.clone();
            let error = reader.open_announcement(&refused.attached(), &mut bytes).map(|_| ());
            assert_eq!(error, Err(Error::TooManyTrials));
            assert_eq!(bytes, refused.bytes, "no key was applied");
            let honest = announcement(&mut unknown, 1).announce(&mut reader);
            assert_eq!(honest.unwrap_err(), Error::TooManyTrials);
            let message = seal(&mut known, Class::Group, Form::Full, META, BODY);
            message.live(&mut reader).expect("of a known session");
            announcement(&mut known, 1).announce(&mut reader).expect("of a known session");
        }
        reader.allow_trials();
        announcement(&mut unknown, 1).announce(&mut reader).unwrap();
    }
}

/// The count does not add up: a quiet second leaves no more trials for the next.
#[test]
fn as_many_are_allowed_however_often() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut reader = opener(group, &epochs);
    (0..100).for_each(|_| reader.allow_trials());
    let tried = (0..200).filter(|number| {
        let refused = forged(group, &epochs, *number).announce(&mut reader).unwrap_err();
        refused == Error::NotAuthentic
    });
    assert_eq!(tried.count(), limits::MAX_TRIALS as usize);
}

/// A message that can be refused without a key costs no trial.
#[test]
fn what_is_no_announcement_costs_none() {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs(group);
    let early = announcement(&mut sealer(group, slot(1), &epochs), 1);
    let unknown_yet = announcement(&mut sealer(group, slot(1), &epochs_at(group, 3)), 1);
    let mut reader = Opener::new(group, Some(slot(0)), epochs.clone()).unwrap();
    reader.set_terms((0..4).map(term)).unwrap();
    (1..=2).for_each(|epoch| reader.insert(Epoch(epoch), advance(&mut epochs)).unwrap());
    let mut sender = sealer(group, slot(1), &epochs);
    let own = announcement(&mut sealer(group, slot(0), &epochs), 1);
    let body = Announcement { start: 1, orders: 0 }.to_bytes();
    let mut of_class =
        |class| seal_for(&mut sender, &Binding::link(), class, Form::Full, META, &body);
    let (clear, secret) = (of_class(Class::Authenticated), of_class(Class::Group));
    let short = Sealed { bytes: own.bytes[..40].to_vec(), ..own.clone() };
    for _ in 0..2 * limits::MAX_TRIALS {
        assert_eq!(early.announce(&mut reader).unwrap_err(), Error::EpochPast);
        assert_eq!(unknown_yet.announce(&mut reader).unwrap_err(), Error::EpochUnknown);
        assert_eq!(own.announce(&mut reader).unwrap_err(), Error::Reflected);
        assert_eq!(secret.announce(&mut reader).unwrap_err(), Error::Class);
        assert!(clear.announce(&mut reader).is_err());
        assert_eq!(short.announce(&mut reader).unwrap_err(), Error::Truncated);
    }
    introduce(&mut sender, &mut reader);
}

/// An authentic message of class S that is bound to the link and says something else.
#[test]
fn another_body_announces_nobody() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
    let good = Announcement { start: 1, orders: 0 }.to_bytes();
    for body in [&good[1..], &[2; 17], &[], &[&good[..], &[0]].concat()] {
        let (class, form, binding) = (Class::Signed, Form::Full, Binding::link());
        let message = seal_for(&mut sender, &binding, class, form, META, body);
        assert_eq!(message.announce(&mut reader).unwrap_err(), Error::Malformed);
        assert_eq!(reader.announced(slot(1)), None);
    }
}
