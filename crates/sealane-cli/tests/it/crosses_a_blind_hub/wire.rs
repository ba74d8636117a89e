//! The streams of recorded TCP connections, put together again.

use std::collections::{BTreeMap, HashMap};

/// The recorded traffic.
pub(crate) struct Recording {
    pub(crate) packets: Vec<Vec<u8>>,
    /// The bytes that each direction of each connection carried.
    pub(crate) streams: Vec<Vec<u8>>,
}

impl Recording {
    pub(crate) fn of(packets: Vec<Vec<u8>>) -> Recording {
        let streams = streams(&packets);
        Recording { packets, streams }
    }

    /// Each stretch of bytes to be looked at; what browsers and clients mask is unmasked too.
    pub(crate) fn stretches(&self) -> Vec<Vec<u8>> {
        let unmasked = self.streams.iter().map(|stream| unmask(stream));
        self.packets.iter().cloned().chain(self.streams.iter().cloned()).chain(unmasked).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.streams.iter().map(Vec::len).sum()
    }
}

/// Addresses and ports of one direction of a connection.
type Flow = [u8; 12];

/// A segment: its flow, sequence number, whether it begins the flow, and what it carries.
fn segment(packet: &[u8]) -> Option<(Flow, u32, bool, &[u8])> {
    let ip = packet.get(14..)?;
    let is_tcp = packet[12..14] == [8, 0] && ip.first()? >> 4 == 4 && ip.get(9) == Some(&6);
    let tcp = ip.get(usize::from(ip.first()? & 15) * 4..).filter(|_| is_tcp)?;
    let mut flow = [0; 12];
    flow[..8].copy_from_slice(ip.get(12..20)?);
    flow[8..].copy_from_slice(tcp.get(..4)?);
    let sequence = u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?);
    let whole = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    // The kernel leaves the length out of what is longer than it can say.
    let end = if whole == 0 { ip.len() } else { whole.min(ip.len()) };
    let start = ip.len() - tcp.len() + usize::from(tcp.get(12)? >> 4) * 4;
    Some((flow, sequence, tcp.get(13)? & 2 != 0, ip.get(start..end)?))
}

/// The bytes that each flow carried, in order; repeats are left out. A flow that is used again is
/// another.
fn streams(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut open, mut done) = (HashMap::<Flow, (u32, BTreeMap<u32, &[u8]>)>::new(), Vec::new());
    for (flow, sequence, begins, payload) in packets.iter().filter_map(|packet| segment(packet)) {
        if begins {
            let parts = (sequence.wrapping_add(1), BTreeMap::new());
            let before = open.insert(flow, parts).filter(|(first, _)| *first != sequence + 1);
            done.extend(before.map(|(_, parts)| join(&parts)));
        } else if let Some((first, parts)) = open.get_mut(&flow) {
            let place = parts.entry(sequence.wrapping_sub(*first)).or_default();
            if place.len() < payload.len() {
                *place = payload;
            }
        }
    }
    done.extend(open.values().map(|(_, parts)| join(parts)));
    done.retain(|stream| !stream.is_empty());
    done
}

fn join(parts: &BTreeMap<u32, &[u8]>) -> Vec<u8> {
    let mut stream: Vec<u8> = Vec::new();
    for (&at, part) in parts {
        let known = stream.len().saturating_sub(at as usize);
        if known <= part.len() {
            stream.extend_from_slice(&part[known..]);
        }
    }
    stream
}

/// The payloads of masked WebSocket frames (RFC 6455 §5.2) behind the upgrade, or nothing.
fn unmask(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let end = stream.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(mut rest) = end.and_then(|end| stream.get(end + 4..)) else { return out };
    while let [_, second, ..] = rest
        && second & 0x80 != 0
    {
        let (length_bytes, short) = match second & 0x7f {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, usize::from(short)),
        };
        let Some(length) = rest.get(2..2 + length_bytes) else { break };
        let length = length.iter().fold(short, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(mask) = rest.get(2 + length_bytes..6 + length_bytes) else { break };
        let Some(payload) = rest.get(6 + length_bytes..6 + length_bytes + length) else { break };
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        rest = &rest[6 + length_bytes + length..];
    }
    out
}

#[test]
fn masked_frames_are_read() {
    let masked: Vec<u8> = b"a secret"
        .iter()
        .zip([1, 2, 3, 4].iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    let head = b"GET / HTTP/1.1\r\n\r\n\x82\x88\x01\x02\x03\x04";
    let stream = [&head[..], &masked, b"\x82\x88\x01\x02\x03\x04", &masked].concat();
    assert_eq!(unmask(&stream), b"a secreta secret");
}
