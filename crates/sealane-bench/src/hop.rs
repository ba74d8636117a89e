//! A bare chain: machines that do for packets what relays and ends do, over the same links with the
//! same offloads, but check nothing and seal nothing. It is what sealed chains are measured beside.

mod end;
mod forward;

use std::io;
use std::time::Duration;

pub(crate) use end::{HopEnd, end};
pub(crate) use forward::{HopForward, forward};
use sealane_frame::RELAY_BYTES;
use sealane_link::{LinkAddress, LinkConfig, LinkReady, LinkWire, RelayLink, SentBytes};

/// How long a link is waited for, and then again.
const TURN: Duration = Duration::from_millis(100);
/// How long a link that is full is waited for, as a relay does.
const FULL: Duration = Duration::from_millis(sealane_link::limits::MAX_SEND_WAIT_MS);

/// A link as it is named on the command line: an address of UDP, or an interface.
pub(crate) fn link(text: &str, mtu: u16) -> LinkConfig {
    let udp = text.parse().map(LinkWire::Udp);
    let wire = udp.unwrap_or_else(|_| LinkWire::Ethernet(text.to_owned()));
    LinkConfig::new(text, wire, mtu)
}

/// Writes the bytes that a relay writes, and nothing else.
fn rewrite(frame: &mut [u8]) {
    if let Some(hops) = frame.get_mut(..RELAY_BYTES) {
        let limit = hops.last().copied().unwrap_or(0).wrapping_sub(1);
        hops.copy_from_slice(&[0xb1; RELAY_BYTES]);
        hops.iter_mut().rev().take(1).for_each(|last| *last = limit);
    }
}

/// Sends a batch, and waits once where the link is full. What does not go is lost.
fn send(link: &RelayLink, to: LinkAddress, segments: &[u8], segment_bytes: usize) {
    let SentBytes { bytes, stopped } = link.send(to, segments, segment_bytes);
    if stopped.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
        let _ = link.wait(LinkReady::ToSend, FULL);
        let rest = segments.get(bytes..).unwrap_or_default();
        let _lost = link.send(to, rest, segment_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seventeen_bytes_are_rewritten() {
        let mut frame = [7; 40];
        rewrite(&mut frame);
        assert_eq!(frame[..16], [0xb1; 16]);
        assert_eq!((frame[16], &frame[17..]), (6, &[7; 23][..]));
        rewrite(&mut [1; 3]);
    }

    #[test]
    fn a_link_is_an_address_or_an_interface() {
        let wire = |text| link(text, 1500).wire;
        assert_eq!(wire("10.0.0.1:9190"), LinkWire::Udp("10.0.0.1:9190".parse().unwrap()));
        assert_eq!(wire("wire1"), LinkWire::Ethernet("wire1".to_owned()));
    }
}
