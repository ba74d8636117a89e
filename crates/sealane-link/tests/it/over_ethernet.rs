//! Frames go over network cards without IP, in a namespace that a test has to itself.

use sealane_frame::{RELAY_BYTES, Reassembly, ReassemblyProgress};
use sealane_link::{
    Config, DropReason, LinkAddress, LinkConfig, LinkRelay, LinkWire, MemoryNet, RelayLink,
};
use sealane_testing::NetSpace;

use crate::relays_in_memory::{link, units};
use crate::stage::{Maker, card, relay_tag, tag, wait_until};

const RELAYS_CARD: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEERS_CARD: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A namespace with a cable from `wire` to `peer`, which the calling thread is in. The threads of
/// relays that it starts are in it too.
fn enter() -> NetSpace {
    let space = NetSpace::new("cable");
    space.enter();
    lay_cable(&space);
    space
}

fn lay_cable(space: &NetSpace) {
    let mac = |bytes| LinkAddress::Ethernet(bytes).to_string();
    let (here, there) = (mac(RELAYS_CARD), mac(PEERS_CARD));
    space.ip(&format!("link add wire address {here} type veth peer name peer address {there}"));
    space.ip("link set wire up");
    space.ip("link set peer up");
}

/// A relay with member 0 on a cable, and member 1 in memory.
struct Setting {
    relay: LinkRelay,
    peer: RelayLink,
    beyond: RelayLink,
    space: NetSpace,
}

impl Setting {
    fn new(mtu: u16) -> Setting {
        let space = enter();
        let net = MemoryNet::new();
        let text = format!(
            "version = 1\ntag = \"{own}\"\n\
             [[link]]\nname = \"wire\"\nethernet = \"wire\"\nmtu = {mtu}\n\
             [[link]]\nname = \"beyond\"\nmemory = 10\n\
             [[neighbour]]\nname = \"n0\"\ntag = \"{car}\"\nlink = \"wire\"\naddress = \"{at}\"\n\
             [[neighbour]]\nname = \"n1\"\ntag = \"{base}\"\nlink = \"beyond\"\n\
             address = \"memory 1\"\n[[route]]\nto = \"slot 0\"\nvia = \"n0\"\n\
             [[route]]\nto = \"slot 1\"\nvia = \"n1\"\n",
            own = relay_tag(0),
            car = tag(0),
            base = tag(1),
            at = LinkAddress::Ethernet(PEERS_CARD),
        );
        let beyond = link(&net, 1);
        let mut config = Config::parse(&text).unwrap();
        config.memory = Some(net);
        let wire = LinkWire::Ethernet("peer".to_owned());
        let peer = LinkConfig::new("peer", wire, 1500);
        let peer = RelayLink::open(&peer, None).unwrap();
        Setting { relay: LinkRelay::start(&config, &[card()]).unwrap(), peer, beyond, space }
    }

    fn send(&self, segments: &[u8], segment_bytes: usize) {
        self.send_to(RELAYS_CARD, segments, segment_bytes);
    }

    fn send_to(&self, to: [u8; 6], segments: &[u8], segment_bytes: usize) {
        let sent = self.peer.send(LinkAddress::Ethernet(to), segments, segment_bytes);
        assert!(sent.stopped.is_none(), "{:?}", sent.stopped);
    }
}

/// So many units of a link.
fn collect(link: &RelayLink, count: usize) -> Vec<Vec<u8>> {
    let mut got = vec![];
    while got.len() < count {
        got.extend(units(link));
    }
    assert_eq!(got.len(), count);
    got
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_of_all_lengths_go_on_as_they_came_in_order() {
    let setting = Setting::new(1500);
    let mut maker = Maker::new(0);
    let lengths = [0, 1, 300, 300, 300, 200, 300, 300, 400, 1400, 1400, 1400, 5];
    let frames: Vec<_> = lengths.map(|bytes| maker.frame(tag(1), &vec![9; bytes])).into();
    frames.iter().for_each(|frame| setting.send(frame, frame.len()));
    let got = collect(&setting.beyond, frames.len());
    for (got, sent) in got.iter().zip(&frames) {
        assert_eq!(got[RELAY_BYTES..], sent[RELAY_BYTES..]);
    }
    // And back, as one batch.
    let mut maker = Maker::new(1);
    let frames: Vec<_> = (0..200_u8).map(|n| maker.frame(tag(0), &[n; 500])).collect();
    let (first, second) = frames.split_at(100);
    for part in [first, second] {
        let sent = setting.beyond.send(LinkAddress::Memory(10), &part.concat(), part[0].len());
        assert!(sent.stopped.is_none());
    }
    let got = collect(&setting.peer, frames.len());
    for (got, sent) in got.iter().zip(&frames) {
        assert_eq!(got[RELAY_BYTES..], sent[RELAY_BYTES..]);
    }
    let tally = setting.relay.stop();
    assert_eq!(DropReason::ALL.map(|why| tally.dropped(why)).iter().sum::<u64>(), 0, "{tally:?}");
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_for_other_cards_are_not_looked_at_and_other_senders_are_strangers() {
    let setting = Setting::new(1500);
    let mut maker = Maker::new(0);
    let frame = maker.frame(tag(1), b"where I am");
    // An address of its own on the same cable: not the neighbour's.
    setting.space.ip("link set peer address 02:00:00:00:00:09");
    let wire = LinkWire::Ethernet("peer".to_owned());
    let stranger = LinkConfig::new("peer", wire, 1500);
    let stranger = RelayLink::open(&stranger, None).unwrap();
    let sent = stranger.send(LinkAddress::Ethernet(RELAYS_CARD), &frame, frame.len());
    assert!(sent.stopped.is_none());
    wait_until("a stranger", || setting.relay.tally().dropped(DropReason::Stranger) == 1);
    setting.send_to([2, 0, 0, 0, 0, 7], &frame, frame.len());
    setting.send_to([0xff; 6], &frame, frame.len());
    setting.send(&frame, frame.len());
    assert_eq!(collect(&setting.beyond, 1)[0][RELAY_BYTES..], frame[RELAY_BYTES..]);
    assert_eq!(setting.relay.stop().received.units, 2);
}

/// A card puts zeros behind what is shorter than 46 bytes: no part of a frame is.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn no_part_of_a_frame_is_so_short_that_the_card_would_fill_it() {
    let setting = Setting::new(300);
    let mut maker = Maker::new(1);
    for bytes in (200..900).step_by(7) {
        let frame = maker.frame(tag(0), &vec![3; bytes]);
        let sent = setting.beyond.send(LinkAddress::Memory(10), &frame, frame.len());
        assert!(sent.stopped.is_none());
        let mut reassembly = Reassembly::new();
        let mut is_whole = frame.len() <= 300;
        while !is_whole {
            for unit in units(&setting.peer) {
                assert!((46..=300).contains(&unit.len()), "{} of {}", unit.len(), frame.len());
                let part = sealane_frame::Fragment::parse(&unit).unwrap();
                if let ReassemblyProgress::Whole(whole) = reassembly.push(tag(0), 0, &part).unwrap()
                {
                    assert_eq!(whole[RELAY_BYTES..], frame[RELAY_BYTES..]);
                    is_whole = true;
                }
            }
        }
        if frame.len() <= 300 {
            assert_eq!(collect(&setting.peer, 1)[0].len(), frame.len());
        }
    }
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_note_that_the_card_has_filled_with_zeros_is_one() {
    let setting = Setting::new(1500);
    let own = Maker::new(1).announcement();
    let sent = setting.beyond.send(LinkAddress::Memory(10), &own, own.len());
    assert!(sent.stopped.is_none());
    // Once as it came, and once more where the relay greets its neighbours after that.
    let is_own = |unit: &Vec<u8>| unit[RELAY_BYTES..] == own[RELAY_BYTES..];
    assert!(units(&setting.peer).iter().all(is_own));
    let mut ask = [0; 46];
    ask[..3].copy_from_slice(&[1, 0, 1]);
    setting.send(&ask, ask.len());
    assert!(units(&setting.peer).iter().all(is_own));
    wait_until("the note", || setting.relay.tally().received.units == 2);
    assert_eq!(setting.relay.stop().dropped(DropReason::Malformed), 0);
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn an_interface_that_vanishes_is_counted_and_taken_again_when_it_returns() {
    let Setting { relay, peer, beyond, space } = Setting::new(1500);
    let mut maker = Maker::new(0);
    space.ip("link delete wire");
    wait_until("the fault", || relay.tally().dropped(DropReason::LinkFault) > 0);
    drop(peer);
    lay_cable(&space);
    let wire = LinkWire::Ethernet("peer".to_owned());
    let peer = LinkConfig::new("peer", wire, 1500);
    let peer = RelayLink::open(&peer, None).unwrap();
    let received = relay.tally().received.units;
    wait_until("a frame", || {
        let frame = maker.frame(tag(1), b"again");
        let sent = peer.send(LinkAddress::Ethernet(RELAYS_CARD), &frame, frame.len());
        sent.stopped.is_none() && relay.tally().received.units > received
    });
    assert!(!units(&beyond).is_empty());
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn an_interface_that_is_not_there_is_named() {
    let _space = enter();
    for (name, said) in [("nowhere", "link l: "), ("lo", "link l: ")] {
        let wire = LinkWire::Ethernet(name.to_owned());
        let config = LinkConfig::new("l", wire, 1500);
        let refused = RelayLink::open(&config, None);
        let is_lo = name == "lo";
        match refused {
            // Loopback has an address of zeros: it can be opened, and nobody be reached.
            Ok(_) => assert!(is_lo),
            Err(error) => assert!(error.to_string().starts_with(said), "{error}"),
        }
    }
}
