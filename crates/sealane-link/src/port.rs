//! Where an end's own frames leave.

use std::sync::Arc;

use sealane_frame::{FrameAtHop, PeerTag};

use crate::counters::Reason;
use crate::outlet::Outlet;
use crate::relay::Shared;
use crate::table::{NeighbourIndex, Table};

/// Sends frames of this machine, each by the routes of the newest table. Frames of one length to
/// one neighbour, one after the other, leave together.
#[derive(Debug)]
pub struct Port {
    shared: Arc<Shared>,
    table: Arc<Table>,
    version: u64,
    outlet: Outlet,
    run: Option<Run>,
    /// The frames of the run.
    frames: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    to: NeighbourIndex,
    frame_bytes: usize,
}

/// Bytes of a run, at most: what the kernel takes at once.
const RUN_BYTES: usize = crate::limits::MAX_UNIT_BYTES;

impl Port {
    pub(crate) fn new(shared: Arc<Shared>, outlet: Outlet) -> Self {
        let (table, version) = (shared.table(), shared.version());
        let frames = Vec::with_capacity(RUN_BYTES);
        Self { shared, table, version, outlet, run: None, frames }
    }

    /// Takes a frame that was sealed here. What cannot go anywhere is counted.
    pub fn push(&mut self, bytes: &mut [u8]) {
        if let Err(why) = self.try_push(bytes) {
            self.drop(why);
        }
    }

    fn try_push(&mut self, bytes: &mut [u8]) -> Result<(), Reason> {
        if self.shared.version() != self.version {
            self.flush();
            (self.table, self.version) = (self.shared.table(), self.shared.version());
        }
        let frame = FrameAtHop::parse(bytes, self.table.own()).map_err(|_| Reason::Malformed)?;
        let to = frame.header().destination();
        if to == PeerTag::BROADCAST {
            frame.pass_on(PeerTag::BROADCAST).map_err(|_| Reason::HopLimit)?;
            let count = self.table.neighbours().len() as NeighbourIndex;
            (0..count).for_each(|to| self.add(to, bytes));
            return Ok(());
        }
        let via = self.table.member(to).and_then(|member| member.via).ok_or(Reason::NoRoute)?;
        let next = self.table.neighbour(via).ok_or(Reason::NoRoute)?;
        frame.pass_on(next.tag).map_err(|_| Reason::HopLimit)?;
        self.add(via, bytes);
        Ok(())
    }

    fn add(&mut self, to: NeighbourIndex, frame: &[u8]) {
        let goes_along = self.run.is_some_and(|run| run.to == to && run.frame_bytes == frame.len());
        if !goes_along || self.frames.len() + frame.len() > RUN_BYTES {
            self.leave();
        }
        self.run = Some(Run { to, frame_bytes: frame.len() });
        self.frames.extend_from_slice(frame);
    }

    fn leave(&mut self) {
        if let Some(Run { to, frame_bytes }) = self.run.take()
            && let Some(neighbour) = self.table.neighbour(to)
        {
            self.outlet.send(neighbour, &self.frames, frame_bytes);
        }
        self.frames.clear();
    }

    /// Sends what has gathered.
    pub fn flush(&mut self) {
        self.leave();
        self.shared.counters.take(&mut self.outlet.tally);
    }

    /// Counts what did not become a frame.
    pub fn drop(&mut self, why: Reason) {
        self.outlet.tally.drop(why, 1);
    }
}
