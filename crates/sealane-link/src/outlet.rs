//! Where frames leave: each to a neighbour, in parts where its link is too narrow.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sealane_frame::{FRAGMENT_HEADER_BYTES, Fragment};

use crate::capture::CaptureTap;
use crate::counters::{DropReason, FrameTally};
use crate::limits::MAX_SEND_WAIT_MS;
use crate::link::{LinkReady, RelayLink, SentBytes};
use crate::table::RelayNeighbour;

/// The links as one thread sends over them. It allocates only to send a frame in parts, until its
/// buffer is warm.
#[derive(Debug)]
pub(crate) struct LinkOutlet {
    links: Arc<[RelayLink]>,
    tap: Arc<CaptureTap>,
    /// The work of this thread since it was counted.
    pub(crate) tally: FrameTally,
    fragments: Vec<u8>,
    /// The id of the next frame that is sent in parts.
    fragment_id: u16,
}

impl LinkOutlet {
    pub(crate) fn new(links: Arc<[RelayLink]>, tap: Arc<CaptureTap>, fragment_id: u16) -> Self {
        Self { links, tap, tally: FrameTally::default(), fragments: Vec::new(), fragment_id }
    }

    /// Sends units of one length, of which the last may be shorter, to a neighbour; frames that are
    /// longer than its wire takes at once go in parts. What cannot be sent is counted.
    pub(crate) fn send(&mut self, to: &RelayNeighbour, units: &[u8], unit_bytes: usize) {
        let links = Arc::clone(&self.links);
        let Some(link) = links.get(to.link) else { return };
        let most = to.traffic.width.of(link.unit_bytes());
        let mut rest = Some(units);
        // Most units fit, and go as one buffer. Only what is left goes one by one.
        if unit_bytes <= most || units.len() <= most {
            rest = self.put(link, to, units, unit_bytes);
        }
        // The last unit may be the one that fits.
        for frame in rest.unwrap_or_default().chunks(unit_bytes.max(1)) {
            // Each time that the wire is found to be narrower, it goes in shorter parts.
            while !self.one(link, to, frame) {}
        }
    }

    /// Sends one unit, whole or in parts; gives whether it was sent or counted.
    fn one(&mut self, link: &RelayLink, to: &RelayNeighbour, frame: &[u8]) -> bool {
        let most = to.traffic.width.of(link.unit_bytes());
        if frame.len() <= most {
            return self.put(link, to, frame, frame.len()).is_none();
        }
        // Ids only need to differ among the frames that a neighbour has not put together yet.
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.clear();
        // A frame that is split again gets a new id, or its parts would conflict with those already
        // sent.
        self.fragment_id = self.fragment_id.wrapping_add(1);
        let part_bytes = part_bytes(frame.len(), most, link.least_bytes());
        let is_done = match Fragment::split(frame, self.fragment_id, part_bytes) {
            Ok(parts) => {
                parts.for_each(|part| part.write(&mut fragments));
                let rest = self.put(link, to, &fragments, part_bytes).unwrap_or_default();
                rest.chunks(part_bytes).all(|part| self.put(link, to, part, part.len()).is_none())
            }
            Err(_) => {
                self.tally.drop(DropReason::Fragment, 1);
                true
            }
        };
        self.fragments = fragments;
        is_done
    }

    /// Gives units to a link, and waits a little where it is full. Gives back those that have to go
    /// one by one, or one that its wire turned out to be too narrow for. All else is sent or
    /// counted.
    fn put<'u>(
        &mut self,
        link: &RelayLink,
        to: &RelayNeighbour,
        units: &'u [u8],
        unit_bytes: usize,
    ) -> Option<&'u [u8]> {
        let unit_bytes = unit_bytes.max(1);
        let (mut rest, mut waited) = (units, false);
        loop {
            let SentBytes { bytes, stopped } = link.send(to.address, rest, unit_bytes);
            self.took(to, rest.get(..bytes).unwrap_or_default(), unit_bytes);
            rest = rest.get(bytes..).unwrap_or_default();
            // No error means that all is sent, and `None` says that nothing is left.
            let error = stopped?;
            let count = rest.len().div_ceil(unit_bytes).max(1);
            let is_full = error.kind() == io::ErrorKind::WouldBlock;
            // One wait for all units of a call. A link that takes nothing would else hold up the
            // frames to every other neighbour.
            if is_full && !waited {
                let _ = link.wait(LinkReady::ToSend, Duration::from_millis(MAX_SEND_WAIT_MS));
                waited = true;
            // A second wait would let one full link hold up frames for all others of this thread.
            } else if is_full {
                to.traffic.stayed(count);
                self.tally.drop(DropReason::LinkFull, count as u64);
                return None;
            } else if count > 1 {
                // The kernel may have stopped to split buffers for this link.
                return Some(rest);
            } else if is_too_long(&error) && to.traffic.width.narrow(rest.len()) {
                return Some(rest);
            } else {
                to.traffic.stayed(1);
                self.tally.drop(DropReason::LinkFault, 1);
                return None;
            }
        }
    }

    /// Notes units that a link has taken.
    fn took(&mut self, to: &RelayNeighbour, units: &[u8], unit_bytes: usize) {
        let count = units.len().div_ceil(unit_bytes);
        self.tally.sent.add(count, units.len());
        to.traffic.went(count, units.len());
        if let Some(capture) = self.tap.get() {
            capture.went(to.link, to.address, units, unit_bytes);
        }
    }
}

/// Whether a unit is longer than its wire, or the path behind it, takes at once.
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

/// The bytes of a fragment of a frame, its header included: as many as go at once, or a few less,
/// so that the last one is not so short that it comes with zeros behind it.
fn part_bytes(frame_bytes: usize, most: usize, least: usize) -> usize {
    // The receiver cannot tell a card's padding from the end of a frame. So no part may be short
    // enough for it.
    let last_bytes = |part_bytes: usize| {
        let stride = part_bytes.saturating_sub(FRAGMENT_HEADER_BYTES).max(1);
        frame_bytes.saturating_sub(1) % stride + 1 + FRAGMENT_HEADER_BYTES
    };
    let long_enough = |part_bytes: &usize| last_bytes(*part_bytes) >= least;
    // A few bytes less per part lengthen the last one.
    (most.saturating_sub(least)..=most).rev().find(long_enough).unwrap_or(most)
}
