//! From receive to send nothing is allocated.

use allocation_counter::measure;
use sealane_frame::{GroupTag, Header, HeaderFields, PeerTag};
use sealane_seal::{Epoch, SenderContext, Slot};

use super::*;
use crate::config::{Config, LinkConfig, LinkWire};
use crate::{LinkAddress, LinkRelay, MemoryNet, RelayCard};

/// Frames that pass; less where nothing is optimised.
const FRAMES: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
/// Frames of one batch, but for one to everybody.
const RUN: usize = 40;
const FRAME_BYTES: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(30);

fn tag(slot: u8) -> PeerTag {
    PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, 0, slot])
}

fn relay_tag() -> PeerTag {
    PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1])
}

fn group() -> GroupTag {
    GroupTag::from_bytes([7; 4])
}

/// A frame that looks right to machines without keys.
fn frame(to: PeerTag, sequence: u64) -> Vec<u8> {
    let fields = HeaderFields {
        next_hop: relay_tag(),
        destination: to,
        ..HeaderFields::new(group(), tag(0), 13)
    };
    let body_bytes = FRAME_BYTES - 64 - 5 - 16;
    let header = Header::new(&fields, body_bytes, sequence, SenderContext([1; 8])).unwrap();
    let mut frame = header.as_bytes().to_vec();
    frame.resize(FRAME_BYTES, 9);
    frame
}

/// A relay's worker between the neighbours of slots 0 and 1, which are links as well.
fn worker(wires: [(LinkWire, LinkAddress); 3], net: &MemoryNet) -> (RelayWorker, [RelayLink; 2]) {
    let slots = [0, 1].map(|slot| (Slot::new(slot.into()).unwrap(), tag(slot)));
    let card = RelayCard::new(group(), Epoch(0), slots);
    let [(own, _), one, other] = wires;
    let mut text = format!(
        "version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\n{} = {}\n",
        relay_tag(),
        own.kind(),
        match &own {
            LinkWire::Memory(port) => port.to_string(),
            other => format!("\"{other}\""),
        }
    );
    for (slot, (_, address)) in [&one, &other].into_iter().enumerate() {
        text += &format!(
            "[[neighbour]]\nname = \"n{slot}\"\ntag = \"slot {slot}\"\nlink = \"l\"\n\
             address = \"{address}\"\n[[route]]\nto = \"slot {slot}\"\nvia = \"n{slot}\"\n"
        );
    }
    let mut config = Config::parse(&text).unwrap();
    config.memory = Some(net.clone());
    let mut worker = LinkRelay::by_hand(&config, &[card]).unwrap();
    let open = |wire| {
        let config = LinkConfig::new("peer", wire, 1500);
        RelayLink::open(&config, Some(net)).unwrap()
    };
    let peers = [open(one.0), open(other.0)];
    worker.greet(&[]);
    (worker, peers)
}

/// So many units have come.
fn receive(link: &RelayLink, inbox: &mut LinkInbox, units: usize) {
    let mut got = 0;
    while got < units {
        assert!(link.wait(LinkReady::ToReceive, PATIENCE).unwrap(), "{got} of {units}");
        let Ok(count) = link.receive(inbox) else { continue };
        got += inbox
            .batches(count)
            .map(|(arrived, _)| arrived.bytes.div_ceil(arrived.segment_bytes))
            .sum::<usize>();
    }
    assert_eq!(got, units);
}

/// Sends run after run from one to the other, with a frame to everybody behind each.
fn carry(worker: &mut RelayWorker, peers: &[RelayLink; 2], own: LinkAddress, frames: u64) {
    let links = Arc::clone(&worker.links);
    let [one, other] = peers;
    let mut inbox = LinkInbox::new();
    receive(other, &mut inbox, 1);
    let run = frame(tag(1), 70_000).repeat(RUN);
    let mut everybody = frame(PeerTag::BROADCAST, 0);
    let mut sequence = 0_u64;
    let mut round = |worker: &mut RelayWorker| {
        sequence += 1;
        everybody[47..55].copy_from_slice(&sequence.to_le_bytes());
        for (segments, bytes) in [(&run, FRAME_BYTES), (&everybody, FRAME_BYTES)] {
            assert!(one.send(own, segments, bytes).stopped.is_none());
        }
        let until = worker.shared.counters.tally().received.units + RUN as u64 + 1;
        while worker.shared.counters.tally().received.units < until {
            assert!(links[0].wait(LinkReady::ToReceive, PATIENCE).unwrap());
            if let Ok(count) = links[0].receive(&mut worker.inbox) {
                worker.take(count);
                worker.shared.counters.take(&mut worker.desk.outlet.tally);
            }
        }
        receive(other, &mut inbox, RUN + 1);
    };
    // The buffers that are made once are made now.
    round(worker);
    let rounds = frames.div_ceil(RUN as u64 + 1);
    let counted = measure(|| (0..rounds).for_each(|_| round(worker)));
    assert_eq!(counted.count_total, 0, "in {rounds} rounds");
    let tally = worker.shared.counters.tally();
    assert_eq!(tally.forwarded.units, (rounds + 1) * (RUN as u64 + 1));
    assert!(tally.forwarded.units > frames);
}

#[test]
fn nothing_is_allocated_from_receive_to_send() {
    let net = MemoryNet::new();
    let port = |number| (LinkWire::Memory(number), LinkAddress::Memory(number));
    let (mut worker, peers) = worker([port(9), port(1), port(2)], &net);
    carry(&mut worker, &peers, LinkAddress::Memory(9), FRAMES);
}

#[test]
fn nothing_is_allocated_over_udp() {
    let free = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    let wire = |address| (LinkWire::Udp(address), LinkAddress::Udp(address));
    let addresses = [free(), free(), free()];
    let net = MemoryNet::new();
    let (mut worker, peers) = worker(addresses.map(wire), &net);
    carry(&mut worker, &peers, LinkAddress::Udp(addresses[0]), FRAMES);
}
