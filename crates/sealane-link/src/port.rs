//! Where an end's own frames leave.

use std::sync::Arc;

use sealane_frame::{FrameAtHop, PeerTag};
use sealane_mesh::RouteLeg;

use crate::counters::DropReason;
use crate::outlet::LinkOutlet;
use crate::relay::RelayShared;
use crate::routing::{LegCounts, leg};
use crate::table::{NeighbourIndex, RelayTable};

/// Sends frames of this machine, each by the routes of the newest table. Frames of one length to
/// one neighbour, one after the other, leave together; the last may be shorter.
#[derive(Debug)]
pub struct RelayPort {
    shared: Arc<RelayShared>,
    table: Arc<RelayTable>,
    version: u64,
    outlet: LinkOutlet,
    run: Option<PortRun>,
    /// The frames of the run, one behind the other.
    frames: Box<[u8]>,
    /// The bytes of them so far.
    filled: usize,
    /// The frames that have gone to gateways since the machine that routes was told.
    went: LegCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PortRun {
    to: NeighbourIndex,
    frame_bytes: usize,
    /// The last frame was shorter: nothing follows it.
    is_whole: bool,
}

/// Bytes of a run, at most: what the kernel takes at once.
const RUN_BYTES: usize = crate::limits::MAX_UNIT_BYTES;
/// Bytes of a frame, at most: the longest packet and what is around it.
const FRAME_BYTES: usize = u16::MAX as usize + 256;

impl RelayPort {
    pub(crate) fn new(shared: Arc<RelayShared>, outlet: LinkOutlet) -> Self {
        // If a swap falls between the two, the next frame finds an old number and follows.
        let version = shared.version();
        let table = shared.table();
        let frames = vec![0; FRAME_BYTES].into_boxed_slice();
        let (run, went) = (None, LegCounts::default());
        Self { shared, table, version, outlet, run, frames, filled: 0, went }
    }

    /// Takes a frame that was sealed here. What cannot go anywhere is counted.
    pub fn push(&mut self, bytes: &mut [u8]) {
        if let Err(why) = self.try_push(bytes) {
            self.drop(why);
        }
    }

    /// Has `fill` make a frame of so many bytes for a member, in the buffer from which it leaves. A
    /// frame without a route, or that `fill` does not make, is counted.
    #[inline]
    pub fn frame(
        &mut self,
        to: PeerTag,
        frame_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), DropReason>,
    ) {
        if let Err(why) = self.try_frame(to, frame_bytes, fill) {
            self.drop(why);
        }
    }

    fn try_frame(
        &mut self,
        to: PeerTag,
        frame_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        self.follow();
        let member = self.table.member(to).ok_or(DropReason::NoRoute)?;
        let (via, is_reported) = (member.via.ok_or(DropReason::NoRoute)?, member.is_reported);
        let next = self.table.neighbour(via).ok_or(DropReason::NoRoute)?;
        let (next_hop, link, is_radio) = (next.tag, next.link, next.is_radio);
        // Room is made before the frame is: it is sealed in the place from which it leaves.
        self.make_room(via, frame_bytes);
        let own = self.table.own();
        let frame = self.frames.get_mut(self.filled..).and_then(|room| room.get_mut(..frame_bytes));
        let frame = frame.ok_or(DropReason::Malformed)?;
        // A frame that was not made leaves nothing behind: `filled` has not moved.
        fill(frame)?;
        if is_radio {
            // The machine copies the frame, so that its place in the run stays free.
            return self.shared.to_radio(frame);
        }
        let frame = FrameAtHop::parse(frame, own).map_err(|_| DropReason::Malformed)?;
        let leg = is_reported.then(|| leg(link, next_hop, frame.header()));
        frame.pass_on(next_hop).map_err(|_| DropReason::HopLimit)?;
        // A frame joins the run only after its header was written, so that no half-made frame can
        // leave.
        self.filled_one(via, frame_bytes);
        self.count(leg);
        Ok(())
    }

    fn try_push(&mut self, bytes: &mut [u8]) -> Result<(), DropReason> {
        self.follow();
        let table = Arc::clone(&self.table);
        let frame = FrameAtHop::parse(bytes, table.own()).map_err(|_| DropReason::Malformed)?;
        let to = frame.header().destination();
        if to == PeerTag::BROADCAST {
            return self.push_to_all(&table, bytes);
        }
        let member = table.member(to).ok_or(DropReason::NoRoute)?;
        let via = member.via.ok_or(DropReason::NoRoute)?;
        let next = table.neighbour(via).ok_or(DropReason::NoRoute)?;
        if next.is_radio {
            return self.shared.to_radio(bytes);
        }
        let leg = member.is_reported.then(|| leg(next.link, next.tag, frame.header()));
        frame.pass_on(next.tag).map_err(|_| DropReason::HopLimit)?;
        // Checks come before the run grows: a frame that is refused leaves those before it as they
        // were.
        self.add(via, bytes)?;
        self.count(leg);
        Ok(())
    }

    /// Counts a frame that goes to a gateway.
    #[inline]
    fn count(&mut self, leg: Option<RouteLeg>) {
        let Some(leg) = leg else { return };
        self.went.add(leg);
        // The machine learns of a way that swallows frames by comparing what went with what was
        // reported. A port that is never flushed must not keep that from it.
        if self.went.is_much() {
            self.tell_went();
        }
    }

    fn tell_went(&mut self) {
        if let Some(routing) = &self.shared.routing {
            self.went.tell(routing);
        }
    }

    fn push_to_all(&mut self, table: &RelayTable, bytes: &mut [u8]) -> Result<(), DropReason> {
        if self.shared.has_radio() {
            self.shared.to_radio(bytes)?;
        }
        let frame = FrameAtHop::parse(bytes, table.own()).map_err(|_| DropReason::Malformed)?;
        frame.pass_on(PeerTag::BROADCAST).map_err(|_| DropReason::HopLimit)?;
        let wires = table.neighbours().iter().enumerate().filter(|(_, one)| !one.is_radio);
        wires.map(|(to, _)| to as NeighbourIndex).try_for_each(|to| self.add(to, bytes))
    }

    /// Goes on with the newest table.
    #[inline]
    fn follow(&mut self) {
        // Frames that have gathered were addressed by the old table, and leave by it.
        if self.shared.version() != self.version {
            // Frames that were routed by the old table leave by it. An index of the new one may
            // name another neighbour.
            self.flush();
            self.version = self.shared.version();
            self.table = self.shared.table();
        }
    }

    fn add(&mut self, to: NeighbourIndex, frame: &[u8]) -> Result<(), DropReason> {
        self.make_room(to, frame.len());
        let room = self.frames.get_mut(self.filled..).and_then(|room| room.get_mut(..frame.len()));
        room.ok_or(DropReason::Malformed)?.copy_from_slice(frame);
        self.filled_one(to, frame.len());
        Ok(())
    }

    /// Sends what has gathered, unless the next frame goes along with it.
    #[inline]
    fn make_room(&mut self, to: NeighbourIndex, frame_bytes: usize) {
        // The kernel cuts a run into datagrams of one length (UDP_SEGMENT); the last may be
        // shorter.
        let goes_along = self
            .run
            .is_none_or(|run| run.to == to && !run.is_whole && frame_bytes <= run.frame_bytes);
        if !goes_along || self.filled + frame_bytes > RUN_BYTES {
            self.leave();
        }
    }

    /// Counts the frame that was written behind the others.
    #[inline]
    fn filled_one(&mut self, to: NeighbourIndex, frame_bytes: usize) {
        self.filled += frame_bytes;
        self.run = Some(match self.run {
            Some(run) => PortRun { is_whole: frame_bytes < run.frame_bytes, ..run },
            None => PortRun { to, frame_bytes, is_whole: false },
        });
    }

    fn leave(&mut self) {
        if let Some(PortRun { to, frame_bytes, .. }) = self.run.take()
            && let Some(neighbour) = self.table.neighbour(to)
        {
            let frames = self.frames.get(..self.filled).unwrap_or_default();
            self.outlet.send(neighbour, frames, frame_bytes);
        }
        self.filled = 0;
    }

    /// Sends what has gathered.
    pub fn flush(&mut self) {
        self.leave();
        self.tell_went();
        self.shared.counters.take(&mut self.outlet.tally);
    }

    /// Counts what did not become a frame.
    pub fn drop(&mut self, why: DropReason) {
        self.outlet.tally.drop(why, 1);
    }
}
