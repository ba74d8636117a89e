//! Frames go on as they came but for 17 bytes, in runs, over narrow links, and across a change of
//! the configuration.

use std::net::UdpSocket;

use quinn_udp::{Transmit, UdpSocketState};
use sealane_frame::{Fragment, RELAY_BYTES, Reassembly, ReassemblyProgress};
use sealane_link::{Config, LinkError, LinkRelay};

use crate::stage::{
    Maker, Stage, address, addresses, card, host, receive, receive_all, relay_tag, route, socket,
    start, tag, text, wait_until,
};

#[test]
fn a_frame_goes_on_with_new_hops_and_is_otherwise_as_it_came() {
    let stage = Stage::new(2);
    let sent = Maker::new(0).frame(tag(1), b"52.5 N 13.4 E");
    stage.send(0, &sent);
    let got = stage.receive(1);
    assert_eq!(got[..8], tag(1).to_bytes(), "next hop");
    assert_eq!(got[8..16], relay_tag(0).to_bytes(), "previous hop");
    assert_eq!(got[16], sent[16] - 1, "hop limit");
    assert_eq!(got[RELAY_BYTES..], sent[RELAY_BYTES..]);
    let tally = stage.relay.stop();
    assert_eq!((tally.received.units, tally.forwarded.units, tally.sent.units), (1, 1, 3));
    assert_eq!(tally.forwarded.bytes, sent.len() as u64);
}

/// Equal datagrams that come as one buffer: for one neighbour, for others, and bad ones between.
#[test]
fn of_one_batch_each_neighbour_gets_its_own_in_order() {
    let stage = Stage::new(4);
    let mut maker = Maker::new(0);
    let pattern = [1, 1, 1, 2, 3, 3, 9, 2, 2, 1, 3, 9, 9, 1];
    let (mut expected, mut segments) = (vec![vec![]; 4], vec![]);
    let mut segment_bytes = 0;
    for number in 0..56_u8 {
        let to = pattern[usize::from(number) % pattern.len()];
        let mut frame = maker.frame(tag(to), &[number; 300]);
        match to {
            9 => frame[17] ^= 0x80,
            _ => expected[usize::from(to)].push(frame[RELAY_BYTES..].to_vec()),
        }
        segment_bytes = frame.len();
        segments.extend(frame);
    }
    send_segments(&stage, &segments, segment_bytes);
    for (slot, expected) in expected.iter().enumerate() {
        let got: Vec<Vec<u8>> =
            expected.iter().map(|_| stage.receive(slot)[RELAY_BYTES..].to_vec()).collect();
        assert_eq!(got, *expected, "{slot}");
    }
    let tally = stage.relay.stop();
    assert_eq!((tally.received.units, tally.forwarded.units), (56, 44));
}

/// The last segment of a batch may be shorter.
#[test]
fn a_shorter_last_segment_goes_on_with_its_run() {
    let stage = Stage::new(2);
    let mut maker = Maker::new(0);
    let frames: Vec<_> =
        [400, 400, 400, 7].map(|bytes| maker.frame(tag(1), &vec![9; bytes])).into();
    send_segments(&stage, &frames.concat(), frames[0].len());
    for frame in frames {
        assert_eq!(stage.receive(1)[RELAY_BYTES..], frame[RELAY_BYTES..]);
    }
}

fn send_segments(stage: &Stage, segments: &[u8], segment_bytes: usize) {
    let socket = &stage.peers[0];
    let state = UdpSocketState::new(socket.into()).unwrap();
    assert!(state.max_gso_segments() >= segments.len().div_ceil(segment_bytes), "needs UDP GSO");
    let transmit = Transmit {
        destination: stage.at,
        ecn: None,
        contents: segments,
        segment_size: Some(segment_bytes),
        src_ip: None,
    };
    socket.set_nonblocking(false).unwrap();
    state.try_send(socket.into(), &transmit).unwrap();
}

/// A relay whose second link is narrow, and who is on each: slot 0 wide, slot 1 narrow.
fn wide_and_narrow() -> (LinkRelay, [std::net::SocketAddr; 2], [UdpSocket; 2]) {
    let [wide, narrow] = [host(), host()];
    let (ats, peers) = ([address(&wide), address(&narrow)], [socket(&wide), socket(&narrow)]);
    let text = text(0, ats[0], &addresses(&peers), "");
    // The second neighbour is on the second link.
    let (before, after) = text.rsplit_once("link = \"l\"").unwrap();
    let link = format!("[[link]]\nname = \"narrow\"\nudp = \"{}\"\nmtu = 300\n", ats[1]);
    (start(&format!("{before}link = \"narrow\"{after}{link}")), ats, peers)
}

#[test]
fn what_a_link_cannot_carry_at_once_goes_in_parts_and_comes_together() {
    let (relay, ats, [wide, narrow]) = wide_and_narrow();
    let sent = Maker::new(0).frame(tag(1), &[5; 1000]);
    wide.send_to(&sent, ats[0]).unwrap();
    let mut reassembly = Reassembly::new();
    let mut parts = 0;
    loop {
        let unit = receive(&narrow);
        assert!(unit.len() <= 300 - 28, "{}", unit.len());
        parts += 1;
        let fragment = Fragment::parse(&unit).unwrap();
        if let ReassemblyProgress::Whole(frame) =
            reassembly.push(relay_tag(0), 0, &fragment).unwrap()
        {
            assert_eq!(frame[RELAY_BYTES..], sent[RELAY_BYTES..]);
            break;
        }
    }
    assert_eq!(parts, 5);
    // And the other way, out of order.
    let back = Maker::new(1).frame(tag(0), &[6; 1000]);
    let parts: Vec<_> = Fragment::split(&back, 7, 272).unwrap().collect();
    for part in parts.iter().rev() {
        let mut unit = vec![];
        part.write(&mut unit);
        narrow.send_to(&unit, ats[1]).unwrap();
    }
    assert_eq!(receive(&wide)[RELAY_BYTES..], back[RELAY_BYTES..]);
    let tally = relay.stop();
    assert_eq!((tally.received.units, tally.forwarded.units), (6, 2));
}

#[test]
fn another_configuration_takes_over_while_frames_come() {
    let stage = Stage::new(3);
    let mut maker = Maker::new(0);
    let all = addresses(&stage.peers);
    let to = |via: &str| {
        let rest = route("slot 7", via);
        Config::parse(&text(0, stage.at, &all, &rest)).unwrap()
    };
    for (via, peer) in [("n1", 1), ("n2", 2), ("n1", 1)] {
        stage.relay.reload(&to(via), &[card()]).unwrap();
        // The thread looks once it has something to do; it may be within a call.
        wait_until("the new route", || {
            stage.send(0, &maker.frame(tag(7), via.as_bytes()));
            std::thread::sleep(std::time::Duration::from_millis(5));
            !receive_all(&stage.peers[peer]).is_empty()
        });
    }
    // A machine that is no neighbour any more is a stranger.
    let fewer = Config::parse(&text(0, stage.at, &all[..2], "")).unwrap();
    stage.relay.reload(&fewer, &[card()]).unwrap();
    wait_until("a stranger", || {
        stage.send(2, &Maker::new(2).frame(tag(0), b"still here"));
        stage.relay.tally().dropped(sealane_link::DropReason::Stranger) > 0
    });
}

#[test]
fn a_configuration_that_is_refused_changes_nothing() {
    let stage = Stage::new(2);
    let all = addresses(&stage.peers);
    let parse = |text: &str| Config::parse(text).unwrap();
    let links = text(0, stage.at, &all, "")
        .replace("[[neighbour]]\nname = \"n0\"", "mtu = 600\n[[neighbour]]\nname = \"n0\"");
    let refused = stage.relay.reload(&parse(&links), &[card()]);
    assert!(matches!(refused, Err(LinkError::LinksChanged)), "{refused:?}");
    let stranger = text(0, stage.at, &all, &route("slot 99", "n1"));
    let refused = stage.relay.reload(&parse(&stranger), &[card()]);
    assert!(matches!(refused, Err(LinkError::UnknownMember(_))), "{refused:?}");
    stage.send(0, &Maker::new(0).frame(tag(1), b"as before"));
    stage.receive(1);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let stage = Stage::new(1);
    let again = Config::parse(&text(0, stage.at, &[], "")).unwrap();
    let refused = LinkRelay::start(&again, &[card()]).unwrap_err();
    assert!(refused.to_string().starts_with("link l: "), "{refused}");
}

/// The frames that had come when the relay was asked to end go on.
#[test]
fn a_relay_that_ends_sends_on_what_had_come() {
    let stage = Stage::new(2);
    let mut maker = Maker::new(0);
    for number in 0..500_u16 {
        stage.send(0, &maker.frame(tag(1), &number.to_le_bytes()));
    }
    assert_eq!(stage.relay.stop().forwarded.units, 500);
}
