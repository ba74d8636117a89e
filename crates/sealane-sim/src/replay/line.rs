//! The lines of a log: `spec/scenario.md`, section *Log*.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::SimTime;
use crate::place::SimPlace;
use crate::watch::LOG_VERSION;

/// As far as a machine may be from the corner, in metres.
const MAX_METRES: f64 = 2e7;

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum LogLine {
    Run(RunLine),
    Send(SendLine),
    Drop(DropLine),
    Offer(OfferLine),
    Deliver(DeliverLine),
    Note(NoteLine),
    Mesh(MeshLine),
    Loop(LoopLine),
    Join(PlaceLine),
    Leave(PlaceLine),
    Empty(PlaceLine),
    Sleep(PlaceLine),
    Wake(PlaceLine),
    Capture(PlaceLine),
    Move(PlaceLine),
    Summary(Box<SummaryLine>),
}

/// The version of a line: that which is read here, or it is no line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLineVersion;

impl<'de> Deserialize<'de> for LogLineVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u64::deserialize(from)? {
            LOG_VERSION => Ok(LogLineVersion),
            other => Err(serde::de::Error::custom(format!("version {other} is not {LOG_VERSION}"))),
        }
    }
}

/// Writes the lines, each with its version and time.
macro_rules! lines {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $($(#[$meta:meta])* $field:ident: $type:ty),* $(,)?
    })+) => {
        $($(#[doc = $doc])+
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "what is only checked to be there is not read")]
        pub(super) struct $name {
            v: LogLineVersion,
            at: u64,
            $($(#[$meta])* pub(super) $field: $type,)*
        })+
    };
}

lines! {
    /// The first line.
    RunLine {
        scenario: String,
        seed: u64,
        lasts: u64,
        media: Vec<String>,
        nodes: Vec<String>,
    }
    /// A transmission that is over.
    SendLine {
        node: u32,
        medium: u32,
        bytes: u64,
        air: u64,
        heard: Vec<u32>,
        #[serde(default)]
        lost: BTreeMap<String, u64>,
    }
    /// A unit that was not sent, or came to nobody.
    DropLine {
        node: u32,
        why: String,
    }
    /// A message that a scenario has a machine send.
    OfferLine {
        node: u32,
        message: u64,
        bytes: u64,
        to: Option<u32>,
    }
    /// A message that came.
    DeliverLine {
        node: u32,
        message: u64,
        took: u64,
    }
    /// A finding of a machine of the mesh.
    MeshLine {
        node: u32,
        what: String,
        of: Option<u32>,
        via: Option<u32>,
    }
    /// A route that leads back to where it began.
    LoopLine {
        node: u32,
        to: u32,
        length: u64,
    }
    /// An event of no machine.
    NoteLine {
        what: String,
    }
    /// An event of a machine.
    PlaceLine {
        node: u32,
        x: f64,
        y: f64,
    }
    /// The last line.
    SummaryLine {
        machines: u64,
        events: u64,
        units: u64,
        unit_bytes: u64,
        air: u64,
        heard: u64,
        arrived: u64,
        acknowledged: u64,
        messages: u64,
        expected: u64,
        delivered: u64,
        again: u64,
        astray: u64,
        half_within: u64,
        most_within: u64,
        all_within: u64,
        sent_ppm_most: u64,
        heard_ppm_most: u64,
        held: u64,
        routes: u64,
        loops: u64,
        lost: BTreeMap<String, u64>,
    }
}

impl PlaceLine {
    pub(super) fn is_somewhere(&self) -> bool {
        self.x.abs() <= MAX_METRES && self.y.abs() <= MAX_METRES
    }

    pub(super) fn place(&self) -> SimPlace {
        SimPlace { x: self.x, y: self.y }
    }
}

impl LogLine {
    pub(super) fn at(&self) -> SimTime {
        SimTime(match self {
            LogLine::Run(line) => line.at,
            LogLine::Send(line) => line.at,
            LogLine::Drop(line) => line.at,
            LogLine::Offer(line) => line.at,
            LogLine::Deliver(line) => line.at,
            LogLine::Note(line) => line.at,
            LogLine::Mesh(line) => line.at,
            LogLine::Loop(line) => line.at,
            LogLine::Join(line)
            | LogLine::Leave(line)
            | LogLine::Empty(line)
            | LogLine::Sleep(line)
            | LogLine::Wake(line)
            | LogLine::Capture(line)
            | LogLine::Move(line) => line.at,
            LogLine::Summary(line) => line.at,
        })
    }

    /// The event of a machine, if the line tells of it.
    pub(super) fn happening(&self) -> Option<(crate::watch::SimMachineEvent, &PlaceLine)> {
        use crate::watch::SimMachineEvent;
        Some(match self {
            LogLine::Join(line) => (SimMachineEvent::Join, line),
            LogLine::Leave(line) => (SimMachineEvent::Leave, line),
            LogLine::Empty(line) => (SimMachineEvent::Empty, line),
            LogLine::Sleep(line) => (SimMachineEvent::Sleep, line),
            LogLine::Wake(line) => (SimMachineEvent::Wake, line),
            LogLine::Capture(line) => (SimMachineEvent::Capture, line),
            LogLine::Move(line) => (SimMachineEvent::Move, line),
            _ => return None,
        })
    }
}
