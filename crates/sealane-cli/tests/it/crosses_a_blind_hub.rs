//! Two members on machines of their own exchange messages through a hub on a third: nothing that
//! the hub stores, and no byte on its wires, holds a body, a key or a name.
//!
//! The same search of an open stream must find them: otherwise it would show nothing.

mod member;
pub(crate) mod net;
pub(crate) mod search;
pub(crate) mod wire;

use std::path::Path;

use member::{Hub, Member};
use net::Net;
use sealane::Value;
use sealane_testing::PacketRecorder;
use search::Needles;
use wire::Recording;

/// Messages of each member in each part.
const COUNT: usize = 20;
const GROUP: &str = "convoy-zwetschgental";
const TOPIC: &str = "fleet/7/location";

/// A body that nobody could guess: its words are a hash of its number.
fn body(number: usize) -> String {
    let words: Vec<String> = (0..4_u64)
        .map(|part| {
            let mixed = (number as u64 * 4 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let letter = |at: u32| char::from(b'a' + (mixed >> (5 * at) & 0x1f) as u8 % 26);
            (0..12).map(letter).collect()
        })
        .collect();
    words.join(" ")
}

fn bodies(from: usize) -> Vec<String> {
    (from..from + COUNT).map(body).collect()
}

fn sorted(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    all
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_hub_between_two_members_learns_no_body_key_or_name() {
    let _turn = crate::TURN.beside();
    let net = Net::make();
    let recorder = PacketRecorder::start(net.hub());
    let mut hub = Hub::start(&net);
    let alice = Member::new(&net, 0, "wilhelmina-quellenberg");
    let bob = Member::new(&net, 1, "thaddaeus-obermoosbach");
    alice.run(&["group", "new", GROUP]);
    alice.invite(GROUP, &bob, "all");

    // Both ways, by a consumer and by a reader.
    alice.publish(TOPIC, GROUP, &bodies(0));
    assert_eq!(bob.read(TOPIC, GROUP, &["--consumer", "billing"], COUNT), bodies(0));
    bob.publish(TOPIC, GROUP, &bodies(COUNT));
    let both = [bodies(0), bodies(COUNT)].concat();
    assert_eq!(alice.read(TOPIC, GROUP, &["--from", "first"], 2 * COUNT), both);

    // Everything ends at once and goes on where it was.
    hub.kill_and_restart(&net);
    alice.publish(TOPIC, GROUP, &bodies(2 * COUNT));
    let rest = [bodies(COUNT), bodies(2 * COUNT)].concat();
    assert_eq!(bob.read(TOPIC, GROUP, &["--consumer", "billing"], 2 * COUNT), rest);

    let state = bob.state(TOPIC);
    assert!(state.field("sealed").and_then(Value::as_text).is_some(), "{state:?}");
    assert_eq!(state.field("count").and_then(Value::as_u64), Some(3 * COUNT as u64));
    let seen = bob.read_and_die(TOPIC, GROUP, (3 * COUNT, 7));
    assert!(seen.into_iter().eq(sorted([both.as_slice(), &bodies(2 * COUNT)].concat())));

    // A member that comes later reads the messages that its invitation opens.
    let carol = Member::new(&net, 1, "kunigunde-hinterwaldner");
    alice.invite(GROUP, &carol, "all");
    let all = [both.as_slice(), &bodies(2 * COUNT)].concat();
    assert_eq!(carol.read(TOPIC, GROUP, &["--from", "first"], 3 * COUNT), all);
    let dora = Member::new(&net, 1, "dorothea-vorderegger");
    alice.rotate(GROUP);
    alice.invite(GROUP, &dora, "none");
    alice.publish(TOPIC, GROUP, &bodies(3 * COUNT));
    assert_eq!(dora.read(TOPIC, GROUP, &["--from", "first"], COUNT), bodies(3 * COUNT));

    let recording = Recording::of(recorder.finish());
    let members = [&alice, &bob, &carol, &dora];
    let (needles, names) = secrets(&members);
    let found = look(&needles, &hub, &recording);
    println!("of {} secrets the hub has {found:?}", names.len());
    assert!(found.is_empty(), "{found:?}");

    // The same secrets in the open are all found, on the disk and on the wire.
    let recorder = PacketRecorder::start(net.hub());
    for secret in &names {
        alice.run(&["pub", "open", secret]);
    }
    let told = Recording::of(recorder.finish());
    let none: [&str; 0] = [];
    assert_eq!(needles.missing(&needles_found(&needles, &told.stretches())), none, "on the wire");
    assert_eq!(needles.missing(&needles_found(&needles, &hub.files())), none, "on the disk");
}

/// The secrets to look for, and each as it is published in the open.
fn secrets(members: &[&Member]) -> (Needles, Vec<String>) {
    let (mut needles, mut shown) = (Needles::default(), Vec::new());
    let mut add = |name: &str, secret: &[u8]| {
        needles.add(name, secret);
        shown.push(match std::str::from_utf8(secret) {
            Ok(text) => text.to_owned(),
            Err(_) => secret.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
    };
    for number in 0..4 * COUNT {
        add(&format!("body {number}"), body(number).as_bytes());
    }
    add("the group's name", GROUP.as_bytes());
    for member in members {
        add(&format!("the name {}", member.name), member.name.as_bytes());
        for (file, content) in member.key_files() {
            let name = format!("{} of {}", file.display(), member.name);
            add(&name, &content);
        }
    }
    println!("looking for {} pieces of {} secrets", needles.count(), shown.len());
    (needles, shown)
}

/// The secrets that the hub stored, or its wires carried.
fn look<'n>(needles: &'n Needles, hub: &Hub, recording: &Recording) -> Vec<(&'n str, String)> {
    let (files, stretches) = (hub.files(), recording.stretches());
    let stored: usize = files.iter().map(Vec::len).sum();
    println!(
        "{stored} bytes stored; {} packets, {} bytes of {} streams on the wires",
        recording.packets.len(),
        recording.bytes(),
        recording.streams.len(),
    );
    assert!(stored > 10_000 && recording.bytes() > 10_000, "there is something to look at");
    let mut found = needles_found(needles, &files);
    found.extend(needles_found(needles, &stretches));
    found
}

fn needles_found<'n>(needles: &'n Needles, all: &[Vec<u8>]) -> Vec<(&'n str, String)> {
    let mut found: Vec<_> = all.iter().flat_map(|bytes| needles.find(bytes)).collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// The binary that is proved.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sealane"))
}
