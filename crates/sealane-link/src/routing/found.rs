//! The neighbours and ways that the machine has found, as the data path's table takes them.

use std::collections::{BTreeMap, BTreeSet};

use sealane_frame::PeerTag;

use crate::address::LinkAddress;

/// Neighbours and ways that were found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RoutingFound {
    /// Those by which frames may go, by link and slot.
    pub(crate) neighbours: Vec<FoundNeighbour>,
    /// Which neighbour takes what is for an address.
    pub(crate) ways: BTreeMap<PeerTag, LinkNeighbour>,
    /// Which of these addresses live on gateways, which report what came to them.
    pub(crate) gateways: BTreeSet<PeerTag>,
}

/// A neighbour that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundNeighbour {
    pub(crate) slot: u16,
    pub(crate) tag: PeerTag,
    pub(crate) link: usize,
    pub(crate) address: LinkAddress,
}

/// A neighbour on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkNeighbour {
    pub(crate) link: usize,
    pub(crate) tag: PeerTag,
}
