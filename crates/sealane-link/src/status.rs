//! The status of a relay while it runs.

use std::sync::Arc;
use std::time::Duration;

use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::Epoch;

use crate::address::LinkAddress;
use crate::capture::CaptureTally;
use crate::counters::FrameTally;
use crate::relay::RelayShared;
use crate::reload::ReloadTally;
use crate::routing::RoutingStatus;
use crate::table::ConfiguredRoute;
use crate::traffic::NeighbourTally;

/// Reads a relay's status. It may outlive the relay, whose last numbers it gives then.
#[derive(Debug, Clone)]
pub struct RelayWatch {
    shared: Arc<RelayShared>,
}

/// A relay at one time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayStatus {
    /// Its own address in frames.
    pub tag: PeerTag,
    /// How long it has run.
    pub up: Duration,
    /// The counts of carried and dropped frames.
    pub tally: FrameTally,
    /// The groups that it relays for.
    pub groups: Vec<GroupStatus>,
    /// The neighbours, in the order of the configuration, and behind them those that were found: at
    /// most [`MAX_NEIGHBOURS`](crate::limits::MAX_NEIGHBOURS), and
    /// [`MAX_MESH_NEIGHBOURS`](sealane_mesh::limits::MAX_MESH_NEIGHBOURS).
    pub neighbours: Vec<RelayNeighbourStatus>,
    /// The routes, in the order of the configuration.
    pub routes: Vec<ConfiguredRoute>,
    /// Announcements that it holds for those who ask.
    pub announcements_held: usize,
    /// Bytes of frames whose other parts have not come yet.
    pub partial_bytes: usize,
    /// The results of later configurations.
    pub reloads: ReloadTally,
    /// The counts of the capture, if there is to be one.
    pub capture: Option<CaptureTally>,
    /// The machine that finds neighbours and routes, if there is one.
    pub routing: Option<Arc<RoutingStatus>>,
}

/// A group as a relay knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupStatus {
    /// The group's tag.
    pub tag: GroupTag,
    /// The epoch that its card names.
    pub epoch: Epoch,
    /// The members on its card.
    pub members: usize,
}

/// A neighbour, and what came from it and went to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayNeighbourStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Its address in frames.
    pub tag: PeerTag,
    /// The link that it is on.
    pub link: String,
    /// Its address there.
    pub address: LinkAddress,
    /// The counts so far.
    pub tally: NeighbourTally,
    /// How long ago something came from it last.
    pub heard: Option<Duration>,
}

impl RelayWatch {
    pub(crate) fn new(shared: Arc<RelayShared>) -> Self {
        Self { shared }
    }

    /// The relay now.
    pub fn status(&self) -> RelayStatus {
        let shared = &self.shared;
        let (table, now_ms) = (shared.table(), shared.now_us() / 1000);
        let neighbours = table.neighbours().iter().map(|one| RelayNeighbourStatus {
            name: one.name.clone(),
            tag: one.tag,
            link: shared.link_name(one.link),
            address: one.address,
            tally: one.traffic.tally(),
            heard: one
                .traffic
                .heard_ms()
                .map(|heard| Duration::from_millis(now_ms.saturating_sub(heard))),
        });
        RelayStatus {
            tag: table.own(),
            up: Duration::from_millis(now_ms),
            tally: shared.counters.tally(),
            groups: table.groups().to_vec(),
            neighbours: neighbours.collect(),
            routes: table.routes().to_vec(),
            announcements_held: shared.with_floods(|floods| floods.announcements_held()),
            partial_bytes: shared.partial.held(),
            reloads: shared.reloads(),
            capture: shared.tap.tally(),
            routing: shared.routing.as_ref().map(|routing| routing.status()),
        }
    }
}
