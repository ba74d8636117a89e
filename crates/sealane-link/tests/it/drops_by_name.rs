//! A frame that does not go on is dropped for one reason, and nothing vanishes without one.

use sealane_frame::{Fragment, PeerTag};
use sealane_link::DropReason;

use crate::stage::{
    Maker, Stage, address, addresses, group, host, neighbour, relay_tag, route, socket, start, tag,
    text, wait_until,
};

/// Where fields of the header lie: `spec/frame.md`.
const NEXT_HOP: usize = 0;
const PREVIOUS_HOP: usize = 8;
const HOP_LIMIT: usize = 16;
const VERSION: usize = 17;
const GROUP: usize = 23;
const SOURCE: usize = 27;
const DESTINATION: usize = 35;

/// A change to a frame.
type Change<'c> = &'c dyn Fn(&mut Vec<u8>);

fn put(frame: &mut [u8], at: usize, tag: PeerTag) {
    frame[at..at + 8].copy_from_slice(&tag.to_bytes());
}

#[test]
fn each_reason_has_its_counter_and_nobody_gets_the_frame() {
    let stage = Stage::new(3);
    let good = Maker::new(0).frame(tag(1), b"where I am");
    let changes: &[(DropReason, Change)] = &[
        (DropReason::Malformed, &|frame| frame[VERSION] ^= 1),
        (DropReason::Malformed, &|frame| frame.truncate(63)),
        (DropReason::Malformed, &|frame| frame.extend([0; 9])),
        (DropReason::Malformed, &|frame| frame.clear()),
        (DropReason::Malformed, &|frame| *frame = vec![1, 1, 9]),
        (DropReason::Malformed, &|frame| *frame = vec![1, 0, 9]),
        (DropReason::Malformed, &|frame| *frame = vec![0; 20]),
        (DropReason::NotForUs, &|frame| put(frame, NEXT_HOP, tag(1))),
        (DropReason::FalseHop, &|frame| put(frame, PREVIOUS_HOP, tag(1))),
        (DropReason::Own, &|frame| put(frame, SOURCE, relay_tag(0))),
        (DropReason::UnknownSource, &|frame| put(frame, SOURCE, tag(77))),
        (DropReason::UnknownGroup, &|frame| frame[GROUP] ^= 1),
        (DropReason::NoEnd, &|frame| put(frame, DESTINATION, relay_tag(0))),
        (DropReason::NoRoute, &|frame| put(frame, DESTINATION, tag(77))),
        (DropReason::NoRoute, &|frame| put(frame, DESTINATION, tag(5))),
        (DropReason::Backwards, &|frame| put(frame, DESTINATION, tag(0))),
        (DropReason::HopLimit, &|frame| frame[HOP_LIMIT] = 0),
    ];
    let mut counts = [0; DropReason::ALL.len()];
    for (why, change) in changes {
        let mut frame = good.clone();
        change(&mut frame);
        stage.send(0, &frame);
        counts[*why as usize] += 1;
        stage.wait_for(*why, counts[*why as usize]);
    }
    let everybody = Maker::new(0).frame(PeerTag::BROADCAST, b"hello");
    let mut spent = everybody.clone();
    spent[HOP_LIMIT] = 0;
    stage.send(0, &spent);
    stage.wait_for(DropReason::HopLimit, 2);
    let stranger = socket(&host());
    stranger.send_to(&good, stage.at).unwrap();
    stage.wait_for(DropReason::Stranger, 1);
    stage.assert_silence();
    stage.send(0, &everybody);
    stage.send(0, &everybody);
    stage.wait_for(DropReason::Repeat, 1);
    assert_eq!(stage.receive(1)[HOP_LIMIT], 14);
    let tally = stage.relay.tally();
    assert_eq!(tally.forwarded.units, 2, "to each of the two others, once");
    assert_eq!(group().to_bytes(), good[GROUP..GROUP + 4]);
}

/// Every byte of frames of each kind changed, and every length: all that came went on or has a
/// reason, and only frames went on.
#[test]
fn whatever_is_changed_goes_on_or_is_dropped_for_a_reason() {
    let stage = Stage::new(3);
    let mut maker = Maker::new(0);
    let everybody = maker.frame(PeerTag::BROADCAST, b"hello");
    let mut part = vec![];
    let long = maker.frame(tag(1), &[1; 900]);
    Fragment::split(&long, 3, 600).unwrap().next().unwrap().write(&mut part);
    part.truncate(90);
    let units =
        [maker.frame(tag(1), b"to one"), everybody, maker.announcement(), part, vec![1, 0, 1]];
    let mut sent = 0;
    for unit in &units {
        for at in 0..unit.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = unit.clone();
                changed[at] ^= change;
                stage.send(0, &changed);
                sent += 1;
            }
            stage.send(0, &unit[..at]);
            sent += 1;
        }
        wait_until("all came", || stage.relay.tally().received.units == sent);
    }
    let tally = stage.relay.tally();
    // Parts that wait for others, and notes, are neither.
    let accounted: u64 = DropReason::ALL.iter().map(|why| tally.dropped(*why)).sum();
    assert!(accounted > 500 && accounted < sent, "{accounted} of {sent}: {tally:?}");
    assert_eq!(tally.dropped(DropReason::LinkFault) + tally.dropped(DropReason::LinkFull), 0);
    // It goes on as before.
    let frame = maker.frame(tag(2), b"after all that");
    stage.send(0, &frame);
    wait_until("the frame behind them", || {
        crate::stage::receive_all(&stage.peers[2]).iter().any(|got| got[17..] == frame[17..])
    });
}

#[test]
fn a_neighbour_beyond_its_quota_loses_its_own_frames_and_nobody_elses() {
    let host = host();
    let (at, peers) = (address(&host), [socket(&host), socket(&host), socket(&host)]);
    let quota = "address = ";
    let text = text(0, at, &addresses(&peers), "").replacen(
        quota,
        "frames_per_second = 10\naddress = ",
        1,
    );
    let relay = start(&text);
    let (mut fast, mut fair) = (Maker::new(0), Maker::new(1));
    for number in 0..400_u16 {
        peers[0].send_to(&fast.frame(tag(2), &number.to_le_bytes()), at).unwrap();
        if number % 4 == 0 {
            peers[1].send_to(&fair.frame(tag(2), &number.to_le_bytes()), at).unwrap();
        }
    }
    wait_until("all came", || relay.tally().received.units == 500);
    let tally = relay.stop();
    let dropped = tally.dropped(DropReason::Quota);
    // It may begin with 64 at once; a slow machine gives it a few more seconds.
    assert!((300..=336).contains(&dropped), "{dropped}");
    assert_eq!(tally.forwarded.units, 500 - dropped);
}

#[test]
fn parts_that_do_not_fit_are_dropped_and_others_come_together() {
    let stage = Stage::new(2);
    let mut maker = Maker::new(0);
    let [first, second] = [3, 4].map(|fill| maker.frame(tag(1), &[fill; 900]));
    let parts = |frame: &[u8], id: u16, unit_bytes: usize| -> Vec<Vec<u8>> {
        let parts = Fragment::split(frame, id, unit_bytes).unwrap();
        parts.map(|part| [&part.header(), part.part()].concat()).collect()
    };
    let mut conflicting = parts(&first, 1, 500)[0].clone();
    conflicting[400] ^= 1;
    stage.send(0, &parts(&first, 1, 500)[0]);
    stage.send(0, &conflicting);
    stage.send(0, &parts(&second, 1, 300)[1]);
    stage.wait_for(DropReason::Fragment, 2);
    for part in &parts(&first, 1, 500)[1..] {
        stage.send(0, part);
    }
    assert_eq!(stage.receive(1)[17..], first[17..]);
    // Nine frames of which a part is missing are one more than there may be.
    for id in 10..19 {
        stage.send(0, &parts(&second, id, 500)[0]);
    }
    stage.wait_for(DropReason::Fragment, 3);
    // A fragment of a fragment is none.
    let nested = vec![0; 700];
    parts(&nested, 30, 400).iter().for_each(|part| stage.send(0, part));
    stage.wait_for(DropReason::Malformed, 1);
}

#[test]
fn a_neighbour_that_the_system_does_not_reach_is_counted() {
    let host = host();
    let (at, peer) = (address(&host), socket(&host));
    let mut rest = neighbour("far", relay_tag(9), "192.0.2.1:9".parse().unwrap());
    rest += &route("*", "far");
    let relay = start(&text(0, at, &addresses(&[peer.try_clone().unwrap()]), &rest));
    peer.send_to(&Maker::new(0).frame(tag(5), b"nowhere"), at).unwrap();
    // The note of the start did not go either.
    wait_until("counted", || relay.tally().dropped(DropReason::LinkFault) == 2);
}
