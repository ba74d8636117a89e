//! A packet of segments that the kernel gives comes apart and together again, and nothing else
//! does.

use super::*;
use crate::bundle::SegmentBundle;
use crate::burst::PacketBurst;

const V4: [u8; 20] = [0x45, 0, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 0, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
const PORTS: [u8; 4] = [0x1b, 0x58, 0x30, 0x39];
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

fn ip(is_v6: bool, transport: OffloadTransport) -> Vec<u8> {
    if !is_v6 {
        let mut header = V4.to_vec();
        header[9] = transport.number();
        return header;
    }
    let mut header = vec![0x60, 0x0f, 0, 1, 0, 0, transport.number(), 64];
    header.extend((0..32).map(|byte| if byte % 16 == 15 { byte } else { 0xfd }));
    header
}

/// Headers of a connection, and a payload, as the kernel gives what it has not cut.
fn packet(is_v6: bool, transport: OffloadTransport, payload_bytes: usize, flags: u8) -> Vec<u8> {
    let mut packet = ip(is_v6, transport);
    packet.extend(PORTS);
    match transport {
        OffloadTransport::Tcp => {
            // Numbers that wrap, and options of 12 bytes.
            packet.extend(0xffff_fc00_u32.to_be_bytes());
            packet.extend([0, 0, 0, 9, 0x80, flags, 0x01, 0xf6, 0, 0, 0, 0]);
            packet.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
        OffloadTransport::Udp => packet.extend([0; 4]),
    }
    packet.extend((0..payload_bytes).map(|at| (at * 7 % 251) as u8));
    packet
}

fn headers(is_v6: bool, transport: OffloadTransport) -> usize {
    packet(is_v6, transport, 0, 0).len()
}

/// The kernel's mark.
fn mark(kind: u8, numbers: [usize; 4]) -> Vec<u8> {
    let numbers = numbers.into_iter().flat_map(|number| (number as u16).to_ne_bytes());
    [u8::from(kind != 0), kind].into_iter().chain(numbers).collect()
}

fn burst(mark: &[u8], packet: &[u8]) -> PacketBurst {
    let mut burst = PacketBurst::new();
    let bytes = [mark, packet].concat();
    burst.room_with_mark()[..bytes.len()].copy_from_slice(&bytes);
    burst.filled_with_mark(bytes.len());
    burst
}

/// A run of segments of so many bytes.
fn run(
    is_v6: bool,
    transport: OffloadTransport,
    segment_bytes: usize,
    packet: &[u8],
) -> PacketBurst {
    let ip = PacketIp::of(packet).unwrap();
    let at = ip.header_bytes();
    let numbers = [headers(is_v6, transport), segment_bytes, at, transport.checksum_at()];
    burst(&mark(transport.mark(ip), numbers), packet)
}

fn packets(burst: &PacketBurst) -> Vec<Vec<u8>> {
    let write = |index: usize| {
        let mut packet = vec![0xee; burst.bytes_of(index)];
        burst.write(index, &mut packet);
        packet
    };
    (0..burst.count()).map(write).collect()
}

/// Whether both checksums of a packet are right.
fn sums(packet: &[u8], transport: OffloadTransport) -> bool {
    let ip = PacketIp::of(packet).unwrap();
    let at = ip.header_bytes();
    let before = pseudo_header(ip, transport, packet, packet.len() - at);
    let is_v4 = matches!(ip, PacketIp::V4 { .. });
    checksum(&packet[at..], before) == 0xffff && (!is_v4 || checksum(&packet[..at], 0) == 0xffff)
}

const KINDS: [(bool, OffloadTransport); 4] = [
    (false, OffloadTransport::Tcp),
    (true, OffloadTransport::Tcp),
    (false, OffloadTransport::Udp),
    (true, OffloadTransport::Udp),
];

#[test]
fn a_run_comes_apart_into_packets_that_say_what_they_are() {
    for (is_v6, transport) in KINDS {
        for (payload_bytes, segment_bytes) in [(1, 1000), (4000, 1000), (4001, 1000), (60, 1)] {
            let whole = packet(is_v6, transport, payload_bytes, ACK | PUSH | 0x80 | 0x01);
            let headers = headers(is_v6, transport);
            let packets = packets(&run(is_v6, transport, segment_bytes, &whole));
            assert_eq!(packets.len(), payload_bytes.div_ceil(segment_bytes));
            let payload: Vec<u8> =
                packets.iter().flat_map(|packet| packet[headers..].to_vec()).collect();
            assert_eq!(payload, whole[headers..]);
            for (index, packet) in packets.iter().enumerate() {
                assert!(sums(packet, transport), "{transport:?} {index}");
                let at = PacketIp::of(packet).unwrap().header_bytes();
                if is_v6 {
                    assert_eq!(u16_at(packet, 4), Some(packet.len() as u16 - 40));
                } else {
                    assert_eq!(u16_at(packet, 2), Some(packet.len() as u16));
                    assert_eq!(u16_at(packet, 4), Some(0xfffe_u16.wrapping_add(index as u16)));
                }
                if transport == OffloadTransport::Udp {
                    assert_eq!(u16_at(packet, at + 4), Some((packet.len() - at) as u16));
                    continue;
                }
                let step = (index * segment_bytes) as u32;
                assert_eq!(u32_at(packet, at + 4), Some(0xffff_fc00_u32.wrapping_add(step)));
                let first = if index == 0 { 0x80 } else { 0 };
                let last = if index + 1 == packets.len() { PUSH | 0x01 } else { 0 };
                assert_eq!(packet[at + 13], ACK | first | last, "{index}");
            }
        }
    }
}

#[test]
fn what_came_apart_comes_together_as_it_was() {
    for (is_v6, transport) in KINDS {
        for payload_bytes in [1500, 3000, 9999] {
            let whole = packet(is_v6, transport, payload_bytes, ACK | PUSH);
            let apart = packets(&run(is_v6, transport, 1000, &whole));
            let mut bundle = SegmentBundle::new(true);
            assert!(apart.iter().all(|packet| bundle.push(packet)), "{transport:?}");
            let joined = bundle.take().to_vec();
            assert!(bundle.is_empty());
            assert_eq!(joined.len(), MARK_BYTES + whole.len());
            let (mark, packet) = joined.split_at(MARK_BYTES);
            assert_eq!(packets(&burst(mark, packet)), apart, "{transport:?}");
        }
    }
}

#[test]
fn a_packet_alone_goes_as_it_came() {
    for (is_v6, transport) in KINDS {
        let apart = packets(&run(is_v6, transport, 1000, &packet(is_v6, transport, 700, ACK)));
        let mut bundle = SegmentBundle::new(true);
        assert!(bundle.push(&apart[0]));
        assert_eq!(bundle.take(), [&[0; MARK_BYTES][..], &apart[0]].concat());
        let odd = [0x45_u8; 3];
        assert!(bundle.push(&odd));
        assert!(!bundle.push(&odd));
        assert_eq!(bundle.take(), [&[0; MARK_BYTES][..], &odd].concat());
    }
}

/// A change of any byte but those that the kernel makes anew, with checksums that are right again.
#[test]
fn only_the_next_segment_of_the_same_connection_goes_along() {
    for (is_v6, transport) in KINDS {
        let apart = packets(&run(is_v6, transport, 1000, &packet(is_v6, transport, 2500, ACK)));
        let joins = |second: &[u8]| {
            let mut bundle = SegmentBundle::new(true);
            assert!(bundle.push(&apart[0]));
            bundle.push(second)
        };
        assert!(joins(&apart[1]));
        assert!(!joins(&apart[0]) || transport == OffloadTransport::Udp);
        assert!(!joins(&apart[2]) || transport == OffloadTransport::Udp, "a gap");
        let at = PacketIp::of(&apart[1]).unwrap().header_bytes();
        for changed in 0..headers(is_v6, transport) {
            let mut second = apart[1].clone();
            second[changed] ^= 1;
            assert!(!joins(&second), "{transport:?} {changed}: wrong checksum");
            let is_free = match transport {
                // PUSH is another bit; the id of packets that are not to be split says nothing.
                _ if !is_v6 && (4..6).contains(&changed) => true,
                _ if !is_v6 && (10..12).contains(&changed) => true,
                OffloadTransport::Tcp => (at + 16..at + 18).contains(&changed),
                OffloadTransport::Udp => (at + 6..at + 8).contains(&changed),
            };
            repair(&mut second, transport);
            assert_eq!(joins(&second), is_free, "{transport:?} {changed}");
        }
        let mut wrong = apart[1].clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert!(!joins(&wrong), "a payload that its checksum does not fit");
    }
    let datagrams = packets(&run(
        false,
        OffloadTransport::Udp,
        9,
        &packet(false, OffloadTransport::Udp, 20, 0),
    ));
    let mut bundle = SegmentBundle::new(false);
    assert!(bundle.push(&datagrams[0]) && !bundle.push(&datagrams[1]), "no such offload");
}

/// Makes the checksums right, if it is still such a packet.
fn repair(packet: &mut [u8], transport: OffloadTransport) {
    let Some(ip) = PacketIp::of(packet) else { return };
    let at = ip.header_bytes();
    if matches!(ip, PacketIp::V4 { .. }) {
        put_u16(packet, 10, 0);
        let sum = !checksum(&packet[..at], 0);
        put_u16(packet, 10, sum);
    }
    let field = at + transport.checksum_at();
    put_u16(packet, field, 0);
    let before = pseudo_header(ip, transport, packet, packet.len() - at);
    let sum = !checksum(&packet[at..], before);
    put_u16(packet, field, sum);
}

#[test]
fn nothing_follows_a_segment_that_was_shorter_or_pushed() {
    let apart = packets(&run(
        false,
        OffloadTransport::Tcp,
        1000,
        &packet(false, OffloadTransport::Tcp, 2500, ACK),
    ));
    let mut bundle = SegmentBundle::new(true);
    let mut pushed = apart[1].clone();
    pushed[20 + 13] |= PUSH;
    repair(&mut pushed, OffloadTransport::Tcp);
    assert!(bundle.push(&apart[0]) && bundle.push(&pushed) && !bundle.push(&apart[2]));
    let joined = bundle.take();
    assert_eq!(joined[MARK_BYTES + 20 + 13], ACK | PUSH);
    // And no packet becomes longer than one can be.
    let long = packet(false, OffloadTransport::Tcp, 65_000, ACK);
    let apart = packets(&run(false, OffloadTransport::Tcp, 1300, &long));
    assert_eq!(apart.len(), 50);
    let mut bundle = SegmentBundle::new(true);
    assert!(apart.iter().all(|packet| bundle.push(packet)));
    let next = packets(&run(
        false,
        OffloadTransport::Tcp,
        1300,
        &packet(false, OffloadTransport::Tcp, 1300, ACK),
    ));
    let mut next = next[0].clone();
    let sequence = 0xffff_fc00_u32.wrapping_add(65_000);
    copy_into(&mut next, 24, &sequence.to_be_bytes());
    repair(&mut next, OffloadTransport::Tcp);
    assert!(!bundle.push(&next));
}

#[test]
fn a_checksum_that_the_kernel_left_out_is_filled_in() {
    for (is_v6, transport) in KINDS {
        let mut whole = packet(is_v6, transport, 333, ACK);
        let ip = PacketIp::of(&whole).unwrap();
        let at = ip.header_bytes();
        repair(&mut whole, transport);
        let length = whole.len();
        let before = pseudo_header(ip, transport, &whole, length - at);
        put_u16(&mut whole, at + transport.checksum_at(), checksum(&[], before));
        let mut mark = mark(0, [0, 0, at, transport.checksum_at()]);
        mark[0] = 1;
        let out = packets(&burst(&mark, &whole));
        assert_eq!(out.len(), 1);
        assert!(sums(&out[0], transport), "{transport:?}");
    }
}

/// Whatever the mark and the packet say, packets come out that are no longer than what came, or
/// none.
#[test]
fn whatever_a_burst_says_of_itself_is_cut_within_its_bytes() {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as usize
    };
    for (is_v6, transport) in KINDS {
        let whole = packet(is_v6, transport, 300, ACK);
        let ip = PacketIp::of(&whole).unwrap();
        let right = mark(
            transport.mark(ip),
            [headers(is_v6, transport), 100, ip.header_bytes(), transport.checksum_at()],
        );
        for _ in 0..4000 {
            let (mut mark, mut packet) = (right.clone(), whole.clone());
            for _ in 0..random() % 3 {
                let at = random() % mark.len();
                mark[at] = random() as u8;
            }
            for _ in 0..random() % 3 {
                let at = random() % 60;
                packet[at] = random() as u8;
            }
            packet.truncate(random() % (2 * packet.len()));
            let burst = burst(&mark, &packet);
            let mut bundle = SegmentBundle::new(true);
            for out in packets(&burst) {
                assert!(out.len() <= packet.len());
                if !out.is_empty() && !bundle.push(&out) {
                    bundle.take();
                    assert!(bundle.push(&out));
                }
            }
        }
        assert_eq!(burst(&[], &[]).count(), 0);
        assert_eq!(burst(&right, &[]).count(), 0);
    }
}
