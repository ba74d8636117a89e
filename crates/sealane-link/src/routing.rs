//! The machine that finds neighbours and routes, beside a data path that it does not slow: one
//! thread owns it, and the threads of links hand it what is for it.
//!
//! ```text
//!  links ─► desk ─► the fast way on wires
//!             │ kind 2, announcements of the mesh's group; all of a radio
//!             ▼
//!           Gate ─► Intake ─► Driver: Mesh ─► units, the table of the fast way, frames for here
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sealane_frame::{FrameView, GroupTag, PeerTag};
use sealane_mesh::{
    Keys, MachineRole, Mesh, MeshInput, MeshOutput, Rekeyed, RouteTrace, SendUrgency,
};
use sealane_seal::Slot;

use crate::LinkConfig;
use crate::limits::MAX_TRACES_WAITING;

mod driver;
mod everyone;
mod found;
mod frames;
mod gate;
mod intake;
mod links;
mod load;
mod metrics;
mod pace;
mod places;
mod status;
mod went;

pub(crate) use driver::RoutingDriver;
pub(crate) use everyone::MulticastReceiver;
#[cfg(test)]
pub(crate) use found::LinkNeighbour;
pub(crate) use found::{FoundNeighbour, RoutingFound};
pub(crate) use gate::{RoutingGate, UnitSource};
pub(crate) use intake::{IntakeLane, IntakeNext, RoutingIntake, RoutingTask};
pub use metrics::{drops, part_name};
pub use status::{AirTimeSpent, RouteStatus, RoutingNeighbour, RoutingStatus, RoutingWay};
pub(crate) use went::{LegCounts, leg};

/// The inputs that a machine needs to find its neighbours and routes, beside its configuration.
#[derive(Debug)]
pub struct RoutingSecrets {
    /// The machine's keys of the mesh's group.
    pub keys: Keys,
    /// The seed of all its chance: 32 random bytes, others for each start.
    pub seed: [u8; 32],
}

/// The machine had as much to do as it takes: what was handed to it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mesh's machine has as much to do as it takes")]
pub struct IntakeFull;

/// Hears what the machine gives that the relay does not do itself: events, frames for here, and
/// notices of groups, which a member of the group obeys.
pub type RoutingListener = Box<dyn Fn(&MeshOutput) + Send + Sync>;

/// The way to a machine, as those on it have told it.
#[derive(Debug, Clone)]
pub struct TracedRoute {
    /// The trace that they have told.
    pub trace: RouteTrace,
    /// How long the question and its answer took.
    pub round_trip: Duration,
}

/// A hold on the machine that routes.
#[derive(Debug, Clone)]
pub struct RoutingHandle {
    routing: Arc<RoutingShared>,
}

/// The state that the threads of a relay share with the machine's.
pub(crate) struct RoutingShared {
    pub(crate) intake: RoutingIntake,
    /// The mesh's group.
    group: GroupTag,
    /// The machine's address in it.
    pub(crate) tag: PeerTag,
    /// Some link is a radio.
    pub(crate) has_radio: bool,
    /// It counts what comes to it, and tells others.
    pub(crate) is_gateway: bool,
    status: Mutex<Arc<RoutingStatus>>,
    listeners: Mutex<Vec<RoutingListener>>,
    documents: DocumentsRoom,
    /// The callers that wait for the answers to traces.
    traces: Mutex<BTreeMap<u32, SyncSender<RouteTrace>>>,
    next_trace: AtomicU32,
}

/// How much the machine takes of messages about documents.
#[derive(Debug, Default)]
pub(crate) struct DocumentsRoom {
    handed: AtomicU64,
    taken: AtomicU64,
    /// By urgency: for what is urgent, and for the rest.
    rooms: [AtomicUsize; 2],
}

impl DocumentsRoom {
    /// The machine has taken so many more, and has room for more.
    pub(crate) fn set(&self, taken: u64, mesh: &Mesh) {
        for (room, urgency) in self.rooms.iter().zip([SendUrgency::Urgent, SendUrgency::Normal]) {
            room.store(mesh.documents_room(urgency), Ordering::Release);
        }
        // The rooms are stored first. A reader that sees this count sees rooms at least as new.
        self.taken.fetch_add(taken, Ordering::Release);
    }
}

impl RoutingHandle {
    pub(crate) fn new(routing: Arc<RoutingShared>) -> Self {
        Self { routing }
    }

    /// Goes on with what an order of the mesh's group has changed.
    ///
    /// # Errors
    ///
    /// [`IntakeFull`]: it is to be handed over again.
    pub fn rekey(&self, rekeyed: Rekeyed) -> Result<(), IntakeFull> {
        self.put(RoutingTask::Rekey(Box::new(rekeyed)))
    }

    /// Hands the machine something of this machine's own. It never waits.
    ///
    /// # Errors
    ///
    /// [`IntakeFull`].
    pub fn push(&self, input: MeshInput<'static>) -> Result<(), IntakeFull> {
        let is_documents = matches!(input, MeshInput::Documents { .. });
        self.put(RoutingTask::Mesh(input))?;
        // The message counts only after the queue has taken it. A lost one would otherwise block
        // the room for ever.
        if is_documents {
            self.routing.documents.handed.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Whether the machine has room for one more message about documents of that urgency: it has
    /// taken all that it was handed, and not all of them wait for air time.
    pub fn has_documents_room(&self, urgency: SendUrgency) -> bool {
        let DocumentsRoom { handed, taken, rooms: [urgent, rest] } = &self.routing.documents;
        // Until the machine has taken the last message, its room is not up to date. The next one
        // would be dropped.
        let is_taken = handed.load(Ordering::Acquire) <= taken.load(Ordering::Acquire);
        let room = if urgency == SendUrgency::Urgent { urgent } else { rest };
        is_taken && room.load(Ordering::Acquire) > 0
    }

    /// Has somebody hear events and frames for this machine, on the machine's own thread, for as
    /// long as it runs.
    pub fn listen(&self, listener: RoutingListener) {
        self.routing.listeners.lock().push(listener);
    }

    /// Asks which way leads to a machine, and waits for the answer: none may come, as of any
    /// message.
    ///
    /// # Errors
    ///
    /// [`IntakeFull`]; also if others wait for as many answers as may be.
    pub fn trace(&self, to: Slot, patience: Duration) -> Result<Option<TracedRoute>, IntakeFull> {
        let (begun, number) = (Instant::now(), self.routing.next_trace());
        let (answer, answered) = sync_channel(1);
        {
            let mut waiting = self.routing.traces.lock();
            if waiting.len() >= MAX_TRACES_WAITING {
                return Err(IntakeFull);
            }
            // The place is taken before the question leaves, or a fast answer would find nobody
            // waiting.
            waiting.insert(number, answer);
        }
        let asked = self.push(MeshInput::Trace { to, number });
        let trace = asked.map(|()| answered.recv_timeout(patience).ok());
        // Answered or not, the place is given back. An answer that comes later finds no receiver
        // and is dropped.
        self.routing.traces.lock().remove(&number);
        Ok(trace?.map(|trace| TracedRoute { trace, round_trip: begun.elapsed() }))
    }

    /// How the machine is now, as of its last change or at most a second ago.
    pub fn status(&self) -> Arc<RoutingStatus> {
        self.routing.status()
    }

    fn put(&self, task: RoutingTask) -> Result<(), IntakeFull> {
        self.routing.intake.put(IntakeLane::Local, task).map_err(|_| IntakeFull)
    }
}

impl RoutingShared {
    pub(crate) fn new(
        group: GroupTag,
        tag: PeerTag,
        links: &[LinkConfig],
        first: RoutingStatus,
    ) -> Self {
        Self {
            intake: RoutingIntake::default(),
            group,
            tag,
            has_radio: links.iter().any(LinkConfig::is_radio),
            is_gateway: first.role == MachineRole::Gateway,
            status: Mutex::new(Arc::new(first)),
            listeners: Mutex::default(),
            documents: DocumentsRoom::default(),
            traces: Mutex::default(),
            next_trace: AtomicU32::new(0),
        }
    }

    pub(crate) fn status(&self) -> Arc<RoutingStatus> {
        Arc::clone(&self.status.lock())
    }

    fn tell(&self, status: RoutingStatus) {
        *self.status.lock() = Arc::new(status);
    }

    fn next_trace(&self) -> u32 {
        self.next_trace.fetch_add(1, Ordering::Relaxed)
    }

    fn hear(&self, output: &MeshOutput) {
        if let MeshOutput::Traced(trace) = output
            && let Some(waiting) = self.traces.lock().remove(&trace.number)
        {
            // A caller that has waited for long enough is gone.
            let _ = waiting.try_send(trace.clone());
        }
        self.listeners.lock().iter().for_each(|listener| listener(output));
    }

    /// Whether a unit of a wire is for the machine: a message of its group, or the announcement of
    /// one of its members.
    pub(crate) fn is_control(&self, unit: &[u8]) -> bool {
        // Nothing is verified yet. A stranger that writes such a header reaches the machine's
        // thread, so that the gate counts what strangers bring.
        FrameView::peek(unit).is_some_and(|header| {
            header.is_routing(self.group) || header.is_announcement(self.group)
        })
    }
}

impl std::fmt::Debug for RoutingShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routing").field("tag", &self.tag).finish_non_exhaustive()
    }
}
