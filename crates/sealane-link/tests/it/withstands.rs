//! Hostile input: nothing forged is accepted by a member, memory stays within its bound, and those
//! who do nothing wrong are served.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use quinn_udp::{Transmit, UdpSocketState};
use sealane_frame::{Fragment, GroupTag, PeerTag, open_announcement, open_frame};
use sealane_link::limits::MAX_RELAY_PARTIAL_BYTES;
use sealane_link::{Config, DropReason, LinkRelay, RelayArrival, RelayCard};
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Group, GroupId, History, Opener, SigningKey, Slot, Suite,
    Term,
};

use crate::stage::{
    Maker, Stage, address, addresses, card, host, neighbour, route, socket, tag, text, wait_until,
};

/// Where fields of the header lie: `spec/frame.md`.
const RELAY_BYTES: usize = 17;
const NEXT_HOP: usize = 0;
const SOURCE: usize = 27;

/// The member of slot 1, which opens what comes for it, beside a relay.
struct Member {
    relay: LinkRelay,
    at: std::net::SocketAddr,
    peer: UdpSocket,
    opened: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Member {
    /// Slot 0 is its neighbour, and has announced itself.
    fn start(maker: &mut Maker) -> Member {
        let host = host();
        let (at, peer) = (address(&host), socket(&host));
        let text = format!(
            "version = 1\n[[link]]\nname = \"l\"\nudp = \"{at}\"\n{}{}",
            neighbour("car", tag(0), peer.local_addr().unwrap()),
            route("*", "car")
        );
        let opened = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (opener, heard) = (Mutex::new(opener()), Arc::clone(&opened));
        let take = move |arrival: RelayArrival<'_>| {
            let RelayArrival::Frame(frame) = arrival else { return Ok(()) };
            let mut opener = opener.lock().unwrap();
            if let Ok(announced) = open_announcement(&mut opener, &mut frame.to_vec()) {
                let _ = announced.accept();
                return Ok(());
            }
            let read = open_frame(&mut opener, &Binding::link(), frame);
            let read = read.map_err(|_| DropReason::Unopened)?;
            heard.lock().unwrap().push(read.body.to_vec());
            let _ = read.accept();
            Ok(())
        };
        let config = Config::parse(&text).unwrap();
        let relay = LinkRelay::join(&config, &[card()], tag(1), Box::new(take)).unwrap();
        let member = Member { relay, at, peer, opened };
        let mut announcement = maker.announcement();
        put(&mut announcement, NEXT_HOP, tag(1));
        member.send(&announcement);
        wait_until("announced", || member.relay.tally().delivered.units == 1);
        member
    }

    fn send(&self, unit: &[u8]) {
        self.peer.send_to(unit, self.at).unwrap();
    }
}

fn opener() -> Opener {
    let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
    let secret = EpochSecret::new([1; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    let mut opener = Opener::new(group, Slot::new(1), epochs).unwrap();
    let verifying_key = SigningKey::from_seed(&[0; 32]).unwrap().verifying_key();
    let slot = Slot::new(0).unwrap();
    opener.set_terms([Term { slot, since: Epoch(0), until: None, verifying_key }]).unwrap();
    opener
}

/// A frame for the member itself, which is its neighbour's next hop.
fn for_member(maker: &mut Maker, body: &[u8]) -> Vec<u8> {
    let fields = sealane_frame::HeaderFields { next_hop: tag(1), ..maker.fields(tag(1)) };
    maker.seal(&fields, body)
}

/// Five frames, every byte of each changed; then replays, reflections, and the tag of another.
#[test]
fn a_member_takes_each_frame_of_a_member_once_and_nothing_that_is_forged() {
    let mut maker = Maker::new(0);
    let member = Member::start(&mut maker);
    let frames: Vec<_> = (0..5_u8).map(|n| for_member(&mut maker, &[n; 40])).collect();
    let mut sent = 1;
    for frame in &frames {
        for at in RELAY_BYTES..frame.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = frame.clone();
                changed[at] ^= change;
                member.send(&changed);
                sent += 1;
            }
        }
        wait_until("all came", || member.relay.tally().received.units == sent);
    }
    assert_eq!(*member.opened.lock().unwrap(), Vec::<Vec<u8>>::new());
    for frame in &frames {
        member.send(frame);
    }
    wait_until("the true ones", || member.opened.lock().unwrap().len() == 5);
    let dropped = |why| member.relay.tally().dropped(why);
    let (unopened, own) = (dropped(DropReason::Unopened), dropped(DropReason::Own));
    for frame in &frames {
        member.send(frame);
        let mut of_another = frame.clone();
        put(&mut of_another, SOURCE, tag(2));
        member.send(&of_another);
        let mut reflected = frame.clone();
        put(&mut reflected, SOURCE, tag(1));
        member.send(&reflected);
    }
    wait_until("counted", || dropped(DropReason::Own) == own + 5);
    wait_until("counted", || dropped(DropReason::Unopened) == unopened + 10);
    let expected: Vec<_> = (0..5_u8).map(|n| vec![n; 40]).collect();
    assert_eq!(*member.opened.lock().unwrap(), expected);
}

fn put(frame: &mut [u8], at: usize, tag: PeerTag) {
    frame[at..at + 8].copy_from_slice(&tag.to_bytes());
}

/// One buffer whose segments cut through frames of other lengths.
#[test]
fn a_batch_whose_segments_are_no_frames_gives_each_a_reason_and_harms_no_other() {
    let stage = Stage::new(2);
    let mut maker = Maker::new(0);
    let frames: Vec<_> = [300, 280, 300, 320].map(|n| maker.frame(tag(1), &vec![9; n])).into();
    let bytes = frames.concat();
    let state = UdpSocketState::new((&stage.peers[0]).into()).unwrap();
    let transmit = Transmit {
        destination: stage.at,
        ecn: None,
        contents: &bytes,
        segment_size: Some(frames[0].len()),
        src_ip: None,
    };
    stage.peers[0].set_nonblocking(false).unwrap();
    state.try_send((&stage.peers[0]).into(), &transmit).unwrap();
    assert_eq!(stage.receive(1)[RELAY_BYTES..], frames[0][RELAY_BYTES..]);
    let after = maker.frame(tag(1), b"after");
    stage.send(0, &after);
    assert_eq!(stage.receive(1)[RELAY_BYTES..], after[RELAY_BYTES..]);
    let tally = stage.relay.stop();
    assert_eq!((tally.received.units, tally.forwarded.units), (5, 2), "{tally:?}");
    assert_eq!(tally.dropped_in_all(), 3, "{tally:?}");
}

fn parts(frame: &[u8], id: u16, unit_bytes: usize) -> Vec<Vec<u8>> {
    let parts = Fragment::split(frame, id, unit_bytes).unwrap();
    parts.map(|part| [&part.header(), part.part()].concat()).collect()
}

#[test]
fn a_stranger_spoils_no_frame_that_comes_in_parts() {
    let stage = Stage::new(2);
    let frame = Maker::new(0).frame(tag(1), &[3; 900]);
    let mut other = frame.clone();
    other[100..].fill(0);
    let stranger = socket(&host());
    for (true_part, false_part) in parts(&frame, 1, 400).iter().zip(parts(&other, 1, 400)) {
        stranger.send_to(&false_part, stage.at).unwrap();
        stage.send(0, true_part);
    }
    assert_eq!(stage.receive(1)[RELAY_BYTES..], frame[RELAY_BYTES..]);
    stage.wait_for(DropReason::Stranger, 3);
    assert_eq!(stage.relay.tally().dropped(DropReason::Fragment), 0);
}

/// Parts that announce giant frames: memory is bounded for all neighbours together, and one that
/// sends a frame in few parts is served all the while.
#[test]
fn giant_frames_that_never_come_whole_take_one_room() {
    let stage = Stage::new(9);
    let watch = stage.relay.watch();
    let giant = vec![7; MAX_RELAY_PARTIAL_BYTES / 8];
    let last = parts(&giant, 0, 60_000).pop().unwrap();
    let small = Maker::new(8).frame(tag(7), &[3; 900]);
    let small = parts(&small, 1, 800);
    stage.send(8, &small[0]);
    let mut sent = 1;
    for id in 0..40_u16 {
        for from in 0..8 {
            let mut part = last.clone();
            part[1..3].copy_from_slice(&id.to_le_bytes());
            stage.send(from, &part);
            sent += 1;
        }
        wait_until("all came", || stage.relay.tally().received.units == sent);
        let held = watch.status().partial_bytes;
        assert!(held <= MAX_RELAY_PARTIAL_BYTES, "{held}");
    }
    assert!(stage.relay.tally().dropped(DropReason::Fragment) > 200);
    for part in &small[1..] {
        stage.send(8, part);
    }
    stage.receive(7);
    // Too long for any frame: 16 MiB less a byte, and a first part.
    let dropped = stage.relay.tally().dropped(DropReason::Malformed);
    stage.send(0, &[&[0, 9, 9, 0, 0, 0xff, 0xff, 0xff][..], &[7; 1400]].concat());
    stage.wait_for(DropReason::Malformed, dropped + 1);
}

/// A card of another group is no mistake that a relay could see; it carries nothing then.
#[test]
fn with_the_card_of_another_group_nothing_goes_on() {
    let host = host();
    let (at, peers) = (address(&host), [socket(&host), socket(&host)]);
    let text = text(0, at, &addresses(&peers), "");
    let other = GroupTag::from_bytes([0x77; 4]);
    let slot = |slot: u8| (Slot::new(slot.into()).unwrap(), tag(slot));
    // Routes to members that the card does not have are named.
    let config = Config::parse(&text).unwrap();
    let foreign = RelayCard::new(other, Epoch(0), [slot(5)]);
    let refused = LinkRelay::start(&config, &[foreign]).unwrap_err();
    assert!(refused.to_string().contains("is no member"), "{refused}");
    // The same tags in another group, which no two groups have: the group's tag tells.
    let relay =
        LinkRelay::start(&config, &[RelayCard::new(other, Epoch(0), [slot(0), slot(1)])]).unwrap();
    peers[0].send_to(&Maker::new(0).frame(tag(1), b"hello"), at).unwrap();
    wait_until("counted", || relay.tally().dropped(DropReason::UnknownGroup) == 1);
    assert_eq!(relay.stop().forwarded.units, 0);
}

#[test]
fn a_key_that_is_none_is_named_with_those_that_are() {
    let text = text(0, address(&host()), &[], "[[neighbor]]\nname = \"car\"\n");
    let refused = Config::parse(&text).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("`neighbor`") && said.contains("`neighbour`"), "{said}");
    assert!(refused.info().hint.contains("spec/link.md"));
}
