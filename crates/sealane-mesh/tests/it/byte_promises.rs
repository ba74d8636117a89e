//! The cost of the mesh in bytes, by the real encoder.

use sealane_frame::{CompactView, FrameDictionary, FrameRoster, LinkContext, PeerTag};
use sealane_mesh::{
    DIGEST_BYTES, DISTANCE_BYTES, ECHO_BYTES, GatewayReport, HELLO_BYTES_MIN, HOP_SEAL_BYTES,
    HelloMessage, LISTED_BYTES, MachineRole, MeshInput, MeshMedium, MeshSpan, MessageType,
    NeighbourProbe, RemovalMessage,
};

use crate::net::{Link, Net};

/// The body of a compact frame of class A, and all its bytes.
fn body<'a>(net: &Net, unit: &'a [u8]) -> Option<(u16, &'a [u8])> {
    let dictionary = FrameDictionary::fixed(&[net.provision.group_tag()]);
    let roster = FrameRoster::new();
    let (next_hop, previous_hop) = (PeerTag::BROADCAST, PeerTag::NOBODY);
    let link = LinkContext { dictionary: &dictionary, roster: &roster, next_hop, previous_hop };
    let view = CompactView::parse(unit, &link).ok()?;
    Some((view.data_type(), &unit[view.header_bytes()..unit.len() - 16]))
}

/// A cell of so many machines that have just started, of which two are gateways.
fn cell(count: usize) -> Net {
    let mut net = Net::new(1, count as u16, MeshMedium::dot11p());
    for one in 0..count {
        for other in one + 1..count {
            net.join(one, other, Link::default());
        }
        net.start(one, if one < 2 { MachineRole::Gateway } else { MachineRole::Member });
    }
    net
}

/// The hellos of a cell that were heard in some time from now on, and how long they were.
fn hellos(net: &mut Net, span: MeshSpan) -> Vec<(usize, HelloMessage)> {
    net.heard.clear();
    net.run(span);
    let heard = net.heard.iter().filter_map(|(_, unit)| {
        let (_, body) = body(net, unit).filter(|(what, _)| *what == 1)?;
        Some((unit.len(), HelloMessage::parse(body).unwrap()))
    });
    heard.collect()
}

#[test]
fn a_hello_of_eight_neighbours_has_96_bytes_at_most_also_while_they_find_each_other() {
    let most = HELLO_BYTES_MIN + 8 * LISTED_BYTES + 2 * ECHO_BYTES + 2 * DISTANCE_BYTES;
    assert_eq!(most, 69);
    assert_eq!(most + 27, 96, "with the longest headers and the tag of the compact form");
    let mut net = cell(9);
    let first = hellos(&mut net, MeshSpan::seconds(5));
    assert!(first.len() >= 45, "{}", first.len());
    assert!(first.iter().any(|(_, hello)| hello.echoes.len() > 2), "few leave room for more");
    let later = hellos(&mut net, MeshSpan::seconds(30));
    for (bytes, hello) in first.iter().chain(&later) {
        assert!(*bytes <= 96 && hello.to_bytes().len() <= 69, "{bytes}: {hello:?}");
    }
    assert!(later.len() > 200, "{}", later.len());
    for (_, hello) in later.iter().rev().take(50) {
        let lists = (hello.neighbours.len(), hello.echoes.len(), hello.gateways.len());
        assert_eq!(lists, (8, 2, 2));
    }
}

#[test]
fn a_hello_among_very_many_neighbours_has_96_bytes_at_most() {
    let mut net = cell(22);
    net.run(MeshSpan::seconds(25));
    let hellos = hellos(&mut net, MeshSpan::seconds(15));
    assert!(hellos.len() > 100);
    for (bytes, hello) in hellos.iter().rev().take(50) {
        let lists = (hello.neighbours.len(), hello.echoes.len(), hello.gateways.len());
        assert_eq!(lists, (8, 2, 2));
        assert!(*bytes <= 96, "{bytes}");
    }
}

#[test]
fn a_notice_of_removal_has_130_bytes_at_most() {
    assert_eq!(RemovalMessage::BYTES + 27, 123, "with the longest headers of the compact form");
    let mut net = Net::new(2, 1024, MeshMedium::lora_sf7());
    for slot in [0, 1022, 1023] {
        net.start(slot, MachineRole::Member);
    }
    net.join(0, 1022, Link::default());
    net.join(1022, 1023, Link::default());
    net.run(MeshSpan::seconds(1200));
    net.heard.clear();
    let notice = net.provision.removal(0, 500, 0).unwrap();
    net.give(0, &notice);
    net.run(MeshSpan::seconds(1200));
    let notices = net.heard.iter().filter(|(_, unit)| {
        let body = body(&net, unit).filter(|(what, _)| *what == MessageType::Removal as u16);
        body.is_some_and(|(_, body)| RemovalMessage::parse(body).is_ok())
    });
    let bytes: Vec<usize> = notices.map(|(_, unit)| unit.len()).collect();
    println!("notices of removal on the air: {bytes:?} bytes");
    assert!(bytes.len() >= 2 && bytes.iter().all(|bytes| *bytes <= 130), "{bytes:?}");
    assert_eq!(net.node(1023).mesh.leaving().len(), 1);
}

#[test]
fn with_a_digest_of_documents_it_still_has_96_bytes_at_most() {
    let most = HELLO_BYTES_MIN + 8 * LISTED_BYTES + ECHO_BYTES + 2 * DISTANCE_BYTES + DIGEST_BYTES;
    assert_eq!(most + 27, 95, "a digest stands in the place of an echo");
    for count in [9, 22] {
        let mut net = cell(count);
        for (one, node) in &mut net.nodes {
            node.mesh.take(net.now, MeshInput::Digest { digest: Some([*one as u8; 8]) });
        }
        net.run(MeshSpan::seconds(25));
        let hellos = hellos(&mut net, MeshSpan::seconds(15));
        for (bytes, hello) in hellos.iter().rev().take(50) {
            let lists = (hello.neighbours.len(), hello.echoes.len(), hello.gateways.len());
            assert_eq!((lists, hello.digest.is_some()), ((8, 1, 2), true), "{count}");
            assert!(*bytes <= 96, "{bytes}");
        }
    }
}

#[test]
fn the_rest_is_small_too() {
    assert_eq!(HOP_SEAL_BYTES, 10);
    assert_eq!(NeighbourProbe::BYTES + 27, 34);
    let of = |count: u16| GatewayReport {
        counts: (0..count).map(|n| (sealane_seal::Slot::new(n).unwrap(), 1)).collect(),
        ..GatewayReport::default()
    };
    assert_eq!(of(0).to_bytes().len(), GatewayReport::BYTES_MIN);
    assert_eq!(of(32).to_bytes().len(), GatewayReport::BYTES_MIN + 4 * 32);
}
