use super::*;

const OWN: MacAddress = [2, 0, 0, 0, 0, 1];
const HOST: MacAddress = [2, 0, 0, 0, 0, 7];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn tap() -> TapSide {
    TapSide::new(OWN, vec![address("10.9.0.2"), address("fd00::2")], 0)
}

/// Addresses of 10.9.1.0/24 and fd01::/16 are behind other members.
fn is_beyond(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets().starts_with(&[10, 9, 1]),
        IpAddr::V6(address) => address.octets().starts_with(&[0xfd, 1]),
    }
}

fn frame(to: MacAddress, from: MacAddress, kind: u16, inside: &[u8]) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes(), inside].concat()
}

fn arp(operation: u8, sender: MacAddress, source: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    [&ARP_START[..], &[0, operation], &sender, &source, &[0; 6], &target].concat()
}

fn v4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&destination);
    packet
}

/// A message of neighbour discovery as another end would write it.
fn discovery(kind: u8, source: &str, target: &str) -> Vec<u8> {
    let octets = |text: &str| match address(text) {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(_) => panic!("{text}"),
    };
    let mut other = tap();
    let target = octets(target);
    let said = NeighbourSolicitation { kind, source: octets(source), destination: target, target };
    other.write_discovery(EVERYBODY, &said);
    other.frame[ETHERNET_BYTES..].to_vec()
}

#[test]
fn who_asks_for_an_address_beyond_is_told_that_of_this_end() {
    let mut tap = tap();
    let question = frame(EVERYBODY, HOST, ARP, &arp(1, HOST, [10, 9, 0, 7], [10, 9, 1, 1]));
    let TapFrame::Asked(answer) = tap.see(&question, 0, is_beyond) else { panic!("no answer") };
    let expected = [&ARP_START[..], &[0, 2], &BEYOND, &[10, 9, 1, 1], &HOST, &[10, 9, 0, 7]];
    assert_eq!(answer, frame(HOST, BEYOND, ARP, &expected.concat()));
    let ask = discovery(SOLICITATION, "fd00::7", "fd01::1");
    let question = frame(EVERYBODY, HOST, IPV6, &ask);
    let TapFrame::Asked(answer) = tap.see(&question, 0, is_beyond) else { panic!("no answer") };
    assert_eq!(answer[..14], frame(HOST, BEYOND, IPV6, &[])[..]);
    let told = &answer[14..];
    assert_eq!(advertised(told), Some(address("fd01::1")));
    assert_eq!(told[8..24], ask[48..64], "from the address that was asked for");
    assert_eq!(told[24..40], ask[8..24]);
    assert_eq!(told[44], SOLICITED_OVERRIDE);
    assert_eq!(told[64..], [[2, 1].as_slice(), &BEYOND].concat());
}

#[test]
fn nobody_else_is_answered_for_and_broadcasts_stay() {
    let mut tap = tap();
    let mut broken = discovery(SOLICITATION, "fd00::7", "fd01::1");
    broken[60] ^= 1;
    for (what, question) in [
        ("here", frame(EVERYBODY, HOST, ARP, &arp(1, HOST, [10, 9, 0, 7], [10, 9, 0, 8]))),
        ("own", frame(EVERYBODY, HOST, ARP, &arp(1, HOST, [10, 9, 1, 1], [10, 9, 1, 1]))),
        ("another", frame(EVERYBODY, HOST, ARP, &arp(1, OWN, [10, 9, 0, 7], [10, 9, 1, 1]))),
        ("answer", frame(EVERYBODY, HOST, ARP, &arp(2, HOST, [10, 9, 0, 7], [10, 9, 1, 1]))),
        ("short", frame(EVERYBODY, HOST, ARP, &arp(1, HOST, [10, 9, 0, 7], [10, 9, 1, 1])[..27])),
        ("here", frame(EVERYBODY, HOST, IPV6, &discovery(SOLICITATION, "fd00::7", "fd00::8"))),
        ("none", frame(EVERYBODY, HOST, IPV6, &discovery(SOLICITATION, "::", "fd01::1"))),
        ("sum", frame(EVERYBODY, HOST, IPV6, &broken)),
        ("advertised router", frame(EVERYBODY, HOST, IPV6, &discovery(134, "fd00::7", "fd01::1"))),
        ("to all", frame(EVERYBODY, HOST, IPV4, &v4([10, 9, 0, 7], [10, 9, 1, 1]))),
        ("to another", frame(OWN, HOST, IPV4, &v4([10, 9, 0, 7], [10, 9, 1, 1]))),
        ("from this end", frame(BEYOND, BEYOND, IPV4, &v4([10, 9, 0, 7], [10, 9, 1, 1]))),
        ("from a group", frame(BEYOND, EVERYBODY, IPV4, &v4([10, 9, 0, 7], [10, 9, 1, 1]))),
        ("no IP", frame(BEYOND, HOST, IPV4, &[0; 30])),
        ("spanning tree", frame(EVERYBODY, HOST, 38, &[0; 38])),
        ("nothing", vec![]),
    ] {
        assert_eq!(tap.see(&question, 0, is_beyond), TapFrame::Nothing, "{what}");
    }
    assert!(!tap.hosts.contains_key(&address("10.9.1.1")), "nobody here is beyond");
    let packet = frame(BEYOND, HOST, IPV4, &v4([10, 9, 0, 7], [10, 9, 1, 1]));
    assert_eq!(tap.see(&packet, 0, is_beyond), TapFrame::Packet);
}

#[test]
fn a_packet_comes_to_the_machine_that_has_its_address_or_it_is_asked_for() {
    let mut tap = tap();
    let packet = v4([10, 9, 1, 1], [10, 9, 0, 2]);
    assert_eq!(tap.dress(&packet, 0), TapDelivery::Frame(&frame(OWN, BEYOND, IPV4, &packet)));
    let packet = v4([10, 9, 1, 1], [10, 9, 0, 7]);
    let question = [&ARP_START[..], &[0, 1], &BEYOND, &[10, 9, 1, 1], &[0; 6], &[10, 9, 0, 7]];
    let question = frame(EVERYBODY, BEYOND, ARP, &question.concat());
    assert_eq!(tap.dress(&packet, 0), TapDelivery::Unknown(&question));
    let answer = frame(BEYOND, HOST, ARP, &arp(2, HOST, [10, 9, 0, 7], [10, 9, 1, 1]));
    assert_eq!(tap.see(&answer, 0, is_beyond), TapFrame::Nothing);
    assert_eq!(tap.dress(&packet, 0), TapDelivery::Frame(&frame(HOST, BEYOND, IPV4, &packet)));

    let mut packet = vec![0; 48];
    packet[0] = 0x60;
    packet[8..24].copy_from_slice(&discovery(SOLICITATION, "fd01::1", "fd01::1")[8..24]);
    packet[24..40].copy_from_slice(&discovery(SOLICITATION, "fd00::7", "fd01::1")[8..24]);
    let TapDelivery::Unknown(question) = tap.dress(&packet, 0) else { panic!("known") };
    assert_eq!(question[..6], [0x33, 0x33, 0xff, 0, 0, 7]);
    assert_eq!(solicited(&question[14..]).map(IpAddr::from), Some(address("fd00::7")));
    let answer = frame(BEYOND, HOST, IPV6, &discovery(ADVERTISEMENT, "fd00::7", "fd00::7"));
    assert_eq!(tap.see(&answer, 0, is_beyond), TapFrame::Nothing);
    assert_eq!(tap.dress(&packet, 0), TapDelivery::Frame(&frame(HOST, BEYOND, IPV6, &packet)));
    assert_eq!(tap.dress(&v4([10, 9, 1, 1], [224, 0, 0, 1]), 0), TapDelivery::Nothing);
    assert_eq!(tap.dress(&[1; 9], 0), TapDelivery::Nothing);
}

#[test]
fn a_storm_of_questions_is_answered_within_bounds() {
    let mut tap = tap();
    let mut answers = 0;
    for number in 0..1_000_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let host = [2, a, b, c, d, 9];
        let inside = arp(1, host, [11, b, c, d], [10, 9, 1, d]);
        let question = frame(EVERYBODY, host, ARP, &inside);
        answers += u32::from(matches!(tap.see(&question, 0, is_beyond), TapFrame::Asked(_)));
    }
    assert!(answers <= MAX_TAP_ANSWERS_PER_SECOND, "{answers}");
    assert!(answers > 0);
    assert_eq!(tap.hosts.len(), MAX_TAP_HOSTS);
    let question = frame(EVERYBODY, HOST, ARP, &arp(1, HOST, [10, 9, 0, 7], [10, 9, 1, 1]));
    assert_eq!(tap.see(&question, 0, is_beyond), TapFrame::Nothing);
    assert!(matches!(tap.see(&question, 1_000_000, is_beyond), TapFrame::Asked(_)));
}
