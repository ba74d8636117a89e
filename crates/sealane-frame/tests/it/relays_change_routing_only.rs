//! The fields that a relay overwrites decide where a frame goes, and nothing else.

use crate::shared::members::{self, CLASSES, Members, READER, RELAY, SENDER};
use proptest::prelude::*;
use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_frame::{
    FrameBuf, FrameError, FrameMut, FrameView, PeerTag, RELAY_BYTES, SlotRing, forward_batch,
    forward_compact_in_place, forward_in_place, open_compact, open_frame, seal_compact, seal_frame,
    set_compact_hop_limit, set_hop_limit,
};
use sealane_seal::Class;

const BODY: &[u8] = b"all well";

fn frame(members: &mut Members) -> Vec<u8> {
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    seal_frame(&mut members.sealer, &members.fields, &binding, BODY, &mut buf).unwrap().to_vec()
}

#[test]
fn a_frame_opens_whatever_stands_in_the_relays_bytes() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let frame = frame(&mut members);
        for bit in 0..RELAY_BYTES * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let opened = open_frame(&mut members.opener, &members::binding(), &mut flipped);
            assert_eq!(opened.unwrap().body, BODY);
        }
        let mut wiped = frame.clone();
        wiped[..RELAY_BYTES].fill(0xff);
        let binding = members::binding();
        let received = open_frame(&mut members.opener, &binding, &mut wiped).unwrap();
        assert_eq!(received.header.hop_limit(), MAX_HOP_LIMIT);
        assert_eq!(received.header.authenticated(), &frame[RELAY_BYTES..64]);
    }
}

#[test]
fn a_hop_limit_is_clamped_where_it_is_set_read_and_lowered() {
    let mut members = Members::new(Class::Group);
    members.fields.hop_limit = 255;
    let mut frame = frame(&mut members);
    assert_eq!(frame[16], MAX_HOP_LIMIT);
    for (limit, expected) in [(255, 14), (16, 14), (15, 14), (14, 13), (1, 0)] {
        frame[16] = limit;
        assert_eq!(FrameView::parse(&frame).unwrap().header().hop_limit(), limit.min(15));
        forward_in_place(&mut frame, RELAY, RELAY).unwrap();
        assert_eq!(frame[16], expected, "from {limit}");
    }
    assert_eq!(forward_in_place(&mut frame, RELAY, RELAY), Err(FrameError::HopLimitSpent));
}

#[test]
fn a_hop_limit_is_set_again_and_nothing_else_changes() {
    let mut members = Members::new(Class::Group);
    let before = frame(&mut members);
    let mut full = before.clone();
    forward_in_place(&mut full, RELAY, RELAY).unwrap();
    let relayed = full.clone();
    set_hop_limit(&mut full, 255);
    assert_eq!(FrameView::parse(&full).unwrap().header().hop_limit(), MAX_HOP_LIMIT);
    assert_eq!(full[RELAY_BYTES..], before[RELAY_BYTES..]);
    assert_eq!(full[..RELAY_BYTES - 1], relayed[..RELAY_BYTES - 1]);
    let mut cut = before[..RELAY_BYTES - 1].to_vec();
    set_hop_limit(&mut cut, 1);
    assert_eq!(cut, before[..RELAY_BYTES - 1], "there is no hop limit in it");
}

#[test]
fn an_overheard_frame_is_not_sent_on() {
    let mut members = Members::new(Class::Group);
    let mut frame = frame(&mut members);
    let before = frame.clone();
    assert_eq!(forward_in_place(&mut frame, READER, SENDER), Err(FrameError::NotForUs));
    assert_eq!(frame, before);
    frame[..8].copy_from_slice(&PeerTag::BROADCAST.to_bytes());
    let mut parsed = FrameMut::parse(&mut frame).unwrap();
    parsed.forward(READER, RELAY).unwrap();
    let header = parsed.view().unwrap().header().fields();
    assert_eq!((header.next_hop, header.previous_hop), (READER, RELAY));
}

#[test]
fn a_ring_is_sent_on_frame_by_frame() {
    let mut members = Members::new(Class::Group);
    let mut ring = SlotRing::new(5, 1500);
    let mut foreign = frame(&mut members);
    foreign[0] ^= 1;
    let frames: Vec<_> = (0..3).map(|_| frame(&mut members)).collect();
    for frame in [&frames[0], &foreign, &frames[1], &frames[2], &vec![1, 2, 3]] {
        ring.push(frame).unwrap();
    }
    let mut refused = vec![];
    let mut routes = [Some(READER), None, Some(SENDER)].into_iter();
    let forwarded = forward_batch(
        &mut ring,
        RELAY,
        |header| {
            assert_eq!(header.destination(), READER);
            routes.next().unwrap()
        },
        |why| refused.push(why),
    );
    assert_eq!(forwarded, 2);
    assert_eq!(refused, [Some(FrameError::NotForUs), None, Some(FrameError::TooShort)]);
    let sent: Vec<Vec<u8>> = ring.frames_mut().map(|frame| frame.to_vec()).collect();
    assert!(sent[1].is_empty() && sent[2].is_empty() && sent[4].is_empty());
    for (sent, (frame, next)) in
        [&sent[0], &sent[3]].into_iter().zip([(&frames[0], READER), (&frames[2], SENDER)])
    {
        let mut expected = frame.clone();
        forward_in_place(&mut expected, next, RELAY).unwrap();
        assert_eq!(*sent, expected);
    }
}

#[test]
fn a_compact_frame_is_sent_on_in_place() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let link = members::link(&members.dictionary, &members.roster);
        let (mut buf, binding) = (FrameBuf::new(), members::binding());
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let frame = seal_compact(sealer, fields, &binding, BODY, &link, &mut buf);
        let frame = frame.unwrap();
        let before = frame.to_vec();
        for hops in (0..MAX_HOP_LIMIT).rev() {
            forward_compact_in_place(frame, 4).unwrap();
            assert_eq!(frame[0] & 0x0f, hops);
            assert_eq!(frame[1..], before[1..]);
        }
        assert_eq!(forward_compact_in_place(frame, 9), Err(FrameError::HopLimitSpent));
        assert_eq!(frame[1..], before[1..]);
        let mut renewed = frame.to_vec();
        set_compact_hop_limit(&mut renewed, 255);
        assert_eq!(renewed, before);
        let opened = open_compact(&mut members.opener, &binding, frame, &link);
        assert_eq!(opened.unwrap().body, BODY);
    }
    assert_eq!(forward_compact_in_place(&mut [0x8f, 1], 0), Err(FrameError::TooShort));
    assert_eq!(forward_compact_in_place(&mut [0x7f, 1, 1], 0), Err(FrameError::UnknownVersion));
}

proptest! {
    /// Law: forwarding changes bytes 0 to 16 alone, and a refusal changes nothing.
    #[test]
    fn forwarding_leaves_the_authenticated_bytes(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        is_plausible: bool,
        hops: [u8; 17],
    ) {
        if is_plausible {
            let mut members = Members::new(Class::Group);
            bytes = frame(&mut members);
            bytes[..17].copy_from_slice(&hops);
            bytes[..8].copy_from_slice(&RELAY.to_bytes());
        }
        let before = bytes.clone();
        match forward_in_place(&mut bytes, READER, RELAY) {
            Ok(()) => {
                prop_assert_eq!(&bytes[17..], &before[17..]);
                prop_assert_eq!(&bytes[..8], READER.to_bytes());
                prop_assert_eq!(&bytes[8..16], RELAY.to_bytes());
                prop_assert_eq!(bytes[16], before[16].min(15) - 1);
            }
            Err(_) => prop_assert_eq!(bytes, before),
        }
    }
}
