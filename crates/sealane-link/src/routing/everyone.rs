//! The thread that receives what is sent to all machines of a link over UDP: it has a socket of
//! its own, so that the link's own one stays as fast as it is.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{RoutingGate, UnitSource};
use crate::address::LinkAddress;
use crate::counters::{DropReason, FrameTally};
use crate::limits::{MAX_UNIT_BYTES, MULTICAST_FAULT_PAUSE_MS, MULTICAST_REJOIN_MS};
use crate::link::RelayLink;
use crate::relay::RelayShared;
use crate::udp::UdpLink;

/// The thread that receives units to everybody.
pub(crate) struct MulticastReceiver {
    shared: Arc<RelayShared>,
    links: Arc<[RelayLink]>,
    index: usize,
    gate: RoutingGate,
    tally: FrameTally,
}

impl MulticastReceiver {
    /// None where a link has no such socket.
    pub(crate) fn new(
        shared: Arc<RelayShared>,
        links: Arc<[RelayLink]>,
        index: usize,
    ) -> Option<Self> {
        let Some(RelayLink::Udp(link)) = links.get(index) else { return None };
        link.everybody()?;
        // The thread has a gate with quotas of its own. A flood here takes nothing from the link's.
        let gate = shared.gate(index)?;
        Some(Self { shared, links, index, gate, tally: FrameTally::default() })
    }

    pub(crate) fn run(mut self) {
        let links = Arc::clone(&self.links);
        let Some(RelayLink::Udp(link)) = links.get(self.index) else { return };
        let mut unit = vec![0; MAX_UNIT_BYTES].into_boxed_slice();
        let (mut joined, mut version) = (Instant::now(), u64::MAX);
        while !self.shared.ends() {
            // No event tells of an interface that was made anew, and joining again costs little.
            if joined.elapsed() >= Duration::from_millis(MULTICAST_REJOIN_MS) {
                joined = Instant::now();
                // Where the interface is not there now, it may be the next time.
                let _ = link.rejoin();
            }
            if version != self.shared.version() {
                version = self.shared.version();
                // Quotas stand by index, and an index of the older table may name another
                // neighbour.
                self.gate.renew(self.shared.table().neighbours().len(), self.shared.now_us());
            }
            self.receive(link, &mut unit);
            self.shared.counters.take(&mut self.tally);
        }
    }

    fn receive(&mut self, link: &UdpLink, unit: &mut [u8]) {
        match link.receive_all(unit) {
            Ok(Some((from, bytes))) => {
                let unit = unit.get(..bytes).unwrap_or_default();
                self.take(LinkAddress::Udp(from), unit);
            }
            Ok(None) => {}
            Err(error) if is_quiet(&error) => {}
            Err(_) => {
                self.tally.drop(DropReason::LinkFault, 1);
                // A socket that fails at once would otherwise keep a processor busy until its
                // interface returns.
                std::thread::sleep(Duration::from_millis(MULTICAST_FAULT_PAUSE_MS));
            }
        }
    }

    fn take(&mut self, address: LinkAddress, unit: &[u8]) {
        self.tally.received.add(1, unit.len());
        if let Some(capture) = self.shared.tap.get() {
            capture.came(self.index, address, unit, unit.len());
        }
        // The table's lock is taken for each unit: hellos are few.
        let by = self.shared.table().at(self.index, address);
        let from = UnitSource { by, address, now_us: self.shared.now_us() };
        let passed = match self.gate.is_for(unit) {
            true => self.gate.pass(from, unit),
            false => Err(DropReason::Stranger),
        };
        if let Err(why) = passed {
            self.tally.drop(why, 1);
        }
    }
}

fn is_quiet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
