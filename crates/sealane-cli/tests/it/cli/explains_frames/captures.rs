//! Captures made by hand, byte by byte.

/// An Ethernet frame with IPv4 and UDP around a payload.
pub(crate) fn ethernet_ipv4(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xee; 12];
    bytes.extend([0x08, 0x00]);
    bytes.extend(ipv4(payload));
    bytes
}

pub(crate) fn ipv4(payload: &[u8]) -> Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(udp(payload));
    bytes
}

pub(crate) fn ipv6(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((16 + payload.len() as u16).to_be_bytes());
    // Options by hop, eight bytes, before UDP.
    bytes.extend([0, 64]);
    bytes.extend([0xfd; 32]);
    bytes.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend(udp(payload));
    bytes
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    for number in [5001, 5002, (8 + payload.len()) as u16, 0] {
        bytes.extend(u16::to_be_bytes(number));
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// A classic capture, of which every number is written by `u32`.
pub(crate) fn pcap(link_type: u32, packets: &[Vec<u8>], u32: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let mut bytes = u32(0xa1b2_c3d4).to_vec();
    let version = if u32(1)[0] == 1 { [2, 0, 4, 0] } else { [0, 2, 0, 4] };
    bytes.extend(version);
    for number in [0, 0, 262_144, link_type] {
        bytes.extend(u32(number));
    }
    for packet in packets {
        for number in [1_700_000_000, 250_000, packet.len() as u32, packet.len() as u32] {
            bytes.extend(u32(number));
        }
        bytes.extend(packet);
    }
    bytes
}

/// A capture of blocks: a section, an interface with nanoseconds, packets of two sorts.
pub(crate) fn pcapng(link_type: u16, packets: &[Vec<u8>]) -> Vec<u8> {
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut bytes = block(0x0a0d_0d0a, &section);
    let mut interface = link_type.to_le_bytes().to_vec();
    interface.extend([0, 0, 0, 0, 4, 0]);
    interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(block(1, &interface));
    bytes.extend(block(5, &[0; 12]));
    for (index, packet) in packets.iter().enumerate() {
        let len = (packet.len() as u32).to_le_bytes();
        let time = 1_700_000_000_250_000_000_u64;
        let mut body = vec![];
        if index % 2 == 0 {
            body.extend(0_u32.to_le_bytes());
            body.extend(((time >> 32) as u32).to_le_bytes());
            body.extend((time as u32).to_le_bytes());
            body.extend(len);
        }
        body.extend(len);
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend(block(if index % 2 == 0 { 6 } else { 3 }, &body));
    }
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &len, body, &len].concat()
}
