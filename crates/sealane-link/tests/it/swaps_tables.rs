//! Tables that are swapped while frames come: each frame goes by the one or by the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sealane_frame::RELAY_BYTES;
use sealane_link::{
    Config, DropReason, LinkAddress, LinkInbox, LinkReady, LinkRelay, MemoryNet, RelayLink,
};

use crate::relays_in_memory::link;
use crate::stage::{Maker, card, relay_tag, tag, wait_until};

/// Frames to slot 7 go to the neighbour of slot 1 or 2.
fn config(net: &MemoryNet, via: u8) -> Config {
    let mut text =
        format!("version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\nmemory = 10\n", relay_tag(0));
    for slot in 0..3 {
        text += &format!(
            "[[neighbour]]\nname = \"n{slot}\"\ntag = \"{}\"\nlink = \"l\"\n\
             address = \"memory {}\"\n",
            tag(slot),
            slot + 1
        );
    }
    text += &format!("[[route]]\nto = \"slot 7\"\nvia = \"n{via}\"\n");
    let mut config = Config::parse(&text).unwrap();
    config.memory = Some(net.clone());
    config
}

/// The frames that have come by now to the neighbour of a slot: each names it as its next hop.
fn count(link: &RelayLink, slot: u8, sent: &[u8], inbox: &mut LinkInbox) -> usize {
    let Ok(count) = link.receive(inbox) else { return 0 };
    let mut got = 0;
    for (arrived, segments) in inbox.batches(count) {
        for frame in segments.chunks(arrived.segment_bytes).filter(|unit| unit[0] != 1) {
            assert_eq!(frame[..8], tag(slot).to_bytes());
            assert_eq!(frame[RELAY_BYTES..], sent[RELAY_BYTES..]);
            got += 1;
        }
    }
    got
}

#[test]
fn no_frame_is_lost_or_doubled_by_a_thousand_swaps() {
    let net = MemoryNet::new();
    let [source, one, other] = [1, 2, 3].map(|port| link(&net, port));
    let relay = LinkRelay::start(&config(&net, 1), &[card()]).unwrap();
    let frame = Maker::new(0).frame(tag(7), &[7; 300]);
    let batch = frame.repeat(40);
    let (mut inbox, mut sent, mut got) = (LinkInbox::new(), 0, [0, 0]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let configs = [1, 2].map(|via| config(&net, via));
            for round in 0..1000 {
                relay.reload(&configs[round % 2], &[card()]).unwrap();
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) || sent < 40_000 {
            assert!(source.send(LinkAddress::Memory(10), &batch, frame.len()).stopped.is_none());
            sent += 40;
            let mut waited = 0;
            while got[0] + got[1] < sent {
                got[0] += count(&one, 1, &frame, &mut inbox);
                got[1] += count(&other, 2, &frame, &mut inbox);
                waited += 1;
                assert!(waited < 100_000, "{got:?} of {sent}");
                let _ = one.wait(LinkReady::ToReceive, Duration::from_millis(1));
            }
        }
    });
    assert_eq!(got[0] + got[1], sent);
    wait_until("all is counted", || relay.tally().forwarded.units == sent as u64);
    assert_eq!(relay.stop().dropped(DropReason::NoRoute), 0);
}
