//! A scenario that is right in itself: what a run is made of.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::ops::Range;

use sealane_message::DataType;

use crate::medium::{NakagamiFading, RadioPower};
use crate::place::SimPlace;
use crate::{SimMediumProfile, SimSpan};

/// A scenario, read and checked: `spec/scenario.md`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scenario {
    /// The scenario's name.
    pub name: String,
    /// Where randomness comes from, unless another seed is asked for.
    pub seed: u64,
    /// How long a run lasts.
    pub duration: SimSpan,
    /// How often machines move.
    pub step: SimSpan,
    /// The keys of a live run.
    pub(crate) mesh: Option<MeshPlan>,
    pub(crate) media: Vec<MediumPlan>,
    pub(crate) motions: Vec<MotionPlan>,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) groups: BTreeMap<String, Range<usize>>,
    pub(crate) links: Vec<LinkPlan>,
    pub(crate) flows: Vec<FlowPlan>,
    pub(crate) events: Vec<EventPlan>,
}

/// The mesh that machines of the simulator and processes share in a live run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeshPlan {
    /// The name of the mesh's group in key folders.
    pub(crate) group: String,
    /// A group of the processes alone, whose frames the mesh carries.
    pub(crate) ends: Option<String>,
    /// The folder of the key folders, as seen from that of the scenario.
    pub(crate) keys: Option<String>,
}

/// A medium.
#[derive(Debug, Clone)]
pub(crate) struct MediumPlan {
    pub(crate) name: String,
    pub(crate) profile: SimMediumProfile,
    /// The links between machines, where not all near machines have them.
    pub(crate) shape: MediumTopology,
    /// Nothing, where all within the range hear and nobody else.
    pub(crate) fading: Option<NakagamiFading>,
    pub(crate) range_m: f64,
    pub(crate) exponent: f64,
    pub(crate) manners: LinkImpairments,
    /// The most that a direction loses beside, each another part of it.
    pub(crate) asymmetry: f64,
    pub(crate) duty_ppm: u32,
    pub(crate) power: RadioPower,
}

/// The impairments of a unit that was sent, whatever the radio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkImpairments {
    pub(crate) loss: f64,
    pub(crate) delay: SimSpan,
    pub(crate) jitter: SimSpan,
    pub(crate) duplicates: f64,
}

/// Which machines of a medium without distance have a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediumTopology {
    All,
    Chain,
    Star,
    Listed,
}

/// A motion that machines name.
#[derive(Debug, Clone)]
pub(crate) struct MotionPlan {
    pub(crate) name: String,
    pub(crate) kind: MotionKind,
}

#[derive(Debug, Clone)]
pub(crate) enum MotionKind {
    WayPoints { points: Vec<SimPlace>, speed_mps: f64, pause_s: f64, repeats: bool },
    Wander { at: SimPlace, area: SimPlace, speed_mps: f64, pause_s: f64 },
    Streets(StreetPlan),
    Trace { file: String },
}

/// Streets around square blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreetPlan {
    pub(crate) at: SimPlace,
    /// Crossings from west to east.
    pub(crate) columns: u32,
    /// Crossings from south to north.
    pub(crate) rows: u32,
    pub(crate) block_m: f64,
    pub(crate) speed_mps: f64,
}

/// A machine.
#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    pub(crate) kind: ProgramKind,
    /// The media that it is on, by their numbers.
    pub(crate) media: Vec<usize>,
    pub(crate) place: NodePlacement,
    /// The motion, and the how manieth this machine is of those that have it.
    pub(crate) motion: Option<MotionSeat>,
    pub(crate) joins: SimSpan,
    pub(crate) leaves: Option<SimSpan>,
    pub(crate) battery_j: Option<f64>,
    pub(crate) sleep: Option<SleepCycle>,
    /// Of a process: what is started, with its arguments.
    pub(crate) command: Vec<String>,
}

/// A machine's seat in a motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MotionSeat {
    pub(crate) motion: usize,
    pub(crate) seat: usize,
}

/// A machine that is awake and asleep in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepCycle {
    pub(crate) awake: SimSpan,
    pub(crate) asleep: SimSpan,
}

/// Where a machine begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodePlacement {
    At(SimPlace),
    /// Anywhere in a rectangle from a corner on.
    Within {
        at: SimPlace,
        area: SimPlace,
    },
}

/// The program of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ProgramKind {
    /// Sends a beacon now and then, and nothing else.
    Beacon { every: SimSpan, bytes: usize },
    /// Sends on what it hears for the first time.
    Flood { hops: u8 },
    /// Is a member of the mesh.
    Mesh { role: MeshRole },
    /// Runs outside of the simulator, in a network namespace of its own.
    Process,
}

/// The role of a machine in the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeshRole {
    Gateway,
    Member,
    Quiet,
}

impl ProgramKind {
    /// Whether the simulator can hand it messages.
    pub(crate) fn takes_messages(&self) -> bool {
        !matches!(self, ProgramKind::Beacon { .. } | ProgramKind::Process)
    }

    /// Whether it is a member of the mesh of a live run.
    pub(crate) fn holds_keys(&self) -> bool {
        matches!(self, ProgramKind::Mesh { .. } | ProgramKind::Process)
    }

    /// Whether the two understand each other's messages.
    pub(crate) fn talks_to(&self, other: &ProgramKind) -> bool {
        self.takes_messages() && discriminant(self) == discriminant(other)
    }
}

/// A link in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkPlan {
    pub(crate) medium: usize,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) loss: Option<f64>,
    pub(crate) delay: Option<SimSpan>,
    pub(crate) jitter: Option<SimSpan>,
}

/// Messages that machines send.
#[derive(Debug, Clone)]
pub(crate) struct FlowPlan {
    pub(crate) from: Range<usize>,
    pub(crate) to: FlowReceivers,
    pub(crate) every: SimSpan,
    pub(crate) bytes: usize,
    pub(crate) starts: SimSpan,
    pub(crate) ends: SimSpan,
    pub(crate) is_random: bool,
    pub(crate) is_urgent: bool,
    /// Each receiver answers within this time, at a moment of chance.
    pub(crate) answered: Option<SimSpan>,
    /// They are documents of this type, which all machines of the mesh keep.
    pub(crate) document: Option<DataType>,
}

/// The receivers of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FlowReceivers {
    Everybody,
    /// One of these, another one each time.
    OneOf(Range<usize>),
}

/// An event of machines or media.
#[derive(Debug, Clone)]
pub(crate) struct EventPlan {
    pub(crate) at: SimSpan,
    pub(crate) act: ScenarioAction,
}

#[derive(Debug, Clone)]
pub(crate) enum ScenarioAction {
    Join(Vec<u32>),
    Leave(Vec<u32>),
    Sleep(Vec<u32>),
    Wake(Vec<u32>),
    Capture {
        who: Vec<u32>,
        by: CapturedBehaviour,
    },
    Move {
        who: Vec<u32>,
        to: SimPlace,
    },
    /// Machines of different sides do not hear each other; those of none have their own side.
    Partition(Vec<Vec<u32>>),
    Heal,
    /// No machine of the one hears any of the other.
    Cut {
        one: Vec<u32>,
        other: Vec<u32>,
    },
    /// They hear each other again.
    Mend {
        one: Vec<u32>,
        other: Vec<u32>,
    },
    Loss {
        medium: usize,
        loss: f64,
    },
}

/// The behaviour of a machine that was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CapturedBehaviour {
    /// Takes part in the routing, and sends nothing of others on.
    BlackHole,
    /// Sends all that it hears again, a second later.
    Replay,
    /// Sends bytes of chance, ten times a second.
    Noise,
    /// Hears and says nothing.
    Silence,
}

impl Scenario {
    /// The names of the traces that it needs, each once.
    pub fn traces(&self) -> Vec<&str> {
        let mut files: Vec<_> = self.motions.iter().filter_map(MotionPlan::trace).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// How many machines it has.
    pub fn machines(&self) -> usize {
        self.nodes.len()
    }

    /// The first machine that is a process, which only a live run has.
    pub fn first_process(&self) -> Option<&str> {
        let mut nodes = self.nodes.iter().filter(|node| node.kind == ProgramKind::Process);
        nodes.next().map(|node| node.name.as_str())
    }

    /// The same scenario, so long.
    ///
    /// It is never made longer, since its bounds were checked for what it was.
    #[must_use]
    pub fn lasting(mut self, duration: SimSpan) -> Self {
        self.duration = self.duration.min(duration);
        self
    }
}

impl MotionPlan {
    fn trace(&self) -> Option<&str> {
        match &self.kind {
            MotionKind::Trace { file } => Some(file),
            _ => None,
        }
    }
}
