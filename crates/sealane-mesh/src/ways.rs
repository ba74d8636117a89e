//! The ways by neighbours, as they were when all destinations were looked at, and those in use.

use std::collections::BTreeMap;

use crate::neighbour::LinkId;
use crate::routes::NeighbourLink;

/// The ways by all neighbours at one moment, in the order of the neighbours.
#[derive(Debug, Default)]
pub(crate) struct NeighbourLinks {
    known: Vec<KnownWay>,
    /// Those before; kept for its room.
    before: Vec<KnownWay>,
}

/// The way by a neighbour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownWay {
    pub(crate) id: LinkId,
    pub(crate) way: NeighbourLink,
}

/// Of a cost that has changed by no more than one part of so many nobody takes notice: it changes a
/// little with each hello.
const COST_PART: u16 = 16;

impl KnownWay {
    /// Whether a choice between ways comes out alike.
    fn is_like(&self, other: &KnownWay) -> bool {
        let essence = |one: &KnownWay| (one.id, one.way.blame, one.way.is_anew);
        let is_near = self.way.cost.abs_diff(other.way.cost) <= other.way.cost / COST_PART;
        essence(self) == essence(other) && is_near
    }
}

impl NeighbourLinks {
    /// Takes the ways that there are now, in the order of their neighbours, and gives those
    /// neighbours whose ways are others than before, or are new, or are no more.
    pub(crate) fn renew(&mut self, fresh: impl Iterator<Item = KnownWay>) -> Vec<LinkId> {
        std::mem::swap(&mut self.known, &mut self.before);
        self.known.clear();
        self.known.extend(fresh);
        debug_assert!(self.known.is_sorted_by_key(|one| one.id), "as neighbours are kept");
        let mut before = self.before.iter().peekable();
        let mut others = vec![];
        for one in &mut self.known {
            while let Some(gone) = before.next_if(|old| old.id < one.id) {
                others.push(gone.id);
            }
            match before.next_if(|old| old.id == one.id).filter(|old| one.is_like(old)) {
                // It is compared with what was noticed last, so that many small changes are one.
                Some(old) => one.way.cost = old.way.cost,
                None => others.push(one.id),
            }
        }
        others.extend(before.map(|gone| gone.id));
        others
    }
}

impl NeighbourLinks {
    /// The way by a neighbour, as it was noticed last.
    pub(crate) fn get(&self, id: LinkId) -> Option<NeighbourLink> {
        let at = self.known.binary_search_by_key(&id, |one| one.id).ok()?;
        self.known.get(at).map(|one| one.way)
    }
}

/// The next hops in use, each with how many machines are reached by it.
#[derive(Debug, Default)]
pub(crate) struct NextHops(BTreeMap<LinkId, usize>);

impl NextHops {
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        self.0.contains_key(&id)
    }

    /// One machine more is reached by it.
    pub(crate) fn take(&mut self, id: LinkId) {
        *self.0.entry(id).or_default() += 1;
    }

    /// One machine fewer is reached by it.
    pub(crate) fn leave(&mut self, id: LinkId) {
        let Some(count) = self.0.get_mut(&id) else { return };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&id);
        }
    }

    /// How many machines are reached by all together.
    pub(crate) fn reached(&self) -> usize {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use sealane_seal::Slot;

    use super::*;
    use crate::neighbour::NeighbourBlame;
    use crate::{InterfaceId, MeshSpan};

    fn id(number: u16) -> LinkId {
        LinkId { interface: InterfaceId(0), slot: Slot::new(number).unwrap() }
    }

    fn way(number: u16, cost: u16) -> KnownWay {
        let way = NeighbourLink {
            cost,
            blame: NeighbourBlame::default(),
            is_anew: false,
            patience: MeshSpan(u64::from(cost)),
        };
        KnownWay { id: id(number), way }
    }

    #[test]
    fn ways_that_come_go_or_change_are_told_and_others_are_not() {
        let mut ways = NeighbourLinks::default();
        let mut renew = |all: &[KnownWay]| ways.renew(all.iter().copied());
        assert_eq!(renew(&[way(1, 64), way(3, 64), way(5, 64)]), [1, 3, 5].map(id));
        assert_eq!(renew(&[way(1, 64), way(3, 64), way(5, 64)]), []);
        assert_eq!(renew(&[way(1, 64), way(2, 64), way(5, 70)]), [2, 3, 5].map(id));
        let patient = KnownWay {
            way: NeighbourLink { patience: MeshSpan(9), ..way(1, 64).way },
            ..way(1, 64)
        };
        let blame = NeighbourBlame { times: 1, ..NeighbourBlame::default() };
        let blamed = KnownWay { way: NeighbourLink { blame, ..way(2, 64).way }, ..way(2, 64) };
        let anew =
            KnownWay { way: NeighbourLink { is_anew: true, ..way(5, 70).way }, ..way(5, 70) };
        assert_eq!(renew(&[patient, blamed, anew]), [2, 5].map(id));
        assert_eq!(renew(&[]), [1, 2, 5].map(id));
    }

    #[test]
    fn small_changes_of_a_cost_are_noticed_once_they_add_up() {
        let mut ways = NeighbourLinks::default();
        ways.renew([way(1, 160)].into_iter());
        for (cost, is_noticed) in [(165, false), (170, false), (171, true), (163, false)] {
            let others = ways.renew([way(1, cost)].into_iter());
            assert_eq!(!others.is_empty(), is_noticed, "{cost}");
        }
        assert_eq!(ways.get(id(1)).map(|way| way.cost), Some(171));
        assert!(ways.get(id(2)).is_none());
    }

    #[test]
    fn a_next_hop_is_in_use_as_long_as_one_machine_is_reached_by_it() {
        let mut hops = NextHops::default();
        [1, 1, 2].map(id).into_iter().for_each(|hop| hops.take(hop));
        hops.leave(id(1));
        assert!(hops.contains(id(1)) && hops.reached() == 2);
        hops.leave(id(1));
        hops.leave(id(7));
        assert!(!hops.contains(id(1)) && hops.contains(id(2)) && hops.reached() == 1);
    }
}
