//! The same relays over links within this process, three in a row.

use sealane_frame::{HEADER_BYTES, PeerTag, RELAY_BYTES};
use sealane_link::{
    Config, DropReason, LinkAddress, LinkConfig, LinkInbox, LinkReady, LinkRelay, LinkWire,
    MemoryNet, RelayLink,
};

use crate::stage::{Maker, PATIENCE, card, relay_tag, tag, wait_until};

/// A neighbour in memory.
pub(crate) fn link(net: &MemoryNet, port: u32) -> RelayLink {
    let config = LinkConfig::new("own", LinkWire::Memory(port), 1500);
    RelayLink::open(&config, Some(net)).unwrap()
}

/// The next units on a link, each by itself, without notes.
pub(crate) fn units(link: &RelayLink) -> Vec<Vec<u8>> {
    let mut inbox = LinkInbox::new();
    let mut units = vec![];
    while units.is_empty() {
        assert!(link.wait(LinkReady::ToReceive, PATIENCE).unwrap(), "nothing came");
        let Ok(count) = link.receive(&mut inbox) else { continue };
        for (arrived, segments) in inbox.batches(count) {
            units.extend(segments.chunks(arrived.segment_bytes).map(<[u8]>::to_vec));
        }
        units.retain(|unit| unit[0] != 1);
    }
    units
}

/// Ports 10, 11, 12 of relays 0, 1, 2 in a row: member 0 at port 1, member 1 at port 2.
fn row(net: &MemoryNet) -> Vec<LinkRelay> {
    let members = [(tag(0), 1_u32), (tag(1), 2)];
    let relay = |own: u8| {
        let before = if own == 0 { members[0] } else { (relay_tag(own - 1), 9 + u32::from(own)) };
        let after = if own == 2 { members[1] } else { (relay_tag(own + 1), 11 + u32::from(own)) };
        let mut text = format!(
            "version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\nmemory = {}\n",
            relay_tag(own),
            10 + own
        );
        for (name, to, (tag, port)) in [("before", 0, before), ("after", 1, after)] {
            text += &format!(
                "[[neighbour]]\nname = \"{name}\"\ntag = \"{tag}\"\nlink = \"l\"\n\
                 address = \"memory {port}\"\n[[route]]\nto = \"slot {to}\"\nvia = \"{name}\"\n"
            );
        }
        let mut config = Config::parse(&text).unwrap();
        assert!(LinkRelay::start(&config, &[card()]).is_err(), "a file has no net");
        config.memory = Some(net.clone());
        LinkRelay::start(&config, &[card()]).unwrap()
    };
    (0..3).map(relay).collect()
}

#[test]
fn a_frame_passes_three_relays_and_each_changes_17_bytes_only() {
    let net = MemoryNet::new();
    let (car, base) = (link(&net, 1), link(&net, 2));
    let relays = row(&net);
    let mut maker = Maker::new(0);
    let frames: Vec<_> = (0..20_u8).map(|number| maker.frame(tag(1), &[number; 200])).collect();
    let sent = car.send(LinkAddress::Memory(10), &frames.concat(), frames[0].len());
    assert!(sent.stopped.is_none());
    let mut got = vec![];
    while got.len() < frames.len() {
        got.extend(units(&base));
    }
    for (got, sent) in got.iter().zip(&frames) {
        assert_eq!(got[..8], tag(1).to_bytes());
        assert_eq!(got[8..16], relay_tag(2).to_bytes());
        assert_eq!(got[16], sent[16] - 3);
        assert_eq!(got[RELAY_BYTES..], sent[RELAY_BYTES..]);
    }
    // One that is for everybody comes to both ends of the row.
    let all = Maker::new(0).frame(PeerTag::BROADCAST, b"hello");
    assert!(car.send(LinkAddress::Memory(10), &all, all.len()).stopped.is_none());
    assert_eq!(units(&base)[0][RELAY_BYTES..], all[RELAY_BYTES..]);
    wait_until("all is counted", || relays[2].tally().forwarded.units == 21);
    assert!(relays.into_iter().all(|relay| {
        let tally = relay.stop();
        DropReason::ALL.iter().all(|why| tally.dropped(*why) == 0)
    }));
}

#[test]
fn what_comes_from_another_port_is_a_stranger() {
    let net = MemoryNet::new();
    let _car = link(&net, 1);
    let other = link(&net, 3);
    let relays = row(&net);
    let frame = Maker::new(0).frame(tag(1), b"forged");
    assert!(frame.len() > HEADER_BYTES);
    assert!(other.send(LinkAddress::Memory(10), &frame, frame.len()).stopped.is_none());
    wait_until("counted", || relays[0].tally().dropped(DropReason::Stranger) == 1);
}
