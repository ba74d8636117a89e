//! The status of the machine that routes.

use sealane_frame::{GroupTag, PeerTag};
use sealane_mesh::{MachineRole, Mesh, MeshCounters, MeshSpan};
use sealane_seal::{Epoch, Slot};

use crate::address::LinkAddress;

/// The machine at one time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RoutingStatus {
    /// The mesh's group.
    pub group: GroupTag,
    /// The newest epoch that is held.
    pub epoch: Epoch,
    /// The machine's slot.
    pub slot: Slot,
    /// The machine's role for the others.
    pub role: MachineRole,
    /// Its neighbours, by link and slot: at most
    /// [`MAX_MESH_NEIGHBOURS`](sealane_mesh::limits::MAX_MESH_NEIGHBOURS).
    pub neighbours: Vec<RoutingNeighbour>,
    /// All machines that are reached, by slot.
    pub routes: Vec<RouteStatus>,
    /// The air time that was spent on each link where neighbours are found.
    pub spent: Vec<AirTimeSpent>,
    /// The counts so far.
    pub counters: MeshCounters,
    /// How often another machine was heard in the own slot.
    pub own_slot_heard: u64,
    /// Why the machine could not go on with the group's keys, if that is so.
    pub fault: Option<String>,
}

impl RoutingStatus {
    /// That of a machine which has not begun.
    pub(crate) fn new(group: GroupTag, mesh: &Mesh, role: MachineRole) -> Self {
        Self {
            group,
            epoch: mesh.epoch(),
            slot: mesh.slot(),
            role,
            neighbours: vec![],
            routes: vec![],
            spent: vec![],
            counters: mesh.counters(),
            own_slot_heard: 0,
            fault: None,
        }
    }
}

/// A neighbour that was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RoutingNeighbour {
    /// Its slot in the mesh's group.
    pub slot: Slot,
    /// Its address in frames.
    pub tag: PeerTag,
    /// The link that it is on.
    pub link: String,
    /// Its address there, if it is known.
    pub address: Option<LinkAddress>,
    /// How many of its hellos come, of 15.
    pub heard: u8,
    /// How many of the own hellos it says that it hears, of 15.
    pub told: u8,
    /// How long there and back takes.
    pub round_trip: Option<MeshSpan>,
    /// The cost of a hop to it, if frames may go by it.
    pub cost: Option<u16>,
    /// Whether it is avoided, since frames vanish behind it.
    pub is_avoided: bool,
}

/// How a machine is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RouteStatus {
    /// The machine.
    pub to: Slot,
    /// Whether it is a gateway.
    pub is_gateway: bool,
    /// How far it is.
    pub metric: u16,
    /// The ways that are known, the one in use first: at most
    /// [`MAX_CANDIDATES`](sealane_mesh::limits::MAX_CANDIDATES).
    pub ways: Vec<RoutingWay>,
}

/// A way to a machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RoutingWay {
    /// The neighbour.
    pub via: Slot,
    /// The link that it is on.
    pub link: String,
    /// How far the machine is that way, if frames may go by it.
    pub metric: Option<u16>,
    /// Whether it is the way in use.
    pub is_used: bool,
    /// Whether it is avoided, since frames vanish behind the neighbour.
    pub is_avoided: bool,
}

/// The air time of a link.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AirTimeSpent {
    /// The link.
    pub link: String,
    /// The medium's name in the configuration.
    pub medium: &'static str,
    /// The air time spent, by [`SendUrgency::ALL`](sealane_mesh::SendUrgency::ALL).
    pub parts: [MeshSpan; 4],
}
