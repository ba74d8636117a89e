//! Where frames leave: each to a neighbour, in parts where its link is too narrow.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sealane_frame::Fragment;

use crate::capture::Tap;
use crate::counters::{Reason, Tally};
use crate::limits::MAX_SEND_WAIT_MS;
use crate::link::{Link, Ready};
use crate::table::Neighbour;

/// The links as one thread sends over them. It allocates only to send a frame in parts, until its
/// buffer is warm.
#[derive(Debug)]
pub(crate) struct Outlet {
    links: Arc<[Link]>,
    tap: Arc<Tap>,
    /// What this thread has done since it was counted.
    pub(crate) tally: Tally,
    fragments: Vec<u8>,
    /// The id of the next frame that is sent in parts.
    fragment_id: u16,
}

impl Outlet {
    pub(crate) fn new(links: Arc<[Link]>, tap: Arc<Tap>, fragment_id: u16) -> Self {
        Self { links, tap, tally: Tally::default(), fragments: Vec::new(), fragment_id }
    }

    /// Sends units of one length, of which the last may be shorter, to a neighbour; frames that are
    /// longer than its link carries at once go in parts. What cannot be sent is counted.
    pub(crate) fn send(&mut self, to: &Neighbour, units: &[u8], unit_bytes: usize) {
        let links = Arc::clone(&self.links);
        let Some(link) = links.get(to.link) else { return };
        if unit_bytes <= link.unit_bytes() || units.len() <= link.unit_bytes() {
            return self.put(link, to, units, unit_bytes);
        }
        for frame in units.chunks(unit_bytes) {
            let mut fragments = std::mem::take(&mut self.fragments);
            fragments.clear();
            self.fragment_id = self.fragment_id.wrapping_add(1);
            match Fragment::split(frame, self.fragment_id, link.unit_bytes()) {
                Ok(parts) => {
                    parts.for_each(|part| part.write(&mut fragments));
                    self.put(link, to, &fragments, link.unit_bytes());
                }
                // The last unit may be the one that fits.
                Err(_) if frame.len() <= link.unit_bytes() => self.put(link, to, frame, unit_bytes),
                Err(_) => self.tally.drop(Reason::Fragment, 1),
            }
            self.fragments = fragments;
        }
    }

    /// Gives units to a link, and waits a little where it is full.
    fn put(&mut self, link: &Link, to: &Neighbour, units: &[u8], unit_bytes: usize) {
        let count = units.len().div_ceil(unit_bytes.max(1));
        let mut sent = link.send(to.address, units, unit_bytes);
        if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            let _ = link.wait(Ready::ToSend, Duration::from_millis(MAX_SEND_WAIT_MS));
            sent = link.send(to.address, units, unit_bytes);
        }
        match sent {
            Ok(()) => {
                self.tally.sent.add(count, units.len());
                to.traffic.went(count, units.len());
                if let Some(capture) = self.tap.get() {
                    capture.went(to.link, to.address, units, unit_bytes);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.tally.drop(Reason::LinkFull, count as u64);
                to.traffic.stayed(count);
            }
            // The kernel may have stopped to split buffers for this link: one by one, then.
            Err(_) if count > 1 => {
                units.chunks(unit_bytes).for_each(|unit| self.put(link, to, unit, unit_bytes));
            }
            Err(_) => {
                self.tally.drop(Reason::LinkFault, 1);
                to.traffic.stayed(1);
            }
        }
    }
}
