//! A relay's process under a flood from all of its neighbours and from strangers: its memory is
//! bounded, all that it drops is counted by name, and a frame of somebody who does nothing wrong
//! goes on.

use std::fmt::Write;
use std::net::UdpSocket;
use std::time::Duration;

use sealane_frame::{ANNOUNCEMENT_TYPE, FrameKind, GroupTag, Header, HeaderFields, PeerTag};
use sealane_seal::{Announcement, Class, SenderContext};
use sealane_testing::{process_memory_kib, until};

use super::relays_without_keys::{host, start_relay};
use crate::cli::home::{Home, number};

const LINKS: u8 = 4;
const NEIGHBOURS: u8 = 64;
const STRANGERS: u8 = 4;
const ROUNDS: u16 = 60;
const MEMBERS: u16 = 1000;
/// The memory that a relay may take, whatever comes.
const MEMORY_KIB: u64 = 32 << 10;
const RELAY: PeerTag = PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1]);

fn group() -> GroupTag {
    GroupTag::from_bytes([0x9a; 4])
}

fn member(slot: u16) -> PeerTag {
    let [low, high] = slot.to_le_bytes();
    PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, high, low])
}

fn neighbour(number: u8) -> PeerTag {
    PeerTag::from_bytes([0xc1, 0, 0, 0, 0, 0, 0, number])
}

/// Where the neighbours of a link reach the relay.
fn link(number: u8) -> String {
    format!("{}:919{number}", host(20))
}

fn write_files(home: &Home, sockets: &[UdpSocket]) {
    let mut card = format!("version = 1\ngroup = \"{}\"\nepoch = 0\n[members]\n", group());
    for slot in 0..MEMBERS {
        writeln!(card, "{slot} = \"{}\"", member(slot)).unwrap();
    }
    std::fs::write(home.path("fleet.card"), card).unwrap();
    let mut config = format!("version = 1\ntag = \"{RELAY}\"\ncards = [\"fleet.card\"]\n");
    for number in 0..LINKS {
        write!(config, "[[link]]\nname = \"l{number}\"\nudp = \"{}\"\n", link(number)).unwrap();
    }
    for (number, socket) in (0..NEIGHBOURS).zip(sockets) {
        let (tag, on, address) = (neighbour(number), number % LINKS, socket.local_addr().unwrap());
        write!(
            config,
            "[[neighbour]]\nname = \"n{number}\"\ntag = \"{tag}\"\nlink = \"l{on}\"\n\
             address = \"{address}\"\n"
        )
        .unwrap();
    }
    config += "[[route]]\nto = \"*\"\nvia = \"n1\"\n";
    std::fs::write(home.path("relay.toml"), config).unwrap();
}

/// A frame that a relay cannot tell from a true one.
fn frame(from: u8, source: u16, fields: HeaderFields, body_bytes: usize, sequence: u64) -> Vec<u8> {
    let fields = HeaderFields {
        next_hop: RELAY,
        previous_hop: neighbour(from),
        source: member(source),
        ..fields
    };
    let header = Header::new(&fields, body_bytes, sequence, SenderContext([7; 8])).unwrap();
    let trailer = if fields.class == Class::Signed { 64 + 16 } else { 16 };
    let mut frame = header.as_bytes().to_vec();
    frame.push(0);
    frame.resize(64 + 1 + body_bytes + trailer, sequence as u8);
    // The end of the tag tells frames to everybody apart.
    let at = frame.len() - 16;
    frame[at..at + 8].copy_from_slice(&sequence.to_le_bytes());
    frame
}

fn plain(destination: PeerTag) -> HeaderFields {
    HeaderFields { destination, ..HeaderFields::new(group(), member(0), 1) }
}

/// A part of a frame of 250,000 bytes: its id, its number, and how much of it there is. The last of
/// the five is shorter than the others.
fn part(id: u16, number: u8, bytes: usize, filled_with: u8) -> Vec<u8> {
    let [id_0, id_1] = id.to_le_bytes();
    let mut part = vec![filled_with; 8 + bytes];
    part[..8].copy_from_slice(&[0, id_0, id_1, number, 0x80, 0x90, 0xd0, 0x03]);
    part
}

/// The units that one neighbour sends in one round. Some are parts of giant frames, which
/// contradict each other, are cut off, or are of a frame that never ends. Others are frames to
/// everybody, announcements of many senders, frames of nobody's group, and junk of all lengths.
fn round(from: u8, round: u16) -> Vec<Vec<u8>> {
    let sequence = u64::from(round) << 8 | u64::from(from);
    let source = (u16::from(from) * 31 + round * 7) % MEMBERS;
    let announcement = HeaderFields {
        kind: FrameKind::Control,
        class: Class::Signed,
        data_type: ANNOUNCEMENT_TYPE,
        ..plain(PeerTag::BROADCAST)
    };
    let elsewhere = HeaderFields { group: GroupTag::from_bytes([0x55; 4]), ..plain(member(3)) };
    let mut units = vec![
        part(round, 4, 49_000, 7),
        part(round, 0, 52_000, 8),
        part(round, 0, 52_000, 9),
        part(round, 1, 100, 7),
        part(round ^ 0x4000, 2, 0, 7)[..5 + usize::from(round % 3)].to_vec(),
        frame(from, source, plain(PeerTag::BROADCAST), 900, sequence),
        frame(from, source, announcement, Announcement::BYTES, sequence),
        frame(from, source, elsewhere, 50, sequence),
        vec![from.wrapping_mul(7); 60_000],
    ];
    // Segments of unequal length, one after the other.
    let lengths = [1, 64, 1399, 700, 1400, 63];
    units.extend(lengths.map(|length| vec![from ^ 0x2a; length]));
    units
}

#[test]
fn a_flood_from_all_neighbours_takes_bounded_memory_and_frames_go_on() {
    let home = Home::new();
    let sockets: Vec<_> =
        (0..NEIGHBOURS).map(|_| UdpSocket::bind((host(21), 0)).unwrap()).collect();
    write_files(&home, &sockets);
    let strangers: Vec<_> =
        (0..STRANGERS).map(|_| UdpSocket::bind((host(21), 0)).unwrap()).collect();
    let relay = start_relay(&home, "relay.toml", &[]);
    let id = relay.process.id();
    let mut most_kib = 0;
    for turn in 0..ROUNDS {
        for (from, socket) in (0..).zip(sockets.iter().chain(&strangers)) {
            for unit in round(from, turn) {
                // If the system does not take a unit, the unit is lost, as on a wire.
                let _ = socket.send_to(&unit, link(from % LINKS));
            }
        }
        // Pages of the program's file are not the relay's: a debug build has many.
        most_kib = most_kib.max(process_memory_kib(id, "RssAnon:"));
    }
    let true_frame = frame(2, 5, plain(member(9)), 40, u64::MAX >> 1);
    sockets[1].set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut unit = vec![0; 1 << 16];
    until("a frame goes on", || {
        sockets[2].send_to(&true_frame, link(2 % LINKS)).unwrap();
        let came = sockets[1].recv(&mut unit).ok();
        came.is_some_and(|length| unit[..length].get(17..) == Some(&true_frame[17..]))
    });
    most_kib = most_kib.max(process_memory_kib(id, "RssAnon:"));
    println!("a relay under flood took {most_kib} KiB");
    assert!(most_kib < MEMORY_KIB, "{most_kib} KiB");
    let said = relay.stop();
    let dropped = said.field("dropped").unwrap();
    for why in ["stranger", "fragment", "malformed", "unknown_group"] {
        assert!(number(dropped, why) > 0, "{why}: {said:?}");
    }
    assert_eq!(dropped.field("link_fault"), None, "{said:?}");
}
