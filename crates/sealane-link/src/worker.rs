//! One thread of a relay: takes what comes on its link.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::counters::DropReason;
use crate::desk::{ForwardDesk, FrameOrigin};
use crate::inbox::{ArrivedBatch, LinkInbox};
use crate::limits::{LINK_TURN_MS, MAX_LAST_BATCHES};
use crate::link::{LinkReady, RelayLink};
use crate::note::LinkNote;
use crate::outlet::LinkOutlet;
use crate::quota::UnitQuota;
use crate::relay::RelayShared;
use crate::routing::UnitSource;
use crate::table::{NeighbourIndex, RelayNeighbour};

/// The state of a thread. It allocates when it starts and when a table is swapped.
#[derive(Debug)]
pub(crate) struct RelayWorker {
    shared: Arc<RelayShared>,
    links: Arc<[RelayLink]>,
    link: usize,
    desk: ForwardDesk,
    inbox: LinkInbox,
    /// The frames that each neighbour of the table may still send.
    quotas: Vec<UnitQuota>,
    version: u64,
}

impl RelayWorker {
    pub(crate) fn new(shared: Arc<RelayShared>, links: Arc<[RelayLink]>, link: usize) -> Self {
        // The version is read before the table. A swap in between only makes the thread look again.
        let version = shared.version();
        // Frames of different threads never share an id soon: each begins in a range of its own.
        let fragment_id = (link as u16) << 12;
        let outlet = LinkOutlet::new(Arc::clone(&links), Arc::clone(&shared.tap), fragment_id);
        let gate = shared.gate(link);
        let desk = ForwardDesk::new(Arc::clone(&shared), shared.table(), outlet, gate);
        Self { shared, links, link, desk, inbox: LinkInbox::new(), quotas: Vec::new(), version }
    }

    /// Takes what comes until the relay ends and nothing is left.
    pub(crate) fn run(mut self) {
        self.greet(&[]);
        let links = Arc::clone(&self.links);
        let Some(link) = links.get(self.link) else { return };
        // A sender that does not stop must not keep a relay from ending.
        let mut batches_left = MAX_LAST_BATCHES;
        while batches_left > 0 {
            // The table changes between batches only, so that one batch is decided by one table.
            if self.shared.version() != self.version {
                self.renew();
            }
            // The flag is read before the link is, so that units from before the end are never left
            // behind.
            let ends = self.shared.ends();
            match link.receive(&mut self.inbox) {
                Ok(count) => self.take(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if ends {
                        break;
                    }
                    let _ = link.wait(LinkReady::ToReceive, Duration::from_millis(LINK_TURN_MS));
                }
                // The interface may be gone, and come back under its name. Without the pause the
                // thread would ask the system as fast as it can.
                Err(error) => {
                    tracing::debug!(link = self.link, "nothing is received: {error}");
                    self.desk.outlet.tally.drop(DropReason::LinkFault, 1);
                    std::thread::sleep(Duration::from_millis(LINK_TURN_MS));
                }
            }
            // Threads count for themselves and add up once a batch: shared counters for each frame
            // would have the threads wait for one cache line.
            self.shared.counters.take(&mut self.desk.outlet.tally);
            // A neighbour that never stops sending cannot keep a relay from ending.
            batches_left -= u32::from(ends);
        }
    }

    /// Takes the first batches of the inbox.
    fn take(&mut self, count: usize) {
        let Self { shared, link, desk, inbox, quotas, .. } = self;
        let now_us = shared.now_us();
        for (ArrivedBatch { from, bytes, segment_bytes }, segments) in inbox.batches(count) {
            // A datagram of no bytes is one.
            let units = bytes.div_ceil(segment_bytes).max(1);
            desk.outlet.tally.received.add(units, bytes);
            if let Some(capture) = shared.tap.get() {
                capture.came(*link, from, segments, segment_bytes);
            }
            let by = desk.table.at(*link, from);
            let known = by.zip(by.and_then(|by| quotas.get_mut(usize::from(by))));
            // Every unit of a radio goes to the machine, which alone opens hop seals.
            let is_radio = desk.gate.as_ref().is_some_and(|gate| gate.is_radio);
            // Units of a radio are sealed for the hop, so that only the machine can tell what they
            // are.
            let Some((by, quota)) = known.filter(|_| !is_radio) else {
                desk.take_for_mesh(
                    UnitSource { by, address: from, now_us },
                    segments,
                    segment_bytes,
                );
                if let Some(neighbour) = by.and_then(|by| desk.table.neighbour(by)) {
                    neighbour.traffic.came(units, bytes, 0, now_us / 1000);
                }
                continue;
            };
            let dropped_before = desk.outlet.tally.dropped_in_all();
            // The quota counts before the frames are looked at, or a neighbour could have this
            // thread check garbage all day.
            let taken = quota.take(units, now_us);
            if taken < units {
                desk.outlet.tally.drop(DropReason::Quota, (units - taken) as u64);
            }
            if segments.is_empty() {
                desk.outlet.tally.drop(DropReason::Malformed, taken as u64);
            }
            let taken = segments.len().min(taken * segment_bytes);
            let segments = segments.get_mut(..taken).unwrap_or_default();
            desk.take(FrameOrigin { by, address: from, now_us }, segments, segment_bytes);
            let dropped = desk.outlet.tally.dropped_in_all() - dropped_before;
            if let Some(neighbour) = desk.table.neighbour(by) {
                neighbour.traffic.came(units, bytes, dropped, now_us / 1000);
            }
        }
        // One pause for each receive lets the end join segments of several batches.
        desk.pause();
    }

    /// Goes on with the newest table.
    #[cold]
    fn renew(&mut self) {
        self.version = self.shared.version();
        // The version was taken first. If another table follows at once, the next turn finds a
        // newer number.
        let before = std::mem::replace(&mut self.desk.table, self.shared.table());
        self.greet(before.neighbours());
    }

    /// Asks the neighbours of this link that are new for announcements, and gives them those that
    /// are held. Those that are new have their whole quota then.
    fn greet(&mut self, before: &[RelayNeighbour]) {
        let now_us = self.shared.now_us();
        let table = Arc::clone(&self.desk.table);
        let quotas = std::mem::take(&mut self.quotas);
        // A neighbour that stays keeps what is left of its quota: a reload would else refill it.
        let quota = |one: &RelayNeighbour| {
            let known = before.iter().position(|known| known == one);
            let known = known.and_then(|at| quotas.get(at)).copied();
            // Known neighbours keep what is left of theirs. A reload would otherwise be a way to
            // refill a quota.
            known.unwrap_or_else(|| UnitQuota::new(one.frames_per_second, now_us))
        };
        self.quotas = table.neighbours().iter().map(quota).collect();
        if let Some(gate) = &mut self.desk.gate {
            gate.renew(table.neighbours().len(), now_us);
            // On a radio the mesh itself greets, within its air time.
            if gate.is_radio {
                return;
            }
        }
        let here = table.neighbours().iter().enumerate().filter(|(_, one)| one.link == self.link);
        for (index, new) in here.filter(|(_, one)| !before.contains(one)) {
            let ask = LinkNote::Ask.to_bytes();
            self.desk.outlet.send(new, &ask, ask.len());
            // A new neighbour gets at once the announcements that are held. Until then it could
            // open no frame of their sources.
            self.desk.repeat_announcements(index as NeighbourIndex);
        }
    }
}

#[cfg(test)]
mod tests;
