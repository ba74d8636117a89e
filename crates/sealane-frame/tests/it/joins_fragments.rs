//! Frames come whole out of their parts, in any order, and within bounds.

use crate::shared::members::{self, Members};
use proptest::prelude::*;
use sealane_frame::limits::{
    MAX_PARTIAL_AGE_MS, MAX_PARTIAL_BYTES, MAX_PARTIAL_FRAMES, MAX_PARTIAL_PEERS,
};
use sealane_frame::{
    Fragment, FrameBatch, FrameBuf, FrameError, FrameUnit, PeerTag, Reassembly, ReassemblyProgress,
    open_frame, seal_frame,
};
use sealane_seal::Class;

fn peer(n: u8) -> PeerTag {
    PeerTag::from_hash([n; 8])
}

fn parts(frame: &[u8], id: u16, unit_bytes: usize) -> Vec<Vec<u8>> {
    let write = |fragment: Fragment<'_>| {
        let mut unit = vec![];
        fragment.write(&mut unit);
        unit
    };
    Fragment::split(frame, id, unit_bytes).unwrap().map(write).collect()
}

fn push<'a>(
    reassembly: &'a mut Reassembly,
    from: u8,
    now_ms: u64,
    unit: &[u8],
) -> Result<ReassemblyProgress<'a>, FrameError> {
    reassembly.push(peer(from), now_ms, &Fragment::parse(unit).unwrap())
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

proptest! {
    /// Law: whatever the order and the repeats, the whole comes with the last missing part, once.
    #[test]
    fn any_order_and_any_repeats(
        (frame, unit_bytes) in (2_usize..3000).prop_flat_map(|len| (Just(len), 9..len + 8)),
        shuffle in proptest::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        let frame = bytes(frame, 3);
        prop_assume!(frame.len() > unit_bytes);
        let units = parts(&frame, 7, unit_bytes);
        let mut order: Vec<usize> = shuffle.iter().map(|index| index.index(units.len())).collect();
        order.extend(0..units.len());
        let mut reassembly = Reassembly::new();
        let (mut came, mut whole) = (vec![false; units.len()], 0);
        for index in order {
            if whole == 1 {
                break;
            }
            let is_new = !std::mem::replace(&mut came[index], true);
            match push(&mut reassembly, 1, 0, &units[index]).unwrap() {
                ReassemblyProgress::Repeated => prop_assert!(!is_new),
                ReassemblyProgress::Waiting => prop_assert!(is_new && came.contains(&false)),
                ReassemblyProgress::Whole(read) => {
                    prop_assert!(is_new && !came.contains(&false));
                    prop_assert_eq!(&*read, &frame[..]);
                    whole += 1;
                }
            }
        }
        prop_assert_eq!(whole, 1);
        prop_assert_eq!(reassembly.held(peer(1)), (0, 0));
    }
}

#[test]
fn a_joined_frame_opens_and_one_with_a_foreign_part_does_not() {
    let mut members = Members::new(Class::Signed);
    let mut buf = FrameBuf::new();
    let body = bytes(5000, 1);
    let (sealer, binding) = (&mut members.sealer, members::binding());
    let frame = seal_frame(sealer, &members.fields, &binding, &body, &mut buf).unwrap();
    let mut reassembly = Reassembly::new();
    let mut forged = frame.to_vec();
    forged[300] ^= 1;
    let units = [parts(frame, 1, 200), parts(&forged, 2, 200)];
    for (units, opens) in units.iter().zip([true, false]) {
        for unit in units {
            if let ReassemblyProgress::Whole(whole) = push(&mut reassembly, 1, 0, unit).unwrap() {
                assert_eq!(open_frame(&mut members.opener, &binding, whole).is_ok(), opens);
            }
        }
    }
}

#[test]
fn peers_and_ids_do_not_mix() {
    let frames: Vec<_> = (0..4).map(|seed| bytes(100, seed)).collect();
    let ways = [(1, 5), (1, 6), (2, 5), (2, 6)];
    let units: Vec<_> =
        frames.iter().zip(ways).map(|(frame, (_, id))| parts(frame, id, 40)).collect();
    let (mut reassembly, mut whole) = (Reassembly::new(), 0);
    for index in 0..units[0].len() {
        for ((units, (from, _)), frame) in units.iter().zip(ways).zip(&frames) {
            if let ReassemblyProgress::Whole(read) =
                push(&mut reassembly, from, 0, &units[index]).unwrap()
            {
                assert_eq!(read, frame);
                whole += 1;
            }
        }
    }
    assert_eq!(whole, 4);
}

#[test]
fn parts_of_another_frame_or_with_other_bytes_are_refused_and_change_nothing() {
    let (frame, other) = (bytes(100, 1), bytes(100, 2));
    let units = parts(&frame, 5, 40);
    let mut reassembly = Reassembly::new();
    push(&mut reassembly, 1, 0, &units[0]).unwrap();
    let cases = [
        (parts(&other, 5, 40).swap_remove(0), FrameError::FragmentConflict),
        (parts(&other, 5, 30).swap_remove(0), FrameError::MixedFragments),
        (parts(&other, 5, 30).swap_remove(1), FrameError::MixedFragments),
        (parts(&other[..99], 5, 40).swap_remove(0), FrameError::MixedFragments),
        (parts(&other[..99], 5, 40).pop().unwrap(), FrameError::MixedFragments),
    ];
    for (unit, expected) in &cases {
        assert_eq!(push(&mut reassembly, 1, 0, unit), Err(*expected));
        assert_eq!(reassembly.held(peer(1)), (1, 100));
    }
    push(&mut reassembly, 1, 0, &units[3]).unwrap();
    push(&mut reassembly, 1, 0, &units[2]).unwrap();
    assert_eq!(
        push(&mut reassembly, 1, 0, &units[1]),
        Ok(ReassemblyProgress::Whole(&mut frame.clone()))
    );
}

#[test]
fn parts_that_overlap_or_lie_outside_cannot_be_said() {
    // Marker, id, index with the last bit, length of the frame; then the part.
    let unit = |index: u16, is_last: bool, frame_bytes: u32, part_bytes: usize| {
        let place = (index | if is_last { 0x8000 } else { 0 }).to_le_bytes();
        let len = frame_bytes.to_le_bytes();
        let header = [0, 5, 0, place[0], place[1], len[0], len[1], len[2]];
        [&header[..], &vec![7; part_bytes]].concat()
    };
    let odd = [
        (unit(0, false, 10, 10), "all of the frame, and not the last"),
        (unit(0, true, 10, 10), "all of the frame, and the last"),
        (unit(1, false, 20, 10), "reaches the end, and not the last"),
        (unit(2, false, 25, 10), "beyond the end"),
        (unit(1, true, 15, 10), "longer than the stride before it"),
        (unit(2, true, 25, 4), "a stride that is no whole number"),
        (unit(0, false, 5, 10), "longer than the frame"),
        (unit(1, true, 5, 10), "longer than the frame, and the last"),
        (unit(0, false, 0, 1), "an empty frame"),
        (unit(0, false, 0xff_ffff, 100), "a frame beyond its limit"),
        (unit(0, false, 1 << 20, 1), "too many parts"),
        (unit(0x7fff, true, 0x8000, 1), "too many parts, and the last"),
    ];
    for (unit, what) in odd {
        assert_eq!(Fragment::parse(&unit), Err(FrameError::BadFragment), "{what}");
    }
    assert_eq!(Fragment::parse(&unit(0, false, 10, 0)), Err(FrameError::TooShort));
}

#[test]
fn a_frame_that_stays_incomplete_is_given_up() {
    let units = parts(&bytes(100, 1), 5, 40);
    let mut reassembly = Reassembly::new();
    push(&mut reassembly, 1, 1000, &units[0]).unwrap();
    push(&mut reassembly, 2, 2000, &units[1]).unwrap();
    let mut missing = vec![];
    reassembly.expire(999, |peer, id| missing.push((peer, id)));
    reassembly.expire(999 + MAX_PARTIAL_AGE_MS, |peer, id| missing.push((peer, id)));
    assert_eq!(missing, []);
    reassembly.expire(1000 + MAX_PARTIAL_AGE_MS, |peer, id| missing.push((peer, id)));
    assert_eq!(missing, [(peer(1), 5)]);
    // The next fragment of anybody does the same.
    push(&mut reassembly, 3, 2000 + MAX_PARTIAL_AGE_MS, &units[0]).unwrap();
    assert_eq!(reassembly.held(peer(2)), (0, 0));
    assert_eq!(reassembly.losses().expired, 2);
}

#[test]
fn a_peer_crowds_out_its_own_oldest_frames_only() {
    let mut reassembly = Reassembly::new();
    let frame = bytes(100, 1);
    push(&mut reassembly, 2, 0, &parts(&frame, 0, 40)[0]).unwrap();
    for id in 0..100 {
        push(&mut reassembly, 1, 0, &parts(&frame, id, 40)[0]).unwrap();
        assert!(reassembly.held(peer(1)).0 <= MAX_PARTIAL_FRAMES);
    }
    assert_eq!(reassembly.losses().crowded_out, 100 - MAX_PARTIAL_FRAMES as u64);
    assert_eq!(reassembly.held(peer(2)), (1, 100));

    let large = bytes(MAX_PARTIAL_BYTES / 2, 1);
    for id in 0..100 {
        push(&mut reassembly, 1, 0, &parts(&large, id, 1400)[0]).unwrap();
        assert!(reassembly.held(peer(1)).1 <= MAX_PARTIAL_BYTES);
    }
    let largest = bytes(MAX_PARTIAL_BYTES, 1);
    push(&mut reassembly, 1, 0, &parts(&largest, 1000, 1400)[0]).unwrap();
    assert_eq!(reassembly.held(peer(1)), (1, MAX_PARTIAL_BYTES));
}

/// Sixty-four neighbours together hold no more than one room, and who holds the most pays for it.
#[test]
fn all_peers_together_have_one_room() {
    const ROOM: usize = 4 << 20;
    let mut reassembly = Reassembly::within(ROOM);
    let small = parts(&bytes(5000, 1), 1, 1400);
    push(&mut reassembly, 0, 0, &small[0]).unwrap();
    let large = parts(&bytes(MAX_PARTIAL_BYTES / 8, 1), 0, 1400);
    for id in 0..200_u16 {
        for from in 1..MAX_PARTIAL_PEERS as u8 {
            let mut last = large.last().unwrap().clone();
            last[1..3].copy_from_slice(&id.to_le_bytes());
            push(&mut reassembly, from, 0, &last).unwrap();
            assert!(reassembly.held_bytes() <= ROOM, "{}", reassembly.held_bytes());
        }
    }
    assert!(reassembly.held_bytes() > ROOM / 2);
    assert_eq!(reassembly.held(peer(0)), (1, 5000), "the one with the least keeps its frame");
    for part in &small[1..small.len() - 1] {
        push(&mut reassembly, 0, 0, part).unwrap();
    }
    let whole = push(&mut reassembly, 0, 0, small.last().unwrap()).unwrap();
    assert_eq!(whole, ReassemblyProgress::Whole(&mut bytes(5000, 1)));
    let too_long = parts(&bytes(5001, 1), 1, 1400);
    let refused = push(&mut Reassembly::within(5000), 1, 0, &too_long[0]).map(|_| ());
    assert_eq!(refused, Err(FrameError::NoRoom));
}

#[test]
fn peers_are_bounded() {
    let units = parts(&bytes(100, 1), 5, 40);
    let mut reassembly = Reassembly::new();
    let from = |n: usize| PeerTag::from_hash([10, n as u8, 0, 0, 0, 0, 0, 0]);
    let first = Fragment::parse(&units[0]).unwrap();
    for n in 0..MAX_PARTIAL_PEERS {
        assert_eq!(reassembly.push(from(n), 0, &first), Ok(ReassemblyProgress::Waiting));
    }
    let further = reassembly.push(from(MAX_PARTIAL_PEERS), 0, &first);
    assert_eq!(further, Err(FrameError::TooManyPeers));
    assert_eq!(reassembly.push(from(0), 0, &first), Ok(ReassemblyProgress::Repeated));
    let further = reassembly.push(from(MAX_PARTIAL_PEERS), MAX_PARTIAL_AGE_MS, &first);
    assert_eq!(further, Ok(ReassemblyProgress::Waiting));
}

#[test]
fn a_batch_holds_frames_and_fragments() {
    let mut members = Members::new(Class::Group);
    let (mut buf, mut unit, binding) = (FrameBuf::new(), vec![], members::binding());
    for body in [&b"one"[..], b"two"] {
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let frame = seal_frame(sealer, fields, &binding, body, &mut buf).unwrap();
        FrameBatch::append(&mut unit, frame).unwrap();
    }
    FrameBatch::append(&mut unit, &parts(&bytes(100, 1), 5, 40)[0]).unwrap();
    let Ok(FrameUnit::Batch(batch)) = FrameUnit::parse(&unit) else { panic!("no batch") };
    let items: Vec<FrameUnit<'_>> = batch.map(|item| FrameUnit::parse(item).unwrap()).collect();
    assert!(matches!(
        items[..],
        [FrameUnit::Frame(_), FrameUnit::Frame(_), FrameUnit::Fragment(_)]
    ));
    for (item, body) in items.iter().zip([&b"one"[..], b"two"]) {
        let FrameUnit::Frame(frame) = item else { panic!("no frame") };
        let mut frame = frame.to_vec();
        assert_eq!(open_frame(&mut members.opener, &binding, &mut frame).unwrap().body, body);
    }
}
