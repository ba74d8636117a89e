//! No message costs an allocation once buffers, keys and windows are warm.

use crate::counting::allocations_of;
use crate::shared::members::{self, CLASSES, EPOCH, Members, READER, RELAY, binding};
use sealane_frame::{
    Fragment, FrameBuf, PeerTag, Reassembly, ReassemblyProgress, ReceivedFrame, SlotRing,
    forward_batch, forward_in_place, open_compact, open_frame, open_stored, seal_compact,
    seal_frame, to_compact, to_full,
};
use sealane_seal::{Class, Suite};

const ROUNDS: usize = 100;
/// Counters grow by a byte at 8 and at 256.
const WARM_UP_ROUNDS: usize = 300;

/// The allocations of the cipher library itself: one block per signature that it makes, nothing
/// else.
fn of_the_library(class: Class) -> usize {
    if class == Class::Signed { ROUNDS } else { 0 }
}

/// Stores what has to be stored and accepts.
fn take(mut received: ReceivedFrame<'_, '_>, now_ms: u64) {
    assert!(received.pending.to_store(now_ms).is_some(), "a ceiling is stored, too");
    let _ = received.accept();
}

#[test]
fn to_seal_relay_and_open_in_the_full_form() {
    for class in CLASSES {
        for (suite, body_bytes) in Suite::ALL.into_iter().flat_map(|s| [(s, 60), (s, 8192)]) {
            let mut members = Members::starting_at(class, suite, 0);
            let (body, mut buf, binding) = (vec![7; body_bytes], FrameBuf::new(), binding());
            let (mut kept, mut now_ms) = (vec![], 0);
            let mut round = || {
                let (sealer, opener) = (&mut members.sealer, &mut members.opener);
                let frame = seal_frame(sealer, &members.fields, &binding, &body, &mut buf);
                let frame = frame.unwrap();
                forward_in_place(frame, READER, RELAY).unwrap();
                kept.clear();
                kept.extend_from_slice(frame);
                let received = open_frame(opener, &binding, frame).unwrap();
                assert_eq!(received.body, body);
                now_ms += 1000;
                take(received, now_ms);
                let stored = open_stored(opener, EPOCH, &binding, &mut kept).unwrap();
                assert_eq!(stored.body, body);
            };
            (0..WARM_UP_ROUNDS).for_each(|_| round());
            let calls = allocations_of(|| (0..ROUNDS).for_each(|_| round()));
            assert_eq!(calls, of_the_library(class), "{class:?} {suite:?} {body_bytes}");
        }
    }
}

#[test]
fn to_seal_open_and_change_the_compact_form() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let link = members::link(&members.dictionary, &members.roster);
        let (mut buf, mut full, mut compact) = (FrameBuf::new(), vec![], vec![]);
        let (binding, mut now_ms) = (binding(), 0);
        let mut round = || {
            let (sealer, opener) = (&mut members.sealer, &mut members.opener);
            let frame = seal_compact(sealer, &members.fields, &binding, b"well", &link, &mut buf);
            let frame = frame.unwrap();
            full.clear();
            compact.clear();
            to_full(frame, &link, &mut full).unwrap();
            to_compact(&full, &link, &mut compact).unwrap();
            assert_eq!(frame, compact);
            let received = open_compact(opener, &binding, frame, &link).unwrap();
            assert_eq!(received.body, b"well");
            now_ms += 1000;
            take(received, now_ms);
            let stored = open_stored(opener, EPOCH, &binding, &mut full).unwrap();
            assert_eq!(stored.body, b"well");
        };
        (0..WARM_UP_ROUNDS).for_each(|_| round());
        let calls = allocations_of(|| (0..ROUNDS).for_each(|_| round()));
        assert_eq!(calls, of_the_library(class), "{class:?}");
    }
}

#[test]
fn to_relay_a_ring() {
    let mut members = Members::new(Class::Group);
    let mut buf = FrameBuf::new();
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    let frame = seal_frame(sealer, fields, &binding(), &[7; 1000], &mut buf).unwrap();
    let mut ring = SlotRing::new(256, 1500);
    let calls = allocations_of(|| {
        for _ in 0..ROUNDS {
            while ring.push(frame).is_ok() {}
            assert_eq!(forward_batch(&mut ring, RELAY, |_| Some(READER), |_| panic!()), 256);
            ring.release(256);
        }
    });
    assert_eq!(calls, 0);
}

#[test]
fn to_split_and_join() {
    let frame: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
    let mut reassembly = Reassembly::new();
    let (mut unit, mut id) = (vec![], 0);
    let mut round = || {
        id += 1;
        let (mut whole, fragments) = (0, Fragment::split(&frame, id, 1400).unwrap());
        for (number, fragment) in fragments.enumerate() {
            unit.clear();
            fragment.write(&mut unit);
            let fragment = Fragment::parse(&unit).unwrap();
            let peer = PeerTag::from_hash([id as u8 % 4; 8]);
            // Every third frame stays incomplete.
            if id % 3 == 0 && number == 5 {
                break;
            }
            let now_ms = u64::from(id) * 500;
            if let ReassemblyProgress::Whole(read) =
                reassembly.push(peer, now_ms, &fragment).unwrap()
            {
                assert_eq!(read, frame);
                whole += 1;
            }
        }
        assert_eq!(whole, usize::from(id % 3 != 0));
    };
    (0..ROUNDS).for_each(|_| round());
    assert_eq!(allocations_of(|| (0..ROUNDS).for_each(|_| round())), 0);
}
