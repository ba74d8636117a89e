//! Members talk over two relays, which hold their tags and nothing else.

use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use sealane::Value;
use sealane_frame::{FrameBuf, HEADER_BYTES, HeaderFields, PeerTag};
use sealane_group::{GroupMember, KeyFolder};
use sealane_seal::{Binding, Class};
use sealane_testing::free_address;
pub(super) use sealane_testing::numbered_host as host;

use crate::cli::home::{Home, number};
use crate::cli::{Machine, sealane, text, until_status};

/// The process of a relay.
pub(super) fn start_relay(home: &Home, config: &str, args: &[&str]) -> Machine {
    let mut command = sealane(home.folder());
    command.args(["--json", "relay"]).arg(home.path(config)).args(args).stderr(Stdio::null());
    Machine::start(command)
}

/// The tag of a relay that is nobody's.
fn relay_tag(number: u8) -> String {
    format!("b10000000000000{number}")
}

/// The configuration of a relay between a neighbour for slot 1 and one for the rest.
pub(super) fn config(own: u8, car: (&str, &str), rest: (&str, &str)) -> String {
    let (tag, host) = (relay_tag(own), host(own));
    let neighbour = |name: &str, (tag, address): (&str, &str)| {
        format!(
            "[[neighbour]]\nname = \"{name}\"\ntag = \"{tag}\"\nlink = \"road\"\n\
             address = \"{address}\"\n"
        )
    };
    format!(
        "version = 1\ntag = \"{tag}\"\ncards = [\"fleet.card\"]\n\
         [[link]]\nname = \"road\"\nudp = \"{host}:9190\"\n{}{}\
         [[route]]\nto = \"slot 1\"\nvia = \"a\"\n[[route]]\nto = \"*\"\nvia = \"b\"\n",
        neighbour("a", car),
        neighbour("b", rest)
    )
}

fn member(home: &Home, who: &str) -> GroupMember {
    KeyFolder::open(&home.path(who), None).unwrap().group("fleet").unwrap()
}

fn assert_card_holds_tags_alone(home: &Home, base: &GroupMember, car: &GroupMember) {
    let card = home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
    let card = std::fs::read_to_string(card).unwrap();
    for tag in [base.source().unwrap(), car.source().unwrap()] {
        assert!(card.contains(&tag.to_string()), "{card}");
    }
    for name in ["base", "car", "fleet", &base.authority().to_string()] {
        assert!(!card.contains(name), "{name} stands on the card");
    }
}

/// The next frame; the relay's notes are passed over.
fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut unit = vec![0; 1 << 16];
    loop {
        let length = socket.recv(&mut unit).expect("nothing came");
        // Notes of the relay begin with 1, as one of 256 tags of a next hop does.
        if length >= HEADER_BYTES || unit[0] != 1 {
            unit.truncate(length);
            return unit;
        }
    }
}

fn socket(host: &str) -> UdpSocket {
    let socket = UdpSocket::bind((host, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

#[test]
fn members_talk_over_relays_that_hold_their_tags_and_nothing_else() {
    let home = Home::fleet(&[], &["base", "car"]);
    let (base, car) = (member(&home, "base"), member(&home, "car"));
    assert_card_holds_tags_alone(&home, &base, &car);

    let (at_car, at_base) = (socket(&host(1)), socket(&host(2)));
    let address = |socket: &UdpSocket| socket.local_addr().unwrap().to_string();
    let relay = |number| format!("{}:9190", host(number));
    let slot = |slot: &str| format!("slot {slot}");
    let first = config(1, (&slot("1"), &address(&at_car)), (&relay_tag(2), &relay(2)));
    let second = config(2, (&relay_tag(1), &relay(1)), (&slot("0"), &address(&at_base)));
    let page = free_address();
    let first = format!("status = \"{page}\"\n{first}");
    for name in ["first.toml", "asked.toml"] {
        std::fs::write(home.path(name), &first).unwrap();
    }
    std::fs::write(home.path("second.toml"), second).unwrap();
    let [one, two] = ["first.toml", "second.toml"].map(|name| start_relay(&home, name, &[]));
    // Relays ask each other at their start: who asks later is told the announcement again.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(text(&one.started, "tag"), relay_tag(1));
    assert_eq!(number(&one.started, "members"), 2);

    // The car makes itself known, and says something to the base alone.
    let mut buf = FrameBuf::new();
    let mut sender = car.sender().unwrap();
    let mut reader = base.live_reader().unwrap();
    at_car.send_to(sender.announce(&mut buf).unwrap(), relay(1)).unwrap();
    let mut heard = receive(&at_base);
    assert_eq!(reader.announced(&mut heard, 0).unwrap().slot, car_slot(&car));
    let fields = HeaderFields {
        next_hop: PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1]),
        destination: base.source().unwrap(),
        ..sender.fields(Class::Group, 1)
    };
    for number in 0..100_u8 {
        let frame = sender.seal(&fields, &Binding::link(), &[number; 99], &mut buf).unwrap();
        at_car.send_to(frame, relay(1)).unwrap();
        let mut frame = receive(&at_base);
        let message = reader.open(&Binding::link(), &mut frame, 0).unwrap();
        assert_eq!((message.body, message.header.hop_limit()), (&[number; 99][..], 13));
    }

    let mut send = |body: &[u8]| {
        let frame = sender.seal(&fields, &Binding::link(), body, &mut buf).unwrap();
        at_car.send_to(frame, relay(1)).unwrap();
    };
    read_again(&home, &one, &first, || {
        send(b"on");
        receive(&at_base);
    });
    (0..200).for_each(|_| send(b"too fast"));
    wait_until_told(&home, |told| {
        let Some(Value::Array(all)) = told.field("dropped") else { return false };
        let dropped: u64 = all.iter().map(|one| number(one, "units")).sum();
        dropped + number(told.field("forwarded").unwrap(), "units") >= 302
    });
    let said = one.stop();
    let dropped = |said: &Value, why| number(said.field("dropped").unwrap(), why);
    // A burst goes on, and one frame a second, for which a busy machine may take long.
    assert!((100..=136).contains(&dropped(&said, "quota")), "{said:?}");
    let forwarded = number(said.field("forwarded").unwrap(), "units");
    assert_eq!(forwarded + dropped(&said, "quota"), 302);
    let said = two.stop();
    assert_eq!(number(said.field("forwarded").unwrap(), "units"), forwarded);
    assert_eq!(said.field("dropped"), Some(&Value::Map(vec![])));
}

/// Wrong configurations change nothing, and right ones do: a neighbour of one frame a second.
fn read_again(home: &Home, relay: &Machine, config: &str, goes_on: impl FnOnce()) {
    std::fs::write(home.path("first.toml"), "version = 1").unwrap();
    relay.process.signal("HUP");
    let reloads =
        |what: &'static str| move |told: &Value| number(told.field("reloads").unwrap(), what) == 1;
    wait_until_told(home, reloads("refused"));
    goes_on();
    let slower = config.replacen("address", "frames_per_second = 1\naddress", 1);
    std::fs::write(home.path("first.toml"), slower).unwrap();
    relay.process.signal("HUP");
    wait_until_told(home, reloads("taken"));
}

/// Waits until the first relay tells that of itself.
#[track_caller]
fn wait_until_told(home: &Home, is_so: impl Fn(&Value) -> bool) {
    let mut status = sealane(home.folder());
    status.args(["--json", "mesh", "status"]).arg(home.path("asked.toml"));
    until_status(&mut status, is_so);
}

fn car_slot(car: &GroupMember) -> sealane_seal::Slot {
    sealane_group::EpochSource::slot(car)
}

#[test]
fn what_a_relay_cannot_start_with_is_named() {
    let home = Home::fleet(&[], &["base", "car"]);
    home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
    let good = config(3, ("slot 1", "127.0.0.1:1"), ("slot 0", "127.0.0.1:2"));
    let file = home.path("relay.toml").display().to_string();
    for (from, to, code) in [
        ("version", "vision", "SL-LINK-02"),
        ("\"slot 0\"", "\"slot 7\"", "SL-LINK-03"),
        ("link = \"road\"", "link = \"rail\"", "SL-LINK-02"),
        ("[\"fleet.card\"]", "[\"relay.toml\"]", "SL-LINK-03"),
        ("[\"fleet.card\"]", "[\"no.card\"]", "SL-CLI-03"),
    ] {
        assert!(good.contains(from), "{from}");
        std::fs::write(home.path("relay.toml"), good.replacen(from, to, 1)).unwrap();
        assert_eq!(home.fails("base", &["relay", &file]), (2, code.to_owned()), "{from}");
    }
    std::fs::write(home.path("relay.toml"), good.replace(&host(3), "192.0.2.1")).unwrap();
    assert_eq!(home.fails("base", &["relay", &file]), (1, "SL-LINK-05".to_owned()));
}
