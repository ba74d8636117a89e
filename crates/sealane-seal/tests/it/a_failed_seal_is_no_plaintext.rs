//! A message that could not be sealed cannot be sent: the body is gone, and nothing was appended.

use crate::shared::world::{self, *};
use sealane_seal::*;

const ROOM: usize = limits::MAX_HEADER_BYTES;

/// Seals BODY in a buffer of that room, and checks that it failed as expected.
fn fails(sealer: &mut Sealer, class: Class, meta: &[u8], room: (usize, usize), error: Error) {
    let (before, after) = room;
    let mut buf = [&vec![0xee; before][..], BODY, &vec![0xee; after]].concat();
    let body = before..before + BODY.len();
    let (counter, binding) = (sealer.next_counter(), Binding::stream(TOPIC));
    let sealed = sealer.seal_in_place(class, Form::Full, &binding, meta, &mut buf, body.clone());
    assert_eq!(sealed, Err(error));
    assert!(buf[body].iter().all(|byte| *byte == 0), "{error:?}");
    assert_eq!(sealer.next_counter(), counter, "no counter was used up");
    let mut out = b"sent before".to_vec();
    if room == (ROOM, class.tail_bytes()) {
        let appended = sealer.append(class, Form::Full, &binding, meta, BODY, &mut out);
        assert_eq!(appended, Err(error));
        assert_eq!(out, b"sent before");
    }
}

#[test]
fn for_every_reason() {
    for suite in Suite::ALL {
        let (many, two) = (group(suite), pair(suite));
        let epochs = epochs(many);
        let mut ready = sealer(many, slot(1), &epochs);
        let mut unsigned = Sealer::new(many, slot(1), CONTEXT, &epochs, 0).unwrap();
        let used_up = limits::MAX_COUNTER + 1;
        let mut used_up = sealer_of(many, slot(1), &epochs, CONTEXT, used_up);
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            let room = (ROOM, class.tail_bytes());
            fails(&mut used_up, class, META, room, Error::CountersUsedUp);
            fails(&mut ready, class, &[0; 257], room, Error::TooLarge);
            fails(&mut ready, class, META, (ROOM, 0), Error::NoRoom);
            fails(&mut ready, class, META, (ROOM, 15), Error::NoRoom);
            if class != Class::Authenticated {
                fails(&mut ready, class, META, (0, 80), Error::NoRoom);
                fails(&mut ready, class, META, (1, 80), Error::NoRoom);
            }
        }
        fails(&mut unsigned, Class::Signed, META, (ROOM, 80), Error::NoSigningKey);
        fails(&mut ready, Class::Peer, META, (ROOM, 16), Error::Class);
        let mut peer = sealer(two, slot(0), &world::epochs(two));
        fails(&mut peer, Class::Group, META, (ROOM, 16), Error::Class);
    }
}

#[test]
fn for_a_body_that_is_too_large() {
    let group = group(Suite::Aes256Gcm);
    let mut sealer = sealer(group, slot(1), &epochs(group));
    for class in [Class::Authenticated, Class::Group] {
        let mut buf = vec![1; ROOM + limits::MAX_SEALED_BODY_BYTES + 1 + class.tail_bytes()];
        let body = ROOM..ROOM + limits::MAX_SEALED_BODY_BYTES + 1;
        let (form, binding) = (Form::Full, Binding::link());
        let sealed = sealer.seal_in_place(class, form, &binding, META, &mut buf, body.clone());
        assert_eq!(sealed, Err(Error::TooLarge));
        assert!(buf[body].iter().all(|byte| *byte == 0));
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "a caller may pass one")]
fn for_a_body_outside_of_the_buffer() {
    let group = group(Suite::Aes256Gcm);
    let mut sealer = sealer(group, slot(1), &epochs(group));
    for body in [9..200, 90..120, 200..300, 20..10, usize::MAX..usize::MAX] {
        let (mut buf, class, binding) = ([7; 100], Class::Group, Binding::link());
        let place = body.clone();
        let sealed = sealer.seal_in_place(class, Form::Full, &binding, META, &mut buf, place);
        assert_eq!(sealed, Err(Error::NoRoom), "{body:?}");
        assert!(
            buf.get(body.start..).unwrap_or_default().iter().all(|b| *b == 0)
                || body.end < body.start
        );
    }
}

#[test]
fn a_pair_has_two_slots() {
    let group = pair(Suite::Aes256Gcm);
    let sealer = Sealer::new(group, slot(2), CONTEXT, &epochs(group), 0);
    assert_eq!(sealer.unwrap_err(), Error::Class);
}

#[test]
fn epochs_of_another_group_are_refused() {
    let (here, there) = (group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm));
    let sealer = Sealer::new(here, slot(1), CONTEXT, &epochs(there), 0);
    assert_eq!(sealer.unwrap_err(), Error::EpochUnknown);
    assert_eq!(Opener::new(here, None, epochs(there)).unwrap_err(), Error::EpochUnknown);
}
