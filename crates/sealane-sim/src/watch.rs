//! The accounts of a run: counts, the log, the capture and the page.

mod log;
mod page;
mod pcap;

use std::io::Write;

use log::Log;
pub(crate) use log::VERSION as LOG_VERSION;
pub use page::Page;
pub(crate) use page::with_map;
use pcap::Capture;

use crate::node::Tidings;
use crate::place::Place;
use crate::scenario::Scenario;
use crate::{SimError, Span, Summary, Time};

/// Where a run is told. Nothing of it changes the run.
#[derive(Default)]
pub struct Watch<'w> {
    log: Option<Log<'w>>,
    capture: Option<Capture<'w>>,
    page: Option<Page>,
    counts: Counts,
    /// The records of earlier transmissions, to be used again.
    spare: Vec<Sent>,
}

/// Why a unit did not come to a machine, or was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
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

/// An event of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
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
pub(crate) struct Counts {
    pub(crate) units: u64,
    pub(crate) unit_bytes: u64,
    pub(crate) air: Span,
    pub(crate) heard: u64,
    pub(crate) arrived: u64,
    /// Acknowledgements that radios have sent.
    pub(crate) acknowledged: u64,
    lost: [u64; Loss::ALL.len()],
    pub(crate) missed_by_capture: u64,
    /// Routes that led back to where they began.
    pub(crate) loops: u64,
    /// Changes of the way to a machine.
    pub(crate) routes: u64,
}

/// A transmission that is over.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) from: u32,
    pub(crate) medium: u32,
    pub(crate) starts: Time,
    pub(crate) air: Span,
    /// The machines that have heard it.
    pub(crate) heard: Vec<u32>,
    lost: [u32; Loss::ALL.len()],
}

impl Loss {
    pub(crate) const ALL: [Loss; 10] = [
        Loss::Deaf,
        Loss::Collision,
        Loss::Faded,
        Loss::Medium,
        Loss::Gone,
        Loss::Duty,
        Loss::Unanswered,
        Loss::Full,
        Loss::TooLong,
        Loss::Captured,
    ];

    /// Its name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Loss::Deaf => "deaf",
            Loss::Collision => "collision",
            Loss::Faded => "faded",
            Loss::Medium => "medium",
            Loss::Gone => "gone",
            Loss::Duty => "duty",
            Loss::Unanswered => "unanswered",
            Loss::Full => "full",
            Loss::TooLong => "too_long",
            Loss::Captured => "captured",
        }
    }
}

impl Happening {
    /// Its name in logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Happening::Join => "join",
            Happening::Leave => "leave",
            Happening::Empty => "empty",
            Happening::Sleep => "sleep",
            Happening::Wake => "wake",
            Happening::Capture => "capture",
            Happening::Move => "move",
        }
    }
}

impl Counts {
    /// How many were lost for a reason.
    pub(crate) fn lost(&self, loss: Loss) -> u64 {
        self.lost.get(loss as usize).copied().unwrap_or(0)
    }

    pub(crate) fn loses(&mut self, loss: Loss, count: u64) {
        if let Some(lost) = self.lost.get_mut(loss as usize) {
            *lost += count;
        }
    }
}

impl Sent {
    pub(crate) fn loses(&mut self, loss: Loss) {
        if let Some(lost) = self.lost.get_mut(loss as usize) {
            *lost += 1;
        }
    }

    /// The reasons with their counts, without those that are 0.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (Loss, u32)> {
        let all = Loss::ALL.into_iter().zip(self.lost);
        all.filter(|(_, count)| *count > 0)
    }
}

impl<'w> Watch<'w> {
    /// Tells nobody anything but the summary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a line of JSON for all that happens.
    #[must_use]
    pub fn with_log(self, log: &'w mut dyn Write) -> Self {
        Self { log: Some(Log::new(log)), ..self }
    }

    /// Writes each unit as other programs read it.
    #[must_use]
    pub fn with_capture(self, file: &'w mut dyn Write) -> Self {
        Self { capture: Some(Capture::new(file)), ..self }
    }

    /// Draws a map of a run of this length.
    #[must_use]
    pub fn with_page(self, scenario: &Scenario, seed: u64) -> Self {
        let names = scenario.nodes.iter().map(|node| node.name.clone()).collect();
        let page = Page::new(&scenario.name, seed, scenario.duration, names);
        Self { page: Some(page), ..self }
    }

    pub(crate) fn counts(&self) -> Counts {
        let missed = self.capture.as_ref().map_or(0, Capture::missed);
        Counts { missed_by_capture: missed, ..self.counts }
    }

    pub(crate) fn begin(&mut self, scenario: &Scenario, seed: u64) -> Result<(), SimError> {
        if let Some(capture) = &mut self.capture {
            capture.begin()?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.begin(scenario, seed))
    }

    /// The end of a run, and the page that was drawn of it.
    pub(crate) fn finish(self, summary: &Summary) -> Result<Option<Page>, SimError> {
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        if let Some(log) = self.log {
            log.finish(summary)?;
        }
        Ok(self.page)
    }

    /// Room to tell a transmission in.
    pub(crate) fn fresh(&mut self, from: u32, medium: u32, starts: Time, air: Span) -> Sent {
        let Sent { mut heard, .. } = self.spare.pop().unwrap_or_default();
        heard.clear();
        Sent { from, medium, starts, air, heard, lost: Default::default() }
    }

    /// Takes the room back.
    pub(crate) fn keep(&mut self, sent: Sent) {
        if self.spare.len() < 64 {
            self.spare.push(sent);
        }
    }

    pub(crate) fn sends(&mut self, now: Time, sent: &Sent, unit: &[u8]) -> Result<(), SimError> {
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
    pub(crate) fn acknowledges(&mut self, air: Span) {
        self.counts.acknowledged += 1;
        self.counts.air += air;
    }

    /// A unit is at so many machines.
    pub(crate) fn arrives(&mut self, machines: usize) {
        self.counts.arrived += machines as u64;
    }

    pub(crate) fn loses(&mut self, now: Time, node: u32, loss: Loss) -> Result<(), SimError> {
        self.counts.loses(loss, 1);
        self.log.as_mut().map_or(Ok(()), |log| log.loses(now, node, loss))
    }

    pub(crate) fn offers(
        &mut self,
        now: Time,
        node: u32,
        offer: &crate::node::Offer,
    ) -> Result<(), SimError> {
        self.log.as_mut().map_or(Ok(()), |log| log.offers(now, node, offer))
    }

    pub(crate) fn delivers(
        &mut self,
        now: Time,
        node: u32,
        message: u64,
        took: Span,
    ) -> Result<(), SimError> {
        if let Some(page) = &mut self.page {
            page.delivers(now);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.delivers(now, node, message, took))
    }

    pub(crate) fn happens(
        &mut self,
        now: Time,
        what: Happening,
        node: u32,
        place: Place,
    ) -> Result<(), SimError> {
        // As the log has it, so that a replay draws the same page.
        let place = place.to_centimetres();
        if let Some(page) = &mut self.page {
            page.happens(now, what, node, place);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.happens(now, what, node, place))
    }

    /// The routes of a machine to another one lead back to it.
    pub(crate) fn loops(
        &mut self,
        now: Time,
        node: u32,
        to: u32,
        length: usize,
    ) -> Result<(), SimError> {
        self.counts.loops += 1;
        self.log.as_mut().map_or(Ok(()), |log| log.loops(now, node, to, length))
    }

    /// Tells a finding of a machine.
    pub(crate) fn tells(&mut self, now: Time, node: u32, what: Tidings) -> Result<(), SimError> {
        self.counts.routes += u64::from(what.what == "route");
        self.log.as_mut().map_or(Ok(()), |log| log.tells(now, node, what))
    }

    /// Tells an event of no machine.
    pub(crate) fn notes(&mut self, now: Time, what: &str) -> Result<(), SimError> {
        self.log.as_mut().map_or(Ok(()), |log| log.notes(now, what))
    }
}
