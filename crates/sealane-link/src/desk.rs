//! The decision of a relay for each unit: send it on, or drop it by name.

use std::collections::HashMap;
use std::sync::Arc;

use sealane_frame::{
    ANNOUNCEMENT_TYPE, Fragment, FrameAtHop, FrameError, FrameKind, FrameView, Header, PeerTag,
    Reassembly, ReassemblyProgress,
};
use sealane_mesh::{MeshInput, RouteLeg};
use sealane_seal::{Announcement, Class};

use crate::address::LinkAddress;
use crate::counters::DropReason;
use crate::floods::RelayFloods;
use crate::note::LinkNote;
use crate::outlet::LinkOutlet;
use crate::relay::{RelayArrival, RelayShared};
use crate::routing::{IntakeLane, LegCounts, RoutingGate, RoutingTask, UnitSource, leg};
use crate::table::{NeighbourIndex, RelayTable};

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardDecision {
    /// To one neighbour. Its header says so already.
    To(NeighbourIndex),
    /// The same, to a gateway that reports what came to it.
    ToGateway(NeighbourIndex, RouteLeg),
    /// To this machine.
    Here,
    /// To the machine that routes, which has a radio to send it by.
    ByRadio,
    /// To this machine, and all neighbours but the one that it came from.
    Everywhere,
}

/// One thread's decisions.
#[derive(Debug)]
pub(crate) struct ForwardDesk {
    pub(crate) table: Arc<RelayTable>,
    pub(crate) outlet: LinkOutlet,
    shared: Arc<RelayShared>,
    reassembly: Reassembly,
    /// Bytes of incomplete frames, as the status was told.
    partial_bytes: usize,
    /// The way to the machine that routes, if the link has one.
    pub(crate) gate: Option<RoutingGate>,
    /// Frames that came for this gateway, by source, until the machine is told.
    came: HashMap<PeerTag, u16>,
    /// Frames that went on to gateways, until the machine is told.
    went: LegCounts,
}

/// The neighbour that brought a frame, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameOrigin {
    pub(crate) by: NeighbourIndex,
    pub(crate) address: LinkAddress,
    pub(crate) now_us: u64,
}

impl ForwardDesk {
    pub(crate) fn new(
        shared: Arc<RelayShared>,
        table: Arc<RelayTable>,
        outlet: LinkOutlet,
        gate: Option<RoutingGate>,
    ) -> Self {
        // Each link has its own share. Fragments that flood one link cannot displace those of
        // another.
        let reassembly = Reassembly::within(shared.partial.share_bytes());
        let (came, went) = (HashMap::new(), LegCounts::default());
        Self { table, outlet, shared, reassembly, partial_bytes: 0, gate, came, went }
    }

    /// Takes units that the machine that routes may know how to take: of an address that is no
    /// neighbour's, or of a radio. Others are dropped as a stranger's.
    pub(crate) fn take_for_mesh(
        &mut self,
        from: UnitSource,
        segments: &[u8],
        segment_bytes: usize,
    ) {
        let Some(gate) = &mut self.gate else {
            let units = segments.len().div_ceil(segment_bytes).max(1);
            return self.outlet.tally.drop(DropReason::Stranger, units as u64);
        };
        // One batch of the kernel can hold units for the mesh and others: each is looked at.
        for unit in segments.chunks(segment_bytes.max(1)) {
            let passed = match gate.is_for(unit) {
                true => gate.pass(from, unit),
                false => Err(DropReason::Stranger),
            };
            if let Err(why) = passed {
                self.outlet.tally.drop(why, 1);
            }
        }
    }

    /// Hands a frame that has no way here to the machine that routes, if it is a message of its.
    #[cold]
    fn refused(
        &mut self,
        brought: FrameOrigin,
        why: DropReason,
        frame: &[u8],
    ) -> Result<(), DropReason> {
        // Messages of the mesh name no route here, and come with sources that are on no card. They
        // fail the checks first, so that the frames of a relay pay nothing for the question.
        let Some(gate) = self.gate.as_mut().filter(|gate| gate.is_for(frame)) else {
            return Err(why);
        };
        let from =
            UnitSource { by: Some(brought.by), address: brought.address, now_us: brought.now_us };
        gate.pass(from, frame)
    }

    /// Takes the segments that a neighbour sent at once, and sends on what is to go on: frames one
    /// after the other to one neighbour leave together, in the buffer that they came in.
    pub(crate) fn take(&mut self, brought: FrameOrigin, segments: &mut [u8], segment_bytes: usize) {
        let (mut run, mut at) = (None::<ForwardRun>, 0);
        while at < segments.len() {
            let end = segments.len().min(at + segment_bytes);
            let unit = segments.get_mut(at..end).unwrap_or_default();
            // The common case comes first: a frame for one neighbour is decided without a copy.
            let to = if begins_frame(unit) {
                self.frame(brought, unit)
            } else {
                self.other_unit(brought, unit);
                None
            };
            // Frames of a flow come in runs to one neighbour. Such a run leaves by one system call,
            // from the buffer in which it came.
            if run.is_none_or(|run| to != Some(run.to)) {
                self.leave(run, segments.get(..at), segment_bytes);
                run = to.map(|to| ForwardRun { to, start: at });
            }
            at = end;
        }
        self.leave(run, Some(segments), segment_bytes);
    }

    /// Sends a run on, which goes up to the end of `segments`.
    #[inline]
    fn leave(&mut self, run: Option<ForwardRun>, segments: Option<&[u8]>, segment_bytes: usize) {
        let Some(ForwardRun { to, start }) = run else { return };
        let Some(frames) = segments.and_then(|segments| segments.get(start..)) else { return };
        self.send(to, frames, segment_bytes);
    }

    fn send(&mut self, to: NeighbourIndex, frames: &[u8], frame_bytes: usize) {
        if let Some(neighbour) = self.table.neighbour(to) {
            self.outlet.tally.forwarded.add(frames.len().div_ceil(frame_bytes), frames.len());
            self.outlet.send(neighbour, frames, frame_bytes);
        }
    }

    /// Takes one frame, and gives the neighbour to which it goes on.
    #[inline]
    fn frame(&mut self, brought: FrameOrigin, frame: &mut [u8]) -> Option<NeighbourIndex> {
        let went = match way(&self.table, brought.by, frame) {
            Ok(ForwardDecision::To(to)) => return Some(to),
            Ok(ForwardDecision::ToGateway(to, leg)) => {
                self.went.add(leg);
                return Some(to);
            }
            Ok(ForwardDecision::Here) => self.deliver(frame),
            Ok(ForwardDecision::Everywhere) => self.flood(brought, frame),
            Ok(ForwardDecision::ByRadio) => self.shared.to_radio(frame),
            // The data path refuses first and the gate looks second. Frames on the fast way never
            // meet the gate.
            Err(why) => self.refused(brought, why, frame),
        };
        if let Err(why) = went {
            self.outlet.tally.drop(why, 1);
        }
        None
    }

    /// Gives a frame to the member whose machine this is.
    fn deliver(&mut self, frame: &mut [u8]) -> Result<(), DropReason> {
        let end = self.shared.end.as_ref().ok_or(DropReason::NoEnd)?;
        let frame_bytes = frame.len();
        // The member opens the frame where it lies, so that the source is read before.
        let source = self.shared.counts_arrivals().then(|| source_of(frame)).flatten();
        (end.take)(RelayArrival::Frame(frame))?;
        if let Some(came) = source.map(|source| self.came.entry(source).or_default()) {
            *came = came.saturating_add(1);
        }
        self.outlet.tally.delivered.add(1, frame_bytes);
        Ok(())
    }

    /// Tells the member whose machine this is that no more has come at once.
    pub(crate) fn pause(&mut self) {
        // Counts go to the machine once a batch: a queue entry for each frame would cost more than
        // the frame.
        if let Some(routing) = &self.shared.routing {
            self.went.tell(routing);
        }
        if let Some(routing) = self.shared.routing.as_ref().filter(|_| !self.came.is_empty()) {
            for (source, frames) in self.came.drain() {
                // A report that counts too few is put right by the next one.
                let came = RoutingTask::Mesh(MeshInput::Came { source, frames });
                let _ = routing.intake.put(IntakeLane::Data, came);
            }
        }
        if let Some(end) = &self.shared.end
            && let Err(why) = (end.take)(RelayArrival::Pause)
        {
            self.outlet.tally.drop(why, 1);
        }
    }

    /// Takes a frame to everybody and sends it on, if it was not here before.
    fn flood(&mut self, brought: FrameOrigin, bytes: &mut [u8]) -> Result<(), DropReason> {
        let by = self.table.neighbour(brought.by).map(|by| by.tag).ok_or(DropReason::Stranger)?;
        // The machine of the radio writes hops of its own, so that it gets the frame as it came.
        let for_radio = self.shared.has_radio().then(|| bytes.to_vec());
        let frame =
            FrameAtHop::parse(bytes, self.table.own()).map_err(|_| DropReason::Malformed)?;
        let header = *frame.header();
        let goes_on = frame.pass_on(PeerTag::BROADCAST).is_ok();
        // A frame at its last hop still ends here if this is a member's machine.
        if !goes_on && self.shared.end.is_none() {
            return Err(DropReason::HopLimit);
        }
        self.shared.with_floods(|floods| {
            if !floods.is_new(&header, bytes) {
                return Err(DropReason::Repeat);
            }
            // A repeat is refused before this point, so that a replayed announcement cannot
            // displace a newer one.
            if goes_on && is_announcement(&header) {
                floods.hold(header.source(), by, bytes);
            }
            Ok(())
        })?;
        // The radio's queue may be full. The wires get the frame all the same, and the drop is
        // counted.
        if let Some(frame) = for_radio.filter(|_| goes_on)
            && let Err(why) = self.shared.to_radio(&frame)
        {
            self.outlet.tally.drop(why, 1);
        }
        let table = Arc::clone(&self.table);
        // Neighbours of a radio hear the frame from the machine that routes, in its air time.
        let wires = table.neighbours().iter().enumerate().filter(|(_, one)| !one.is_radio);
        for (to, _) in wires.filter(|(to, _)| goes_on && *to != usize::from(brought.by)) {
            self.send(to as NeighbourIndex, bytes, bytes.len());
        }
        // The member comes last, because it opens the frame in the buffer that the wires are sent
        // from.
        if self.shared.end.is_some() { self.deliver(bytes) } else { Ok(()) }
    }

    /// Takes what is no frame: a part of one, or a note.
    fn other_unit(&mut self, brought: FrameOrigin, unit: &[u8]) {
        if LinkNote::parse(unit) == Some(LinkNote::Ask) {
            return self.answer(brought);
        }
        match Fragment::parse(unit) {
            Ok(fragment) => self.fragment(brought, &fragment),
            Err(_) => self.outlet.tally.drop(DropReason::Malformed, 1),
        }
    }

    fn fragment(&mut self, brought: FrameOrigin, fragment: &Fragment<'_>) {
        let Some(by) = self.table.neighbour(brought.by).map(|by| by.tag) else { return };
        let before = self.reassembly.losses();
        // A frame of parts may not be one of parts again: nobody needs what stands here meanwhile.
        let mut reassembly = std::mem::replace(&mut self.reassembly, Reassembly::within(0));
        match reassembly.push(by, brought.now_us / 1000, fragment) {
            // The whole frame passes the same checks as one that came at once. Its fragments were
            // only bytes.
            Ok(ReassemblyProgress::Whole(frame)) if begins_frame(frame) => {
                let frame_bytes = frame.len();
                if let Some(to) = self.frame(brought, frame) {
                    self.send(to, frame, frame_bytes);
                }
            }
            Ok(ReassemblyProgress::Whole(_)) => self.outlet.tally.drop(DropReason::Malformed, 1),
            Ok(ReassemblyProgress::Waiting | ReassemblyProgress::Repeated) => {}
            Err(_) => self.outlet.tally.drop(DropReason::Fragment, 1),
        }
        // Parts that were given up are counted as the frame that they were of: every frame that
        // came has either gone on or has a reason.
        let after = reassembly.losses();
        // Losses of other frames happen during this call too, and each has to be counted once.
        let given_up = after.expired + after.crowded_out - before.expired - before.crowded_out;
        self.outlet.tally.drop(DropReason::Fragment, given_up);
        self.shared.partial.change(&mut self.partial_bytes, reassembly.held_bytes());
        self.reassembly = reassembly;
    }

    /// Sends a neighbour that asks the announcements that others have brought, but not again at
    /// once: a stranger could ask in its name.
    fn answer(&mut self, brought: FrameOrigin) {
        let Some(tag) = self.table.neighbour(brought.by).map(|by| by.tag) else { return };
        if self.shared.with_floods(|floods| floods.answers(tag, brought.now_us / 1000)) {
            self.repeat_announcements(brought.by);
            if let Some(end) = &self.shared.end {
                let _ = (end.take)(RelayArrival::Asked);
            }
        } else {
            self.outlet.tally.drop(DropReason::Quota, 1);
        }
    }

    /// Sends a neighbour the announcements that others have brought.
    pub(crate) fn repeat_announcements(&mut self, to: NeighbourIndex) {
        let Some(tag) = self.table.neighbour(to).map(|neighbour| neighbour.tag) else { return };
        // Nobody waits for the floods while a slow link takes all of them.
        let held = self.shared.with_floods(|floods: &mut RelayFloods| floods.held_for(tag));
        for frame in held {
            self.send(to, &frame, frame.len());
        }
    }
}

/// Decides where a frame goes, and makes it one for the next hop if that is one neighbour.
#[inline]
pub(crate) fn way(
    table: &RelayTable,
    brought_by: NeighbourIndex,
    bytes: &mut [u8],
) -> Result<ForwardDecision, DropReason> {
    let frame = FrameAtHop::parse(bytes, table.own()).map_err(|error| match error {
        FrameError::NotForUs => DropReason::NotForUs,
        _ => DropReason::Malformed,
    })?;
    let header = frame.header();
    // Tags can be copied and addresses forged. The check keeps honest mistakes out of loops; a
    // proof is only what a reader opens.
    if table.neighbour(brought_by).is_none_or(|by| by.tag != header.previous_hop()) {
        return Err(DropReason::FalseHop);
    }
    // An own frame that comes back is a loop, or somebody plays a recording.
    if header.source() == table.own() || header.source() == table.end() {
        return Err(DropReason::Own);
    }
    let source = table.member(header.source()).ok_or(DropReason::UnknownSource)?;
    if source.group != header.group() {
        return Err(DropReason::UnknownGroup);
    }
    let to = header.destination();
    if to == PeerTag::BROADCAST {
        return Ok(ForwardDecision::Everywhere);
    }
    if to == table.own() || to == table.end() {
        return Ok(ForwardDecision::Here);
    }
    // Two groups that share a relay are not joined by it: nobody reaches the other group's members.
    let member = table.member(to).filter(|member| member.group == header.group());
    let via = member.and_then(|member| member.via).ok_or(DropReason::NoRoute)?;
    let next = table.neighbour(via).ok_or(DropReason::NoRoute)?;
    // The neighbour would send it here again: the two would pass it on until its hops are spent.
    if via == brought_by {
        return Err(DropReason::Backwards);
    }
    if next.is_radio {
        return Ok(ForwardDecision::ByRadio);
    }
    let is_reported = member.is_some_and(|member| member.is_reported);
    let leg = is_reported.then(|| leg(next.link, next.tag, header));
    // The header is rewritten last. Until here a refused frame is unchanged, and the gate can still
    // read it.
    frame.pass_on(next.tag).map_err(|_| DropReason::HopLimit)?;
    Ok(leg.map_or(ForwardDecision::To(via), |leg| ForwardDecision::ToGateway(via, leg)))
}

/// The source that a frame names, if it is for this machine alone. A frame to everybody comes by
/// other ways, too, so it tells nothing of the way to a gateway.
fn source_of(frame: &[u8]) -> Option<PeerTag> {
    let view = FrameView::parse(frame).ok()?;
    let is_for_all = view.header().destination() == PeerTag::BROADCAST;
    (!is_for_all).then(|| view.header().source())
}

/// Frames one after the other, from a place on, that go to one neighbour.
#[derive(Debug, Clone, Copy)]
struct ForwardRun {
    to: NeighbourIndex,
    start: usize,
}

/// Fragments begin with 0, and batches and notes with 1: `spec/frame.md`, section *Units*.
#[inline]
fn begins_frame(unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| *first > 1)
}

/// Whether it is as announcements are. What it says only its readers can check.
pub(crate) fn is_announcement(header: &Header) -> bool {
    let what = (header.kind(), header.data_type(), header.class(), header.body_bytes());
    what == (FrameKind::Control, ANNOUNCEMENT_TYPE, Class::Signed, Announcement::BYTES)
}
