//! The orders of all groups that a machine holds, and its next actions with them.

use std::collections::{BTreeMap, BTreeSet};

use sealane_frame::GroupTag;
use sealane_seal::Epoch;

use crate::limits::{MAX_KEPT_GROUPS, MAX_KEPT_ORDER_BYTES_TOTAL, MAX_MESH_NEIGHBOURS};
use crate::neighbour::LinkId;
use crate::orders::{
    EpochBehind, OrderAsk, OrderCollections, OrderKeeper, OrderTrickle, OrdersHeld, PieceQueue,
    RemovalRepeat,
};
use crate::{InterfaceId, MeshTime};

/// All that a machine knows of orders.
#[derive(Debug, Default)]
pub(crate) struct MeshOrders {
    pub(super) groups: BTreeMap<GroupTag, OrderKeeper>,
    pub(super) collections: OrderCollections,
    pub(super) trickles: BTreeMap<InterfaceId, OrderTrickle>,
    pub(super) asks: BTreeMap<GroupTag, OrderAsk>,
    pub(super) giving: BTreeMap<InterfaceId, PieceQueue>,
    pub(super) repeats: Vec<RemovalRepeat>,
    pub(super) behind: BTreeMap<LinkId, EpochBehind>,
    /// When the machine announced itself last in an earlier epoch.
    pub(super) announced: BTreeMap<(InterfaceId, Epoch), MeshTime>,
}

impl MeshOrders {
    /// When something is to be done.
    pub(in crate::mesh) fn wake(&self) -> Option<MeshTime> {
        let is_silent = self.is_silent();
        let trickles = self.trickles.values().filter(|_| !is_silent).map(OrderTrickle::due);
        let asks = self.asks.values().map(|ask| ask.at);
        let giving = self.giving.values().filter_map(PieceQueue::due);
        let repeats = self.repeats.iter().map(|one| one.at);
        trickles.chain(asks).chain(giving).chain(repeats).min()
    }

    /// Whether there is nothing to tell of.
    pub(super) fn is_silent(&self) -> bool {
        self.groups.values().all(OrderKeeper::is_silent)
    }

    pub(super) fn held(&self) -> OrdersHeld {
        let told = self.groups.values().filter(|one| !one.is_silent());
        OrdersHeld { groups: told.map(OrderKeeper::held).collect() }
    }

    /// Whether a neighbour lacks what is lacking here, of the same groups.
    pub(super) fn is_same(&self, held: &OrdersHeld) -> bool {
        let essence = |held: &OrdersHeld| -> BTreeSet<_> {
            held.groups.iter().map(|one| (one.group, one.wants, one.removals)).collect()
        };
        essence(held) == essence(&self.held())
    }

    pub(in crate::mesh) fn is_bounded(&self) -> bool {
        self.groups.len() <= MAX_KEPT_GROUPS
            && self.groups.values().all(OrderKeeper::is_bounded)
            && self.bytes() <= MAX_KEPT_ORDER_BYTES_TOTAL
            && self.collections.is_bounded()
            && self.behind.len() <= MAX_MESH_NEIGHBOURS
    }

    fn bytes(&self) -> usize {
        self.groups.values().map(OrderKeeper::bytes).sum()
    }

    /// Gives up orders of the group that has the most, until there is room for those of all.
    pub(super) fn bound(&mut self) {
        while self.bytes() > MAX_KEPT_ORDER_BYTES_TOTAL {
            let Some(most) = self.groups.values_mut().max_by_key(|one| one.bytes()) else { return };
            most.drop_oldest();
        }
    }

    /// Forgets a group.
    pub(super) fn forget(&mut self, group: GroupTag) {
        self.groups.remove(&group);
        self.asks.remove(&group);
        self.collections.forget(group, u64::MAX);
        self.repeats.retain(|one| one.group != group);
    }

    /// Forgets what it was to do on an interface.
    pub(in crate::mesh) fn down(&mut self, id: InterfaceId) {
        self.trickles.remove(&id);
        self.giving.remove(&id);
        self.repeats.retain(|one| one.interface != id);
        self.behind.retain(|link, _| link.interface != id);
        self.announced.retain(|(interface, _), _| *interface != id);
    }

    /// The epochs of those who are behind there, each once.
    pub(super) fn epochs_behind(&self, id: InterfaceId) -> BTreeSet<Epoch> {
        let here = self.behind.iter().filter(|(link, _)| link.interface == id);
        here.map(|(_, behind)| behind.epoch).collect()
    }
}
