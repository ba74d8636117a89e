//! A changed bit of what the seal protects is refused, and leaves no trace in the reader.

use crate::shared::members::{self, CLASSES, Members};
use sealane_frame::{
    FrameBuf, FrameError, RELAY_BYTES, open_compact, open_frame, open_stored, seal_compact,
    seal_frame,
};
use sealane_seal::{Class, Epoch, Opener, WindowState};

const BODY: &[u8] = b"52.52 N 13.40 E, all well";

/// What a refused frame must not change.
fn state(opener: &Opener) -> (Epoch, Vec<WindowState>) {
    (opener.epochs().newest(), opener.windows().collect())
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
    let mut buf = FrameBuf::new();
    seal_frame(&mut members.sealer, &members.fields, BODY, &mut buf).unwrap().to_vec()
}

fn compact_frame(members: &mut Members) -> Vec<u8> {
    let link = members::link(&members.dictionary, &members.roster);
    let mut buf = FrameBuf::new();
    let frame = seal_compact(&mut members.sealer, &members.fields, BODY, &link, &mut buf);
    frame.unwrap().to_vec()
}

#[test]
fn every_bit_of_a_full_frame_of_each_class() {
    for class in CLASSES {
        let mut members = Members::new(class);
        // A first frame, so that there is a window that could move.
        let mut first = full_frame(&mut members);
        let _ = open_frame(&mut members.opener, &mut first).unwrap().accept();
        let frame = full_frame(&mut members);
        let before = state(&members.opener);
        for (bit, mut flipped) in flips(&frame).skip(RELAY_BYTES * 8) {
            let refused = open_frame(&mut members.opener, &mut flipped).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
            assert_eq!(state(&members.opener), before);
        }
        let mut again = frame.clone();
        let received = open_frame(&mut members.opener, &mut again).unwrap();
        assert_eq!(received.body, BODY);
        let _ = received.accept();
        let replayed = open_frame(&mut members.opener, &mut frame.clone()).err();
        assert_eq!(replayed, Some(FrameError::Seal(sealane_seal::Error::Replayed)));
    }
}

#[test]
fn every_bit_of_a_compact_frame_but_the_hop_limit() {
    for class in CLASSES {
        let mut members = Members::new(class);
        // More entries, so that a flipped dictionary byte may stand for something.
        for (byte, codec) in [(5, 1), (6, 2), (0, 0)] {
            members.fields.codec = codec;
            let entry = sealane_frame::Entry::of(&members.fields);
            members.dictionary.define(byte, entry).unwrap();
        }
        members.fields.codec = 3;
        let frame = compact_frame(&mut members);
        let link = members::link(&members.dictionary, &members.roster);
        let opener = &mut members.opener;
        let before = state(opener);
        for (bit, mut flipped) in flips(&frame).skip(4) {
            let refused = open_compact(opener, &mut flipped, &link).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
            assert_eq!(state(opener), before);
        }
        for (_, mut flipped) in flips(&frame).take(4) {
            assert_eq!(open_compact(opener, &mut flipped, &link).unwrap().body, BODY);
        }
    }
}

#[test]
fn every_other_length() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let frame = full_frame(&mut members);
        let before = state(&members.opener);
        for len in 0..frame.len() {
            assert!(open_frame(&mut members.opener, &mut frame[..len].to_vec()).is_err());
        }
        let mut longer = frame.clone();
        for _ in 0..100 {
            longer.push(0);
            assert!(open_frame(&mut members.opener, &mut longer.clone()).is_err());
        }
        assert_eq!(state(&members.opener), before);
    }
}

#[test]
fn stored_frames_as_well() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let frame = full_frame(&mut members);
        for (bit, mut flipped) in flips(&frame).skip(RELAY_BYTES * 8) {
            let refused = open_stored(&mut members.opener, Epoch(0), &mut flipped).err();
            assert!(refused.is_some(), "class {class:?}, bit {bit}");
        }
        for _ in 0..2 {
            let mut again = frame.clone();
            let stored = open_stored(&mut members.opener, Epoch(0), &mut again).unwrap();
            assert_eq!((stored.body, stored.opened.counter()), (BODY, 0));
        }
    }
}

#[test]
fn a_refused_body_leaves_nothing_to_read() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let mut frame = full_frame(&mut members);
        *frame.last_mut().unwrap() ^= 1;
        assert!(open_frame(&mut members.opener, &mut frame).is_err());
        assert!(!frame.windows(BODY.len()).any(|window| window == BODY));
    }
}

#[test]
fn a_failed_seal_gives_no_plaintext() {
    let mut members = Members::new(Class::Group);
    let mut buf = FrameBuf::new();
    // A pair's class in a larger group.
    members.fields.class = Class::Peer;
    let failed = seal_frame(&mut members.sealer, &members.fields, BODY, &mut buf);
    assert_eq!(failed.err(), Some(FrameError::Seal(sealane_seal::Error::Class)));
    let mut draft = buf.draft();
    draft.body().clear();
    let failed = draft.seal(&mut members.sealer, &members.fields);
    assert_eq!(failed.err(), Some(FrameError::NoRoom));
    members.fields.class = Class::Group;
    assert_eq!(members.sealer.next_counter(), Ok(0), "no counter was spent");
    let mut frame = full_frame(&mut members);
    assert_eq!(open_frame(&mut members.opener, &mut frame).unwrap().body, BODY);
}
