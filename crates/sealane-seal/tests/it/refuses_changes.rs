//! Whatever is authenticated cannot be changed: no bit, no class, no context, no meta, no group.

use crate::shared::peer;
use crate::shared::world::*;
use sealane_seal::*;

/// The five messages whose every byte is put to the test.
fn five() -> [(Suite, Class, Form, &'static [u8]); 5] {
    [
        (Suite::Aes256Gcm, Class::Authenticated, Form::Full, BODY),
        (Suite::ChaCha20Poly1305, Class::Group, Form::Compact, BODY),
        (Suite::Aes256Gcm, Class::Signed, Form::Full, BODY),
        (Suite::ChaCha20Poly1305, Class::Peer, Form::Full, BODY),
        (Suite::Aes256Gcm, Class::Group, Form::Full, b""),
    ]
}

/// Opens a changed message both ways; no way may open, move anything, or leave plaintext.
fn is_refused(opener: &mut Opener, changed: &Sealed, plain: &[u8], what: &str) {
    let before = state(opener);
    let mut bytes = changed.bytes.clone();
    let live = opener.open_live(changed.form, &changed.attached(), &mut bytes, changed.clear);
    let live = live.map(PendingOpen::accept).expect_err(what);
    leaves_nothing(&changed.bytes, &bytes, live, plain, changed.class);
    let mut bytes = changed.bytes.clone();
    let (form, clear) = (changed.form, changed.clear);
    let stored = opener.open_stored(Epoch(0), form, &changed.attached(), &mut bytes, clear);
    leaves_nothing(&changed.bytes, &bytes, stored.expect_err(what), plain, changed.class);
    assert_eq!(state(opener), before, "{what}");
}

/// The bytes are as they came if no key was applied, and hold no plaintext in any case.
fn leaves_nothing(came: &[u8], now: &[u8], error: Error, plain: &[u8], class: Class) {
    let is_new = came != now;
    let is_zeroed = matches!(error, Error::NotAuthentic | Error::Signature);
    assert!(!is_new || is_zeroed, "{error:?}");
    if class != Class::Authenticated || is_zeroed {
        let holds =
            plain.len() > 8 && now.windows(8).any(|part| plain.windows(8).any(|p| p == part));
        assert!(!holds, "{error:?}");
    }
}

#[test]
fn every_byte_and_every_bit_of_five_messages() {
    for (suite, class, form, body) in five() {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let mut sender = sealer(group, slot(1), &epochs);
        let mut reader = opener(group, &epochs);
        introduce(&mut sender, &mut reader);
        seal(&mut sender, class, form, META, b"before").live(&mut reader).unwrap();
        let message = seal(&mut sender, class, form, META, body);
        for at in 0..message.bytes.len() {
            for value in 1..=255 {
                let mut changed = message.clone();
                changed.bytes[at] ^= value;
                is_refused(&mut reader, &changed, body, &format!("{class:?} byte {at} ^ {value}"));
            }
        }
        for at in 0..message.meta.len() {
            for bit in 0..8 {
                let mut changed = message.clone();
                changed.meta[at] ^= 1 << bit;
                is_refused(&mut reader, &changed, body, &format!("{class:?} meta {at} bit {bit}"));
            }
        }
        for bit in 0..64 {
            let mut changed = message.clone();
            changed.context.0[bit / 8] ^= 1 << (bit % 8);
            is_refused(&mut reader, &changed, body, &format!("{class:?} context {bit}"));
        }
        for len in 0..message.bytes.len() {
            let mut changed = message.clone();
            changed.bytes.truncate(len);
            is_refused(&mut reader, &changed, body, &format!("{class:?} cut to {len}"));
        }
        assert_eq!(message.live(&mut reader).unwrap().1, body, "untouched, it opens");
    }
}

#[test]
fn another_class_slot_epoch_or_counter_in_the_header() {
    for (suite, class, form, body) in five() {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let mut sender = sealer(group, slot(1), &epochs);
        let mut reader = opener(group, &epochs);
        introduce(&mut sender, &mut reader);
        let message = seal(&mut sender, class, form, META, body);
        let header = message.header();
        let mut others: Vec<SframeHeader> = Class::ALL
            .into_iter()
            .filter(|other| *other != class)
            .map(|class| SframeHeader { key: KeyId { class, ..header.key }, ..header })
            .collect();
        others.push(SframeHeader { key: KeyId { slot: slot(0), ..header.key }, ..header });
        others.push(SframeHeader { key: KeyId { epoch_low: 1, ..header.key }, ..header });
        for counter in [0, 2, 1000, limits::MAX_COUNTER] {
            others.push(SframeHeader { counter, ..header });
        }
        for other in others {
            let changed = message.with_header(other, form);
            is_refused(&mut reader, &changed, body, &format!("{class:?} as {other:?}"));
        }
        assert!(message.live(&mut reader).is_ok());
    }
}

#[test]
fn a_body_does_not_move_between_clear_and_ciphertext() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut sender = sealer(group, slot(1), &epochs);
    let mut reader = opener(group, &epochs);
    introduce(&mut sender, &mut reader);
    let clear = seal(&mut sender, Class::Authenticated, Form::Full, META, BODY);
    let secret = seal(&mut sender, Class::Group, Form::Full, META, BODY);
    for len in 0..clear.bytes.len() {
        if len != clear.clear {
            is_refused(&mut reader, &Sealed { clear: len, ..clear.clone() }, BODY, "clear");
        }
    }
    for len in 1..secret.bytes.len() + 2 {
        is_refused(&mut reader, &Sealed { clear: len, ..secret.clone() }, BODY, "secret");
    }
    let mut longer = secret.clone();
    longer.bytes.splice(0..0, *b"clear");
    longer.clear = 5;
    is_refused(&mut reader, &longer, BODY, "clear before ciphertext");
    let moved = [&BODY[1..], META].concat();
    let mut shifted = clear.clone();
    shifted.meta.push(BODY[0]);
    shifted.bytes.remove(0);
    shifted.clear -= 1;
    is_refused(&mut reader, &shifted, &moved, "from body to meta");
}

#[test]
fn another_group_suite_or_secret() {
    let home = group(Suite::Aes256Gcm);
    let epochs = epochs(home);
    let message = seal(&mut sealer(home, slot(1), &epochs), Class::Group, Form::Full, META, BODY);
    let secret = || epochs.secret(Epoch(0)).unwrap().clone();
    let strangers = [
        (Group::new(GroupId([6; 32]), Suite::Aes256Gcm), secret()),
        (Group::new(home.id(), Suite::ChaCha20Poly1305), secret()),
        (home, EpochSecret::new([2; 32])),
    ];
    for (group, secret) in strangers {
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
        let mut stranger = opener(group, &epochs);
        expect(&mut stranger, 1, CONTEXT);
        is_refused(&mut stranger, &message, BODY, &format!("{group:?}"));
        assert_eq!(message.live(&mut stranger).unwrap_err(), Error::NotAuthentic);
    }
    let mut reader = opener(home, &epochs);
    expect(&mut reader, 1, CONTEXT);
    assert!(message.live(&mut reader).is_ok());
}

#[test]
fn a_member_cannot_sign_for_another() {
    let group = group(Suite::ChaCha20Poly1305);
    let epochs = epochs(group);
    let mut posing = sealer(group, slot(1), &epochs);
    posing.set_signing_key(signing_key(slot(2)));
    let message = seal(&mut posing, Class::Signed, Form::Full, META, BODY);
    let announced = announcement(&mut posing, 1);
    let mut reader = opener(group, &epochs);
    assert_eq!(announced.announce(&mut reader).unwrap_err(), Error::Signature);
    assert_eq!(reader.announced(slot(1)), None);
    expect(&mut reader, 1, CONTEXT);
    is_refused(&mut reader, &message, BODY, "signed with another's key");
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::Signature);

    let mut honest = sealer(group, slot(3), &epochs);
    let message = seal(&mut honest, Class::Signed, Form::Full, META, BODY);
    reader.set_terms((0..3).map(term)).unwrap();
    assert_eq!(message.stored(&mut reader, 0).unwrap_err(), Error::NotMember);
    let mut told_nothing = Opener::new(group, None, epochs.clone()).unwrap();
    assert_eq!(message.stored(&mut told_nothing, 0).unwrap_err(), Error::NotMember);
}

/// The message that slot 1 has signed, as it lies within the ciphertext, in the hands of another
/// member. The other member holds the group's secrets and so can compute every key.
struct Insider {
    group: Group,
    epochs: Epochs,
    message: Sealed,
    body_and_signature: Vec<u8>,
}

impl Insider {
    fn new() -> Insider {
        let group = group(Suite::Aes256Gcm);
        let epochs = epochs_at(group, 256);
        let mut sender = sealer(group, slot(1), &epochs_at(group, 0));
        let message = seal(&mut sender, Class::Signed, Form::Full, META, BODY);
        let base = peer::base(epochs.secret(Epoch(0)).unwrap().expose(), message.context);
        let metadata = peer::metadata(group, &message.binding, &message.meta);
        let body_and_signature = peer::open(&base, &metadata, &message.bytes).unwrap();
        assert_eq!(body_and_signature.len(), BODY.len() + limits::SIGNATURE_BYTES);
        Insider { group, epochs, message, body_and_signature }
    }

    /// Seals it again as `place` says, under that header, and reads it there.
    fn wraps(&self, epoch: u64, header: SframeHeader, place: &Sealed) -> Result<(), Error> {
        let base = peer::base(self.epochs.secret(Epoch(epoch)).unwrap().expose(), place.context);
        let metadata = peer::metadata(self.group, &place.binding, &place.meta);
        let bytes = peer::seal(&base, header, &metadata, &self.body_and_signature);
        let wrapped = Sealed { bytes, ..place.clone() };
        let mut reader = opener(self.group, &self.epochs);
        let stored = wrapped.stored(&mut reader, epoch).map(|_| ());
        if epoch == self.epochs.newest().0 {
            expect(&mut reader, header.key.slot.number(), place.context);
            assert_eq!(wrapped.live(&mut reader).map(|_| ()), stored);
        }
        stored
    }
}

/// The control of the tests below: what is wrapped again just as it was opens.
#[test]
fn an_insider_wraps_what_is_the_same() {
    let insider = Insider::new();
    assert_eq!(insider.wraps(0, insider.message.header(), &insider.message), Ok(()));
}

/// The signed epoch is what stops this one: key id and associated data are the same.
#[test]
fn a_signed_body_cannot_be_wrapped_again_256_epochs_later() {
    let insider = Insider::new();
    let header = insider.message.header();
    assert_eq!(KeyId::new(slot(1), Class::Signed, Epoch(256)), header.key, "the same header");
    assert_eq!(insider.wraps(256, header, &insider.message), Err(Error::Signature));
}

#[test]
fn a_signed_body_cannot_be_wrapped_again_under_another_context() {
    let insider = Insider::new();
    let header = insider.message.header();
    for bit in [0, 7, 31, 63] {
        let mut place = insider.message.clone();
        place.context.0[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(insider.wraps(0, header, &place), Err(Error::Signature), "{bit}");
    }
}

#[test]
fn a_signed_body_cannot_be_wrapped_again_for_another_place() {
    let insider = Insider::new();
    let header = insider.message.header();
    let group = GroupId([9; 32]);
    for binding in [Binding::link(), Binding::stream("fleet/8"), Binding::conversation(group)] {
        let place = Sealed { binding, ..insider.message.clone() };
        assert_eq!(insider.wraps(0, header, &place), Err(Error::Signature), "{binding:?}");
    }
    let place = Sealed { meta: b"type 8, codec 3".to_vec(), ..insider.message.clone() };
    assert_eq!(insider.wraps(0, header, &place), Err(Error::Signature), "other meta");
}

#[test]
fn a_signed_body_cannot_be_wrapped_again_with_another_counter_or_slot() {
    let insider = Insider::new();
    let header = insider.message.header();
    let others = [
        SframeHeader { counter: 1, ..header },
        SframeHeader { counter: limits::MAX_COUNTER, ..header },
        SframeHeader { key: KeyId { slot: slot(2), ..header.key }, ..header },
    ];
    for other in others {
        assert_eq!(insider.wraps(0, other, &insider.message), Err(Error::Signature), "{other:?}");
    }
}

/// A body of one byte too many is refused by its length, before anything is opened; one byte less
/// is refused for what it is.
#[test]
fn a_body_that_is_too_long_is_refused_by_its_length() {
    for class in [Class::Group, Class::Signed, Class::Peer, Class::Authenticated] {
        let group = group_of(Suite::Aes256Gcm, class);
        let mut reader = opener(group, &epochs(group));
        expect(&mut reader, 1, CONTEXT);
        let binding = Binding::stream(TOPIC);
        let attached = Attached { context: CONTEXT, binding: &binding, meta: META };
        let key = KeyId { slot: slot(1), class, epoch_low: 0 };
        let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
        let signature = if class == Class::Signed { limits::SIGNATURE_BYTES } else { 0 };
        let mut refused = |body: usize| {
            let clear = if class == Class::Authenticated { body } else { 0 };
            let mut bytes = vec![0; clear];
            bytes.extend_from_slice(&header);
            bytes.resize(header.len() + body + signature + limits::TAG_BYTES, 0);
            let opened = reader.open_live(Form::Full, &attached, &mut bytes, clear);
            opened.map(|_| ()).unwrap_err()
        };
        let most = limits::MAX_SEALED_BODY_BYTES;
        assert_eq!(refused(most + 1), Error::TooLarge, "{class:?}");
        assert_eq!(refused(most), Error::NotAuthentic, "{class:?}");
    }
}
