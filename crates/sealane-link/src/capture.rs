//! The units of links, written to a file as other programs read it.
//!
//! The format is that of the draft `draft-ietf-opsawg-pcap`, with Ethernet as the link type. A
//! socket does not show the headers of its packets: they are made up again, with MAC addresses of
//! nobody around IP.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};

use crate::address::LinkAddress;
use crate::ethernet::ETHER_TYPE;
use crate::limits::{MAX_CAPTURE_BYTES, MAX_CAPTURE_WAIT_MS, MAX_CAPTURE_WAITING_BYTES};

/// The place where a capture may be. There is at most one, for as long as the relay runs.
#[derive(Debug, Default)]
pub(crate) struct CaptureTap(OnceLock<LinkCapture>);

/// How much was captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureTally {
    /// Units in the file, or on their way there.
    pub units: u64,
    /// Units that came too fast for the file, or when it was full or broken.
    pub missed: u64,
}

/// A capture. The threads of links put units into a buffer, and another thread writes it.
#[derive(Debug)]
pub(crate) struct LinkCapture {
    /// The own address on each link.
    links: Vec<LinkAddress>,
    shared: Arc<CaptureShared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct CaptureShared {
    waiting: Mutex<CaptureQueue>,
    wakes: Condvar,
}

#[derive(Debug, Default)]
struct CaptureQueue {
    records: Vec<u8>,
    /// Bytes of the file, those that wait included.
    file_bytes: u64,
    tally: CaptureTally,
    is_broken: bool,
    ends: bool,
}

/// The sender and the receiver of a unit.
#[derive(Debug, Clone, Copy)]
struct CaptureEnds {
    from: LinkAddress,
    to: LinkAddress,
}

impl CaptureTap {
    /// Begins to capture to a file, unless a capture runs already.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub(crate) fn open(
        &self,
        file: Box<dyn Write + Send>,
        links: Vec<LinkAddress>,
    ) -> io::Result<()> {
        let capture = LinkCapture::start(file, links)?;
        self.0.set(capture).map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// The capture, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&LinkCapture> {
        self.0.get()
    }

    pub(crate) fn tally(&self) -> Option<CaptureTally> {
        self.get().map(|capture| capture.shared.waiting.lock().tally)
    }

    /// Waits until all is written.
    pub(crate) fn finish(&self) {
        if let Some(capture) = self.get() {
            capture.finish();
        }
    }
}

impl LinkCapture {
    fn start(mut file: Box<dyn Write + Send>, links: Vec<LinkAddress>) -> io::Result<Self> {
        file.write_all(&file_header())?;
        let shared = Arc::new(CaptureShared::default());
        // The header counts against the file's bound before the first unit does.
        shared.waiting.lock().file_bytes = file_header().len() as u64;
        let of_writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("capture".to_owned());
        let writer = thread.spawn(move || of_writer.write(file))?;
        Ok(Self { links, shared, writer: Mutex::new(Some(writer)) })
    }

    /// Units of one length, of which the last may be shorter, that came on a link.
    pub(crate) fn came(&self, link: usize, from: LinkAddress, units: &[u8], unit_bytes: usize) {
        if let Some(&to) = self.links.get(link) {
            self.put(CaptureEnds { from, to }, units, unit_bytes);
        }
    }

    /// The same for units that leave.
    pub(crate) fn went(&self, link: usize, to: LinkAddress, units: &[u8], unit_bytes: usize) {
        if let Some(&from) = self.links.get(link) {
            self.put(CaptureEnds { from, to }, units, unit_bytes);
        }
    }

    /// Never waits for the file: what has no room is missed.
    fn put(&self, ends: CaptureEnds, units: &[u8], unit_bytes: usize) {
        // One time serves the batch, since its units came by one system call.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let waiting = &mut *self.shared.waiting.lock();
        for unit in units.chunks(unit_bytes.max(1)) {
            let (before, room) = (waiting.records.len(), MAX_CAPTURE_WAITING_BYTES);
            let bytes = HEADERS_BYTES_MAX + unit.len();
            let is_full = waiting.file_bytes + bytes as u64 > MAX_CAPTURE_BYTES;
            if waiting.is_broken || is_full || before + bytes > room {
                waiting.tally.missed += 1;
                continue;
            }
            record(&mut waiting.records, since, ends, unit);
            // The true length is counted, since the check above took the longest headers.
            waiting.file_bytes += (waiting.records.len() - before) as u64;
            waiting.tally.units += 1;
        }
    }

    fn finish(&self) {
        self.shared.waiting.lock().ends = true;
        self.shared.wakes.notify_one();
        if let Some(writer) = self.writer.lock().take() {
            // A thread that has panicked has said so on standard error.
            let _ = writer.join();
        }
    }
}

impl Drop for LinkCapture {
    fn drop(&mut self) {
        self.finish();
    }
}

impl CaptureShared {
    /// Writes what waits, until the end.
    fn write(&self, mut file: Box<dyn Write + Send>) {
        let mut records = Vec::new();
        loop {
            let ends = {
                let mut waiting = self.waiting.lock();
                if waiting.records.is_empty() && !waiting.ends {
                    self.wakes.wait_for(&mut waiting, Duration::from_millis(MAX_CAPTURE_WAIT_MS));
                }
                // The two buffers change places, so that links go on filling while the file is
                // written.
                std::mem::swap(&mut waiting.records, &mut records);
                waiting.ends
            };
            if !records.is_empty() && file.write_all(&records).and_then(|()| file.flush()).is_err()
            {
                self.waiting.lock().is_broken = true;
            }
            // The thread ends only after a turn with nothing to write, so that the last units reach
            // the file.
            if ends && records.is_empty() {
                return;
            }
            records.clear();
        }
    }
}

/// The headers before a unit: record, Ethernet, IPv6, UDP.
const HEADERS_BYTES_MAX: usize = 16 + ETHERNET.len() + 2 + 40 + UDP_BYTES;
/// Two addresses of nobody: the second bit says that they were made up here.
const ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;

/// Little-endian, microseconds, Ethernet.
fn file_header() -> [u8; 24] {
    const MARK: u32 = 0xa1b2_c3d4;
    const VERSION: [u8; 4] = [2, 0, 4, 0];
    const LONGEST: u32 = 1 << 18;
    const LINK_TYPE: u32 = 1;
    let mut header = [0; 24];
    let fields = [MARK.to_le_bytes(), VERSION, [0; 4], [0; 4], LONGEST.to_le_bytes()];
    let all = fields.into_iter().chain([LINK_TYPE.to_le_bytes()]).flatten();
    header.iter_mut().zip(all).for_each(|(byte, value)| *byte = value);
    header
}

/// Appends a unit with the headers that it had on the wire, as far as they can be told.
fn record(out: &mut Vec<u8>, since: Duration, ends: CaptureEnds, unit: &[u8]) {
    match (ends.from, ends.to) {
        (LinkAddress::Udp(from), LinkAddress::Udp(to)) => {
            datagram(out, since, CaptureSockets { from, to }, unit)
        }
        (from, to) => {
            head(out, since, ETHERNET.len() + 2 + unit.len());
            out.extend(mac(to));
            out.extend(mac(from));
            out.extend(ETHER_TYPE.to_be_bytes());
            out.extend(unit);
        }
    }
}

/// The address of a card; for a port of this process, one of nobody with its number.
fn mac(address: LinkAddress) -> [u8; 6] {
    match address {
        LinkAddress::Ethernet(mac) => mac,
        LinkAddress::Memory(port) => {
            let [a, b, c, d] = port.to_be_bytes();
            [2, 0, a, b, c, d]
        }
        LinkAddress::Udp(_) => [2, 0, 0, 0, 0, 1],
    }
}

/// Begins a record of so many bytes.
fn head(out: &mut Vec<u8>, since: Duration, packet_bytes: usize) {
    let bytes = packet_bytes as u32;
    for number in [since.as_secs() as u32, since.subsec_micros(), bytes, bytes] {
        out.extend(number.to_le_bytes());
    }
}

/// From which socket to which.
#[derive(Clone, Copy)]
struct CaptureSockets {
    from: SocketAddr,
    to: SocketAddr,
}

/// Appends a datagram.
fn datagram(out: &mut Vec<u8>, since: Duration, ends: CaptureSockets, unit: &[u8]) {
    let udp_bytes = UDP_BYTES + unit.len();
    let (ip_bytes, kind) = if ends.to.is_ipv4() { (20, 0x0800_u16) } else { (40, 0x86dd) };
    head(out, since, ETHERNET.len() + 2 + ip_bytes + udp_bytes);
    out.extend(ETHERNET);
    out.extend(kind.to_be_bytes());
    let length = u16::try_from(udp_bytes).unwrap_or(u16::MAX).to_be_bytes();
    let pseudo = match (ends.from.ip(), ends.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let addresses = [from.octets(), to.octets()].concat();
            ipv4(out, udp_bytes, &addresses);
            addresses
        }
        (from, to) => {
            let addresses = [v6(from), v6(to)].concat();
            out.extend([0x60, 0, 0, 0]);
            out.extend(length);
            out.extend([UDP, 64]);
            out.extend(&addresses);
            addresses
        }
    };
    let ports = [ends.from.port().to_be_bytes(), ends.to.port().to_be_bytes()].concat();
    let summed: [&[u8]; 6] = [&pseudo, &[0, UDP], &length, &ports, &length, unit];
    // A sum of 0 stands for none.
    let sum = Some(checksum(&summed)).filter(|sum| *sum != 0).unwrap_or(u16::MAX);
    out.extend(ports);
    out.extend(length);
    out.extend(sum.to_be_bytes());
    out.extend(unit);
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn ipv4(out: &mut Vec<u8>, udp_bytes: usize, addresses: &[u8]) {
    let [high, low] = u16::try_from(20 + udp_bytes).unwrap_or(u16::MAX).to_be_bytes();
    // Not to be fragmented, 64 hops.
    let before = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP];
    out.extend(before);
    out.extend(checksum(&[&before, addresses]).to_be_bytes());
    out.extend(addresses);
}

/// The checksum of RFC 1071 over parts of which all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2)).map(|word| match *word {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that others can read while it is written.
    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn address(text: &str) -> LinkAddress {
        text.parse().unwrap()
    }

    /// Whether a header and all that it sums up come to nothing, as they must.
    fn sums_to_nothing(parts: &[&[u8]]) -> bool {
        checksum(parts) == 0
    }

    #[test]
    fn a_capture_has_each_unit_with_headers_that_sum_up() {
        for (own, other, ip) in
            [("10.0.1.1:9190", "10.0.1.2:7", 20), ("[fd00::1]:9190", "[fd00::2]:7", 40)]
        {
            let file = Shown::default();
            let (tap, own, other) = (CaptureTap::default(), address(own), address(other));
            tap.open(Box::new(file.clone()), vec![own]).unwrap();
            tap.get().unwrap().came(0, other, b"abcdefgh!", 8);
            tap.get().unwrap().went(0, other, b"bye", 8);
            tap.get().unwrap().went(1, other, b"a link that is none", 8);
            tap.finish();
            assert_eq!(tap.tally(), Some(CaptureTally { units: 3, missed: 0 }));
            let bytes = file.0.lock().clone();
            let mut rest = &bytes[24..];
            for (unit, from, to) in
                [(&b"abcdefgh"[..], other, own), (b"!", other, own), (b"bye", own, other)]
            {
                let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
                let packet = &rest[16..16 + len];
                assert_eq!(&packet[packet.len() - unit.len()..], unit);
                let (header, udp) = packet[14..].split_at(ip);
                let addresses = &header[if ip == 20 { 12 } else { 8 }..];
                assert!(ip == 40 || sums_to_nothing(&[header]));
                let length = (udp.len() as u16).to_be_bytes();
                assert!(sums_to_nothing(&[addresses, &[0, UDP], &length, udp]));
                let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
                assert_eq!(
                    [from, to].map(|end| end.to_string().rsplit(':').next().unwrap().parse()),
                    [Ok(port(0)), Ok(port(2))]
                );
                rest = &rest[16 + len..];
            }
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_unit_of_ethernet_is_captured_as_the_card_carries_it() {
        let (file, tap) = (Shown::default(), CaptureTap::default());
        let [own, other] = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(address);
        tap.open(Box::new(file.clone()), vec![own]).unwrap();
        tap.get().unwrap().went(0, other, b"unit", 4);
        tap.finish();
        let bytes = file.0.lock().clone();
        let packet = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5unit";
        assert_eq!(&bytes[24 + 16..], packet);
        assert_eq!(bytes[24 + 8..24 + 12], [packet.len() as u8, 0, 0, 0]);
    }

    /// A file that takes nothing until it is let go.
    struct Stuck(Arc<Mutex<()>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > 24 {
                drop(self.0.lock());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody_and_memory_is_bounded() {
        let (gate, tap) = (Arc::new(Mutex::new(())), CaptureTap::default());
        let closed = gate.lock();
        let own = address("127.0.0.1:1");
        tap.open(Box::new(Stuck(Arc::clone(&gate))), vec![own]).unwrap();
        let unit = [7; 1400];
        let most = 2 * MAX_CAPTURE_WAITING_BYTES / unit.len();
        for _ in 0..2 * most {
            tap.get().unwrap().came(0, own, &unit, unit.len());
        }
        let tally = tap.tally().unwrap();
        assert!(tally.missed > 0 && tally.units <= most as u64, "{tally:?}");
        assert_eq!(tally.units + tally.missed, 2 * most as u64);
        let held = tap.get().unwrap().shared.waiting.lock().records.len();
        assert!(held <= MAX_CAPTURE_WAITING_BYTES);
        drop(closed);
        tap.finish();
    }

    /// A file on a disk that is full.
    struct Broken(bool);

    impl Write for Broken {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match std::mem::replace(&mut self.0, true) {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(bytes.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_missed() {
        let (tap, own) = (CaptureTap::default(), address("127.0.0.1:1"));
        tap.open(Box::new(Broken(false)), vec![own]).unwrap();
        let begun = std::time::Instant::now();
        while tap.tally().unwrap().missed == 0 {
            tap.get().unwrap().came(0, own, b"unit", 4);
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        assert!(tap.open(Box::new(io::sink()), vec![own]).is_err(), "there is one already");
    }
}
