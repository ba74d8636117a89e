//! The accounts of a run: counts, the log, the capture and the page.

mod log;
mod page;
mod pcap;

use std::io::Write;

use log::RunLog;
pub(crate) use log::VERSION as LOG_VERSION;
pub use page::RunPage;
pub(crate) use page::with_map;
use pcap::SimPcapWriter;

use crate::node::{SimMeshFinding, SimOffer};
use crate::place::SimPlace;
use crate::scenario::Scenario;
use crate::{SimError, SimSpan, SimSummary, SimTime};

/// Where a run is told. Nothing of it changes the run.
#[derive(Default)]
pub struct SimWatch<'w> {
    log: Option<RunLog<'w>>,
    capture: Option<SimPcapWriter<'w>>,
    page: Option<RunPage>,
    counts: RunCounts,
    /// The records of earlier transmissions, to be used again.
    spare: Vec<FinishedTransmission>,
}

/// Why a unit did not come to a machine, or was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LossReason {
    /// The machine was sending.
    Deaf,
    /// Others were too loud.
    Collision,
    /// The radio did not carry it so far, this time.
    Faded,
    /// The medium loses a part of all.
    Medium,
    /// The machine was gone or asleep when it came.
    Gone,
    /// The sender has had its share of air time.
    Duty,
    /// The radio was not acknowledged, however often it tried.
    Unanswered,
    /// Too much waited for the radio.
    Full,
    /// It is longer than the medium carries at once.
    TooLong,
    /// The sender was taken, and keeps it.
    Captured,
}

/// An event of a run at a machine, but for transmissions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunEvent<'a> {
    /// A unit was not sent, or came to nobody.
    Drop(LossReason),
    Offer(&'a SimOffer),
    Deliver {
        message: u64,
        took: SimSpan,
    },
    /// Its place is as the log has it.
    Machine(SimMachineEvent, SimPlace),
    /// The routes to another machine lead back to it.
    Loop {
        to: u32,
        length: usize,
    },
    /// A finding of the machine.
    Mesh(SimMeshFinding),
}

impl RunEvent<'_> {
    /// Of a machine at a place, as the log has it, so that a replay draws the same page.
    pub(crate) fn at(what: SimMachineEvent, place: SimPlace) -> Self {
        RunEvent::Machine(what, place.to_centimetres())
    }
}

/// An event of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimMachineEvent {
    Join,
    Leave,
    /// It left because its battery has nothing left.
    Empty,
    Sleep,
    Wake,
    Capture,
    Move,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RunCounts {
    pub(crate) units: u64,
    pub(crate) unit_bytes: u64,
    pub(crate) air: SimSpan,
    pub(crate) heard: u64,
    pub(crate) arrived: u64,
    /// Acknowledgements that radios have sent.
    pub(crate) acknowledged: u64,
    lost: [u64; LossReason::ALL.len()],
    pub(crate) missed_by_capture: u64,
    /// Routes that led back to where they began.
    pub(crate) loops: u64,
    /// Changes of the way to a machine.
    pub(crate) routes: u64,
}

/// A transmission that is over.
#[derive(Debug, Default)]
pub(crate) struct FinishedTransmission {
    pub(crate) from: u32,
    pub(crate) medium: u32,
    pub(crate) starts: SimTime,
    pub(crate) air: SimSpan,
    /// The machines that have heard it.
    pub(crate) heard: Vec<u32>,
    lost: [u32; LossReason::ALL.len()],
}

impl LossReason {
    pub(crate) const ALL: [LossReason; 10] = [
        LossReason::Deaf,
        LossReason::Collision,
        LossReason::Faded,
        LossReason::Medium,
        LossReason::Gone,
        LossReason::Duty,
        LossReason::Unanswered,
        LossReason::Full,
        LossReason::TooLong,
        LossReason::Captured,
    ];

    /// Its name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LossReason::Deaf => "deaf",
            LossReason::Collision => "collision",
            LossReason::Faded => "faded",
            LossReason::Medium => "medium",
            LossReason::Gone => "gone",
            LossReason::Duty => "duty",
            LossReason::Unanswered => "unanswered",
            LossReason::Full => "full",
            LossReason::TooLong => "too_long",
            LossReason::Captured => "captured",
        }
    }
}

impl SimMachineEvent {
    /// Its name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SimMachineEvent::Join => "join",
            SimMachineEvent::Leave => "leave",
            SimMachineEvent::Empty => "empty",
            SimMachineEvent::Sleep => "sleep",
            SimMachineEvent::Wake => "wake",
            SimMachineEvent::Capture => "capture",
            SimMachineEvent::Move => "move",
        }
    }
}

impl RunCounts {
    /// How many were lost for a reason.
    pub(crate) fn lost(&self, loss: LossReason) -> u64 {
        self.lost.get(loss as usize).copied().unwrap_or(0)
    }

    pub(crate) fn loses(&mut self, loss: LossReason, count: u64) {
        if let Some(lost) = self.lost.get_mut(loss as usize) {
            *lost += count;
        }
    }
}

impl FinishedTransmission {
    pub(crate) fn loses(&mut self, loss: LossReason) {
        if let Some(lost) = self.lost.get_mut(loss as usize) {
            *lost += 1;
        }
    }

    /// The reasons with their counts, without those that are 0.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (LossReason, u32)> {
        let all = LossReason::ALL.into_iter().zip(self.lost);
        all.filter(|(_, count)| *count > 0)
    }
}

impl<'w> SimWatch<'w> {
    /// Tells nobody anything but the summary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a line of JSON for all that happens.
    #[must_use]
    pub fn with_log(self, log: &'w mut dyn Write) -> Self {
        Self { log: Some(RunLog::new(log)), ..self }
    }

    /// Writes each unit as other programs read it.
    #[must_use]
    pub fn with_capture(self, file: &'w mut dyn Write) -> Self {
        Self { capture: Some(SimPcapWriter::new(file)), ..self }
    }

    /// Draws a map of a run of this length.
    #[must_use]
    pub fn with_page(self, scenario: &Scenario, seed: u64) -> Self {
        let names = scenario.nodes.iter().map(|node| node.name.clone()).collect();
        let page = RunPage::new(&scenario.name, seed, scenario.duration, names);
        Self { page: Some(page), ..self }
    }

    pub(crate) fn counts(&self) -> RunCounts {
        let missed = self.capture.as_ref().map_or(0, SimPcapWriter::missed);
        RunCounts { missed_by_capture: missed, ..self.counts }
    }

    pub(crate) fn begin(&mut self, scenario: &Scenario, seed: u64) -> Result<(), SimError> {
        if let Some(capture) = &mut self.capture {
            capture.begin()?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.begin(scenario, seed))
    }

    /// The end of a run, and the page that was drawn of it.
    pub(crate) fn finish(self, summary: &SimSummary) -> Result<Option<RunPage>, SimError> {
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        if let Some(log) = self.log {
            log.finish(summary)?;
        }
        Ok(self.page)
    }

    /// Room to tell a transmission in.
    pub(crate) fn fresh(
        &mut self,
        from: u32,
        medium: u32,
        starts: SimTime,
        air: SimSpan,
    ) -> FinishedTransmission {
        let FinishedTransmission { mut heard, .. } = self.spare.pop().unwrap_or_default();
        heard.clear();
        FinishedTransmission { from, medium, starts, air, heard, lost: Default::default() }
    }

    /// Takes the room back.
    pub(crate) fn keep(&mut self, sent: FinishedTransmission) {
        if self.spare.len() < 64 {
            self.spare.push(sent);
        }
    }

    pub(crate) fn sends(
        &mut self,
        now: SimTime,
        sent: &FinishedTransmission,
        unit: &[u8],
    ) -> Result<(), SimError> {
        self.counts.units += 1;
        self.counts.unit_bytes += unit.len() as u64;
        self.counts.air += sent.air;
        self.counts.heard += sent.heard.len() as u64;
        for (loss, count) in sent.losses() {
            self.counts.loses(loss, u64::from(count));
        }
        if let Some(page) = &mut self.page {
            page.sends(now, sent.from);
        }
        if let Some(capture) = &mut self.capture {
            capture.unit(sent, unit)?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.sends(now, sent, unit.len()))
    }

    /// A radio acknowledges a unit, which is no unit but takes air.
    pub(crate) fn acknowledges(&mut self, air: SimSpan) {
        self.counts.acknowledged += 1;
        self.counts.air += air;
    }

    /// A unit is at so many machines.
    pub(crate) fn arrives(&mut self, machines: usize) {
        self.counts.arrived += machines as u64;
    }

    /// Tells what happens to a machine.
    pub(crate) fn tells(
        &mut self,
        now: SimTime,
        node: u32,
        event: RunEvent<'_>,
    ) -> Result<(), SimError> {
        match event {
            RunEvent::Drop(loss) => self.counts.loses(loss, 1),
            RunEvent::Loop { .. } => self.counts.loops += 1,
            RunEvent::Mesh(finding) => self.counts.routes += u64::from(finding.what == "route"),
            RunEvent::Offer(_) => {}
            RunEvent::Deliver { .. } => {
                self.page.iter_mut().for_each(|page| page.delivers(now));
            }
            RunEvent::Machine(what, place) => {
                self.page.iter_mut().for_each(|page| page.happens(now, what, node, place));
            }
        }
        self.log.as_mut().map_or(Ok(()), |log| log.tells(now, node, event))
    }

    /// Tells an event of no machine.
    pub(crate) fn notes(&mut self, now: SimTime, what: &str) -> Result<(), SimError> {
        self.log.as_mut().map_or(Ok(()), |log| log.notes(now, what))
    }
}
