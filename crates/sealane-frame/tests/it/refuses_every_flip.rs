//! A changed bit of what the seal protects is refused, and leaves no trace in the reader.

use crate::shared::members::{self, CLASSES, EPOCH, Members};
use sealane_frame::{
    FrameBuf, FrameError, RELAY_BYTES, open_announcement, open_compact, open_frame, open_stored,
    seal_compact, seal_frame, to_compact,
};
use sealane_seal::{Announcement, Binding, Class, Epoch, GroupId, SenderContext};

const BODY: &[u8] = b"52.52 N 13.40 E, all well";

/// The visible state of a reader, which a refused frame must not change. The frame itself is opened
/// in the end, which shows that the window did not move.
fn state(members: &Members) -> (Epoch, Option<SenderContext>) {
    let opener = &members.opener;
    (opener.epochs().newest(), opener.announced(members.sealer.slot()))
}

/// Every frame that differs from `frame` in one bit, and the bit.
fn flips(frame: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..frame.len() * 8).map(|bit| {
        let mut flipped = frame.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (bit, flipped)
    })
}

fn full_frame(members: &mut Members) -> Vec<u8> {
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    seal_frame(&mut members.sealer, &members.fields, &binding, BODY, &mut buf).unwrap().to_vec()
}

fn compact_frame(members: &mut Members) -> Vec<u8> {
    let link = members::link(&members.dictionary, &members.roster);
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    seal_compact(sealer, fields, &binding, BODY, &link, &mut buf).unwrap().to_vec()
}

#[test]
fn every_bit_of_a_full_frame_of_each_class() {
    for class in CLASSES {
        let (mut members, binding) = (Members::new(class), members::binding());
        // A first frame, so that there is a window that could move.
        let mut first = full_frame(&mut members);
        let _ = open_frame(&mut members.opener, &binding, &mut first).unwrap().accept();
        let frame = full_frame(&mut members);
        let before = state(&members);
        for (bit, mut flipped) in flips(&frame).skip(RELAY_BYTES * 8) {
            let refused = open_frame(&mut members.opener, &binding, &mut flipped).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
            assert_eq!(state(&members), before);
        }
        let mut again = frame.clone();
        let received = open_frame(&mut members.opener, &binding, &mut again).unwrap();
        assert_eq!(received.body, BODY);
        let _ = received.accept();
        let replayed = open_frame(&mut members.opener, &binding, &mut frame.clone()).err();
        assert_eq!(replayed, Some(FrameError::Seal(sealane_seal::Error::Replayed)));
    }
}

#[test]
fn every_bit_of_a_compact_frame_but_the_hop_limit() {
    for class in CLASSES {
        let (mut members, binding) = (Members::new(class), members::binding());
        // More entries, so that a flipped dictionary byte may stand for something.
        for (byte, codec) in [(5, 1), (6, 2), (0, 0)] {
            members.fields.codec = codec;
            let entry = sealane_frame::DictionaryEntry::of(&members.fields);
            members.dictionary.define(byte, entry).unwrap();
        }
        members.fields.codec = 3;
        let frame = compact_frame(&mut members);
        let before = state(&members);
        let link = members::link(&members.dictionary, &members.roster);
        for (bit, mut flipped) in flips(&frame).skip(4) {
            let refused = open_compact(&mut members.opener, &binding, &mut flipped, &link).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
        }
        for (_, mut flipped) in flips(&frame).take(4) {
            let opened = open_compact(&mut members.opener, &binding, &mut flipped, &link);
            assert_eq!(opened.unwrap().body, BODY);
        }
        assert_eq!(state(&members), before);
    }
}

#[test]
fn every_other_length() {
    for class in CLASSES {
        let (mut members, binding) = (Members::new(class), members::binding());
        let frame = full_frame(&mut members);
        let before = state(&members);
        for len in 0..frame.len() {
            let mut shorter = frame[..len].to_vec();
            assert!(open_frame(&mut members.opener, &binding, &mut shorter).is_err());
        }
        let mut longer = frame.clone();
        for _ in 0..100 {
            longer.push(0);
            assert!(open_frame(&mut members.opener, &binding, &mut longer.clone()).is_err());
        }
        assert_eq!(state(&members), before);
    }
}

#[test]
fn stored_frames_as_well() {
    for class in CLASSES {
        let (mut members, binding) = (Members::new(class), members::binding());
        let frame = full_frame(&mut members);
        for (bit, mut flipped) in flips(&frame).skip(RELAY_BYTES * 8) {
            let refused = open_stored(&mut members.opener, EPOCH, &binding, &mut flipped).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
        }
        for _ in 0..2 {
            let mut again = frame.clone();
            let stored = open_stored(&mut members.opener, EPOCH, &binding, &mut again).unwrap();
            assert_eq!((stored.body, stored.opened.counter()), (BODY, 0));
        }
    }
}

/// A frame that was copied to another stream, to a link, or into a conversation, in either form.
#[test]
fn in_another_place_than_it_was_made_for() {
    let not_authentic = Some(FrameError::Seal(sealane_seal::Error::NotAuthentic));
    let conversation = Binding::conversation(GroupId([7; 32]));
    for class in CLASSES {
        let mut members = Members::new(class);
        let frame = full_frame(&mut members);
        let link = members::link(&members.dictionary, &members.roster);
        let mut compact = vec![];
        to_compact(&frame, &link, &mut compact).unwrap();
        let opener = &mut members.opener;
        for place in [Binding::link(), Binding::stream("fleet/8"), conversation] {
            let refused = [
                open_frame(opener, &place, &mut frame.clone()).err(),
                open_stored(opener, EPOCH, &place, &mut frame.clone()).err(),
                open_compact(opener, &place, &mut compact.clone(), &link).err(),
            ];
            assert_eq!(refused, [not_authentic; 3], "class {class:?}, {place:?}");
        }
        let here = members::binding();
        assert!(open_stored(opener, EPOCH, &here, &mut frame.clone()).is_ok());
        assert_eq!(open_compact(opener, &here, &mut compact, &link).unwrap().body, BODY);
    }
}

#[test]
fn every_bit_of_an_announcement() {
    let mut members = Members::strangers(Class::Group, sealane_seal::Suite::Aes256Gcm, 0);
    let frame = members.announcement(Announcement { start: 5, orders: 7 });
    for (bit, mut flipped) in flips(&frame).skip(RELAY_BYTES * 8) {
        members.opener.allow_trials();
        let refused = open_announcement(&mut members.opener, &mut flipped).err();
        assert!(refused.is_some(), "bit {bit}");
    }
    assert_eq!(state(&members).1, None);
    members.opener.allow_trials();
    let _ = open_announcement(&mut members.opener, &mut frame.clone()).unwrap().accept();
    assert_eq!(state(&members).1, Some(members::CONTEXT));
}

#[test]
fn a_refused_body_leaves_nothing_to_read() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let mut frame = full_frame(&mut members);
        *frame.last_mut().unwrap() ^= 1;
        assert!(open_frame(&mut members.opener, &members::binding(), &mut frame).is_err());
        assert!(!frame.windows(BODY.len()).any(|window| window == BODY));
    }
}

#[test]
fn a_failed_seal_gives_no_plaintext() {
    let mut members = Members::new(Class::Group);
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    // A pair's class in a larger group.
    members.fields.class = Class::Peer;
    let failed = seal_frame(&mut members.sealer, &members.fields, &binding, BODY, &mut buf);
    assert_eq!(failed.err(), Some(FrameError::Seal(sealane_seal::Error::Class)));
    let mut draft = buf.draft();
    draft.body().clear();
    let failed = draft.seal(&mut members.sealer, &members.fields, &binding);
    assert_eq!(failed.err(), Some(FrameError::NoRoom));
    members.fields.class = Class::Group;
    assert_eq!(members.sealer.next_counter(), Ok(0), "no counter was spent");
    let mut frame = full_frame(&mut members);
    let opened = open_frame(&mut members.opener, &binding, &mut frame);
    assert_eq!(opened.unwrap().body, BODY);
}
