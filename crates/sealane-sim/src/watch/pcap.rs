//! Units as other programs read them: pcap with Ethernet, IPv4 and UDP (the draft
//! `draft-ietf-opsawg-pcap`).
//!
//! The headers are made up: machine 5 has the address 10.83.0.5, medium 2 the port 9192. A unit
//! that many hear stands there once, to the address of everybody.

use std::io::Write;

use super::FinishedTransmission;
use crate::SimError;
use crate::limits::MAX_SIM_CAPTURE_BYTES;

/// The port of `sealane relay`; each medium has the one that follows.
const PORT: u16 = 9190;
const UDP: u8 = 17;
const IPV4_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ETHERNET_BYTES: usize = 14;
/// 10.83.255.255.
const EVERYBODY: u16 = u16::MAX;

/// Writes a file until it is as long as it may be.
pub(super) struct SimPcapWriter<'w> {
    file: &'w mut dyn Write,
    bytes: u64,
    missed: u64,
    record: Vec<u8>,
}

impl<'w> SimPcapWriter<'w> {
    pub(super) fn new(file: &'w mut dyn Write) -> Self {
        Self { file, bytes: 0, missed: 0, record: vec![] }
    }

    /// Units that found no room.
    pub(super) fn missed(&self) -> u64 {
        self.missed
    }

    /// Little-endian, microseconds, Ethernet.
    pub(super) fn begin(&mut self) -> Result<(), SimError> {
        let mut header = vec![];
        header.extend(0xa1b2_c3d4_u32.to_le_bytes());
        header.extend([2, 0, 4, 0]);
        header.extend([0; 8]);
        header.extend((1_u32 << 18).to_le_bytes());
        header.extend(1_u32.to_le_bytes());
        self.bytes = header.len() as u64;
        self.file.write_all(&header).map_err(SimError::Output)
    }

    pub(super) fn unit(
        &mut self,
        sent: &FinishedTransmission,
        unit: &[u8],
    ) -> Result<(), SimError> {
        self.record.clear();
        let packet_bytes = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + unit.len();
        let at = sent.starts.0;
        let length = packet_bytes as u32;
        for number in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length] {
            self.record.extend(number.to_le_bytes());
        }
        let to = match *sent.heard.as_slice() {
            [one] => one as u16,
            _ => EVERYBODY,
        };
        let [from, to] = [sent.from as u16, to].map(u16::to_be_bytes);
        let ends = [&[10, 83], &from[..], &[10, 83], &to[..]].concat();
        let mac = |node: [u8; 2]| [&[2, 0, 0, 0][..], &node[..]].concat();
        self.record.extend(mac(to));
        self.record.extend(mac(from));
        self.record.extend([0x08, 0x00]);
        let ip_bytes = (packet_bytes - ETHERNET_BYTES) as u16;
        let [high, low] = ip_bytes.to_be_bytes();
        let head = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP];
        self.record.extend(head);
        self.record.extend(checksum(&head, &ends).to_be_bytes());
        self.record.extend(&ends);
        let port = PORT + sent.medium as u16;
        // A sum of 0 says that there is none.
        for number in [port, port, ip_bytes - IPV4_BYTES as u16, 0] {
            self.record.extend(number.to_be_bytes());
        }
        self.record.extend(unit);
        if self.bytes + self.record.len() as u64 > MAX_SIM_CAPTURE_BYTES {
            self.missed += 1;
            return Ok(());
        }
        self.bytes += self.record.len() as u64;
        self.file.write_all(&self.record).map_err(SimError::Output)
    }

    pub(super) fn finish(self) -> Result<(), SimError> {
        self.file.flush().map_err(SimError::Output)
    }
}

/// The checksum of an IPv4 header (RFC 1071), of which the field of the sum itself is left out.
fn checksum(head: &[u8], ends: &[u8]) -> u16 {
    let words = head.chunks(2).chain(ends.chunks(2));
    let sum: u32 = words
        .map(|pair| match *pair {
            [high, low] => u32::from(u16::from_be_bytes([high, low])),
            _ => 0,
        })
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimSpan, SimTime};

    #[test]
    fn a_record_is_as_a_reader_of_captures_expects() {
        let mut file = vec![];
        let sent = FinishedTransmission {
            from: 5,
            medium: 2,
            starts: SimTime(3_000_007),
            air: SimSpan(9),
            heard: vec![1, 2],
            ..FinishedTransmission::default()
        };
        let mut capture = SimPcapWriter::new(&mut file);
        capture.begin().unwrap();
        capture.unit(&sent, b"unit").unwrap();
        capture.finish().unwrap();
        let record = &file[24..];
        assert_eq!(record[..16], [3, 0, 0, 0, 7, 0, 0, 0, 46, 0, 0, 0, 46, 0, 0, 0]);
        let packet = &record[16..];
        assert_eq!((packet.len(), &packet[12..14]), (46, &[8, 0][..]));
        // The sum of a header with its checksum is all ones.
        let ip = &packet[14..34];
        assert_eq!(checksum(&ip[..10], &ip[10..]), 0);
        assert_eq!(ip[12..], [10, 83, 0, 5, 10, 83, 255, 255]);
        assert_eq!(packet[34..42], [35, 232, 35, 232, 0, 12, 0, 0]);
        assert_eq!(packet[42..], *b"unit");
    }
}
