//! The links as the machine sends over them: units of its own, and the frames that it carries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sealane_mesh::MeshTime;

use super::frames::is_full;
use super::load::RadioLoad;
use crate::LinkConfig;
use crate::address::LinkAddress;
use crate::capture::CaptureTap;
use crate::counters::{DropReason, FrameTally};
use crate::limits::MAX_SEND_WAIT_MS;
use crate::link::{LinkReady, RelayLink, SentBytes};
use crate::outlet::LinkOutlet;
use crate::relay::RelayShared;
use crate::table::RelayTable;

/// The links, and how busy the channels of radios are.
pub(super) struct RoutingLinks {
    links: Arc<[RelayLink]>,
    configs: Vec<LinkConfig>,
    tap: Arc<CaptureTap>,
    outlet: LinkOutlet,
    /// How busy the channels of radios are, by link.
    loads: BTreeMap<usize, RadioLoad>,
    /// The buffer of a unit with its length.
    unit: Vec<u8>,
}

impl RoutingLinks {
    pub(super) fn new(
        shared: &RelayShared,
        links: &Arc<[RelayLink]>,
        configs: &[LinkConfig],
    ) -> Self {
        let tap = Arc::clone(&shared.tap);
        let now = MeshTime(shared.now_us());
        let radios = configs.iter().enumerate().filter(|(_, config)| config.is_radio());
        let load = |config: &LinkConfig| config.mesh_medium().map(|of| RadioLoad::new(of, now));
        Self {
            loads: radios.filter_map(|(link, config)| Some((link, load(config)?))).collect(),
            outlet: LinkOutlet::new(Arc::clone(links), Arc::clone(&tap), FRAGMENTS),
            links: Arc::clone(links),
            configs: configs.to_vec(),
            tap,
            unit: vec![],
        }
    }

    pub(super) fn configs(&self) -> &[LinkConfig] {
        &self.configs
    }

    /// The work of this thread since it was counted.
    pub(super) fn tally(&mut self) -> &mut FrameTally {
        &mut self.outlet.tally
    }

    pub(super) fn is_radio(&self, link: usize) -> bool {
        self.configs.get(link).is_some_and(LinkConfig::is_radio)
    }

    /// Counts a unit that a radio has sent or heard. Wires are never busy.
    pub(super) fn note_load(&mut self, link: usize, unit_bytes: usize) {
        if let Some(load) = self.loads.get_mut(&link) {
            load.note(unit_bytes);
        }
    }

    /// Once a second, how busy the channel of each radio was, in millionths.
    pub(super) fn loads(&mut self, now: MeshTime) -> impl Iterator<Item = (usize, u32)> {
        self.loads.iter_mut().filter_map(move |(link, load)| Some((*link, load.take(now)?)))
    }

    /// Sends a unit to an address on a link, or to everybody on it.
    pub(super) fn send(&mut self, link: usize, to: Option<LinkAddress>, unit: &[u8]) {
        let Some(config) = self.configs.get(link) else { return };
        let mut whole = std::mem::take(&mut self.unit);
        whole.clear();
        if config.length_bytes() > 0 {
            // A card pads short units with zeros, and a radio's unit does not tell its own length.
            whole.extend((unit.len() as u16).to_le_bytes());
        }
        whole.extend_from_slice(unit);
        // Only a unit that left counts as air time. One that the link refused occupied no channel.
        if self.put(link, to, &whole) {
            self.note_load(link, unit.len());
        }
        self.unit = whole;
    }

    /// Sends a frame to everybody on all wires.
    pub(super) fn send_on_wires(&mut self, table: &RelayTable, frame: &[u8]) {
        for to in table.neighbours().iter().filter(|one| !one.is_radio) {
            self.outlet.tally.forwarded.add(1, frame.len());
            self.outlet.send(to, frame, frame.len());
        }
    }

    /// Gives a unit to a link, and waits a little where it is full. Whether it was sent.
    fn put(&mut self, index: usize, to: Option<LinkAddress>, unit: &[u8]) -> bool {
        let links = Arc::clone(&self.links);
        let Some(link) = links.get(index) else { return false };
        let give = || match to {
            Some(to) => link.send(to, unit, unit.len()),
            None => link.send_all(unit),
        };
        let mut sent = give();
        // One short wait bridges a burst. A longer one would stop all interfaces, since one thread
        // serves them.
        if sent.stopped.as_ref().is_some_and(is_full) {
            let _ = link.wait(LinkReady::ToSend, Duration::from_millis(MAX_SEND_WAIT_MS));
            sent = give();
        }
        let SentBytes { stopped, .. } = sent;
        let is_sent = stopped.is_none();
        match stopped {
            None => {
                self.outlet.tally.sent.add(1, unit.len());
                if let Some(capture) = self.tap.get() {
                    let to = to.unwrap_or_else(|| link.everybody());
                    capture.went(index, to, unit, unit.len());
                }
            }
            Some(error) if is_full(&error) => self.outlet.tally.drop(DropReason::LinkFull, 1),
            Some(_) => self.outlet.tally.drop(DropReason::LinkFault, 1),
        }
        is_sent
    }
}

/// Where the ids of fragments begin: between those of the threads of links.
const FRAGMENTS: u16 = 0x0c00;
