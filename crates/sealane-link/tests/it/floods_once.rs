//! Frames to everybody pass each relay once, and announcements are there for those who come later.

use std::net::UdpSocket;

use sealane_frame::{PeerTag, RELAY_BYTES};
use sealane_link::{Config, DropReason, LinkRelay};

use crate::stage::{
    Maker, Stage, address, addresses, card, host, neighbour, receive, receive_all, relay_tag,
    socket, start, tag, text, wait_until,
};

/// Three relays, each a neighbour of the two others, with a member beside each.
fn triangle() -> (Vec<LinkRelay>, Vec<std::net::SocketAddr>, Vec<UdpSocket>) {
    let hosts = [host(), host(), host()];
    let ats: Vec<_> = hosts.iter().map(|host| address(host)).collect();
    let peers: Vec<_> = hosts.iter().map(|host| socket(host)).collect();
    let relays = (0..3_u8).map(|own| {
        let mut rest = neighbour("own", tag(own), peers[usize::from(own)].local_addr().unwrap());
        for other in (0..3).filter(|other| *other != own) {
            rest += &neighbour(&format!("r{other}"), relay_tag(other), ats[usize::from(other)]);
        }
        start(&text(own, ats[usize::from(own)], &[], &rest))
    });
    (relays.collect(), ats, peers)
}

#[test]
fn a_frame_to_everybody_comes_to_each_once_although_relays_form_a_loop() {
    let (relays, ats, peers) = triangle();
    let mut maker = Maker::new(0);
    let frames: Vec<_> =
        (0..50_u8).map(|number| maker.frame(PeerTag::BROADCAST, &[number])).collect();
    for frame in &frames {
        peers[0].send_to(frame, ats[0]).unwrap();
    }
    let repeats = || relays.iter().map(|one| one.tally().dropped(DropReason::Repeat)).sum::<u64>();
    for peer in &peers[1..] {
        let mut got: Vec<_> =
            frames.iter().map(|_| receive(peer)[RELAY_BYTES..].to_vec()).collect();
        got.sort();
        let mut all: Vec<_> = frames.iter().map(|frame| frame[RELAY_BYTES..].to_vec()).collect();
        all.sort();
        assert_eq!(got, all);
    }
    // Relays 1 and 2 tell each other, and both of them know it already.
    wait_until("the repeats", || repeats() == 100);
    for (index, peer) in peers.iter().enumerate() {
        assert_eq!(receive_all(peer), Vec::<Vec<u8>>::new(), "{index}");
    }
}

#[test]
fn a_neighbour_that_comes_later_or_asks_gets_the_announcements_of_others() {
    let stage = Stage::new(2);
    let own = Maker::new(1).announcement();
    let told = Maker::new(0).announcement();
    stage.send(1, &own);
    stage.receive(0);
    stage.send(0, &told);
    assert_eq!(stage.receive(1)[RELAY_BYTES..], told[RELAY_BYTES..]);
    // Not an announcement: nobody needs it later.
    stage.send(0, &Maker::new(0).frame(PeerTag::BROADCAST, b"hello"));
    stage.receive(1);
    let ask = [1, 0, 1];
    stage.send(1, &ask);
    assert_eq!(stage.receive(1)[RELAY_BYTES..], told[RELAY_BYTES..]);
    stage.send(1, &ask);
    stage.wait_for(DropReason::Quota, 1);
    stage.assert_silence();
    // A third one comes with another configuration, and hears both without asking.
    let third = socket(&stage.at.ip().to_string());
    let mut all = addresses(&stage.peers);
    all.push(third.local_addr().unwrap());
    let config = Config::parse(&text(0, stage.at, &all, "")).unwrap();
    stage.relay.reload(&config, &[card()]).unwrap();
    let mut heard =
        [receive(&third)[RELAY_BYTES..].to_vec(), receive(&third)[RELAY_BYTES..].to_vec()];
    heard.sort();
    let mut expected = [own[RELAY_BYTES..].to_vec(), told[RELAY_BYTES..].to_vec()];
    expected.sort();
    assert_eq!(heard, expected);
    stage.assert_silence();
}

/// A relay that was started again asks its neighbours, so that it has for others what they hold.
#[test]
fn a_relay_that_starts_asks_its_neighbours() {
    let host = host();
    let (at, peer) = (address(&host), socket(&host));
    let relay = start(&text(0, at, &addresses(&[peer.try_clone().unwrap()]), ""));
    let mut unit = [0; 9];
    let (length, from) = peer.recv_from(&mut unit).unwrap();
    assert_eq!((&unit[..length], from), (&[1, 0, 1][..], at));
    drop(relay);
}
