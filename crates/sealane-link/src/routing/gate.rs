//! The units that a thread of a link hands to the machine that routes, and their bounds.

use std::sync::Arc;

use super::{IntakeLane, RoutingShared, RoutingTask};
use crate::address::LinkAddress;
use crate::counters::DropReason;
use crate::limits::{
    MAX_CONTROL_UNITS_PER_SECOND, MAX_STRANGER_UNITS_PER_SECOND, NEIGHBOUR_FRAMES_PER_SECOND,
};
use crate::quota::UnitQuota;
use crate::table::NeighbourIndex;

/// One thread's way to the machine.
#[derive(Debug)]
pub(crate) struct RoutingGate {
    routing: Arc<RoutingShared>,
    link: usize,
    /// All units of the link are for the machine.
    pub(crate) is_radio: bool,
    /// The bytes before each unit that say how long it is.
    length_bytes: usize,
    strangers: UnitQuota,
    known: Vec<UnitQuota>,
}

/// A unit, and who sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitSource {
    pub(crate) by: Option<NeighbourIndex>,
    pub(crate) address: LinkAddress,
    pub(crate) now_us: u64,
}

impl RoutingGate {
    /// The gate of a link on which neighbours are found.
    pub(crate) fn new(
        routing: Arc<RoutingShared>,
        link: usize,
        config: &crate::LinkConfig,
    ) -> Self {
        Self {
            routing,
            link,
            is_radio: config.is_radio(),
            length_bytes: config.length_bytes(),
            strangers: UnitQuota::new(MAX_STRANGER_UNITS_PER_SECOND, 0),
            known: vec![],
        }
    }

    /// Goes on with so many neighbours.
    pub(crate) fn renew(&mut self, neighbours: usize, now_us: u64) {
        // On a radio frames of others come by here too; on a wire only messages of the mesh do.
        let per_second = match self.is_radio {
            // On a radio data frames pass this gate too, not only the mesh's own messages.
            true => NEIGHBOUR_FRAMES_PER_SECOND,
            false => MAX_CONTROL_UNITS_PER_SECOND,
        };
        self.known = vec![UnitQuota::new(per_second, now_us); neighbours];
    }

    /// Whether a unit is for the machine.
    pub(crate) fn is_for(&self, unit: &[u8]) -> bool {
        self.is_radio || self.routing.is_control(unit)
    }

    /// Hands a unit over.
    ///
    /// # Errors
    ///
    /// [`DropReason::Quota`], [`DropReason::MeshFull`], and [`DropReason::Malformed`] for one
    /// that is not as long as it says.
    pub(crate) fn pass(&mut self, from: UnitSource, unit: &[u8]) -> Result<(), DropReason> {
        let known = from.by.and_then(|by| self.known.get_mut(usize::from(by)));
        // Strangers share one quota and a queue of their own: however many addresses they make up,
        // neighbours keep theirs.
        let (lane, quota) = match known {
            Some(quota) => (IntakeLane::Known, quota),
            None => (IntakeLane::Stranger, &mut self.strangers),
        };
        // The quota comes before the copy, so that a flood costs no memory.
        if quota.take(1, from.now_us) == 0 {
            return Err(DropReason::Quota);
        }
        // The quota counts a malformed unit as well: it has cost a look.
        let unit = without_length(unit, self.length_bytes).ok_or(DropReason::Malformed)?.into();
        let heard = RoutingTask::Heard { link: self.link, from: from.address, unit };
        self.routing.intake.put(lane, heard)
    }
}

/// A unit without the bytes before it that say how long it is, and without what is behind it.
fn without_length(unit: &[u8], length_bytes: usize) -> Option<&[u8]> {
    if length_bytes == 0 {
        return Some(unit);
    }
    let (length, rest) = unit.split_first_chunk::<{ crate::routing_config::LENGTH_BYTES }>()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_card_puts_behind_a_unit_is_cut_off() {
        assert_eq!(without_length(b"abc", 0), Some(&b"abc"[..]));
        assert_eq!(without_length(&[2, 0, 7, 8, 0, 0], 2), Some(&[7, 8][..]));
        assert_eq!(without_length(&[5, 0, 7, 8, 0, 0], 2), None);
        assert_eq!(without_length(&[5], 2), None);
    }
}
